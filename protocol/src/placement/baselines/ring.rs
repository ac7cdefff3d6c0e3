//! Consistent hashing on a ring with virtual nodes.
//!
//! A unit belongs to the first virtual node clockwise; further copies go to the next nodes
//! that are not taken yet, those in new zones first. Optionally with bounded loads.

use super::{Placer, Site};
use crate::id::NodeId;
use crate::placement::hash::sm;

/// Virtual nodes per unit of weight: what ketama-like clients commonly use.
const VIRTUAL_NODES: u64 = 150;

/// A ring of virtual nodes.
#[derive(Clone, Debug)]
pub struct Ring {
    sites: Vec<Site>,
    /// Places on the ring and whose they are, ascending.
    points: Vec<(u64, usize)>,
    zones: usize,
}

impl Ring {
    /// Puts each node's virtual nodes on the ring.
    #[must_use]
    pub fn new(sites: &[Site]) -> Self {
        let mut points = Vec::new();
        for (number, site) in sites.iter().enumerate() {
            let count = VIRTUAL_NODES * u64::from(site.weight);
            points.extend((0..count).map(|point| (sm(site.id.0, point), number)));
        }
        points.sort_unstable();
        let zones: std::collections::BTreeSet<&str> = sites.iter().map(|site| site.zone.as_str()).collect();
        Self { zones: zones.len(), sites: sites.to_vec(), points }
    }

    /// Virtual nodes clockwise from a unit, once around.
    fn clockwise(&self, unit: u64) -> impl Iterator<Item = usize> {
        let place = sm(unit, u64::MAX);
        let start = self.points.partition_point(|&(point, _)| point < place);
        self.points[start..].iter().chain(&self.points[..start]).map(|&(_, number)| number)
    }

    /// Primaries of units `0..units` with bounded loads: a node that has more than its share by
    /// `permille` is passed over.
    #[must_use]
    pub fn bounded(&self, units: u64, permille: u64) -> Vec<NodeId> {
        let weights: u64 = self.sites.iter().map(|site| u64::from(site.weight)).sum();
        let cap = |number: usize| {
            let share = (1000 + permille) * units * u64::from(self.sites[number].weight);
            share.div_ceil(1000 * weights)
        };
        let mut loads = vec![0; self.sites.len()];
        let mut primaries = Vec::new();
        for unit in 0..units {
            // The caps add up to at least all units, so somebody always has room.
            if let Some(number) = self.clockwise(unit).find(|&number| loads[number] < cap(number)) {
                loads[number] += 1;
                primaries.push(self.sites[number].id);
            }
        }
        primaries
    }
}

impl Placer for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn replicas(&self, unit: u64, copies: usize) -> Vec<NodeId> {
        let copies = copies.min(self.sites.len());
        let mut chosen: Vec<usize> = Vec::with_capacity(copies);
        // Once around for new zones, once more for new nodes.
        for new_zones in [true, false] {
            for number in self.clockwise(unit) {
                let in_taken_zone =
                    chosen.iter().any(|&other| self.sites[other].zone == self.sites[number].zone);
                if chosen.len() == copies || (new_zones && chosen.len() == self.zones) {
                    break;
                }
                if chosen.contains(&number) || (new_zones && in_taken_zone) {
                    continue;
                }
                chosen.push(number);
            }
        }
        chosen.into_iter().map(|number| self.sites[number].id).collect()
    }
}
