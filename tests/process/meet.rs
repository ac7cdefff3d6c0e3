//! `CLUSTER MEET`: nodes that were started alone become one cluster, and nothing that was acknowledged is lost by it.

use std::collections::BTreeSet;
use std::time::Duration;

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::Reply;
use korum_tests::harness::{alone, wait};

use crate::copies::{assert_loaded, load_keys};

fn meet(cluster: &Cluster, asked: usize, address: &str) -> Reply {
    cluster.client(asked).call(&format!("CLUSTER MEET 127.0.0.1 {address}")).expect("a reply")
}

/// Waits until these nodes, and no others, are one cluster that is ready.
fn wait_together(cluster: &Cluster, members: &[usize]) {
    wait::until("the nodes are one cluster", PATIENCE, || {
        let mut epochs = BTreeSet::new();
        for &index in members {
            let status = cluster.status(index)?;
            let up = status["nodes"].as_array().into_iter().flatten().filter(|node| node["state"] == "up");
            let (up, moving) = (up.count(), status["moving"].as_u64());
            if up != members.len() || moving != Some(0) {
                return Err(format!("node {index} sees {up} nodes up, {moving:?} partitions moving"));
            }
            epochs.insert(status["epoch"].as_u64());
        }
        if epochs.len() == 1 { Ok(()) } else { Err(format!("epochs {epochs:?}")) }
    });
}

