//! Commands that wait, in a cluster: through any node, in the order in which they came, each item once, wherever the
//! partition moves meanwhile.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::Reply;
use korum_tests::harness::{alone, wait};

use crate::size;

/// Between two pushes of a producer, so that there are pushes while something happens.
const PACE: Duration = Duration::from_millis(2);

/// Runs a command on a connection of its own, in a thread.
fn waiter(cluster: &Cluster, index: usize, line: &str) -> JoinHandle<std::io::Result<Reply>> {
    let mut connection = cluster.client(index);
    connection.patience(PATIENCE).expect("a timeout");
    let line = line.to_owned();
    thread::spawn(move || connection.call(&line))
}

/// How many clients of all nodes wait, and how many commands stand in queues.
fn blocked(cluster: &Cluster) -> (i64, i64) {
    let of = |index: usize, name: &str| {
        let info = cluster.client(index).call("INFO all").expect("INFO").text();
        let line = info.lines().find_map(|line| line.strip_prefix(name)).expect("the line");
        line.trim().parse::<i64>().expect("a number")
    };
    let sum = |name: &str| cluster.running().into_iter().map(|index| of(index, name)).sum();
    (sum("blocked_clients:"), sum("commands_waiting:"))
}

fn wait_blocked(cluster: &Cluster, count: i64) {
    // That a client waits is said a moment before it stands in the queue of another node.
    wait::until("all of them wait", PATIENCE, || match blocked(cluster) {
        found if found == (count, count) => Ok(()),
        (clients, commands) => Err(format!("{clients} clients and {commands} commands wait, not {count}")),
    });
}

fn item(reply: &Reply) -> String {
    reply.items().last().unwrap_or_else(|| panic!("an item, not {reply:?}")).text()
}

#[test]
fn whoever_waits_is_served_in_order_through_every_node() {
    let cluster = Cluster::start(3);
    for round in 0..6 {
        let key = format!("queue{round}");
        let mut waiters = Vec::new();
        for number in 0..6 {
            waiters.push(waiter(&cluster, number % 3, &format!("BLPOP nothing{{{key}}} {key} 0")));
            wait_blocked(&cluster, number as i64 + 1);
        }
        let mut producer = cluster.client(round % 3);
        assert_eq!(producer.call(&format!("RPUSH {key} a b c")).expect("RPUSH"), Reply::Integer(3));
        for name in ["d", "e", "f"] {
            producer.call(&format!("LPUSH {key} {name}")).expect("LPUSH");
        }
        let served: Vec<String> = waiters
            .into_iter()
            .map(|waiter| item(&waiter.join().expect("no panic").expect("a reply")))
            .collect();
        assert_eq!(served, ["a", "b", "c", "d", "e", "f"]);
        assert_eq!(producer.call(&format!("EXISTS {key}")).expect("EXISTS"), Reply::Integer(0));
    }
}

#[test]
fn one_push_serves_a_chain_of_lists() {
    let cluster = Cluster::start(3);
    for index in 0..3 {
        let last = waiter(&cluster, index, "BLMPOP 0 2 {x}none {x}c LEFT COUNT 5");
        wait_blocked(&cluster, 1);
        let second = waiter(&cluster, (index + 1) % 3, "BRPOPLPUSH {x}b {x}c 0");
        wait_blocked(&cluster, 2);
        let first = waiter(&cluster, (index + 2) % 3, "BLMOVE {x}a {x}b LEFT RIGHT 0");
        wait_blocked(&cluster, 3);
        let reply = cluster.client(index).call("RPUSH {x}a item").expect("RPUSH");
        assert_eq!(reply, Reply::Integer(1));
        for waiter in [first, second] {
            assert_eq!(waiter.join().expect("no panic").expect("a reply"), Reply::from("item"));
        }
        let reply = last.join().expect("no panic").expect("a reply");
        assert_eq!(
            (reply.items()[0].text(), reply.items()[1].items()),
            ("{x}c".into(), &["item".into()][..])
        );
        assert_eq!(cluster.client(0).call("EXISTS {x}a {x}b {x}c").expect("EXISTS"), Reply::Integer(0));
    }
}

