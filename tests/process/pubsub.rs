//! Publish and subscribe over a cluster: every message reaches everybody, in order, once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::{Connection, Reply, encode};
use korum_tests::harness::wait;

/// Messages of each publisher.
const MESSAGES: usize = 2_000;

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

fn listener(port: u16, subscribe: &str) -> Connection {
    let mut connection = Connection::to(port).expect("the port answers");
    assert_eq!(ask(&mut connection, subscribe).items().len(), 3);
    connection
}

/// What a listener gets until it has `count` messages, by publisher.
fn gather(connection: &mut Connection, count: usize) -> Vec<Vec<usize>> {
    let mut by_publisher = vec![Vec::new(); 6];
    for _ in 0..count {
        let reply = connection.reply().expect("a message");
        let text = reply.items().last().expect("a payload").text();
        let (publisher, number) = text.split_once(' ').expect("two numbers");
        by_publisher[publisher.parse::<usize>().expect("a number")].push(number.parse().expect("a number"));
    }
    by_publisher
}

/// Publishes in pipelines; what was answered.
fn publish(port: u16, publisher: usize) -> Vec<i64> {
    let mut connection = Connection::to(port).expect("the port answers");
    let mut counts = Vec::new();
    for begin in (0..MESSAGES).step_by(100) {
        let request: Vec<u8> = (begin..begin + 100)
            .flat_map(|number| encode(&[b"PUBLISH", b"news", format!("{publisher} {number}").as_bytes()]))
            .collect();
        connection.send(&request).expect("sent");
        counts.extend((0..100).map(|_| connection.reply().expect("a count").integer().expect("a number")));
    }
    counts
}

#[test]
fn messages_of_every_node_reach_every_node_in_order() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let mut listeners: Vec<Connection> = cluster
        .nodes
        .iter()
        .flat_map(|node| [listener(node.client, "SUBSCRIBE news"), listener(node.cluster, "PSUBSCRIBE ne?s")])
        .collect();
    let begin = Instant::now();
    thread::scope(|scope| {
        for (index, node) in cluster.nodes.iter().enumerate() {
            scope.spawn(move || {
                let counts = publish(node.client, 2 * index);
                assert!(counts.iter().all(|&count| count == 6), "all of the cluster are counted");
            });
            scope.spawn(move || {
                let counts = publish(node.cluster, 2 * index + 1);
                assert!(counts.iter().all(|&count| count == 2), "those of the node are counted");
            });
        }
        for connection in &mut listeners {
            scope.spawn(move || {
                let all: Vec<usize> = (0..MESSAGES).collect();
                for got in gather(connection, 6 * MESSAGES) {
                    assert_eq!(got, all, "each once, in order");
                }
            });
        }
    });
    let total = 6 * MESSAGES;
    println!("{total} messages to 6 listeners at 3 nodes: {:.0?}", begin.elapsed());

    // who listens, at each port
    let mut client = cluster.client(1);
    assert_eq!(ask(&mut client, "PUBSUB NUMSUB news").items()[1], Reply::Integer(3));
    assert_eq!(ask(&mut client, "PUBSUB NUMPAT"), Reply::Integer(3));
    assert_eq!(ask(&mut client, "PUBSUB CHANNELS n*").items(), [Reply::from("news")]);
    let mut node = cluster.cluster_port(1);
    assert_eq!(ask(&mut node, "PUBSUB NUMSUB news").items()[1], Reply::Integer(1));
    assert_eq!(ask(&mut node, "PUBSUB NUMPAT"), Reply::Integer(1));
}

