//! Keys of several slots on the client port: commands that wait for them take each item once, wherever the partitions
//! move; transactions over them, where they are allowed, are a unit for each slot.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::{alone, wait};

use crate::size;

const YES: &[&str] = &["--cross-slot-transactions"];

fn waiter(cluster: &Cluster, index: usize, line: &str) -> JoinHandle<Reply> {
    let mut connection = cluster.client(index);
    connection.patience(PATIENCE).expect("a timeout");
    let line = line.to_owned();
    thread::spawn(move || connection.call(&line).expect("a reply"))
}

fn wait_blocked(cluster: &Cluster, count: i64) {
    let of = |index: usize| {
        let info = cluster.client(index).call("INFO clients").expect("INFO").text();
        let line = info.lines().find_map(|line| line.strip_prefix("blocked_clients:")).expect("the line");
        line.trim().parse::<i64>().expect("a number")
    };
    wait::until("all of them wait", PATIENCE, || match cluster.running().into_iter().map(of).sum::<i64>() {
        found if found == count => Ok(()),
        found => Err(format!("{found} wait, not {count}")),
    });
}

/// A key of each node, in their order.
fn keys(cluster: &Cluster, name: &str) -> Vec<String> {
    let of = |node: usize| {
        let mut keys = (0..).map(|number| format!("{name}{number}"));
        keys.find(|key| cluster.primary_of(key) == node).expect("one")
    };
    (0..cluster.nodes.len()).map(of).collect()
}

fn call(connection: &mut Connection, line: &str) -> Reply {
    connection.call(line).expect("a reply")
}

fn pair(reply: &Reply) -> (String, String) {
    (reply.items()[0].text(), reply.items()[1].text())
}

#[test]
fn the_first_key_that_has_something_is_taken_from() {
    let cluster = Cluster::start(3);
    let [a, b, c] = &keys(&cluster, "key")[..] else { panic!("three nodes") };
    for index in 0..3 {
        let mut client = cluster.client(index);
        for key in [a, b, c] {
            assert_eq!(call(&mut client, &format!("RPUSH {key} 1 2")), Reply::Integer(2));
            call(&mut client, &format!("ZADD z{{{key}}} 1 one 2 two"));
        }
        // In the order of the keys, one item each, nothing else touched.
        for (order, key) in [([a, b, c], a), ([c, a, b], c), ([b, c, a], b)] {
            let [x, y, z] = order;
            let reply = call(&mut client, &format!("BLPOP none {x} {y} {z} 1"));
            assert_eq!(pair(&reply), (key.clone(), "1".into()));
        }
        for key in [a, b, c] {
            assert_eq!(call(&mut client, &format!("LLEN {key}")), Reply::Integer(1));
        }
        let reply = call(&mut client, &format!("BLMPOP 1 4 none {b} {a} {c} RIGHT COUNT 9"));
        assert_eq!((reply.items()[0].text(), reply.items()[1].items()), (b.clone(), &["2".into()][..]));
        let reply = call(&mut client, &format!("BRPOP {b} {c} {a} 0"));
        assert_eq!(pair(&reply), (c.clone(), "2".into()));
        let reply = call(&mut client, &format!("BZPOPMAX none z{{{b}}} z{{{a}}} 0"));
        assert_eq!(pair(&reply), (format!("z{{{b}}}"), "two".into()));
        let reply = call(&mut client, &format!("BZMPOP 0 3 none z{{{c}}} z{{{a}}} MIN"));
        assert_eq!(reply.items()[0].text(), format!("z{{{c}}}"));
        // Errors are those of one slot.
        call(&mut client, &format!("SET {a} text"));
        for (line, error) in [
            (format!("BLPOP {a} {b} x"), "ERR timeout is not a float or out of range"),
            (format!("BLPOP {b} {c} -1"), "ERR timeout is negative"),
            (format!("BLMPOP 0 2 {b} {c} UP"), "ERR syntax error"),
            (format!("BLPOP {a} {c} 0"), "WRONGTYPE Operation against a key holding the wrong kind of value"),
            (
                format!("XREAD STREAMS {b} {c} x 0"),
                "ERR Invalid stream ID specified as stream command argument",
            ),
        ] {
            assert_eq!(call(&mut client, &line).error(), Some(error), "{line}");
        }
        call(&mut client, "FLUSHALL");
        let begun = Instant::now();
        assert_eq!(call(&mut client, &format!("BLPOP {a} {b} {c} 0.3")), Reply::Null);
        let took = begun.elapsed();
        assert!((Duration::from_millis(300)..Duration::from_millis(800)).contains(&took), "{took:?}");
    }
}

