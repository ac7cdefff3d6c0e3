//! The two doors of a cluster: the client port is one Redis, the cluster port speaks for its node.

use std::collections::BTreeSet;

use korum_tests::harness::alone;
use korum_tests::harness::cluster::Cluster;
use korum_tests::harness::resp::Reply;

use crate::copies::{load_keys, value_of};

#[test]
fn the_client_port_of_every_node_is_one_redis() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    load_keys(&cluster, 1_000);
    for index in 0..3 {
        let mut client = cluster.client(index);
        assert_eq!(client.call("DBSIZE").expect("DBSIZE"), Reply::Integer(1_000));
        assert_eq!(client.call("KEYS loaded:*").expect("KEYS").items().len(), 1_000);
        let found = client.call("MGET loaded:1 none loaded:2 loaded:3").expect("MGET");
        let value = |name: &[u8]| Reply::Bulk(value_of(name));
        let expected = [value(b"loaded:1"), Reply::Null, value(b"loaded:2"), value(b"loaded:3")];
        assert_eq!(found.items(), expected, "in the order of the request");
        assert!(client.call("RANDOMKEY").expect("RANDOMKEY").text().starts_with("loaded:"));
        // SCAN walks through all nodes and finds each key once
        let (mut cursor, mut seen, mut count) = ("0".to_owned(), BTreeSet::new(), 0);
        for step in 0.. {
            assert!(step < 20_000, "SCAN does not end");
            let reply = client.call(&format!("SCAN {cursor} COUNT 100")).expect("SCAN");
            let [next, keys] = reply.items() else { panic!("SCAN answers {reply:?}") };
            count += keys.items().len();
            seen.extend(keys.items().iter().map(Reply::text));
            cursor = next.text();
            if cursor == "0" {
                break;
            }
        }
        assert_eq!((seen.len(), count), (1_000, 1_000));
    }
    let mut client = cluster.client(1);
    assert!(client.call("MSET a 1 b 2 c 3 d 4").expect("MSET").is_ok());
    assert_eq!(client.call("EXISTS a b c d none a").expect("EXISTS"), Reply::Integer(5));
    assert_eq!(client.call("DEL a b none c d").expect("DEL"), Reply::Integer(4));
    assert!(client.call("FLUSHALL").expect("FLUSHALL").is_ok());
    for index in 0..3 {
        assert_eq!(cluster.client(index).call("DBSIZE").expect("DBSIZE"), Reply::Integer(0));
    }
}

#[test]
fn the_cluster_port_redirects_as_redis_cluster_does() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    load_keys(&cluster, 300);
    // every slot has one primary, each node has some
    let slots = cluster.client(0).call("CLUSTER SLOTS").expect("CLUSTER SLOTS");
    let mut next = 0;
    let mut ports = BTreeSet::new();
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for range in slots.items() {
        let [Reply::Integer(first), Reply::Integer(last), primary, ..] = range.items() else {
            panic!("{range:?}")
        };
        ranges.push((*first, *last));
        ports.insert(primary.items()[1].integer().expect("a port"));
        assert_eq!(primary.items()[2].text().len(), 40, "an id of 40 hex digits");
    }
    ranges.sort_unstable();
    for (first, last) in ranges {
        assert_eq!(first, next);
        next = last + 1;
    }
    assert_eq!(next, 16_384);
    assert_eq!(ports, cluster.nodes.iter().map(|node| i64::from(node.cluster)).collect());

    // the right node answers, the others name it
    let primary = cluster.primary_of("loaded:7");
    let slot =
        cluster.client(0).call("CLUSTER KEYSLOT loaded:7").expect("a slot").integer().expect("a number");
    for index in 0..3 {
        let reply = cluster.cluster_port(index).call("GET loaded:7").expect("GET");
        let moved = format!("MOVED {slot} 127.0.0.1:{}", cluster.nodes[primary].cluster);
        let expected =
            if index == primary { Reply::Bulk(value_of(b"loaded:7")) } else { Reply::Error(moved) };
        assert_eq!(reply, expected);
    }
    let reply = cluster.cluster_port(0).call("MGET loaded:1 loaded:2").expect("MGET");
    assert_eq!(reply, Reply::Error("CROSSSLOT Keys in request don't hash to the same slot".into()));

    // it counts what it is primary of, so that all together count each key once
    let sizes: i64 = (0..3)
        .map(|index| cluster.cluster_port(index).call("DBSIZE").expect("DBSIZE").integer().expect("a number"))
        .sum();
    assert_eq!(sizes, 300);
    let node_lines = cluster.client(0).call("CLUSTER NODES").expect("CLUSTER NODES").text();
    assert_eq!(node_lines.lines().count(), 3);
    assert_eq!(node_lines.matches("myself").count(), 1);
}
