//! Transactions whose keys are in several slots, where the operator allows them (`cross-slot-transactions`).
//!
//! For: making one unit of the commands of each slot, running them all, and putting their replies in the places of the
//! commands.
//! Not here: what a unit is (`command::unit`), how its commands run (`command::transaction`).
//!
//! Each unit is atomic and runs once, as a transaction of one slot does. The whole is not atomic: others may see one
//! unit and not yet another, and one may be executed and another not; then its commands answer with the error.
//!
//! A unit runs only if no watched key of its slot has changed. The one of the first slot with watched keys runs before
//! all others, which run only if it was executed. Where watched keys are in several slots, all these are asked before;
//! a change that comes after the question stops the unit of its own slot alone.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use korum_protocol::command::{CommandId, Flags};
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::resp::{Args, ReplyWriter, reply_length};

use super::super::assemble::{UNKNOWN, integer};
use super::super::batch::Batch;
use super::super::caller::Caller;
use super::super::everywhere::submit;
use super::super::keyless::Asker;
use super::super::route::Port;
use super::apart::{array, reply_of, run_here};
use super::queue::{Crossing, Taken};
use super::{CROSS_SLOT, take};
use crate::command::names::select;
use crate::command::string::REPLY_TOO_LARGE;
use crate::command::unit::{UnitWriter, Watched};
use crate::env::random::random;
use crate::node::Node;
use crate::store::Databases;

/// The answer to the commands of a slot that were not executed, while those of other slots were.
const CHANGED: &[u8] =
    b"-EXECABORT a watched key of this slot has changed; the commands of other slots were executed\r\n";

/// Are keys of several slots allowed, on this port?
pub(super) fn is_wanted(node: &Node, caller: Caller) -> bool {
    caller.port == Port::Client && node.live.cross_slot_transactions()
}

/// What a transaction becomes.
struct Plan {
    units: Vec<Unit>,
    /// Where the replies to the commands come from, in their order.
    places: Vec<Place>,
}

/// The commands of one slot.
#[derive(Default)]
struct Unit {
    slot: u16,
    writer: UnitWriter,
    watched: Vec<Watched>,
    commands: usize,
    writes: bool,
    /// Which of the transaction's `SELECT`s its last command comes behind; 0: none.
    selected: usize,
    /// Which of its replies, in order, are to a `SELECT` that it was told of.
    silent: Vec<usize>,
}

/// The last `SELECT` that means a database: the others change nothing.
#[derive(Clone, Copy)]
struct Chosen<'t> {
    /// Which it is, from 1 on; 0: there was none yet.
    number: usize,
    /// Its arguments.
    bulks: &'t [u8],
}

/// Where the reply to a command comes from.
#[derive(PartialEq, Eq, Debug)]
enum Place {
    /// This node, afterwards: it is not about keys.
    Apart,
    /// The next reply of this unit.
    Unit(usize),
    /// The next ones of all these, each about the keys with these numbers.
    Split(Vec<(usize, Vec<usize>)>),
}

impl Plan {
    fn of(taken: &Taken, databases: &Databases) -> Result<Self, Crossing> {
        let mut plan = Self { units: Vec::new(), places: Vec::new() };
        let mut places = HashMap::new();
        for (watched, slot) in taken.watched() {
            let at = plan.unit(*slot, &mut places);
            plan.units[at].watched.push(watched.clone());
        }
        // Removing everything in the middle of other units of the same partition has no place of its own.
        if taken.commands().iter().any(super::queue::Queued::flushes) {
            return Err(Crossing);
        }
        let mut chosen = Chosen { number: 0, bulks: &[] };
        for command in taken.commands() {
            let Some(slot) = command.slot else {
                if command.spec.id == CommandId::Select && means_one(&taken.request(command), databases) {
                    chosen = Chosen { number: chosen.number + 1, bulks: taken.bulks(command) };
                }
                plan.places.push(Place::Apart);
                continue;
            };
            let writes = !command.spec.flags.contains(Flags::READONLY);
            let request = taken.request(command);
            let mut parser = RequestParser::new(RequestLimits::unlimited());
            let is_split = command.is_split && matches!(parser.parse(&request), Ok(Parsed::Request { .. }));
            let width = if command.spec.id == CommandId::MSet { 2 } else { 1 };
            let args = parser.args(&request);
            // One that lacks an argument says so itself.
            if !is_split || !(args.len() - 1).is_multiple_of(width) {
                let at = plan.unit(slot, &mut places);
                plan.units[at].select(chosen);
                plan.units[at].push(writes, |writer| writer.push(command.arguments, taken.bulks(command)));
                plan.places.push(Place::Unit(at));
                continue;
            }
            let mut parts: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut known = HashMap::new();
            for (number, key) in (1..args.len()).step_by(width).enumerate() {
                let at = plan.unit(slot_of(&args[key]), &mut places);
                let part = *known.entry(at).or_insert(parts.len());
                if part == parts.len() {
                    parts.push((at, Vec::new()));
                }
                parts[part].1.push(number);
            }
            for (at, numbers) in &parts {
                let words = words_of(&args, width, numbers);
                plan.units[*at].select(chosen);
                plan.units[*at].push(writes, |writer| writer.push_words(&words));
            }
            plan.places.push(Place::Split(parts));
        }
        Ok(plan)
    }