#[test]
fn waiting_ends_in_time_or_by_command_or_with_the_client() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    for index in 0..3 {
        for (line, ms) in
            [("BLPOP k 0.2", 200), ("BRPOP k l{k} 1", 1000), ("BLMOVE k l{k} LEFT LEFT 0.35", 350)]
        {
            let begun = Instant::now();
            assert_eq!(cluster.client(index).call(line).expect("a reply"), Reply::Null, "{line}");
            let took = begun.elapsed();
            let limits = Duration::from_millis(ms)..Duration::from_millis(ms + 150);
            assert!(limits.contains(&took), "{line} took {took:?}");
        }
        // By command, with an error and without.
        for (how, is_error) in [("ERROR", true), ("TIMEOUT", false), ("", false)] {
            let mut connection = cluster.client(index);
            let id = connection.call("CLIENT ID").expect("CLIENT ID").integer().expect("a number");
            let blocked = thread::spawn(move || connection.call("BLPOP k 0").expect("a reply"));
            wait_blocked(&cluster, 1);
            let mut other = cluster.client(index);
            let listed = other.call(&format!("CLIENT LIST ID {id}")).expect("CLIENT LIST").text();
            assert!(listed.contains(" flags=b "), "{listed}");
            let reply = other.call(format!("CLIENT UNBLOCK {id} {how}").trim()).expect("CLIENT UNBLOCK");
            assert_eq!(reply, Reply::Integer(1));
            let reply = blocked.join().expect("no panic");
            assert_eq!(
                reply.error().is_some_and(|text| text.starts_with("UNBLOCKED")),
                is_error,
                "{reply:?}"
            );
            assert_eq!(reply == Reply::Null, !is_error);
        }
        // A client that is gone takes nothing with it.
        let mut gone = cluster.client(index);
        gone.send(b"BLPOP k 0\r\n").expect("sent");
        wait_blocked(&cluster, 1);
        drop(gone);
        wait_blocked(&cluster, 0);
        let mut connection = cluster.client(index);
        assert_eq!(connection.call("RPUSH k x").expect("RPUSH"), Reply::Integer(1));
        assert_eq!(connection.call("LPOP k").expect("LPOP"), Reply::from("x"));
        // One that was killed, too.
        let mut killed = cluster.client(index);
        let id = killed.call("CLIENT ID").expect("CLIENT ID").integer().expect("a number");
        killed.send(b"BLPOP k 0\r\n").expect("sent");
        wait_blocked(&cluster, 1);
        connection.call(&format!("CLIENT KILL ID {id}")).expect("CLIENT KILL");
        wait_blocked(&cluster, 0);
        assert_eq!(connection.call("RPUSH k x").expect("RPUSH"), Reply::Integer(1));
        assert_eq!(connection.call("LPOP k").expect("LPOP"), Reply::from("x"));
        // Later commands of the connection wait behind it.
        let mut pipelined = cluster.client(index);
        pipelined.send(b"BLPOP k 0\r\nLLEN k\r\nPING\r\n").expect("sent");
        wait_blocked(&cluster, 1);
        connection.call("RPUSH k 1 2 3").expect("RPUSH");
        assert_eq!(item(&pipelined.reply().expect("a reply")), "1");
        assert_eq!(pipelined.reply().expect("a reply"), Reply::Integer(2));
        assert_eq!(pipelined.reply().expect("a reply"), Reply::Simple("PONG".into()));
        connection.call("DEL k").expect("DEL");
    }
}

