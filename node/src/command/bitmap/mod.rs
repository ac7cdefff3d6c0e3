//! Strings as bits.
//!
//! For: single bits, counting and finding them, combining strings. The first bit is the highest of the first byte.
//! Next: `field` reads and writes integers of any width, `bits` looks at bits without a key.

use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::resp::Args;

use super::args::{integer, is};
use super::{Call, SYNTAX_ERROR, Stop};
use crate::store::integer as text;
use crate::store::keyspace::{Place, seconds};
use crate::store::{Classes, StringRef, StringValue, Value};
use bits::Bits;

mod bits;
mod field;
#[cfg(test)]
mod tests;

pub use field::{bitfield, bitfield_ro};

/// Reads an offset in bits: with `width`, `#n` means the `n`-th integer of so many bits. All of `width` bits from
/// there on are within the longest string.
fn bit_offset(argument: &[u8], width: Option<u32>) -> Result<usize, Stop> {
    let bits = i64::from(width.unwrap_or(1));
    let offset = match (argument.strip_prefix(b"#"), width) {
        (Some(number), Some(_)) => text::parse(number).and_then(|number| number.checked_mul(bits)),
        _ => text::parse(argument),
    };
    offset
        .and_then(|offset| usize::try_from(offset).ok())
        .filter(|offset| *offset <= 8 * BULK_BYTES_MAX - bits as usize)
        .ok_or("ERR bit offset is not an integer or out of range".into())
}

/// Makes the string of a key, or a new one, long enough for the byte `last`, and one that is changed in place.
/// `found` is the string as it was seen.
fn make_room(call: &mut Call<'_>, place: Place<'_>, last: usize, found: Option<(usize, bool, u8)>) {
    match found {
        Some((length, true, _)) if length > last => {}
        Some((length, false, byte)) if length > last => overwrite(call, place, last, &[byte]),
        _ => overwrite(call, place, last, &[0]),
    }
}

/// The length of a key's string, whether it is kept as one that is changed in place, and its byte at `at`.
fn seen(call: &mut Call<'_>, place: Place<'_>, at: usize) -> Result<Option<(usize, bool, u8)>, Stop> {
    Ok(call.read_string(place)?.map(|string| {
        let byte = string.bytes().get(at).copied().unwrap_or(0);
        (string.len(), string.encoding() == "raw", byte)
    }))
}

fn overwrite(call: &mut Call<'_>, place: Place<'_>, offset: usize, bytes: &[u8]) {
    call.notify_new(place);
    call.keyspace.tick(seconds(call.now_ms));
    call.keyspace.overwrite(place, offset, bytes);
    call.effects.overwrite(place, offset, bytes, call.source);
}

/// `SETBIT key offset value`
pub fn setbit(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let offset = bit_offset(call.arg(2), None)?;
        let bit = match integer(call.arg(3)) {
            Ok(bit @ 0..=1) => bit as u8,
            _ => return Err("ERR bit is not an integer or out of range".into()),
        };
        let (at, shift) = (offset / 8, 7 - offset % 8);
        let found = seen(call, place, at)?;
        let byte = found.map_or(0, |(_, _, byte)| byte);
        let changed = byte & !(1 << shift) | bit << shift;
        if changed == byte {
            make_room(call, place, at, found);
        } else {
            overwrite(call, place, at, &[changed]);
        }
        call.notify(Classes::STRING, "setbit", place);
        call.reply.integer(i64::from(byte >> shift & 1));
        Ok(())
    });
}

/// `GETBIT key offset`
pub fn getbit(call: &mut Call<'_>) {
    call.answer(|call| {
        let offset = bit_offset(call.arg(2), None)?;
        let byte = seen(call, call.place(1), offset / 8)?.map_or(0, |(_, _, byte)| byte);
        call.reply.integer(i64::from(byte >> (7 - offset % 8) & 1));
        Ok(())
    });
}

/// `BIT` or `BYTE`: what a range counts in.
fn counts_bits(unit: Option<&[u8]>) -> Result<bool, Stop> {
    match unit {
        Some(unit) if is(unit, "bit") => Ok(true),
        Some(unit) if is(unit, "byte") => Ok(false),
        Some(_) => Err(SYNTAX_ERROR.into()),
        None => Ok(false),
    }
}

/// The bits of a range with both ends, of a string of `length` bytes. Negative ends count from its end.
fn bit_range(start: i64, end: i64, in_bits: bool, length: usize) -> std::ops::Range<usize> {
    let unit = if in_bits { 1 } else { 8 };
    let total = (length * 8 / unit) as i64;
    let from_front = |index: i64| if index < 0 { index.saturating_add(total).max(0) } else { index };
    let (start, end) = (from_front(start), from_front(end).min(total - 1));
    if start > end { 0..0 } else { start as usize * unit..(end as usize + 1) * unit }
}

