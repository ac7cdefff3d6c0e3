//! Whole nodes' Rafts in one process, on a network whose links can be cut.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::id::{ClusterId, Epoch, Incarnation, NodeId};
use korum_protocol::map::change::Registration;
use korum_protocol::map::{Addresses, LossPolicy, MapChange, Refusal, View};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use super::{Consensus, Options, ProposeError, RaftTransport, TransportError};

mod cluster;
mod crashes;
mod faults;
mod storage;

/// Far more than anything here takes, on a busy machine too.
const SOON: Duration = Duration::from_secs(20);

/// The network: who is there, and which links are cut.
#[derive(Default)]
struct Net {
    nodes: Mutex<HashMap<NodeId, Weak<Consensus>>>,
    cut: Mutex<HashSet<(NodeId, NodeId)>>,
    /// Nodes that are no longer where [`address_of`] says.
    moved: Mutex<HashMap<NodeId, String>>,
}

impl Net {
    fn cut(&self, a: NodeId, b: NodeId) {
        self.cut.lock().unwrap().extend([(a, b), (b, a)]);
    }

    fn isolate(&self, node: NodeId) {
        let others: Vec<NodeId> =
            self.nodes.lock().unwrap().keys().copied().filter(|id| *id != node).collect();
        others.into_iter().for_each(|other| self.cut(node, other));
    }

    fn heal(&self) {
        self.cut.lock().unwrap().clear();
    }

    fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.cut.lock().unwrap().contains(&(from, to))
    }
}

/// One node's end of it.
struct Link {
    from: NodeId,
    net: Arc<Net>,
}

impl RaftTransport for Link {
    fn call(
        &self,
        target: NodeId,
        address: String,
        request: Bytes,
        wait: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, TransportError>> + Send + '_>> {
        Box::pin(async move {
            let moved = self.net.moved.lock().unwrap().get(&target).cloned();
            if address != moved.unwrap_or_else(|| address_of(target)) {
                return Err(TransportError("connection refused".into()));
            }
            if self.net.is_cut(self.from, target) {
                sleep(wait).await;
                return Err(TransportError("no answer".into()));
            }
            let node = self.net.nodes.lock().unwrap().get(&target).and_then(Weak::upgrade);
            let Some(node) = node else { return Err(TransportError("connection refused".into())) };
            let reply = node.handle(request).await;
            if self.net.is_cut(target, self.from) {
                sleep(wait).await;
                return Err(TransportError("no answer".into()));
            }
            Ok(reply)
        })
    }
}

fn address_of(node: NodeId) -> String {
    format!("node-{}:7000", node.0)
}

async fn start(net: &Arc<Net>, home: &Path, node: u64) -> Arc<Consensus> {
    let node = NodeId(node);
    let link = Arc::new(Link { from: node, net: net.clone() });
    let dir = home.join(node.0.to_string()).join("raft");
    std::fs::create_dir_all(dir.parent().unwrap()).unwrap();
    let consensus = Consensus::open(Options::new(node, dir), link).await.expect("opens");
    net.nodes.lock().unwrap().insert(node, Arc::downgrade(&consensus));
    consensus
}

fn creation(cluster: u64) -> MapChange {
    MapChange::Create {
        cluster_id: ClusterId(cluster),
        partitions: 64,
        replication: 2,
        placement_seed: 7,
        loss_policy: LossPolicy::Empty,
        node: NodeId(1),
        registration: Registration {
            addresses: Addresses { host: "node-1".into(), client: 1, cluster: 2, peer: 7000 },
            zone: String::new(),
            weight: 1,
            incarnation: Incarnation(1),
        },
    }
}

fn setting(name: &str, value: &str) -> MapChange {
    MapChange::Set { name: name.into(), value: Some(value.into()) }
}

async fn until_view(node: &Consensus, what: &str, wanted: impl Fn(&View) -> bool) -> Arc<View> {
    let mut views = node.views();
    let found = timeout(SOON, views.wait_for(|view| view.as_deref().is_some_and(&wanted))).await;
    found.unwrap_or_else(|_| panic!("no view with {what}")).expect("Raft runs").clone().expect("there is one")
}

/// Proposes at whoever leads among `nodes` until it is agreed, within `deadline`.
async fn propose_somewhere(nodes: &[&Arc<Consensus>], change: MapChange, within: Duration) -> Epoch {
    let deadline = Instant::now() + within;
    let mut last = String::from("nobody was asked");
    while Instant::now() < deadline {
        for node in nodes {
            match node.propose(change.clone()).await {
                Ok(epoch) => return epoch,
                // An earlier try whose outcome was unknown was agreed.
                Err(ProposeError::Refused(Refusal::Outdated { .. })) => {
                    return node.views().borrow().as_ref().unwrap().map.epoch;
                }
                Err(error) => last = format!("{error:?}"),
            }
        }
        sleep(Duration::from_millis(5)).await;
    }
    panic!("nothing agreed within {within:?}: {last}");
}
