//! I2: an acknowledged write is on every up holder of its partition.
//!
//! Whatever was answered, a write or a read of one, was answered at a position, which stands for everything before it.
//! So that position must lie on the path of every holder's copy, at the moment of the answer and from then on.

use std::collections::BTreeMap;

use korum_node::env::witness::Answered;
use korum_protocol::id::{Epoch, Position};
use korum_protocol::map::{PartitionId, View};

use crate::world::World;

/// What was answered so far.
#[derive(Default)]
pub struct Kept {
    /// The last effect of each era that an answer stood for.
    answered: BTreeMap<(PartitionId, Epoch), u64>,
}

impl Kept {
    /// `newest`: the newest map that was agreed.
    pub fn check(
        &mut self,
        world: &World,
        newest: &View,
        answers: &[Answered],
        looks_at_all: bool,
    ) -> Result<(), String> {
        for Answered { partition, position, .. } in answers {
            let last = self.answered.entry((*partition, position.era)).or_default();
            *last = position.sequence.max(*last);
        }
        self.answered.retain(|(partition, era), _| {
            newest.map.emptied.get(partition).is_none_or(|emptied| emptied <= era)
        });
        for (_, member, node) in world.nodes() {
            let run = node.local_peer().incarnation();
            let is_up =
                |record: &korum_protocol::map::NodeRecord| record.is_up() && record.incarnation == run;
            if !newest.map.nodes.get(&node.id()).is_some_and(is_up) {
                continue;
            }
            for (&(partition, era), &sequence) in &self.answered {
                // What was answered a moment ago, and from time to time the rest.
                let is_due = looks_at_all || answers.iter().any(|answer| answer.partition == partition);
                if !is_due || !newest.row(partition).holders.contains(&node.id()) {
                    continue;
                }
                let answered = Position { era, sequence };
                if !has(node.store().lock(partition).history.path(), answered) {
                    return Err(format!(
                        "I2: {} holds partition {partition} without {answered:?}, which was answered",
                        member.host.name
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Does the position lie on the path, as far as the path tells?
fn has(path: &[Position], position: Position) -> bool {
    // Without a path the copy is being made equal in place, and keeps every acknowledged write meanwhile. A path
    // forgets its first eras, and those without effects.
    let Some(first) = path.first() else { return true };
    if position.sequence == 0 || first.era > position.era {
        return true;
    }
    path.iter().any(|end| end.era == position.era && end.sequence >= position.sequence)
}
