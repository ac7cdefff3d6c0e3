//! Commands that wait until there is something for them: `BLPOP` and kin.
//!
//! For: their way from the connection to wherever the partition is, waiting, and all the ways in which waiting ends.
//! Not here: what happens under the partition's lock (`park`), keys of several slots (`several`), forwarding
//! (`net::forward`), what a command does when there is something (its family).
//!
//! A command waits at its partition's primary. It is handed back, and sent again with the time that is left, when the
//! role moves; who waits measures the time. When the connection to the primary breaks, the answer may have been lost
//! with it: the next primary knows (`store::served`).

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec, Flags, key_positions, resolve};
use korum_protocol::id::{Epoch, NodeId};
use korum_protocol::map::{PartitionId, View};
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::encode_request;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::resp::{Args, ReplyWriter};
use korum_protocol::rope::Rope;
use rand::Rng;

use super::assemble::{DOWN, UNKNOWN};
use super::batch::Batch;
use super::caller::Caller;
use super::keyless::Asker;
use super::parts::Operation;
use super::route::{Route, route};
use crate::command::blocking::timeout;
use crate::env::Tick;
use crate::env::random::random;
use crate::net::clients::{Client, Flag, Unblock};
use crate::net::forward::{Answer, ForwardError};
use crate::node::Node;
use crate::store::served::Token;
use crate::store::waiting::Ticket;
use park::{Answered, Outcome, Parked, Parking};
use several::Several;

pub mod park;
mod several;

/// Longest pause before a command that could not run is tried again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
const FULL: &str = "ERR too many clients wait in blocking commands on this node";

/// May the command wait?
#[must_use]
pub fn may_wait(spec: &CommandSpec, args: &Args<'_>) -> bool {
    spec.flags.contains(Flags::BLOCKING) && park::wanted(spec.id, args).is_some()
}

/// Must the command be run between batches? It may wait, or has to be put together from several partitions.
#[must_use]
pub fn runs_alone(spec: &CommandSpec, args: &Args<'_>, caller: Caller) -> bool {
    may_wait(spec, args) || spec.id == CommandId::XRead && Several::of(spec, args, caller).is_some()
}

/// What came of one attempt.
enum Step {
    /// This is the reply.
    Reply(Rope),
    /// It was not executed; it may be tried again.
    NotExecuted,
    /// Waiting has ended without anything.
    Over(Over),
}

/// Why waiting ended.
enum Over {
    Time,
    Unblocked,
}

/// One attempt on this node.
pub enum Attempt {
    /// Executed, or not possible now: the batch says which.
    Executed(Box<Batch>),
    /// It waits.
    Parked(Parked),
    /// It was executed before; its reply is lost.
    ServedBefore,
}

/// Runs a request here, or lets it wait, without an await. `token`: of a client of another node, or of one whose command
/// was at another node before; and whether it may have been served there.
pub fn attempt(
    node: &Arc<Node>,
    view: &View,
    request: &Bytes,
    caller: Caller,
    token: Option<(Token, bool)>,
) -> Attempt {
    let parking = Parking { request: request.clone(), token, gauge: Arc::clone(&node.parked) };
    let mut batch = run_now(node, view, request, caller, Some(parking));
    match batch.parked.take() {
        None => Attempt::Executed(batch),
        Some(Outcome::Parked(parked)) => Attempt::Parked(parked),
        Some(Outcome::ServedBefore) => Attempt::ServedBefore,
        Some(Outcome::Full) => {
            batch.begin(node);
            batch.open(0..0, caller);
            batch.reply(caller.version).error(FULL);
            Attempt::Executed(batch)
        }
    }
}

/// Runs a request here, without an await; with `parking` only one that may wait.
fn run_now(
    node: &Arc<Node>,
    view: &View,
    request: &Bytes,
    caller: Caller,
    parking: Option<Parking>,
) -> Box<Batch> {
    let mut parser = RequestParser::new(RequestLimits::unlimited());
    let mut batch = Box::new(Batch::new(random()));
    batch.begin(node);
    batch.open(0..request.len(), caller);
    let parsed = parser.parse(request);
    let args = parser.args(request);
    let may_wait = || resolve(&args).is_ok_and(|spec| park::wanted(spec.id, &args).is_some());
    if matches!(parsed, Ok(Parsed::Request { .. })) && (parking.is_none() || may_wait()) {
        batch.parking = parking;
        batch.run_forwarded(node, view, &args, caller);
    } else {
        batch.hand_back();
    }
    batch
}

/// Takes a command away from where it waits, if it still does.
pub fn unpark(node: &Node, partition: PartitionId, era: Epoch, ticket: Ticket) {
    let mut guard = node.store().lock(partition);
    let primary = guard.as_primary_mut().filter(|primary| primary.era == era);
    let waiter = primary.and_then(|primary| primary.waiting.remove(ticket));
    drop(guard);
    drop(waiter);
}

