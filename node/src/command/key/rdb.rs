//! Values in the format of Redis' RDB files, version 10.
//!
//! For: the payloads of `DUMP` and `RESTORE`.
//! Not here: the options of the commands (`dump`).
//!
//! ```text
//! payload = type 1 | value | version 2 (little-endian) | CRC-64 of all before 8 (little-endian)
//! value   = string (type 0) | length, then items (type 1, a list)
//!         | length, then field and value strings (type 4, a hash)
//! string  = length bytes | 11000000 int8 | 11000001 int16 | 11000010 int32
//!         | 11000011 compressed-length length LZF-bytes
//! length  = 00llllll | 01llllll l8 | 10000000 l32 (big-endian) | 10000001 l64 (big-endian)
//! ```

use std::borrow::Cow;

use korum_protocol::limits::BULK_BYTES_MAX;

use super::{crc64, lzf};
use crate::store::{Hash, HashChange, List, ListChange, StringRef, Value, ValueRef};

/// The format that Redis 7.0 writes, and the newest that it reads.
const VERSION: u16 = 10;
const FOOTER_BYTES: usize = 10;
const TYPE_STRING: u8 = 0;
const TYPE_LIST: u8 = 1;
const TYPE_HASH: u8 = 4;

/// Why a payload is not restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RdbError {
    /// It is too short, from a newer version, or damaged.
    #[error("ERR DUMP payload version or checksum are wrong")]
    Footer,
    /// Its checksum is right, its content is not.
    #[error("ERR Bad data format")]
    Content,
}

/// The payload of a value.
#[must_use]
pub fn dump(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        ValueRef::String(string) => {
            out.push(TYPE_STRING);
            write_string(&mut out, string);
        }
        ValueRef::Hash(hash) => {
            out.push(TYPE_HASH);
            write_length(&mut out, hash.len() as u64);
            for (field, value) in hash.iter() {
                write_string(&mut out, StringRef::Bytes(field));
                write_string(&mut out, StringRef::Bytes(value));
            }
        }
        ValueRef::List(list) => {
            out.push(TYPE_LIST);
            write_length(&mut out, list.len() as u64);
            list.iter().for_each(|item| write_string(&mut out, StringRef::Bytes(item)));
        }
    }
    out.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64::checksum(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// The value in a payload.
///
/// # Errors
/// When the payload is damaged, or its content is none that is known here.
pub fn restore(payload: &[u8]) -> Result<Value, RdbError> {
    let body = payload.len().checked_sub(FOOTER_BYTES).ok_or(RdbError::Footer)?;
    let footer = &payload[body..];
    if u16::from_le_bytes([footer[0], footer[1]]) > VERSION
        || crc64::checksum(&payload[..body + 2]).to_le_bytes() != footer[2..]
    {
        return Err(RdbError::Footer);
    }
    let mut input = &payload[..body];
    let value = match take(&mut input, 1)? {
        [TYPE_STRING] => ValueRef::string(&read_string(&mut input)?).to_value(),
        [TYPE_LIST] => read_list(&mut input)?,
        [TYPE_HASH] => read_hash(&mut input)?,
        _ => return Err(RdbError::Content),
    };
    if input.is_empty() { Ok(value) } else { Err(RdbError::Content) }
}

fn read_list(input: &mut &[u8]) -> Result<Value, RdbError> {
    let mut list = List::default();
    for _ in 0..read_plain_length(input)? {
        list.apply(&ListChange::PushBack { item: &read_string(input)? });
    }
    if list.is_empty() { Err(RdbError::Content) } else { Ok(Value::List(Box::new(list))) }
}

fn read_hash(input: &mut &[u8]) -> Result<Value, RdbError> {
    let mut hash = Hash::default();
    for _ in 0..read_plain_length(input)? {
        let (field, value) = (read_string(input)?, read_string(input)?);
        if hash.get(&field).is_some() {
            return Err(RdbError::Content);
        }
        hash.apply(&HashChange::Set { field: &field, value: &value });
    }
    if hash.is_empty() { Err(RdbError::Content) } else { Ok(Value::Hash(Box::new(hash))) }
}

fn write_string(out: &mut Vec<u8>, string: StringRef<'_>) {
    if let Some(number) = string.integer() {
        if let Ok(number) = i8::try_from(number) {
            return out.extend_from_slice(&[0xc0, number as u8]);
        }
        if let Ok(number) = i16::try_from(number) {
            out.push(0xc1);
            return out.extend_from_slice(&number.to_le_bytes());
        }
        if let Ok(number) = i32::try_from(number) {
            out.push(0xc2);
            return out.extend_from_slice(&number.to_le_bytes());
        }
    }
    let bytes = string.bytes();
    out.reserve(bytes.len() + 16);
    write_length(out, bytes.len() as u64);
    out.extend_from_slice(&bytes);
}

fn write_length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend_from_slice(&[0x40 | (length >> 8) as u8, length as u8]),
        0x4000..=0xffff_ffff => {
            out.push(0x80);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// A length, or the special encoding of a string.
enum Length {
    Plain(usize),
    Encoded(u8),
}

fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], RdbError> {
    let (bytes, rest) = input.split_at_checked(len).ok_or(RdbError::Content)?;
    *input = rest;
    Ok(bytes)
}

fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], RdbError> {
    Ok(take(input, N)?.try_into().expect("N bytes were taken"))
}