/// `BITCOUNT key [start end [BYTE|BIT]]`: options are looked at only if there is something to count, as in Redis 7.0.
pub fn bitcount(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, args) = (call.place(1), call.args);
        let found = call.read_string(place)?;
        let count = found.map_or(Ok(0), |string| count_in(&string.bytes(), &args))?;
        call.reply.integer(count as i64);
        Ok(())
    });
}

fn count_in(bytes: &[u8], args: &Args<'_>) -> Result<u64, Stop> {
    let range = match (args.len(), args.get(2), args.get(3)) {
        (2, ..) => 0..8 * bytes.len(),
        (4 | 5, Some(start), Some(end)) => {
            let (start, end) = (integer(start)?, integer(end)?);
            if start < 0 && end < 0 && start > end {
                0..0
            } else {
                bit_range(start, end, counts_bits(args.get(4))?, bytes.len())
            }
        }
        _ => return Err(SYNTAX_ERROR.into()),
    };
    Ok(Bits(bytes).count(range))
}

/// `BITPOS key bit [start [end [BYTE|BIT]]]`: behind a string without an end that was given stand zeros.
pub fn bitpos(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, args) = (call.place(1), call.args);
        let bit = match integer(call.arg(2))? {
            0 => false,
            1 => true,
            _ => return Err("ERR The bit argument must be 1 or 0.".into()),
        };
        let missing = if bit { -1 } else { 0 };
        let found = call.read_string(place)?;
        let position = found.map_or(Ok(missing), |string| position_in(&string.bytes(), bit, &args))?;
        call.reply.integer(position);
        Ok(())
    });
}

fn position_in(bytes: &[u8], bit: bool, args: &Args<'_>) -> Result<i64, Stop> {
    let range = match (args.len(), args.get(3)) {
        (3, _) => 0..8 * bytes.len(),
        (4..=6, Some(start)) => {
            let start = integer(start)?;
            let in_bits = counts_bits(args.get(5))?;
            let end = args.get(4).map_or(Ok(-1), integer)?;
            bit_range(start, end, in_bits, bytes.len())
        }
        _ => return Err(SYNTAX_ERROR.into()),
    };
    if range.is_empty() {
        return Ok(-1);
    }
    let end = range.end as i64;
    Ok(match Bits(bytes).find(bit, range) {
        Some(position) => position as i64,
        None if !bit && args.len() < 5 => end,
        None => -1,
    })
}

/// How strings are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

/// `BITOP AND|OR|XOR|NOT destination key …`
pub fn bitop(call: &mut Call<'_>) {
    call.answer(|call| {
        let word = call.arg(1);
        let named = [
            ("and", Operation::And),
            ("or", Operation::Or),
            ("xor", Operation::Xor),
            ("not", Operation::Not),
        ];
        let operation = named.into_iter().find(|(name, _)| is(word, name)).ok_or(SYNTAX_ERROR)?.1;
        if operation == Operation::Not && call.args.len() != 4 {
            return Err("ERR BITOP NOT must be called with a single source key.".into());
        }
        let mut lengths = Vec::new();
        for index in 3..call.args.len() {
            lengths.push(call.read_string(call.place(index))?.map_or(0, StringRef::len));
        }
        let target = call.place(2);
        let length = lengths.iter().copied().max().unwrap_or(0);
        let mut result = Vec::with_capacity(length);
        for index in 3..call.args.len() {
            let string = call.read_string(call.place(index))?;
            combine(&mut result, &string.map(StringRef::bytes).unwrap_or_default(), operation, index == 3);
        }
        if length == 0 {
            if call.delete(target) {
                call.notify(Classes::GENERIC, "del", target);
            }
        } else {
            if operation == Operation::And {
                // Where a string has ended, it is zeros.
                let shortest = lengths.into_iter().min().unwrap_or(0);
                result.resize(length, 0);
                result[shortest..].fill(0);
            }
            call.put_value(target, Value::String(StringValue::Raw(result)), None);
            call.notify(Classes::STRING, "set", target);
        }
        call.reply.integer(length as i64);
        Ok(())
    });
}

/// Takes one more string into the result; the first one begins it.
fn combine(result: &mut Vec<u8>, bytes: &[u8], operation: Operation, is_first: bool) {
    if is_first {
        result.extend_from_slice(bytes);
        if operation == Operation::Not {
            result.iter_mut().for_each(|byte| *byte = !*byte);
        }
        return;
    }
    if result.len() < bytes.len() {
        result.resize(bytes.len(), 0);
    }
    for (byte, other) in result.iter_mut().zip(bytes) {
        match operation {
            Operation::And => *byte &= other,
            Operation::Or => *byte |= other,
            Operation::Xor => *byte ^= other,
            Operation::Not => {}
        }
    }
}
