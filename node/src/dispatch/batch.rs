//! The commands of one read buffer, executed together and answered in order.
//!
//! For: running what can run here at once, without an await and without an allocation for a command;
//! remembering what has to run elsewhere or later as tasks.
//! Not here: waiting (`finish`), putting the answer together (`assemble`), splitting (`split`), what other nodes send
//! (`forwarded`).
//!
//! A command's reply stands in `out` from its start to the next command's start. A task's reply is
//! put in at the task's place, or combined with the others of its command.

use std::ops::Range;

use korum_protocol::command::{CommandSpec, Flags, key_positions};
use korum_protocol::id::{Incarnation, Position};
use korum_protocol::limits::KEY_BYTES_MAX;
use korum_protocol::map::{PartitionId, View};
use korum_protocol::peer::piece::PIECE_BYTES;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use korum_protocol::rope::Rope;
use rand::RngExt;

use super::blocking::park::{self, Ground, Outcome, Parking};
use super::caller::Caller;
use super::means::Means;
use super::parts::{Combine, CommandReply, Counted, Failure, Into, Operation, Task, TaskRequest, TaskState};
use super::publish::{self, Published};
use super::route::{NOT_SERVED, Port, Route, route};
use super::{execute, functions, split, track};
use crate::admin::stats::Counter;
use crate::command::{Call, Looks, Names, key};
use crate::env::random::Random;
use crate::executor::worker_number;
use crate::node::Node;
use crate::replication::effect::Effects;
use crate::replication::primary::{Admission, Waits};
use crate::store::partition::Role;
use crate::store::{Keyspace, Source};

pub(super) const KEY_TOO_LONG: &str = "ERR the key is too long; keys have at most 16 MB";

/// The state of one batch; reused, so that its buffers stay.
pub struct Batch {
    pub(super) out: Rope,
    pub(super) commands: Vec<CommandReply>,
    pub(super) tasks: Vec<Task>,
    pub(super) operations: Vec<Operation>,
    /// What was published and is not everywhere yet.
    pub(super) published: Vec<Published>,
    pub(super) waits: Waits,
    /// Partitions with a command that could not run yet: later commands on them wait behind it.
    pub(super) blocked: Vec<PartitionId>,
    pub(super) scratch: Rope,
    /// Bytes of the replies of tasks so far.
    pub(super) task_bytes: usize,
    /// The command that is run next waits if it finds nothing.
    pub(super) parking: Option<Parking>,
    /// What came of that.
    pub(super) parked: Option<Outcome>,
    /// What it lends to the commands that it runs.
    pub(super) means: Means,
    effects: Effects,
    /// A command asked for the weaker promise.
    has_async: bool,
    /// Which run of this node may serve, at the last look at the clock.
    pub(super) run: Option<Incarnation>,
    /// Under whose lease the last operation was executed.
    pub(super) executed_by: Option<Incarnation>,
    /// The lease was still valid after the last operation had been executed.
    pub(super) is_confirmed: bool,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new(random: Random) -> Self {
        Self {
            out: Rope::new(),
            commands: Vec::new(),
            tasks: Vec::new(),
            operations: Vec::new(),
            published: Vec::new(),
            waits: Waits::default(),
            blocked: Vec::new(),
            scratch: Rope::new(),
            task_bytes: 0,
            parking: None,
            parked: None,
            means: Means { now_ms: 0, random, looks: Looks::default(), source: Source::none() },
            effects: Effects::default(),
            has_async: false,
            run: None,
            executed_by: None,
            is_confirmed: false,
        }
    }

    /// Forgets the last batch and reads the clock for the next.
    pub fn begin(&mut self, node: &Node) {
        self.out.clear();
        self.commands.clear();
        self.tasks.clear();
        self.operations.clear();
        self.published.clear();
        self.waits.clear();
        self.blocked.clear();
        self.task_bytes = 0;
        self.has_async = false;
        self.executed_by = None;
        self.look_at_clock(node);
    }

    /// Reads wall clock and lease anew.
    pub(super) fn look_at_clock(&mut self, node: &Node) {
        self.means.now_ms = node.clock().wall_ms();
        self.run = node.leased_run().filter(|_| !node.is_leaving());
        self.effects.notices.want(node.live.notify_classes());
    }

    /// Frees what a large batch has left, before a connection falls silent.
    pub fn give_back_buffers(&mut self) {
        self.out = Rope::new();
        self.scratch = Rope::new();
        self.commands = Vec::new();
        self.tasks = Vec::new();
        self.operations = Vec::new();
        self.published = Vec::new();
    }

