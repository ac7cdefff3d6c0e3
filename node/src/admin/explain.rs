//! Why is a key where it is?
//!
//! For: `KORUM EXPLAIN key`: slot, partition, ranking with a reason for each candidate, who comes next.
//! Not here: the ranking itself (`protocol::placement`).

use std::fmt::Write;

use korum_protocol::id::NodeId;
use korum_protocol::map::{Liveness, Membership, NodeRecord, Row, View};
use korum_protocol::placement::slot::slot_of;

use super::status::{client_address, short_id, table};

/// The text of the answer.
#[must_use]
pub fn explain(view: &View, key: &[u8], me: NodeId) -> String {
    let map = &view.map;
    let slot = slot_of(key);
    let partition = view.partition_of_slot(slot);
    let slots_each = (16384 / map.partitions) as u16;
    let row = view.row(partition);
    let first = partition * slots_each;
    let mut text = String::new();
    let _ = writeln!(text, "key        {}", key.escape_ascii());
    let _ = writeln!(
        text,
        "slot       {slot}, in partition {partition} of {} (slots {first}-{})",
        map.partitions,
        first + (slots_each - 1)
    );
    let name = |id: NodeId| {
        let address = map.nodes.get(&id).map(client_address).unwrap_or_default();
        format!("{} at {address}{}", short_id(id), if id == me { " (this node)" } else { "" })
    };
    match row.primary {
        Some(primary) => {
            let _ = writeln!(text, "served by  {} since epoch {}, now {}", name(primary), row.era, map.epoch);
        }
        None => text.push_str(
            "served by  nobody: all its copies are gone, and the policy is to wait for an operator\n",
        ),
    }
    let candidates = view.candidates(partition);
    let rows: Vec<[String; 5]> = candidates
        .iter()
        .enumerate()
        .map(|(rank, &id)| {
            let record = map.nodes.get(&id);
            let zone = record.map_or("", |record| &record.zone);
            [
                (rank + 1).to_string(),
                short_id(id),
                record.map(client_address).unwrap_or_default(),
                if zone.is_empty() { "-" } else { zone }.to_owned(),
                record.map(|record| reason(view, row, &candidates, rank, record)).unwrap_or_default(),
            ]
        })
        .collect();
    let head = ["rank", "node", "address", "zone", "why"].map(str::to_owned);
    table(&mut text, &head, &rows);
    next(&mut text, view, row, &candidates, name);
    text
}

/// Why the candidate `rank` is, or is not, among those that hold the partition.
fn reason(view: &View, row: &Row, candidates: &[NodeId], rank: usize, record: &NodeRecord) -> String {
    let id = candidates[rank];
    let (wanted, holds) = (row.replica_set.contains(&id), row.holders.contains(&id));
    let role = if row.primary == Some(id) { "primary" } else { "replica" };
    if wanted {
        return match (holds, record.is_up()) {
            (true, _) => format!("{role}: among the first {} that may hold it", view.map.replication),
            (false, true) => "should hold it; a copy is on its way".to_owned(),
            (false, false) => "should hold it; is down, and counted on to come back".to_owned(),
        };
    }
    let refused = match (record.membership, record.liveness) {
        (Membership::Leaving, _) => "is leaving the cluster",
        (Membership::Joining, _) => "has not joined yet",
        (Membership::Member, Liveness::Down { excluded: true }) => "has been down for too long",
        (Membership::Member, _) => not_needed(view, row, candidates, rank, record),
    };
    if holds { format!("{role} until the copies are complete; {refused}") } else { refused.to_owned() }
}

fn not_needed(
    view: &View,
    row: &Row,
    candidates: &[NodeId],
    rank: usize,
    record: &NodeRecord,
) -> &'static str {
    let later_is_wanted = candidates[rank + 1..].iter().any(|later| row.replica_set.contains(later));
    let zone_is_taken = candidates[..rank].iter().any(|earlier| {
        let zone = view.map.nodes.get(earlier).map(|earlier| &earlier.zone);
        row.replica_set.contains(earlier) && zone == Some(&record.zone) && !record.zone.is_empty()
    });
    match (later_is_wanted, zone_is_taken) {
        (false, _) => "not needed: better candidates are enough",
        (true, true) => "passed over: another copy is in its zone",
        (true, false) => "passed over: it has its full share already",
    }
}

/// Who takes over, and who gets a copy, if the primary goes.
fn next(text: &mut String, view: &View, row: &Row, candidates: &[NodeId], name: impl Fn(NodeId) -> String) {
    let heir = row.holders.get(1).copied();
    let spare = candidates.iter().copied().find(|id| {
        !row.replica_set.contains(id) && view.map.nodes.get(id).is_some_and(NodeRecord::is_eligible)
    });
    let _ = match heir {
        Some(heir) => writeln!(text, "if the primary goes, {} serves it at once", name(heir)),
        None => writeln!(text, "if the primary goes, its keys are lost: there is no other copy"),
    };
    if let Some(spare) = spare {
        let _ = writeln!(text, "if a holder stays away, {} is the next candidate for a copy", name(spare));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::test_maps::{after, caught_up, grown, join, single, split};

    #[test]
    fn one_node_is_said_to_be_the_only_copy() {
        let text = explain(&single(4096), b"user:1", NodeId(1));
        let slot = slot_of(b"user:1");
        assert!(text.contains(&format!("slot       {slot}, in partition {} of 4096", slot / 4)), "{text}");
        assert!(
            text.contains("served by  000000000000 at 127.0.0.1:7001 (this node) since epoch 1"),
            "{text}"
        );
        assert!(text.contains("there is no other copy"), "{text}");
    }

    #[test]
    fn every_candidate_has_a_reason() {
        let three = caught_up(&after(&split(64), &join(3)));
        for key in 0..50u32 {
            let text = explain(&three, &key.to_be_bytes(), NodeId(2));
            assert_eq!(text.matches("primary: among the first 2").count(), 1, "{text}");
            assert_eq!(text.matches("replica: among the first 2").count(), 1, "{text}");
            assert_eq!(text.matches("not needed").count(), 1, "{text}");
            assert!(text.contains("is the next candidate for a copy"), "{text}");
        }
    }

    #[test]
    fn joining_and_down_nodes_are_explained() {
        let joining = after(&single(64), &join(2));
        assert!(explain(&joining, b"k", NodeId(1)).contains("a copy is on its way"));
        let down = grown(64);
        let texts: String = (0..50u32).map(|key| explain(&down, &key.to_be_bytes(), NodeId(1))).collect();
        assert!(texts.contains("is down, and counted on to come back"), "{texts}");
    }

    #[test]
    fn binary_keys_stay_on_their_line() {
        let text = explain(&single(64), b"a\nb\xff", NodeId(1));
        assert!(text.starts_with("key        a\\nb\\xff\n"), "{text}");
    }
}