#[test]
fn what_comes_later_is_waited_for_at_all_keys() {
    let cluster = Cluster::start(3);
    let [a, b, c] = &keys(&cluster, "key")[..] else { panic!("three nodes") };
    for index in 0..3 {
        let mut other = cluster.client((index + 1) % 3);
        for key in [a, b, c] {
            let waits = waiter(&cluster, index, &format!("BRPOP {a} {b} {c} 0"));
            wait_blocked(&cluster, 1);
            // Another type is not what is waited for.
            call(&mut other, &format!("SADD {key} x"));
            call(&mut other, &format!("DEL {key}"));
            call(&mut other, &format!("RPUSH {key} item"));
            assert_eq!(pair(&waits.join().expect("no panic")), (key.clone(), "item".into()));
            assert_eq!(call(&mut other, &format!("EXISTS {a} {b} {c}")), Reply::Integer(0));
        }
        // One command takes one item, also if all keys get one at the same moment.
        let waits = waiter(&cluster, index, &format!("BLPOP {a} {b} {c} 0"));
        wait_blocked(&cluster, 1);
        let producers: Vec<_> =
            [a, b, c].map(|key| waiter(&cluster, index, &format!("RPUSH {key} x"))).into();
        producers.into_iter().for_each(|it| drop(it.join()));
        let (key, _) = pair(&waits.join().expect("no panic"));
        for each in [a, b, c] {
            let left = i64::from(*each != key);
            assert_eq!(call(&mut other, &format!("LLEN {each}")), Reply::Integer(left));
        }
        call(&mut other, "FLUSHALL");
        // Streams: all that is there at once, else the first that comes.
        call(&mut other, &format!("XADD {a} 1-1 n 1"));
        call(&mut other, &format!("XADD {c} 1-1 n 3"));
        for block in ["", "BLOCK 0 "] {
            let reply = call(&mut other, &format!("XREAD {block}STREAMS {c} {b} {a} 0 0 0"));
            let names: Vec<String> = reply.items().iter().map(|stream| stream.items()[0].text()).collect();
            assert_eq!(names, [c.clone(), a.clone()]);
        }
        assert_eq!(call(&mut other, &format!("XREAD STREAMS {a} {b} {c} 9 9 9")), Reply::Null);
        let waits = waiter(&cluster, index, &format!("XREAD BLOCK 0 STREAMS {a} {b} {c} $ $ 1-1"));
        wait_blocked(&cluster, 1);
        thread::sleep(Duration::from_millis(50));
        call(&mut other, &format!("XADD {b} 2-2 n 2"));
        let reply = waits.join().expect("no panic");
        assert_eq!((reply.items().len(), reply.items()[0].items()[0].text()), (1, b.clone()));
        call(&mut other, "FLUSHALL");
    }
}

#[test]
fn waiting_for_several_slots_ends_by_command_and_with_the_client() {
    let cluster = Cluster::start(3);
    let [a, b, c] = &keys(&cluster, "key")[..] else { panic!("three nodes") };
    for index in 0..3 {
        let mut other = cluster.client(index);
        for (how, error) in [("ERROR", Some("UNBLOCKED client unblocked via CLIENT UNBLOCK")), ("", None)] {
            let mut connection = cluster.client(index);
            let id = call(&mut connection, "CLIENT ID").integer().expect("a number");
            let line = format!("BLPOP {a} {b} {c} 0");
            let blocked = thread::spawn(move || connection.call(&line).expect("a reply"));
            wait_blocked(&cluster, 1);
            assert_eq!(call(&mut other, format!("CLIENT UNBLOCK {id} {how}").trim()), Reply::Integer(1));
            let reply = blocked.join().expect("no panic");
            assert_eq!((reply.error(), reply == Reply::Null), (error, error.is_none()));
        }
        let mut gone = cluster.client(index);
        gone.send(format!("BLPOP {a} {b} {c} 0\r\n").as_bytes()).expect("sent");
        wait_blocked(&cluster, 1);
        drop(gone);
        wait_blocked(&cluster, 0);
        for key in [a, b, c] {
            assert_eq!(call(&mut other, &format!("RPUSH {key} x")), Reply::Integer(1));
            assert_eq!(call(&mut other, &format!("LPOP {key}")), Reply::from("x"));
        }
        // In a transaction nothing waits, and keys of several slots are refused.
        call(&mut other, "MULTI");
        assert!(call(&mut other, &format!("BLPOP {a} {b} 0")).error().is_some());
        call(&mut other, "DISCARD");
    }
}

