//! I9: every queue has a bound.

use crate::world::World;

/// Most bytes that may wait for one peer: a link's own bound, and one batch on top of it.
const LINK_PENDING_MAX: usize = 96 << 20;

pub fn check(world: &World) -> Result<(), String> {
    for (_, member, node) in world.nodes() {
        for link in node.links().all() {
            if link.pending_bytes() > LINK_PENDING_MAX {
                let (name, bytes) = (&member.host.name, link.pending_bytes());
                return Err(format!("I9: {bytes} bytes wait on a link of {name}"));
            }
        }
    }
    Ok(())
}
