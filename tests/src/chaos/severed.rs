//! What a node that is cut off still answers: the last answer to a read that it needs nobody for.
//!
//! Clients with a write under way block at such a node, so this asks for keys that nobody writes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::harness::cluster::Cluster;
use crate::harness::resp::{Connection, Reply};

/// After so long without an answer it asks anew.
const PATIENCE: Duration = Duration::from_millis(50);
/// Pause between two questions.
const PAUSE: Duration = Duration::from_millis(1);

/// Readers at work, one for each node.
pub(super) struct Probes {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Instant>>>,
}

impl Probes {
    /// Writes a key for each of the nodes and reads it there from now on.
    pub(super) fn start(cluster: &Cluster, nodes: &[usize]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = nodes.iter().map(|&node| {
            let key = own_key(cluster, node);
            let address = SocketAddr::from(([127, 0, 0, 1], cluster.nodes[node].client));
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || read(address, &key, &stop))
        });
        let threads = threads.collect();
        Self { stop, threads }
    }

    /// The last answer between the two moments, counted from the first.
    pub(super) fn stop(self, begin: Instant, end: Instant) -> Option<Duration> {
        self.stop.store(true, Ordering::Relaxed);
        let times =
            self.threads.into_iter().flat_map(|thread| thread.join().expect("a reader does not panic"));
        times.filter(|time| (begin..end).contains(time)).map(|time| time - begin).max()
    }
}

/// A key whose primary the node is.
fn own_key(cluster: &Cluster, node: usize) -> String {
    let key =
        (0..1_000).map(|number| format!("quiet:{node}:{number}")).find(|key| cluster.primary_of(key) == node);
    let key = key.expect("every node is primary of some keys");
    assert!(cluster.client(node).call(&format!("SET {key} 1")).expect("SET").is_ok());
    key
}

fn read(address: SocketAddr, key: &str, stop: &AtomicBool) -> Vec<Instant> {
    let mut times = Vec::new();
    let mut connection: Option<Connection> = None;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
        if connection.is_none() {
            connection = Connection::open(address, PATIENCE).ok();
        }
        match connection.as_mut().map(|open| open.call(&format!("GET {key}"))) {
            Some(Ok(Reply::Bulk(_) | Reply::Null)) => times.push(Instant::now()),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => connection = None,
        }
    }
    times
}
