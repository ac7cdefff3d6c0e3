//! `struct`: values as C lays them out, as Roberto Ierusalimschy's library does.
//!
//! For: `pack`, `unpack` and `size` with its formats: `< > = !n b B h H i In l L T f d s cn x` and blanks.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::raise;

/// Most bytes of one number.
const INTEGER_BYTES_MAX: usize = 32;
/// Bytes of what is packed.
const PACKED_BYTES_MAX: usize = 64 << 20;
/// Values of one format.
const VALUES_MAX: usize = 4096;

/// One step of a format.
#[derive(Clone, Copy)]
enum Step {
    Integer {
        size: usize,
        is_signed: bool,
    },
    Float {
        size: usize,
    },
    /// Up to a zero byte.
    Text,
    /// So many bytes; `None`: as many as the last number says, or as there are.
    Bytes(Option<usize>),
    Padding,
}

/// Reads a format.
struct Format<'f> {
    text: &'f [u8],
    is_little: bool,
    alignment: usize,
}

impl<'f> Format<'f> {
    fn new(text: &'f [u8]) -> Self {
        Self { text, is_little: true, alignment: 1 }
    }

    /// The number that stands here, or the default.
    fn number(&mut self, default: usize) -> Result<usize, String> {
        let end = self.text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.text.len());
        let (digits, rest) = self.text.split_at(end);
        self.text = rest;
        if digits.is_empty() {
            return Ok(default);
        }
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        number.filter(|&number| number <= i32::MAX as usize).ok_or("integral size overflow".to_owned())
    }

    fn next(&mut self) -> Result<Option<Step>, String> {
        loop {
            let Some((&letter, rest)) = self.text.split_first() else { return Ok(None) };
            self.text = rest;
            let integer = |size, is_signed| Ok(Some(Step::Integer { size, is_signed }));
            match letter {
                b' ' => {}
                b'<' | b'=' => self.is_little = true,
                b'>' => self.is_little = false,
                b'!' => {
                    let alignment = self.number(8)?;
                    if !alignment.is_power_of_two() {
                        return Err("alignment is not a power of 2".to_owned());
                    }
                    self.alignment = alignment;
                }
                b'b' => return integer(1, true),
                b'B' => return integer(1, false),
                b'h' => return integer(2, true),
                b'H' => return integer(2, false),
                b'l' => return integer(8, true),
                b'L' | b'T' => return integer(8, false),
                b'i' | b'I' => {
                    let size = self.number(4)?;
                    if size > INTEGER_BYTES_MAX {
                        return Err(format!(
                            "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                        ));
                    }
                    return integer(size, letter == b'i');
                }
                b'f' => return Ok(Some(Step::Float { size: 4 })),
                b'd' => return Ok(Some(Step::Float { size: 8 })),
                b's' => return Ok(Some(Step::Text)),
                b'c' => {
                    let length = self.number(1)?;
                    return Ok(Some(Step::Bytes((length > 0).then_some(length))));
                }
                b'x' => return Ok(Some(Step::Padding)),
                other => return Err(format!("invalid format option '{}'", char::from(other))),
            }
        }
    }

    /// Bytes that are left out before a step at this place.
    fn padding(&self, step: Step, at: usize) -> usize {
        let size = match step {
            Step::Integer { size, .. } | Step::Float { size } => size,
            Step::Text | Step::Bytes(_) | Step::Padding => return 0,
        };
        let size = size.min(self.alignment);
        if size > 1 && size.is_power_of_two() { at.wrapping_neg() & (size - 1) } else { 0 }
    }
}

/// The functions.
pub fn functions(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let packer = |lua: &Lua, values: MultiValue| {
        lua.create_string(pack(&values).map_err(|problem| raise::at(lua, problem))?)
    };
    table.raw_set("pack", lua.create_function(packer)?)?;
    let sizer =
        |lua: &Lua, format: LuaString| size(&format.as_bytes()).map_err(|problem| raise::at(lua, problem));
    table.raw_set("size", lua.create_function(sizer)?)?;
    let unpacker = |lua: &Lua, (format, text, start): (LuaString, LuaString, Option<i64>)| {
        let values = unpack(lua, &format.as_bytes(), &text.as_bytes(), start.unwrap_or(1))?;
        values.map(MultiValue::from_vec).map_err(|problem| raise::at(lua, problem))
    };
    table.raw_set("unpack", lua.create_function(unpacker)?)?;
    Ok(table)
}

fn number(value: Option<&Value>, at: usize) -> Result<f64, String> {
    match value {
        Some(Value::Integer(number)) => Ok(*number as f64),
        Some(Value::Number(number)) => Ok(*number),
        Some(Value::String(text)) if text.to_string_lossy().trim().parse::<f64>().is_ok() => {
            Ok(text.to_string_lossy().trim().parse().unwrap_or_default())
        }
        other => {
            let found = other.map_or("no value", Value::type_name);
            Err(format!("bad argument #{at} to 'pack' (number expected, got {found})"))
        }
    }
}

fn pack(values: &MultiValue) -> Result<Vec<u8>, String> {
    let Some(Value::String(format)) = values.front() else {
        return Err("bad argument #1 to 'pack' (string expected)".to_owned());
    };
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let (mut out, mut next) = (Vec::new(), 1);
    while let Some(step) = format.next()? {
        out.resize(out.len() + format.padding(step, out.len()), 0);
        let value = values.get(next);
        let text = || match value {
            Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
            Some(Value::Integer(number)) => Ok(number.to_string().into_bytes()),
            other => {
                let found = other.map_or("no value", Value::type_name);
                Err(format!("bad argument #{} to 'pack' (string expected, got {found})", next + 1))
            }
        };
        match step {
            Step::Padding => {
                out.push(0);
                continue;
            }
            Step::Integer { size, .. } => {
                let number = number(value, next + 1)?;
                // Negative numbers as signed ones, large ones as unsigned ones, as C casts them.
                let number = if number < 0.0 { number as i128 } else { (number as u64).into() };
                let filler = if number < 0 { 0xFF } else { 0 };
                let mut bytes = vec![filler; size];
                let low = number.to_le_bytes();
                let used = size.min(8);
                bytes[..used].copy_from_slice(&low[..used]);
                if !format.is_little {
                    bytes.reverse();
                }
                out.extend_from_slice(&bytes);
            }
            Step::Float { size: 4 } => {
                let number = number(value, next + 1)? as f32;
                out.extend_from_slice(&if format.is_little {
                    number.to_le_bytes()
                } else {
                    number.to_be_bytes()
                });
            }
            Step::Float { .. } => {
                let number = number(value, next + 1)?;
                out.extend_from_slice(&if format.is_little {
                    number.to_le_bytes()
                } else {
                    number.to_be_bytes()
                });
            }
            Step::Text => {
                out.extend_from_slice(&text()?);
                out.push(0);
            }
            Step::Bytes(length) => {
                let text = text()?;
                let length = length.unwrap_or(text.len());
                out.extend_from_slice(
                    text.get(..length)
                        .ok_or_else(|| format!("bad argument #{} to 'pack' (string too short)", next + 1))?,
                );
            }
        }
        next += 1;
        if out.len() > PACKED_BYTES_MAX {
            return Err("the packed string is too long".to_owned());
        }
    }
    Ok(out)
}

fn size(format: &[u8]) -> Result<usize, String> {
    let mut format = Format::new(format);
    let mut total = 0_usize;
    while let Some(step) = format.next()? {
        total = total.saturating_add(format.padding(step, total));
        total = total.saturating_add(match step {
            Step::Integer { size, .. } | Step::Float { size } => size,
            Step::Padding => 1,
            Step::Bytes(Some(length)) => length,
            Step::Text => return Err("variable-size format for 's'".to_owned()),
            Step::Bytes(None) => return Err("variable-length format for 'c0'".to_owned()),
        });
    }
    Ok(total)
}

fn unpack(lua: &Lua, format: &[u8], text: &[u8], start: i64) -> mlua::Result<Result<Vec<Value>, String>> {
    let refused = |why: &str| Ok(Err(why.to_owned()));
    let mut format = Format::new(format);
    let Some(mut at) = start.checked_sub(1).and_then(|start| usize::try_from(start).ok()) else {
        return refused("offset must be 1 or greater");
    };
    let mut values = Vec::new();
    loop {
        let step = match format.next() {
            Ok(Some(step)) => step,
            Ok(None) => break,
            Err(problem) => return Ok(Err(problem)),
        };
        at = at.saturating_add(format.padding(step, at));
        let Some(rest) = text.get(at..) else { return refused("data string too short") };
        let length = match step {
            Step::Integer { size, .. } | Step::Float { size } => size,
            Step::Padding => 1,
            Step::Text => match memchr::memchr(0, rest) {
                Some(length) => length,
                None => return refused("unfinished string in data"),
            },
            Step::Bytes(Some(length)) => length,
            Step::Bytes(None) => match values.pop() {
                Some(Value::Number(length)) if length >= 0.0 => length as usize,
                _ => return refused("format 'c0' needs a previous size"),
            },
        };
        let Some(bytes) = rest.get(..length) else { return refused("data string too short") };
        at += length + usize::from(matches!(step, Step::Text));
        match step {
            Step::Padding => {}
            Step::Integer { is_signed, .. } => {
                values.push(Value::Number(integer(bytes, format.is_little, is_signed)))
            }
            Step::Float { .. } => values.push(Value::Number(float(bytes, format.is_little))),
            Step::Text | Step::Bytes(_) => values.push(Value::String(lua.create_string(bytes)?)),
        }
        if values.len() > VALUES_MAX {
            return refused("too many results");
        }
    }
    values.push(Value::Number((at + 1) as f64));
    Ok(Ok(values))
}

fn integer(bytes: &[u8], is_little: bool, is_signed: bool) -> f64 {
    let mut low = [0; 8];
    let used = bytes.len().min(8);
    for (place, at) in low.iter_mut().zip(0..used) {
        *place = if is_little { bytes[at] } else { bytes[bytes.len() - 1 - at] };
    }
    let number = u64::from_le_bytes(low);
    if !is_signed {
        return number as f64;
    }
    let unused = 64 - 8 * used as u32;
    if used == 0 { 0.0 } else { ((number << unused).cast_signed() >> unused) as f64 }
}

fn float(bytes: &[u8], is_little: bool) -> f64 {
    let ordered = |mut bytes: Vec<u8>| {
        if !is_little {
            bytes.reverse();
        }
        bytes
    };
    let bytes = ordered(bytes.to_vec());
    match (<[u8; 4]>::try_from(&bytes[..]), <[u8; 8]>::try_from(&bytes[..])) {
        (Ok(four), _) => f32::from_le_bytes(four).into(),
        (_, Ok(eight)) => f64::from_le_bytes(eight),
        _ => 0.0,
    }
}