/// Producers push numbers to keys of all nodes; consumers wait for all keys, while `meanwhile` happens.
fn deliver(cluster: &mut Cluster, may_fail: bool, meanwhile: impl FnOnce(&mut Cluster)) {
    let each = size(300, 3_000);
    let queues: Vec<String> = (0..7).map(|number| format!("queue{number}")).collect();
    let ends = Arc::new(AtomicBool::new(false));
    let nodes = if may_fail { cluster.running()[1..].to_vec() } else { cluster.running() };
    let client = |cluster: &Cluster, number: usize| {
        let connection = cluster.client(nodes[number % nodes.len()]);
        connection.patience(PATIENCE).expect("a timeout");
        connection
    };
    let consumers: Vec<_> = (0..6)
        .map(|number| {
            let (mut connection, ends) = (client(cluster, number), Arc::clone(&ends));
            let mut names = queues.clone();
            names.rotate_left(number);
            // One of them waits at a single key, as one who is served within the push.
            names.truncate(if number == 5 { 1 } else { names.len() });
            let line = format!("BLPOP {} 0.5", names.join(" "));
            thread::spawn(move || {
                let (mut taken, mut unknown) = (Vec::new(), 0);
                loop {
                    let reply = connection.call(&line).expect("a reply");
                    match reply.error() {
                        Some(text) if text.starts_with("UNKNOWN") => unknown += 1,
                        Some(text) => panic!("{text}"),
                        None if reply == Reply::Null && ends.load(Ordering::Relaxed) => break,
                        None if reply == Reply::Null => {}
                        None => taken.push(pair(&reply).1),
                    }
                }
                (taken, unknown)
            })
        })
        .collect();
    let producers: Vec<_> = (0..3)
        .map(|number| {
            let (mut connection, queues) = (client(cluster, number), queues.clone());
            thread::spawn(move || {
                let mut unknown = BTreeSet::new();
                for count in 0..each {
                    let name = format!("{number}:{count}");
                    let queue = &queues[count as usize % queues.len()];
                    let reply = connection.call(&format!("RPUSH {queue} {name}")).expect("a reply");
                    match reply.error() {
                        Some(text) if text.starts_with("UNKNOWN") => drop(unknown.insert(name)),
                        Some(text) => panic!("{text}"),
                        None => {}
                    }
                    thread::sleep(Duration::from_millis(2));
                }
                unknown
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(200));
    meanwhile(cluster);
    let maybe: BTreeSet<String> = producers.into_iter().flat_map(|it| it.join().expect("no panic")).collect();
    ends.store(true, Ordering::Relaxed);
    let (mut taken, mut unknown) = (Vec::new(), 0);
    for consumer in consumers {
        let (items, lost) = consumer.join().expect("no panic");
        taken.extend(items);
        unknown += lost;
    }
    let once: BTreeSet<&String> = taken.iter().collect();
    assert_eq!(once.len(), taken.len(), "an item was taken twice");
    let all = (0..3).flat_map(|number| (0..each).map(move |count| format!("{number}:{count}")));
    let missing: Vec<String> = all.filter(|name| !once.contains(name) && !maybe.contains(name)).collect();
    eprintln!(
        "{} taken, {unknown} takes and {} pushes unknown, {missing:?} missing",
        taken.len(),
        maybe.len()
    );
    assert!(missing.len() <= unknown, "{missing:?} are lost, and {unknown} were told that they may be");
    assert!(may_fail || unknown + maybe.len() == 0, "nothing failed");
}

#[test]
fn every_item_of_several_queues_is_delivered_once() {
    deliver(&mut Cluster::start(3), false, |_| {});
}

#[test]
fn every_item_of_several_queues_is_delivered_once_while_a_node_dies() {
    let _alone = alone();
    deliver(&mut Cluster::start(3), true, |cluster| {
        cluster.kill(0);
        thread::sleep(Duration::from_secs(2));
    });
}

#[test]
fn every_item_of_several_queues_is_delivered_once_while_nodes_come_and_go() {
    let _alone = alone();
    deliver(&mut Cluster::start(3), false, |cluster| {
        let added = cluster.add();
        cluster.wait_ready(PATIENCE);
        let id = cluster.id(added);
        assert!(call(&mut cluster.client(0), &format!("KORUM DRAIN {id}")).error().is_none());
        assert!(cluster.wait_ended(added, PATIENCE), "it ends in good order");
    });
}

#[test]
fn those_who_wait_for_several_slots_are_served_by_the_next_primary() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let names = keys(&cluster, "key");
    let line = format!("BLPOP {} {} 0", names[0], names[1]);
    let waiters: Vec<_> = (0..4).map(|number| waiter(&cluster, 1 + number % 2, &line)).collect();
    wait_blocked(&cluster, 4);
    cluster.kill(0);
    let mut producer = cluster.client(1);
    for number in 0..4 {
        // What is sent to the node that is dead, before anybody has noticed, was not done.
        wait::until("it is pushed", PATIENCE, || {
            match call(&mut producer, &format!("RPUSH {} {number}", names[0])).error() {
                None => Ok(()),
                Some(error) => Err(error.to_owned()),
            }
        });
    }
    let served: BTreeSet<String> =
        waiters.into_iter().map(|waiter| pair(&waiter.join().expect("no panic")).1).collect();
    assert_eq!(served, (0..4).map(|number| number.to_string()).collect());
}

/// Runs a transaction; the reply to `EXEC`.
fn transaction(connection: &mut Connection, lines: &[String]) -> Reply {
    assert!(call(connection, "MULTI").is_ok());
    for line in lines {
        assert_eq!(call(connection, line), Reply::Simple("QUEUED".into()), "{line}");
    }
    call(connection, "EXEC")
}

#[test]
fn a_transaction_of_several_slots_is_a_unit_for_each() {
    let cluster = Cluster::start_with(3, YES);
    let [a, b, c] = &keys(&cluster, "key")[..] else { panic!("three nodes") };
    let ok = || Reply::Simple("OK".into());
    for index in 0..3 {
        let mut client = cluster.client(index);
        let reply = transaction(
            &mut client,
            &[
                format!("MSET {a} 1 {b} 2 {a}x{{{a}}} 3"),
                format!("INCR {b}"),
                "PING".into(),
                format!("EXPIRE {a} 100"),
                format!("MGET {b} none {a} {a}x{{{a}}}"),
                format!("INCR {c}"),
                format!("LPUSH {a} x"),
                format!("INCR {c}"),
                format!("DEL {a} {b} {c} none"),
                format!("EXISTS {a} {c}"),
            ],
        );
        let values = Reply::Array(vec!["3".into(), Reply::Null, "1".into(), "3".into()]);
        let expected = [
            ok(),
            Reply::Integer(3),
            Reply::Simple("PONG".into()),
            Reply::Integer(1),
            values,
            Reply::Integer(1),
            Reply::Error("WRONGTYPE Operation against a key holding the wrong kind of value".into()),
            Reply::Integer(2),
            Reply::Integer(3),
            Reply::Integer(0),
        ];
        assert_eq!(reply.items(), expected);
        // What does not say where it belongs is refused as ever.
        call(&mut client, "MULTI");
        assert!(
            call(&mut client, &format!("RENAME {a} {b}"))
                .error()
                .is_some_and(|it| it.starts_with("CROSSSLOT"))
        );
        assert!(call(&mut client, "EXEC").error().is_some_and(|it| it.starts_with("EXECABORT")));
        let lines = [format!("SET {a} 1"), "FLUSHALL".into(), format!("SET {b} 1")];
        assert!(transaction(&mut client, &lines).error().is_some_and(|it| it.starts_with("CROSSSLOT")));
        assert_eq!(call(&mut client, &format!("EXISTS {a} {b}")), Reply::Integer(0));
        // The cluster port knows nothing of it.
        let mut cluster_port = cluster.cluster_port(index);
        let mine = &keys(&cluster, "mine")[index];
        let here = (0..).map(|number| format!("here{number}"));
        let here = here.into_iter().find(|key| cluster.primary_of(key) == index).expect("one");
        let reply = transaction(&mut cluster_port, &[format!("SET {mine} 1"), format!("SET {here} 1")]);
        assert!(reply.error().is_some_and(|text| text.starts_with("CROSSSLOT")), "{reply:?}");
        // It is turned off and on while the node runs.
        assert!(call(&mut client, "CONFIG SET cross-slot-transactions no").is_ok());
        let lines = [format!("SET {a} 1"), format!("SET {b} 1")];
        assert!(transaction(&mut client, &lines).error().is_some_and(|it| it.starts_with("CROSSSLOT")));
        assert!(call(&mut client, "CONFIG SET cross-slot-transactions yes").is_ok());
        assert_eq!(transaction(&mut client, &lines).items(), [ok(), ok()]);
        call(&mut client, "FLUSHALL");
    }
}

#[test]
fn watched_keys_of_several_slots_stop_what_they_should() {
    let cluster = Cluster::start_with(3, YES);
    let [a, b, c] = &keys(&cluster, "key")[..] else { panic!("three nodes") };
    for index in 0..3 {
        let (mut one, mut other) = (cluster.client(index), cluster.client((index + 1) % 3));
        for (watched, changed, stops) in [
            (vec![a], a, true),
            (vec![a], b, false),
            (vec![a, b], b, true),
            (vec![a, b], a, true),
            (vec![a, b], c, false),
            (vec![c, a], c, true),
        ] {
            let names: Vec<&str> = watched.iter().map(|name| name.as_str()).collect();
            assert!(call(&mut one, &format!("WATCH {}", names.join(" "))).is_ok());
            call(&mut other, &format!("INCR {changed}"));
            let before = call(&mut other, &format!("GET {b}"));
            let reply = transaction(
                &mut one,
                &[format!("SET {b} 50"), format!("SET {{{b}}}x 1"), format!("GET {a}")],
            );
            assert_eq!(reply == Reply::Null, stops, "{watched:?} {changed}: {reply:?}");
            assert_eq!(call(&mut other, &format!("GET {b}")) == before, stops);
            call(&mut other, &format!("SET {b} 1"));
        }
        // Counters under watch, by two at a time, lose nothing.
        call(&mut one, "FLUSHALL");
        let counters: Vec<_> = (0..4)
            .map(|number| {
                let (mut client, a, b) = (cluster.client(number % 3), a.clone(), b.clone());
                thread::spawn(move || {
                    let mut done = 0;
                    while done < 20 {
                        call(&mut client, &format!("WATCH {a}"));
                        let count = call(&mut client, &format!("GET {a}"));
                        let count =
                            if count == Reply::Null { 0 } else { count.text().parse().expect("a number") };
                        let lines = [format!("INCR {b}"), format!("SET {a} {}", count + 1)];
                        done += usize::from(transaction(&mut client, &lines) != Reply::Null);
                    }
                })
            })
            .collect();
        counters.into_iter().for_each(|it| it.join().expect("no panic"));
        for key in [a, b] {
            assert_eq!(call(&mut one, &format!("GET {key}")).text(), "80");
        }
    }
}

#[test]
fn units_of_a_transaction_run_once_while_a_node_dies() {
    let _alone = alone();
    let mut cluster = Cluster::start_with(3, YES);
    let names: Vec<String> = (0..6).map(|number| format!("count{number}")).collect();
    let rounds = size(400, 3_000);
    let writers: Vec<_> = (0..3)
        .map(|number| {
            let (mut client, names) = (cluster.client(1 + number % 2), names.clone());
            client.patience(PATIENCE).expect("a timeout");
            thread::spawn(move || {
                let (mut done, mut unknown) = (vec![0_u64; names.len()], vec![0_u64; names.len()]);
                for _ in 0..rounds {
                    let lines: Vec<String> = names
                        .iter()
                        .flat_map(|name| [format!("INCR {{{name}}}x"), format!("INCR {name}")])
                        .collect();
                    let reply = transaction(&mut client, &lines);
                    assert_eq!(reply.items().len(), lines.len(), "{reply:?}");
                    for (at, pair) in reply.items().chunks_exact(2).enumerate() {
                        match pair[0].error() {
                            None => done[at] += 1,
                            Some(text) if text.starts_with("UNKNOWN") => unknown[at] += 1,
                            Some(text) => assert!(text.starts_with("CLUSTERDOWN"), "{text}"),
                        }
                        assert_eq!(pair[0], pair[1], "a unit is whole");
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                (done, unknown)
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(200));
    cluster.kill(0);
    let results: Vec<_> = writers.into_iter().map(|it| it.join().expect("no panic")).collect();
    let mut client = cluster.client(1);
    for (at, name) in names.iter().enumerate() {
        let done: u64 = results.iter().map(|(done, _)| done[at]).sum();
        let unknown: u64 = results.iter().map(|(_, unknown)| unknown[at]).sum();
        let found: u64 = call(&mut client, &format!("GET {name}")).text().parse().expect("a number");
        assert!((done..=done + unknown).contains(&found), "{name}: {found}, of {done} and {unknown} unknown");
        assert_eq!(call(&mut client, &format!("GET {{{name}}}x")).text(), found.to_string());
    }
}
