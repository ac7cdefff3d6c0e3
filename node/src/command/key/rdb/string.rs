//! Strings, lengths and numbers of the format.
//!
//! For: writing and reading them; nothing is allocated that the payload does not hold, but what is compressed (`lzf` bounds it).
//! Not here: what they are parts of (`forms`, `stream`).
//!
//! ```text
//! string  = length bytes | 11000000 int8 | 11000001 int16 | 11000010 int32
//!         | 11000011 compressed-length length LZF-bytes
//! length  = 00llllll | 01llllll l8 | 10000000 l32 (big-endian) | 10000001 l64 (big-endian)
//! ```

use std::borrow::Cow;

use korum_protocol::limits::BULK_BYTES_MAX;

use super::RdbError;
use crate::command::key::lzf;
use crate::store::StringRef;

/// An item of a small collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item<'a> {
    /// Written as a number.
    Integer(i64),
    /// Any other.
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Item<'a> {
    /// Its text.
    #[must_use]
    pub fn text(self) -> Cow<'a, [u8]> {
        match self {
            Self::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The number that it is written as.
    ///
    /// # Errors
    /// When it is not one.
    pub fn integer(&self) -> Result<i64, RdbError> {
        match self {
            Self::Integer(number) => Ok(*number),
            Self::Bytes(_) => Err(RdbError::Content),
        }
    }
}

/// Appends a string, short where it spells a small integer.
pub fn write(out: &mut Vec<u8>, string: StringRef<'_>) {
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

/// Appends a length, or any number.
pub fn write_length(out: &mut Vec<u8>, length: u64) {
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
    Plain(u64),
    Encoded(u8),
}

/// Takes `len` bytes.
///
/// # Errors
/// When there are not as many.
pub fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], RdbError> {
    let (bytes, rest) = input.split_at_checked(len).ok_or(RdbError::Content)?;
    *input = rest;
    Ok(bytes)
}

/// Takes `N` bytes.
///
/// # Errors
/// When there are not as many.
pub fn take_array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], RdbError> {
    let (bytes, rest) = input.split_first_chunk().ok_or(RdbError::Content)?;
    *input = rest;
    Ok(*bytes)
}

/// Takes a signed integer of `width` bytes, at most 8, the lowest first.
///
/// # Errors
/// When there are not as many.
pub fn signed<'a>(input: &mut &[u8], width: usize) -> Result<Item<'a>, RdbError> {
    let bytes = take(input, width)?;
    let number = bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let unused = 64 - 8 * width as u32;
    Ok(Item::Integer((number << unused) as i64 >> unused))
}

fn read_either(input: &mut &[u8]) -> Result<Length, RdbError> {
    let [first] = take_array(input)?;
    let low = first & 0x3f;
    Ok(Length::Plain(match (first >> 6, first) {
        (0, _) => u64::from(low),
        (1, _) => u64::from(low) << 8 | u64::from(take_array::<1>(input)?[0]),
        (2, 0x80) => u64::from(u32::from_be_bytes(take_array(input)?)),
        (2, 0x81) => u64::from_be_bytes(take_array(input)?),
        (2, _) => return Err(RdbError::Content),
        _ => return Ok(Length::Encoded(low)),
    }))
}

/// Takes any number that was written as a length.
///
/// # Errors
/// When there is none.
pub fn read_number(input: &mut &[u8]) -> Result<u64, RdbError> {
    match read_either(input)? {
        Length::Plain(length) => Ok(length),
        Length::Encoded(_) => Err(RdbError::Content),
    }
}

/// Takes a length.
///
/// # Errors
/// When there is none.
pub fn read_length(input: &mut &[u8]) -> Result<usize, RdbError> {
    usize::try_from(read_number(input)?).map_err(|_| RdbError::Content)
}

/// Takes a string.
///
/// # Errors
/// When there is none.
pub fn read<'a>(input: &mut &'a [u8]) -> Result<Cow<'a, [u8]>, RdbError> {
    let width = match read_either(input)? {
        Length::Plain(length) => {
            let length = usize::try_from(length).map_err(|_| RdbError::Content)?;
            return take(input, length).map(Cow::Borrowed);
        }
        Length::Encoded(0) => 1,
        Length::Encoded(1) => 2,
        Length::Encoded(2) => 4,
        Length::Encoded(3) => {
            let compressed = read_length(input)?;
            let length = read_length(input)?;
            if length > BULK_BYTES_MAX {
                return Err(RdbError::Content);
            }
            let bytes = lzf::decompress(take(input, compressed)?, length).ok_or(RdbError::Content)?;
            return Ok(Cow::Owned(bytes));
        }
        Length::Encoded(_) => return Err(RdbError::Content),
    };
    Ok(signed(input, width)?.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_are_written_and_read() {
        for length in [0u64, 0x3f, 0x40, 0x3fff, 0x4000, 0xffff_ffff, 0x1_0000_0000, u64::MAX] {
            let mut out = Vec::new();
            write_length(&mut out, length);
            let mut input = &out[..];
            assert_eq!(read_number(&mut input), Ok(length));
            assert!(input.is_empty());
        }
    }
}
