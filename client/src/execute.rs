//! A request's life: choose a node, attempt, decide, again.
//!
//! For: carrying out the decisions of `retry` within the request's deadline.
//! Not here: the decisions themselves, sockets.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use korum_protocol::id::Epoch;
use korum_protocol::resp::decode::Reply;
use tokio::time::{Instant, sleep};

use crate::connection::{Exchange, Link, Replies};
use crate::error::{AttemptError, Error, ServerError};
use crate::links::{Core, Snapshot};
use crate::pipeline::{Batch, Entry, Outcome};
use crate::request::Request;
use crate::retry::{self, Decision, Failure, Reach, with_jitter};
use crate::target::{self, Route, Target};

/// Longest wait for a newer map before the old one is tried again.
const REFRESH_PATIENCE: Duration = Duration::from_millis(500);

/// The attempts of one request or batch.
struct Attempts<'a> {
    core: &'a Core,
    began: Instant,
    deadline: Instant,
    count: u32,
}

impl Core {
    /// Executes one request.
    pub(crate) async fn execute(&self, request: Request) -> Result<Reply, Error> {
        let mut attempts = Attempts::new(self);
        loop {
            attempts.count += 1;
            let snapshot = self.snapshot();
            let turn = self.turn();
            let link = link_for(&snapshot, request.route, turn);
            let (failure, error) = match link {
                None => not_served(),
                Some(link) => {
                    let deadline = attempts.attempt_deadline(request.repeatable);
                    match judge(only(link.exchange(request.bytes.clone(), 1, deadline).await)) {
                        Ok(reply) => return Ok(reply),
                        Err(failed) => failed,
                    }
                }
            };
            let reach = match request.route {
                Route::Slot(_) => Reach::Primary,
                Route::AnyNode => Reach::AnyNode,
            };
            let decision = retry::decide(failure, attempts.count, request.repeatable, reach);
            let hint = link.filter(|_| failure == Failure::Moved).cloned();
            if !attempts.prepare(decision, snapshot.topology.epoch(), turn, hint).await {
                if failure == Failure::Unknown {
                    // The next caller should not meet the same node.
                    self.wanted.poke();
                }
                return Err(attempts.error(&request, failure, error));
            }
        }
    }

    /// Executes a batch: one request per node and round, answers in the order of the requests.
    pub(crate) async fn execute_all(&self, requests: Vec<Request>) -> Vec<Result<Reply, Error>> {
        let mut attempts = Attempts::new(self);
        let entries =
            requests.iter().map(|request| Entry { route: request.route, repeatable: request.repeatable });
        let mut batch: Batch<Reply, AttemptError> = Batch::new(entries.collect());
        while !batch.is_settled() {
            attempts.count += 1;
            let snapshot = self.snapshot();
            let turn = self.turn();
            let targets = target::group(&snapshot.topology, batch.open(), turn);
            let mut outcomes = Vec::with_capacity(batch.open().count());
            outcomes.extend(targets.unserved.iter().map(|&position| (position, failed(not_served()))));
            let exchanges =
                targets.served.iter().map(|target| attempts.attempt(&snapshot, target, &requests));
            let exchanges = join_all(exchanges.collect()).await;
            let mut hint = None;
            for (target, exchange) in targets.served.iter().zip(exchanges) {
                let moved = spread(&target.positions, exchange, &mut outcomes);
                if moved {
                    hint = snapshot.link(target.member, target.whole).cloned();
                }
            }
            let decision = batch.absorb(outcomes);
            if !attempts.prepare(decision, snapshot.topology.epoch(), turn, hint).await {
                break;
            }
        }
        let results = batch.into_results().into_iter().zip(&requests);
        let results = results.map(|(result, request)| match result {
            Some(Ok(reply)) => Ok(reply),
            Some(Err((failure, error))) => Err(attempts.error(request, failure, error)),
            None => {
                let (failure, error) = not_served();
                Err(attempts.error(request, failure, error))
            }
        });
        results.collect()
    }
}

impl<'a> Attempts<'a> {
    fn new(core: &'a Core) -> Self {
        let began = Instant::now();
        Self { core, began, deadline: began + core.settings.request_deadline, count: 0 }
    }

    /// What may be repeated does not wait for one node until the end; what may not, does:
    /// giving up early would only turn a late answer into an unknown outcome.
    fn attempt_deadline(&self, repeatable: bool) -> Instant {
        if repeatable {
            self.deadline.min(Instant::now() + self.core.settings.attempt_deadline)
        } else {
            self.deadline
        }
    }

    async fn attempt(&self, snapshot: &Snapshot, target: &Target, requests: &[Request]) -> Exchange {
        let Some(link) = snapshot.link(target.member, target.whole) else {
            return Exchange { replies: Replies::new(), failure: Some(not_served().1) };
        };
        let repeatable = target.positions.iter().all(|&position| requests[position].repeatable);
        let bytes = concat(target.positions.iter().map(|&position| &requests[position].bytes));
        link.exchange(bytes, target.positions.len(), self.attempt_deadline(repeatable)).await
    }

