//! Ids of entries.
//!
//! For: [`StreamId`], and lists of them as bytes.
//! Not here: how clients spell them (`command::stream::ids`).

use std::fmt;

/// Bytes of an id.
pub const ID_BYTES: usize = 16;

/// The id of an entry: a time, and a number within it. The order of ids is the order of the stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct StreamId {
    /// Unix ms, as far as nobody chose otherwise.
    pub ms: u64,
    /// Which one of this millisecond.
    pub seq: u64,
}

impl StreamId {
    /// The least; no entry has it.
    pub const MIN: Self = Self::new(0, 0);
    /// The greatest.
    pub const MAX: Self = Self::new(u64::MAX, u64::MAX);

    /// The id `ms-seq`.
    #[must_use]
    pub const fn new(ms: u64, seq: u64) -> Self {
        Self { ms, seq }
    }

    /// The one after this.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        match (self.seq.checked_add(1), self.ms.checked_add(1)) {
            (Some(seq), _) => Some(Self { seq, ..self }),
            (None, Some(ms)) => Some(Self { ms, seq: 0 }),
            (None, None) => None,
        }
    }

    /// The one before this.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        match (self.seq.checked_sub(1), self.ms.checked_sub(1)) {
            (Some(seq), _) => Some(Self { seq, ..self }),
            (None, Some(ms)) => Some(Self { ms, seq: u64::MAX }),
            (None, None) => None,
        }
    }

    /// As bytes whose order is that of the ids.
    #[must_use]
    pub fn to_bytes(self) -> [u8; ID_BYTES] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// Read back.
    #[must_use]
    pub fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
        let number = u128::from_be_bytes(bytes);
        Self { ms: (number >> 64) as u64, seq: number as u64 }
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.ms, self.seq)
    }
}

/// Several ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ids<'a>(&'a [[u8; ID_BYTES]]);

impl<'a> Ids<'a> {
    /// Ids that were collected.
    #[must_use]
    pub fn new(ids: &'a [[u8; ID_BYTES]]) -> Self {
        Self(ids)
    }

    /// Ids from bytes, if they are whole ones.
    #[must_use]
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (ids, rest) = bytes.as_chunks();
        rest.is_empty().then_some(Self(ids))
    }

    /// All as bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.0.as_flattened()
    }

    /// One after the other.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = StreamId> + 'a {
        self.0.iter().map(|bytes| StreamId::from_bytes(*bytes))
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