    /// The unit of a slot, a new one if there is none.
    fn unit(&mut self, slot: u16, places: &mut HashMap<u16, usize>) -> usize {
        *places.entry(slot).or_insert_with(|| {
            self.units.push(Unit { slot, ..Unit::default() });
            self.units.len() - 1
        })
    }
}

/// Does a `SELECT` mean a database?
fn means_one(request: &[u8], databases: &Databases) -> bool {
    let mut parser = RequestParser::new(RequestLimits::unlimited());
    matches!(parser.parse(request), Ok(Parsed::Request { .. }))
        && parser.args(request).get(1).is_some_and(|number| select(databases, number, false).is_ok())
}

/// A command with some of its keys, each with the values that belong to it.
fn words_of<'a>(args: &Args<'a>, width: usize, numbers: &[usize]) -> Vec<&'a [u8]> {
    let starts = numbers.iter().map(|number| 1 + number * width);
    let rest = starts.flat_map(|start| start..start + width);
    std::iter::once(0).chain(rest).filter_map(|at| args.get(at)).collect()
}

impl Unit {
    fn push(&mut self, writes: bool, put: impl FnOnce(&mut UnitWriter)) {
        put(&mut self.writer);
        self.commands += 1;
        self.writes |= writes;
    }

    /// Tells it of the database of its next command.
    fn select(&mut self, chosen: Chosen<'_>) {
        if self.selected != chosen.number {
            self.silent.push(self.commands);
            self.push(false, |writer| writer.push(2, chosen.bulks));
            self.selected = chosen.number;
        }
    }

    fn request(self) -> (u16, Bytes) {
        (self.slot, self.writer.finish(self.slot, &self.watched, !self.writes))
    }

    /// Asks only whether the watched keys have changed.
    fn question(&self) -> (u16, Bytes) {
        (self.slot, UnitWriter::default().finish(self.slot, &self.watched, true))
    }
}

/// What a unit answered.
enum Answer {
    /// The replies to its commands that were not used yet, one after the other.
    Replies(Bytes),
    /// It was not executed, or nobody knows whether it was: an error reply.
    Error(Bytes),
}

impl Answer {
    /// `silent`: which of the replies are to no command of the transaction's in this unit.
    fn of(reply: Bytes, silent: &[usize]) -> Self {
        match array(&reply) {
            Some(elements) if silent.is_empty() => Self::Replies(elements),
            Some(mut elements) => {
                let mut kept = BytesMut::with_capacity(elements.len());
                for number in 0.. {
                    if elements.is_empty() {
                        break;
                    }
                    let reply = split_reply(&mut elements);
                    if silent.binary_search(&number).is_err() {
                        kept.put_slice(&reply);
                    }
                }
                Self::Replies(kept.freeze())
            }
            None if reply.first() == Some(&b'-') => Self::Error(reply),
            None => Self::Error(Bytes::from_static(CHANGED)),
        }
    }

    /// The reply to the unit's next command.
    fn next(&mut self) -> Bytes {
        match self {
            Self::Replies(replies) => split_reply(replies),
            Self::Error(error) => error.clone(),
        }
    }
}

/// Runs `EXEC`; the reply is appended to `out`.
///
/// Dropping it loses the reply, and the commands without keys that have not run yet.
pub(super) async fn run(node: &Arc<Node>, caller: Caller, asker: &mut Asker<'_>, out: &mut BytesMut) {
    let taken = match take(asker) {
        Ok(taken) => taken,
        Err(text) => return ReplyWriter::new(out, caller.version).error(&text),
    };
    let Ok(Plan { units, places }) = Plan::of(&taken, &node.databases()) else {
        return ReplyWriter::new(out, caller.version).error(CROSS_SLOT);
    };
    let silent: Vec<Vec<usize>> = units.iter().map(|unit| unit.silent.clone()).collect();
    let answers = match run_units(node, units, caller, asker).await {
        Ok(answers) => answers,
        Err(reply) => return out.extend_from_slice(&reply),
    };
    let answers = answers.into_iter().zip(&silent);
    let mut answers: Vec<Answer> = answers.map(|(reply, silent)| Answer::of(reply, silent)).collect();
    let start = out.len();
    ReplyWriter::new(out, caller.version).array(places.len());
    for (command, place) in taken.commands().iter().zip(&places) {
        let reply = match place {
            Place::Apart => {
                run_here(node, command, taken.request(command), None, asker, out).await;
                continue;
            }
            Place::Unit(at) => answers[*at].next(),
            Place::Split(parts) => {
                let replies: Vec<Bytes> = parts.iter().map(|(at, _)| answers[*at].next()).collect();
                joined(command.spec.id, parts, &replies, caller)
            }
        };
        if out.len() - start + reply.len() <= BULK_BYTES_MAX {
            out.extend_from_slice(&reply);
        } else {
            ReplyWriter::new(out, caller.version).error(REPLY_TOO_LARGE);
        }
    }
}

