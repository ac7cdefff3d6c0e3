//! What a batch waits for before it is answered.
//!
//! For: sending tasks to where they run, waiting once for acknowledgements and forwarded replies,
//! and running again what could not run yet, until nothing is open or the deadline has passed.
//! Not here: execution (`batch`), other nodes (`remote`), acknowledgements and leases (`settle`), reads that are
//! run once more (`repeat`).

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use korum_protocol::command::{Flags, key_positions};
use korum_protocol::id::NodeId;
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};

use super::batch::Batch;
use super::forwarded::is_unit;
use super::parts::{Failure, Into, Task, TaskRequest, TaskState};
use super::publish;
use super::route::Port;
use crate::env::Tick;
use crate::node::Node;

/// Longest pause before a batch looks again whether its tasks can run: changes wake it at once, this
/// only bounds what a missed one costs.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Batch {
    /// Waits for everything that the batch's replies depend on. `input` holds its requests.
    ///
    /// Dropping this loses the replies, never the writes.
    pub async fn finish(&mut self, node: &Arc<Node>, input: &[u8], deadline: Tick) {
        let published = std::mem::take(&mut self.published);
        if published.is_empty() {
            self.run_tasks(node, input, deadline).await;
        } else {
            let counts = if published.iter().all(|it| it.is_delivered) {
                tokio::join!(publish::spread(node, &published), self.run_tasks(node, input, deadline)).0
            } else {
                // What was published after a command that runs elsewhere.
                self.run_tasks(node, input, deadline).await;
                publish::spread(node, &published).await
            };
            self.count_receivers(&published, &counts);
        }
        self.hold_lease(node, deadline).await;
        self.tell(node);
    }

    /// Runs what is not done yet, and waits for what was done to be on every holder.
    async fn run_tasks(&mut self, node: &Arc<Node>, input: &[u8], deadline: Tick) {
        loop {
            self.confirm(node);
            let view = node.view();
            let sent = self.send(node, &view, input);
            self.settle(node, deadline).await;
            let mut has_progressed = false;
            for round in sent {
                has_progressed |= self.receive(node, round, deadline).await;
            }
            if !self.has_pending() {
                break;
            }
            if node.clock().now() >= deadline {
                self.give_up();
                break;
            }
            if !has_progressed {
                node.changed_within(LOOK_AGAIN).await;
            }
            self.run_pending(node, input);
        }
    }

    fn has_pending(&self) -> bool {
        self.tasks.iter().any(|task| task.state == TaskState::Pending)
    }

    pub(super) fn fail_task(&mut self, at: usize, failure: Failure) {
        let command = self.tasks[at].command;
        self.tasks[at].state = TaskState::Failed;
        self.commands[command].fail(failure);
    }

    /// A part of the command has, or may have, changed something: it cannot be called undone as a whole.
    fn has_written(&self, command: usize) -> bool {
        let is_write = |task: &Task| task.spec.flags.contains(Flags::WRITE);
        self.operations.iter().any(|it| it.command == command && it.is_write)
            || self
                .tasks
                .iter()
                .any(|it| it.command == command && is_write(it) && !matches!(it.state, TaskState::Pending))
    }

    fn give_up(&mut self) {
        for at in 0..self.tasks.len() {
            if self.tasks[at].state == TaskState::Pending {
                let command = self.tasks[at].command;
                let failure = if self.has_written(command) { Failure::Unknown } else { Failure::Down };
                self.fail_task(at, failure);
            }
        }
    }

    /// Runs pending tasks that this node may run by now, in order.
    fn run_pending(&mut self, node: &Node, input: &[u8]) {
        self.blocked.clear();
        self.look_at_clock(node);
        if self.run.is_some() && self.run != self.executed_by {
            // What an earlier run of this node has executed, the lease of this one does not vouch for.
            self.fail_operations();
        }
        let mut parser = RequestParser::new(RequestLimits::unlimited());
        let view = node.view();
        for at in 0..self.tasks.len() {
            let task = &self.tasks[at];
            if task.state != TaskState::Pending {
                continue;
            }
            let (command, partition, spec) = (task.command, task.partition, task.spec);
            let caller = self.commands[command].caller;
            let primary = view.row(partition).primary;
            match primary {
                Some(primary) if primary != node.id() && caller.port == Port::Client => continue,
                Some(_) => {}
                None => {
                    self.fail_task(at, Failure::Down);
                    continue;
                }
            }
            let (part, words);
            let args = match &task.request {
                TaskRequest::Words(ranges) => {
                    words = ranges.clone();
                    Args::new(input, &words)
                }
                request => {
                    let bytes = match request {
                        TaskRequest::Part(bytes) => {
                            part = bytes.clone();
                            &part[..]
                        }
                        TaskRequest::Whole | TaskRequest::Words(_) => {
                            &input[self.commands[command].request.clone()]
                        }
                    };
                    if !matches!(parser.parse(bytes), Ok(Parsed::Request { .. })) {
                        unreachable!("a task's request was parsed or encoded before");
                    }
                    parser.args(bytes)
                }
            };
            if let Some(primary) = primary.filter(|&primary| primary != node.id()) {
                self.redirect(node, &view, at, &args, primary);
                continue;
            }
            self.scratch.clear();
            if self.execute_for(node, command, partition, spec, &args, caller, Into::Scratch) {
                let reply = std::mem::take(&mut self.scratch);
                self.tasks[at].state = TaskState::Done(reply);
            }
        }
    }

    /// Answers a task of the cluster port with the redirection to the partition's new primary.
    fn redirect(&mut self, node: &Node, view: &View, at: usize, args: &Args<'_>, primary: NodeId) {
        let spec = self.tasks[at].spec;
        let key = key_positions(spec, args).ok().and_then(|mut keys| keys.next());
        let named = || std::str::from_utf8(args.get(2)?).ok()?.parse().ok();
        let slot = match key {
            Some(key) => slot_of(&args[key]),
            None if is_unit(spec.id) => named().unwrap_or_default(),
            None => 0,
        };
        let mut reply = BytesMut::new();
        ReplyWriter::new(&mut reply, ProtocolVersion::Resp2).error(&node.moved(view, slot, primary));
        self.tasks[at].state = TaskState::Done(reply[..].into());
    }
}