fn assert_error(reply: &Reply, parts: &[&str]) {
    let text = reply.error().unwrap_or_else(|| panic!("{reply:?} is no error"));
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn three_nodes_that_meet_are_one_cluster_and_come_back_to_it() {
    let _alone = alone();
    let mut cluster = Cluster::start_apart(3);
    load_keys(&cluster, 500);
    let before: Vec<String> = (0..3).map(|index| cluster.id(index)).collect();
    let ports: Vec<u16> = cluster.nodes.iter().map(|node| node.client).collect();

    // The node that is asked stays, with its keys; the other one joins.
    assert!(meet(&cluster, 0, &ports[1].to_string()).is_ok());
    wait_together(&cluster, &[0, 1]);
    // One that is alone asks a member of several: it is the one that joins, whatever port it is given.
    let bus = format!("{} {}", cluster.nodes[1].cluster, cluster.nodes[1].peer);
    assert!(meet(&cluster, 2, &bus).is_ok());
    cluster.wait_ready(PATIENCE);

    let after: Vec<String> = (0..3).map(|index| cluster.id(index)).collect();
    assert_eq!(before[0], after[0]);
    let ids: BTreeSet<&String> = before.iter().chain(&after).collect();
    assert_eq!(ids.len(), 5, "who joined is a new node: {before:?}, {after:?}");
    (0..3).for_each(|index| assert_loaded(&cluster, index, 500));

    // Whoever is a member already is met again, and nothing changes; so is a node itself.
    let epoch = cluster.status(0).expect("a status")["epoch"].clone();
    let again = format!("{}", cluster.nodes[2].cluster);
    assert!(meet(&cluster, 0, &again).is_ok());
    assert!(meet(&cluster, 1, &ports[1].to_string()).is_ok());
    assert_eq!(cluster.status(0).expect("a status")["epoch"], epoch);

    // Without --join, one by one and all at once.
    cluster.launch_again(2, false);
    cluster.wait_ready(PATIENCE);
    (0..3).for_each(|index| cluster.kill(index));
    (0..3).for_each(|index| cluster.launch_again(index, false));
    cluster.wait_ready(PATIENCE);
    assert_eq!((0..3).map(|index| cluster.id(index)).collect::<Vec<_>>(), after);
}

#[test]
fn what_cannot_meet_is_told_what_to_do() {
    let _alone = alone();
    let mut cluster = Cluster::start_apart(4);
    let stranger = cluster.add_apart(&["--secret", "another"]);
    cluster.wait_answering(stranger);
    let port = |index: usize| cluster.nodes[index].client.to_string();

    assert_error(&meet(&cluster, 0, "1"), &["TRYAGAIN cannot reach a Korum node at 127.0.0.1:1"]);
    assert_error(&meet(&cluster, 0, &port(stranger)), &["ERR ", "secret"]);
    assert_error(&meet(&cluster, stranger, &port(0)), &["ERR ", "secret"]);

    // Keys are not given up, by whoever would have to join.
    assert!(cluster.client(1).call("SET kept 1").expect("SET").is_ok());
    assert_error(&meet(&cluster, 0, &port(1)), &["ERR ", "holds keys", "FLUSHALL", "CLUSTER MEET"]);
    assert!(meet(&cluster, 1, &port(0)).is_ok());
    wait_together(&cluster, &[0, 1]);
    assert!(cluster.client(2).call("SET other 2").expect("SET").is_ok());
    assert_error(&meet(&cluster, 2, &port(0)), &["ERR this node holds keys", "FLUSHALL"]);

    // Two clusters of several nodes stay two.
    assert!(meet(&cluster, 2, &port(3)).is_ok());
    wait_together(&cluster, &[2, 3]);
    assert_error(&meet(&cluster, 0, &port(2)), &["ERR ", "do not merge", "--join"]);
    assert_eq!(cluster.client(0).call("GET kept").expect("GET"), Reply::from("1"));
    assert_eq!(cluster.client(3).call("GET other").expect("GET"), Reply::from("2"));
    assert_eq!(cluster.client(stranger).call("SET x 1").expect("SET").text(), "OK");
}

#[test]
fn a_node_that_is_killed_when_it_has_just_met_another_goes_on_joining() {
    let _alone = alone();
    let mut cluster = Cluster::start_apart(2);
    let old = cluster.id(1);
    assert!(meet(&cluster, 0, &cluster.nodes[1].client.to_string()).is_ok());
    cluster.launch_again(1, false);
    cluster.wait_ready(PATIENCE);
    assert_ne!(cluster.id(1), old);
}

#[test]
fn nodes_that_meet_each_other_at_once_become_one_cluster() {
    let _alone = alone();
    let cluster = Cluster::start_apart(3);
    std::thread::scope(|scope| {
        for index in 0..3 {
            let (mut client, port) = (cluster.client(index), cluster.nodes[(index + 1) % 3].client);
            // Who joins while its own request is under way may close the connection.
            scope.spawn(move || drop(client.call(&format!("CLUSTER MEET 127.0.0.1 {port}"))));
        }
    });
    // All of the ring, or whoever was refused once more: it converges.
    for index in 0..3 {
        let port = cluster.nodes[(index + 1) % 3].client;
        wait::until("they meet", PATIENCE, || {
            let reply = cluster.client(index).call(&format!("CLUSTER MEET 127.0.0.1 {port}"));
            let reply = reply.map_err(|error| error.to_string())?;
            if reply.is_ok() { Ok(()) } else { Err(format!("{reply:?}")) }
        });
    }
    cluster.wait_ready(PATIENCE);
}

#[test]
fn a_write_that_is_acknowledged_while_nodes_meet_is_kept() {
    let _alone = alone();
    let mut cluster = Cluster::start_apart(1);
    let mut joined = 0;
    for round in 0..6_u64 {
        let other = cluster.add_apart(&[]);
        cluster.wait_answering(other);
        let mut client = cluster.client(other);
        client.patience(Duration::from_secs(3)).expect("a timeout");
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(round * 700));
            client.call(&format!("SET meeting:{round} {round}"))
        });
        let met = meet(&cluster, 0, &cluster.nodes[other].client.to_string());
        let is_written = writer.join().expect("the writer ends").is_ok_and(|reply| reply.is_ok());
        let asked = if met.is_ok() {
            joined += 1;
            cluster.wait_ready(PATIENCE);
            0
        } else {
            assert_error(&met, &["holds keys"]);
            other
        };
        if is_written {
            let found = cluster.client(asked).call(&format!("GET meeting:{round}")).expect("GET");
            assert_eq!(found, Reply::from(&*round.to_string()), "it was acknowledged");
        }
        if asked == other {
            cluster.kill(other);
        }
    }
    println!("{joined} of 6 nodes joined, the others had taken a write first");
}
