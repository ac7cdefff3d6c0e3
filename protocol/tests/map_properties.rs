//! Random histories of a cluster: what must hold after every change of the map.

mod map_support;

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::map::check::check;
use korum_protocol::map::{Liveness, LossPolicy, MapChange, Membership, PartitionId, View};
use map_support::{apply, create, cutover, join, mark_down, registration, step};
use proptest::prelude::*;

/// Raw numbers that become a change in the light of the present view.
type Raw = (u8, u8, u16);

/// Most changes that come out are possible; some are late, repeated or forbidden, as in life.
fn change(view: &View, (kind, pick, number): Raw) -> Option<MapChange> {
    let map = &view.map;
    let ids: Vec<NodeId> = map.nodes.keys().copied().collect();
    let node = ids[usize::from(pick) % ids.len()];
    let record = &map.nodes[&node];
    let incarnation = record.incarnation;
    Some(match kind % 20 {
        0 | 1 => {
            let id = u64::from(number % 12) + 1;
            let mut new = registration(id, 1);
            new.weight = pick % 3 + 1;
            new.zone = ["", "a", "b"][usize::from(pick % 3)].to_owned();
            MapChange::Join { node: NodeId(id + 100), registration: new }
        }
        2..=4 => MapChange::Admit { node, incarnation },
        5 | 6 => {
            let mut again = registration(node.0 % 100, incarnation.0 + 1);
            again.zone.clone_from(&record.zone);
            MapChange::Register { node, registration: again }
        }
        7 | 8 => MapChange::MarkDown { node, incarnation },
        9 => MapChange::Exclude { node, incarnation },
        10 => MapChange::Drain { node },
        11 => MapChange::Forget { node },
        12 => MapChange::SetReplication { replication: (number % 4) as u8 + 1 },
        13 => MapChange::SetWeight { node, weight: (number % 4) as u8 + 1 },
        14 => MapChange::Compact,
        15 => {
            let partition = number % map.partitions as u16;
            let holder = *view.row(partition).holders.last()?;
            MapChange::DropHolders { drops: vec![step(view, partition, holder)] }
        }
        16 => {
            let (name, value) = [
                ("balance-permille", Some("100")),
                ("balance-permille", None),
                ("loss-policy", Some("refuse")),
                ("loss-policy", Some("empty")),
                ("motto", Some("more")),
            ][usize::from(number % 5)];
            MapChange::Set { name: name.to_owned(), value: value.map(str::to_owned) }
        }
        17 if number % 2 == 0 => MapChange::SwapDatabases {
            first: pick,
            second: (number % 256) as u8,
            swaps: map.databases().swaps(),
        },
        17 => return cutover(view, |partition| partition % 3 == number % 3),
        _ => return cutover(view, |_| true),
    })
}

