//! Functions in a cluster: loaded at one node, known to all, and never the old ones after a change was answered.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::wait;

/// A library whose function `which` gives a number, and `add` adds it to a key.
fn library(number: u64) -> String {
    format!(
        "#!lua name=lib\nredis.register_function('which', function(keys) return {number} end)\n\
         redis.register_function('add', function(keys) return redis.call('incrby', keys[1], {number}) end)"
    )
}

fn load(client: &mut Connection, number: u64) {
    let code = library(number);
    let reply = client.call_bytes(&[b"FUNCTION", b"LOAD", b"REPLACE", code.as_bytes()]).expect("LOAD");
    assert_eq!(reply.text(), "lib", "{reply:?}");
}

fn call(client: &mut Connection, words: &str) -> Reply {
    client.call(words).expect("a reply")
}

/// Keys of several slots, some on each node.
const TAGS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

#[test]
fn a_library_of_one_node_is_everywhere_at_once_on_both_ports() {
    let mut cluster = Cluster::start(3);
    for round in 1..=6_u64 {
        load(&mut cluster.client(round as usize % 3), round);
        for index in 0..3 {
            let mut client = cluster.client(index);
            assert_eq!(call(&mut client, "FCALL which 0"), Reply::Integer(round as i64), "node {index}");
            for tag in TAGS {
                let words = format!("FCALL which 1 {{{tag}}}k");
                assert_eq!(call(&mut client, &words), Reply::Integer(round as i64), "node {index} {tag}");
            }
            let key = format!("{{{}}}port", TAGS[round as usize]);
            if cluster.primary_of(&key) == index {
                let reply = call(&mut cluster.cluster_port(index), &format!("FCALL which 1 {key}"));
                assert_eq!(reply, Reply::Integer(round as i64));
            }
        }
    }
    // A node that comes later knows them, too.
    let index = cluster.add();
    cluster.wait_answering(index);
    wait::until("the new node knows the functions", PATIENCE, || {
        let reply = call(&mut cluster.client(index), "FCALL which 0");
        if reply == Reply::Integer(6) { Ok(()) } else { Err(format!("{reply:?}")) }
    });
    assert!(call(&mut cluster.client(index), "FUNCTION DELETE lib").is_ok());
    for index in 0..4 {
        let reply = call(&mut cluster.client(index), "FCALL which 1 {a}k");
        assert_eq!(reply.error(), Some("ERR Function not found"), "node {index}");
    }
}

#[test]
fn nobody_runs_the_old_function_after_the_answer() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    load(&mut cluster.client(0), 1);
    let (answered, is_over) = (AtomicU64::new(1), AtomicBool::new(false));
    let calls = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for index in 0..3 {
            for tag in [TAGS[index], TAGS[index + 3]] {
                let (cluster, answered, is_over, calls) = (&cluster, &answered, &is_over, &calls);
                scope.spawn(move || {
                    let mut client = cluster.client(index);
                    while !is_over.load(Ordering::SeqCst) {
                        let least = answered.load(Ordering::SeqCst) as i64;
                        let reply = call(&mut client, &format!("FCALL which 1 {{{tag}}}k"));
                        let Reply::Integer(number) = reply else { panic!("{reply:?}") };
                        assert!(number >= least, "node {index}: {number} after {least} was answered");
                        calls.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        }
        for number in 2..=40 {
            load(&mut cluster.client(number as usize % 3), number);
            answered.store(number, Ordering::SeqCst);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(calls.load(Ordering::SeqCst) > 100);
}

#[test]
fn functions_survive_a_node_and_its_empty_return() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    load(&mut cluster.client(0), 3);
    for victim in 0..3 {
        cluster.kill(victim);
        let survivor = (victim + 1) % 3;
        wait::until("functions run through the others", PATIENCE, || {
            let mut client = cluster.client(survivor);
            for tag in TAGS {
                let reply = call(&mut client, &format!("FCALL add 1 {{{tag}}}sum"));
                if !matches!(reply, Reply::Integer(_)) {
                    return Err(format!("{tag}: {reply:?}"));
                }
            }
            Ok(())
        });
        // A change while it is away is answered at once, or when it is marked down.
        let began = Instant::now();
        load(&mut cluster.client(survivor), 10 + victim as u64);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        cluster.launch_again(victim, true);
        cluster.wait_ready(PATIENCE);
        let reply = call(&mut cluster.client(victim), "FCALL which 0");
        assert_eq!(reply, Reply::Integer(10 + victim as i64), "the node that came back empty");
    }
}

#[test]
fn a_node_that_stood_still_does_not_run_what_was_replaced() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    load(&mut cluster.client(0), 1);
    for index in 0..3 {
        assert_eq!(call(&mut cluster.client(index), "FCALL which 0"), Reply::Integer(1));
    }
    let mut waiting = cluster.client(2);
    cluster.pause(2);
    load(&mut cluster.client(0), 2);
    cluster.resume(2);
    wait::until("the node that stood still runs the new function", PATIENCE, || {
        match call(&mut waiting, "FCALL which 0") {
            Reply::Integer(2) => Ok(()),
            Reply::Integer(number) => panic!("it ran {number} after 2 was answered"),
            other => Err(format!("{other:?}")),
        }
    });
}
