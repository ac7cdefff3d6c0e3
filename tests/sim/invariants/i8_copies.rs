//! I8: a node that has not caught up is never read from and never counted.
//!
//! Both are about the roles of copies: whoever the node's own map calls a holder has a whole copy, and nobody else
//! is treated as one.

use korum_node::store::Role;
use korum_protocol::map::PartitionId;

use crate::world::World;

pub fn check(world: &World) -> Result<(), String> {
    for (_, member, node) in world.nodes() {
        let view = node.view();
        let run = node.local_peer().incarnation();
        let Some(record) = view.map.nodes.get(&node.id()) else { continue };
        if !record.is_up() || record.incarnation != run {
            continue;
        }
        for partition in 0..node.store().len() as PartitionId {
            let row = view.row(partition);
            let locked = node.store().lock(partition);
            let counts = matches!(locked.role, Role::Primary(_) | Role::Replica { .. });
            if counts != row.holders.contains(&node.id()) {
                let name = &member.host.name;
                let say =
                    if counts { "counts as a copy but is no holder" } else { "is a holder without a copy" };
                return Err(format!("I8: {name} {say} of partition {partition} in epoch {}", view.map.epoch));
            }
        }
    }
    Ok(())
}
