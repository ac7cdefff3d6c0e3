//! From a directory and options to a running Raft on a thread of its own, and back.
//!
//! For: putting the parts together and taking them apart in the right order.
//! Not here: what one can ask of it (`consensus`).
//!
//! Raft has its own thread and runtime so that no load of data delays a heartbeat. Log and vote are written by
//! another thread, snapshots and new logs by a third. openraft waits for appends and votes all the same, and
//! hears and sends no heartbeat meanwhile: that is why those are written in place.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::NodeId;
use korum_protocol::map::View;
use openraft::{Config, SnapshotPolicy};
use tokio::sync::{oneshot, watch};

use super::files::{Directory, SNAPSHOT};
use super::log_store::{LogReader, LogStore};
use super::network::{Network, SilentTerm, StandIns};
use super::snapshot::Stored;
use super::state_machine::StateMachine;
use super::types::{Metrics, Raft};
use super::writer::{Thread, Writer};
use super::{Options, RaftTransport};

/// Entries between two snapshots: a rebalance makes hundreds of small ones.
const SNAPSHOT_EVERY: u64 = 1_000;
/// Entries kept behind a snapshot, so that a node that was away for a moment needs no snapshot.
const KEPT_BEHIND_SNAPSHOT: u64 = 200;
/// A follower this far behind gets a snapshot; more than what lies between two of them.
const LAG_MAX: u64 = 2 * SNAPSHOT_EVERY;
/// Most entries in one message (their bytes are bounded too, by the log store).
const ENTRIES_PER_MESSAGE: u64 = 256;
/// Bytes of a snapshot in one message: nearly always the whole of it.
const SNAPSHOT_PART_BYTES: u64 = 4 << 20;
/// Time for one part of a snapshot, its `fsync` at the other end included.
const SNAPSHOT_PART_WAIT: Duration = Duration::from_secs(2);
/// Time for Raft to end in good order before it is dropped.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// The handles of a running Raft.
pub struct Running {
    /// openraft's handle.
    pub raft: Raft,
    /// Where its tasks run.
    pub runtime: tokio::runtime::Handle,
    /// Every map that was agreed, the latest.
    pub views: watch::Receiver<Option<Arc<View>>>,
    /// Who leads, as known here.
    pub leader: watch::Receiver<Option<NodeId>>,
    /// Nodes for which this one answers itself.
    pub stand_ins: StandIns,
    /// When it asks for no votes.
    pub silent: SilentTerm,
    /// The log, to be read.
    pub log: LogReader,
    /// Neither log, vote nor snapshot was found.
    pub pristine: bool,
    /// Ends it; dropping does too.
    pub stop: oneshot::Sender<()>,
    /// True once both threads have ended.
    pub stopped: watch::Receiver<bool>,
}

/// Starts Raft on a new thread.
#[cfg(not(feature = "sim"))]
pub async fn start(options: Options, transport: Arc<dyn RaftTransport>) -> io::Result<Running> {
    let (started, wait) = oneshot::channel();
    let name = "korum-raft".to_owned();
    std::thread::Builder::new().name(name).spawn(move || live(options, transport, started))?;
    wait.await.unwrap_or_else(|_| Err(io::Error::other("the Raft thread ended while it started")))
}

/// Starts Raft on the present runtime: in a simulation one thread runs everything.
#[cfg(feature = "sim")]
pub async fn start(options: Options, transport: Arc<dyn RaftTransport>) -> io::Result<Running> {
    let (started, wait) = oneshot::channel();
    let (has_stopped, stopped) = watch::channel(false);
    drop(tokio::spawn(async move {
        drop(run(options, transport, started, stopped).await);
        has_stopped.send_replace(true);
    }));
    wait.await.unwrap_or_else(|_| Err(io::Error::other("Raft ended while it started")))
}

/// The thread's whole life.
#[cfg(not(feature = "sim"))]
fn live(options: Options, transport: Arc<dyn RaftTransport>, started: oneshot::Sender<io::Result<Running>>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return drop(started.send(Err(error))),
    };
    let (has_stopped, stopped) = watch::channel(false);
    let disk = runtime.block_on(run(options, transport, started, stopped));
    // Dropping the runtime drops all tasks, with them the last senders of jobs: the disk thread
    // writes what it was given and ends.
    drop(runtime);
    if let Some(disk) = disk
        && disk.join().is_err()
    {
        tracing::error!("the thread that writes Raft's log panicked");
    }
    has_stopped.send_replace(true);
}