#[test]
fn what_is_wrong_is_said_at_once_and_nothing_waits_in_a_transaction() {
    let cluster = Cluster::start(3);
    for index in 0..3 {
        let mut connection = cluster.client(index);
        connection.call("SET text{k} x").expect("SET");
        for (line, error) in [
            ("BLPOP k x", "ERR timeout is not a float or out of range"),
            ("BLPOP k -1", "ERR timeout is negative"),
            ("BLMPOP 0 0 k LEFT", "ERR numkeys should be greater than 0"),
            ("BLMOVE a b LEFT LEFT 0", "CROSSSLOT Keys in request don't hash to the same slot"),
            ("BLPOP text{k} 0", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ] {
            assert_eq!(connection.call(line).expect("a reply").error(), Some(error), "{line}");
        }
        // A key of another type is not what it waits for, and becomes it later.
        let waiting = waiter(&cluster, index, "BLPOP later{k} 0");
        wait_blocked(&cluster, 1);
        connection.call("SET later{k} x").expect("SET");
        connection.call("DEL later{k}").expect("DEL");
        connection.call("RPUSH later{k} y").expect("RPUSH");
        assert_eq!(item(&waiting.join().expect("no panic").expect("a reply")), "y");
        connection.call("MULTI").expect("MULTI");
        connection.call("BLPOP k 0").expect("queued");
        connection.call("RPUSH k 1").expect("queued");
        connection.call("BRPOPLPUSH k l{k} 0").expect("queued");
        let replies = connection.call("EXEC").expect("EXEC");
        assert_eq!(replies.items(), [Reply::Null, Reply::Integer(1), Reply::from("1")]);
        connection.call("DEL l{k}").expect("DEL");
    }
}

/// Producers at all nodes push numbers; consumers at all nodes take them, while `meanwhile` happens. `may_fail`: some
/// commands may end with an unknown outcome.
fn deliver(cluster: &mut Cluster, key: &str, may_fail: bool, meanwhile: impl FnOnce(&mut Cluster)) {
    let each = size(400, 3_000);
    let (ends, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let nodes = if may_fail { cluster.running()[1..].to_vec() } else { cluster.running() };
    let consumers: Vec<_> = (0..6)
        .map(|number| {
            let mut connection = cluster.client(nodes[number % nodes.len()]);
            connection.patience(PATIENCE).expect("a timeout");
            let (line, ends, count) = (format!("BLPOP {key} 0.5"), Arc::clone(&ends), Arc::clone(&count));
            thread::spawn(move || {
                let (mut taken, mut unknown) = (Vec::new(), 0);
                loop {
                    let reply = connection.call(&line).expect("a reply");
                    match reply.error() {
                        Some(text) if text.starts_with("UNKNOWN") => unknown += 1,
                        Some(text) => panic!("{text}"),
                        None if reply == Reply::Null && ends.load(Ordering::Relaxed) => break,
                        None if reply == Reply::Null => {}
                        None => {
                            taken.push(item(&reply));
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
                (taken, unknown)
            })
        })
        .collect();
    let producers: Vec<_> = (0..3)
        .map(|number| {
            let mut connection = cluster.client(nodes[number % nodes.len()]);
            connection.patience(PATIENCE).expect("a timeout");
            let key = key.to_owned();
            thread::spawn(move || {
                let mut unknown = BTreeSet::new();
                for count in 0..each {
                    let name = format!("{number}:{count}");
                    let reply = connection.call(&format!("RPUSH {key} {name}")).expect("a reply");
                    match reply.error() {
                        Some(text) if text.starts_with("UNKNOWN") => drop(unknown.insert(name)),
                        Some(text) => panic!("{text}"),
                        None => {}
                    }
                    thread::sleep(PACE);
                }
                unknown
            })
        })
        .collect();
    wait::until("items are delivered", PATIENCE, || match count.load(Ordering::Relaxed) {
        20.. => Ok(()),
        few => Err(format!("{few} were taken")),
    });
    meanwhile(cluster);
    let maybe: BTreeSet<String> = producers.into_iter().flat_map(|it| it.join().expect("no panic")).collect();
    ends.store(true, Ordering::Relaxed);
    let (mut taken, mut unknown) = (Vec::new(), 0);
    for consumer in consumers {
        let (items, lost) = consumer.join().expect("no panic");
        // What one consumer took of one producer came in order.
        for number in 0..3 {
            let counts = items.iter().filter_map(|item| item.strip_prefix(&format!("{number}:")));
            let counts: Vec<u64> = counts.map(|count| count.parse().expect("a number")).collect();
            assert!(counts.is_sorted(), "{counts:?}");
        }
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
fn every_item_is_delivered_once() {
    deliver(&mut Cluster::start(3), "queue", false, |_| {});
}

#[test]
fn waiters_go_with_the_partition_when_its_primary_dies() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    // The first node serves it, and nobody else uses that node.
    let key =
        (0..).map(|number| format!("queue{number}")).find(|key| cluster.primary_of(key) == 0).expect("one");
    deliver(&mut cluster, &key, true, |cluster| {
        cluster.kill(0);
        wait::until("another node serves it", PATIENCE, || match cluster.primary_of(&key) {
            0 => Err("the dead one does".to_owned()),
            _ => Ok(()),
        });
    });
}

#[test]
fn those_who_wait_long_are_served_by_the_next_primary() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let key =
        (0..).map(|number| format!("queue{number}")).find(|key| cluster.primary_of(key) == 0).expect("one");
    let waiters: Vec<_> =
        (0..4).map(|number| waiter(&cluster, 1 + number % 2, &format!("BLPOP {key} 0"))).collect();
    wait_blocked(&cluster, 4);
    cluster.kill(0);
    let mut producer = cluster.client(1);
    for number in 0..4 {
        let reply = producer.call(&format!("RPUSH {key} {number}")).expect("a reply");
        assert_eq!(reply.error(), None, "{reply:?}");
    }
    let served: BTreeSet<String> =
        waiters.into_iter().map(|waiter| item(&waiter.join().expect("no panic").expect("a reply"))).collect();
    assert_eq!(served, (0..4).map(|number| number.to_string()).collect());
}

#[test]
fn waiters_go_with_the_partition_when_it_moves() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let key =
        (0..).map(|number| format!("queue{number}")).find(|key| cluster.primary_of(key) == 2).expect("one");
    let nodes = [0, 1];
    let line = format!("BLPOP {key} 0");
    let waiters: Vec<_> = (0..4).map(|number| waiter(&cluster, nodes[number % 2], &line)).collect();
    wait_blocked(&cluster, 4);
    let drained = cluster.id(2);
    assert!(cluster.client(0).call(&format!("KORUM DRAIN {drained}")).expect("a reply").error().is_none());
    assert!(cluster.wait_ended(2, PATIENCE), "it ends in good order");
    let added = cluster.add();
    cluster.wait_ready(PATIENCE);
    let mut producer = cluster.client(added);
    for number in 0..4 {
        assert_eq!(producer.call(&format!("RPUSH {key} {number}")).expect("a reply").error(), None);
    }
    let served: BTreeSet<String> =
        waiters.into_iter().map(|waiter| item(&waiter.join().expect("no panic").expect("a reply"))).collect();
    assert_eq!(served, (0..4).map(|number| number.to_string()).collect());
}

#[test]
fn every_item_is_delivered_once_while_nodes_come_and_go() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    deliver(&mut cluster, "queue", false, |cluster| {
        cluster.add();
        cluster.wait_ready(PATIENCE);
    });
}