#[test]
fn who_hears_of_a_write_reads_it() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let mut listeners: Vec<(Connection, Connection)> = (0..3)
        .map(|index| (listener(cluster.nodes[index].client, "SUBSCRIBE changed"), cluster.client(index)))
        .collect();
    let mut writer = cluster.client(0);
    for round in 0..100 {
        // keys of all nodes, each announced in the same pipeline
        let key = format!("key:{round}");
        let request =
            [encode(&[b"SET", key.as_bytes(), b"new"]), encode(&[b"PUBLISH", b"changed", key.as_bytes()])];
        writer.send(&request.concat()).expect("sent");
        for (listener, reader) in &mut listeners {
            assert_eq!(listener.reply().expect("a message").items()[2].text(), key);
            assert_eq!(ask(reader, &format!("GET {key}")), Reply::from("new"));
        }
        assert!(writer.reply().expect("SET").is_ok());
        assert_eq!(writer.reply().expect("PUBLISH"), Reply::Integer(3));
    }
}

#[test]
fn long_messages_keep_their_order_and_slow_listeners_delay_nobody() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let set = [&b"CONFIG"[..], b"SET", b"client-output-buffer-limit", b"pubsub 8mb 0 0"];
    for index in 0..3 {
        assert!(cluster.client(index).call_bytes(&set).expect("CONFIG SET").is_ok());
    }
    let _slow = listener(cluster.nodes[1].client, "SUBSCRIBE news");
    let mut quick = listener(cluster.nodes[1].client, "SUBSCRIBE news");
    let mut publisher = cluster.client(0);
    let long = vec![b'x'; 1 << 20];
    let mut counts = Vec::new();
    for number in 0..30 {
        let text = number.to_string();
        let request =
            [encode(&[b"PUBLISH", b"news", &long]), encode(&[b"PUBLISH", b"news", text.as_bytes()])];
        publisher.send(&request.concat()).expect("sent");
        assert_eq!(quick.reply().expect("a message").items()[2], Reply::Bulk(long.clone()));
        assert_eq!(quick.reply().expect("a message").items()[2].text(), text);
        counts.extend((0..2).map(|_| publisher.reply().expect("a count").integer()));
    }
    assert_eq!((counts.first(), counts.last()), (Some(&Some(2)), Some(&Some(1))), "the slow one was closed");
}

