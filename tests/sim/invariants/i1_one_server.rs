//! I1: at most one node serves a partition at any moment.

use korum_protocol::map::PartitionId;

use crate::world::World;

/// A node serves what it is primary of, not frozen, while its lease is valid on its machine's clock.
pub fn check(world: &World) -> Result<(), String> {
    let mut servers: Vec<Option<usize>> = Vec::new();
    for (number, member, node) in world.nodes() {
        if member.look(world.now_us, |node| node.is_leased()) != Some(true) {
            continue;
        }
        servers.resize(node.store().len().max(servers.len()), None);
        for partition in 0..node.store().len() as PartitionId {
            let serves =
                node.store().lock(partition).as_primary().is_some_and(|primary| primary.frozen.is_none());
            if !serves {
                continue;
            }
            if let Some(other) = servers[usize::from(partition)].replace(number) {
                let other = &world.members[other].host.name;
                return Err(format!("I1: {other} and {} serve partition {partition}", member.host.name));
            }
        }
    }
    Ok(())
}