/// Runs the units; the reply of each, or the reply to the whole if nothing was executed.
async fn run_units(
    node: &Arc<Node>,
    units: Vec<Unit>,
    caller: Caller,
    asker: &mut Asker<'_>,
) -> Result<Vec<Bytes>, Bytes> {
    // They are the first.
    let guards = units.iter().take_while(|unit| !unit.watched.is_empty()).count();
    if guards > 1 {
        let questions = units[..guards].iter().map(Unit::question).collect();
        let replies = ask_all(node, questions, caller, asker).await;
        if let Some(reply) = replies.into_iter().find(|reply| array(reply).is_none()) {
            return Err(reply);
        }
    }
    let first = (guards > 0).then(|| units[..guards].iter().position(|unit| unit.commands > 0).unwrap_or(0));
    let mut replies = vec![Bytes::new(); units.len()];
    let mut others = Vec::new();
    for (at, unit) in units.into_iter().enumerate() {
        if Some(at) == first {
            let reply = ask_all(node, vec![unit.request()], caller, asker).await.pop().unwrap_or_default();
            if array(&reply).is_none() {
                return Err(reply);
            }
            replies[at] = reply;
        } else if unit.commands > 0 {
            others.push((at, unit.request()));
        }
    }
    let (places, requests): (Vec<usize>, Vec<_>) = others.into_iter().unzip();
    for (at, reply) in places.into_iter().zip(ask_all(node, requests, caller, asker).await) {
        replies[at] = reply;
    }
    Ok(replies)
}

/// Runs requests on the partitions of their slots, all at once, and waits for the replies.
async fn ask_all(
    node: &Arc<Node>,
    requests: Vec<(u16, Bytes)>,
    caller: Caller,
    asker: &mut Asker<'_>,
) -> Vec<Bytes> {
    let mut batch = Batch::new(random());
    batch.begin(node);
    let view = node.view();
    let count = requests.len();
    for (slot, request) in requests {
        batch.open(0..0, caller);
        submit(&mut batch, node, &view, view.partition_of_slot(slot), request, caller);
    }
    let mut replies = reply_of(node, &mut batch, &[], asker).await.into_bytes();
    (0..count).map(|_| split_reply(&mut replies)).collect()
}

/// Takes the first of some replies.
fn split_reply(replies: &mut Bytes) -> Bytes {
    let length = reply_length(replies).unwrap_or(replies.len());
    replies.split_to(length)
}

/// The reply to a command that was split, of those to its parts; the gravest error, if there is one.
fn joined(id: CommandId, parts: &[(usize, Vec<usize>)], replies: &[Bytes], caller: Caller) -> Bytes {
    let mut errors = replies.iter().filter(|reply| reply.first() == Some(&b'-'));
    let unknown = errors.clone().find(|reply| reply[1..].starts_with(UNKNOWN.as_bytes()));
    if let Some(error) = unknown.or_else(|| errors.next()) {
        return error.clone();
    }
    let mut out = BytesMut::new();
    let mut writer = ReplyWriter::new(&mut out, caller.version);
    match id {
        CommandId::MSet => writer.ok(),
        CommandId::MGet => {
            let mut values: Vec<(usize, Bytes)> = Vec::new();
            for ((_, numbers), reply) in parts.iter().zip(replies) {
                let mut rest = array(reply).unwrap_or_default();
                for &number in numbers {
                    values.push((number, split_reply(&mut rest)));
                }
            }
            values.sort_unstable_by_key(|(number, _)| *number);
            writer.array(values.len());
            values.iter().for_each(|(_, value)| out.put_slice(value));
        }
        _ => writer.integer(replies.iter().filter_map(|reply| integer(reply)).sum()),
    }
    out.freeze()
}

#[cfg(test)]
#[path = "several_tests.rs"]
mod tests;
