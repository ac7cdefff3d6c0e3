//! Whether nodes may be stopped.
//!
//! For: `KORUM SAFE-TO-STOP`: yes or no, and why. Pure: a map, who votes, and who is to be stopped.
//! Not here: stopping (`server`), moving data away first (`KORUM DRAIN`).

use std::collections::BTreeSet;
use std::fmt::Write;

use korum_protocol::id::NodeId;
use korum_protocol::map::{NodeRecord, View};

use super::status::short_id;

/// Why nodes must not be stopped now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Risk {
    /// Nobody would be left.
    NobodyLeft,
    /// Partitions whose only copies are on these nodes: their keys would be lost.
    OnlyCopies {
        /// How many.
        partitions: usize,
    },
    /// Too few voters would be left to agree on who takes over.
    NoQuorum {
        /// Voters that are up and stay.
        left: usize,
        /// All voters.
        voters: usize,
    },
    /// This node holds no lease, so its map may be old.
    CannotTell,
}

/// What speaks against stopping all of `nodes` at the same time; nothing: they may be stopped.
///
/// A node that is down already counts as stopped. `voters` are Raft's; a lease (`is_leased`) shows that the map is
/// the one in force.
#[must_use]
pub fn risks(view: &View, voters: &BTreeSet<NodeId>, nodes: &[NodeId], is_leased: bool) -> Vec<Risk> {
    let is_up = |id: &NodeId| view.map.nodes.get(id).is_some_and(NodeRecord::is_up);
    let stays = |id: &NodeId| is_up(id) && !nodes.contains(id);
    let mut risks = Vec::new();
    if !is_leased {
        risks.push(Risk::CannotTell);
    }
    if !view.map.nodes.keys().any(stays) {
        risks.push(Risk::NobodyLeft);
        return risks;
    }
    let dies = |holders: &[NodeId]| holders.iter().any(is_up) && !holders.iter().any(stays);
    let partitions = view.table.rows.iter().filter(|row| dies(&row.holders)).count();
    if partitions > 0 {
        risks.push(Risk::OnlyCopies { partitions });
    }
    let left = voters.iter().filter(|id| stays(id)).count();
    let changes_agreement = nodes.iter().any(|id| voters.contains(id) && is_up(id));
    if changes_agreement && left * 2 <= voters.len() {
        risks.push(Risk::NoQuorum { left, voters: voters.len() });
    }
    risks
}

/// The answer: its first word is `yes` or `no`; then a line for each reason.
#[must_use]
pub fn text(nodes: &[NodeId], risks: &[Risk]) -> String {
    let names: Vec<String> = nodes.iter().map(|&id| short_id(id)).collect();
    let names = names.join(", ");
    if risks.is_empty() {
        return format!("yes: {names} may be stopped; nothing is lost and others serve at once\n");
    }
    let mut text = format!("no: {names} must keep running for now\n");
    for risk in risks {
        let _ = match risk {
            Risk::NobodyLeft => writeln!(text, "  no other node is up: all keys would be gone"),
            Risk::OnlyCopies { partitions } => writeln!(
                text,
                "  {partitions} partitions have no other copy; wait until KORUM STATUS shows none moving or waiting, or raise KORUM REPLICATION"
            ),
            Risk::NoQuorum { left, voters } => writeln!(
                text,
                "  {left} of {voters} voters would be left, and more than half are needed; wait for nodes that are down, or KORUM DRAIN it"
            ),
            Risk::CannotTell => {
                writeln!(text, "  the node that was asked holds no lease, so it cannot tell; ask another one")
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::test_maps::{after, caught_up, grown, join, single, split};

    fn ids(numbers: &[u64]) -> Vec<NodeId> {
        numbers.iter().map(|&number| NodeId(number)).collect()
    }

    fn ask(view: &View, voters: &[u64], nodes: &[u64]) -> Vec<Risk> {
        risks(view, &ids(voters).into_iter().collect(), &ids(nodes), true)
    }

    #[test]
    fn any_one_of_three_may_be_stopped_and_no_two() {
        let two = caught_up(&after(&single(64), &join(2)));
        let three = caught_up(&after(&two, &join(3)));
        for node in 1..=3 {
            assert_eq!(ask(&three, &[1, 2, 3], &[node]), []);
        }
        let both = ask(&three, &[1, 2, 3], &[1, 3]);
        assert!(
            matches!(both[..], [Risk::OnlyCopies { .. }, Risk::NoQuorum { left: 1, voters: 3 }]),
            "{both:?}"
        );
        assert_eq!(ask(&three, &[1, 2, 3], &[1, 2, 3]), [Risk::NobodyLeft]);
    }

    #[test]
    fn the_only_voter_of_two_must_stay_and_the_other_may_go() {
        let view = split(64);
        assert_eq!(ask(&view, &[1], &[1]), [Risk::NoQuorum { left: 0, voters: 1 }]);
        assert_eq!(ask(&view, &[1], &[2]), []);
        assert_eq!(ask(&single(64), &[1], &[1]), [Risk::NobodyLeft]);
    }

    #[test]
    fn while_a_copy_is_missing_the_last_one_is_kept() {
        let joined = after(&single(64), &join(2));
        assert_eq!(ask(&joined, &[1, 2], &[2]), [Risk::NoQuorum { left: 1, voters: 2 }]);
        assert!(ask(&joined, &[2], &[1]).contains(&Risk::OnlyCopies { partitions: 64 }));
    }

    #[test]
    fn a_node_that_is_down_changes_nothing_and_its_vote_is_missed() {
        let view = grown(64);
        let down = view.map.nodes.iter().find(|(_, record)| !record.is_up()).map(|(id, _)| id.0).unwrap();
        assert_eq!(ask(&view, &[1, 2, 3], &[down]), []);
        let up: Vec<u64> = (1..=3).filter(|&id| id != down).collect();
        let risks = ask(&view, &[1, 2, 3], &up[..1]);
        assert!(risks.contains(&Risk::NoQuorum { left: 1, voters: 3 }), "{risks:?}");
    }

    #[test]
    fn the_answer_begins_with_yes_or_no() {
        assert!(text(&ids(&[1]), &[]).starts_with("yes: 0000"));
        let no = text(&ids(&[1, 2]), &[Risk::OnlyCopies { partitions: 7 }, Risk::CannotTell]);
        assert!(no.starts_with("no: ") && no.lines().count() == 3, "{no}");
    }
}
