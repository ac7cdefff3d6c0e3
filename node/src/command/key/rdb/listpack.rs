//! Listpacks: items one after the other, as Redis 7 keeps and writes small collections.
//!
//! For: reading their items, checked in full; writing them, for streams.
//! Not here: what the items mean (`forms`).
//!
//! ```text
//! listpack = total bytes 4 | items 2, 65535: not known | item … | 0xff           integers little-endian
//! item     = 0nnnnnnn | 10llllll bytes | 110nnnnn n | 1110llll l bytes | 0xf0 length 4, bytes
//!          | 0xf1 int16 | 0xf2 int24 | 0xf3 int32 | 0xf4 int64;   and behind it its length, for the way back
//! ```

use std::borrow::Cow;

use super::RdbError;
use super::string::{Item, signed, take, take_array};

const HEAD_BYTES: usize = 6;
const END: u8 = 0xff;
const COUNT_UNKNOWN: u16 = u16::MAX;

/// The items of a listpack.
///
/// # Errors
/// When it is not whole.
pub fn items(bytes: &[u8]) -> Result<Vec<Item<'_>>, RdbError> {
    let (head, mut input) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(RdbError::Content)?;
    let total = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let count = u16::from_le_bytes([head[4], head[5]]);
    if total as usize != bytes.len() {
        return Err(RdbError::Content);
    }
    let mut items = Vec::new();
    while input.first().ok_or(RdbError::Content)? != &END {
        let before = input.len();
        items.push(item(&mut input)?);
        let length = before - input.len();
        take_back_length(&mut input, length)?;
    }
    let is_counted = count == COUNT_UNKNOWN || usize::from(count) == items.len();
    if input.len() == 1 && is_counted { Ok(items) } else { Err(RdbError::Content) }
}

fn item<'a>(input: &mut &'a [u8]) -> Result<Item<'a>, RdbError> {
    let [first] = take_array(input)?;
    let low = usize::from(first & 0x0f);
    match first {
        0..0x80 => Ok(Item::Integer(first.into())),
        0x80..0xc0 => bytes(input, usize::from(first & 0x3f)),
        0xc0..0xe0 => {
            let [second] = take_array(input)?;
            let number = i64::from(first & 0x1f) << 8 | i64::from(second);
            Ok(Item::Integer(if number >= 1 << 12 { number - (1 << 13) } else { number }))
        }
        0xe0..0xf0 => {
            let [second] = take_array(input)?;
            bytes(input, low << 8 | usize::from(second))
        }
        0xf0 => {
            let length = u32::from_le_bytes(take_array(input)?);
            bytes(input, length as usize)
        }
        0xf1 => signed(input, 2),
        0xf2 => signed(input, 3),
        0xf3 => signed(input, 4),
        0xf4 => signed(input, 8),
        _ => Err(RdbError::Content),
    }
}

fn bytes<'a>(input: &mut &'a [u8], length: usize) -> Result<Item<'a>, RdbError> {
    Ok(Item::Bytes(Cow::Borrowed(take(input, length)?)))
}

/// The length of an item behind it.
fn take_back_length(input: &mut &[u8], length: usize) -> Result<(), RdbError> {
    let read = take(input, back_digits(length))?;
    if read.iter().copied().eq(back_length(length)) { Ok(()) } else { Err(RdbError::Content) }
}

/// Digits that the length of an item takes behind it.
fn back_digits(length: usize) -> usize {
    match length {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// Its digits in base 128: the highest first, all but that with the top bit.
fn back_length(length: usize) -> impl Iterator<Item = u8> {
    let digits = back_digits(length);
    (0..digits).rev().map(move |index| {
        let more = if index + 1 < digits { 0x80 } else { 0 };
        (length >> (7 * index)) as u8 & 0x7f | more
    })
}

/// Writes a listpack.
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    count: usize,
}

impl Writer {
    /// An empty one.
    #[must_use]
    pub fn empty() -> Self {
        Self { out: vec![0; HEAD_BYTES], count: 0 }
    }

    /// Appends a number.
    pub fn integer(&mut self, number: i64) {
        let start = self.out.len();
        if let Ok(number @ 0..0x80) = u8::try_from(number) {
            self.out.push(number);
        } else if let Ok(number) = i16::try_from(number) {
            self.out.push(0xf1);
            self.out.extend_from_slice(&number.to_le_bytes());
        } else if let Ok(number) = i32::try_from(number) {
            self.out.push(0xf3);
            self.out.extend_from_slice(&number.to_le_bytes());
        } else {
            self.out.push(0xf4);
            self.out.extend_from_slice(&number.to_le_bytes());
        }
        self.end_item(start);
    }

    /// Appends bytes, shorter than 4 GiB.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let start = self.out.len();
        match bytes.len() {
            length @ 0..0x40 => self.out.push(0x80 | length as u8),
            length @ 0x40..0x1000 => {
                self.out.extend_from_slice(&[0xe0 | (length >> 8) as u8, length as u8]);
            }
            length => {
                self.out.push(0xf0);
                self.out.extend_from_slice(&(length as u32).to_le_bytes());
            }
        }
        self.out.extend_from_slice(bytes);
        self.end_item(start);
    }

    fn end_item(&mut self, start: usize) {
        let length = self.out.len() - start;
        self.out.extend(back_length(length));
        self.count += 1;
    }

    /// The listpack.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.out.push(END);
        let total = self.out.len() as u32;
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        self.out[..4].copy_from_slice(&total.to_le_bytes());
        self.out[4..HEAD_BYTES].copy_from_slice(&count.to_le_bytes());
        self.out
    }
}
