//! What a batch waits for before it is answered.
//!
//! For: sending tasks to where they run, waiting once for acknowledgements and forwarded replies,
//! and running again what could not run yet, until nothing is open or the deadline has passed.
//! Not here: execution (`batch`), the connection to other nodes (`net::forward`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{Flags, key_positions, resolve};
use korum_protocol::id::NodeId;
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::map::{PartitionId, View};
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::encode_header;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use korum_protocol::rope::{HELD_BYTES_MIN, Rope};

use super::batch::{Batch, is_unit};
use super::caller::Caller;
use super::everywhere;
use super::parts::{Failure, Into, Operation, Task, TaskRequest, TaskState};
use super::publish;
use super::route::Port;
use crate::admin::stats::Counter;
use crate::env::Tick;
use crate::env::mistake::{Mistake, makes};
use crate::env::random::random;
use crate::env::witness::{self, Answered};
use crate::executor::worker_number;
use crate::net::forward::{Answer, FRAME_BYTES, ForwardError, Pending, REQUEST_HEADER_BYTES};
use crate::node::Node;
use crate::replication::primary::{Settlement, Waits};
use crate::store::partition::Role;

/// Longest pause before a batch looks again whether its tasks can run: changes wake it at once, this
/// only bounds what a missed one costs.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Bytes of replies from other nodes that one batch holds, two of the longest; what comes after is replaced by an error.
const TASK_BYTES_MAX: usize = 2 * BULK_BYTES_MAX;
const TOO_MUCH: &[u8] = b"-ERR the replies are too large; ask for less at a time\r\n";

