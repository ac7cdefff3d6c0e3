//! The thread that writes files as a whole: snapshots, and logs that are written anew.
//!
//! For: keeping new files, whose every sync saves changes of the file system too, out of the way of appends
//! and votes.
//! Not here: appends and votes (`writer`), what the files say (`journal`, `snapshot`).

use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};

use tokio::sync::oneshot;

use super::files::{Directory, SNAPSHOT};
use super::in_turn::{InTurn, Thread};
use super::log_file::LogFile;
use super::types::LogId;

/// Files that may wait: hardly ever more than a snapshot that is built, one that is installed, and a log. Whoever
/// hands over one more waits.
pub const FILES_MAX: usize = 4;

/// A file to write.
pub enum WholeFile {
    /// A snapshot; skipped if a later one was written.
    Snapshot {
        /// The entry it stands at.
        at: Option<LogId>,
        /// The file.
        bytes: Vec<u8>,
        /// Who waits.
        done: oneshot::Sender<io::Result<()>>,
    },
    /// The records of a log, beside the present one.
    Log {
        /// The records.
        records: Vec<u8>,
        /// Who takes it into use.
        made: SyncSender<LogFile>,
    },
}

/// The directory as long as nothing failed in it. After the first failure nothing more is written, by any thread.
#[derive(Clone)]
pub struct Intact {
    /// Where the files are.
    pub directory: Directory,
    failure: Arc<OnceLock<String>>,
}

impl Intact {
    /// A directory in which nothing failed yet.
    pub fn new(directory: Directory) -> Self {
        Self { directory, failure: Arc::default() }
    }

    /// Does the work, unless something failed before.
    pub fn attempt<T>(&self, work: impl FnOnce(&Directory) -> io::Result<T>) -> io::Result<T> {
        if let Some(reason) = self.failure.get() {
            return Err(io::Error::other(reason.clone()));
        }
        let result = work(&self.directory);
        if let Err(error) = &result {
            tracing::error!("cannot write to {}: {error}. Raft stops", self.directory.0.display());
            // Whoever was first is who counts.
            let _ = self.failure.set(error.to_string());
        }
        result
    }
}

/// The way to the thread.
pub type Files = InTurn<WholeFile>;

/// Starts the thread. `snapshot_at` is where the snapshot on disk stands.
pub fn start(intact: Intact, snapshot_at: Option<LogId>) -> io::Result<(Files, Thread)> {
    let mut keeper = Keeper { intact, snapshot_at };
    Files::start("korum-raft-files", FILES_MAX, move |file| keeper.write(file))
}

struct Keeper {
    intact: Intact,
    snapshot_at: Option<LogId>,
}

impl Keeper {
    fn write(&mut self, file: WholeFile) {
        match file {
            WholeFile::Snapshot { at, bytes, done } => {
                let result = self.intact.attempt(|directory| {
                    if at >= self.snapshot_at {
                        directory.replace(SNAPSHOT, &bytes)?;
                        self.snapshot_at = at;
                    }
                    Ok(())
                });
                // Who does not wait any more does not need to know.
                let _ = done.send(result);
            }
            WholeFile::Log { records, made } => {
                // If it failed, there is nothing to send, and that says so.
                if let Ok(file) = self.intact.attempt(|directory| directory.new_log(records)) {
                    let _ = made.send(file);
                }
            }
        }
    }
}
