//! Fields of entries, as bytes.
//!
//! For: [`Fields`] on their way into a stream, [`Entry`] as it is read from one; numbers and strings in bytes.
//! Not here: how entries stand in a block (`block`).

use super::id::StreamId;

/// Appends a number: seven bits a byte, the lowest first.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the front.
pub(super) fn take_number(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends a string with its length.
pub(super) fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_number(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// Takes a string from the front.
pub(super) fn take_string<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(input)?).ok()?;
    let (string, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(string)
}

/// The fields of a new entry with their values, at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields<'a> {
    pairs: usize,
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Writes fields and values, one after the other, in the form that [`Self::from_bytes`] reads.
    #[must_use]
    pub fn encode<'i>(items: impl Iterator<Item = &'i [u8]> + Clone) -> Vec<u8> {
        let room = items.clone().map(|item| item.len() + 5).sum();
        let mut bytes = Vec::with_capacity(room);
        items.for_each(|item| put_string(&mut bytes, item));
        bytes
    }

    /// Fields from bytes, if they are whole pairs, and at least one.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (mut rest, mut pairs) = (bytes, 0);
        while !rest.is_empty() {
            take_string(&mut rest)?;
            take_string(&mut rest)?;
            pairs += 1;
        }
        (pairs > 0).then_some(Self { pairs, bytes })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// Never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs == 0
    }

    /// Fields with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || Some((take_string(&mut rest)?, take_string(&mut rest)?)))
    }
}

/// An entry, as it stands in its block.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its id.
    pub id: StreamId,
    /// How many fields it has.
    pub(super) pairs: usize,
    /// The names of its fields, if they are those of its block.
    pub(super) names: Option<&'a [u8]>,
    /// Values, or fields with values.
    pub(super) content: &'a [u8],
}

impl<'a> Entry<'a> {
    /// How many fields it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// Never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs == 0
    }

    /// Fields with their values.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let (mut names, mut content) = (self.names, self.content);
        std::iter::from_fn(move || {
            let name = match &mut names {
                Some(names) => take_string(names)?,
                None => take_string(&mut content)?,
            };
            Some((name, take_string(&mut content)?))
        })
    }
}
