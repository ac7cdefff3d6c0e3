//! `cmsgpack`: MessagePack for scripts, as lua-cmsgpack writes and reads it.
//!
//! For: packing values, and unpacking one, some or all of a string, bounded in depth.

use std::rc::Rc;

use bytes::{Buf, BufMut};
use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::raise;
use super::vm::Watch;

/// Tables nested deeper than this are packed as nil.
const PACKED_DEPTH_MAX: usize = 16;
/// How deep what is unpacked may nest.
const UNPACKED_DEPTH_MAX: usize = 128;
/// Values between two looks at the clock.
const VALUES: usize = 4096;
/// Bytes of what is packed.
const PACKED_BYTES_MAX: usize = 64 << 20;

/// Values that one call gives: they stand on the stack.
const VALUES_MAX: usize = 4096;

const MISSING: &str = "Missing bytes in input.";
const BAD: &str = "Bad data format in input.";

/// The functions.
pub fn functions(lua: &Lua, watch: &Rc<Watch>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let watched = Rc::clone(watch);
    let packer = move |lua: &Lua, values: MultiValue| {
        if values.is_empty() {
            return Err(raise::at(lua, "bad argument #0 to 'pack' (MessagePack pack needs input.)"));
        }
        let mut packer = Packer { lua, watch: &watched, out: Vec::new(), values: 0 };
        values.iter().try_for_each(|value| packer.pack(value, 0))?;
        if packer.out.len() > PACKED_BYTES_MAX {
            return Err(raise::at(lua, "the packed string is too long"));
        }
        lua.create_string(&packer.out)
    };
    table.raw_set("pack", lua.create_function(packer)?)?;
    let all = |lua: &Lua, text: LuaString| unpack_some(lua, &text.as_bytes(), usize::MAX, 0, false);
    table.raw_set("unpack", lua.create_function(all)?)?;
    let one = |lua: &Lua, (text, offset): (LuaString, Option<i64>)| {
        unpack_some(lua, &text.as_bytes(), 1, offset.unwrap_or(0), true)
    };
    table.raw_set("unpack_one", lua.create_function(one)?)?;
    let some = |lua: &Lua, (text, limit, offset): (LuaString, i64, Option<i64>)| {
        let limit = usize::try_from(limit).unwrap_or(0);
        unpack_some(lua, &text.as_bytes(), limit, offset.unwrap_or(0), true)
    };
    table.raw_set("unpack_limit", lua.create_function(some)?)?;
    Ok(table)
}

struct Packer<'l> {
    lua: &'l Lua,
    watch: &'l Watch,
    out: Vec<u8>,
    values: usize,
}

impl Packer<'_> {
    fn pack(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        self.values += 1;
        if self.values.is_multiple_of(VALUES) {
            self.watch.look(self.lua)?;
        }
        let out = &mut self.out;
        if out.len() > PACKED_BYTES_MAX {
            return Ok(());
        }
        match value {
            Value::Boolean(value) => out.push(if *value { 0xC3 } else { 0xC2 }),
            Value::Integer(number) => pack_integer(*number, out),
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
                pack_integer(*number as i64, out);
            }
            Value::Number(number) if f64::from(*number as f32) == *number => {
                out.push(0xCA);
                out.put_f32(*number as f32);
            }
            Value::Number(number) => {
                out.push(0xCB);
                out.put_f64(*number);
            }
            Value::String(text) => {
                let text = text.as_bytes();
                put_length(text.len(), 0xA0, 32, [Some(0xD9), Some(0xDA), Some(0xDB)], out);
                out.extend_from_slice(&text);
            }
            Value::Table(_) if depth >= PACKED_DEPTH_MAX => out.push(0xC0),
            Value::Table(table) => return self.pack_table(table, depth + 1),
            _ => out.push(0xC0),
        }
        Ok(())
    }

    fn pack_table(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        let (mut count, mut most, mut is_array) = (0_usize, 0_i64, true);
        for pair in table.pairs::<Value, Value>() {
            match pair?.0 {
                Value::Integer(number) if number > 0 => most = most.max(number),
                _ => is_array = false,
            }
            count += 1;
        }
        if is_array && most as usize == count {
            put_length(count, 0x90, 16, [None, Some(0xDC), Some(0xDD)], &mut self.out);
            return (1..=count).try_for_each(|at| self.pack(&table.raw_get(at)?, depth));
        }
        put_length(count, 0x80, 16, [None, Some(0xDE), Some(0xDF)], &mut self.out);
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            self.pack(&key, depth)?;
            self.pack(&value, depth)?;
        }
        Ok(())
    }
}

fn pack_integer(number: i64, out: &mut Vec<u8>) {
    match number {
        0..128 => out.push(number as u8),
        128..256 => out.extend_from_slice(&[0xCC, number as u8]),
        256..65_536 => {
            out.push(0xCD);
            out.put_u16(number as u16);
        }
        65_536..4_294_967_296 => {
            out.push(0xCE);
            out.put_u32(number as u32);
        }
        4_294_967_296.. => {
            out.push(0xCF);
            out.put_u64(number.cast_unsigned());
        }
        -32..0 => out.push(number as u8),
        -128..-32 => out.extend_from_slice(&[0xD0, number as u8]),
        -32_768..-128 => {
            out.push(0xD1);
            out.put_i16(number as i16);
        }
        -2_147_483_648..-32_768 => {
            out.push(0xD2);
            out.put_i32(number as i32);
        }
        ..-2_147_483_648 => {
            out.push(0xD3);
            out.put_i64(number);
        }
    }
}

