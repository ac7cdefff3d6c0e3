//! What others have to say to one client: messages that wait until its connection writes them.
//!
//! For: a queue that anybody may append to without waiting, and that never grows beyond a limit: a client that does
//! not read is closed. Messages are shared by all who get them.
//! Not here: who gets which message (`pubsub`), the socket (`connection`).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::resp::{ProtocolVersion, ReplyWriter};
use korum_protocol::rope::Rope;
use smallvec::SmallVec;

use crate::env::Tick;

/// What a message costs beside its bytes: its place in the queue and its share of an allocation.
const FRAME_COST: usize = 64;
/// Bytes that may wait for one client where the operator has set no limit.
const BYTES_MAX: usize = 1 << 30;

/// A message as it is written. A clone shares its bytes.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    pieces: SmallVec<[Bytes; 1]>,
    len: usize,
}

impl Frame {
    /// What `write` writes, in one version of RESP.
    pub fn write(version: ProtocolVersion, write: impl FnOnce(&mut ReplyWriter<'_>)) -> Self {
        let mut rope = Rope::new();
        write(&mut ReplyWriter::holding(&mut rope, version));
        let len = rope.len();
        Self { pieces: rope.take_pieces().into_iter().collect(), len }
    }
}

/// How much may wait for a client. 0 sets no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Bytes over which it is closed.
    pub hard: usize,
    /// Bytes over which it is closed if they stay for `patience`.
    pub soft: usize,
    /// How long.
    pub patience: Duration,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Appended {
    /// Nothing waited: the connection has to be woken.
    First,
    /// It stands behind others, for which the connection was woken.
    Behind,
    /// Too much waits: the client is to be closed, and nothing waits any more.
    Overrun,
    /// The client is about to be closed.
    Closed,
}

/// The queue of one client.
#[derive(Debug, Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    /// Copies of the queue's figures, to be looked at without its lock.
    bytes: AtomicUsize,
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// The soft limit, as it was last told.
    soft: usize,
    /// Since when more than that waits.
    over_since: Option<Tick>,
    is_closed: bool,
}

impl Queue {
    fn is_overdue(&mut self, limits: &Limits, now: Tick) -> bool {
        self.soft = limits.soft;
        if limits.soft == 0 || self.bytes <= limits.soft {
            self.over_since = None;
            return false;
        }
        now.since(*self.over_since.get_or_insert(now)) >= limits.patience
    }