    /// Does what was decided; false when there is to be no other attempt.
    async fn prepare(&self, decision: Decision, epoch: Epoch, turn: usize, hint: Option<Link>) -> bool {
        let pause = match decision {
            Decision::GiveUp => return false,
            Decision::SameTarget { pause } | Decision::Refresh { pause } | Decision::NextTarget { pause } => {
                with_jitter(pause, rand::random())
            }
        };
        if Instant::now() + pause >= self.deadline {
            return false;
        }
        if !pause.is_zero() {
            sleep(pause).await;
        }
        match decision {
            Decision::Refresh { .. } => {
                let patience = self.deadline.min(Instant::now() + REFRESH_PATIENCE);
                self.core.wanted.newer_than(epoch, hint, patience).await;
            }
            Decision::NextTarget { .. } => {
                self.core.next_turn(turn);
                self.core.wanted.poke();
            }
            Decision::SameTarget { .. } | Decision::GiveUp => {}
        }
        Instant::now() < self.deadline
    }

    /// The last failure, as the caller is told.
    fn error(&self, request: &Request, failure: Failure, last: AttemptError) -> Error {
        match (failure, last) {
            (Failure::Final, AttemptError::NotServed(error)) => Error::Server(error),
            (Failure::Final, refused) => Error::Handshake(refused),
            (Failure::Unknown, last) if !request.repeatable => {
                Error::UnknownOutcome { command: request.name.to_arc(), last }
            }
            (_, last) => Error::Unavailable {
                command: request.name.to_arc(),
                attempts: self.count,
                waited: self.began.elapsed(),
                last,
            },
        }
    }
}

fn link_for(snapshot: &Snapshot, route: Route, turn: usize) -> Option<&Link> {
    let (member, whole) = match route {
        Route::Slot(slot) => (snapshot.topology.primary_of(slot)?, false),
        Route::AnyNode => (snapshot.topology.nth_up(turn)?, true),
    };
    snapshot.link(member, whole)
}

/// The map names nobody for it.
fn not_served() -> (Failure, AttemptError) {
    let error = ServerError::new("CLUSTERDOWN no node serves this slot at present");
    (Failure::Down, AttemptError::NotServed(error))
}

fn failed((failure, error): (Failure, AttemptError)) -> Outcome<Reply, AttemptError> {
    Outcome::Failed(failure, error)
}

/// The one reply of a request that is one command.
fn only(mut exchange: Exchange) -> Result<Reply, AttemptError> {
    match (exchange.replies.pop(), exchange.failure) {
        (Some(reply), _) => Ok(reply),
        (None, Some(error)) => Err(error),
        (None, None) => unreachable!("an exchange without a failure has all its replies"),
    }
}

/// An error reply is a failure; `retry` knows which.
fn judge(result: Result<Reply, AttemptError>) -> Result<Reply, (Failure, AttemptError)> {
    match result {
        Ok(Reply::Error(text)) => {
            let error = ServerError::new(&String::from_utf8_lossy(&text));
            Err((Failure::of_reply(&error), AttemptError::NotServed(error)))
        }
        Ok(reply) => Ok(reply),
        Err(error) => Err((Failure::of_attempt(&error), error)),
    }
}

/// Gives each position its outcome; true if one of them was redirected.
fn spread(
    positions: &[usize],
    exchange: Exchange,
    outcomes: &mut Vec<(usize, Outcome<Reply, AttemptError>)>,
) -> bool {
    let mut moved = false;
    let mut replies = exchange.replies.into_iter();
    for &position in positions {
        let result = match (replies.next(), &exchange.failure) {
            (Some(reply), _) => Ok(reply),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => unreachable!("an exchange without a failure has all its replies"),
        };
        outcomes.push((
            position,
            match judge(result) {
                Ok(reply) => Outcome::Done(reply),
                Err((failure, error)) => {
                    moved |= failure == Failure::Moved;
                    Outcome::Failed(failure, error)
                }
            },
        ));
    }
    moved
}

fn concat<'b>(mut parts: impl Iterator<Item = &'b Bytes> + Clone) -> Bytes {
    let size = parts.clone().map(Bytes::len).sum();
    if let (Some(first), true) = (parts.clone().next(), parts.clone().nth(1).is_none()) {
        return first.clone();
    }
    let mut all = BytesMut::with_capacity(size);
    parts.by_ref().for_each(|part| all.extend_from_slice(part));
    all.freeze()
}

/// Waits for all; as many as there are nodes, so polling each on every wake is cheap.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (future, output) in running.iter_mut().zip(&mut done) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    done.into_iter().flatten().collect()
}
