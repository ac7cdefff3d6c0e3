//! The rules of the map, change by change: what applies, what is late, what is forbidden.

mod map_support;

use korum_protocol::id::{Epoch, Incarnation, NodeId};
use korum_protocol::map::check::check;
use korum_protocol::map::{LossPolicy, MapChange, Membership, Move, PartitionId, Refusal, View};
use map_support::{
    admit, apply, cluster, create, cutover, is_forbidden, is_outdated, join, mark_down, registration, settle,
    step,
};

fn with_loss_policy(policy: &str) -> MapChange {
    MapChange::Set { name: "loss-policy".to_owned(), value: Some(policy.to_owned()) }
}

fn move_of(view: &View, partition: PartitionId, node: NodeId) -> MapChange {
    MapChange::Cutover {
        membership_epoch: view.map.membership_epoch,
        moves: vec![step(view, partition, node)],
    }
}

fn register(node: u64, incarnation: u64) -> MapChange {
    MapChange::Register { node: NodeId(node), registration: registration(node, incarnation) }
}

/// A partition and a node, such that the partition is held by others and `wanted` is true of the row.
fn find(view: &View, wanted: impl Fn(&korum_protocol::map::Row) -> bool) -> PartitionId {
    view.table.rows.iter().position(wanted).expect("there is such a partition") as PartitionId
}

#[test]
fn a_new_cluster_is_one_node_that_holds_everything() {
    let view = View::create(&create(64, 2, 0)).unwrap();
    assert_eq!(check(&view), Ok(()));
    assert_eq!(view.map.epoch, Epoch(1));
    assert!(view.table.rows.iter().all(|row| row.holders[..] == [NodeId(1)] && row.era == Epoch(1)));
    assert_eq!((view.partition_of_slot(0), view.partition_of_slot(16383)), (0, 63));
    assert!(is_outdated(&view.apply(&create(64, 2, 0))));
}

#[test]
fn numbers_out_of_range_are_forbidden() {
    for (partitions, replication) in [(63, 1), (32, 1), (100, 1), (32768, 1), (0, 1), (64, 0), (64, 9)] {
        assert!(
            is_forbidden(&View::create(&create(partitions, replication, 0))),
            "{partitions} {replication}"
        );
    }
    let view = cluster(2, 64, 2, 0);
    assert!(is_forbidden(&View::create(&join(1))));
    assert!(is_forbidden(&view.apply(&MapChange::SetReplication { replication: 0 })));
    assert!(is_forbidden(&view.apply(&MapChange::SetReplication { replication: 9 })));
    assert!(is_forbidden(&view.apply(&MapChange::SetWeight { node: NodeId(1), weight: 17 })));
    let mut heavy = registration(5, 1);
    heavy.weight = 0;
    assert!(is_forbidden(&view.apply(&MapChange::Join { node: NodeId(5), registration: heavy })));
    let policy = with_loss_policy("maybe");
    assert!(is_forbidden(&view.apply(&policy)));
    let bound = MapChange::Set { name: "balance-permille".to_owned(), value: Some("-1".to_owned()) };
    assert!(is_forbidden(&view.apply(&bound)));
}

#[test]
fn a_swap_of_databases_comes_once_and_after_those_that_it_has_seen() {
    let view = cluster(2, 64, 2, 0);
    let swap = |first, second, swaps| MapChange::SwapDatabases { first, second, swaps };
    let once = apply(&view, &swap(0, 3, 0));
    let order = once.map.databases();
    assert_eq!((order.room(0), order.room(3), order.database(3), order.swaps()), (3, 0, 0, 1));
    assert_eq!((&once.table, once.map.membership_epoch), (&view.table, view.map.membership_epoch));
    assert!(is_forbidden(&once.apply(&swap(0, 255, 1))));
    assert!(is_outdated(&once.apply(&swap(0, 3, 0))) && is_outdated(&once.apply(&swap(1, 2, 2))));
    let twice = apply(&once, &swap(3, 0, 1)).map.databases();
    assert_eq!((twice.room(0), twice.room(3), twice.swaps()), (0, 3, 2));
    for value in [None, Some("7".to_owned())] {
        assert!(is_forbidden(&once.apply(&MapChange::Set { name: "databases".to_owned(), value })));
    }
}

