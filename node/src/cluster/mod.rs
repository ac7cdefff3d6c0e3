//! Who is in the cluster, who is up, and what they agreed.
//!
//! For: [`Cluster`], the one value by which the rest of the node meets Raft, leases, liveness and membership.
//! Not here: data. This room runs on a thread of its own (and Raft on another), so that data never delays it.
//! Next: `start` puts it together; `heartbeat`, `probe` and `canvass` run on every node, `coordinator` acts on the leader;
//! `lease`, `liveness` and `membership` decide, and are pure.

mod ask;
mod canvass;
mod control;
mod coordinator;
mod heartbeat;
pub mod identity;
mod intention;
mod join;
pub mod lease;
pub mod liveness;
mod meet;
pub mod membership;
mod probe;
mod reform;
mod shared;
mod start;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::id::{ClusterId, Epoch, Incarnation, NodeId};
use korum_protocol::map::{Addresses, LossPolicy, MapChange, View};
use korum_protocol::peer::message::{ControlReply, ControlRequest};
use tokio::sync::{oneshot, watch};

use crate::env::Clock;
use crate::net::peer::{LocalPeer, OnConnection, PeerEvent, PeerRpc, Trouble};
use korum_raft::{Consensus, ProposeError};
use lease::{Lease, Timing};
use shared::{Shared, lock};

pub use meet::MeetError;
pub use reform::{ReformError, Reformed};
pub use shared::peer_address;
pub use start::StartError;

/// Raft's part of the data directory.
pub(crate) const RAFT_DIR: &str = "raft";

/// Longest time to tell the leader that this node stops.
const LEAVE: Duration = Duration::from_secs(2);

/// How this node takes part.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The data directory.
    pub dir: PathBuf,
    /// Where the peer port listens, as `host:port`; port 0 takes a free one.
    pub listen: String,
    /// What other nodes and clients use; a peer port of 0 stands for the one that is listened on.
    pub addresses: Addresses,
    /// Nodes of the cluster to join, as `host:port` of a peer or client port. Empty: create a cluster, or come
    /// back to the one that the data directory belongs to.
    pub join: Vec<String>,
    /// How long to try to join.
    pub join_timeout: Duration,
    /// Failure domain; may be empty.
    pub zone: String,
    /// Share of the data, 1..=16.
    pub weight: u8,
    /// Partitions of a cluster that is created.
    pub partitions: u32,
    /// Copies in a cluster that is created.
    pub replication: u8,
    /// What a cluster that is created does with lost partitions.
    pub loss_policy: LossPolicy,
    /// The clocks of liveness; the same on all nodes.
    pub timing: Timing,
    /// What all nodes of the cluster know and nobody else does.
    pub secret: Option<Bytes>,
}

/// Whom to tell.
#[derive(Clone)]
pub struct Callbacks {
    /// Takes over accepted `Replication` and `Forward` connections; must not block. See
    /// [`crate::net::peer::PeerConnection::rebind`].
    pub on_connection: OnConnection,
    /// This run of the node was marked down and a newer one begins: everything it held belongs to others.
    /// Called before the new run is registered, so before it can get a lease.
    pub on_reincarnation: Arc<dyn Fn(Incarnation) + Send + Sync>,
}

/// How the node stands in its cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Not heard by a leader yet.
    Starting,
    /// This run is being made known.
    Registering,
    /// The leader grants leases (whether one is valid now, the lease says).
    Serving,
    /// The map does not know this node any more.
    Forgotten,
    /// It gave up its cluster, of which it was the only node, to join another: opened again, the data directory
    /// makes it a new node.
    GivenUp,
    /// The quorum was re-formed without this node: the others do not talk to it any more.
    LeftBehind,
    /// It stops.
    Left,
}

/// This node's place in its cluster. Dropping it stops everything at once, as a crash would.
pub struct Cluster {
    shared: Arc<Shared>,
    runtime: tokio::runtime::Handle,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    ended: watch::Receiver<bool>,
}

impl Cluster {
    /// Opens the data directory and takes part: creates a cluster, joins one, or comes back to one.
    ///
    /// Returns when the map knows this node (a node that comes back: at once). It holds no lease yet.
    ///
    /// # Errors
    /// See [`StartError`]; its text says what to do.
    pub async fn start(
        options: ClusterOptions,
        clock: Clock,
        callbacks: Callbacks,
    ) -> Result<Arc<Self>, StartError> {
        start::start(options, clock, callbacks).await
    }

    /// The latest agreed map that this node applied, and each one after it.
    #[must_use]
    pub fn views(&self) -> watch::Receiver<Option<Arc<View>>> {
        self.shared.consensus.views()
    }

    /// This node.
    #[must_use]
    pub fn id(&self) -> NodeId {
        self.shared.me()
    }

