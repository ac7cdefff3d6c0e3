//! The agreement on the cluster map: openraft behind a facade.
//!
//! For: proposing changes, and hearing of every one that was agreed.
//! Not here: when to propose what (`membership`, `liveness`, `rebalance`).
//! Next: `consensus` is the facade; `start` puts the parts together; then openraft's seams:
//! `log_store` (`journal`, `record`, `writer`, `log_file`, `vote_file`, `whole_files`, `in_turn`, `files`), `state_machine` (`snapshot`), `network` (`message`).

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::id::NodeId;
use korum_protocol::map::Refusal;

mod consensus;
mod files;
mod in_turn;
mod journal;
mod log_file;
mod log_store;
mod membership;
mod message;
mod network;
mod record;
#[cfg(feature = "sim")]
pub mod simulated;
mod snapshot;
mod start;
mod state_machine;
mod types;
mod vote_file;
mod whole_files;
mod writer;

#[cfg(test)]
mod tests;

pub use consensus::Consensus;

/// A filter directive for the process's log: openraft reports every ordinary timeout as an error.
/// What matters of it is logged by this room.
pub const LOG_DIRECTIVE: &str = "openraft=off";

/// Carries Raft requests to other nodes. The address book is the carrier's own business.
pub trait RaftTransport: Send + Sync + 'static {
    /// Sends a request and waits for its reply; `address` is the target's peer address as `host:port`.
    fn call(
        &self,
        target: NodeId,
        address: String,
        request: Bytes,
        timeout: Duration,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Bytes, TransportError>> + Send + '_>>;
}

/// Why a Raft request got no reply.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

/// How Raft is run.
pub struct Options {
    /// This node.
    pub me: NodeId,
    /// Where log, vote and snapshots are kept.
    pub dir: PathBuf,
    /// Leader's heartbeat interval.
    pub heartbeat: Duration,
    /// Shortest election timeout; the longest is one and a half times that.
    pub election: Duration,
}

impl Options {
    /// Options with the usual times: a silent leader is replaced in about half a second. A follower waits for the
    /// longest election timeout, then for its own, and looks at the clock every 1.5 heartbeats. Slow or
    /// overloaded machines want both times longer.
    #[must_use]
    pub fn new(me: NodeId, dir: PathBuf) -> Self {
        Self { me, dir, heartbeat: Duration::from_millis(50), election: Duration::from_millis(150) }
    }
}

/// Raft's own view of who votes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Voters {
    /// Nodes whose votes count.
    pub voters: BTreeSet<NodeId>,
    /// Nodes that follow only.
    pub learners: BTreeSet<NodeId>,
}

/// Why a proposal did not give an epoch.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// Another node leads (or none does): ask there.
    #[error("not the leader")]
    NotLeader {
        /// Who does, if known.
        leader: Option<NodeId>,
    },
    /// It was agreed that the change does not apply.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Not done, and nothing speaks against it: try again in a moment.
    #[error("not now: {0}")]
    Busy(String),
    /// It may or may not be agreed, now or later.
    #[error("the outcome of the proposal is unknown: {0}")]
    Unknown(String),
}
