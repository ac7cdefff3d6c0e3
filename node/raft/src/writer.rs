//! The one thread that writes log and vote, in the order in which they were handed over.
//!
//! For: durability off Raft's own thread, with one `fdatasync` for everything that waits.
//! Not here: what is written (`journal`, `state_machine`), files that are written as a whole (`whole_files`).
//! Rule: after the first failure nothing more is written; whoever asks gets that failure.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use openraft::storage::LogFlushed;
use tokio::sync::{mpsc, oneshot};

use super::files::Directory;
use super::in_turn;
use super::log_file::LogFile;
use super::types::{LogId, TypeConfig, Vote};
use super::vote_file::VoteFile;
use super::whole_files::{self, Files, Intact, WholeFile};

/// Jobs that may wait; a full queue makes Raft wait, which slows its proposers.
const JOBS_MAX: usize = 1024;
/// Jobs that one `fdatasync` may serve: bounds the buffer of a drain.
const DRAIN_MAX: usize = 256;
/// Bytes that are kept for a log that is being written anew; with more of them, appends wait for it. What is
/// appended while a file of some MiB is written is far less.
const SINCE_BYTES_MAX: usize = 8 << 20;

/// Something to write.
pub enum Job {
    /// Framed records for the log. `done` is told when they are durable; without it they need not be soon.
    Append {
        /// The records.
        bytes: Vec<u8>,
        /// Who waits.
        done: Option<LogFlushed<TypeConfig>>,
    },
    /// The records of a log that says the same as the present one and takes its place soon.
    Rewrite(Vec<u8>),
    /// The vote.
    Vote(Vote, oneshot::Sender<io::Result<()>>),
}

/// The threads, to wait for: the one that ends last.
#[cfg(not(feature = "sim"))]
pub type Thread = std::thread::JoinHandle<()>;
/// The task in the threads' place.
#[cfg(feature = "sim")]
pub type Thread = tokio::task::JoinHandle<()>;

/// The way to the threads. They end when the last of these is dropped.
#[derive(Clone)]
pub struct Writer {
    jobs: mpsc::Sender<Job>,
    files: Files,
}

impl Writer {
    /// Starts the threads. `snapshot_at` is where the snapshot on disk stands.
    pub fn start(
        directory: Directory,
        log: LogFile,
        vote: VoteFile,
        snapshot_at: Option<LogId>,
    ) -> io::Result<(Self, Thread)> {
        let intact = Intact::new(directory);
        let (files, files_thread) = whole_files::start(intact.clone(), snapshot_at)?;
        let (jobs, queue) = mpsc::channel(JOBS_MAX);
        let disk =
            Disk { intact, log, vote, pending: Pending::default(), files: files.clone(), new_log: None };
        Ok((Self { jobs, files }, begin(disk, queue, files_thread)?))
    }

    /// Hands a job over.
    pub async fn send(&self, job: Job) -> io::Result<()> {
        self.jobs.send(job).await.map_err(|_| stopped())
    }

    /// Writes the vote; durable on return.
    pub async fn save_vote(&self, vote: Vote) -> io::Result<()> {
        let (done, wait) = oneshot::channel();
        self.send(Job::Vote(vote, done)).await?;
        wait.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Writes a snapshot; durable on return.
    pub async fn save_snapshot(&self, at: Option<LogId>, bytes: Vec<u8>) -> io::Result<()> {
        let (done, wait) = oneshot::channel();
        self.files.give(WholeFile::Snapshot { at, bytes, done }).await.map_err(|_| stopped())?;
        wait.await.unwrap_or_else(|_| Err(stopped()))
    }
}

fn stopped() -> io::Error {
    io::Error::other("the Raft log's writer has stopped")
}

#[cfg(not(feature = "sim"))]
fn begin(disk: Disk, queue: mpsc::Receiver<Job>, files: in_turn::Thread) -> io::Result<Thread> {
    std::thread::Builder::new().name("korum-raft-disk".into()).spawn(move || {
        run(disk, queue);
        if files.join().is_err() {
            tracing::error!("the thread that writes Raft's snapshots panicked");
        }
    })
}

#[cfg(feature = "sim")]
fn begin(disk: Disk, queue: mpsc::Receiver<Job>, _files: in_turn::Thread) -> io::Result<Thread> {
    Ok(tokio::spawn(run_simulated(disk, queue)))
}

/// Writes after the time that the simulated disk takes. A node that is killed before that has not written,
/// or, when its disk says so, has written part of the first record, and lost what was not synced.
#[cfg(feature = "sim")]
async fn run_simulated(disk: Disk, mut queue: mpsc::Receiver<Job>) {
    struct Unwritten(Disk, Vec<Job>);

    impl Drop for Unwritten {
        fn drop(&mut self) {
            if let Some(Job::Append { bytes, .. }) = self.1.first() {
                let part = super::simulated::disk().torn(bytes.len());
                let _ = self.0.log.append(&bytes[..part]);
            }
            if let Some(permille) = super::simulated::disk().kept_permille {
                let _ = self.0.log.lose_unsynced(permille);
            }
        }
    }

    let mut now = Unwritten(disk, Vec::new());
    while queue.recv_many(&mut now.1, DRAIN_MAX).await > 0 {
        let delay = super::simulated::disk().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        std::mem::take(&mut now.1).into_iter().for_each(|job| now.0.take(job));
        now.0.flush();
        now.0.tidy();
    }
}

#[cfg(not(feature = "sim"))]
fn run(mut disk: Disk, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(DRAIN_MAX);
    while queue.blocking_recv_many(&mut jobs, DRAIN_MAX) > 0 {
        jobs.drain(..).for_each(|job| disk.take(job));
        disk.flush();
        if queue.is_empty() {
            disk.tidy();
        }
    }
}

#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    done: Vec<LogFlushed<TypeConfig>>,
}

