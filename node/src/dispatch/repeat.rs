//! Commands of a batch that are run once more.
//!
//! For: what only read, and whose reply may be outdated by now, wherever its partition is.
//! Not here: who decides that (`settle`), putting the new replies in (`net::connection`).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use korum_protocol::command::{Flags, resolve};
use korum_protocol::map::PartitionId;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::rope::Rope;

use super::batch::Batch;
use super::caller::Caller;
use super::everywhere;
use super::finish::LOOK_AGAIN;
use super::forwarded::is_unit;
use super::parts::{Operation, Task, TaskRequest, TaskState};
use crate::env::Tick;
use crate::env::random::random;
use crate::node::Node;

impl Batch {
    /// Runs the commands of `to_repeat` once more, each in a batch of its own, wherever they belong now.
    /// Their replies, by command.
    pub async fn repeat(&mut self, node: &Arc<Node>, input: &[u8], deadline: Tick) -> HashMap<usize, Rope> {
        let mut replies = HashMap::new();
        let commands: Vec<usize> = self.to_repeat().collect();
        for command in commands {
            if self.is_followed_by_write(command) {
                continue;
            }
            let (range, caller) = self.request(command);
            if let Some((partition, request)) = self.internal_of(command) {
                if let Some(reply) = repeat_internal(node, partition, request, caller, deadline).await {
                    replies.insert(command, reply);
                }
                continue;
            }
            let mut parser = RequestParser::new(RequestLimits::unlimited());
            if !matches!(parser.parse(&input[range.clone()]), Ok(Parsed::Request { .. })) {
                continue;
            }
            let args = parser.args(&input[range.clone()]);
            let Ok(spec) = resolve(&args) else { continue };
            let mut batch = Batch::new(random());
            while node.clock().now() < deadline {
                batch.begin(node);
                batch.set_source(self.means.source.clone());
                batch.open(range.clone(), caller);
                let view = node.view();
                let is_known = batch.run(node, &view, spec, &args, caller)
                    || everywhere::run(&mut batch, node, &view, spec, &args, caller);
                if !is_known {
                    break;
                }
                batch.finish(node, input, deadline).await;
                if batch.to_repeat().next().is_none() {
                    let mut reply = Rope::new();
                    batch.assemble(&mut reply, |_| None);
                    replies.insert(command, reply);
                    break;
                }
                node.changed_within(LOOK_AGAIN).await;
            }
        }
        replies
    }

    /// The request that stands for a whole command, and its partition: `EXEC`, `WATCH`, `EVAL`.
    fn internal_of(&self, command: usize) -> Option<(PartitionId, Bytes)> {
        let task = self.tasks.iter().find(|task| task.command == command)?;
        match &task.request {
            TaskRequest::Part(request) if is_unit(task.spec.id) => Some((task.partition, request.clone())),
            TaskRequest::Part(_) | TaskRequest::Whole | TaskRequest::Words(_) => None,
        }
    }

    /// A later command of the batch wrote to a partition that this one is about: run again, it would see what
    /// its client sent after it.
    fn is_followed_by_write(&self, command: usize) -> bool {
        let executed = self.operations.iter().filter(|it| it.command == command).map(|it| it.partition);
        let tasks = self.tasks.iter().filter(|it| it.command == command).map(|it| it.partition);
        executed.chain(tasks).any(|partition| self.is_written_after(command, partition))
    }

    /// May a later command have written to the partition?
    pub(super) fn is_written_after(&self, command: usize, partition: PartitionId) -> bool {
        let here = |it: &Operation| it.is_write && it.command > command && it.partition == partition;
        let elsewhere = |it: &Task| {
            it.command > command
                && it.partition == partition
                && it.state != TaskState::Pending
                && it.spec.flags.contains(Flags::WRITE)
        };
        self.operations.iter().any(here) || self.tasks.iter().any(elsewhere)
    }
}

/// Runs a request of Korum's own, wherever its partition is now; `None` if it could not be run in time.
///
/// Dropping it loses the reply, never a write.
pub(super) async fn repeat_internal(
    node: &Arc<Node>,
    partition: PartitionId,
    request: Bytes,
    caller: Caller,
    deadline: Tick,
) -> Option<Rope> {
    let mut batch = Batch::new(random());
    while node.clock().now() < deadline {
        batch.begin(node);
        batch.open(0..0, caller);
        everywhere::submit(&mut batch, node, &node.view(), partition, request.clone(), caller);
        batch.finish(node, &[], deadline).await;
        if batch.to_repeat().next().is_none() {
            let mut reply = Rope::new();
            batch.assemble(&mut reply, |_| None);
            return Some(reply);
        }
        node.changed_within(LOOK_AGAIN).await;
    }
    None
}