/// A length in the shortest form: in the byte `fixed` itself if it is below `below`, else behind a byte for one, two or
/// four.
fn put_length(length: usize, fixed: u8, below: usize, forms: [Option<u8>; 3], out: &mut Vec<u8>) {
    match forms {
        _ if length < below => out.push(fixed | length as u8),
        [Some(form), ..] if length < 256 => out.extend_from_slice(&[form, length as u8]),
        [_, Some(form), _] if length < 65_536 => {
            out.push(form);
            out.put_u16(length as u16);
        }
        [.., form] => {
            out.push(form.unwrap_or_default());
            out.put_u32(length as u32);
        }
    }
}

fn unpack_some(
    lua: &Lua,
    text: &[u8],
    limit: usize,
    offset: i64,
    tells_offset: bool,
) -> mlua::Result<MultiValue> {
    let Some(mut input) = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)) else {
        return Err(raise::at(lua, "Start offset outside of the input."));
    };
    let mut values = Vec::new();
    while values.len() < limit && !input.is_empty() {
        if values.len() >= VALUES_MAX {
            return Err(raise::at(lua, "too many values"));
        }
        values.push(unpack_value(lua, &mut input, 0).map_err(|problem| match problem {
            Problem::Of(why) => raise::at(lua, why),
            Problem::Lua(error) => error,
        })?);
    }
    if tells_offset {
        let next = if input.is_empty() { -1 } else { (text.len() - input.len()) as i64 };
        values.insert(0, Value::Integer(next));
    }
    Ok(MultiValue::from_vec(values))
}

/// Why nothing was unpacked.
enum Problem {
    Of(&'static str),
    Lua(mlua::Error),
}

impl From<mlua::Error> for Problem {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

impl From<bytes::TryGetError> for Problem {
    fn from(_: bytes::TryGetError) -> Self {
        Self::Of(MISSING)
    }
}

fn unpack_value(lua: &Lua, input: &mut &[u8], depth: usize) -> Result<Value, Problem> {
    if depth > UNPACKED_DEPTH_MAX {
        return Err(Problem::Of(BAD));
    }
    let number = |number: f64| Ok(Value::Number(number));
    let form = input.try_get_u8()?;
    match form {
        0..0x80 => number(form.into()),
        0xE0.. => number(form.cast_signed().into()),
        0xC0 => Ok(Value::Nil),
        0xC2 | 0xC3 => Ok(Value::Boolean(form == 0xC3)),
        0xCA => number(input.try_get_f32()?.into()),
        0xCB => number(input.try_get_f64()?),
        0xCC => number(input.try_get_u8()?.into()),
        0xCD => number(input.try_get_u16()?.into()),
        0xCE => number(input.try_get_u32()?.into()),
        0xCF => number(input.try_get_u64()? as f64),
        0xD0 => number(input.try_get_i8()?.into()),
        0xD1 => number(input.try_get_i16()?.into()),
        0xD2 => number(input.try_get_i32()?.into()),
        0xD3 => number(input.try_get_i64()? as f64),
        0xA0..0xC0 => string(lua, input, usize::from(form & 31)),
        0xC4 | 0xD9 => {
            let length = input.try_get_u8()?.into();
            string(lua, input, length)
        }
        0xC5 | 0xDA => {
            let length = input.try_get_u16()?.into();
            string(lua, input, length)
        }
        0xC6 | 0xDB => {
            let length = input.try_get_u32()? as usize;
            string(lua, input, length)
        }
        0x90..0xA0 => array(lua, input, usize::from(form & 15), depth),
        0xDC => {
            let length = input.try_get_u16()?.into();
            array(lua, input, length, depth)
        }
        0xDD => {
            let length = input.try_get_u32()? as usize;
            array(lua, input, length, depth)
        }
        0x80..0x90 => map(lua, input, usize::from(form & 15), depth),
        0xDE => {
            let length = input.try_get_u16()?.into();
            map(lua, input, length, depth)
        }
        0xDF => {
            let length = input.try_get_u32()? as usize;
            map(lua, input, length, depth)
        }
        _ => Err(Problem::Of(BAD)),
    }
}

fn string(lua: &Lua, input: &mut &[u8], length: usize) -> Result<Value, Problem> {
    let (text, rest) = input.split_at_checked(length).ok_or(Problem::Of(MISSING))?;
    *input = rest;
    Ok(Value::String(lua.create_string(text)?))
}

fn array(lua: &Lua, input: &mut &[u8], length: usize, depth: usize) -> Result<Value, Problem> {
    let table = lua.create_table()?;
    for at in 1..=length {
        table.raw_set(at, unpack_value(lua, input, depth + 1)?)?;
    }
    Ok(Value::Table(table))
}

fn map(lua: &Lua, input: &mut &[u8], length: usize, depth: usize) -> Result<Value, Problem> {
    let table = lua.create_table()?;
    for _ in 0..length {
        let key = unpack_value(lua, input, depth + 1)?;
        let value = unpack_value(lua, input, depth + 1)?;
        let is_key = !key.is_nil() && !matches!(key, Value::Number(number) if number.is_nan());
        if !is_key {
            return Err(Problem::Of(BAD));
        }
        table.raw_set(key, value)?;
    }
    Ok(Value::Table(table))
}
