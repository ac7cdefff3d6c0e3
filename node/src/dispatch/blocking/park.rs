//! Waiting at a partition's primary, under its lock.
//!
//! For: parking a command that found nothing, and running it again when something comes, in the order in which such
//! commands came, as a part of the step that brought it: so nobody comes in between.
//! Not here: the way of the reply (`blocking`), the order itself (`store::waiting`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use korum_protocol::command::{CommandId, CommandSpec, Flags, key_positions};
use korum_protocol::id::{Incarnation, Position};
use korum_protocol::map::PartitionId;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::resp::{Args, ReplyWriter};
use korum_protocol::rope::Rope;
use tokio::sync::oneshot;

use super::super::caller::Caller;
use super::super::execute;
use crate::command::blocking::{READY_KEYS, block_option, ready_for};
use crate::command::stream::fixed_request;
use crate::command::{Call, Looks, Names};
use crate::env::random::Random;
use crate::replication::effect::{Effect, Effects};
use crate::replication::primary::{Primary, Waits};
use crate::script::Scripts;
use crate::store::served::Token;
use crate::store::waiting::{Ticket, Wanted};
use crate::store::{HashPosition, Keyspace, Source};

/// Commands that wait on this node, for its own clients and for those of others.
const PARKED_MAX: usize = 1 << 16;
/// Bytes of their requests.
const PARKED_BYTES_MAX: usize = 256 << 20;
/// Keys that one command may wait for.
const KEYS_MAX: usize = 1 << 16;

/// What a command waits for; `None` for one that does not wait.
#[must_use]
pub fn wanted(id: CommandId, args: &Args<'_>) -> Option<Wanted> {
    match id {
        CommandId::BlPop
        | CommandId::BrPop
        | CommandId::BlMove
        | CommandId::BrPopLPush
        | CommandId::BlMPop => Some(Wanted::ListItem),
        CommandId::BzPopMin | CommandId::BzPopMax | CommandId::BzMPop => Some(Wanted::Member),
        CommandId::XRead => block_option(args).map(|_| Wanted::Entry),
        CommandId::XReadGroup => block_option(args).map(|_| Wanted::GroupEntry),
        CommandId::KorumReady => ready_for(args),
        _ => None,
    }
}

/// Where the keys of a command that waits stand.
fn keys_of(spec: &CommandSpec, args: &Args<'_>) -> Option<impl Iterator<Item = usize> + use<>> {
    let is_watcher = spec.id == CommandId::KorumReady;
    let watched = is_watcher.then_some(READY_KEYS..args.len()).into_iter().flatten();
    let keys = if is_watcher { None } else { Some(key_positions(spec, args).ok()?) };
    Some(watched.chain(keys.into_iter().flatten()))
}

/// How many commands wait on a node.
#[derive(Default, Debug)]
pub struct Gauge {
    commands: AtomicUsize,
    bytes: AtomicUsize,
}

/// A part of what a gauge shows; dropping it gives it back.
#[derive(Debug)]
struct Share {
    gauge: Arc<Gauge>,
    bytes: usize,
}

impl Gauge {
    fn take(self: &Arc<Self>, bytes: usize) -> Option<Share> {
        self.commands.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        let share = Share { gauge: Arc::clone(self), bytes };
        let fits = self.commands.load(Relaxed) <= PARKED_MAX && self.bytes.load(Relaxed) <= PARKED_BYTES_MAX;
        fits.then_some(share)
    }