#[test]
fn what_is_so_already_or_unknown_is_outdated() {
    let view = cluster(2, 64, 2, 0);
    let late = [
        admit(2),
        admit(9),
        register(2, 1),
        register(9, 1),
        MapChange::MarkDown { node: NodeId(2), incarnation: Incarnation(7) },
        MapChange::MarkDown { node: NodeId(9), incarnation: Incarnation(1) },
        MapChange::Exclude { node: NodeId(2), incarnation: Incarnation(1) },
        MapChange::Drain { node: NodeId(9) },
        MapChange::Forget { node: NodeId(9) },
        MapChange::SetReplication { replication: 2 },
        MapChange::SetWeight { node: NodeId(2), weight: 1 },
        MapChange::SetWeight { node: NodeId(9), weight: 2 },
        MapChange::Set { name: "unset".to_owned(), value: None },
        MapChange::Compact,
        MapChange::DropHolders { drops: vec![] },
        MapChange::Cutover { membership_epoch: view.map.membership_epoch, moves: vec![] },
    ];
    for change in late {
        assert!(is_outdated(&view.apply(&change)), "{change:?}");
    }
    assert!(is_forbidden(&view.apply(&join(2))));
}

#[test]
fn joining_node_owns_nothing_until_it_is_admitted() {
    let joined = apply(&cluster(2, 64, 2, 0), &join(3));
    assert_eq!(joined.map.nodes[&NodeId(3)].membership, Membership::Joining);
    assert!(joined.table.rows.iter().all(|row| !row.replica_set.contains(&NodeId(3))));
    assert!(is_forbidden(&joined.apply(&MapChange::Drain { node: NodeId(3) })));
    let down = apply(&joined, &mark_down(&joined, NodeId(3)));
    assert!(is_outdated(&down.apply(&admit(3))));
    assert_eq!(check(&apply(&joined, &MapChange::Forget { node: NodeId(3) })), Ok(()));
    let admitted = apply(&joined, &admit(3));
    assert!(admitted.table.rows.iter().any(|row| row.replica_set.contains(&NodeId(3))));
    // Nothing has moved yet: the old holders hold and serve as before.
    for (before, after) in joined.table.rows.iter().zip(&admitted.table.rows) {
        assert_eq!((&before.holders, before.era), (&after.holders, after.era));
    }
}

#[test]
fn cutover_applies_only_where_its_assumptions_hold() {
    let view = apply(&apply(&cluster(2, 64, 2, 0), &join(3)), &admit(3));
    let partition = find(&view, |row| row.replica_set.contains(&NodeId(3)));
    let elsewhere = find(&view, |row| !row.replica_set.contains(&NodeId(3)));
    let good = step(&view, partition, NodeId(3));
    let try_moves = |membership_epoch: Epoch, moves: Vec<Move>| {
        view.apply(&MapChange::Cutover { membership_epoch, moves })
    };
    let now = view.map.membership_epoch;
    assert!(is_outdated(&try_moves(Epoch(now.0 - 1), vec![good])));
    for bad in [
        Move { era: Epoch(good.era.0 + 1), ..good },
        Move { incarnation: Incarnation(2), ..good },
        Move { node: NodeId(9), ..good },
        Move { partition: 64, ..good },
        step(&view, elsewhere, NodeId(3)),
    ] {
        assert!(is_outdated(&try_moves(now, vec![bad])), "{bad:?}");
        let mixed = try_moves(now, vec![bad, good, good]).unwrap();
        assert_eq!(check(&mixed), Ok(()));
        assert!(mixed.row(partition).holders.contains(&NodeId(3)));
        assert_eq!(mixed.map.membership_epoch, now);
        assert!(is_outdated(&mixed.apply(&MapChange::Cutover { membership_epoch: now, moves: vec![good] })));
    }
}

