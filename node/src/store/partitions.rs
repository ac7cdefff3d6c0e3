//! All partitions of a node, a lock each.
//!
//! For: the one place that takes partition locks. No two are ever held at once, and none across an await.

use std::sync::{Mutex, MutexGuard, PoisonError};

use korum_protocol::map::PartitionId;

use super::keyspace::Keyspace;
use super::partition::{Partition, Role};
use super::position::HashPosition;
use crate::replication::history::History;

/// The partitions, by number.
pub struct Store {
    partitions: Box<[Mutex<Partition>]>,
}

impl Store {
    /// `count` empty partitions, whose hash order depends on `seed`: the same on all nodes of a cluster. Their
    /// backlogs take up to `backlog_bytes` together.
    #[must_use]
    pub fn new(count: u32, seed: u64, backlog_bytes: usize) -> Self {
        let backlog_max = backlog_bytes / count.max(1) as usize / size_of::<HashPosition>();
        let partition = |_| Mutex::new(Partition::new(Keyspace::new(seed), History::new(backlog_max)));
        Self { partitions: (0..count).map(partition).collect() }
    }

    /// Number of partitions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.partitions.len()
    }

    /// There are always some; for symmetry with `len`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Takes a partition's lock, for a bounded time. `id` is below `len`.
    pub fn lock(&self, id: PartitionId) -> MutexGuard<'_, Partition> {
        self.partitions[usize::from(id)].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is there any key, expired or not?
    #[must_use]
    pub fn holds_keys(&self) -> bool {
        (0..self.len()).any(|id| !self.lock(id as PartitionId).keyspace.is_empty())
    }

    /// Visits all partitions, one lock at a time.
    pub fn for_each(&self, mut visit: impl FnMut(PartitionId, &mut Partition)) {
        for id in 0..self.len() {
            let id = id as PartitionId;
            visit(id, &mut self.lock(id));
        }
    }

    /// Keys of a database per partition, by a few of those that this node holds.
    #[must_use]
    pub fn keys_per_partition(&self, database: u8) -> f64 {
        const SAMPLES: usize = 32;
        let step = (self.len() / 256).max(1);
        let (mut keys, mut count) = (0, 0);
        for id in (0..self.len()).step_by(step) {
            let partition = self.lock(id as PartitionId);
            if matches!(partition.role, Role::Primary(_) | Role::Replica { .. }) {
                let keyspace = &partition.keyspace;
                keys += keyspace.count(keyspace.databases.room(database)).keys;
                count += 1;
            }
            if count == SAMPLES {
                break;
            }
        }
        if count == 0 { 0.0 } else { keys as f64 / count as f64 }
    }
}
