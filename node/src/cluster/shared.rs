//! What the tasks of this room share.
//!
//! For: one value that every task holds; the locks in it are short and never held across an await.
//! Not here: anything that decides.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::map::{Addresses, Registration, View};
use korum_protocol::peer::message::LeaderHint;
use tokio::sync::{Notify, mpsc, watch};

use super::identity::Identity;
use super::lease::{Grants, Lease, Timing};
use super::liveness::{EvidenceLog, Watch};
use super::{Callbacks, Standing};
use crate::env::Clock;
use crate::net::peer::{LocalPeer, PeerEvent, PeerRpc};
use korum_raft::Consensus;

/// Everything that the tasks of the cluster room know together.
pub(super) struct Shared {
    pub clock: Clock,
    pub timing: Timing,
    pub local: Arc<LocalPeer>,
    pub rpc: Arc<PeerRpc>,
    pub consensus: Arc<Consensus>,
    pub lease: Arc<Lease>,
    pub callbacks: Callbacks,
    /// What this node registers; the incarnation is the local peer's.
    pub about: About,
    /// The data directory.
    pub dir: PathBuf,
    /// Does this node hold any key? Set once the rooms of data are there.
    pub holds_keys: OnceLock<HoldsKeys>,
    /// A `CLUSTER MEET` is asked or answered here: one at a time, so that no two nodes give themselves up to each
    /// other.
    pub meeting: AtomicBool,
    /// Peer addresses to find the cluster by when the map's are out of date.
    pub seeds: Vec<String>,
    /// Taken when the node stops, which unlocks the data directory.
    pub identity: Mutex<Option<Identity>>,
    /// What this node knows as leader.
    pub leading: Mutex<Leading>,
    /// What this node has seen of others.
    pub evidence: Mutex<EvidenceLog>,
    /// Whom another node named as the leader, when Raft does not know.
    pub hint: Mutex<Option<Hint>>,
    /// Rounds of questions in which members said that they belong to another cluster.
    pub refused: AtomicU32,
    pub standing: watch::Sender<Standing>,
    /// Heartbeat now.
    pub beat: Notify,
    /// Judge now.
    pub look: Notify,
    /// Confirm leadership now.
    pub confirm: Notify,
    pub events: mpsc::Sender<PeerEvent>,
}

/// Looks at every partition: does this node hold any key?
pub(super) type HoldsKeys = Box<dyn Fn() -> bool + Send + Sync>;

/// Whom another node named as the leader.
#[derive(Clone)]
pub(super) struct Hint {
    pub leader: NodeId,
    pub address: String,
    /// Whom this node knew as the leader, in vain, when it asked. A node that Raft has taken out hears of nobody else.
    pub instead_of: Option<NodeId>,
}

/// What a node says of itself, whichever run it is.
pub(super) struct About {
    pub addresses: Addresses,
    pub zone: String,
    pub weight: u8,
}

/// What a leader knows.
#[derive(Default)]
pub(super) struct Leading {
    pub grants: Grants,
    pub watch: Watch,
    /// Nodes whose join is under way.
    pub joining: BTreeSet<NodeId>,
    /// This node gives its cluster up to join another: nobody joins it any more.
    pub given_up: bool,
    /// Runs whose end (or exclusion) is being proposed.
    pub proposing: BTreeSet<(NodeId, Incarnation)>,
    /// A step of membership is under way.
    pub stepping: bool,
}

/// Locks; a thread that panicked with the lock left plain data behind.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn me(&self) -> NodeId {
        self.local.node
    }

    pub fn view(&self) -> Option<Arc<View>> {
        self.consensus.views().borrow().clone()
    }

    pub fn leads(&self) -> bool {
        *self.consensus.leader().borrow() == Some(self.me())
    }

    /// Who leads, as this node would tell another one.
    pub fn leader_hint(&self) -> LeaderHint {
        let leader = *self.consensus.leader().borrow();
        LeaderHint { leader, address: leader.and_then(|leader| self.rpc.address_of(leader)) }
    }

    pub fn registration(&self) -> Registration {
        Registration {
            addresses: self.about.addresses.clone(),
            zone: self.about.zone.clone(),
            weight: self.about.weight,
            incarnation: self.local.incarnation(),
        }
    }

    /// Something was seen of a peer. A full queue loses hints only: leases decide without them.
    pub fn report(&self, event: PeerEvent) {
        let _ = self.events.try_send(event);
    }
}

/// `host:port` of a node's peer port.
pub fn peer_address(addresses: &Addresses) -> String {
    let Addresses { host, peer, .. } = addresses;
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{peer}")
    } else {
        format!("{host}:{peer}")
    }
}
