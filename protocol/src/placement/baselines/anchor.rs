//! AnchorHash (Mendelson et al., 2020): any bucket may be removed, with minimal movement, at the price
//! of a capacity that is fixed in advance and four numbers for each of its buckets.

use super::{Placer, Site, buckets, by_rehashing};
use crate::id::NodeId;
use crate::placement::hash::sm;

/// AnchorHash over one bucket per unit of weight.
#[derive(Clone, Debug)]
pub struct Anchor {
    owners: Vec<NodeId>,
    /// 0 while the bucket works, else how many buckets worked right after its removal.
    size_at_removal: Vec<usize>,
    /// Who took the bucket's place when it was removed.
    successor: Vec<usize>,
    /// Which working bucket stands at each place.
    working: Vec<usize>,
    /// At which place each bucket stands.
    place: Vec<usize>,
    /// Removed buckets, the latest last: the first to come back.
    removed: Vec<usize>,
}

impl Anchor {
    /// Nodes take their buckets in the order given; as many buckets again, and at least eight, are kept spare.
    #[must_use]
    pub fn new(sites: &[Site]) -> Self {
        let owners = buckets(sites);
        let capacity = owners.len() * 2 + 8;
        let mut anchor = Self {
            size_at_removal: vec![0; capacity],
            successor: (0..capacity).collect(),
            working: (0..capacity).collect(),
            place: (0..capacity).collect(),
            removed: Vec::new(),
            owners,
        };
        for bucket in (anchor.owners.len()..capacity).rev() {
            anchor.remove_bucket(bucket);
        }
        anchor
    }

    /// Removes a node; unless it is the last. Only what it had moves.
    pub fn remove(&mut self, node: NodeId) {
        let works = |&bucket: &usize| self.size_at_removal[bucket] == 0;
        let working: Vec<usize> = (0..self.owners.len()).filter(works).collect();
        if working.iter().any(|&bucket| self.owners[bucket] != node) {
            let own = working.into_iter().filter(|&bucket| self.owners[bucket] == node);
            own.collect::<Vec<_>>().into_iter().for_each(|bucket| self.remove_bucket(bucket));
        }
    }

    /// Adds a node of weight 1; it takes over exactly its share. False when the capacity is used up.
    pub fn add(&mut self, node: NodeId) -> bool {
        let Some(bucket) = self.removed.pop() else { return false };
        let last = self.size_at_removal[bucket];
        self.size_at_removal[bucket] = 0;
        self.place[self.working[last]] = last;
        self.working[self.place[bucket]] = bucket;
        self.successor[bucket] = bucket;
        if bucket >= self.owners.len() {
            self.owners.resize(bucket + 1, node);
        }
        self.owners[bucket] = node;
        true
    }

    fn remove_bucket(&mut self, bucket: usize) {
        self.removed.push(bucket);
        let left = self.size_at_removal.len() - self.removed.len();
        self.size_at_removal[bucket] = left;
        let last = self.working[left];
        self.working[self.place[bucket]] = last;
        self.place[last] = self.place[bucket];
        self.successor[bucket] = last;
    }

    fn bucket(&self, hash: u64) -> usize {
        let pick = |round: usize, below: usize| (sm(hash, round as u64) % below as u64) as usize;
        let mut bucket = pick(self.size_at_removal.len(), self.size_at_removal.len());
        while self.size_at_removal[bucket] > 0 {
            let size = self.size_at_removal[bucket];
            let mut next = pick(bucket, size);
            while self.size_at_removal[next] >= size {
                next = self.successor[next];
            }
            bucket = next;
        }
        bucket
    }

    fn working_owners(&self) -> Vec<NodeId> {
        let owners = self.owners.iter().zip(&self.size_at_removal);
        owners.filter(|(_, removed)| **removed == 0).map(|(owner, _)| *owner).collect()
    }
}

impl Placer for Anchor {
    fn name(&self) -> &'static str {
        "anchor"
    }

    fn replicas(&self, unit: u64, copies: usize) -> Vec<NodeId> {
        by_rehashing(unit, copies, &self.working_owners(), |hash| self.owners[self.bucket(hash)])
    }
}
