//! One way to one peer: what this node, as a primary, tells it, and how far it has acknowledged.
//!
//! For: appending messages under a partition's lock, in that order onto the wire, and waiting for
//! acknowledgements by position.
//! Not here: sockets (`session`), what a message says (`message`).
//!
//! A link has two lanes, each an ordered stream with positions of its own: position `n` is the `n`-th message of
//! its lane, and one number acknowledges everything before it in that lane, whatever the partition. Large messages
//! go to the lane of large ones, whose frames are cut into pieces between which small frames pass. Order holds per
//! partition: while the last message of a partition in the large lane is not acknowledged, its next ones follow it
//! there; and nothing of the large lane begins before the small messages that were appended earlier are taken.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::map::PartitionId;
use korum_protocol::peer::piece::PIECE_BYTES;
use korum_protocol::rope::Rope;
use tokio::sync::{Notify, oneshot};

use super::message::{Acknowledged, Message};

/// Pending bytes at which a lane takes no more writes until the peer reads, bytes: several round
/// trips of a fast network, and small beside a node's memory. (A large value that waits is shared with the store,
/// so it takes memory of its own only once it is gone there.)
pub const OUTBOX_BYTES_MAX: usize = 32 << 20;
/// Bytes of messages after which a new frame begins, bytes: a frame is acknowledged as a whole, so small
/// beside what an answer can wait for.
const FRAME_BYTES: usize = 1 << 20;
/// A message of so many bytes goes to the large lane, bytes: such a one is cut.
const LARGE_BYTES: usize = PIECE_BYTES;

/// The link broke before the acknowledgement came: what was sent may or may not have arrived.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the link to the replica broke")]
pub struct Broken;

/// The peer acknowledged what it was never sent.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the replica acknowledged message {position} of the lane {lane:?}, which was not sent")]
pub struct NotSent {
    lane: Lane,
    position: u64,
}

/// One of the two streams of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Of small messages, in frames that are sent whole.
    Small,
    /// Of large ones and what must not overtake them, in frames that are cut.
    Large,
}

/// Which message of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The lane.
    pub lane: Lane,
    /// The position in it.
    pub position: u64,
}

/// What is kept for each lane.
#[derive(Default)]
struct Track {
    pending: AtomicU64,
    taken: AtomicU64,
    acknowledged: AtomicU64,
    waiters: Mutex<BTreeMap<(u64, u64), oneshot::Sender<()>>>,
}

/// Two ordered streams of messages to one run of one peer. Never mended: a new connection is a new link.
pub struct Link {
    /// Who reads this.
    pub peer: NodeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    /// Which link of this node it is, the first being 1; 0 where nobody counts.
    pub number: u64,
    large_bytes: usize,
    outbox: Mutex<Outbox>,
    small: Track,
    large: Track,
    appended: Notify,
    closing: Notify,
    written: AtomicU64,
    heard: AtomicU64,
    broken: AtomicBool,
    waiter_ids: AtomicU64,
    rechecks: AtomicU64,
    questions: AtomicU64,
}

#[derive(Default)]
struct Outbox {
    /// What becomes one frame each, with the position of its last message.
    small: VecDeque<(u64, Rope)>,
    small_bytes: usize,
    small_last: u64,
    large: VecDeque<LargeFrame>,
    large_bytes: usize,
    large_last: u64,
    /// Partitions whose last message went to the large lane, with its position there.
    in_large: HashMap<PartitionId, u64>,
}

/// A frame of the large lane.
struct LargeFrame {
    /// The position of its last message.
    last: u64,
    /// The position in the small lane that must be taken before.
    after: u64,
    messages: Rope,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// A fresh link, at position 0 of both lanes.
    #[must_use]
    pub fn new(peer: NodeId, incarnation: Incarnation) -> Self {
        Self::with_large_bytes(peer, incarnation, LARGE_BYTES)
    }

    /// As [`Self::new`], with its number among this node's links.
    #[must_use]
    pub fn numbered(peer: NodeId, incarnation: Incarnation, number: u64) -> Self {
        Self { number, ..Self::new(peer, incarnation) }
    }

    /// As [`Self::new`], with another border between the lanes.
    pub(super) fn with_large_bytes(peer: NodeId, incarnation: Incarnation, large_bytes: usize) -> Self {
        Self {
            peer,
            incarnation,
            number: 0,
            large_bytes,
            outbox: Mutex::default(),
            small: Track::default(),
            large: Track::default(),
            appended: Notify::new(),
            closing: Notify::new(),
            written: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            waiter_ids: AtomicU64::new(0),
            rechecks: AtomicU64::new(0),
            questions: AtomicU64::new(0),
        }
    }

    fn track(&self, lane: Lane) -> &Track {
        match lane {
            Lane::Small => &self.small,
            Lane::Large => &self.large,
        }
    }

