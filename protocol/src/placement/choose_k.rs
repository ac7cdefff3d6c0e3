//! The ranking of all indices for one unit: ConsistentChooseK (PLACEMENT.md §3 and §4).
//!
//! For: listing `0..total` in an order that is uniform, and in which a new index is inserted
//! at one place while nothing else moves. So a ranking restricted to any set of live indices
//! depends on that set alone: neither on history nor on `total`.
//! Not here: who owns an index (`table`).

use smallvec::SmallVec;

use super::hash::sm;

/// The seed of a unit (a partition, say) under the seed of the whole placement.
#[must_use]
pub fn unit_seed(placement_seed: u64, unit: u64) -> u64 {
    sm(placement_seed, unit)
}

/// One consistent hash: the largest jump value of `level` below `m`, for `1 <= m <= 2^16`.
#[must_use]
pub fn jump_below(level: u64, m: u32) -> u32 {
    if m <= 1 {
        return 0;
    }
    let top = (m - 1).ilog2();
    let mut bits = (level as u32) & (u32::MAX >> (31 - top));
    while bits != 0 {
        let bit = bits.ilog2();
        let base = 1u32 << bit;
        bits ^= base;
        // All moduli are powers of two, so the remainder is a mask.
        let first = base + (sm(level, u64::from(bit)) as u32 & (base - 1));
        if first < m {
            return first;
        }
        // Only the topmost octave can get here: all values of the lower ones are below `m`.
        for round in 1u64.. {
            let value = sm(level, 64 * round + u64::from(bit)) as u32 & (2 * base - 1);
            if value < base {
                break;
            }
            if value < m {
                return value;
            }
        }
    }
    0
}

/// The ranking of `0..total`, item by item. Costs O(k) for the k-th item and no heap for the first 8.
#[derive(Clone, Debug)]
pub struct Ranking {
    seed: u64,
    total: u32,
    /// The set of the first k items, ascending; `set[j - 1]` is the greatest of the first j items
    /// among the indices up to `set[j]`.
    set: SmallVec<[u32; 8]>,
}

impl Ranking {
    /// The ranking of `0..total` under a unit's seed.
    #[must_use]
    pub fn new(seed: u64, total: u32) -> Self {
        Self { seed, total, set: SmallVec::new() }
    }

    /// Candidate of level `level` below `below`.
    fn candidate(&self, level: usize, below: u32) -> u32 {
        let level_seed = sm(self.seed, level as u64);
        level as u32 + jump_below(level_seed, below - level as u32)
    }
}

impl Iterator for Ranking {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let k = self.set.len();
        if k as u32 == self.total {
            return None;
        }
        let candidate = self.candidate(k, self.total);
        let Some(&greatest) = self.set.last().filter(|&&greatest| greatest >= candidate) else {
            self.set.push(candidate);
            return Some(candidate);
        };
        // The greatest stays the greatest of the bigger set; the new item is found below it.
        self.set.push(greatest);
        let mut below = greatest;
        let mut level = k - 1;
        loop {
            let candidate = self.candidate(level, below);
            if level > 0 && self.set[level - 1] >= candidate {
                below = self.set[level - 1];
                self.set[level] = below;
                level -= 1;
            } else {
                self.set[level] = candidate;
                return Some(candidate);
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.total as usize - self.set.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Ranking {}