#[test]
fn new_holder_that_ranks_first_becomes_the_primary_of_a_new_era() {
    let view = apply(&apply(&cluster(2, 64, 2, 0), &join(3)), &admit(3));
    let partition = find(&view, |row| row.replica_set[0] == NodeId(3));
    let old = view.row(partition).clone();
    let after = apply(&view, &move_of(&view, partition, NodeId(3)));
    let row = after.row(partition);
    assert_eq!(row.primary, Some(NodeId(3)));
    assert_eq!(row.era, after.map.epoch);
    assert_eq!(row.holders, row.replica_set);
    assert_eq!(row.holders.len(), 2, "the evicted holder {:?} was dropped", old.holders[1]);
    // A proposal of the old primary is late now.
    let late = Move { era: old.era, ..step(&after, partition, row.holders[1]) };
    assert!(is_outdated(&after.apply(&MapChange::DropHolders { drops: vec![late] })));
}

#[test]
fn surplus_holder_stays_while_a_member_of_the_replica_set_is_down() {
    // Node 4 shall take a partition's second place; the first goes down meanwhile.
    let view = apply(&apply(&cluster(3, 64, 2, 0), &join(4)), &admit(4));
    let partition = find(&view, |row| row.replica_set[1] == NodeId(4));
    let [first, second] = view.row(partition).holders[..] else { panic!("two holders") };
    let down = apply(&view, &mark_down(&view, first));
    assert_eq!(down.row(partition).holders[..], [second]);
    let copied = apply(&down, &move_of(&down, partition, NodeId(4)));
    let mut holders = copied.row(partition).holders.to_vec();
    holders.sort();
    assert_eq!(holders, [second.min(NodeId(4)), second.max(NodeId(4))], "two copies are kept");
    // It comes back, catches up, and only then the surplus goes.
    let back = apply(&copied, &register(first.0, 2));
    assert_eq!(back.row(partition).holders.len(), 2);
    let whole = settle(back);
    assert_eq!(whole.row(partition).holders, whole.row(partition).replica_set);
    assert!(whole.map.holders.is_empty());
}

#[test]
fn dropping_spares_the_primary_and_outdates_cutovers_under_way() {
    let view = cluster(3, 64, 2, 0);
    let [primary, replica] = view.row(0).holders[..] else { panic!("two holders") };
    let drop = |view: &View, node| MapChange::DropHolders { drops: vec![step(view, 0, node)] };
    assert!(is_outdated(&view.apply(&drop(&view, primary))));
    let alone = apply(&view, &drop(&view, replica));
    assert_eq!(alone.row(0).holders[..], [primary]);
    assert_eq!(alone.row(0).era, view.row(0).era);
    assert!(is_outdated(&alone.apply(&drop(&alone, replica))));
    // The replica catches up; its cutover, sent a second time after another drop, must do nothing.
    let cut = move_of(&alone, 0, replica);
    let again = apply(&alone, &cut);
    assert_eq!(again.row(0).holders[..], [primary, replica]);
    let dropped = apply(&again, &drop(&again, replica));
    assert!(is_outdated(&dropped.apply(&cut)));
}

#[test]
fn failover_is_one_change_and_only_the_dead_nodes_partitions_change_primary() {
    let view = cluster(4, 256, 3, 1);
    let after = apply(&view, &mark_down(&view, NodeId(2)));
    for (old, new) in view.table.rows.iter().zip(&after.table.rows) {
        let heirs: Vec<_> = old.holders.iter().copied().filter(|&id| id != NodeId(2)).collect();
        assert_eq!(new.holders[..], heirs[..]);
        assert_eq!(new.replica_set, old.replica_set, "a short absence reshuffles nothing");
        assert_eq!(new.era == after.map.epoch, old.primary == Some(NodeId(2)));
    }
    // Away for too long: only what it held gets another copy.
    let excluded = MapChange::Exclude { node: NodeId(2), incarnation: Incarnation(1) };
    let excluded = apply(&after, &excluded);
    for (old, new) in after.table.rows.iter().zip(&excluded.table.rows) {
        assert_eq!(new.replica_set == old.replica_set, !old.replica_set.contains(&NodeId(2)));
        assert_eq!(new.holders, old.holders);
    }
    let healed = settle(excluded);
    assert!(healed.map.holders.is_empty());
    // Back again, it takes its old places and no others.
    let back = settle(apply(&healed, &register(2, 2)));
    assert_eq!(
        back.table.rows.iter().map(|row| row.holders.clone()).collect::<Vec<_>>(),
        view.table.rows.iter().map(|row| row.holders.clone()).collect::<Vec<_>>()
    );
    assert_eq!(back.map.lost_total, 0);
}

