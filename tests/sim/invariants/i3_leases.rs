//! I3: a node serves only with a valid lease, and only partitions of which it is the primary in its own map.

use korum_node::env::witness::Answered;
use korum_protocol::map::PartitionId;

use crate::world::World;

/// Whatever was answered was answered under the lease of the run that had executed it.
pub fn check_answers(answers: &[Answered]) -> Result<(), String> {
    answers.iter().find(|answer| !answer.is_leased).map_or(Ok(()), |answer| {
        Err(format!("I3: {:?} answered without a lease, for partition {}", answer.node, answer.partition))
    })
}

/// Who orders a partition's reads and writes is its primary.
pub fn check_roles(world: &World) -> Result<(), String> {
    for (_, member, node) in world.nodes() {
        if member.look(world.now_us, |node| node.is_leased()) != Some(true) {
            continue;
        }
        let view = node.view();
        for partition in 0..node.store().len() as PartitionId {
            let row = view.row(partition);
            let locked = node.store().lock(partition);
            let Some(primary) = locked.as_primary() else { continue };
            if row.primary != Some(node.id()) || row.era != primary.era {
                return Err(format!("I3: {} serves partition {partition}, not its own", member.host.name));
            }
        }
    }
    Ok(())
}