impl Batch {
    /// Becomes the batch of a command that has waited, to be settled and answered.
    pub fn adopt(&mut self, node: &Node, caller: Caller, partition: PartitionId, answered: Answered) {
        self.begin(node);
        self.open(0..0, caller);
        self.out.append(&answered.reply);
        let Answered { position, is_write, waits, run, .. } = answered;
        self.operations.push(Operation { command: 0, partition, position, is_write });
        self.waits = waits;
        (self.executed_by, self.is_confirmed) = (run, false);
    }
}

/// Runs a command that may wait; its reply is appended to `out`.
///
/// Dropping it takes the command away from where it waits; one that was served at that moment is lost with its client.
pub(super) async fn run(
    node: &Arc<Node>,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
    out: &mut BytesMut,
) {
    let several = Several::of(spec, args, caller);
    if let Some(error) = several.as_ref().and_then(|_| several::refusal(node, spec, args, caller)) {
        return error.copy_to(out);
    }
    let mut request = BytesMut::new();
    encode_request(&args.iter().collect::<Vec<_>>(), &mut request);
    let wait = timeout(spec.id, args, node.clock().wall_ms());
    let slots = key_positions(spec, args).map(|keys| keys.map(|at| slot_of(&args[at])).collect::<Vec<_>>());
    let mut call = Blocking {
        node,
        spec,
        caller,
        client: asker.client,
        request: request.freeze(),
        slots: slots.unwrap_or_default(),
        until: wait.map(|wait| node.clock().now() + wait),
        token: Token { node: node.id().0, client: asker.client.id, number: random().next_u64() },
        is_resumed: false,
        written: Vec::new(),
    };
    let _ = asker.client.take_unblock();
    let reply = match &several {
        Some(several) => call.run_several(several, may_wait(spec, args)).await,
        None => call.run().await,
    };
    asker.session.written.extend(call.written.drain(..));
    asker.client.set_flag(Flag::Blocked, false);
    reply.copy_to(out);
}

struct Blocking<'a> {
    node: &'a Arc<Node>,
    spec: &'static CommandSpec,
    caller: Caller,
    client: &'a Client,
    request: Bytes,
    slots: Vec<u16>,
    /// When waiting ends; `None`: never.
    until: Option<Tick>,
    token: Token,
    /// A connection on which it waited has broken.
    is_resumed: bool,
    /// Partitions that it wrote to with the weaker promise.
    written: Vec<PartitionId>,
}

