//! What stands in a simulation's world in place of the system's disk and chance; built with feature `sim` only.
//!
//! For: slow disks, power cuts that tear records and lose what was not synced, election timeouts that follow from a seed; and the agreed maps,
//! for those who watch.
//! Not here: when that happens (`tests/sim`).

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::map::{MapChange, View};
use openraft::async_runtime::TokioOneShotSender;
use openraft::{AsyncRuntime, OptionalSend, TokioInstant, TokioRuntime};

thread_local! {
    static DISK: Cell<Disk> = const { Cell::new(Disk { delay: Duration::ZERO, torn_permille: 0, kept_permille: None, forgets: false }) };
}

/// A disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk {
    /// Time for a write to be durable.
    pub delay: Duration,
    /// When a node ends while a record is being written, so much of it has reached the disk, thousandths.
    pub torn_permille: u16,
    /// When the machine loses power, so much of what was written and not synced has reached the disk, thousandths.
    /// `None`: the process ends, and the system goes on to write.
    pub kept_permille: Option<u16>,
    /// It says that it has synced, and has not.
    pub forgets: bool,
}

impl Disk {
    /// So many of `length` bytes, never all.
    #[must_use]
    pub fn torn(self, length: usize) -> usize {
        (length * usize::from(self.torn_permille) / 1000).min(length.saturating_sub(1))
    }
}

/// The disk of the host whose turn it is.
#[must_use]
pub fn disk() -> Disk {
    DISK.get()
}

/// Makes it the turn of a host with this disk.
pub fn set_disk(disk: Disk) {
    DISK.set(disk);
}

/// A change that some node applied.
#[derive(Debug)]
pub struct Applied {
    /// What it was applied to; nothing, if it created the cluster.
    pub before: Option<Arc<View>>,
    /// The change.
    pub change: MapChange,
    /// What it made.
    pub after: Arc<View>,
}

thread_local! {
    static APPLIED: RefCell<Vec<Applied>> = const { RefCell::new(Vec::new()) };
}

/// A node has applied a change.
pub(super) fn applied(before: Option<Arc<View>>, change: MapChange, after: Arc<View>) {
    APPLIED.with_borrow_mut(|all| all.push(Applied { before, change, after }));
}

/// What was applied since the last call, in order; the same change once for every node.
#[must_use]
pub fn take_applied() -> Vec<Applied> {
    APPLIED.take()
}

/// tokio, but for chance.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Runtime;

impl AsyncRuntime for Runtime {
    type JoinError = tokio::task::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = tokio::task::JoinHandle<T>;
    type Sleep = tokio::time::Sleep;
    type Instant = TokioInstant;
    type TimeoutError = tokio::time::error::Elapsed;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = tokio::time::Timeout<T>;
    type ThreadLocalRng = Chance;
    type OneshotSender<T: OptionalSend> = TokioOneShotSender<T>;
    type OneshotReceiver<T: OptionalSend> = tokio::sync::oneshot::Receiver<T>;
    type OneshotReceiverError = tokio::sync::oneshot::error::RecvError;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        TokioRuntime::spawn(future)
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        TokioRuntime::sleep(duration)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        TokioRuntime::sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(
        duration: Duration,
        future: F,
    ) -> Self::Timeout<R, F> {
        TokioRuntime::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: Self::Instant,
        future: F,
    ) -> Self::Timeout<R, F> {
        TokioRuntime::timeout_at(deadline, future)
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        TokioRuntime::is_panic(error)
    }

    fn thread_rng() -> Chance {
        Chance
    }

    fn oneshot<T: OptionalSend>() -> (Self::OneshotSender<T>, Self::OneshotReceiver<T>) {
        TokioRuntime::oneshot()
    }
}

/// The chance that makes hash maps differ, which a simulation seeds.
pub struct Chance;

impl rand08::RngCore for Chance {
    fn next_u32(&mut self) -> u32 {
        self.next_u64() as u32
    }

    fn next_u64(&mut self) -> u64 {
        RandomState::new().hash_one(0)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next_u64().to_le_bytes()[..part.len()]);
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand08::Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}
