//! Scores of sorted sets.
//!
//! For: floating point numbers that can be ordered: never NaN, and one zero.
//! Not here: their texts (`command::sorted_set::number`).

use std::cmp::Ordering;

/// A score: any number, infinities included. Redis keeps -0 in large sets and 0 in small ones; here both are 0.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Score(f64);

impl Score {
    /// The score of members of plain sets.
    pub const ONE: Self = Self(1.0);

    /// A number as a score; `None` if it is none.
    #[must_use]
    pub fn new(number: f64) -> Option<Self> {
        // Adding zero turns -0 into 0.
        (!number.is_nan()).then_some(Self(number + 0.0))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }

    /// Its bytes, for packed sets and for the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// The score that these bytes are; `None` for anything else.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::new(f64::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}