    /// Tells, after [`Self::begin`], what the requests of the batch are parts of.
    pub fn set_source(&mut self, source: Source) {
        self.means.source = source;
    }

    /// Number of tasks so far.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.tasks.len()
    }

    /// Something does not run here, or not yet.
    #[must_use]
    pub fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Number of commands taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// No command yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// A number below `bound`.
    pub(super) fn random_below(&mut self, bound: usize) -> usize {
        self.means.random.random_range(0..bound)
    }

    /// Bytes of replies so far.
    #[must_use]
    pub fn reply_bytes(&self) -> usize {
        self.out.len()
    }

    /// Opens the next command, whose request stands at `request` in the batch's input.
    pub fn open(&mut self, request: Range<usize>, caller: Caller) {
        let start = self.out.mark();
        self.has_async |= !caller.is_strong;
        self.commands.push(CommandReply {
            start,
            request,
            caller,
            combine: Combine::InPlace,
            failure: None,
            is_muted: false,
            counted: Counted::Nothing,
        });
    }

    /// Throws the reply of the command that was opened last away.
    pub fn mute(&mut self) {
        self.last().is_muted = true;
    }

    /// The partitions that commands with the weaker promise may have written to, here or elsewhere.
    pub fn written_async(&self) -> impl Iterator<Item = PartitionId> {
        let is_async = |command: usize| !self.commands[command].caller.is_strong;
        let here = self.operations.iter().filter(move |it| it.is_write && is_async(it.command));
        let writes = |task: &&Task| task.spec.flags.contains(Flags::WRITE);
        let elsewhere = self.tasks.iter().filter(writes).filter(move |task| is_async(task.command));
        let all = here.map(|it| it.partition).chain(elsewhere.map(|task| task.partition));
        all.take(if self.has_async { usize::MAX } else { 0 })
    }

    /// Tells the node's counters what was looked up.
    pub fn count_looks(&mut self, node: &Node) {
        let (hits, misses) = self.means.looks.take();
        if hits | misses > 0 {
            let stats = node.stats.of(worker_number());
            stats.add(Counter::Hits, hits);
            stats.add(Counter::Misses, misses);
        }
        self.means.looks.count_parts(&node.stats.of(worker_number()).commands);
    }

    /// A writer for the reply of the command that was opened last.
    pub fn reply(&mut self, version: ProtocolVersion) -> ReplyWriter<'_> {
        ReplyWriter::holding(&mut self.out, version)
    }

    /// Runs the opened command if it is about keys. False if it is not.
    pub fn run(
        &mut self,
        node: &Node,
        view: &View,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        caller: Caller,
    ) -> bool {
        if spec.first_key == 1 && spec.last_key == 1 && !spec.flags.contains(Flags::MOVABLEKEYS) {
            if args[1].len() > KEY_BYTES_MAX {
                self.reply(caller.version).error(KEY_TOO_LONG);
                return true;
            }
            let slot = slot_of(&args[1]);
            self.place(node, view, spec, args, caller, [slot]);
            return true;
        }
        if key::is_debug_object(spec, args) {
            self.place(node, view, spec, args, caller, [slot_of(&args[2])]);
            return true;
        }
        let Ok(keys) = key_positions(spec, args) else {
            self.refuse(node, spec, args, caller);
            return true;
        };
        if keys.clone().next().is_none() {
            let needs_keys = !spec.keys.is_empty() && !spec.flags.contains(Flags::NO_MANDATORY_KEYS);
            if needs_keys {
                self.refuse(node, spec, args, caller);
            }
            return needs_keys;
        }
        if keys.clone().any(|at| args[at].len() > KEY_BYTES_MAX) {
            self.reply(caller.version).error(KEY_TOO_LONG);
            return true;
        }
        let slots = keys.map(|at| slot_of(&args[at]));
        let is_split = caller.port == Port::Client
            && spec.flags.contains(Flags::SPLIT)
            && matches!(route(view, node.id(), caller.port, slots.clone()), Route::CrossSlot);
        if is_split {
            split::split(self, node, view, spec, args, caller);
        } else {
            self.place(node, view, spec, args, caller, slots);
        }
        true
    }

    /// Answers a command whose keys cannot be found, in its own words: run on no keys at all, it comes upon what is
    /// wrong with its arguments.
    fn refuse(&mut self, node: &Node, spec: &'static CommandSpec, args: &Args<'_>, caller: Caller) {
        let start = self.out.mark();
        self.run_apart(node, args, caller, |call| execute::run(spec.id, call));
        if self.out.copied_since(start).first() != Some(&b'-') {
            self.out.truncate(start);
            self.reply(caller.version).error("ERR Invalid arguments specified for command");
        }
    }

    /// Runs the opened command where its slots are.
    fn place(
        &mut self,
        node: &Node,
        view: &View,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        caller: Caller,
        slots: impl IntoIterator<Item = u16>,
    ) {
        match route(view, node.id(), caller.port, slots) {
            Route::Here(partition) => {
                if !self.execute(node, partition, spec, args, caller, Into::Out) {
                    self.postpone(spec, partition, TaskRequest::Whole, false);
                }
            }
            Route::Forward(_, partition) => self.postpone(spec, partition, TaskRequest::Whole, false),
            Route::Elsewhere => {
                self.last().failure = Some(Failure::Again);
            }
            Route::Moved(slot, _)
                if self.read_copy(node, view.partition_of_slot(slot), spec, args, caller) => {}
            Route::Moved(slot, primary) => {
                let text = node.moved(view, slot, primary);
                self.reply(caller.version).error(&text);
            }
            Route::CrossSlot => {
                self.reply(caller.version).error("CROSSSLOT Keys in request don't hash to the same slot")
            }
            Route::Down(_) => self.reply(caller.version).error(NOT_SERVED),
        }
    }

    /// Runs a command that only reads on this node's copy of a partition of another primary, for a caller who
    /// takes what may be a little older. False, with nothing done, when that is not possible.
    fn read_copy(
        &mut self,
        node: &Node,
        id: PartitionId,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        caller: Caller,
    ) -> bool {
        if !caller.reads_copies || self.run.is_none() || !spec.flags.contains(Flags::READONLY) {
            return false;
        }
        let mut partition = node.store().lock(id);
        if !matches!(partition.role, Role::Replica { .. }) {
            return false;
        }
        self.means.looks.prepare(spec, caller.marks_access);
        let names = Names::of(&partition.keyspace.databases, caller);
        let (effects, reply) =
            (&mut Effects::read_only(), ReplyWriter::holding(&mut self.out, caller.version));
        let mut call = self.means.call(node, *args, &names, &mut partition.keyspace, effects, reply);
        execute::run(spec.id, &mut call);
        true
    }

    pub(super) fn last(&mut self) -> &mut CommandReply {
        self.commands.last_mut().expect("a command was opened")
    }

    /// The command opened last is not run: its sender is to try again.
    pub fn hand_back(&mut self) {
        self.last().failure = Some(Failure::Again);
    }

    /// Leaves a place for the reply of something that cannot run here and now.
    pub(super) fn postpone(
        &mut self,
        spec: &'static CommandSpec,
        partition: PartitionId,
        request: TaskRequest,
        is_element: bool,
    ) {
        let (command, at) = (self.commands.len() - 1, self.out.mark());
        let state = TaskState::Pending;
        self.tasks.push(Task { command, at, is_element, request, spec, partition, state });
    }

    /// What was postponed last has run already: its reply is in `scratch`.
    pub(super) fn answer_last(&mut self) {
        let reply = std::mem::take(&mut self.scratch);
        if let Some(task) = self.tasks.last_mut() {
            task.state = TaskState::Done(reply);
        }
    }

    /// Runs a command on a partition of this node, for the command opened last; false, with nothing
    /// done, if it cannot run now. Later commands on the partition then wait behind it.
    pub(super) fn execute(
        &mut self,
        node: &Node,
        partition: PartitionId,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        caller: Caller,
        into: Into,
    ) -> bool {
        let command = self.commands.len() - 1;
        self.execute_for(node, command, partition, spec, args, caller, into)
    }

    /// The same, for any command of the batch.
    #[expect(clippy::too_many_arguments, reason = "the one place where a command meets its partition")]
    pub(super) fn execute_for(
        &mut self,
        node: &Node,
        command: usize,
        id: PartitionId,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        caller: Caller,
        into: Into,
    ) -> bool {
        if self.run.is_none() || (!self.blocked.is_empty() && self.blocked.contains(&id)) {
            self.block(id);
            return false;
        }
        if functions::must_wait(node, spec, args) {
            self.block(id);
            return false;
        }
        let is_write = spec.flags.contains(Flags::WRITE);
        let mut guard = node.store().lock(id);
        let partition = &mut *guard;
        // What it writes may be as large as what it was given.
        let is_large = is_write && args.bytes() >= PIECE_BYTES;
        let admitted = match &mut partition.role {
            Role::Primary(primary) if primary.admits(true) == Admission::Ready => {
                (!is_large || primary.admits_large()).then_some((primary, false))
            }
            // While a copy is away nothing may change: what has expired stays hidden only where all remove it, so
            // whoever may meet it waits.
            Role::Primary(primary) if !is_write && primary.admits(false) == Admission::Ready => {
                let is_due = partition.keyspace.next_deadline().is_some_and(|due| self.means.now_ms > due);
                (!is_due).then_some((primary, true))
            }
            Role::Primary(_) | Role::Replica { .. } | Role::Target { .. } | Role::Absent => None,
        };
        let Some((primary, is_read_only)) = admitted else {
            drop(guard);
            self.block(id);
            return false;
        };
        let parking = self.parking.take();
        if park::was_served(parking.as_ref(), primary, &partition.keyspace) {
            self.parked = Some(Outcome::ServedBefore);
            return true;
        }
        self.effects.clear();
        self.effects.set_recording(primary.is_followed());
        self.effects.set_read_only(is_read_only);
        self.effects.notices.track(node.clients.tracker.is_wanted());
        self.means.looks.prepare(spec, caller.marks_access);
        let out = match into {
            Into::Out => &mut self.out,
            Into::Scratch => &mut self.scratch,
        };
        let start = out.mark();
        let reply = ReplyWriter::holding(out, caller.version);
        let names = Names::of(&partition.keyspace.databases, caller);
        let mut call =
            self.means.call(node, *args, &names, &mut partition.keyspace, &mut self.effects, reply);
        execute::run_on(spec.id, &mut call, &mut partition.history);
        if let Some(parking) = parking {
            let (keyspace, now_ms) = (&mut partition.keyspace, self.means.now_ms);
            if park::is_nothing(out.copied_since(start)) {
                self.parked = Some(parking.park(id, primary, keyspace, spec, args, caller, now_ms));
            } else {
                parking.note_served(spec, args, &names, keyspace, &mut self.effects);
            }
        }
        let has_effects = self.effects.count() > 0;
        let mut waited = Vec::new();
        if is_write && has_effects && !primary.waiting.is_empty() {
            let mut ground = Ground {
                keyspace: &mut partition.keyspace,
                now_ms: self.means.now_ms,
                random: &mut self.means.random,
                effects: &mut self.effects,
                looks: &mut self.means.looks,
                scripts: &node.scripts,
            };
            waited = park::run_waiting(primary, &mut ground);
        }
        if has_effects {
            primary.replicate(id, &mut partition.history, &mut partition.keyspace, &self.effects);
        }
        // Under the lock, so that what happens to a key is told in its order.
        publish::announce(node, &mut self.effects, &partition.keyspace.databases);
        // Those who waited have changed something too, and are others.
        track::announce(node, &mut self.effects, caller.spared.filter(|_| waited.is_empty()));
        // A read that only removed what had expired may be done again.
        let is_write = is_write && has_effects;
        if caller.is_strong {
            primary.settlement(&mut self.waits);
        }
        let position = Position { era: primary.era, sequence: partition.history.sequence() };
        self.operations.push(Operation { command, partition: id, position, is_write });
        waited.into_iter().for_each(|one| one.answer(primary, position, self.run));
        (self.executed_by, self.is_confirmed) = (self.run, false);
        drop(guard);
        node.discard(self.effects.take_garbage());
        true
    }

    /// Runs something that is about no keys for the opened command, here: in place of a partition it gets an empty one.
    pub(super) fn run_apart(
        &mut self,
        node: &Node,
        args: &Args<'_>,
        caller: Caller,
        run: impl FnOnce(&mut Call<'_>),
    ) {
        let (mut keyspace, mut effects) = (Keyspace::new(0), Effects::new(false));
        let reply = ReplyWriter::holding(&mut self.out, caller.version);
        let databases = node.databases();
        let names = Names::of(&databases, caller);
        run(&mut self.means.call(node, *args, &names, &mut keyspace, &mut effects, reply));
        publish::announce(node, &mut effects, &databases);
    }

    fn block(&mut self, id: PartitionId) {
        if !self.blocked.contains(&id) {
            self.blocked.push(id);
        }
    }
}