/// Everything that may be said of a change and the views before and after it.
fn check_step(before: &View, change: &MapChange, after: &View) {
    assert_eq!(check(after), Ok(()), "after {change:?}");
    assert_eq!(after.map.epoch, before.map.epoch.next());
    assert!(before.apply(change).is_ok_and(|again| again.map == after.map), "not deterministic");
    assert!(after.apply(change).is_err(), "{change:?} applied twice");
    let mut lost = 0;
    for partition in 0..before.map.partitions as PartitionId {
        let (old, new) = (before.row(partition), after.row(partition));
        let alive = |id: &&NodeId| {
            let (was, is) = (&before.map.nodes[id], after.map.nodes.get(id));
            is.is_some_and(|is| is.is_up() && is.incarnation == was.incarnation)
        };
        let dropped = |id: &NodeId| match change {
            MapChange::DropHolders { drops } => {
                drops.iter().any(|drop| drop.partition == partition && drop.node == *id)
            }
            _ => false,
        };
        // A living holder stays until the replica set is complete, or its primary dropped it.
        let complete =
            new.replica_set.iter().all(|id| new.holders.contains(id)) && !new.replica_set.is_empty();
        for holder in old.holders.iter().filter(alive) {
            assert!(new.holders.contains(holder) || complete || dropped(holder), "{change:?} lost a copy");
        }
        // Nobody becomes a holder but by a cutover, or to start a lost partition empty.
        let survivors: Vec<_> = old.holders.iter().filter(alive).collect();
        let emptied = after.map.emptied.get(&partition) == Some(&after.map.epoch);
        for holder in new.holders.iter().filter(|id| !survivors.contains(id)) {
            let cut_over = matches!(change, MapChange::Cutover { moves, .. }
                if moves.iter().any(|step| step.partition == partition && step.node == *holder));
            assert!(cut_over || emptied, "{change:?} made {holder:?} a holder of {partition}");
        }
        assert_eq!(emptied, survivors.is_empty() && !new.holders.is_empty(), "{change:?}");
        lost += u64::from(survivors.is_empty() && !old.holders.is_empty());
        // A living primary gives way only by its own cutover; a dead one to the next in order.
        if let Some(primary) = old.primary.filter(|id| survivors.contains(&id)) {
            assert!(
                new.primary == Some(primary) || matches!(change, MapChange::Cutover { .. }),
                "{change:?} replaced a living primary"
            );
        } else if matches!(change, MapChange::MarkDown { .. }) && !survivors.is_empty() {
            assert_eq!(new.primary, survivors.first().map(|id| **id), "the heir is not the next holder");
        }
        // A new era begins with a new primary, and only then.
        let new_era = new.primary != old.primary || emptied;
        assert_eq!(new.era, if new_era { after.map.epoch } else { old.era }, "{change:?}");
        let someone = after.map.indices.iter().flatten().any(|id| after.map.nodes[id].is_up());
        assert!(new.primary.is_some() || !someone || after.map.loss_policy == LossPolicy::Refuse);
    }
    assert_eq!(after.map.lost_total - before.map.lost_total, lost);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn every_change_keeps_what_must_hold(
        seed: u64,
        replication in 1u8..4,
        raws in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u16>()), 1..60),
    ) {
        let mut view = View::create(&create(64, replication, seed)).unwrap();
        prop_assert_eq!(check(&view), Ok(()));
        let mut history: Vec<MapChange> = Vec::new();
        for raw in raws {
            // Once in a while an old change turns up again: it applies consistently, or not at all.
            let again = (raw.0 >= 240).then(|| history.get(usize::from(raw.2) % history.len().max(1))).flatten();
            let Some(change) = again.cloned().or_else(|| change(&view, raw)) else { continue };
            let Ok(after) = view.apply(&change) else { continue };
            check_step(&view, &change, &after);
            view = after;
            history.push(change);
        }
    }

    #[test]
    fn when_all_nodes_are_up_one_round_of_copies_settles_everything(
        seed: u64,
        raws in proptest::collection::vec((any::<u8>(), any::<u8>(), any::<u16>()), 1..40),
    ) {
        let mut view = View::create(&create(64, 2, seed)).unwrap();
        for raw in raws {
            if let Some(Ok(after)) = change(&view, raw).map(|change| view.apply(&change)) {
                view = after;
            }
        }
        let down: Vec<_> = view.map.nodes.iter().filter(|(_, node)| !node.is_up()).map(|(&id, _)| id).collect();
        for id in down {
            let incarnation = Incarnation(view.map.nodes[&id].incarnation.0 + 1);
            let mut again = registration(id.0 % 100, incarnation.0);
            again.addresses.peer = 40_000 + id.0 as u16;
            view = apply(&view, &MapChange::Register { node: id, registration: again });
        }
        if view.map.loss_policy == LossPolicy::Refuse {
            let value = Some("empty".to_owned());
            view = apply(&view, &MapChange::Set { name: "loss-policy".to_owned(), value });
        }
        if let Some(change) = cutover(&view, |_| true) {
            view = apply(&view, &change);
        }
        let member = view.map.nodes.values().any(|node| node.membership == Membership::Member);
        if member {
            prop_assert!(view.map.holders.is_empty(), "{:?}", view.map.holders);
            prop_assert_eq!(cutover(&view, |_| true), None);
        }
    }
}

#[test]
fn a_new_id_at_a_living_nodes_address_takes_everything_from_it() {
    let view = map_support::cluster(3, 64, 2, 7);
    let mut newcomer = registration(2, 1);
    newcomer.zone = "a".to_owned();
    let change = MapChange::Join { node: NodeId(9), registration: newcomer };
    let after = apply(&view, &change);
    check_step(&view, &change, &after);
    // Its identity is lost, so it gives up its place at once, and will be forgotten.
    let former = &after.map.nodes[&NodeId(2)];
    assert_eq!(former.liveness, Liveness::Down { excluded: true });
    assert_eq!(former.membership, Membership::Leaving);
    assert!(after.table.rows.iter().all(|row| !row.holders.contains(&NodeId(2))));
    assert_eq!(after.map.membership_epoch, after.map.epoch);
    // A plain join outdates nothing.
    let plain = apply(&view, &join(4));
    assert_eq!(plain.map.membership_epoch, view.map.membership_epoch);
    assert_eq!(mark_down(&view, NodeId(2)), mark_down(&plain, NodeId(2)));
}
