//! Every map that was agreed, as the nodes made it.
//!
//! For: I4 (equal epochs mean equal maps, and a node's epoch never goes backwards), and showing each step from map to
//! map, once, to those who judge steps.
//! Not here: judging a step (`i5_tables`, `i6_moves`, `i7_copies_stay`).

use std::collections::BTreeMap;
use std::sync::Arc;

use korum_protocol::id::Epoch;
use korum_protocol::map::{MapChange, View};
use korum_raft::simulated::{Applied, take_applied};

use crate::world::World;

/// What was seen so far.
#[derive(Default)]
pub struct Agreed {
    /// By cluster and epoch.
    known: BTreeMap<(u64, Epoch), Arc<View>>,
    /// By node and process: the epoch in force.
    in_force: BTreeMap<(usize, u32), Epoch>,
}

impl Agreed {
    /// The steps that some node made for the first time since the last call, in the order of their making.
    ///
    /// # Errors
    /// When two nodes made different maps of one epoch.
    pub fn new_steps(&mut self) -> Result<Vec<Applied>, String> {
        let mut steps = Vec::new();
        for applied in take_applied() {
            let map = &applied.after.map;
            let (epoch, change) = (map.epoch, name(&applied.change));
            match self.known.get(&(map.cluster_id.0, epoch)) {
                Some(known) if known.map != *map => {
                    return Err(format!("I4: two nodes made different maps {epoch}, by {change}"));
                }
                Some(known) if known.table != applied.after.table => {
                    return Err(format!("I5: two nodes made different tables of map {epoch}"));
                }
                Some(_) => {}
                None => {
                    self.known.insert((map.cluster_id.0, epoch), Arc::clone(&applied.after));
                    steps.push(applied);
                }
            }
        }
        Ok(steps)
    }

    /// Looks at the maps in force.
    ///
    /// # Errors
    /// When one is older than before, or was never agreed.
    pub fn check(&mut self, world: &World) -> Result<(), String> {
        for (number, member, node) in world.nodes() {
            let (view, name) = (node.view(), &member.host.name);
            let epoch = view.map.epoch;
            let before = self.in_force.insert((number, member.runs), epoch);
            if before == Some(epoch) {
                continue;
            }
            if before.is_some_and(|before| before > epoch) {
                return Err(format!("I4: {name} went back to epoch {epoch}"));
            }
            let known = self.known.get(&(view.map.cluster_id.0, epoch));
            if known.is_none_or(|known| known.map != view.map || known.table != view.table) {
                return Err(format!("I4: {name} uses a map {epoch} that was not agreed"));
            }
        }
        Ok(())
    }

    /// The newest map of a cluster.
    pub fn newest(&self, cluster: u64) -> Option<&Arc<View>> {
        self.known.range((cluster, Epoch(0))..=(cluster, Epoch(u64::MAX))).next_back().map(|(_, view)| view)
    }
}

/// A change's name; all of it may be very long.
pub fn name(change: &MapChange) -> String {
    let text = format!("{change:?}");
    text.split(' ').next().unwrap_or_default().to_owned()
}
