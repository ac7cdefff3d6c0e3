//! `SIGSTOP` of a primary: another serves; what wakes up again acknowledges nothing and returns no old value.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::{Connection, Reply, encode};
use korum_tests::harness::writers::{Load, Writers, assert_nothing_lost};
use korum_tests::harness::{alone, wait};

use crate::size;

#[test]
fn a_paused_primary_is_replaced_and_serves_nothing_old_when_it_wakes() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    // keys of one slot, so of one primary
    let primary = cluster.primary_of("{pause}value");
    let other = (primary + 1) % 3;
    let mut client = cluster.client(other);
    assert!(client.call("SET {pause}value old").expect("SET").is_ok());
    let mut sleeping_client = cluster.client(primary);
    let mut sleeping_cluster = cluster.cluster_port(primary);
    assert!(sleeping_cluster.call("SET {pause}value old").expect("SET").is_ok(), "the primary takes it");

    let synced_before = synced(&cluster);
    cluster.pause(primary);
    let paused = Instant::now();
    // requests that wait in the sockets of the sleeping node: what it reads when it wakes
    for (connection, name) in [(&mut sleeping_client, "client"), (&mut sleeping_cluster, "cluster")] {
        connection.patience(Duration::from_secs(20)).expect("a timeout");
        connection.send(&encode(&[b"GET", b"{pause}value"])).expect("sent");
        let key = format!("{{pause}}late:{name}");
        connection.send(&encode(&[b"SET", key.as_bytes(), b"late"])).expect("sent");
    }
    wait::until("another node serves", Duration::from_secs(10), || write(&cluster, other, "new"));
    let taken = paused.elapsed();
    println!("another node served {taken:?} after SIGSTOP");
    assert!(taken < Duration::from_secs(2), "another node served only after {taken:?}");

    let writers = Writers::start(&cluster.ports_without(primary), &Load::default());
    std::thread::sleep(Duration::from_secs(size(4, 60)).saturating_sub(paused.elapsed()));
    assert_eq!(write(&cluster, other, "newest"), Ok(()));
    cluster.resume(primary);

    // ask it without a pause from the first moment on, on both ports
    let woken = Instant::now();
    let mut answers = 0_u32;
    while woken.elapsed() < Duration::from_secs(2) {
        for port in [cluster.nodes[primary].client, cluster.nodes[primary].cluster] {
            let Ok(mut connection) = Connection::to(port) else { continue };
            let Ok(reply) = connection.call("GET {pause}value") else { continue };
            answers += 1;
            assert!(is_fresh(&reply), "{:?} after it woke it answered {reply:?}", woken.elapsed());
        }
    }
    assert!(answers > 0, "the node that woke never answered");

    // what it makes of the requests that had waited: fresh, refused or forwarded, and what it acknowledged is there
    for (connection, name) in [(&mut sleeping_client, "client"), (&mut sleeping_cluster, "cluster")] {
        if let Ok(reply) = connection.reply() {
            assert!(is_fresh(&reply), "on its {name} port it answered {reply:?} to a read from before");
        }
        if let Ok(Reply::Simple(_)) = connection.reply() {
            let found = client.call(&format!("GET {{pause}}late:{name}")).expect("GET");
            assert_eq!(
                found,
                Reply::from("late"),
                "it acknowledged a write on its {name} port that is not there"
            );
        }
    }

    // it catches up by itself, with what it has missed and not with everything
    cluster.wait_ready(PATIENCE);
    let now = synced(&cluster);
    let [repairs, streams] = [0, 1].map(|way| now[way] - synced_before[way]);
    println!("{repairs} copies were brought up to date from backlogs, {streams} were streamed");
    assert!(repairs > 100, "{repairs} repairs");
    // after half a minute other nodes are given what it held
    assert!(streams < repairs / 20 || size(0, 1) == 1, "{repairs} repairs, {streams} streams");
    let histories = writers.stop();
    for index in 0..3 {
        let _ = assert_nothing_lost(&histories, cluster.nodes[index].client);
        assert_eq!(cluster.client(index).call("GET {pause}value").expect("GET"), Reply::from("newest"));
    }
}

#[test]
fn writes_wait_while_the_quorum_is_away_and_are_answered_when_it_returns() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let (awake, others) = (0, [1, 2]); // two of three are the quorum
    let mine = (0..).map(|number| format!("awake:{number}")).filter(|key| cluster.primary_of(key) == awake);
    let keys: Vec<String> = mine.take(4).collect();
    let (stop, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let write = |key: &str| {
            let mut connection = cluster.client(awake);
            let (mut done, mut longest) = (0_u32, Duration::ZERO);
            while !stop.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let reply = connection.call(&format!("SET {key} {done}")).expect("an answer");
                assert!(reply.is_ok(), "after {done} writes and {:?}: {reply:?}", begin.elapsed());
                longest = longest.max(begin.elapsed());
                done += 1;
                writes.fetch_add(1, Ordering::Relaxed);
            }
            (done, longest)
        };
        let writers: Vec<_> = keys.iter().map(|key| scope.spawn(move || write(key))).collect();
        // longer than a lease, shorter than a request may take
        let away = Duration::from_millis(1_500);
        for _ in 0..2 {
            writes.store(0, Ordering::Relaxed);
            wait::until("writes go on", PATIENCE, || {
                let done = writes.load(Ordering::Relaxed);
                if done > 200 { Ok(()) } else { Err(format!("{done} writes")) }
            });
            others.iter().for_each(|&index| cluster.pause(index));
            std::thread::sleep(away);
            others.iter().for_each(|&index| cluster.resume(index));
            cluster.wait_ready(PATIENCE);
        }
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            let (done, longest) = writer.join().expect("no write was answered with an error");
            println!("{done} writes, the longest took {longest:?}");
            assert!(longest > away / 2, "the pause stopped nothing: the longest write took {longest:?}");
        }
    });
}

/// How many copies the nodes have brought up to date from their backlogs, and how many they have streamed.
fn synced(cluster: &Cluster) -> [u64; 2] {
    let info = |index| cluster.client(index).call("INFO stats").expect("INFO").text();
    let infos: Vec<String> = (0..cluster.nodes.len()).map(info).collect();
    ["sync_partial_ok:", "sync_full:"].map(|field| {
        let of_node = |info: &String| -> u64 {
            let line = info.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
            line.trim().parse().expect("a number")
        };
        infos.iter().map(of_node).sum()
    })
}

/// The newest value, or an answer that is no value.
fn is_fresh(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(_)) || *reply == Reply::from("newest")
}

fn write(cluster: &Cluster, index: usize, value: &str) -> Result<(), String> {
    let reply =
        cluster.client(index).call(&format!("SET {{pause}}value {value}")).map_err(|e| e.to_string())?;
    if reply.is_ok() { Ok(()) } else { Err(format!("{reply:?}")) }
}
