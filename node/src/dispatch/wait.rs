//! `WAIT`: how many replicas have this connection's writes?
//!
//! For: the answer of Redis in both modes. A strong write was on all holders before it was answered, so nothing
//! is left to wait for; after weaker ones, the partitions that were written are asked.
//! Not here: what a write waits for by itself (`finish`).

use std::sync::Arc;
use std::time::Duration;

use korum_protocol::map::{PartitionId, View};
use korum_protocol::resp::{Args, ReplyWriter};
use korum_protocol::rope::Rope;

use super::batch::Batch;
use super::caller::Caller;
use super::keyless::Asker;
use super::route::Port;
use super::{assemble, everywhere};
use crate::command::server;
use crate::env::Tick;
use crate::env::random::random;
use crate::net::clients::{Flag, Unblock};
use crate::node::Node;

/// Longest pause before the copies are counted again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// Runs `WAIT numreplicas timeout`. Dropping it only ends the wait.
pub(super) async fn run(
    node: &Arc<Node>,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
    reply: &mut ReplyWriter<'_>,
) {
    let (wanted, limit) = match server::wait(*args) {
        Ok(wanted) => wanted,
        Err(text) => return reply.error(&text),
    };
    let until = limit.map(|limit| node.clock().now() + limit);
    asker.client.set_flag(Flag::Blocked, true);
    loop {
        let count = copies(node, caller, asker, until).await;
        let is_over = until.is_some_and(|until| node.clock().now() >= until);
        let unblocked = asker.client.take_unblock();
        if unblocked == Some(Unblock::Error) {
            reply.error(UNBLOCKED);
            break;
        }
        if count >= wanted || is_over || unblocked.is_some() {
            reply.integer(count);
            break;
        }
        let left = until.map_or(LOOK_AGAIN, |until| until.since(node.clock().now()));
        node.changed_within(LOOK_AGAIN.min(left)).await;
    }
    asker.client.set_flag(Flag::Blocked, false);
}

/// Replicas that have everything this connection wrote, in the partition that has the fewest.
async fn copies(node: &Arc<Node>, caller: Caller, asker: &mut Asker<'_>, until: Option<Tick>) -> i64 {
    let written: Vec<PartitionId> = asker.session.written.iter().copied().collect();
    if written.is_empty() {
        return fewest(&node.view(), 0..node.store().len() as PartitionId);
    }
    let soon = node.request_deadline();
    let deadline = until.map_or(soon, |until| until.min(soon));
    if !are_settled(node, caller, &written, deadline).await {
        return written.iter().map(|&id| acknowledged(node, id)).min().unwrap_or(0);
    }
    fewest(&node.view(), written.into_iter())
}

/// Holders beside the primary, in the partition that has the fewest.
fn fewest(view: &View, partitions: impl Iterator<Item = PartitionId>) -> i64 {
    let others = partitions.map(|id| view.row(id).holders.len().saturating_sub(1));
    others.min().unwrap_or(0) as i64
}

/// Whether all writes to these partitions are on all their holders, by the deadline.
async fn are_settled(node: &Arc<Node>, caller: Caller, partitions: &[PartitionId], deadline: Tick) -> bool {
    let caller = Caller { port: Port::Client, is_strong: true, ..caller };
    let mut batch = Batch::new(random());
    batch.begin(node);
    batch.open(0..0, caller);
    everywhere::ask(&mut batch, node, &node.view(), caller, partitions);
    batch.finish(node, &[], deadline).await;
    let mut reply = Rope::new();
    batch.assemble(&mut reply, |_| None);
    assemble::integer(reply.copied()).is_some()
}

/// Copies that have everything, as far as this node knows: nothing of another node's partitions.
fn acknowledged(node: &Node, id: PartitionId) -> i64 {
    let partition = node.store().lock(id);
    let copies = partition.as_primary().map_or(&[][..], |primary| &primary.copies);
    copies.iter().filter(|copy| copy.is_required && copy.is_acknowledged()).count() as i64
}
