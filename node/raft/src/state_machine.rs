//! The state machine: the map, changed by one agreed entry after another.
//!
//! For: openraft's seam. Applies in order, answers each change, publishes each map.
//! Not here: what a change does (`protocol::map`), the bytes of a snapshot (`snapshot`).

use std::io::{self, Cursor};
use std::sync::{Arc, Mutex, PoisonError};

use korum_protocol::id::Epoch;
use korum_protocol::map::View;
use openraft::storage::RaftStateMachine;
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder, StorageIOError};
use tokio::sync::watch;

use super::files::one_record;
use super::snapshot::{Content, Stored};
use super::types::{
    Entry, LogId, Response, Snapshot, SnapshotMeta, StorageError, StoredMembership, TypeConfig,
};
use super::writer::Writer;

/// The latest snapshot, in memory as on disk.
type Latest = Arc<Mutex<Option<Stored>>>;

/// The map and how far it has come.
pub struct StateMachine {
    applied: Option<LogId>,
    membership: StoredMembership,
    views: watch::Sender<Option<Arc<View>>>,
    latest: Latest,
    writer: Writer,
}

impl StateMachine {
    /// A state machine that stands where the snapshot on disk stands.
    pub fn new(
        stored: Option<Stored>,
        views: watch::Sender<Option<Arc<View>>>,
        writer: Writer,
    ) -> io::Result<Self> {
        let membership = StoredMembership::default();
        let mut machine = Self { applied: None, membership, views, latest: Latest::default(), writer };
        if let Some(stored) = &stored {
            machine.enter(Content::decode(&stored.data).map_err(io::Error::other)?);
        }
        machine.latest = Arc::new(Mutex::new(stored));
        Ok(machine)
    }

    fn enter(&mut self, (content, view): (Content, Option<View>)) {
        self.applied = content.applied;
        self.membership = content.membership;
        self.views.send_replace(view.map(Arc::new));
    }

    fn epoch(&self) -> Epoch {
        self.views.borrow().as_ref().map_or(Epoch(0), |view| view.map.epoch)
    }

    fn apply_one(&mut self, entry: Entry) -> Response {
        self.applied = Some(entry.log_id);
        match entry.payload {
            EntryPayload::Blank => Ok(self.epoch()),
            EntryPayload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(entry.log_id), membership);
                Ok(self.epoch())
            }
            EntryPayload::Normal(change) => {
                let before = self.views.borrow().clone();
                let next = Arc::new(match &before {
                    None => View::create(&change)?,
                    Some(view) => view.apply(&change)?,
                });
                let epoch = next.map.epoch;
                #[cfg(feature = "sim")]
                super::simulated::applied(before, change, Arc::clone(&next));
                self.views.send_replace(Some(next));
                Ok(epoch)
            }
        }
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        Ok((self.applied, self.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Response>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        Ok(entries.into_iter().map(|entry| self.apply_one(entry)).collect())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder {
            applied: self.applied,
            membership: self.membership.clone(),
            view: self.views.borrow().clone(),
            latest: self.latest.clone(),
            writer: self.writer.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), StorageError> {
        let data = snapshot.into_inner();
        let content = Content::decode(&data)
            .map_err(|error| StorageIOError::read_snapshot(Some(meta.signature()), &error))?;
        let stored = Stored { meta: meta.clone(), data: data.into() };
        // Durable first: once a map is published, a restart must not fall behind it.
        save(&self.latest, &self.writer, stored).await?;
        self.enter(content);
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, StorageError> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(latest.map(to_openraft))
    }
}

/// Makes a snapshot of a state that nobody changes any more.
pub struct Builder {
    applied: Option<LogId>,
    membership: StoredMembership,
    view: Option<Arc<View>>,
    latest: Latest,
    writer: Writer,
}

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    async fn build_snapshot(&mut self) -> Result<Snapshot, StorageError> {
        let map = self.view.as_ref().map(|view| view.map.clone());
        let content = Content { applied: self.applied, membership: self.membership.clone(), map };
        let stored = Stored::from(content);
        save(&self.latest, &self.writer, stored.clone()).await?;
        Ok(to_openraft(stored))
    }
}

/// Makes a snapshot durable, then the latest one, unless a later one was quicker.
async fn save(latest: &Latest, writer: &Writer, stored: Stored) -> Result<(), StorageError> {
    let at = stored.meta.last_log_id;
    writer
        .save_snapshot(at, one_record(&stored))
        .await
        .map_err(|error| StorageIOError::write_snapshot(Some(stored.meta.signature()), &error))?;
    let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
    if latest.as_ref().is_none_or(|latest| latest.meta.last_log_id <= at) {
        *latest = Some(stored);
    }
    Ok(())
}

fn to_openraft(stored: Stored) -> Snapshot {
    Snapshot { meta: stored.meta, snapshot: Box::new(Cursor::new(stored.data.to_vec())) }
}
