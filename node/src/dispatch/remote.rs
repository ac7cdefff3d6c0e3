//! A batch's tasks on other nodes.
//!
//! For: which tasks go to which node, in which frames, and what their answers mean.
//! Not here: the connection to other nodes (`net::forward`), when that is done (`finish`).

use korum_protocol::command::Flags;
use korum_protocol::id::NodeId;
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::map::View;
use korum_protocol::resp::decode::encode_header;
use korum_protocol::rope::{HELD_BYTES_MIN, Rope};

use super::batch::Batch;
use super::caller::CALLER_BYTES;
use super::finish::LOOK_AGAIN;
use super::parts::{Failure, TaskRequest, TaskState};
use super::route::Port;
use crate::admin::stats::Counter;
use crate::env::Tick;
use crate::executor::worker_number;
use crate::net::forward::{Answer, FRAME_BYTES, ForwardError, Pending, REQUEST_HEADER_BYTES};
use crate::node::Node;

/// Bytes of replies from other nodes that one batch holds, two of the longest; what comes after is replaced by an error.
const TASK_BYTES_MAX: usize = 2 * BULK_BYTES_MAX;
const TOO_MUCH: &[u8] = b"-ERR the replies are too large; ask for less at a time\r\n";

/// What was sent to one node in one round.
pub(super) struct Sent {
    tasks: Vec<usize>,
    pending: Pending,
}

impl Batch {
    /// Sends every pending task whose partition is another node's: in frames that are not cut, which arrive in the
    /// order in which they are sent, or alone, if it is longer than such a frame. What comes after a long one waits
    /// for the next round.
    pub(super) fn send(&mut self, node: &Node, view: &View, input: &[u8]) -> Vec<Sent> {
        let mut frames: Vec<(NodeId, [u8; CALLER_BYTES], Rope, Vec<usize>)> = Vec::new();
        let mut full: Vec<NodeId> = Vec::new();
        for at in 0..self.tasks.len() {
            let task = &self.tasks[at];
            let caller = self.commands[task.command].caller;
            let target = view.row(task.partition).primary.filter(|&primary| primary != node.id());
            let (TaskState::Pending, Port::Client, Some(target)) = (&task.state, caller.port, target) else {
                continue;
            };
            if full.contains(&target) {
                continue;
            }
            let room = FRAME_BYTES - REQUEST_HEADER_BYTES;
            let size = self.request_bytes(at);
            let has_begun = frames.iter().any(|frame| frame.0 == target);
            if size > room && has_begun {
                full.push(target);
                continue;
            }
            let is_open = |frame: &&mut (NodeId, [u8; CALLER_BYTES], Rope, Vec<usize>)| frame.0 == target;
            let last = frames.iter_mut().rev().find(is_open);
            let fits = last.is_some_and(|frame| frame.1 == caller.to_bytes() && frame.2.len() + size <= room);
            if !fits {
                frames.push((target, caller.to_bytes(), Rope::new(), Vec::new()));
            }
            let frame = frames.iter_mut().rev().find(is_open).expect("one was just added if there was none");
            self.encode_task(at, input, &mut frame.2);
            frame.3.push(at);
            if size > room {
                full.push(target);
            }
        }
        let mut sent = Vec::with_capacity(frames.len());
        for (target, caller, requests, tasks) in frames {
            for &at in &tasks {
                self.tasks[at].state = TaskState::Sent;
            }
            node.stats.of(worker_number()).add(Counter::Forwarded, tasks.len() as u64);
            let pending = node.forwards().send(target, caller, &requests, tasks.len());
            sent.push(Sent { tasks, pending });
        }
        sent
    }

    /// Bytes of a task's request, or a few more.
    fn request_bytes(&self, at: usize) -> usize {
        let task = &self.tasks[at];
        match &task.request {
            TaskRequest::Whole => self.commands[task.command].request.len(),
            TaskRequest::Part(part) => part.len(),
            TaskRequest::Words(words) => words.iter().map(|word| word.len() + 16).sum::<usize>() + 16,
        }
    }

    /// Appends a task's request; long strings that may be lent are not copied.
    fn encode_task(&self, at: usize, input: &[u8], out: &mut Rope) {
        let task = &self.tasks[at];
        match &task.request {
            TaskRequest::Whole => {
                let request = &input[self.commands[task.command].request.clone()];
                if request.len() < HELD_BYTES_MIN {
                    out.extend_from_slice(request);
                } else {
                    out.push(self.means.source.lend(request));
                }
            }
            TaskRequest::Part(part) => out.push(part.clone()),
            TaskRequest::Words(words) => {
                encode_header(b'*', words.len(), out.copied_mut());
                for word in words {
                    encode_header(b'$', word.len(), out.copied_mut());
                    out.push(self.means.source.lend(&input[word.clone()]));
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }

    /// Takes the answers of one round. True if any command was executed.
    pub(super) async fn receive(&mut self, node: &Node, round: Sent, deadline: Tick) -> bool {
        let left = deadline.since(node.clock().now()) + LOOK_AGAIN;
        let outcome = tokio::time::timeout(left, round.pending.wait()).await;
        let outcome = outcome.unwrap_or(Err(ForwardError::Unknown));
        let mut answers = match outcome {
            Ok(answers) => answers.into_iter(),
            Err(error) => {
                for &at in &round.tasks {
                    let is_repeatable = self.tasks[at].spec.flags.contains(Flags::READONLY);
                    if error == ForwardError::NotSent || is_repeatable {
                        self.tasks[at].state = TaskState::Pending;
                    } else {
                        self.fail_task(at, Failure::Unknown);
                    }
                }
                self.give_up_overtaken(&round.tasks);
                return false;
            }
        };
        let mut has_progressed = false;
        for &at in &round.tasks {
            match answers.next() {
                Some(Answer::Reply(reply)) => {
                    has_progressed = true;
                    self.task_bytes += reply.len();
                    let fits = self.task_bytes <= TASK_BYTES_MAX;
                    self.tasks[at].state = TaskState::Done(if fits { reply } else { TOO_MUCH.into() });
                }
                Some(Answer::NotExecuted) => self.tasks[at].state = TaskState::Pending,
                Some(Answer::Unknown) | None => self.fail_task(at, Failure::Unknown),
            }
        }
        self.give_up_overtaken(&round.tasks);
        has_progressed
    }

    /// Sent again, a read would see what a later command of its own connection has written.
    fn give_up_overtaken(&mut self, tasks: &[usize]) {
        for &at in tasks {
            let task = &self.tasks[at];
            if task.state == TaskState::Pending && self.is_written_after(task.command, task.partition) {
                self.fail_task(at, Failure::Down);
            }
        }
    }
}