    /// Appends one message; returns its place. On a broken link it goes nowhere, and waiting for
    /// it says so.
    pub fn append(&self, message: &Message<&Rope>) -> Place {
        let mut outbox = lock(&self.outbox);
        let lane = self.lane_of(&mut outbox, message);
        let place = match lane {
            Lane::Small => outbox.append_small(message, self.is_broken()),
            Lane::Large => outbox.append_large(message, self.is_broken()),
        };
        self.note_pending(&outbox);
        drop(outbox);
        self.appended.notify_one();
        place
    }

    fn lane_of(&self, outbox: &mut Outbox, message: &Message<&Rope>) -> Lane {
        if message.size() >= self.large_bytes {
            return Lane::Large;
        }
        if outbox.in_large.is_empty() {
            return Lane::Small;
        }
        let acknowledged = self.large.acknowledged.load(Ordering::Acquire);
        match outbox.in_large.get(&message.partition) {
            Some(&last) if last > acknowledged => Lane::Large,
            Some(_) => {
                outbox.in_large.remove(&message.partition);
                Lane::Small
            }
            None => Lane::Small,
        }
    }

    fn note_pending(&self, outbox: &Outbox) {
        self.small.pending.store(outbox.small_bytes as u64, Ordering::Relaxed);
        self.large.pending.store(outbox.large_bytes as u64, Ordering::Relaxed);
    }

    /// Waits until something was appended since the last call. One task only takes.
    pub async fn appended(&self) {
        self.appended.notified().await;
    }

    /// Takes the next small frame's messages: the position of the last one, and their bytes.
    pub fn try_take(&self) -> Option<(u64, Rope)> {
        let mut outbox = lock(&self.outbox);
        let (last, frame) = outbox.small.pop_front()?;
        outbox.small_bytes -= frame.len();
        self.note_pending(&outbox);
        self.small.taken.store(last, Ordering::Release);
        Some((last, frame))
    }

    /// As [`Self::try_take`], from the large lane: nothing before what it must not overtake was taken.
    pub fn try_take_large(&self) -> Option<(u64, Rope)> {
        let mut outbox = lock(&self.outbox);
        let taken = self.small.taken.load(Ordering::Acquire);
        if outbox.large.front()?.after > taken {
            return None;
        }
        let frame = outbox.large.pop_front()?;
        outbox.large_bytes -= frame.messages.len();
        self.note_pending(&outbox);
        self.large.taken.store(frame.last, Ordering::Release);
        Some((frame.last, frame.messages))
    }

    /// A number that no question on this link had before.
    pub fn next_question(&self) -> u64 {
        self.questions.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes that wait to be written.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        [&self.small, &self.large].map(|track| track.pending.load(Ordering::Relaxed) as usize).iter().sum()
    }

    /// A lane takes no more writes for now.
    #[must_use]
    pub fn is_full(&self, lane: Lane) -> bool {
        self.track(lane).pending.load(Ordering::Relaxed) >= OUTBOX_BYTES_MAX as u64
    }

    /// The lane that a small message goes to whose partition's last one is at `sent`.
    #[must_use]
    pub fn lane_after(&self, sent: Place) -> Lane {
        if self.has_acknowledged(sent) { Lane::Small } else { sent.lane }
    }

    /// Waits until the link is given up.
    pub async fn broken(&self) {
        loop {
            let closing = self.closing.notified();
            if self.is_broken() {
                return;
            }
            closing.await;
        }
    }

    /// The peer has applied the message at `place`, and everything before it about its partition.
    #[must_use]
    pub fn has_acknowledged(&self, place: Place) -> bool {
        self.track(place.lane).acknowledged.load(Ordering::Acquire) >= place.position
    }

