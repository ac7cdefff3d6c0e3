//! The one thread that writes: log, vote and snapshots, in the order in which they were handed over.
//!
//! For: durability off Raft's own thread, with one `fdatasync` for everything that waits.
//! Not here: what is written (`journal`, `state_machine`).
//! Rule: after the first failure nothing more is written; whoever asks gets that failure.

use std::fs::File;
use std::io::{self, Write};

use openraft::storage::LogFlushed;
use tokio::sync::{mpsc, oneshot};

use super::files::{Directory, LOG, SNAPSHOT, VOTE};
use super::types::{LogId, TypeConfig};

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
    /// The vote, as a file.
    Vote(Vec<u8>, oneshot::Sender<io::Result<()>>),
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

/// The thread, to wait for.
#[cfg(not(korum_sim))]
pub type Thread = std::thread::JoinHandle<()>;
/// The task in the thread's place.
#[cfg(korum_sim)]
pub type Thread = tokio::task::JoinHandle<()>;

/// The way to the thread. The thread ends when the last of these is dropped.
#[derive(Clone)]
pub struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    /// Starts the thread. `snapshot_at` is where the snapshot on disk stands.
    pub fn start(directory: Directory, log: File, snapshot_at: Option<LogId>) -> io::Result<(Self, Thread)> {
        let (jobs, queue) = mpsc::channel(JOBS_MAX);
        let disk = Disk { directory, log, snapshot_at, pending: Pending::default(), broken: None };
        Ok((Self { jobs }, begin(disk, queue)?))
    }

    /// Hands a job over.
    pub async fn send(&self, job: Job) -> io::Result<()> {
        self.jobs.send(job).await.map_err(|_| stopped())
    }

    /// Writes the vote; durable on return.
    pub async fn save_vote(&self, bytes: Vec<u8>) -> io::Result<()> {
        let (done, wait) = oneshot::channel();
        self.send(Job::Vote(bytes, done)).await?;
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

#[cfg(not(korum_sim))]
fn begin(disk: Disk, queue: mpsc::Receiver<Job>) -> io::Result<Thread> {
    std::thread::Builder::new().name("korum-raft-disk".into()).spawn(move || run(disk, queue))
}

#[cfg(korum_sim)]
fn begin(disk: Disk, queue: mpsc::Receiver<Job>) -> io::Result<Thread> {
    Ok(tokio::spawn(run_simulated(disk, queue)))
}

/// Writes after the time that the simulated disk takes. A node that is killed before that has not written,
/// or, when its disk says so, has written part of the first record.
#[cfg(korum_sim)]
async fn run_simulated(disk: Disk, mut queue: mpsc::Receiver<Job>) {
    struct Unwritten(Disk, Vec<Job>);

    impl Drop for Unwritten {
        fn drop(&mut self) {
            if let Some(Job::Append { bytes, .. }) = self.1.first() {
                let part = super::simulated::disk().torn(bytes.len());
                let _ = self.0.log.write_all(&bytes[..part]);
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
    }
}

#[cfg(not(korum_sim))]
fn run(mut disk: Disk, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::with_capacity(DRAIN_MAX);
    while queue.blocking_recv_many(&mut jobs, DRAIN_MAX) > 0 {
        jobs.drain(..).for_each(|job| disk.take(job));
        disk.flush();
    }
}

#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    done: Vec<LogFlushed<TypeConfig>>,
}

struct Disk {
    directory: Directory,
    log: File,
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
                    disk.directory.replace(LOG, &bytes)?;
                    disk.log = disk.directory.append_to_log()?;
                    Ok(())
                });
            }
            Job::Vote(bytes, done) => {
                self.flush();
                let _ = done.send(self.attempt(|disk| disk.directory.replace(VOTE, &bytes)));
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
            disk.log.write_all(&bytes)?;
            if done.is_empty() { Ok(()) } else { disk.log.sync_data() }
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
