//! I4: a node's epoch never goes backwards, and equal epochs mean equal maps. I5: equal maps mean equal tables.

use std::collections::BTreeMap;

use korum_protocol::id::Epoch;
use korum_protocol::map::View;
use korum_protocol::peer::wire;

use crate::world::World;

/// What was seen so far.
#[derive(Default)]
pub struct Maps {
    /// By cluster and epoch: the encoded map.
    known: BTreeMap<(u64, Epoch), Vec<u8>>,
    /// By node and process: the epoch in force.
    in_force: BTreeMap<(usize, u32), Epoch>,
}

impl Maps {
    pub fn check(&mut self, world: &World) -> Result<(), String> {
        for (number, member, node) in world.nodes() {
            let view = node.view();
            let epoch = view.map.epoch;
            let before = self.in_force.insert((number, member.runs), epoch);
            if before == Some(epoch) {
                continue;
            }
            let name = &member.host.name;
            if before.is_some_and(|before| before > epoch) {
                return Err(format!("I4: {name} went back to epoch {epoch}"));
            }
            let bytes = wire::encode(&view.map);
            match self.known.get(&(view.map.cluster_id.0, epoch)) {
                Some(known) if known[..] != bytes[..] => {
                    return Err(format!("I4: {name} has another map {epoch}"));
                }
                Some(_) => {}
                None => {
                    if View::new(view.map.clone()).table != view.table {
                        return Err(format!("I5: {name} has another table than its map {epoch} gives"));
                    }
                    korum_protocol::map::check::check(&view)
                        .map_err(|violations| format!("map {epoch} of {name}: {violations:?}"))?;
                    self.known.insert((view.map.cluster_id.0, epoch), bytes.to_vec());
                }
            }
        }
        Ok(())
    }
}
