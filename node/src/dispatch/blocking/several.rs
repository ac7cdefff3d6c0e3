//! Commands that wait for keys of several slots, on the client port; `XREAD` of several slots, waiting or not.
//!
//! For: asking the partitions of the keys what there is, taking from the first key that has something, and watching
//! all of them while there is nothing.
//! Not here: keys of one slot (`blocking`), what happens under a partition's lock (`park`).
//!
//! Who waits for keys of one slot is served within the step that brings something. Who waits for several slots only
//! watches (`KORUM READY`): it is told that something is there, and then takes it like anybody else. So nothing is
//! reserved that could be lost, and one command takes from one key; but who waits at that key alone may be faster, also
//! if it came later.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec, Flags, key_positions};
use korum_protocol::limits::{BULK_BYTES_MAX, KEY_BYTES_MAX};
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::encode_request;
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter, reply_length};
use korum_protocol::rope::Rope;

use super::super::assemble::{DOWN, UNKNOWN, integer};
use super::super::batch::{Batch, KEY_TOO_LONG};
use super::super::caller::Caller;
use super::super::execute;
use super::super::route::{Port, Route, route};
use super::park::{Parked, is_nothing};
use super::{Attempt, Blocking, LOOK_AGAIN, Patience, Place, Step, attempt, error, run_now, settle};
use crate::command::args::is;
use crate::env::random::random;
use crate::net::clients::Flag;
use crate::net::forward::{Answer, ForwardError, Pending};
use crate::node::Node;
use crate::store::served::Token;

/// A command whose keys are in several slots, as commands on one slot each.
pub(super) struct Several {
    parts: Vec<Part>,
    /// All keys, in order.
    keys: Vec<Bytes>,
    /// It takes from the first key that has something; else it reads all of them.
    takes: bool,
}

/// What a command has to do with one slot.
struct Part {
    slot: u16,
    /// Which of all keys are in this slot.
    numbers: Vec<usize>,
    /// Tells which of its keys has anything, also of another type: the command has an error for it then.
    look: Bytes,
    /// The command itself, on these keys, as it does not wait.
    run: Bytes,
    /// Waits for something, and takes nothing.
    watch: Bytes,
}

impl Several {
    /// `None` for a command whose keys are in one slot, and for one that cannot be taken apart.
    pub(super) fn of(spec: &CommandSpec, args: &Args<'_>, caller: Caller) -> Option<Self> {
        if caller.port != Port::Client || !spec.flags.contains(Flags::BLOCKING) {
            return None;
        }
        let kind: Option<&[u8]> = match spec.id {
            CommandId::BlPop | CommandId::BrPop | CommandId::BlMPop => Some(b"LIST"),
            CommandId::BzPopMin | CommandId::BzPopMax | CommandId::BzMPop => Some(b"ZSET"),
            CommandId::XRead => None,
            _ => return None,
        };
        let at: Vec<usize> = key_positions(spec, args).ok()?.collect();
        let first = slot_of(args.get(*at.first()?)?);
        if at.iter().all(|&at| slot_of(&args[at]) == first) {
            return None;
        }
        let mut places: HashMap<u16, usize> = HashMap::new();
        let mut slots: Vec<(u16, Vec<usize>)> = Vec::new();
        for (number, &at) in at.iter().enumerate() {
            let slot = slot_of(&args[at]);
            let place = *places.entry(slot).or_insert(slots.len());
            if place == slots.len() {
                slots.push((slot, Vec::new()));
            }
            slots[place].1.push(number);
        }
        let part = |(slot, numbers): (u16, Vec<usize>)| {
            let keys: Vec<&[u8]> = numbers.iter().map(|&number| &args[at[number]]).collect();
            let [look, run, watch] = match kind {
                Some(kind) => {
                    let run = on_keys(spec, args, at[0], at.len(), &keys);
                    [ready(slot, b"ANY", &keys), run, ready(slot, kind, &keys)]
                }
                None => {
                    let ids: Vec<&[u8]> =
                        numbers.iter().map(|&number| &args[at[number] + at.len()]).collect();
                    let read = |waits| read(args, at[0], waits, &keys, &ids);
                    [Bytes::new(), read(false), read(true)]
                }
            };
            Part { slot, numbers, look, run, watch }
        };
        let keys = at.iter().map(|&at| Bytes::copy_from_slice(&args[at])).collect();
        Some(Self { parts: slots.into_iter().map(part).collect(), keys, takes: kind.is_some() })
    }
}

