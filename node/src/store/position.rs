//! Positions in hash order: where a key stands, and runs of such places.
//!
//! For: cursors of scans and streams, which stay valid across splits, nodes and restarts.
//! Not here: how entries are found by them (`table`).

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How many bits of a key's hash its position keeps: a partition number still fits beside it in a
/// 64-bit scan cursor, and two of a million keys share a position once in 500 partitions.
pub const POSITION_BITS: u32 = 48;

/// Where a key stands in hash order: the top 48 bits of its 64-bit hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct HashPosition(u64);

impl HashPosition {
    /// Before every key.
    pub const START: Self = Self(0);
    /// Behind every key: no key stands here.
    pub const END: Self = Self(1 << POSITION_BITS);

    /// Where `key` stands. The seed is the cluster's, so that all its nodes agree.
    #[must_use]
    pub fn of(seed: u64, key: &[u8]) -> Self {
        Self(xxh3_64_with_seed(key, seed) >> (64 - POSITION_BITS))
    }

    /// The position of a number; what lies behind the end becomes the end.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number.min(Self::END.0))
    }

    /// The number of this position, `0..=2^48`.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self::new(self.0 + 1)
    }

    /// The top `bits` bits, as an index: the prefix that a segment stands for.
    #[must_use]
    pub(super) fn prefix(self, bits: u32) -> usize {
        (self.0 >> (POSITION_BITS - bits)) as usize
    }

    /// The first position whose top `bits` bits are `prefix`.
    #[must_use]
    pub(super) fn of_prefix(prefix: usize, bits: u32) -> Self {
        Self::new((prefix as u64) << (POSITION_BITS - bits))
    }

    /// The hash for the tables inside: the table takes its bucket from the low bits and its tags from
    /// the high ones, and the top bits of the position are the same for a whole segment.
    #[must_use]
    pub(super) fn table_hash(self) -> u64 {
        (self.0 << (64 - POSITION_BITS)).rotate_left(32)
    }
}

/// All positions from `from` on, before `until`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HashRange {
    /// The first position inside.
    pub from: HashPosition,
    /// The first position behind.
    pub until: HashPosition,
}

impl HashRange {
    /// Every position.
    pub const ALL: Self = Self { from: HashPosition::START, until: HashPosition::END };

    /// Whether `position` lies inside.
    #[must_use]
    pub fn contains(&self, position: HashPosition) -> bool {
        self.from <= position && position < self.until
    }
}