    /// Commands that wait.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.commands.load(Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.gauge.commands.fetch_sub(1, Relaxed);
        self.gauge.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// A command that is to wait if it finds nothing.
pub struct Parking {
    /// The whole request; it is kept while the command waits.
    pub request: Bytes,
    /// Of a client of another node: which command it is, and whether it has waited on a connection that broke.
    pub token: Option<(Token, bool)>,
    /// Where it is counted.
    pub gauge: Arc<Gauge>,
}

/// A command that waits. Dropping it hands it back: it was not executed.
pub struct Waiter {
    spec: &'static CommandSpec,
    request: Bytes,
    caller: Caller,
    token: Option<Token>,
    sender: oneshot::Sender<Answered>,
    _share: Share,
}

/// What a command that waited has done, to be settled before it is answered.
pub struct Answered {
    /// Its reply.
    pub reply: Rope,
    /// Where the partition stood after it.
    pub position: Position,
    /// It has changed something.
    pub is_write: bool,
    /// What its reply waits for.
    pub waits: Waits,
    /// Under whose lease it was executed.
    pub run: Option<Incarnation>,
}

/// Where a command waits.
pub struct Parked {
    /// The partition.
    pub partition: PartitionId,
    /// Its era: a ticket of another one means nothing.
    pub era: korum_protocol::id::Epoch,
    /// The place there.
    pub ticket: Ticket,
    /// Its request as it means the same later, if that is another one.
    pub fixed: Option<Bytes>,
    /// Tells what came of it; ends without a word if it was handed back.
    pub receiver: oneshot::Receiver<Answered>,
}

/// What came of an attempt to park.
pub enum Outcome {
    /// It waits.
    Parked(Parked),
    /// It was served before, and the answer was lost.
    ServedBefore,
    /// Too many wait already.
    Full,
}

/// What nobody has: the reply of a command that may wait.
#[must_use]
pub fn is_nothing(reply: &[u8]) -> bool {
    matches!(reply, b"*-1\r\n" | b"$-1\r\n" | b"_\r\n")
}

impl Parking {
    /// Parks the command, which has just found nothing on this partition.
    #[expect(clippy::too_many_arguments, reason = "what a command met its partition with")]
    pub fn park(
        self,
        id: PartitionId,
        primary: &mut Primary,
        keyspace: &Keyspace,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        caller: Caller,
        now_ms: u64,
    ) -> Outcome {
        let Some(wanted) = wanted(spec.id, args) else { return Outcome::Full };
        let Some(keys) = keys_of(spec, args) else { return Outcome::Full };
        let names = Names::of(&keyspace.databases, caller);
        let mut keys: Vec<HashPosition> = keys.map(|at| keyspace.hash_position(names.at(args, at))).collect();
        keys.sort_unstable();
        keys.dedup();
        let size = self.request.len() + keys.len() * size_of::<(HashPosition, Wanted, Ticket)>();
        let Some(share) = self.gauge.take(size).filter(|_| keys.len() <= KEYS_MAX) else {
            return Outcome::Full;
        };
        let (sender, receiver) = oneshot::channel();
        let fixed = fixed_request(args, &names, keyspace, now_ms);
        let waiter = Waiter {
            spec,
            request: fixed.clone().unwrap_or(self.request),
            caller,
            token: self.token.map(|it| it.0),
            sender,
            _share: share,
        };
        let ticket = primary.waiting.park(keys, wanted, waiter);
        Outcome::Parked(Parked { partition: id, era: primary.era, ticket, fixed, receiver })
    }
}

impl Parking {
    /// The command has found something at once: its answer, too, may be lost with a connection.
    pub fn note_served(
        &self,
        spec: &CommandSpec,
        args: &Args<'_>,
        names: &Names,
        keyspace: &mut Keyspace,
        effects: &mut Effects,
    ) {
        let Some((token, _)) = self.token.filter(|_| spec.flags.contains(Flags::WRITE)) else { return };
        let (Some(last), Some(keys)) = (effects.places().flatten().last(), keys_of(spec, args)) else {
            return;
        };
        // What it took, it took from its first key, or did as the last thing.
        let is_from_first = matches!(spec.id, CommandId::BlMove | CommandId::BrPopLPush);
        let mut places = keys.map(|at| keyspace.place(names.at(args, at)));
        if let Some(place) = places.find(|place| is_from_first || place.position == last) {
            keyspace.served.note(place.position, token);
            effects.push(Some(place.position), &Effect::Served { key: place.key, token });
        }
    }
}

/// Before a command is run: was it served on a connection that broke? If it still waits, for that connection, it is
/// taken away.
#[must_use]
pub fn was_served(parking: Option<&Parking>, primary: &mut Primary, keyspace: &Keyspace) -> bool {
    let Some((token, true)) = parking.and_then(|parking| parking.token) else { return false };
    if let Some(ticket) = primary.waiting.find(|waiter: &Waiter| waiter.token == Some(token)) {
        primary.waiting.remove(ticket);
    }
    keyspace.served.has(token)
}

/// A command that waited and has been run, still under the lock.
pub struct Run {
    waiter: Waiter,
    reply: Rope,
    is_write: bool,
}

/// What a waiting command is run with.
pub struct Ground<'a> {
    /// The partition's keys.
    pub keyspace: &'a mut Keyspace,
    /// Unix ms.
    pub now_ms: u64,
    /// The worker's source of chance.
    pub random: &'a mut Random,
    /// Where what they change is recorded, behind what served them.
    pub effects: &'a mut Effects,
    /// Where what they look up is counted.
    pub looks: &'a mut Looks,
    /// What the node knows of scripts.
    pub scripts: &'a Arc<Scripts>,
}