/// A log that is being written anew.
struct NewLog {
    made: Receiver<LogFile>,
    /// Records that were appended to the present log since.
    since: Vec<u8>,
}

struct Disk {
    intact: Intact,
    log: LogFile,
    vote: VoteFile,
    pending: Pending,
    files: Files,
    new_log: Option<NewLog>,
}

impl Disk {
    fn take(&mut self, job: Job) {
        match job {
            Job::Append { bytes, done } => {
                self.pending.bytes.extend(bytes);
                self.pending.done.extend(done);
            }
            Job::Rewrite(records) => {
                self.flush();
                self.await_new_log();
                let (send, made) = sync_channel(1);
                // A send fails when the other thread has ended, which it does not before this one.
                if self.files.give_blocking(WholeFile::Log { records, made: send }).is_ok() {
                    self.new_log = Some(NewLog { made, since: vec![] });
                }
            }
            Job::Vote(vote, done) => {
                self.flush();
                let _ = done.send(self.intact.attempt(|_| self.vote.save(&vote)));
                // Nobody waits for the copy; if it fails, the next one who waits hears of it.
                let _ = self.intact.attempt(|_| self.vote.copy(&vote));
            }
        }
    }

    /// Writes what is pending; makes it durable if someone waits for that.
    fn flush(&mut self) {
        let Pending { bytes, done } = std::mem::take(&mut self.pending);
        if bytes.is_empty() {
            return;
        }
        let result = self.intact.attempt(|_| {
            self.log.append(&bytes)?;
            if done.is_empty() { Ok(()) } else { self.log.sync() }
        });
        for callback in done {
            callback.log_io_completed(result.as_ref().copied().map_err(again));
        }
        if let Some(new_log) = &mut self.new_log {
            new_log.since.extend(bytes);
            if new_log.since.len() > SINCE_BYTES_MAX {
                self.await_new_log();
            }
        }
    }

    /// For a moment at which nobody waits: what makes later appends quick. If it fails, the next one who waits
    /// hears of it.
    fn tidy(&mut self) {
        if let Some(NewLog { made, since }) = self.new_log.take() {
            match made.try_recv() {
                Ok(log) => self.change_to(log, &since),
                Err(TryRecvError::Empty) => self.new_log = Some(NewLog { made, since }),
                Err(TryRecvError::Disconnected) => {}
            }
        }
        let _ = self.intact.attempt(|_| self.log.make_room());
    }

    fn await_new_log(&mut self) {
        if let Some(NewLog { made, since }) = self.new_log.take()
            && let Ok(log) = made.recv()
        {
            self.change_to(log, &since);
        }
    }

    /// Takes a new log into use. Until it is in its place, durably, the old one says everything too.
    fn change_to(&mut self, mut log: LogFile, since: &[u8]) {
        let changed = self.intact.attempt(|directory| {
            log.append(since)?;
            log.sync()?;
            directory.put_new_log()
        });
        if changed.is_ok() {
            self.log = log;
        }
    }
}

fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}