/// Until it is told to stop; gives what runs the disk.
async fn run(
    options: Options,
    transport: Arc<dyn RaftTransport>,
    started: oneshot::Sender<io::Result<Running>>,
    stopped: watch::Receiver<bool>,
) -> Option<Thread> {
    match put_together(options, transport, stopped).await {
        Ok((running, asked_to_stop, disk)) => {
            let raft = running.raft.clone();
            // If nobody waits any more, the handles are dropped, and that asks to stop.
            let _ = started.send(Ok(running));
            let _ = asked_to_stop.await;
            if tokio::time::timeout(STOP_WAIT, raft.shutdown()).await.is_err() {
                tracing::warn!("Raft did not stop in {STOP_WAIT:?}: it is dropped");
            }
            Some(disk)
        }
        Err(error) => {
            let _ = started.send(Err(error));
            None
        }
    }
}

type Parts = (Running, oneshot::Receiver<()>, Thread);

async fn put_together(
    options: Options,
    transport: Arc<dyn RaftTransport>,
    stopped: watch::Receiver<bool>,
) -> io::Result<Parts> {
    let config = config(&options)?;
    let directory = Directory::open(&options.dir)?;
    let (vote, vote_file) = directory.open_vote()?;
    let stored: Option<Stored> = directory.read(SNAPSHOT)?;
    let (log, log_file) = directory.open_log()?;
    let snapshot_at = stored.as_ref().and_then(|stored| stored.meta.last_log_id);
    if log.purged > snapshot_at {
        return Err(directory.invalid(SNAPSHOT, "it is missing or too old for the log"));
    }
    let pristine = vote.is_none() && stored.is_none() && log.last().is_none();

    let (views_out, views) = watch::channel(None);
    let (writer, disk) = Writer::start(directory, log_file, vote_file, snapshot_at)?;
    let machine = StateMachine::new(stored, views_out, writer.clone())?;
    let store = LogStore::new(log, vote, writer);
    let stand_ins = StandIns::default();
    let silent = SilentTerm::default();
    let network = Network { transport, stand_ins: stand_ins.clone(), silent: silent.clone() };
    let reader = store.reader();
    let raft =
        Raft::new(options.me.0, Arc::new(config), network, store, machine).await.map_err(io::Error::other)?;

    let (leader_out, leader) = watch::channel(None);
    // Ends with Raft or with the runtime: nobody needs to wait for it.
    drop(tokio::spawn(follow_leader(raft.metrics(), leader_out)));
    let (stop, asked_to_stop) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    Ok((
        Running { raft, runtime, views, leader, stand_ins, silent, log: reader, pristine, stop, stopped },
        asked_to_stop,
        disk,
    ))
}

/// Ends with the runtime, or when Raft does.
async fn follow_leader(mut metrics: watch::Receiver<Metrics>, leader: watch::Sender<Option<NodeId>>) {
    loop {
        let (now, failed) = {
            let metrics = metrics.borrow_and_update();
            let failed = metrics.running_state.as_ref().err().map(ToString::to_string);
            (metrics.current_leader.filter(|_| failed.is_none()).map(NodeId), failed)
        };
        leader.send_if_modified(|known| std::mem::replace(known, now) != now);
        if failed.is_some() || metrics.changed().await.is_err() {
            leader.send_replace(None);
            return;
        }
    }
}

fn config(options: &Options) -> io::Result<Config> {
    let milliseconds = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX / 4);
    let election = milliseconds(options.election);
    let config = Config {
        cluster_name: "korum".into(),
        heartbeat_interval: milliseconds(options.heartbeat),
        election_timeout_min: election,
        election_timeout_max: election + election / 2,
        install_snapshot_timeout: milliseconds(SNAPSHOT_PART_WAIT),
        max_payload_entries: ENTRIES_PER_MESSAGE,
        replication_lag_threshold: LAG_MAX,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(SNAPSHOT_EVERY),
        snapshot_max_chunk_size: SNAPSHOT_PART_BYTES,
        max_in_snapshot_log_to_keep: KEPT_BEHIND_SNAPSHOT,
        ..Config::default()
    };
    config.validate().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
}
