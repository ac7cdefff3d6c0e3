//! Requests that were sent and wait for their replies, oldest first.
//!
//! For: matching replies in order; keeping the place of requests whose callers are gone; knowing what a broken
//! connection may have carried. Pure but for the channels it answers on.
//! Not here: sockets, timers (`now` is passed in).

use std::collections::VecDeque;
use std::sync::Arc;

use korum_protocol::resp::decode::Reply;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Exchange, Job, Replies};
use crate::error::AttemptError;

/// A request on its way. When its caller is gone it stays as a tombstone, so that replies keep matching.
#[derive(Debug)]
struct Waiting {
    caller: oneshot::Sender<Exchange>,
    count: usize,
    replies: Replies,
    deadline: Instant,
    /// Position in the connection's outgoing bytes at which it begins.
    start: u64,
}

/// The requests of one connection, in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    waiting: VecDeque<Waiting>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A request whose bytes begin at `start` joins the end.
    pub(super) fn push(&mut self, job: Job, start: u64) {
        let Job { count, deadline, reply, .. } = job;
        self.waiting.push_back(Waiting { caller: reply, count, replies: Replies::new(), deadline, start });
    }

    /// The next reply belongs to the oldest request. False if nobody waits: the node answers what was not asked.
    pub(super) fn answer(&mut self, reply: Reply) -> bool {
        let Some(first) = self.waiting.front_mut() else { return false };
        first.replies.push(reply);
        if first.replies.len() == first.count
            && let Some(done) = self.waiting.pop_front()
        {
            // The caller may be gone; then this was a tombstone.
            let _ = done.caller.send(Exchange { replies: done.replies, failure: None });
        }
        true
    }

    /// Deadline of the oldest request: all others wait behind it.
    pub(super) fn oldest_deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|waiting| waiting.deadline)
    }

    /// The connection is gone after `written` bytes: what began before that has an unknown outcome.
    pub(super) fn fail_all(&mut self, written: u64, node: &Arc<str>, reason: &Arc<str>) {
        for waiting in self.waiting.drain(..) {
            let (node, reason) = (node.clone(), reason.clone());
            let failure = if waiting.start < written {
                AttemptError::Unknown { node, reason }
            } else {
                AttemptError::NotSent { node, reason }
            };
            let _ = waiting.caller.send(Exchange { replies: waiting.replies, failure: Some(failure) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    fn job(count: usize) -> (Job, oneshot::Receiver<Exchange>) {
        let (reply, answer) = oneshot::channel();
        let deadline = Instant::now() + Duration::from_secs(1);
        (Job { bytes: Bytes::new(), count, deadline, progress: Arc::default(), reply }, answer)
    }

    #[test]
    fn replies_match_in_order_across_a_tombstone() {
        let mut in_flight = InFlight::default();
        let (first, gone) = job(1);
        let (second, mut answer) = job(2);
        in_flight.push(first, 0);
        in_flight.push(second, 10);
        drop(gone);
        for number in 1..=3 {
            assert!(in_flight.answer(Reply::Integer(number)));
        }
        let exchange = answer.try_recv().unwrap();
        assert_eq!(exchange.replies[..], [Reply::Integer(2), Reply::Integer(3)]);
        assert!(exchange.failure.is_none());
        assert!(!in_flight.answer(Reply::Null), "nobody waits");
    }

    #[test]
    fn a_break_tells_sent_from_not_sent_and_keeps_the_replies_that_came() {
        let mut in_flight = InFlight::default();
        let (first, mut first_answer) = job(2);
        let (second, mut second_answer) = job(1);
        in_flight.push(first, 0);
        in_flight.push(second, 10);
        in_flight.answer(Reply::Integer(1));
        in_flight.fail_all(10, &"n".into(), &"broken".into());
        let exchange = first_answer.try_recv().unwrap();
        assert_eq!(exchange.replies.len(), 1);
        assert!(matches!(exchange.failure, Some(AttemptError::Unknown { .. })));
        assert!(matches!(second_answer.try_recv().unwrap().failure, Some(AttemptError::NotSent { .. })));
    }
}