    /// The last positions that the peer has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> Acknowledged {
        let [small, large] =
            [&self.small, &self.large].map(|track| track.acknowledged.load(Ordering::Acquire));
        Acknowledged { small, large }
    }

    /// The socket took so many more bytes of the messages behind `before`, of its lane. That is progress only if nothing
    /// before them is owed: a socket takes megabytes for a peer that reads nothing.
    pub fn note_written(&self, before: Place, bytes: usize) {
        if self.has_acknowledged(before) {
            self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// A number that grows whenever the peer acknowledges anything, or takes of what it will acknowledge next: one large
    /// message may be under way for long.
    #[must_use]
    pub fn progress(&self) -> u64 {
        let Acknowledged { small, large } = self.acknowledged();
        small.wrapping_add(large).wrapping_add(self.written.load(Ordering::Relaxed))
    }

    /// The peer said something, were it only that it is still at work.
    pub fn note_heard(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it did.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Messages that were appended and not yet acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> u64 {
        let (small, large) = {
            let outbox = lock(&self.outbox);
            (outbox.small_last, outbox.large_last)
        };
        let acknowledged = self.acknowledged();
        small.saturating_sub(acknowledged.small) + large.saturating_sub(acknowledged.large)
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

    /// The peer has applied everything up to these positions: wakes whoever waited for that.
    ///
    /// # Errors
    /// When that was never sent; then nothing is acknowledged.
    pub fn acknowledge(&self, acknowledged: Acknowledged) -> Result<(), NotSent> {
        let both = [(Lane::Small, acknowledged.small), (Lane::Large, acknowledged.large)];
        for (lane, position) in both {
            if position > self.track(lane).taken.load(Ordering::Acquire) {
                return Err(NotSent { lane, position });
            }
        }
        for (lane, position) in both {
            self.track(lane).acknowledge(position);
        }
        Ok(())
    }

    /// The connection is gone: wakes everyone who waits.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
        self.recheck();
        self.appended.notify_one();
        self.closing.notify_waiters();
    }

    /// Wakes everyone who waits, to look again: what they wait for may no longer be asked of this peer.
    pub fn recheck(&self) {
        // Counted first: who registers after its lane was cleared sees the count.
        self.rechecks.fetch_add(1, Ordering::AcqRel);
        lock(&self.small.waiters).clear();
        lock(&self.large.waiters).clear();
    }

    /// How often everyone was asked to look again. To be read under the lock of the partition whose answer waits,
    /// before [`Self::wait`]: what was asked in between is not missed then.
    #[must_use]
    pub fn rechecks(&self) -> u64 {
        self.rechecks.load(Ordering::Acquire)
    }

    /// Waits until the message at `place` is acknowledged. Safe to drop.
    ///
    /// # Errors
    /// When the link broke first, or `recheck` asked to look again since there were `rechecks`.
    pub async fn wait(&self, place: Place, rechecks: u64) -> Result<(), Broken> {
        if self.has_acknowledged(place) {
            return Ok(());
        }
        let track = self.track(place.lane);
        let (sender, receiver) = oneshot::channel();
        let key = (place.position, self.waiter_ids.fetch_add(1, Ordering::Relaxed));
        {
            let mut waiters = lock(&track.waiters);
            // Checked under the lock that `acknowledge` and `break_off` take after they have stored.
            if self.has_acknowledged(place) {
                return Ok(());
            }
            if self.is_broken() || self.rechecks() != rechecks {
                return Err(Broken);
            }
            waiters.insert(key, sender);
        }
        let _removed_if_dropped = Registered { track, key };
        receiver.await.map_err(|_| Broken)
    }
}

impl Outbox {
    fn append_small(&mut self, message: &Message<&Rope>, is_broken: bool) -> Place {
        self.small_last += 1;
        let place = Place { lane: Lane::Small, position: self.small_last };
        if is_broken {
            return place;
        }
        if self.small.back().is_none_or(|(_, frame)| frame.len() >= FRAME_BYTES) {
            self.small.push_back((place.position, Rope::new()));
        }
        let (last, frame) = self.small.back_mut().expect("one was just added if there was none");
        let before = frame.len();
        message.encode(frame);
        *last = place.position;
        self.small_bytes += frame.len() - before;
        place
    }

    fn append_large(&mut self, message: &Message<&Rope>, is_broken: bool) -> Place {
        self.large_last += 1;
        let place = Place { lane: Lane::Large, position: self.large_last };
        if is_broken {
            return place;
        }
        self.in_large.insert(message.partition, place.position);
        let after = self.small_last;
        if self.large.back().is_none_or(|frame| frame.messages.len() >= FRAME_BYTES) {
            self.large.push_back(LargeFrame { last: place.position, after, messages: Rope::new() });
        }
        let frame = self.large.back_mut().expect("one was just added if there was none");
        let before = frame.messages.len();
        message.encode(&mut frame.messages);
        (frame.last, frame.after) = (place.position, after);
        self.large_bytes += frame.messages.len() - before;
        place
    }
}

impl Track {
    fn acknowledge(&self, position: u64) {
        if self.acknowledged.fetch_max(position, Ordering::AcqRel) >= position {
            return;
        }
        let mut waiters = lock(&self.waiters);
        let rest = waiters.split_off(&(position + 1, 0));
        let released = std::mem::replace(&mut *waiters, rest);
        drop(waiters);
        for (_, waiter) in released {
            // A receiver that is gone no longer cares.
            let _ = waiter.send(());
        }
    }
}

/// A waiter's place in the queue, given up when the waiting future is dropped.
struct Registered<'a> {
    track: &'a Track,
    key: (u64, u64),
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        lock(&self.track.waiters).remove(&self.key);
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
