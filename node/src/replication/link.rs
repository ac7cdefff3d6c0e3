//! One way to one peer: what this node, as a primary, tells it, and how far it has acknowledged.
//!
//! For: appending messages under a partition's lock, in that order onto the wire, and waiting for
//! acknowledgements by position. Position `n` is the `n`-th message of this link; one number
//! acknowledges everything before it, whatever the partition.
//! Not here: sockets (`session`), what a message says (`message`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use korum_protocol::id::{Incarnation, NodeId};
use tokio::sync::{Notify, oneshot};

/// Pending bytes at which a link takes no more writes until the peer reads, bytes: several round
/// trips of a fast network, and small beside a node's memory.
pub const OUTBOX_BYTES_MAX: usize = 32 << 20;
/// Bytes of messages after which a new frame begins, bytes: a frame is acknowledged as a whole, so small
/// beside what an answer can wait for; and a frame of one more message, whatever its size, stays below the
/// limit of frames.
const FRAME_BYTES: usize = 1 << 20;

/// The link broke before the acknowledgement came: what was sent may or may not have arrived.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the link to the replica broke")]
pub struct Broken;

/// The peer acknowledged what it was never sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the replica acknowledged message {0}, which was not sent")]
pub struct NotSent(u64);

/// An ordered stream of messages to one run of one peer. Never mended: a new connection is a new link.
pub struct Link {
    /// Who reads this.
    pub peer: NodeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    outbox: Mutex<Outbox>,
    pending: AtomicU64,
    appended: Notify,
    drained: Notify,
    taken: AtomicU64,
    written: AtomicU64,
    acknowledged: AtomicU64,
    broken: AtomicBool,
    waiters: Mutex<BTreeMap<(u64, u64), oneshot::Sender<()>>>,
    waiter_ids: AtomicU64,
    questions: AtomicU64,
}

#[derive(Default)]
struct Outbox {
    /// What becomes one frame each, with the position of its last message.
    frames: VecDeque<(u64, BytesMut)>,
    bytes: usize,
    last: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// A fresh link, at position 0.
    #[must_use]
    pub fn new(peer: NodeId, incarnation: Incarnation) -> Self {
        Self {
            peer,
            incarnation,
            outbox: Mutex::default(),
            pending: AtomicU64::new(0),
            appended: Notify::new(),
            drained: Notify::new(),
            taken: AtomicU64::new(0),
            written: AtomicU64::new(0),
            acknowledged: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            waiters: Mutex::default(),
            waiter_ids: AtomicU64::new(0),
            questions: AtomicU64::new(0),
        }
    }

    /// Appends one message; returns its position. On a broken link it goes nowhere, and waiting for
    /// it says so.
    pub fn append(&self, write: impl FnOnce(&mut BytesMut)) -> u64 {
        let mut outbox = lock(&self.outbox);
        outbox.last += 1;
        let position = outbox.last;
        if self.is_broken() {
            return position;
        }
        let was_empty = outbox.frames.is_empty();
        if outbox.frames.back().is_none_or(|(_, frame)| frame.len() >= FRAME_BYTES) {
            outbox.frames.push_back((position, BytesMut::new()));
        }
        let (last, frame) = outbox.frames.back_mut().expect("one was just added if there was none");
        let before = frame.len();
        write(frame);
        *last = position;
        let added = frame.len() - before;
        outbox.bytes += added;
        self.pending.store(outbox.bytes as u64, Ordering::Relaxed);
        drop(outbox);
        if was_empty {
            self.appended.notify_one();
        }
        position
    }

    /// Takes the next frame's messages: the position of the last one, and their bytes. Waits until there
    /// are some. One task only takes.
    pub async fn take(&self) -> (u64, BytesMut) {
        loop {
            if let Some(taken) = self.try_take() {
                return taken;
            }
            self.appended.notified().await;
        }
    }

    /// As [`Self::take`], without waiting.
    pub fn try_take(&self) -> Option<(u64, BytesMut)> {
        let mut outbox = lock(&self.outbox);
        let (last, frame) = outbox.frames.pop_front()?;
        outbox.bytes -= frame.len();
        self.pending.store(outbox.bytes as u64, Ordering::Relaxed);
        self.taken.store(last, Ordering::Release);
        drop(outbox);
        self.drained.notify_waiters();
        Some((last, frame))
    }

    /// A number that no question on this link had before.
    pub fn next_question(&self) -> u64 {
        self.questions.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes that wait to be written.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending.load(Ordering::Relaxed) as usize
    }

