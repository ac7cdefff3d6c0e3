//! The one thread that writes: log, vote and snapshots, in the order in which they were handed over.
//!
//! For: durability off Raft's own thread, with one `fdatasync` for everything that waits.
//! Not here: what is written (`journal`, `state_machine`).
//! Rule: after the first failure nothing more is written; whoever asks gets that failure.

use std::io;
use std::thread::JoinHandle;

use openraft::storage::LogFlushed;
use tokio::sync::{mpsc, oneshot};

use super::files::{Directory, SNAPSHOT};
use super::log_file::LogFile;
use super::types::{LogId, TypeConfig, Vote};
use super::vote_file::VoteFile;

/// Jobs that may wait; a full queue makes Raft wait, which slows its proposers.
const JOBS_MAX: usize = 1024;
/// Jobs that one `fdatasync` may serve: bounds the buffer of a drain.
const DRAIN_MAX: usize = 256;

/// Something to write.
pub enum Job {
    /// Framed records for the log. `done` is told when they are durable; without it they need not be soon.
    Append {
        /// The records.
        bytes: Vec<u8>,
        /// Who waits.
        done: Option<LogFlushed<TypeConfig>>,
    },
    /// A new log file in place of the present one.
    Rewrite(Vec<u8>),
    /// The vote.
    Vote(Vote, oneshot::Sender<io::Result<()>>),
    /// A snapshot, as a file; skipped if a later one was written.
    Snapshot {
        /// The entry it stands at.
        at: Option<LogId>,
        /// The file.
        bytes: Vec<u8>,
        /// Who waits.
        done: oneshot::Sender<io::Result<()>>,
    },
}

/// The way to the thread. The thread ends when the last of these is dropped.
#[derive(Clone)]
pub struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    /// Starts the thread. `snapshot_at` is where the snapshot on disk stands.
    pub fn start(
        directory: Directory,
        log: LogFile,
        vote: VoteFile,
        snapshot_at: Option<LogId>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (jobs, queue) = mpsc::channel(JOBS_MAX);
        let disk = Disk { directory, log, vote, snapshot_at, pending: Pending::default(), broken: None };
        let name = "korum-raft-disk".to_owned();
        let thread = std::thread::Builder::new().name(name).spawn(move || run(disk, queue))?;
        Ok((Self { jobs }, thread))
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
        self.send(Job::Snapshot { at, bytes, done }).await?;
        wait.await.unwrap_or_else(|_| Err(stopped()))
    }
}

fn stopped() -> io::Error {
    io::Error::other("the Raft log's writer has stopped")
}

fn run(mut disk: Disk, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(DRAIN_MAX);
    while queue.blocking_recv_many(&mut jobs, DRAIN_MAX) > 0 {
        jobs.drain(..).for_each(|job| disk.take(job));
        disk.flush();
        if queue.is_empty() {
            // If it fails, the next one who waits hears of it.
            let _ = disk.attempt(|disk| disk.log.make_room());
        }
    }
}

#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    done: Vec<LogFlushed<TypeConfig>>,
}

struct Disk {
    directory: Directory,
    log: LogFile,
    vote: VoteFile,
    snapshot_at: Option<LogId>,
    pending: Pending,
    broken: Option<String>,
}

impl Disk {
    fn take(&mut self, job: Job) {
        match job {
            Job::Append { bytes, done } => {
                self.pending.bytes.extend(bytes);
                self.pending.done.extend(done);
            }
            Job::Rewrite(bytes) => {
                self.flush();
                // Nobody waits for a rewrite; if it fails, the next one who waits hears of it.
                let _ = self.attempt(|disk| {
                    disk.log = disk.directory.replace_log(bytes)?;
                    Ok(())
                });
            }
            Job::Vote(vote, done) => {
                self.flush();
                let _ = done.send(self.attempt(|disk| disk.vote.save(&vote)));
                let _ = self.attempt(|disk| disk.vote.copy(&vote));
            }
            Job::Snapshot { at, bytes, done } => {
                self.flush();
                let _ = done.send(self.attempt(|disk| {
                    if at >= disk.snapshot_at {
                        disk.directory.replace(SNAPSHOT, &bytes)?;
                        disk.snapshot_at = at;
                    }
                    Ok(())
                }));
            }
        }
    }

    /// Writes what is pending; makes it durable if someone waits for that.
    fn flush(&mut self) {
        let Pending { bytes, done } = std::mem::take(&mut self.pending);
        if bytes.is_empty() {
            return;
        }
        let result = self.attempt(|disk| {
            disk.log.append(&bytes)?;
            if done.is_empty() { Ok(()) } else { disk.log.sync() }
        });
        for callback in done {
            callback.log_io_completed(result.as_ref().copied().map_err(again));
        }
    }

    fn attempt(&mut self, work: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if let Some(reason) = &self.broken {
            return Err(io::Error::other(reason.clone()));
        }
        let result = work(self);
        if let Err(error) = &result {
            tracing::error!("cannot write to {}: {error}. Raft stops", self.directory.0.display());
            self.broken = Some(error.to_string());
        }
        result
    }
}

fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}