    fn close(&mut self) {
        *self = Self { is_closed: true, ..Self::default() };
    }
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, queue: &Queue) {
        self.bytes.store(queue.bytes, Relaxed);
        self.count.store(queue.frames.len(), Relaxed);
    }

    /// Appends a message. Never waits for the client.
    pub fn append(&self, frame: Frame, limits: &Limits, now: Tick) -> Appended {
        let mut queue = self.queue();
        if queue.is_closed {
            return Appended::Closed;
        }
        let is_first = queue.frames.is_empty();
        queue.bytes += frame.len + FRAME_COST;
        queue.frames.push_back(frame);
        let hard = if limits.hard == 0 { BYTES_MAX } else { limits.hard };
        let is_over = queue.bytes > hard || queue.is_overdue(limits, now);
        if is_over {
            queue.close();
        }
        self.publish(&queue);
        match (is_over, is_first) {
            (true, _) => Appended::Overrun,
            (false, true) => Appended::First,
            (false, false) => Appended::Behind,
        }
    }

    /// Whether more than the soft limit has waited for too long. Then nothing waits any more.
    pub fn overruns(&self, limits: &Limits, now: Tick) -> bool {
        if self.bytes.load(Relaxed) <= limits.soft {
            return false;
        }
        let mut queue = self.queue();
        let is_over = queue.is_overdue(limits, now);
        if is_over {
            queue.close();
            self.publish(&queue);
        }
        is_over
    }

    /// Moves messages to `out` until it has got `bytes_max` of them.
    pub fn take(&self, bytes_max: usize, out: &mut Rope) {
        let mut queue = self.queue();
        let mut taken = 0;
        while taken < bytes_max
            && let Some(frame) = queue.frames.pop_front()
        {
            queue.bytes -= frame.len + FRAME_COST;
            taken += frame.len;
            frame.pieces.into_iter().for_each(|piece| out.push(piece));
        }
        if queue.bytes <= queue.soft {
            queue.over_since = None;
        }
        self.publish(&queue);
    }

    /// Nothing waits. What was appended before by anybody whom the caller has heard of is seen.
    pub fn is_empty(&self) -> bool {
        self.queue().frames.is_empty()
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Messages that wait.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::rope::HELD_BYTES_MIN;

    use super::*;

    fn frame(bytes: usize) -> Frame {
        // A bulk string of five digits has nine bytes around it.
        Frame::write(ProtocolVersion::Resp2, |reply| reply.bulk_held(&vec![b'x'; bytes].into()))
    }

    fn second(number: u64) -> Tick {
        Tick(number * 1_000_000_000)
    }

    const LIMITS: Limits = Limits { hard: 400_000, soft: 200_000, patience: Duration::from_secs(60) };

    #[test]
    fn messages_are_taken_in_order_a_part_at_a_time() {
        let outbox = Outbox::default();
        let write = |text: &'static str| Frame::write(ProtocolVersion::Resp3, |reply| reply.simple(text));
        assert_eq!(outbox.append(write("a"), &LIMITS, second(1)), Appended::First);
        assert_eq!(outbox.append(write("b"), &LIMITS, second(1)), Appended::Behind);
        assert_eq!(outbox.append(write("c"), &LIMITS, second(1)), Appended::Behind);
        assert_eq!((outbox.count(), outbox.bytes()), (3, 12 + 3 * FRAME_COST));
        let mut out = Rope::new();
        outbox.take(5, &mut out);
        assert_eq!((out.copied(), outbox.is_empty()), (&b"+a\r\n+b\r\n"[..], false));
        outbox.take(5, &mut out);
        assert!(outbox.is_empty());
        assert_eq!((outbox.count(), outbox.bytes()), (0, 0));
        assert_eq!(outbox.append(write("d"), &LIMITS, second(1)), Appended::First);
    }

    #[test]
    fn a_long_message_is_shared() {
        let (one, other) = (Outbox::default(), Outbox::default());
        let message = frame(HELD_BYTES_MIN);
        let _ = (one.append(message.clone(), &LIMITS, second(1)), other.append(message, &LIMITS, second(1)));
        let strings = [one, other].map(|outbox| {
            let mut out = Rope::new();
            outbox.take(1, &mut out);
            out.take_pieces().iter().map(|piece| piece.as_ptr()).collect::<Vec<_>>()[1]
        });
        assert_eq!(strings[0], strings[1]);
    }

    #[test]
    fn over_the_hard_limit_nothing_is_kept() {
        let outbox = Outbox::default();
        assert_eq!(outbox.append(frame(100_000), &LIMITS, second(1)), Appended::First);
        assert_eq!(outbox.append(frame(300_000), &LIMITS, second(1)), Appended::Overrun);
        assert_eq!((outbox.bytes(), outbox.is_empty()), (0, true));
        assert_eq!(outbox.append(frame(1), &LIMITS, second(1)), Appended::Closed);
    }

    #[test]
    fn over_the_soft_limit_there_is_some_time() {
        let outbox = Outbox::default();
        assert_eq!(outbox.append(frame(250_000), &LIMITS, second(1)), Appended::First);
        assert!(!outbox.overruns(&LIMITS, second(60)));
        outbox.take(1, &mut Rope::new());
        assert_eq!(
            outbox.append(frame(250_000), &LIMITS, second(62)),
            Appended::First,
            "it has read in between"
        );
        assert_eq!(outbox.append(frame(1), &LIMITS, second(121)), Appended::Behind);
        assert!(outbox.overruns(&LIMITS, second(122)));
        assert_eq!(outbox.append(frame(1), &LIMITS, second(122)), Appended::Closed);
    }

    #[test]
    fn zero_sets_no_limit() {
        let outbox = Outbox::default();
        let none = Limits::default();
        for at in 0..100 {
            assert_ne!(outbox.append(frame(100_000), &none, second(at)), Appended::Overrun);
        }
        assert!(!outbox.overruns(&none, second(1000)));
    }
}
