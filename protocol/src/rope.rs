//! Bytes that are put together without copying the long strings in them.
//!
//! For: replies, effects and frames that carry large values: short pieces are copied, long ones are held.
//! Not here: what the bytes mean.

use std::borrow::Cow;
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// A string of at least so many bytes is held, a shorter one is copied, bytes: copying it takes some ten
/// microseconds, as long as what the parting costs.
pub const HELD_BYTES_MIN: usize = 64 << 10;

/// Bytes, in order: copied ones, and long strings in their places between them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Rope {
    pub(crate) bytes: BytesMut,
    pub(crate) held: Held,
}

/// The long strings of a rope, each with how many copied bytes stand before it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    strings: Vec<(usize, Bytes)>,
    total: usize,
}

/// A place in a rope, between what was written before it and what is written after it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Mark {
    pub(crate) bytes: usize,
    pub(crate) strings: usize,
}

impl Held {
    pub(crate) fn push(&mut self, at: usize, string: Bytes) {
        self.total += string.len();
        self.strings.push((at, string));
    }

    pub(crate) fn count(&self) -> usize {
        self.strings.len()
    }

    pub(crate) fn total_since(&self, mark: Mark) -> usize {
        self.strings[mark.strings..].iter().map(|(_, string)| string.len()).sum()
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        for (_, string) in self.strings.drain(count.min(self.strings.len())..) {
            self.total -= string.len();
        }
    }
}

impl Rope {
    /// An empty rope.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of bytes, held ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() + self.held.total
    }

    /// No bytes at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Holds no string: [`Self::copied`] is everything.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        self.held.strings.is_empty()
    }

    /// The copied bytes, without the strings between them.
    #[must_use]
    pub fn copied(&self) -> &[u8] {
        &self.bytes
    }

    /// Where copied bytes are appended.
    pub fn copied_mut(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Bytes that it could hold without growing.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Appends a copy.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a string, held if it is long.
    pub fn push(&mut self, string: Bytes) {
        if string.len() >= HELD_BYTES_MIN {
            self.held.push(self.bytes.len(), string);
        } else {
            self.bytes.extend_from_slice(&string);
        }
    }

    /// The present end.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), strings: self.held.count() }
    }

    /// Bytes after a mark.
    #[must_use]
    pub fn len_since(&self, mark: Mark) -> usize {
        self.bytes.len() - mark.bytes + self.held.total_since(mark)
    }

    /// The copied bytes after a mark: what stands there begins with them unless it begins with a held string.
    #[must_use]
    pub fn copied_since(&self, mark: Mark) -> &[u8] {
        &self.bytes[mark.bytes..]
    }

    /// Takes back everything after a mark.
    pub fn truncate(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.held.truncate(mark.strings);
    }

    /// Takes everything back; the room stays.
    pub fn clear(&mut self) {
        self.truncate(Mark::default());
    }

    /// Appends another rope.
    pub fn append(&mut self, other: &Self) {
        self.append_part(other, Mark::default(), other.mark());
    }

    /// Appends what stands between two marks of another rope.
    pub fn append_part(&mut self, other: &Self, from: Mark, until: Mark) {
        let mut at = from.bytes;
        for (position, string) in &other.held.strings[from.strings..until.strings] {
            self.bytes.extend_from_slice(&other.bytes[at..*position]);
            self.held.push(self.bytes.len(), string.clone());
            at = *position;
        }
        self.bytes.extend_from_slice(&other.bytes[at..until.bytes]);
    }

    /// Appends all bytes to `out`, as copies.
    pub fn copy_to(&self, out: &mut BytesMut) {
        out.reserve(self.len());
        let mut at = 0;
        for (position, string) in &self.held.strings {
            out.extend_from_slice(&self.bytes[at..*position]);
            out.extend_from_slice(string);
            at = *position;
        }
        out.extend_from_slice(&self.bytes[at..]);
    }

    /// The place after `prefix`, if the rope begins with it and no held string does.
    #[must_use]
    pub fn after_prefix(&self, prefix: &[u8]) -> Option<Mark> {
        let is_before = self.held.strings.first().is_some_and(|(at, _)| *at < prefix.len());
        let begins = !is_before && self.bytes.starts_with(prefix);
        begins.then_some(Mark { bytes: prefix.len(), strings: 0 })
    }

    /// All bytes in one piece, copied only if some are held.
    #[must_use]
    pub fn flat(&self) -> Cow<'_, [u8]> {
        if self.is_flat() {
            return Cow::Borrowed(&self.bytes);
        }
        let mut out = BytesMut::new();
        self.copy_to(&mut out);
        Cow::Owned(out.into())
    }

    /// What stands between two marks; held strings stay held.
    #[must_use]
    pub fn part(&self, from: Mark, until: Mark) -> Self {
        let mut part = Self::new();
        part.append_part(self, from, until);
        part
    }

    /// All bytes, in order, in pieces that share what is held. Leaves the rope empty.
    pub fn take_pieces(&mut self) -> VecDeque<Bytes> {
        let mut pieces = VecDeque::with_capacity(2 * self.held.count() + 1);
        let mut taken = 0;
        let mut bytes = self.bytes.split().freeze();
        for (position, string) in self.held.strings.drain(..) {
            if position > taken {
                pieces.push_back(bytes.split_to(position - taken));
                taken = position;
            }
            pieces.push_back(string);
        }
        self.held.total = 0;
        if !bytes.is_empty() {
            pieces.push_back(bytes);
        }
        pieces
    }

    /// All bytes, copied into one piece unless they are one already.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        if self.is_flat() {
            return self.bytes.freeze();
        }
        let mut pieces = self.take_pieces();
        if pieces.len() == 1
            && let Some(only) = pieces.pop_front()
        {
            return only;
        }
        let mut out = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
        pieces.iter().for_each(|piece| out.extend_from_slice(piece));
        out.freeze()
    }
}