    /// Takes no more writes for now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pending_bytes() >= OUTBOX_BYTES_MAX
    }

    /// Waits until at most `bytes` are pending, or the link is broken.
    pub async fn drained_to(&self, bytes: usize) {
        loop {
            let drained = self.drained.notified();
            if self.pending_bytes() <= bytes || self.is_broken() {
                return;
            }
            drained.await;
        }
    }

    /// Waits until the link is given up.
    pub async fn broken(&self) {
        loop {
            let drained = self.drained.notified();
            if self.is_broken() {
                return;
            }
            drained.await;
        }
    }

    /// The last position that the peer has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    /// The socket took so many more bytes of the messages behind position `before`. That is progress only if nothing
    /// before them is owed: a socket takes megabytes for a peer that reads nothing.
    pub fn note_written(&self, before: u64, bytes: usize) {
        if self.acknowledged() >= before {
            self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// A number that grows whenever the peer acknowledges anything, or takes of what it will acknowledge next: one large
    /// message may be under way for long.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.acknowledged().wrapping_add(self.written.load(Ordering::Relaxed))
    }

    /// Messages that were appended and not yet acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        let last = lock(&self.outbox).last;
        last.saturating_sub(self.acknowledged())
    }

    /// Everything appended was acknowledged.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.unacknowledged() == 0
    }

    /// Nothing will be acknowledged any more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// The peer has applied everything up to `position`: wakes whoever waited for that.
    ///
    /// # Errors
    /// When that was never sent; then nothing is acknowledged.
    pub fn acknowledge(&self, position: u64) -> Result<(), NotSent> {
        if position > self.taken.load(Ordering::Acquire) {
            return Err(NotSent(position));
        }
        self.acknowledged.fetch_max(position, Ordering::AcqRel);
        let mut waiters = lock(&self.waiters);
        let rest = waiters.split_off(&(position + 1, 0));
        let released = std::mem::replace(&mut *waiters, rest);
        drop(waiters);
        for (_, waiter) in released {
            // A receiver that is gone no longer cares.
            let _ = waiter.send(());
        }
        Ok(())
    }

    /// The connection is gone: wakes everyone who waits.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
        self.recheck();
        self.appended.notify_one();
        self.drained.notify_waiters();
    }

    /// Wakes everyone who waits, to look again: what they wait for may no longer be asked of this peer.
    pub fn recheck(&self) {
        lock(&self.waiters).clear();
    }

    /// Waits until `position` is acknowledged. Safe to drop.
    ///
    /// # Errors
    /// When the link broke first, or `recheck` asked to look again.
    pub async fn wait(&self, position: u64) -> Result<(), Broken> {
        if self.acknowledged() >= position {
            return Ok(());
        }
        let (sender, receiver) = oneshot::channel();
        let id = self.waiter_ids.fetch_add(1, Ordering::Relaxed);
        {
            let mut waiters = lock(&self.waiters);
            // Checked under the lock that `acknowledge` and `break_off` take after they have stored.
            if self.acknowledged() >= position {
                return Ok(());
            }
            if self.is_broken() {
                return Err(Broken);
            }
            waiters.insert((position, id), sender);
        }
        let _removed_if_dropped = Registered { link: self, key: (position, id) };
        receiver.await.map_err(|_| Broken)
    }
}

/// A waiter's place in the queue, given up when the waiting future is dropped.
struct Registered<'a> {
    link: &'a Link,
    key: (u64, u64),
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        lock(&self.link.waiters).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        Link::new(NodeId(1), Incarnation(1))
    }

    #[tokio::test]
    async fn waiters_are_released_by_position() {
        let link = link();
        let first = link.append(|out| out.extend_from_slice(b"a"));
        let second = link.append(|out| out.extend_from_slice(b"b"));
        assert_eq!((first, second), (1, 2));
        assert_eq!(link.acknowledge(1), Err(NotSent(1)), "nothing was taken yet");
        assert!(link.try_take().is_some());
        assert_eq!(link.acknowledge(1), Ok(()));
        assert_eq!(link.wait(1).await, Ok(()));
        let waited = tokio::join!(link.wait(2), async { link.acknowledge(2) });
        assert_eq!(waited, (Ok(()), Ok(())));
        assert_eq!(link.acknowledge(u64::MAX), Err(NotSent(u64::MAX)));
        assert_eq!(link.acknowledged(), 2);
    }

    #[tokio::test]
    async fn a_broken_link_tells_its_waiters_but_keeps_what_was_acknowledged() {
        let link = link();
        link.append(|out| out.extend_from_slice(b"a"));
        assert!(link.try_take().is_some());
        link.append(|out| out.extend_from_slice(b"b"));
        assert_eq!(link.acknowledge(1), Ok(()));
        let (waited, ()) = tokio::join!(link.wait(2), async { link.break_off() });
        assert_eq!(waited, Err(Broken));
        assert_eq!(link.wait(1).await, Ok(()));
        assert_eq!(link.wait(2).await, Err(Broken));
    }

    #[tokio::test]
    async fn taking_gives_everything_and_the_last_position() {
        let link = link();
        link.append(|out| out.extend_from_slice(b"a"));
        link.append(|out| out.extend_from_slice(b"b"));
        let (last, bytes) = link.take().await;
        assert_eq!((last, &bytes[..]), (2, &b"ab"[..]));
        assert_eq!(link.pending_bytes(), 0);
    }

    #[test]
    fn bytes_behind_what_is_owed_are_no_progress() {
        let link = link();
        let send = |before| {
            let last = link.append(|out| out.extend_from_slice(b"a"));
            assert!(link.try_take().is_some());
            link.note_written(before, 1);
            last
        };
        let fresh = link.progress();
        let first = send(0);
        let owed = link.progress();
        assert_ne!(fresh, owed, "the first one is under way");
        let second = send(first);
        assert_eq!(link.progress(), owed, "a silent peer stays silent, however much its socket takes");
        assert_eq!(link.acknowledge(second), Ok(()));
        let acknowledged = link.progress();
        assert_ne!(acknowledged, owed);
        send(second);
        assert_ne!(link.progress(), acknowledged);
    }

    #[tokio::test]
    async fn a_frame_holds_at_most_one_message_beyond_its_bound() {
        let link = link();
        for size in [FRAME_BYTES - 1, 3 * FRAME_BYTES, 10, 10] {
            link.append(|out| out.resize(out.len() + size, 0));
        }
        assert_eq!(link.pending_bytes(), 4 * FRAME_BYTES + 19);
        let frames: Vec<_> =
            std::iter::from_fn(|| link.try_take()).map(|(last, it)| (last, it.len())).collect();
        assert_eq!(frames, [(2, 4 * FRAME_BYTES - 1), (4, 20)]);
        assert_eq!(link.pending_bytes(), 0);
    }
}
