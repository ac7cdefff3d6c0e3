//! I11: what a replica applies is decided by its primary: copies at the same position have the same bytes.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use korum_node::replication::effect::Effect;
use korum_node::store::{HashPosition, HashRange, Partition};
use korum_protocol::id::Position;
use korum_protocol::map::PartitionId;
use korum_protocol::rope::Rope;

use crate::world::World;

/// Bytes of one chunk of a reading.
const CHUNK_BYTES: usize = 1 << 20;

/// Looks after which a copy is read again although it stands where it stood.
const UNMOVED_LOOKS: u64 = 20;

/// What was seen at each position so far.
#[derive(Default)]
pub struct Contents {
    known: BTreeMap<(u64, PartitionId, Position), u64>,
    looks: u64,
    /// Where each copy (by node and process) stood at the last look.
    stood: BTreeMap<(usize, u32, PartitionId), Position>,
}

impl Contents {
    pub fn check(&mut self, world: &World) -> Result<(), String> {
        self.looks += 1;
        for (number, member, node) in world.nodes() {
            let cluster = node.view().map.cluster_id.0;
            for partition in 0..node.store().len() as PartitionId {
                let mut locked = node.store().lock(partition);
                let Some(position) = locked.history.position() else { continue };
                // What stands still has seldom changed, and reading it takes long.
                let stands = self.stood.insert((number, member.runs, partition), position) == Some(position);
                if stands && !self.looks.is_multiple_of(UNMOVED_LOOKS) {
                    continue;
                }
                let sum = sum(&mut locked);
                let known = *self.known.entry((cluster, partition, position)).or_insert(sum);
                if known != sum {
                    let entries = entries(&mut locked);
                    drop(locked);
                    return Err(format!(
                        "I11: {} has other bytes in partition {partition} at {position:?} than were seen there{}",
                        member.host.name,
                        difference(world, partition, position, &entries)
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What differs from a copy that stands there now, for people; nothing if they all have gone on.
fn difference(world: &World, partition: PartitionId, position: Position, entries: &[Vec<u8>]) -> String {
    for (_, member, node) in world.nodes() {
        let mut locked = node.store().lock(partition);
        if locked.history.position() != Some(position) {
            continue;
        }
        let others = self::entries(&mut locked);
        let only = |some: &[Vec<u8>], not_in: &[Vec<u8>]| {
            let entry = some.iter().find(|entry| !not_in.contains(entry)).cloned().unwrap_or_default();
            let text =
                Effect::decode(&mut &entry[..]).map_or("nothing".to_owned(), |effect| format!("{effect:?}"));
            text.chars().take(400).collect::<String>()
        };
        let (here, there) = (only(entries, &others), only(&others, entries));
        if here != there {
            return format!(": here {here}, but {} has {there}", member.host.name);
        }
    }
    String::new()
}

/// All that a partition holds, in an order.
fn entries(partition: &mut Partition) -> Vec<Vec<u8>> {
    let mut entries: Vec<Vec<u8>> = Vec::new();
    let mut from = Some(HashPosition::START);
    while let Some(at) = from {
        let mut bytes = Rope::new();
        from = partition.keyspace.read_chunk(at, CHUNK_BYTES, &mut bytes).next;
        let bytes = bytes.flat();
        let mut rest: &[u8] = &bytes;
        while !rest.is_empty() {
            let before = rest;
            Effect::decode(&mut rest).expect("what was just encoded");
            entries.push(before[..before.len() - rest.len()].to_vec());
        }
    }
    // Entries at the same place may stand in any order.
    entries.sort_unstable();
    entries
}

/// A number that stands for a partition's content.
pub fn sum(partition: &mut Partition) -> u64 {
    let entries = entries(partition);
    let services = partition.keyspace.served.within(HashRange::ALL).into_iter();
    let mut services: Vec<_> = services
        .map(|service| (service.place, service.token.node, service.token.client, service.token.number))
        .collect();
    services.sort_unstable();
    BuildHasherDefault::<DefaultHasher>::default().hash_one((entries, services))
}

/// All holders of every partition have the same bytes; the message says which do not.
pub fn same_bytes_everywhere(world: &World) -> Result<(), String> {
    let mut sums: BTreeMap<PartitionId, (String, u64)> = BTreeMap::new();
    for (_, member, node) in world.nodes() {
        let view = node.view();
        for partition in 0..node.store().len() as PartitionId {
            if !view.row(partition).holders.contains(&node.id()) {
                continue;
            }
            let sum = sum(&mut node.store().lock(partition));
            let name = member.host.name.clone();
            let (first, known) = sums.entry(partition).or_insert((name.clone(), sum));
            if *known != sum {
                return Err(format!("{first} and {name} have different bytes in partition {partition}"));
            }
        }
    }
    Ok(())
}