/// What was sent to one node in one round.
struct Sent {
    tasks: Vec<usize>,
    pending: Pending,
}

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

    /// Nothing to wait for: what was executed is on every holder, and the lease still holds.
    #[must_use]
    pub fn is_settled(&self, node: &Node) -> bool {
        let is_settled = self.waits.are_acknowledged() && self.run.is_some() && self.is_leased(node);
        if is_settled {
            self.tell(node);
        }
        is_settled
    }

    /// Waits for the acknowledgements of a batch that another node forwarded; what could not run here
    /// stays undone.
    pub async fn settle_forwarded(&mut self, node: &Node, deadline: Tick) {
        self.confirm(node);
        self.settle(node, deadline).await;
        self.hold_lease(node, deadline).await;
        self.tell(node);
    }

    /// Tells a simulation what is answered.
    fn tell(&self, node: &Node) {
        witness::answers(|| {
            let is_leased = self.is_leased(node) || node.is_leaving() && self.is_confirmed;
            let is_answered = |it: &&Operation| {
                let command = &self.commands[it.command];
                command.failure.is_none() && command.caller.is_strong
            };
            self.operations.iter().filter(is_answered).map(move |it| Answered {
                node: node.id(),
                partition: it.partition,
                position: it.position,
                is_leased,
            })
        });
    }

    /// To be called without a pause after operations were executed: was the lease still valid then?
    fn confirm(&mut self, node: &Node) {
        self.is_confirmed |= self.is_leased(node);
    }

    /// The run that executed the batch may serve at this moment.
    fn is_leased(&self, node: &Node) -> bool {
        self.operations.is_empty() || node.leased_run() == self.executed_by
    }

    /// Waits until the lease under which the batch was executed is valid, as it nearly always is. A process that
    /// was stopped in between, perhaps for long, must not hand out what it read, and a write to an only copy may
    /// be on no copy any more.
    ///
    /// A lease that ran out and was granted again to the same run vouches for everything in between: nobody else
    /// can have served what this run is primary of without the run having been marked down. A lease of a later
    /// run says nothing about what an earlier one has executed.
    ///
    /// A node that leaves gave its lease back itself. What it had executed by then, under a lease that was valid
    /// afterwards, stands in front of whatever its successors execute, and is answered.
    async fn hold_lease(&mut self, node: &Node, deadline: Tick) {
        while !self.is_leased(node) && !makes(Mistake::LeaseNotRechecked) {
            if node.is_leaving() && self.is_confirmed {
                return;
            }
            let may_return = self.executed_by.is_some_and(|run| node.may_be_leased_again(run));
            if !may_return || node.clock().now() >= deadline {
                return self.fail_operations();
            }
            node.changed_within(LOOK_AGAIN).await;
        }
    }

    fn fail_operations(&mut self) {
        (0..self.operations.len()).for_each(|at| self.fail_operation(at));
    }

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
                batch.set_source(self.source.clone());
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
    fn is_written_after(&self, command: usize, partition: PartitionId) -> bool {
        let here = |it: &Operation| it.is_write && it.command > command && it.partition == partition;
        let elsewhere = |it: &Task| {
            it.command > command
                && it.partition == partition
                && it.state != TaskState::Pending
                && it.spec.flags.contains(Flags::WRITE)
        };
        self.operations.iter().any(here) || self.tasks.iter().any(elsewhere)
    }

    fn has_pending(&self) -> bool {
        self.tasks.iter().any(|task| task.state == TaskState::Pending)
    }

    /// Sends every pending task whose partition is another node's: in frames that are not cut, which arrive in the
    /// order in which they are sent, or alone, if it is longer than such a frame. What comes after a long one waits
    /// for the next round.
    fn send(&mut self, node: &Node, view: &View, input: &[u8]) -> Vec<Sent> {
        let mut frames: Vec<(NodeId, u8, Rope, Vec<usize>)> = Vec::new();
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
            let is_open = |frame: &&mut (NodeId, u8, Rope, Vec<usize>)| frame.0 == target;
            let last = frames.iter_mut().rev().find(is_open);
            let fits = last.is_some_and(|frame| frame.1 == caller.to_byte() && frame.2.len() + size <= room);
            if !fits {
                frames.push((target, caller.to_byte(), Rope::new(), Vec::new()));
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
                    out.push(self.source.lend(request));
                }
            }
            TaskRequest::Part(part) => out.push(part.clone()),
            TaskRequest::Words(words) => {
                encode_header(b'*', words.len(), out.copied_mut());
                for word in words {
                    encode_header(b'$', word.len(), out.copied_mut());
                    out.push(self.source.lend(&input[word.clone()]));
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
    }

    /// Takes the answers of one round. True if any command was executed.
    async fn receive(&mut self, node: &Node, round: Sent, deadline: Tick) -> bool {
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

    fn fail_task(&mut self, at: usize, failure: Failure) {
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

    /// Waits until what was executed here is on every holder.
    async fn settle(&mut self, node: &Node, deadline: Tick) {
        if self.waits.is_empty() {
            return;
        }
        let left = deadline.since(node.clock().now());
        let waits = std::mem::take(&mut self.waits);
        if tokio::time::timeout(left, waits.all()).await == Ok(true) {
            return;
        }
        // A link broke or a copy is no longer asked for: what is missing now, partition by partition.
        for at in 0..self.operations.len() {
            self.settle_operation(node, at, &waits, deadline).await;
        }
    }

    /// `asked`: what the whole batch waited for when it was executed.
    async fn settle_operation(&mut self, node: &Node, at: usize, asked: &Waits, deadline: Tick) {
        loop {
            let operation = &self.operations[at];
            if !self.commands[operation.command].caller.is_strong {
                return;
            }
            let mut waits = Waits::default();
            let settlement = match &node.store().lock(operation.partition).role {
                Role::Primary(primary) if primary.era == operation.position.era => {
                    Some(primary.settlement(&mut waits))
                }
                Role::Primary(_) | Role::Replica { .. } | Role::Target { .. } | Role::Absent => None,
            };
            let left = deadline.since(node.clock().now());
            let Some(settlement) = settlement else {
                // Handed over, most likely: what all copies have that had to then, whoever is primary now has too.
                if tokio::time::timeout(left, asked.acknowledged()).await != Ok(true) {
                    self.fail_operation(at);
                }
                return;
            };
            if settlement == Settlement::Done {
                return;
            }
            if left.is_zero() {
                return self.fail_operation(at);
            }
            if settlement == Settlement::Acknowledgements {
                let _ = tokio::time::timeout(left, waits.all()).await;
            } else {
                node.changed_within(LOOK_AGAIN.min(left)).await;
            }
        }
    }

    fn fail_operation(&mut self, at: usize) {
        let operation = &self.operations[at];
        let failure = if operation.is_write { Failure::Unknown } else { Failure::Again };
        self.commands[operation.command].fail(failure);
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

impl super::parts::CommandReply {
    /// A failure that may hide a write outweighs one that does not.
    fn fail(&mut self, failure: Failure) {
        if self.failure != Some(Failure::Unknown) {
            self.failure = Some(failure);
        }
    }
}