#[test]
fn restarted_single_node_starts_everything_empty_and_says_so() {
    let view = View::create(&create(64, 2, 0)).unwrap();
    let after = apply(&view, &register(1, 2));
    assert_eq!(check(&after), Ok(()));
    assert_eq!(after.map.lost_total, 64);
    assert_eq!(after.map.emptied.len(), 64);
    assert!(after.table.rows.iter().all(|row| row.primary == Some(NodeId(1)) && row.era == after.map.epoch));
}

#[test]
fn lost_partition_waits_for_the_operator_if_the_policy_is_to_refuse() {
    let view = apply(&cluster(3, 64, 1, 0), &with_loss_policy("refuse"));
    assert_eq!(view.map.loss_policy, LossPolicy::Refuse);
    let held = view.table.rows.iter().filter(|row| row.primary == Some(NodeId(2))).count() as u64;
    let down = apply(&view, &mark_down(&view, NodeId(2)));
    assert_eq!(down.map.lost_total, held);
    let back = apply(&down, &register(2, 2));
    assert_eq!(check(&back), Ok(()));
    let unserved = |view: &View| view.table.rows.iter().filter(|row| row.primary.is_none()).count() as u64;
    assert_eq!((unserved(&down), unserved(&back)), (held, held));
    assert_eq!(back.map.lost_total, held, "counted once");
    let given_up = apply(&back, &with_loss_policy("empty"));
    assert_eq!((unserved(&given_up), given_up.map.emptied.len() as u64), (0, held));
    assert_eq!(given_up.map.lost_total, held);
    assert!(given_up.map.holders.is_empty());
}

#[test]
fn lost_with_nobody_up_is_counted_once_and_started_by_the_first_to_return() {
    let mut view = cluster(2, 64, 2, 0);
    for node in [1, 2] {
        view = apply(&view, &mark_down(&view, NodeId(node)));
    }
    assert_eq!(check(&view), Ok(()));
    assert_eq!((view.map.lost_total, view.map.emptied.len()), (64, 0));
    let back = apply(&view, &register(2, 2));
    assert_eq!((back.map.lost_total, back.map.emptied.len()), (64, 64));
    assert!(back.table.rows.iter().all(|row| row.holders[..] == [NodeId(2)]));
}

#[test]
fn drain_moves_everything_and_living_primaries_hand_over_themselves() {
    let view = cluster(3, 64, 2, 0);
    let drain = apply(&view, &MapChange::Drain { node: NodeId(2) });
    assert!(is_outdated(&drain.apply(&MapChange::Drain { node: NodeId(2) })));
    assert!(is_forbidden(&drain.apply(&MapChange::Forget { node: NodeId(2) })));
    for (old, new) in view.table.rows.iter().zip(&drain.table.rows) {
        assert_eq!((&old.holders, old.primary, old.era), (&new.holders, new.primary, new.era));
    }
    let moved = settle(drain);
    assert!(moved.table.rows.iter().all(|row| row.holders.len() == 2 && !row.holders.contains(&NodeId(2))));
    let gone = apply(&moved, &MapChange::Forget { node: NodeId(2) });
    assert_eq!(check(&gone), Ok(()));
    assert!(!gone.map.nodes.contains_key(&NodeId(2)));
    for (old, new) in moved.table.rows.iter().zip(&gone.table.rows) {
        assert_eq!((&old.holders, old.era), (&new.holders, new.era), "forgetting moves nothing");
    }
}