fn encoded(words: &[&[u8]]) -> Bytes {
    let mut request = BytesMut::new();
    encode_request(words, &mut request);
    request.freeze()
}

fn ready(slot: u16, kind: &[u8], keys: &[&[u8]]) -> Bytes {
    let slot = slot.to_string();
    encoded(&[&[b"KORUM", b"READY", slot.as_bytes(), kind], keys].concat())
}

/// The command with these keys instead of its own, which are `count` from `first` on.
fn on_keys(spec: &CommandSpec, args: &Args<'_>, first: usize, count: usize, keys: &[&[u8]]) -> Bytes {
    let number = keys.len().to_string();
    let mut words: Vec<&[u8]> = args.part(0, first).iter().collect();
    if spec.flags.contains(Flags::MOVABLEKEYS) {
        words[first - 1] = number.as_bytes();
    }
    words.extend(keys);
    words.extend(args.tail(first + count).iter());
    encoded(&words)
}

/// `XREAD` of some of its streams, whose names begin at `first`.
fn read(args: &Args<'_>, first: usize, waits: bool, keys: &[&[u8]], ids: &[&[u8]]) -> Bytes {
    let mut words: Vec<&[u8]> = vec![&args[0]];
    if waits {
        words.extend([&b"BLOCK"[..], b"0"]);
    }
    let mut at = 1;
    while at < first - 1 {
        if !is(&args[at], "block") {
            words.extend(args.part(at, at + 2).iter());
        }
        at += 2;
    }
    words.push(b"STREAMS");
    words.extend(keys);
    words.extend(ids);
    encoded(&words)
}

/// What is wrong with a command whatever its keys hold: run on no keys at all, it comes upon it.
pub(super) fn refusal(
    node: &Node,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
) -> Option<Rope> {
    let mut keys = key_positions(spec, args).ok()?;
    if keys.any(|at| args[at].len() > KEY_BYTES_MAX) {
        return Some(error(caller, KEY_TOO_LONG));
    }
    let mut batch = Batch::new(random());
    batch.begin(node);
    batch.open(0..0, caller);
    batch.run_apart(node, args, caller, |call| execute::run(spec.id, call));
    let reply = std::mem::take(batch.plain_mut());
    (reply.copied().first() == Some(&b'-')).then_some(reply)
}

/// A request on its way, or executed already.
enum Asked {
    Here(Box<Batch>),
    There(Pending),
}