impl Blocking<'_> {
    async fn run(&mut self) -> Rope {
        let mut patience = Patience::default();
        loop {
            let begun = self.node.clock().now();
            let over = match self.step().await {
                Step::Reply(reply) => return reply,
                Step::Over(over) => Some(over),
                Step::NotExecuted => self.look(),
            };
            if let Some(over) = over {
                return self.over(&over);
            }
            if patience.is_over(self.node, begun) {
                return self.error(if self.is_resumed { UNKNOWN } else { DOWN });
            }
            self.node.changed_within(LOOK_AGAIN).await;
        }
    }

    fn error(&self, text: &str) -> Rope {
        error(self.caller, text)
    }

    /// Has waiting ended?
    fn look(&self) -> Option<Over> {
        match self.client.take_unblock() {
            Some(Unblock::Error) => Some(Over::Unblocked),
            Some(Unblock::Timeout) => Some(Over::Time),
            None => self.until.filter(|&until| self.node.clock().now() >= until).map(|_| Over::Time),
        }
    }

    fn over(&self, over: &Over) -> Rope {
        match over {
            Over::Unblocked => self.error(UNBLOCKED),
            // Where it waited last it may have been served.
            Over::Time if self.is_resumed => self.error(UNKNOWN),
            Over::Time => {
                let mut reply = Rope::new();
                ReplyWriter::holding(&mut reply, self.caller.version).null_array();
                reply
            }
        }
    }

    /// Returns when waiting has ended.
    async fn ends(&self) -> Over {
        loop {
            let woken = self.client.woken();
            if let Some(over) = self.look() {
                return over;
            }
            match self.until {
                None => woken.await,
                Some(until) => {
                    let left = until.since(self.node.clock().now());
                    let _ = tokio::time::timeout(left, woken).await;
                }
            }
        }
    }

    /// Tries once, wherever the partition is now, and waits there.
    async fn step(&mut self) -> Step {
        let view = self.node.view();
        if !self.slots.is_empty()
            && let Route::Forward(target, _) =
                route(&view, self.node.id(), self.caller.port, self.slots.iter().copied())
        {
            return self.there(target).await;
        }
        // The connection that broke may have led to the primary before this one.
        let token = self.is_resumed.then_some((self.token, true));
        match attempt(self.node, &view, &self.request, self.caller, token) {
            Attempt::Executed(batch) if batch.has_tasks() => Step::NotExecuted,
            Attempt::Executed(batch) => {
                let request = self.request.clone();
                self.settle(*batch, &request).await
            }
            Attempt::Parked(parked) => self.here(parked).await,
            Attempt::ServedBefore => Step::Reply(self.error(UNKNOWN)),
        }
    }

    /// Waits at a partition of this node.
    async fn here(&mut self, parked: Parked) -> Step {
        self.client.set_flag(Flag::Blocked, true);
        let Parked { partition, era, ticket, fixed, mut receiver } = parked;
        if let Some(fixed) = fixed {
            self.request = fixed;
        }
        let place = Place { node: self.node, partition, era, ticket };
        let (answered, over) = tokio::select! {
            biased;
            answered = &mut receiver => (answered, None),
            over = self.ends() => {
                drop(place);
                // Whatever happens now has happened: it was served before, or never will be.
                (receiver.await, Some(over))
            }
        };
        match (answered, over) {
            (Ok(answered), _) => {
                let mut batch = Batch::new(random());
                batch.adopt(self.node, self.caller, partition, answered);
                let request = self.request.clone();
                self.settle(batch, &request).await
            }
            (Err(_), Some(over)) => Step::Over(over),
            (Err(_), None) => Step::NotExecuted,
        }
    }

    /// Waits until what was executed here may be answered.
    async fn settle(&mut self, mut batch: Batch, request: &Bytes) -> Step {
        let step = settle(self.node, &mut batch, request).await;
        self.written.extend(batch.written_async());
        step
    }

    /// Waits at a partition of another node.
    async fn there(&mut self, target: NodeId) -> Step {
        let (is_write, token) = (self.spec.flags.contains(Flags::WRITE), self.token);
        let forwards = self.node.forwards();
        let mut waiting =
            forwards.send_waiting(target, self.caller.to_bytes(), token, self.is_resumed, &self.request);
        self.client.set_flag(Flag::Blocked, true);
        let (answers, over) = tokio::select! {
            biased;
            answers = waiting.wait() => (answers, None),
            over = self.ends() => {
                waiting.cancel();
                let limit = self.node.config().limits.request_timeout;
                let answers = tokio::time::timeout(limit, waiting.wait()).await;
                (answers.unwrap_or(Err(ForwardError::Unknown)), Some(over))
            }
        };
        let answer = answers.map(|answers| answers.into_iter().next());
        match (answer, over) {
            // It waited there, and was not served.
            (Ok(Some(Answer::Reply(reply))), Some(over)) if park::is_nothing(reply.copied()) => {
                self.is_resumed = false;
                Step::Over(over)
            }
            (Ok(Some(Answer::Reply(reply))), _) => {
                if !self.caller.is_strong && is_write {
                    let view = self.node.view();
                    self.written.extend(self.slots.first().map(|&slot| view.partition_of_slot(slot)));
                }
                Step::Reply(reply)
            }
            (Ok(Some(Answer::NotExecuted)) | Err(ForwardError::NotSent), Some(over)) => Step::Over(over),
            (Ok(Some(Answer::NotExecuted)) | Err(ForwardError::NotSent), None) => Step::NotExecuted,
            (Ok(Some(Answer::Unknown) | None) | Err(ForwardError::Unknown), over) if !is_write => {
                over.map_or(Step::NotExecuted, Step::Over)
            }
            (Ok(Some(Answer::Unknown) | None), _) | (Err(ForwardError::Unknown), Some(_)) => {
                Step::Reply(self.error(UNKNOWN))
            }
            (Err(ForwardError::Unknown), None) => {
                self.is_resumed = true;
                Step::NotExecuted
            }
        }
    }
}

/// Waits until what was executed on this node may be answered.
async fn settle(node: &Arc<Node>, batch: &mut Batch, request: &Bytes) -> Step {
    batch.finish(node, request, node.request_deadline()).await;
    batch.count_looks(node);
    if batch.to_repeat().next().is_some() {
        return Step::NotExecuted;
    }
    let mut reply = Rope::new();
    batch.assemble(&mut reply, |_| None);
    Step::Reply(reply)
}

fn error(caller: Caller, text: &str) -> Rope {
    let mut reply = Rope::new();
    ReplyWriter::holding(&mut reply, caller.version).error(text);
    reply
}

/// For how long a command may find nobody who serves its partition.
#[derive(Default)]
struct Patience {
    since: Option<Tick>,
}

impl Patience {
    /// Is it over, after an attempt that began then and came to nothing? Time that it has waited somewhere does not
    /// count.
    fn is_over(&mut self, node: &Node, begun: Tick) -> bool {
        let now = node.clock().now();
        if now.since(begun) >= LOOK_AGAIN {
            self.since = None;
        }
        let since = *self.since.get_or_insert(now);
        now.since(since) >= node.config().limits.request_timeout
    }
}

/// A place in the queues of a partition; dropping it gives it back.
struct Place<'a> {
    node: &'a Node,
    partition: PartitionId,
    era: Epoch,
    ticket: Ticket,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        unpark(self.node, self.partition, self.era, self.ticket);
    }
}
