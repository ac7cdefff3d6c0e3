//! What would move if nodes came or went?
//!
//! For: `KORUM PLAN`: applying changes to a copy of the map and comparing the replica sets.
//! Not here: the plan that is carried out (`rebalance`); this one is only looked at.

use std::collections::BTreeMap;
use std::fmt::Write;

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::map::{Addresses, MapChange, Refusal, Registration, View};

use super::status::{client_address, short_id, table};

/// Most nodes that one question adds.
pub const ADDED_MAX: usize = 64;

/// What is asked about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Question {
    /// So many nodes like this join.
    Add {
        /// How many, 1..=[`ADDED_MAX`].
        count: usize,
        /// Their zone.
        zone: String,
        /// Their weight.
        weight: u8,
    },
    /// These nodes leave.
    Remove(Vec<NodeId>),
}

/// What would happen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Copies of partitions that have to be made.
    pub copies_moved: usize,
    /// Copies of partitions in all, afterwards.
    pub copies_total: usize,
    /// Fewest copies that any placement as even as this one would have to make.
    pub copies_least: usize,
    /// Partitions that get another primary.
    pub primaries_changed: usize,
    /// By node: copies now, copies afterwards, copies it has to receive.
    pub nodes: BTreeMap<NodeId, Share>,
    /// The nodes that do not exist yet.
    pub added: Vec<NodeId>,
}

/// One node's part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Copies it should hold now.
    pub before: usize,
    /// Copies it should hold afterwards.
    pub after: usize,
    /// Copies it has to receive.
    pub received: usize,
}

/// Answers a question about a view.
///
/// # Errors
/// When the map refuses the change.
pub fn forecast(view: &View, question: &Question) -> Result<Summary, Refusal> {
    let mut next = view.clone();
    let mut summary = Summary::default();
    match question {
        Question::Add { count, zone, weight } => {
            for node in unused(view).take((*count).min(ADDED_MAX)) {
                let incarnation = Incarnation(1);
                // No address of its own: one that is in use would take a living node's place.
                let addresses =
                    Addresses { host: format!("new-{}", summary.added.len()), ..Addresses::default() };
                let registration =
                    Registration { addresses, zone: zone.clone(), weight: *weight, incarnation };
                next = next.apply(&MapChange::Join { node, registration })?;
                next = next.apply(&MapChange::Admit { node, incarnation })?;
                summary.added.push(node);
            }
        }
        Question::Remove(nodes) => {
            for &node in nodes {
                next = next.apply(&MapChange::Drain { node })?;
            }
        }
    }
    compare(view, &next, &mut summary);
    Ok(summary)
}

fn unused(view: &View) -> impl Iterator<Item = NodeId> {
    (0..u64::MAX).rev().map(NodeId).filter(|id| !view.map.nodes.contains_key(id))
}

fn compare(now: &View, then: &View, summary: &mut Summary) {
    for (before, after) in now.table.rows.iter().zip(&then.table.rows) {
        for &node in &before.replica_set {
            summary.nodes.entry(node).or_default().before += 1;
        }
        for &node in &after.replica_set {
            let share = summary.nodes.entry(node).or_default();
            share.after += 1;
            share.received += usize::from(!before.replica_set.contains(&node));
        }
        summary.primaries_changed += usize::from(before.replica_set.first() != after.replica_set.first());
    }
    summary.copies_total = summary.nodes.values().map(|share| share.after).sum();
    summary.copies_moved = summary.nodes.values().map(|share| share.received).sum();
    // Whoever has more copies afterwards received at least the difference.
    summary.copies_least = summary.nodes.values().map(|share| share.after.saturating_sub(share.before)).sum();
}

/// The text for people.
#[must_use]
pub fn text(view: &View, summary: &Summary) -> String {
    let mut text = String::new();
    let percent = |part: usize| 100.0 * part as f64 / summary.copies_total.max(1) as f64;
    let _ = writeln!(
        text,
        "moves      {} of {} copies ({:.1} %); at least {} have to move for these shares ({:.1} %)",
        summary.copies_moved,
        summary.copies_total,
        percent(summary.copies_moved),
        summary.copies_least,
        percent(summary.copies_least)
    );
    let _ = writeln!(
        text,
        "primaries  {} of {} partitions change hands",
        summary.primaries_changed, view.map.partitions
    );
    let rows: Vec<[String; 5]> = summary
        .nodes
        .iter()
        .map(|(&id, share)| {
            let record = view.map.nodes.get(&id);
            [
                if record.is_some() { short_id(id) } else { "(new)".to_owned() },
                record.map_or_else(|| "-".to_owned(), client_address),
                share.before.to_string(),
                share.after.to_string(),
                share.received.to_string(),
            ]
        })
        .collect();
    let head = ["node", "address", "now", "then", "receives"].map(str::to_owned);
    table(&mut text, &head, &rows);
    text.push_str("(nothing was changed)\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::test_maps::{after, caught_up, join, single, split};

    fn add(count: usize) -> Question {
        Question::Add { count, zone: String::new(), weight: 1 }
    }

    #[test]
    fn a_joining_node_takes_its_share_and_little_else_moves() {
        let three = caught_up(&after(&split(4096), &join(3)));
        let summary = forecast(&three, &add(1)).unwrap();
        assert_eq!(summary.copies_total, 8192);
        let new = summary.nodes[&summary.added[0]];
        assert!((1900..2200).contains(&new.after), "a quarter of all copies: {new:?}");
        assert_eq!(new.before, 0);
        assert!(summary.copies_moved >= summary.copies_least);
        assert!(summary.copies_moved < 2400, "{}", summary.copies_moved);
        let text = text(&three, &summary);
        assert!(text.contains("of 8192 copies") && text.contains("(new)"), "{text}");
    }

    #[test]
    fn a_forecast_is_what_then_happens() {
        let three = caught_up(&after(&split(256), &join(3)));
        let summary = forecast(&three, &Question::Remove(vec![NodeId(2)])).unwrap();
        let really = after(&three, &[MapChange::Drain { node: NodeId(2) }]);
        for node in [1, 2, 3].map(NodeId) {
            let held = really.table.rows.iter().filter(|row| row.replica_set.contains(&node)).count();
            assert_eq!(summary.nodes.get(&node).map_or(0, |share| share.after), held, "{node}");
        }
    }

    #[test]
    fn the_last_node_cannot_leave() {
        assert!(forecast(&single(64), &Question::Remove(vec![NodeId(1)])).is_err());
    }

    #[test]
    fn several_nodes_may_be_asked_for() {
        assert_eq!(forecast(&single(64), &add(3)).unwrap().added.len(), 3);
    }
}