impl From<&[u8]> for Rope {
    fn from(bytes: &[u8]) -> Self {
        Self { bytes: bytes.into(), held: Held::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn long(byte: u8) -> Bytes {
        vec![byte; HELD_BYTES_MIN].into()
    }

    /// A rope of short (`false`) and long strings, and its bytes with the marks between them.
    fn woven(kinds: &[bool]) -> (Rope, Vec<u8>, Vec<(Mark, usize)>) {
        let (mut rope, mut flat) = (Rope::new(), Vec::new());
        let mut marks = vec![(rope.mark(), 0)];
        for (at, &is_long) in kinds.iter().enumerate() {
            let string = if is_long { long(at as u8) } else { Bytes::from(vec![at as u8; at]) };
            flat.extend_from_slice(&string);
            rope.push(string);
            marks.push((rope.mark(), flat.len()));
        }
        (rope, flat, marks)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn a_rope_is_its_bytes_wherever_it_is_cut(kinds in prop::collection::vec(any::<bool>(), 0..6)) {
            let (rope, flat, marks) = woven(&kinds);
            prop_assert_eq!(rope.len(), flat.len());
            for (i, &(from, start)) in marks.iter().enumerate() {
                for &(until, end) in &marks[i..] {
                    prop_assert_eq!(&rope.part(from, until).into_bytes()[..], &flat[start..end]);
                }
                prop_assert_eq!(rope.len_since(from), flat.len() - start);
                let mut shorter = rope.clone();
                shorter.truncate(from);
                prop_assert_eq!(&shorter.clone().into_bytes()[..], &flat[..start]);
                shorter.append_part(&rope, from, rope.mark());
                prop_assert_eq!(&shorter, &rope);
            }
            let mut copy = BytesMut::new();
            rope.copy_to(&mut copy);
            prop_assert_eq!(&copy[..], &flat[..]);
        }
    }

    #[test]
    fn what_is_long_is_held_and_what_is_short_is_copied() {
        let (mut rope, _, _) = woven(&[false, false, true, true, false]);
        let strings: Vec<_> = rope.held.strings.iter().map(|(_, string)| string.as_ptr()).collect();
        let pieces: Vec<_> = rope.take_pieces().into();
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [1, HELD_BYTES_MIN, HELD_BYTES_MIN, 4]);
        assert_eq!([pieces[1].as_ptr(), pieces[2].as_ptr()], strings[..]);
        assert!(rope.is_empty() && rope.is_flat());
    }
}