#[test]
fn drained_primary_with_a_complete_replica_set_stays_until_it_hands_over() {
    let view = cluster(2, 64, 2, 0);
    let drain = apply(&view, &MapChange::Drain { node: NodeId(2) });
    for (old, new) in view.table.rows.iter().zip(&drain.table.rows) {
        assert_eq!(old.primary, new.primary);
        assert_eq!(new.holders.contains(&NodeId(2)), old.primary == Some(NodeId(2)));
    }
    assert!(is_forbidden(&drain.apply(&MapChange::Drain { node: NodeId(1) })));
    let change = cutover(&drain, |_| true).expect("the drained primary hands over");
    let moved = apply(&drain, &change);
    assert!(is_outdated(&moved.apply(&change)));
    assert!(moved.table.rows.iter().all(|row| row.holders[..] == [NodeId(1)]));
    assert!(is_forbidden(&moved.apply(&MapChange::Forget { node: NodeId(1) })));
}

#[test]
fn leaving_holders_are_kept_when_no_eligible_node_is_left() {
    let view = cluster(2, 64, 2, 0);
    let mut view = apply(&view, &MapChange::Drain { node: NodeId(2) });
    view = apply(&view, &mark_down(&view, NodeId(1)));
    let kept: Vec<_> = view.table.rows.iter().map(|row| row.holders.clone()).collect();
    view = apply(&view, &MapChange::Exclude { node: NodeId(1), incarnation: Incarnation(1) });
    assert_eq!(check(&view), Ok(()));
    assert!(view.table.rows.iter().all(|row| row.replica_set.is_empty()));
    assert_eq!(kept, view.table.rows.iter().map(|row| row.holders.clone()).collect::<Vec<_>>());
}

#[test]
fn fewer_copies_drop_surplus_at_once_and_more_copies_wait_for_cutovers() {
    let view = cluster(4, 64, 3, 0);
    let fewer = apply(&view, &MapChange::SetReplication { replication: 2 });
    for (old, new) in view.table.rows.iter().zip(&fewer.table.rows) {
        assert_eq!(new.holders[..], old.holders[..2]);
        assert_eq!(new.era, old.era);
    }
    let more = apply(&fewer, &MapChange::SetReplication { replication: 4 });
    assert!(more.table.rows.iter().all(|row| row.holders.len() == 2 && row.replica_set.len() == 4));
    assert!(settle(more).table.rows.iter().all(|row| row.holders.len() == 4));
}

#[test]
fn heavier_node_gets_more_and_living_primaries_hand_over_themselves() {
    let view = cluster(3, 256, 2, 0);
    let heavy = apply(&view, &MapChange::SetWeight { node: NodeId(3), weight: 4 });
    assert_eq!(heavy.map.indices.len(), 6);
    for (old, new) in view.table.rows.iter().zip(&heavy.table.rows) {
        assert_eq!((old.primary, old.era), (new.primary, new.era));
    }
    let settled = settle(heavy);
    assert!(settled.map.holders.is_empty());
    let primaries = settled.table.rows.iter().filter(|row| row.primary == Some(NodeId(3))).count();
    // 4 of 6 indices: 170.7 expected of 256, standard deviation 7.5.
    assert!((133..=208).contains(&primaries), "{primaries}");
}