impl Blocking<'_> {
    /// Runs the command; if `waits`, until there is something or waiting has ended.
    pub(super) async fn run_several(&mut self, several: &Several, waits: bool) -> Rope {
        let at_once =
            if several.takes { self.take_first(several).await } else { self.read_all(several).await };
        match at_once {
            Some(reply) => reply,
            None if waits => self.watch_all(several).await,
            None => {
                let mut reply = Rope::new();
                ReplyWriter::holding(&mut reply, self.caller.version).null_array();
                reply
            }
        }
    }

    /// Takes from the first key that has something. Partitions that nobody serves now are left out.
    async fn take_first(&mut self, several: &Several) -> Option<Rope> {
        let view = self.node.view();
        let asked: Vec<Asked> =
            several.parts.iter().map(|part| self.ask(&view, part.slot, &part.look)).collect();
        let mut found = Vec::new();
        for (part, asked) in several.parts.iter().zip(asked) {
            let Step::Reply(reply) = self.answer(asked, part.slot, &part.look, false).await else { continue };
            let first = integer(reply.copied()).and_then(|first| usize::try_from(first).ok());
            if let Some(&number) = first.and_then(|first| part.numbers.get(first)) {
                found.push((number, part));
            }
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        for (_, part) in found {
            if let Step::Reply(reply) = self.take(part).await
                && !is_nothing(reply.copied())
            {
                return Some(reply);
            }
        }
        None
    }

    /// Takes what one part has, which may be nothing.
    async fn take(&mut self, part: &Part) -> Step {
        let asked = self.ask(&self.node.view(), part.slot, &part.run);
        self.answer(asked, part.slot, &part.run, true).await
    }

    /// Reads all parts, each at a moment of its own; `None` if none has anything.
    async fn read_all(&mut self, several: &Several) -> Option<Rope> {
        let view = self.node.view();
        let asked: Vec<Asked> =
            several.parts.iter().map(|part| self.ask(&view, part.slot, &part.run)).collect();
        let mut replies = Vec::with_capacity(several.parts.len());
        let mut patience = Patience::default();
        for (part, mut asked) in several.parts.iter().zip(asked) {
            loop {
                let begun = self.node.clock().now();
                if let Step::Reply(reply) = self.answer(asked, part.slot, &part.run, false).await {
                    if reply.copied().first() == Some(&b'-') {
                        return Some(reply);
                    }
                    replies.push(reply);
                    break;
                }
                if patience.is_over(self.node, begun) {
                    return Some(self.error(DOWN));
                }
                self.node.changed_within(LOOK_AGAIN).await;
                asked = self.ask(&self.node.view(), part.slot, &part.run);
            }
        }
        several.joined(&replies, self.caller.version)
    }

    /// Waits until one of the parts has something, and takes or answers it.
    async fn watch_all(&mut self, several: &Several) -> Rope {
        let (node, caller) = (self.node, self.caller);
        self.client.set_flag(Flag::Blocked, true);
        let mut watchers: Vec<Watcher<'_>> =
            several.parts.iter().map(|part| watcher(node, caller, part)).collect();
        loop {
            let (at, reply) = tokio::select! {
                biased;
                told = first(&mut watchers) => told,
                over = self.ends() => return self.over(&over),
            };
            if !several.takes || reply.copied().first() == Some(&b'-') {
                return reply;
            }
            let part = &several.parts[at];
            watchers[at] = match self.take(part).await {
                Step::Reply(reply) if !is_nothing(reply.copied()) => return reply,
                // Somebody was faster.
                Step::Reply(_) => watcher(node, caller, part),
                // Where a copy does not answer, there may be reads and no writes: without a pause the two would take
                // turns, and nobody else this thread.
                Step::NotExecuted | Step::Over(_) => Box::pin(async move {
                    node.changed_within(LOOK_AGAIN).await;
                    watch(node, caller, part).await
                }),
            };
        }
    }

    /// Runs a request at once if its slot is served here; sends it if it is served elsewhere.
    fn ask(&self, view: &View, slot: u16, request: &Bytes) -> Asked {
        match route(view, self.node.id(), self.caller.port, [slot]) {
            Route::Forward(target, _) => {
                let mut body = Rope::new();
                body.push(request.clone());
                Asked::There(self.node.forwards().send(target, self.caller.to_bytes(), &body, 1))
            }
            _ => Asked::Here(run_now(self.node, view, request, self.caller, None)),
        }
    }

    /// Waits for what came of it. A request that only reads is not executed if that is not known.
    async fn answer(&mut self, asked: Asked, slot: u16, request: &Bytes, is_write: bool) -> Step {
        let pending = match asked {
            Asked::Here(batch) if batch.has_tasks() => return Step::NotExecuted,
            Asked::Here(batch) => return self.settle(*batch, request).await,
            Asked::There(pending) => pending,
        };
        let limit = self.node.config().limits.request_timeout;
        let answers = tokio::time::timeout(limit, pending.wait()).await;
        match answers.unwrap_or(Err(ForwardError::Unknown)).map(|answers| answers.into_iter().next()) {
            Ok(Some(Answer::Reply(reply))) => {
                if is_write && !self.caller.is_strong {
                    self.written.push(self.node.view().partition_of_slot(slot));
                }
                Step::Reply(reply)
            }
            Ok(Some(Answer::NotExecuted)) | Err(ForwardError::NotSent) => Step::NotExecuted,
            Ok(Some(Answer::Unknown) | None) | Err(ForwardError::Unknown) if is_write => {
                Step::Reply(self.error(UNKNOWN))
            }
            Ok(Some(Answer::Unknown) | None) | Err(ForwardError::Unknown) => Step::NotExecuted,
        }
    }
}

/// Tells what came to one part.
type Watcher<'a> = Pin<Box<dyn Future<Output = Rope> + Send + 'a>>;

fn watcher<'a>(node: &'a Arc<Node>, caller: Caller, part: &'a Part) -> Watcher<'a> {
    Box::pin(watch(node, caller, part))
}

