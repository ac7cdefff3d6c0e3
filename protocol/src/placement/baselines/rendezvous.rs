//! Rendezvous hashing: every node bids for every unit, and the highest bids win. Weighted.
//!
//! It moves as little as choose-k and spreads as evenly, but asks every node about every unit.

use super::{Placer, Site};
use crate::id::NodeId;
use crate::placement::hash::{mix64, sm};

/// Weighted rendezvous hashing.
#[derive(Clone, Debug)]
pub struct Rendezvous {
    sites: Vec<Site>,
}

impl Rendezvous {
    /// Nothing is prepared.
    #[must_use]
    pub fn new(sites: &[Site]) -> Self {
        Self { sites: sites.to_vec() }
    }

    /// A node's bid: of exponential variables with the weights as rates, the least wins (so the bid is
    /// its inverse), in proportion to the weights.
    fn bid(site: &Site, unit: u64) -> f64 {
        let hash = mix64(sm(site.id.0, 0) ^ sm(unit, 1)) >> 11;
        let uniform = (hash as f64 + 0.5) / (1u64 << 53) as f64;
        f64::from(site.weight) / -uniform.ln()
    }
}

impl Placer for Rendezvous {
    fn name(&self) -> &'static str {
        "rendezvous"
    }

    fn replicas(&self, unit: u64, copies: usize) -> Vec<NodeId> {
        let mut bids: Vec<_> = self.sites.iter().map(|site| (Self::bid(site, unit), site.id)).collect();
        bids.sort_by(|(a, id), (b, other)| b.total_cmp(a).then(id.cmp(other)));
        bids.into_iter().take(copies).map(|(_, id)| id).collect()
    }
}
