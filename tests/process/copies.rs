//! Keys that are counted, and who holds them.
//!
//! For: "only what must move moves". Not here: writers (`korum_tests::harness::writers`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use korum_protocol::placement::slot::slot_of;
use korum_tests::harness::cluster::Cluster;
use korum_tests::harness::resp::{Connection, Reply};

/// Length of each value, bytes.
const VALUE_BYTES: usize = 100;

/// Sets `loaded:0..count`, each to its own name, padded.
pub fn load_keys(cluster: &Cluster, count: usize) {
    let mut connection = patient(cluster.client(0));
    for part in names(count).chunks(1_000) {
        let commands: Vec<_> =
            part.iter().map(|name| vec![b"SET".to_vec(), name.clone(), value_of(name)]).collect();
        for reply in connection.pipeline(&commands).expect("SET") {
            assert!(reply.is_ok(), "{reply:?}");
        }
    }
}

/// Panics unless every key of `load_keys` is read back at this node.
pub fn assert_loaded(cluster: &Cluster, index: usize, count: usize) {
    let mut connection = patient(cluster.client(index));
    for part in names(count).chunks(1_000) {
        let commands: Vec<_> = part.iter().map(|name| vec![b"GET".to_vec(), name.clone()]).collect();
        for (name, reply) in part.iter().zip(connection.pipeline(&commands).expect("GET")) {
            assert_eq!(reply, Reply::Bulk(value_of(name)), "{}", String::from_utf8_lossy(name));
        }
    }
}

/// Who holds each key of `load_keys`.
///
/// Every node is asked for every key: after READONLY a holder answers on its cluster port and any other node
/// redirects. Where replicas do not answer, the cluster is asked who they are.
pub fn holders(cluster: &Cluster, count: usize) -> Vec<BTreeSet<usize>> {
    let names = names(count);
    let mut found = vec![BTreeSet::new(); count];
    for index in cluster.running() {
        let mut connection = patient(cluster.cluster_port(index));
        assert!(connection.call("READONLY").expect("READONLY").is_ok());
        for (part, names) in names.chunks(1_000).enumerate() {
            let commands: Vec<_> = names.iter().map(|name| vec![b"EXISTS".to_vec(), name.clone()]).collect();
            for (number, reply) in connection.pipeline(&commands).expect("EXISTS").iter().enumerate() {
                if reply.integer() == Some(1) {
                    found[part * 1_000 + number].insert(index);
                }
            }
        }
    }
    let copies: usize = found.iter().map(BTreeSet::len).sum();
    if copies > count { found } else { told_holders(cluster, &names) }
}

/// Who holds each key, as `KORUM EXPLAIN` says for one key of each partition.
fn told_holders(cluster: &Cluster, names: &[Vec<u8>]) -> Vec<BTreeSet<usize>> {
    let first = cluster.running()[0];
    let partitions = cluster.status(first).expect("a status")["partitions"].as_u64().expect("a number");
    let place = |name: &[u8]| u64::from(slot_of(name)) * partitions / 16_384;
    let mut connection = patient(cluster.client(first));
    let mut told: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for name in names {
        told.entry(place(name)).or_insert_with(|| {
            let reply = connection.call_bytes(&[b"KORUM", b"EXPLAIN", name]).expect("EXPLAIN").text();
            let rows = reply.lines().filter(|row| row.contains(" primary: ") || row.contains(" replica: "));
            rows.map(|row| node_at(cluster, row.split_whitespace().nth(2).expect("an address"))).collect()
        });
    }
    names.iter().map(|name| told[&place(name)].clone()).collect()
}

/// The place of the node with this `host:port` of clients.
fn node_at(cluster: &Cluster, address: &str) -> usize {
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
    cluster.nodes.iter().position(|node| Some(node.client) == port).expect("a node of this cluster")
}

/// The value of a key of `load_keys`.
pub fn value_of(name: &[u8]) -> Vec<u8> {
    let mut value = name.to_vec();
    value.resize(VALUE_BYTES, b'.');
    value
}

fn names(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| format!("loaded:{number}").into_bytes()).collect()
}

fn patient(connection: Connection) -> Connection {
    connection.patience(Duration::from_secs(30)).expect("a timeout");
    connection
}
