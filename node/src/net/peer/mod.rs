//! Links between nodes.
//!
//! For: dialing and accepting peer connections, frames on them, and request-reply calls.
//! Not here: what is said on them (`cluster`, `replication`, `dispatch`), when a node is gone (`cluster::liveness`).
//! Next: `handshake` proves who is who, `connection` reads and writes frames, `rpc` calls, `server` accepts.

mod backoff;
mod connection;
mod cut;
mod dial;
mod handshake;
mod rpc;
mod server;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use korum_protocol::id::{ClusterId, Incarnation, NodeId};
use korum_protocol::peer::frame::FrameError;
use korum_protocol::peer::message::Rejection;
use korum_protocol::peer::piece::PieceError;
use tokio::sync::Notify;

pub use backoff::Backoff;
pub use connection::{Frame, FrameReader, FrameWriter};
pub use cut::Cutter;
pub use dial::{DialError, dial};
pub use handshake::accept;
pub use korum_protocol::peer::message::Purpose;
pub use rpc::{OnEvent, PeerEvent, PeerRpc, RpcError, Trouble, serve_rpc};
pub use server::{OnConnection, OnPeer, PeerHandlers, PeerServer, Reply, RpcHandler};

/// What this node says of itself when it meets another one. Shared; the parts that may change are atomic.
#[derive(Debug)]
pub struct LocalPeer {
    /// This node.
    pub node: NodeId,
    /// Where its peer port is reached, as `host:port`.
    pub address: String,
    secret: Option<Bytes>,
    incarnation: AtomicU64,
    cluster_id: AtomicU64,
    /// What the cluster was called before its quorum was re-formed, until that is agreed; 0 for nothing.
    former: AtomicU64,
    moved: Notify,
}

impl LocalPeer {
    /// A node that is in no cluster yet, or in the given one.
    #[must_use]
    pub fn new(
        node: NodeId,
        incarnation: Incarnation,
        cluster_id: Option<ClusterId>,
        address: String,
        secret: Option<Bytes>,
    ) -> Self {
        Self {
            node,
            address,
            secret,
            incarnation: AtomicU64::new(incarnation.0),
            cluster_id: AtomicU64::new(cluster_id.map_or(0, |id| id.0)),
            former: AtomicU64::new(0),
            moved: Notify::new(),
        }
    }

    /// The same node as one that asks a member of another cluster: it keeps its own cluster to itself.
    #[must_use]
    pub fn as_stranger(&self) -> Self {
        Self::new(self.node, self.incarnation(), None, self.address.clone(), self.secret.clone())
    }

    /// Which run of the node this is.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        Incarnation(self.incarnation.load(Ordering::Acquire))
    }

    /// This run becomes another one: only ever a newer one.
    pub fn set_incarnation(&self, incarnation: Incarnation) {
        self.incarnation.fetch_max(incarnation.0, Ordering::AcqRel);
    }

    /// The cluster it belongs to; ids are never zero.
    #[must_use]
    pub fn cluster_id(&self) -> Option<ClusterId> {
        match self.cluster_id.load(Ordering::Acquire) {
            0 => None,
            id => Some(ClusterId(id)),
        }
    }

    /// It belongs to a cluster from now on.
    pub fn set_cluster_id(&self, cluster_id: ClusterId) {
        self.cluster_id.store(cluster_id.0, Ordering::Release);
        self.moved.notify_waiters();
    }

    /// The cluster's quorum is re-formed under another name. Until the map has it ([`Self::known_as`]), survivors that do not know it
    /// yet may still ask and tell.
    pub fn take_formation(&self, formation: ClusterId) {
        if self.former.load(Ordering::Acquire) == 0 {
            self.former.store(self.cluster_id.load(Ordering::Acquire), Ordering::Release);
        }
        self.set_cluster_id(formation);
    }

    /// The map has this name for the cluster. If it is this node's, all survivors know it; if not, this node has taken
    /// another, in this run or in an earlier one, and the map's is the former.
    pub fn known_as(&self, formation: ClusterId) {
        let Some(mine) = self.cluster_id() else { return };
        let former = if mine == formation { 0 } else { formation.0 };
        if self.former.swap(former, Ordering::AcqRel) != former {
            self.moved.notify_waiters();
        }
    }

    /// May a member of the cluster of that name talk to this node?
    #[must_use]
    pub fn talks_to(&self, cluster_id: ClusterId, purpose: Purpose) -> bool {
        let is_former = purpose == Purpose::Control && self.former.load(Ordering::Acquire) == cluster_id.0;
        cluster_id.0 != 0 && (is_former || self.cluster_id() == Some(cluster_id))
    }

    /// Waits until it may not, though it could once. For ever, if it asks to join.
    pub async fn until_silent(&self, cluster_id: Option<ClusterId>, purpose: Purpose) {
        let Some(cluster_id) = cluster_id else { return std::future::pending().await };
        loop {
            let mut moved = std::pin::pin!(self.moved.notified());
            moved.as_mut().enable();
            if !self.talks_to(cluster_id, purpose) {
                return;
            }
            moved.await;
        }
    }
}

/// Who is at the other end, as the handshake showed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerIdentity {
    /// Its id.
    pub node: NodeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    /// Its cluster; `None` while it asks to join one.
    pub cluster_id: Option<ClusterId>,
    /// Where its peer port is reached; empty when this node dialed.
    pub address: String,
}

/// A connection whose two ends know each other.
#[derive(Debug)]
pub struct PeerConnection {
    /// The other end.
    pub peer: PeerIdentity,
    /// Frames from it.
    pub reader: FrameReader,
    /// Frames to it.
    pub writer: FrameWriter,
}

impl PeerConnection {
    /// Moves the socket to the runtime that this is called on. Accepted connections belong to the runtime of the
    /// peer port; data should not be driven by that one.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn rebind(self) -> std::io::Result<Self> {
        let (reader, writer) = connection::rebind(self.reader, self.writer)?;
        Ok(Self { peer: self.peer, reader, writer })
    }
}

/// Why a peer connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The socket failed.
    #[error("the peer connection failed")]
    Io(#[from] std::io::Error),
    /// It ended inside a frame or inside the handshake.
    #[error("the peer closed the connection inside a frame")]
    Truncated,
    /// Something arrived that is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A piece of a frame arrived that does not fit.
    #[error(transparent)]
    Piece(#[from] PieceError),
    /// A frame arrived that does not belong there.
    #[error("the peer broke the protocol: {0}")]
    Protocol(String),
    /// The handshake took too long.
    #[error("the peer did not complete the handshake in time")]
    Timeout,
    /// The two nodes may not talk.
    #[error("refused a connection from node {node:?}: {why}")]
    Rejected {
        /// Who dialed.
        node: NodeId,
        /// Why not.
        why: Rejection,
    },
    /// The proof was wrong.
    #[error("the peer does not know the cluster secret")]
    Unauthorized,
}
