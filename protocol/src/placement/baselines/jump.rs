//! Jump consistent hash (Lamping and Veach, 2014): no memory, even, but only the last bucket can go,
//! and copies need one hash after another.

use super::{Placer, Site, buckets, by_rehashing};
use crate::id::NodeId;

/// Jump consistent hash over one bucket per unit of weight.
#[derive(Clone, Debug)]
pub struct Jump {
    owners: Vec<NodeId>,
    nodes: usize,
}

impl Jump {
    /// Nodes take their buckets in the order given.
    #[must_use]
    pub fn new(sites: &[Site]) -> Self {
        Self { owners: buckets(sites), nodes: sites.len() }
    }
}

impl Placer for Jump {
    fn name(&self) -> &'static str {
        "jump"
    }

    fn replicas(&self, unit: u64, copies: usize) -> Vec<NodeId> {
        let count = self.owners.len();
        by_rehashing(unit, copies.min(self.nodes), &self.owners, |hash| self.owners[bucket(hash, count)])
    }
}

/// The bucket of a hash among `0..count`: jumps ahead for as long as the jump stays inside.
fn bucket(mut state: u64, count: usize) -> usize {
    let (mut bucket, mut next) = (0, 0.0);
    while next < count as f64 {
        bucket = next as usize;
        state = state.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = (bucket + 1) as f64 * ((1u64 << 31) as f64 / ((state >> 33) + 1) as f64);
    }
    bucket
}