#[test]
fn setting_is_kept_as_text_and_bounded_load_takes_effect() {
    let view = cluster(5, 256, 2, 0);
    let set = |value: Option<&str>| MapChange::Set {
        name: "balance-permille".to_owned(),
        value: value.map(str::to_owned),
    };
    let balanced = settle(apply(&view, &set(Some("50"))));
    assert_eq!(balanced.map.balance_permille, 50);
    assert_eq!(balanced.map.settings["balance-permille"], "50");
    assert!(balanced.map.holders.is_empty());
    for node in 1..=5 {
        let rows = &balanced.table.rows;
        let primaries = rows.iter().filter(|row| row.primary == Some(NodeId(node))).count();
        let copies = rows.iter().filter(|row| row.holders.contains(&NodeId(node))).count();
        // 1.05 of the mean: 51.2 primaries and 102.4 copies, rounded up.
        assert!(primaries <= 54 && copies <= 108, "node {node}: {primaries} primaries, {copies} copies");
    }
    let plain = settle(apply(&balanced, &set(None)));
    assert_eq!(
        plain.table.rows.iter().map(|row| &row.holders).collect::<Vec<_>>(),
        view.table.rows.iter().map(|row| &row.holders).collect::<Vec<_>>()
    );
}

#[test]
fn a_formation_gives_a_cluster_another_name_and_leaves_its_id() {
    let view = cluster(3, 64, 2, 0);
    assert_eq!(view.map.formation(), view.map.cluster_id);
    let set = |value: Option<&str>| MapChange::Set {
        name: "formation".to_owned(),
        value: value.map(str::to_owned),
    };
    let named = apply(&view, &set(Some("00000000000000ff")));
    assert_eq!((named.map.formation().0, named.map.cluster_id), (255, view.map.cluster_id));
    assert_eq!(named.map.membership_epoch, view.map.membership_epoch, "moves go on");
    // Maps that only the lost nodes knew are older than all that the survivors agree on.
    assert_eq!(named.map.epoch.0, view.map.epoch.0 + 1_000_000);
    let setting = MapChange::Set { name: "other".to_owned(), value: Some("1".to_owned()) };
    assert_eq!(apply(&named, &setting).map.epoch, named.map.epoch.next());
    for wrong in [None, Some(""), Some("ff"), Some("0000000000000000"), Some("+000000000000001")] {
        assert!(matches!(named.apply(&set(wrong)), Err(Refusal::Forbidden(_))), "{wrong:?}");
    }
}

#[test]
fn map_that_breaks_a_rule_is_not_taken() {
    let good = cluster(3, 64, 2, 0).map;
    assert!(View::checked(good.clone()).is_ok());
    let breaches: [fn(&mut korum_protocol::map::ClusterMap); 9] = [
        |map| map.partitions = u32::MAX,
        |map| map.partitions = 128,
        |map| map.replication = 0,
        |map| map.primary_since[3] = Epoch(1000),
        |map| map.indices.push(None),
        |map| map.indices.push(Some(NodeId(77))),
        |map| map.nodes.get_mut(&NodeId(2)).unwrap().weight = 2,
        |map| drop(map.holders.insert(0, vec![NodeId(77)])),
        |map| drop(map.holders.insert(64, vec![NodeId(1)])),
    ];
    for (number, breach) in breaches.into_iter().enumerate() {
        let mut bad = good.clone();
        breach(&mut bad);
        assert!(View::checked(bad).is_err(), "breach {number} went unseen");
    }
}

#[test]
fn map_survives_encoding_and_random_damage_never_panics() {
    let view = apply(&apply(&cluster(4, 64, 3, 1), &join(5)), &admit(5));
    let down = apply(&view, &mark_down(&view, NodeId(2)));
    let bytes = korum_protocol::peer::wire::encode(&down.map).to_vec();
    let back: korum_protocol::map::ClusterMap =
        korum_protocol::peer::wire::decode(&bytes).expect("it was encoded here");
    assert_eq!(View::checked(back).as_ref(), Ok(&down));
    // Every byte damaged once in several ways: refused, or a map that keeps every rule.
    for place in 0..bytes.len() {
        for damage in [0, 1, 0x40, 0xFB, 0xFF] {
            let mut bad = bytes.clone();
            bad[place] ^= damage;
            if let Ok(map) = korum_protocol::peer::wire::decode(&bad)
                && let Ok(view) = View::checked(map)
            {
                assert_eq!(check(&view), Ok(()));
            }
        }
    }
}