/// Runs whoever waits for what the effects so far may have brought; what they do themselves may bring something for
/// others. All of it is one step.
pub fn run_waiting(primary: &mut Primary, ground: &mut Ground<'_>) -> Vec<Run> {
    let mut done = Vec::new();
    let mut places: Vec<HashPosition> = ground.effects.places().flatten().collect();
    places.dedup();
    let mut next = 0;
    while let Some(&position) = places.get(next) {
        next += 1;
        for wanted in Wanted::ALL {
            run_queue(primary, ground, position, wanted, &mut places, &mut done);
        }
    }
    done
}

fn run_queue(
    primary: &mut Primary,
    ground: &mut Ground<'_>,
    position: HashPosition,
    wanted: Wanted,
    places: &mut Vec<HashPosition>,
    done: &mut Vec<Run>,
) {
    let mut at = Ticket::default();
    while let Some(ticket) = primary.waiting.next(position, wanted, at) {
        at = ticket;
        let Some(waiter) = primary.waiting.get(ticket) else { continue };
        if waiter.sender.is_closed() {
            primary.waiting.remove(ticket);
            continue;
        }
        let before = ground.effects.count();
        match waiter.run(position, wanted, ground) {
            Found::NoValue => return,
            // What it noted while it found nothing, say that a consumer is there, brings nothing to anybody.
            Found::Nothing => {}
            Found::Something(reply, is_write) => {
                // Where it took something away itself there is nothing new.
                let elsewhere = |place: &HashPosition| *place != position;
                places.extend(ground.effects.places().skip(before).flatten().filter(elsewhere));
                if let Some(waiter) = primary.waiting.remove(ticket) {
                    done.push(Run { waiter, reply, is_write });
                }
            }
        }
    }
}

enum Found {
    /// The key does not hold what anybody in this queue waits for.
    NoValue,
    /// There is nothing for this one.
    Nothing,
    /// Its reply, and whether it has changed something.
    Something(Rope, bool),
}

impl Waiter {
    fn run(&self, position: HashPosition, wanted: Wanted, ground: &mut Ground<'_>) -> Found {
        let mut parser = RequestParser::new(RequestLimits::unlimited());
        let Ok(Parsed::Request { .. }) = parser.parse(&self.request) else {
            unreachable!("a request that was parsed before it was parked")
        };
        let args = parser.args(&self.request);
        let Some(mut keys) = keys_of(self.spec, &args) else { return Found::Nothing };
        let names = Names::of(&ground.keyspace.databases, self.caller);
        let key = keys.find(|&at| ground.keyspace.hash_position(names.at(&args, at)) == position);
        let Some(key) = key.map(|at| names.at(&args, at)) else { return Found::Nothing };
        let value = ground.keyspace.peek(key, ground.now_ms).map(crate::store::Entry::value);
        if !wanted.is_met(value) {
            return Found::NoValue;
        }
        let before = ground.effects.count();
        ground.looks.prepare(self.spec, self.caller.marks_access);
        let mut reply = Rope::new();
        execute::run(
            self.spec.id,
            &mut Call {
                args,
                names: &names,
                keyspace: &mut *ground.keyspace,
                now_ms: ground.now_ms,
                random: &mut *ground.random,
                effects: &mut *ground.effects,
                looks: &mut *ground.looks,
                source: &Source::none(),
                scripts: ground.scripts,
                reply: ReplyWriter::holding(&mut reply, self.caller.version),
            },
        );
        if is_nothing(reply.copied()) {
            return Found::Nothing;
        }
        let is_write = self.spec.flags.contains(Flags::WRITE) && ground.effects.count() > before;
        if let Some(token) = self.token.filter(|_| is_write) {
            ground.keyspace.served.note(position, token);
            ground.effects.push(Some(position), &Effect::Served { key, token });
        }
        Found::Something(reply, is_write)
    }
}

impl Run {
    /// Hands the reply on, once the step is numbered.
    pub fn answer(self, primary: &Primary, position: Position, run: Option<Incarnation>) {
        let mut waits = Waits::default();
        if self.waiter.caller.is_strong {
            primary.settlement(&mut waits);
        }
        let answered = Answered { reply: self.reply, position, is_write: self.is_write, waits, run };
        // Whoever waited is gone since a moment ago: the answer is lost with the connection, as any other.
        let _ = self.waiter.sender.send(answered);
    }
}

#[cfg(test)]
#[path = "park_tests.rs"]
mod tests;
