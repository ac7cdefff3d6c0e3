//! Databases over a cluster: the same from every node, on every copy, and when two are swapped.

use std::time::{Duration, Instant};

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::wait;

const KEYS: usize = 60;

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

/// A connection to a node's client port that has chosen a database.
fn client(cluster: &Cluster, node: usize, database: u8) -> Connection {
    let mut connection = cluster.client(node);
    assert!(ask(&mut connection, &format!("SELECT {database}")).is_ok());
    connection
}

/// What the keys of a database hold, by one node: none if some of them cannot be asked now.
fn values(cluster: &Cluster, node: usize, database: u8) -> Option<Vec<Option<String>>> {
    let mut connection = client(cluster, node, database);
    (0..KEYS)
        .map(|number| match connection.call(&format!("GET k{number}")) {
            Ok(Reply::Null) => Some(None),
            Ok(reply) if reply.error().is_none() => Some(Some(reply.text())),
            _ => None,
        })
        .collect()
}

/// Waits until something holds.
fn soon(what: &str, mut holds: impl FnMut() -> bool) {
    wait::until(what, PATIENCE, || if holds() { Ok(()) } else { Err("not yet".to_owned()) });
}

fn all(value: &str) -> Option<Vec<Option<String>>> {
    Some(vec![Some(value.to_owned()); KEYS])
}

fn none() -> Option<Vec<Option<String>>> {
    Some(vec![None; KEYS])
}

fn fill(cluster: &Cluster, node: usize, database: u8, value: &str) {
    let mut connection = client(cluster, node, database);
    for number in 0..KEYS {
        assert!(ask(&mut connection, &format!("SET k{number} {value}")).is_ok());
    }
}

#[test]
fn a_database_is_the_same_from_every_node() {
    let cluster = Cluster::start(3);
    for (node, database, value) in [(0, 0, "zero"), (1, 1, "one"), (2, 15, "fifteen")] {
        fill(&cluster, node, database, value);
    }
    for node in 0..3 {
        for (database, value) in [(0, "zero"), (1, "one"), (15, "fifteen")] {
            assert_eq!(values(&cluster, node, database), all(value), "{database} at {node}");
            let mut connection = client(&cluster, node, database);
            assert_eq!(ask(&mut connection, "DBSIZE"), Reply::Integer(KEYS as i64));
            assert_eq!(ask(&mut connection, "KEYS k1?").items().len(), 10);
        }
        let info = ask(&mut cluster.client(node), "INFO keyspace").text();
        let line = |database| format!("db{database}:keys={KEYS},expires=0,avg_ttl=0\r\n");
        assert_eq!(info, format!("# Keyspace\r\n{}{}{}", line(0), line(1), line(15)));
        // On the cluster port there is the first one.
        let mut connection = cluster.cluster_port(node);
        let reply = ask(&mut connection, "SELECT 1");
        assert_eq!(reply.error(), Some("ERR SELECT is not allowed in cluster mode"));
        let own = ask(&mut connection, "DBSIZE").integer().expect("a number");
        assert!(own < KEYS as i64, "{own}");
    }
    // What moves, is copied and removed.
    let mut connection = client(&cluster, 1, 0);
    for number in 0..KEYS {
        assert_eq!(ask(&mut connection, &format!("MOVE k{number} 1")), Reply::Integer(0), "it is there");
        assert_eq!(ask(&mut connection, &format!("MOVE k{number} 2")), Reply::Integer(1));
        assert_eq!(ask(&mut connection, &format!("COPY k{number} k{number} DB 3")), Reply::Integer(0));
    }
    for node in 0..3 {
        assert_eq!((values(&cluster, node, 0), values(&cluster, node, 2)), (none(), all("zero")));
    }
    assert!(ask(&mut client(&cluster, 2, 1), "FLUSHDB").is_ok());
    for node in 0..3 {
        assert_eq!((values(&cluster, node, 1), values(&cluster, node, 15)), (none(), all("fifteen")));
    }
    assert!(ask(&mut cluster.client(0), "FLUSHALL").is_ok());
    assert_eq!(ask(&mut client(&cluster, 1, 15), "DBSIZE"), Reply::Integer(0));
}