    /// Which run of it this is; grows when the node finds that it was marked down.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.shared.local.incarnation()
    }

    /// The cluster.
    #[must_use]
    pub fn cluster_id(&self) -> Option<ClusterId> {
        self.shared.local.cluster_id()
    }

    /// Who leads, as known here: a hint.
    #[must_use]
    pub fn leader(&self) -> Option<NodeId> {
        *self.shared.consensus.leader().borrow()
    }

    /// Raft's term, as known here.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.shared.consensus.term()
    }

    /// How this node stands.
    #[must_use]
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.shared.standing.subscribe()
    }

    /// Permission to serve.
    #[must_use]
    pub fn lease(&self) -> &Arc<Lease> {
        &self.shared.lease
    }

    /// This node's side of handshakes, for dialing peers.
    #[must_use]
    pub fn local_peer(&self) -> &Arc<LocalPeer> {
        &self.shared.local
    }

    /// Request-reply calls to peers.
    #[must_use]
    pub fn rpc(&self) -> &Arc<PeerRpc> {
        &self.shared.rpc
    }

    /// The agreement itself, for what this facade does not offer (voters, metrics).
    #[must_use]
    pub fn consensus(&self) -> &Arc<Consensus> {
        &self.shared.consensus
    }

    /// Waits until Raft has stopped, and says why. Unasked, it stops when the disk fails: the node cannot go on.
    pub async fn ended(&self) -> String {
        self.shared.consensus.ended().await
    }

    /// Proposes a change to the leader, wherever it is, and gives the epoch after it (which this node may not have
    /// applied yet). Safe to drop, but the change may be agreed all the same.
    ///
    /// # Errors
    /// [`ProposeError::Unknown`] when it may or may not have been agreed (also when a repetition was refused as
    /// outdated: the first attempt may be why); [`ProposeError::NotLeader`] when nothing was done by the deadline.
    pub async fn propose(&self, change: MapChange, deadline: Duration) -> Result<Epoch, ProposeError> {
        let shared = Arc::clone(&self.shared);
        let work = self.runtime.spawn(async move { ask::propose(&shared, change, deadline).await });
        work.await.unwrap_or_else(|_| Err(ProposeError::Unknown("this node is stopping".into())))
    }

    /// Brings this node and the one at `address` (`host:port`; of its peer port, or of any port) into one cluster.
    /// Returns when one of the two has begun to join: this node, if it is alone and the other is not, else the other.
    /// Safe to drop, but it may go on all the same.
    ///
    /// # Errors
    /// When neither may: only a node that is alone and empty joins.
    pub async fn meet(&self, address: String, is_peer_port: bool) -> Result<(), MeetError> {
        let work = self.runtime.spawn(meet::meet(Arc::clone(&self.shared), address, is_peer_port));
        work.await.unwrap_or_else(|_| Err(MeetError::Passing("this node is stopping".into())))
    }

    /// Re-forms a quorum that is lost for good from this node and the others that answer. The nodes that do not answer
    /// must never come back with their data directories: see the README.
    ///
    /// # Errors
    /// When there is a quorum, or another survivor knows more, or not all is done in time.
    pub async fn reform(&self) -> Result<Reformed, ReformError> {
        let work = self.runtime.spawn(reform::reform(Arc::clone(&self.shared)));
        work.await.unwrap_or_else(|_| Err(ReformError::Unfinished("this node is stopping".into())))
    }

    /// Tells how to see whether this node holds any key. Until then it does not give itself up to join another.
    pub fn tell_holds_keys(&self, holds_keys: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.shared.holds_keys.set(Box::new(holds_keys));
    }

    /// Peer addresses of the cluster that the node of this data directory joined, or is to join, after it gave up its
    /// own. Blocks on the disk.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn seeds_in(dir: &Path) -> Result<Vec<String>, StartError> {
        let intention = intention::Intention::read(dir)?;
        Ok(intention.map(|intention| intention.seeds).unwrap_or_default())
    }

    /// A data connection to a node broke: look now whether it is gone.
    pub fn suspect(&self, node: NodeId, incarnation: Incarnation) {
        self.shared.report(PeerEvent { node, incarnation: Some(incarnation), trouble: Trouble::Broken });
    }

    /// Serves no more, and tells the leader, so that others take over at once. The map is followed on, so that
    /// this node can see who does; [`Cluster::shutdown`] ends that. False if nobody else is up.
    pub async fn leave(&self) -> bool {
        self.shared.standing.send_replace(Standing::Left);
        self.shared.lease.give_back();
        let (node, incarnation) = (self.id(), self.incarnation());
        let others = self.shared.view().is_some_and(|view| {
            view.map.nodes.iter().any(|(other, record)| *other != node && record.is_up())
        });
        if others {
            let shared = Arc::clone(&self.shared);
            let told = self.runtime.spawn(async move {
                let end = shared.clock.now() + LEAVE;
                while shared.clock.now() < end {
                    let request = ControlRequest::Leave { node, incarnation };
                    match ask::ask_leader(&shared, request, LEAVE).await {
                        Ok(ControlReply::Proposed { .. }) => {
                            // A leader may be the only one to know that it was agreed; those who answer this know too,
                            // and need no election to find out.
                            if shared.leads() {
                                let _ = shared.consensus.confirm_leadership().await;
                            }
                            return;
                        }
                        Ok(ControlReply::Refused(_)) => return,
                        _ => tokio::time::sleep(Duration::from_millis(20)).await,
                    }
                }
            });
            let _ = told.await;
        }
        others
    }

    /// Stops at once; the others find out by themselves. Waits until all is written and the directory is free.
    pub async fn shutdown(&self) {
        self.shared.standing.send_replace(Standing::Left);
        self.shared.lease.give_back();
        drop(lock(&self.stop).take());
        let mut ended = self.ended.clone();
        let _ = ended.wait_for(|ended| *ended).await;
        self.shared.rpc.close();
        self.shared.consensus.shutdown().await;
        self.shared.rpc.close();
        drop(lock(&self.shared.identity).take());
    }
}
