//! openraft's log storage on our journal and writer.
//!
//! For: the seam. Entries are readable at once and durable when the writer says so.
//! Not here: formats (`record`, `journal`), writing (`writer`).

use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader, StorageIOError};

use super::journal::{Log, Record};
use super::types::{Entry, LogId, StorageError, TypeConfig, Vote};
use super::writer::{Job, Writer};

/// Most bytes of entries in one message to a follower: it must arrive within one heartbeat interval.
const MESSAGE_BYTES_MAX: usize = 256 << 10;

/// The log, to be read.
#[derive(Clone, Default)]
pub struct LogReader {
    log: Arc<Mutex<Log>>,
}

impl LogReader {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last entry's place.
    pub fn last(&self) -> Option<LogId> {
        self.log().last()
    }
}

/// The log and the vote.
pub struct LogStore {
    reader: LogReader,
    vote: Option<Vote>,
    /// The record of a purge that is not written yet.
    purge: Vec<u8>,
    writer: Writer,
}

impl LogStore {
    /// A store of what was found on disk.
    pub fn new(log: Log, vote: Option<Vote>, writer: Writer) -> Self {
        Self { reader: LogReader { log: Arc::new(Mutex::new(log)) }, vote, purge: vec![], writer }
    }

    /// The log, as it goes on.
    pub fn reader(&self) -> LogReader {
        self.reader.clone()
    }

    /// Takes a step in memory and has it written. Durable no later than the next append that waits.
    async fn note(&self, record: Record) -> io::Result<()> {
        let bytes = record.bytes();
        self.reader.log().apply(record, bytes.len());
        self.writer.send(Job::Append { bytes, done: None }).await
    }

    /// Has the log written anew after a purge, if it became much shorter.
    async fn rewrite_if_worth_it(&mut self) -> io::Result<()> {
        if self.purge.is_empty() {
            return Ok(());
        }
        let rewritten = self.reader.log().rewrite_if_worth_it();
        if let Some(records) = rewritten {
            self.purge.clear();
            self.writer.send(Job::Rewrite(records)).await?;
        }
        Ok(())
    }
}

impl RaftLogReader<TypeConfig> for LogReader {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        Ok(self.log().range(range, usize::MAX))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, StorageError> {
        Ok(self.log().range(start..end, MESSAGE_BYTES_MAX))
    }
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        self.reader.try_get_log_entries(range).await
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogReader;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, StorageError> {
        let log = self.reader.log();
        Ok(LogState { last_purged_log_id: log.purged, last_log_id: log.last() })
    }

    async fn get_log_reader(&mut self) -> LogReader {
        self.reader.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        self.writer.save_vote(*vote).await.map_err(|error| StorageIOError::write_vote(&error))?;
        self.vote = Some(*vote);
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.vote)
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        if let Some(upto) = committed {
            self.note(Record::Committed(upto)).await.map_err(|error| StorageIOError::write_logs(&error))?;
        }
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        Ok(self.reader.log().committed_here())
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<TypeConfig>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        self.rewrite_if_worth_it().await.map_err(|error| StorageIOError::write_logs(&error))?;
        let mut bytes = std::mem::take(&mut self.purge);
        {
            let mut log = self.reader.log();
            for entry in entries {
                let record = Record::Entry(entry);
                let framed = record.bytes();
                log.apply(record, framed.len());
                bytes.extend(framed);
            }
        }
        let job = Job::Append { bytes, done: Some(callback) };
        self.writer.send(job).await.map_err(|error| StorageIOError::write_logs(&error))?;
        Ok(())
    }

    async fn truncate(&mut self, since: LogId) -> Result<(), StorageError> {
        self.note(Record::Truncate(since.index)).await.map_err(|error| StorageIOError::write_logs(&error))?;
        Ok(())
    }

    /// Written with the next append: openraft purges while it installs a snapshot, and the leader sends what
    /// stands behind a snapshot once that is durable. Until then a restart finds the older log.
    async fn purge(&mut self, upto: LogId) -> Result<(), StorageError> {
        let record = Record::Purge(upto);
        self.purge = record.bytes();
        self.reader.log().apply(record, self.purge.len());
        Ok(())
    }
}
