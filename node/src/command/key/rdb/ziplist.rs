//! Ziplists and sets of integers: what Redis wrote before listpacks, and still reads.
//!
//! For: reading their items, checked in full.
//! Not here: what the items mean (`forms`).
//!
//! ```text
//! ziplist = total bytes 4 | start of the last item 4 | items 2, 65535: not known | item … | 0xff
//! item    = length of the one before: 1 byte, or 0xfe and 4
//!         | 00llllll bytes | 01llllll l bytes | 0x80 length 4 (big-endian) bytes
//!         | 0xc0 int16 | 0xd0 int32 | 0xe0 int64 | 0xf0 int24 | 0xfe int8 | 1111nnnn (n - 1, from 1 to 13)
//! intset  = width 4 (2, 4 or 8) | number 4 | integers, ascending
//! ```

use std::borrow::Cow;

use super::RdbError;
use super::string::{Item, signed, take, take_array};

const HEAD_BYTES: usize = 10;
const END: u8 = 0xff;
const COUNT_UNKNOWN: u16 = u16::MAX;
const LONG: u8 = 0xfe;

/// The items of a ziplist.
///
/// # Errors
/// When it is not whole.
pub fn items(bytes: &[u8]) -> Result<Vec<Item<'_>>, RdbError> {
    let (head, mut input) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(RdbError::Content)?;
    let total = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let count = u16::from_le_bytes([head[8], head[9]]);
    if total as usize != bytes.len() {
        return Err(RdbError::Content);
    }
    let (mut items, mut before) = (Vec::new(), 0);
    while input.first().ok_or(RdbError::Content)? != &END {
        let start = input.len();
        let [short] = take_array(&mut input)?;
        let told = if short == LONG { u32::from_le_bytes(take_array(&mut input)?) } else { short.into() };
        if told as usize != before {
            return Err(RdbError::Content);
        }
        items.push(item(&mut input)?);
        before = start - input.len();
    }
    let is_counted = count == COUNT_UNKNOWN || usize::from(count) == items.len();
    if input.len() == 1 && is_counted { Ok(items) } else { Err(RdbError::Content) }
}

fn item<'a>(input: &mut &'a [u8]) -> Result<Item<'a>, RdbError> {
    let [first] = take_array(input)?;
    let low = usize::from(first & 0x3f);
    match first {
        0..0x40 => bytes(input, low),
        0x40..0x80 => {
            let [second] = take_array(input)?;
            bytes(input, low << 8 | usize::from(second))
        }
        0x80 => {
            let length = u32::from_be_bytes(take_array(input)?);
            bytes(input, length as usize)
        }
        0xc0 => signed(input, 2),
        0xd0 => signed(input, 4),
        0xe0 => signed(input, 8),
        0xf0 => signed(input, 3),
        0xfe => signed(input, 1),
        0xf1..=0xfd => Ok(Item::Integer(i64::from(first & 0x0f) - 1)),
        _ => Err(RdbError::Content),
    }
}

fn bytes<'a>(input: &mut &'a [u8], length: usize) -> Result<Item<'a>, RdbError> {
    Ok(Item::Bytes(Cow::Borrowed(take(input, length)?)))
}

/// The members of a set of integers.
///
/// # Errors
/// When it is not whole, or not in order.
pub fn integers(mut input: &[u8]) -> Result<Vec<i64>, RdbError> {
    let width = u32::from_le_bytes(take_array(&mut input)?) as usize;
    let count = u32::from_le_bytes(take_array(&mut input)?) as usize;
    if !matches!(width, 2 | 4 | 8) || width.checked_mul(count) != Some(input.len()) {
        return Err(RdbError::Content);
    }
    let mut integers = Vec::with_capacity(count);
    while !input.is_empty() {
        match signed(&mut input, width)? {
            Item::Integer(number) => integers.push(number),
            Item::Bytes(_) => return Err(RdbError::Content),
        }
    }
    if integers.is_sorted_by(|one, next| one < next) { Ok(integers) } else { Err(RdbError::Content) }
}
