//! Changes of who holds what, proposed by a partition's primary.
//!
//! The era in a move proves that the proposer still was the primary when the change was applied:
//! nothing but a change of primary ends an era.
//!
//! A cutover may also name a node that holds the partition already: then it only asks for what a living
//! primary must ask for itself, to put the holders in order or to drop itself (`settle`, rule 5).

use super::{Edit, outdated};
use crate::id::Epoch;
use crate::map::{Move, Refusal, View};

pub(super) fn cutover(view: &View, membership_epoch: Epoch, moves: &[Move]) -> Result<Edit, Refusal> {
    let current = view.map.membership_epoch;
    if membership_epoch != current {
        return Err(outdated(format!(
            "the copies were made in membership epoch {membership_epoch}, now it is {current}"
        )));
    }
    let mut edit = Edit::new(view.map.clone(), false);
    edit.hands_over = true;
    for step in moves.iter().filter(|step| holds(view, step)) {
        let row = view.row(step.partition);
        let holders = edit.copies.get(&step.partition).unwrap_or(&row.holders);
        if !row.replica_set.contains(&step.node) {
            continue;
        }
        let mut holders = holders.clone();
        if !holders.contains(&step.node) {
            holders.push(step.node);
        } else if edit.copies.contains_key(&step.partition) || view.is_settled(step.partition) {
            continue;
        }
        edit.copies.insert(step.partition, holders);
    }
    applied_any(edit)
}

/// A dropped holder may have a cutover of its own still under way, proposed a second time because its
/// outcome was unknown; so dropping counts as a change of membership, which outdates that one.
pub(super) fn drop_holders(view: &View, drops: &[Move]) -> Result<Edit, Refusal> {
    let mut edit = Edit::new(view.map.clone(), true);
    for step in drops.iter().filter(|step| holds(view, step)) {
        let row = view.row(step.partition);
        let holders = edit.copies.get(&step.partition).unwrap_or(&row.holders);
        if holders.contains(&step.node) && holders.len() > 1 && row.primary != Some(step.node) {
            let holders = edit.copies.entry(step.partition).or_insert_with(|| row.holders.clone());
            holders.retain(|holder| *holder != step.node);
        }
    }
    applied_any(edit)
}

/// Is what a move assumes still so?
fn holds(view: &View, step: &Move) -> bool {
    let node = view.map.nodes.get(&step.node);
    view.table.rows.get(usize::from(step.partition)).is_some_and(|row| row.era == step.era)
        && node.is_some_and(|node| node.is_up() && node.incarnation == step.incarnation)
}

fn applied_any(edit: Edit) -> Result<Edit, Refusal> {
    if edit.copies.is_empty() {
        return Err(outdated("no partition is as the change assumes"));
    }
    Ok(edit)
}