#[test]
fn what_waits_and_listens_does_so_in_its_database() {
    let cluster = Cluster::start(3);
    for node in 0..3 {
        let (mut waiter, mut pusher) = (client(&cluster, node, 4), client(&cluster, (node + 1) % 3, 0));
        let list = format!("list{node}");
        waiter.send(format!("BLPOP {list} 0\r\n").as_bytes()).expect("sent");
        assert_eq!(ask(&mut pusher, &format!("RPUSH {list} wrong")), Reply::Integer(1));
        soon("it waits", || ask(&mut cluster.client(node), "CLIENT LIST").text().contains("flags=b db=4"));
        let mut other = client(&cluster, (node + 2) % 3, 4);
        assert_eq!(ask(&mut other, &format!("RPUSH {list} right")), Reply::Integer(1));
        let reply = waiter.reply().expect("served");
        assert_eq!(reply.items(), [Reply::from(list.as_str()), Reply::from("right")]);
        // A transaction and a script take their database along.
        let lines = [
            "SELECT 6",
            "MULTI",
            "SET {t}a 6",
            "SELECT 7",
            "SET {t}a 7",
            "EXEC",
            "GET {t}a",
            "SELECT 6",
            "GET {t}a",
        ];
        let replies: Vec<Reply> = lines.iter().map(|line| ask(&mut waiter, line)).collect();
        assert_eq!((&replies[6], &replies[8]), (&Reply::from("7"), &Reply::from("6")), "{replies:?}");
    }
}

#[test]
fn swapped_databases_are_swapped_for_all_and_stay_so() {
    let mut cluster = Cluster::start(3);
    fill(&cluster, 0, 0, "zero");
    fill(&cluster, 1, 1, "one");
    let mut waiter = client(&cluster, 2, 1);
    waiter.send(b"BLPOP list 0\r\n").expect("sent");
    soon("it waits", || ask(&mut cluster.client(2), "CLIENT LIST").text().contains("flags=b db=1"));
    let mut watcher = client(&cluster, 1, 0);
    assert!(ask(&mut watcher, "WATCH k1").is_ok());
    assert!(ask(&mut cluster.client(0), "SWAPDB 0 1").is_ok());
    // Whoever asks afterwards sees it, wherever.
    for node in 0..3 {
        assert_eq!(
            (values(&cluster, node, 0), values(&cluster, node, 1)),
            (all("one"), all("zero")),
            "{node}"
        );
    }
    assert!(ask(&mut watcher, "MULTI").is_ok());
    ask(&mut watcher, "SET k1 x");
    assert_eq!(ask(&mut watcher, "EXEC"), Reply::Null, "what was watched is another database's now");
    assert_eq!(ask(&mut client(&cluster, 0, 1), "RPUSH list item"), Reply::Integer(1));
    assert_eq!(waiter.reply().expect("served").items()[1], Reply::from("item"));
    // A swap twice is none, and others do not matter.
    for words in ["SWAPDB 3 9", "SWAPDB 0 1", "SWAPDB 1 0", "SWAPDB 9 3"] {
        assert!(ask(&mut cluster.client(2), words).is_ok());
    }
    assert_eq!((values(&cluster, 1, 0), values(&cluster, 1, 1)), (all("one"), all("zero")));
    // What was removed from one is removed on every copy.
    fill(&cluster, 0, 5, "five");
    assert!(ask(&mut client(&cluster, 2, 5), "FLUSHDB").is_ok());
    // A node dies, and comes back.
    cluster.kill(1);
    let begin = Instant::now();
    soon("others serve", || values(&cluster, 0, 0) == all("one"));
    assert_eq!((values(&cluster, 2, 0), values(&cluster, 2, 1)), (all("one"), all("zero")));
    assert!(begin.elapsed() < Duration::from_secs(30));
    let size = |cluster: &Cluster, node, database| ask(&mut client(cluster, node, database), "DBSIZE");
    let sizes = [0, 1, 5].map(|database| size(&cluster, 2, database));
    assert_eq!(sizes, [Reply::Integer(60), Reply::Integer(60), Reply::Integer(0)]);
    assert!(ask(&mut cluster.client(2), "SWAPDB 1 2").is_ok());
    cluster.launch_again(1, false);
    cluster.wait_ready(PATIENCE);
    for node in 0..3 {
        assert_eq!((values(&cluster, node, 1), values(&cluster, node, 2)), (none(), all("zero")), "{node}");
    }
    let info = ask(&mut cluster.client(1), "INFO keyspace").text();
    assert!(
        info.contains("db0:keys=60,") && info.contains("db2:keys=60,") && !info.contains("db1:"),
        "{info}"
    );
    // Whoever has caught up counts its keys too.
    cluster.kill(0);
    soon("others serve", || size(&cluster, 2, 0) == Reply::Integer(60));
    assert_eq!(size(&cluster, 1, 2), Reply::Integer(60));
    assert_eq!((values(&cluster, 1, 0), values(&cluster, 2, 2)), (all("one"), all("zero")));
}
