//! Other ways of placing data, to compare against; the cluster itself never uses them.
//!
//! For: `korum compare-placement`, benches, and property tests (PLACEMENT.md §8).
//! Not here: bounded memory or speed to serve requests with.

mod anchor;
mod jump;
mod rendezvous;
mod ring;

pub use anchor::Anchor;
pub use jump::Jump;
pub use rendezvous::Rendezvous;
pub use ring::Ring;

use super::choose_k::{Ranking, unit_seed};
use super::hash::sm;
use crate::id::NodeId;

/// A node to place data on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Who it is.
    pub id: NodeId,
    /// Its share, 1..=16.
    pub weight: u8,
    /// Its failure domain.
    pub zone: String,
}

/// A way of placing units (partitions, slots, keys) on nodes.
pub trait Placer {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// The first `copies` distinct nodes of a unit, the primary first; all nodes if there are fewer.
    fn replicas(&self, unit: u64, copies: usize) -> Vec<NodeId>;
}

/// Korum's own way, behind the same trait: one index per unit of weight, no zones, no holes.
#[derive(Clone, Debug)]
pub struct ChooseK {
    owners: Vec<NodeId>,
    nodes: usize,
}

impl ChooseK {
    /// Nodes take their indices in the order given.
    #[must_use]
    pub fn new(sites: &[Site]) -> Self {
        Self { owners: buckets(sites), nodes: sites.len() }
    }
}

impl Placer for ChooseK {
    fn name(&self) -> &'static str {
        "choose-k"
    }

    fn replicas(&self, unit: u64, copies: usize) -> Vec<NodeId> {
        let ranking = Ranking::new(unit_seed(0, unit), self.owners.len() as u32);
        distinct(ranking.map(|index| self.owners[index as usize]), copies.min(self.nodes))
    }
}

/// One bucket per unit of weight.
fn buckets(sites: &[Site]) -> Vec<NodeId> {
    sites.iter().flat_map(|site| std::iter::repeat_n(site.id, usize::from(site.weight))).collect()
}

/// The first `count` different nodes.
fn distinct(nodes: impl Iterator<Item = NodeId>, count: usize) -> Vec<NodeId> {
    let mut chosen = Vec::with_capacity(count);
    for node in nodes {
        if chosen.len() == count {
            break;
        }
        if !chosen.contains(&node) {
            chosen.push(node);
        }
    }
    chosen
}

/// Copies for a method that places only one: it is asked again with other hashes of the unit.
/// Once that has been tried often enough, the rest are taken as they come.
fn by_rehashing(unit: u64, copies: usize, owners: &[NodeId], one: impl Fn(u64) -> NodeId) -> Vec<NodeId> {
    let attempts = 64 * copies as u64;
    distinct((0..attempts).map(|attempt| one(sm(unit, attempt))).chain(owners.iter().copied()), copies)
}