fn read_length(input: &mut &[u8]) -> Result<Length, RdbError> {
    let [first] = take_array(input)?;
    let low = first & 0x3f;
    let length = match (first >> 6, first) {
        (0, _) => u64::from(low),
        (1, _) => u64::from(low) << 8 | u64::from(take_array::<1>(input)?[0]),
        (2, 0x80) => u64::from(u32::from_be_bytes(take_array(input)?)),
        (2, 0x81) => u64::from_be_bytes(take_array(input)?),
        (2, _) => return Err(RdbError::Content),
        _ => return Ok(Length::Encoded(low)),
    };
    usize::try_from(length).map(Length::Plain).map_err(|_| RdbError::Content)
}

fn read_plain_length(input: &mut &[u8]) -> Result<usize, RdbError> {
    match read_length(input)? {
        Length::Plain(length) => Ok(length),
        Length::Encoded(_) => Err(RdbError::Content),
    }
}

fn read_string<'a>(input: &mut &'a [u8]) -> Result<Cow<'a, [u8]>, RdbError> {
    let number = match read_length(input)? {
        Length::Plain(length) => return take(input, length).map(Cow::Borrowed),
        Length::Encoded(0) => i64::from(i8::from_le_bytes(take_array(input)?)),
        Length::Encoded(1) => i64::from(i16::from_le_bytes(take_array(input)?)),
        Length::Encoded(2) => i64::from(i32::from_le_bytes(take_array(input)?)),
        Length::Encoded(3) => {
            let compressed = read_plain_length(input)?;
            let length = read_plain_length(input)?;
            if length > BULK_BYTES_MAX {
                return Err(RdbError::Content);
            }
            let bytes = lzf::decompress(take(input, compressed)?, length).ok_or(RdbError::Content)?;
            return Ok(Cow::Owned(bytes));
        }
        Length::Encoded(_) => return Err(RdbError::Content),
    };
    Ok(Cow::Owned(number.to_string().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_payload_gives_its_value_back(bytes in proptest::collection::vec(any::<u8>(), 0..20_000)) {
            let value = ValueRef::string(&bytes);
            prop_assert_eq!(restore(&dump(value)), Ok(value.to_value()));
        }

        #[test]
        fn an_integer_gives_its_text_back(number: i64, shift in 0..64u32) {
            let number = number >> shift;
            let value = ValueRef::String(StringRef::Integer(number));
            prop_assert_eq!(restore(&dump(value)), Ok(value.to_value()));
        }

        #[test]
        fn no_bytes_panic(mut bytes: Vec<u8>) {
            prop_assert_eq!(restore(&bytes), Err(RdbError::Footer));
            // Also with a right footer.
            bytes.extend_from_slice(&VERSION.to_le_bytes());
            let checksum = crc64::checksum(&bytes);
            bytes.extend_from_slice(&checksum.to_le_bytes());
            let _ = restore(&bytes);
        }
    }

    #[test]
    fn all_lengths_are_written_and_read() {
        for length in [0u64, 0x3f, 0x40, 0x3fff, 0x4000, 0xffff_ffff, 0x1_0000_0000] {
            let mut out = Vec::new();
            write_length(&mut out, length);
            let mut input = &out[..];
            assert_eq!(read_plain_length(&mut input), Ok(length as usize));
            assert!(input.is_empty());
        }
    }
}