#[test]
fn the_others_go_on_when_a_node_dies() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let mut listeners: Vec<Connection> =
        (0..2).map(|index| listener(cluster.nodes[index].client, "SUBSCRIBE news")).collect();
    let _gone = listener(cluster.nodes[2].client, "SUBSCRIBE news");
    let mut publisher = cluster.client(0);
    assert_eq!(ask(&mut publisher, "PUBLISH news before"), Reply::Integer(3));
    let has_ended = AtomicBool::new(false);
    let (sent, longest) = thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let (mut sent, mut longest) = (0, Duration::ZERO);
            while !has_ended.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let count = ask(&mut publisher, &format!("PUBLISH news {sent}"));
                assert!(count.integer() >= Some(2), "{count:?}");
                longest = longest.max(begin.elapsed());
                sent += 1;
            }
            (sent, longest)
        });
        thread::sleep(Duration::from_millis(300));
        cluster.kill(2);
        thread::sleep(Duration::from_secs(2));
        has_ended.store(true, Ordering::Relaxed);
        publishing.join().expect("published")
    });
    println!("{sent} messages while a node died; the longest took {longest:.0?}");
    assert!(longest < Duration::from_secs(2));
    for connection in &mut listeners {
        assert_eq!(connection.reply().expect("a message").items()[2].text(), "before");
        for number in 0..sent {
            assert_eq!(connection.reply().expect("a message").items()[2].text(), number.to_string());
        }
    }
    // a node that comes back takes part again
    cluster.launch_again(2, false);
    cluster.wait_ready(PATIENCE);
    let mut back = listener(cluster.nodes[2].client, "SUBSCRIBE news");
    wait::until("messages reach the node again", PATIENCE, || {
        match ask(&mut cluster.client(0), "PUBLISH news again") {
            Reply::Integer(3) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    assert_eq!(back.reply().expect("a message").items()[1].text(), "news");
}

#[test]
fn shard_channels_belong_to_the_node_of_their_slot_and_move_with_it() {
    let _alone = alone();
    let mut cluster = Cluster::start(2);
    let names: Vec<String> = (0..40).map(|number| format!("shard:{number}")).collect();
    let mut listeners = Vec::new();
    for name in &names {
        let primary = cluster.primary_of(name);
        let subscribe = format!("SSUBSCRIBE {name}");
        let slot = ask(&mut cluster.client(0), &format!("CLUSTER KEYSLOT {name}")).integer().expect("a slot");
        let moved = format!("MOVED {slot} 127.0.0.1:{}", cluster.nodes[primary].cluster);
        let elsewhere = ask(&mut cluster.cluster_port(1 - primary), &subscribe);
        assert_eq!(elsewhere, Reply::Error(moved.clone()));
        let elsewhere = ask(&mut cluster.cluster_port(1 - primary), &format!("SPUBLISH {name} x"));
        assert_eq!(elsewhere, Reply::Error(moved));
        listeners.push((name, listener(cluster.nodes[primary].cluster, &subscribe)));
    }
    // on the client port any node will do
    let mut anywhere = [
        listener(cluster.nodes[0].client, "SSUBSCRIBE shard:0"),
        listener(cluster.nodes[1].client, "SSUBSCRIBE shard:0"),
    ];
    for index in 0..2 {
        assert_eq!(ask(&mut cluster.client(index), "SPUBLISH shard:0 x"), Reply::Integer(3));
        let mut all = vec![&mut listeners[0].1];
        all.extend(&mut anywhere);
        for connection in all {
            let message: Vec<String> =
                connection.reply().expect("a message").items().iter().map(Reply::text).collect();
            assert_eq!(message, ["smessage", "shard:0", "x"]);
        }
    }
    let crossing = ask(&mut cluster.cluster_port(0), "SSUBSCRIBE shard:0 shard:1");
    assert_eq!(crossing, Reply::Error("CROSSSLOT Keys in request don't hash to the same slot".into()));

    // a third node takes some of the slots
    cluster.add();
    cluster.wait_ready(PATIENCE);
    let mut moved = 0;
    for (name, connection) in &mut listeners {
        let mut publisher = cluster.client(0);
        if cluster.primary_of(name) == 2 {
            moved += 1;
            let end = connection.reply().expect("the end of the subscription");
            assert_eq!(end.items()[0].text(), "sunsubscribe");
            assert_eq!((end.items()[1].text(), end.items()[2].integer()), (name.clone(), Some(0)));
        } else {
            ask(&mut publisher, &format!("SPUBLISH {name} still"));
            assert_eq!(connection.reply().expect("a message").items()[2].text(), "still");
        }
    }
    assert!(moved > 0, "one third moves");
}

#[test]
fn events_of_keys_are_told_at_every_node() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    for index in 0..3 {
        assert!(ask(&mut cluster.client(index), "CONFIG SET notify-keyspace-events E$x").is_ok());
    }
    let mut listeners: Vec<Connection> =
        (0..3).map(|index| listener(cluster.nodes[index].client, "PSUBSCRIBE __keyevent@0__:*")).collect();
    let keys: Vec<String> = (0..60).map(|number| format!("event:{number}")).collect();
    for (at, key) in keys.iter().enumerate() {
        assert!(ask(&mut cluster.client(at % 3), &format!("SET {key} x PX 300")).is_ok());
    }
    for listener in &mut listeners {
        let mut told: Vec<(String, String)> = (0..2 * keys.len())
            .map(|_| {
                let message = listener.reply().expect("an event");
                (message.items()[2].text(), message.items()[3].text())
            })
            .collect();
        told.sort();
        let mut expected: Vec<(String, String)> = ["expired", "set"]
            .iter()
            .flat_map(|event| keys.iter().map(move |key| (format!("__keyevent@0__:{event}"), key.clone())))
            .collect();
        expected.sort();
        assert_eq!(told, expected, "each once");
    }
}
