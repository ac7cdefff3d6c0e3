//! What openraft is told about our types. The only place that names them.
//!
//! For: one type config, so that another runtime (a seeded one) can be put in at one place.
//! Not here: behaviour.
//! Rule: never openraft's `single-term-leader` mode; its elections can hang after a split vote.

use std::io::Cursor;

use korum_protocol::id::Epoch;
use korum_protocol::map::{MapChange, Refusal};

/// What applying an entry answers: the epoch of the map after it, or why it was left as it was.
pub type Response = Result<Epoch, Refusal>;

/// Where openraft runs.
#[cfg(not(feature = "sim"))]
pub type Runtime = openraft::TokioRuntime;
#[cfg(feature = "sim")]
pub use super::simulated::Runtime;

openraft::declare_raft_types!(
    /// Our choice of types for openraft.
    pub TypeConfig:
        D = MapChange,
        R = Response,
        NodeId = u64,
        Node = openraft::BasicNode,
        Entry = openraft::Entry<TypeConfig>,
        SnapshotData = Cursor<Vec<u8>>,
        AsyncRuntime = Runtime,
);

/// The running Raft.
pub type Raft = openraft::Raft<TypeConfig>;
/// One entry of the log.
pub type Entry = openraft::Entry<TypeConfig>;
/// Place of an entry: leader (term and node) and index.
pub type LogId = openraft::LogId<u64>;
/// What a node voted last.
pub type Vote = openraft::Vote<u64>;
/// Who votes and who follows, and the entry that says so.
pub type StoredMembership = openraft::StoredMembership<u64, openraft::BasicNode>;
/// What is said of a snapshot.
pub type SnapshotMeta = openraft::SnapshotMeta<u64, openraft::BasicNode>;
/// A snapshot and its bytes.
pub type Snapshot = openraft::Snapshot<TypeConfig>;
/// Raft's state as openraft publishes it.
pub type Metrics = openraft::RaftMetrics<u64, openraft::BasicNode>;
/// A failure of the storage, which stops Raft.
pub type StorageError = openraft::StorageError<u64>;
