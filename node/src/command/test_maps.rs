//! Maps for the tests of command families.

use korum_protocol::id::{ClusterId, Incarnation, NodeId};
use korum_protocol::map::{Addresses, LossPolicy, MapChange, Move, Registration, View};

/// What node `number` says of itself: client port 7000 + number, and the usual distances.
pub fn registration(number: u16) -> Registration {
    Registration {
        addresses: Addresses {
            host: "127.0.0.1".to_owned(),
            client: 7000 + number,
            cluster: 17_000 + number,
            peer: 27_000 + number,
        },
        zone: String::new(),
        weight: 1,
        incarnation: Incarnation(1),
    }
}

/// Node 1 alone.
pub fn single(partitions: u32) -> View {
    let create = MapChange::Create {
        cluster_id: ClusterId(7),
        partitions,
        replication: 2,
        placement_seed: 1,
        loss_policy: LossPolicy::Empty,
        node: NodeId(1),
        registration: registration(1),
    };
    View::create(&create).unwrap()
}

/// Applies changes in order.
pub fn after(view: &View, changes: &[MapChange]) -> View {
    changes.iter().fold(view.clone(), |view, change| view.apply(change).unwrap())
}

/// Node `number` joins and becomes a member.
pub fn join(number: u16) -> [MapChange; 2] {
    let node = NodeId(u64::from(number));
    [
        MapChange::Join { node, registration: registration(number) },
        MapChange::Admit { node, incarnation: Incarnation(1) },
    ]
}

/// Whoever should hold a partition and is up has it.
pub fn caught_up(view: &View) -> View {
    let rows = view.table.rows.iter().enumerate();
    let moves: Vec<Move> = rows
        .flat_map(|(partition, row)| {
            let missing = row
                .replica_set
                .iter()
                .filter(|node| !row.holders.contains(node) && view.map.nodes[*node].is_up());
            missing.map(move |&node| Move {
                partition: partition as u16,
                era: row.era,
                node,
                incarnation: view.map.nodes[&node].incarnation,
            })
        })
        .collect();
    let membership_epoch = view.map.membership_epoch;
    view.apply(&MapChange::Cutover { membership_epoch, moves }).unwrap()
}

/// Nodes 1 and 2, each with a copy of everything.
pub fn split(partitions: u32) -> View {
    caught_up(&after(&single(partitions), &join(2)))
}

/// Nodes 1, 2 and 3, caught up; then node 3 went down.
pub fn grown(partitions: u32) -> View {
    let three = caught_up(&after(&split(partitions), &join(3)));
    after(&three, &[MapChange::MarkDown { node: NodeId(3), incarnation: Incarnation(1) }])
}