/// The first that tells something, and what.
async fn first(watchers: &mut [Watcher<'_>]) -> (usize, Rope) {
    poll_fn(|context| {
        for (at, watcher) in watchers.iter_mut().enumerate() {
            if let Poll::Ready(reply) = watcher.as_mut().poll(context) {
                return Poll::Ready((at, reply));
            }
        }
        Poll::Pending
    })
    .await
}

/// Waits for something, wherever the slot is served; the reply tells what, or why it cannot be waited for. Dropping it
/// takes it away from where it waits.
async fn watch(node: &Arc<Node>, caller: Caller, part: &Part) -> Rope {
    let (mut patience, mut request) = (Patience::default(), part.watch.clone());
    loop {
        let begun = node.clock().now();
        match watch_once(node, caller, part.slot, &mut request).await {
            Some(reply) if !is_nothing(reply.copied()) => return reply,
            Some(_) | None => {}
        }
        if patience.is_over(node, begun) {
            return error(caller, DOWN);
        }
        node.changed_within(LOOK_AGAIN).await;
    }
}

/// `request`: from now on as it means the same later.
async fn watch_once(node: &Arc<Node>, caller: Caller, slot: u16, request: &mut Bytes) -> Option<Rope> {
    let view = node.view();
    if let Route::Forward(target, _) = route(&view, node.id(), caller.port, [slot]) {
        // Nobody asks whether it was served: it takes nothing.
        let token = Token { node: node.id().0, client: 0, number: 0 };
        let mut waiting = node.forwards().send_waiting(target, caller.to_bytes(), token, false, request);
        return match waiting.wait().await.ok()?.into_iter().next()? {
            Answer::Reply(reply) => Some(reply),
            Answer::NotExecuted | Answer::Unknown => None,
        };
    }
    let mut batch = match attempt(node, &view, request, caller, None) {
        Attempt::Executed(batch) if batch.has_tasks() => return None,
        Attempt::Executed(batch) => batch,
        Attempt::ServedBefore => return None,
        Attempt::Parked(Parked { partition, era, ticket, fixed, receiver }) => {
            if let Some(fixed) = fixed {
                *request = fixed;
            }
            let place = Place { node, partition, era, ticket };
            let answered = receiver.await.ok()?;
            drop(place);
            let mut batch = Box::new(Batch::new(random()));
            batch.adopt(node, caller, partition, answered);
            batch
        }
    };
    match settle(node, &mut batch, request).await {
        Step::Reply(reply) => Some(reply),
        Step::NotExecuted | Step::Over(_) => None,
    }
}

impl Several {
    /// The answer to `XREAD`, of those of its parts, with the streams in the order of the request; `None` if there is
    /// nothing. What goes beyond the longest answer is left out: it comes with the next call.
    fn joined(&self, replies: &[Rope], version: ProtocolVersion) -> Option<Rope> {
        let flat: Vec<_> = replies.iter().map(Rope::flat).collect();
        let mut streams: Vec<(usize, &[u8])> = Vec::new();
        for (part, reply) in self.parts.iter().zip(&flat) {
            let mut numbers = part.numbers.iter();
            for (key, stream) in elements(reply, version) {
                let is_it = |number: &&usize| self.keys[**number] == *key;
                streams.push((*numbers.find(is_it).unwrap_or(&self.keys.len()), stream));
            }
        }
        streams.sort_by_key(|(number, _)| *number);
        let mut size = 0;
        let fitting = streams.iter().take_while(|(_, stream)| {
            size += stream.len();
            size <= BULK_BYTES_MAX
        });
        let count = fitting.count().max(1);
        streams.truncate(count);
        if streams.is_empty() {
            return None;
        }
        let mut reply = Rope::new();
        let mut writer = ReplyWriter::holding(&mut reply, version);
        match version {
            ProtocolVersion::Resp2 => writer.array(streams.len()),
            ProtocolVersion::Resp3 => writer.map(streams.len()),
        }
        streams.iter().for_each(|(_, stream)| writer.raw(stream));
        Some(reply)
    }
}

/// The streams of an answer to `XREAD`: each name, and all that is said of it.
fn elements(reply: &[u8], version: ProtocolVersion) -> Vec<(&[u8], &[u8])> {
    let mut found = Vec::new();
    let Some(end) = memchr::memchr(b'\n', reply).filter(|_| !is_nothing(reply)) else { return found };
    let mut rest = &reply[end + 1..];
    let length = |bytes: &[u8]| reply_length(bytes).unwrap_or(bytes.len());
    while !rest.is_empty() {
        let (whole, named) = match version {
            ProtocolVersion::Resp2 => (length(rest), rest.strip_prefix(b"*2\r\n").unwrap_or_default()),
            ProtocolVersion::Resp3 => {
                let name = length(rest);
                (name + length(&rest[name..]), rest)
            }
        };
        let name = &named[..length(named)];
        let name = memchr::memchr(b'\n', name).and_then(|end| name[end + 1..].strip_suffix(b"\r\n"));
        found.push((name.unwrap_or_default(), &rest[..whole]));
        rest = &rest[whole..];
    }
    found
}

#[cfg(test)]
#[path = "several_tests.rs"]
mod tests;
