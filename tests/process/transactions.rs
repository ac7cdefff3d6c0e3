//! Transactions in a cluster: atomic and once at whoever serves the keys, whole on every copy, also when nodes die.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::wait;

use crate::size;

/// Runs a transaction; the reply to `EXEC`. An error while queueing is the reply then.
fn transaction(connection: &mut Connection, commands: &[String]) -> std::io::Result<Reply> {
    let lines: Vec<Vec<Vec<u8>>> = std::iter::once("MULTI")
        .chain(commands.iter().map(String::as_str))
        .chain(std::iter::once("EXEC"))
        .map(|line| line.split(' ').map(|word| word.as_bytes().to_vec()).collect())
        .collect();
    let replies = connection.pipeline(&lines)?;
    Ok(replies.into_iter().last().expect("EXEC is answered"))
}

fn transfer(tag: &str, amount: i64) -> Vec<String> {
    vec![format!("DECRBY {{{tag}}}one {amount}"), format!("INCRBY {{{tag}}}other {amount}")]
}

#[test]
fn a_transaction_runs_whole_through_every_node() {
    let cluster = Cluster::start(3);
    for (round, tag) in ["a", "b", "c", "d", "e"].iter().enumerate() {
        for index in 0..3 {
            let mut connection = cluster.client(index);
            let commands = [
                format!("INCR {{{tag}}}count"),
                "PING".to_owned(),
                format!("GET {{{tag}}}count"),
                "DBSIZE".to_owned(),
            ];
            let reply = transaction(&mut connection, &commands).expect("a reply");
            let count = index as i64 + 1;
            assert_eq!(
                reply.items()[..2],
                [Reply::Integer(count), Reply::Simple("PONG".into())],
                "{reply:?}"
            );
            assert_eq!(reply.items()[2], Reply::from(count.to_string().as_str()));
            assert!(reply.items()[3].integer() > Some(round as i64));
            let reply = transaction(&mut connection, &["SET a 1".into(), "SET b 1".into()]).expect("a reply");
            assert!(reply.error().is_some_and(|text| text.starts_with("CROSSSLOT")), "{reply:?}");
            // A watched key is watched wherever it lives.
            let mut other = cluster.client((index + 1) % 3);
            for changes in [false, true] {
                assert!(connection.call(&format!("WATCH {{{tag}}}watched")).expect("WATCH").is_ok());
                if changes {
                    assert!(other.call(&format!("SET {{{tag}}}watched {index}")).expect("SET").is_ok());
                }
                let reply =
                    transaction(&mut connection, &[format!("SET {{{tag}}}result 1")]).expect("a reply");
                assert_eq!(reply == Reply::Null, changes, "{reply:?}");
            }
        }
    }
}

#[test]
fn on_the_cluster_port_queueing_tells_where_the_key_is() {
    let cluster = Cluster::start(3);
    let primary = cluster.primary_of("key");
    for index in 0..3 {
        let mut connection = cluster.cluster_port(index);
        assert!(connection.call("MULTI").expect("MULTI").is_ok());
        let queued = connection.call("SET key 1").expect("SET");
        let reply = connection.call("EXEC").expect("EXEC");
        if index == primary {
            assert_eq!(reply.items().len(), 1, "{reply:?}");
        } else {
            assert!(queued.error().is_some_and(|text| text.starts_with("MOVED ")), "{queued:?}");
            assert!(reply.error().is_some_and(|text| text.starts_with("EXECABORT")), "{reply:?}");
            let reply = connection.call("WATCH key").expect("WATCH");
            assert!(reply.error().is_some_and(|text| text.starts_with("MOVED ")), "{reply:?}");
        }
    }
}

/// Counts with `WATCH`, `GET`, `SET` in a transaction; how often it was told that it had counted, and how often that
/// is unknown.
fn count(
    ports: Vec<u16>,
    key: &'static str,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
) -> JoinHandle<(i64, i64)> {
    thread::spawn(move || {
        let (mut counted, mut unknown) = (0, 0);
        for port in ports.iter().cycle() {
            let Ok(mut connection) = Connection::to(*port) else { continue };
            while !stop.load(Ordering::Relaxed) {
                let once = (|| {
                    if !connection.call(&format!("WATCH {key}"))?.is_ok() {
                        return Ok(Reply::Null);
                    }
                    let value = connection.call(&format!("GET {key}"))?;
                    if value.error().is_some() {
                        connection.call("UNWATCH")?;
                        return Ok(Reply::Null);
                    }
                    let next = value.text().parse::<i64>().unwrap_or(0) + 1;
                    transaction(&mut connection, &[format!("SET {key} {next}")])
                })();
                match once {
                    Ok(Reply::Array(items)) if items.first().is_some_and(Reply::is_ok) => {
                        counted += 1;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(Reply::Error(text)) if text.starts_with("UNKNOWN") => unknown += 1,
                    Ok(_) => {}
                    // Its last transaction may have been executed.
                    Err(_) => {
                        unknown += 1;
                        break;
                    }
                }
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        (counted, unknown)
    })
}

#[test]
fn watched_counters_count_exactly_also_when_a_node_dies() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let key = "counter";
    let victim = cluster.primary_of(key);
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let ports = cluster.ports_without(victim);
    let clients: Vec<_> = (0..4)
        .map(|turn| {
            let mut ports = ports.clone();
            ports.rotate_left(turn % 2);
            count(ports, key, Arc::clone(&stop), Arc::clone(&done))
        })
        .collect();
    let more = |goal: u64| {
        wait::until("the counters go on", PATIENCE, || {
            let now = done.load(Ordering::Relaxed);
            if now >= goal { Ok(()) } else { Err(format!("{now} of {goal}")) }
        });
    };
    more(size(300, 3000));
    cluster.kill(victim);
    more(done.load(Ordering::Relaxed) + size(300, 3000));
    stop.store(true, Ordering::Relaxed);
    let (counted, unknown) = clients
        .into_iter()
        .map(|client| client.join().expect("a client does not panic"))
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let value = cluster.client((victim + 1) % 3).call(&format!("GET {key}")).expect("GET").text();
    let value: i64 = value.parse().expect("a number");
    println!("counted {counted}, unknown {unknown}, value {value}");
    assert!(
        (counted..=counted + unknown).contains(&value),
        "{counted} counted, {unknown} unknown, value {value}"
    );
}

#[test]
fn transfers_keep_the_sum_whoever_dies() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    const TAGS: [&str; 4] = ["w", "x", "y", "z"];
    for tag in TAGS {
        let commands = [format!("SET {{{tag}}}one 1000"), format!("SET {{{tag}}}other 1000")];
        let reply = transaction(&mut cluster.client(0), &commands).expect("a reply");
        assert_eq!(reply.items().len(), 2);
    }
    for round in 0..size(3, 9) as usize {
        let victim = round % 3;
        let ports = cluster.ports_without(victim);
        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU64::new(0));
        let workers: Vec<JoinHandle<()>> = (0..4_usize)
            .map(|number| {
                let (ports, stop, done) = (ports.clone(), Arc::clone(&stop), Arc::clone(&done));
                thread::spawn(move || {
                    let mut amount = 1;
                    for port in ports.iter().cycle().skip(number) {
                        let Ok(mut connection) = Connection::to(*port) else { continue };
                        while !stop.load(Ordering::Relaxed) {
                            let tag = TAGS[amount as usize % TAGS.len()];
                            amount += 1;
                            match transaction(&mut connection, &transfer(tag, amount % 17)) {
                                Ok(Reply::Array(items)) => {
                                    assert!(items.iter().all(|item| item.integer().is_some()), "{items:?}");
                                    done.fetch_add(1, Ordering::Relaxed);
                                }
                                Ok(_) => {}
                                Err(_) => break,
                            }
                            // What is read at once is never half of a transfer.
                            match connection.call(&format!("MGET {{{tag}}}one {{{tag}}}other")) {
                                Ok(Reply::Array(items)) => assert_eq!(sum(&items), 2000, "{items:?}"),
                                Ok(_) => {}
                                Err(_) => break,
                            }
                        }
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                })
            })
            .collect();
        let go_on = |more: u64| {
            let goal = done.load(Ordering::Relaxed) + more;
            wait::until("transfers go on", PATIENCE, || {
                let now = done.load(Ordering::Relaxed);
                if now >= goal { Ok(()) } else { Err(format!("{now} of {goal}")) }
            });
        };
        go_on(300);
        let killed = Instant::now();
        cluster.kill(victim);
        go_on(300);
        println!("killed node {victim}: 300 more transfers after {:?}", killed.elapsed());
        stop.store(true, Ordering::Relaxed);
        workers.into_iter().for_each(|worker| worker.join().expect("no half of a transfer was seen"));
        cluster.launch_again(victim, false);
        cluster.wait_ready(PATIENCE);
        for index in 0..3 {
            for tag in TAGS {
                let reply =
                    cluster.client(index).call(&format!("MGET {{{tag}}}one {{{tag}}}other")).expect("MGET");
                assert_eq!(sum(reply.items()), 2000, "{tag} at node {index}: {reply:?}");
            }
        }
        // The copies too, read where they are.
        for index in 0..3 {
            let mut connection = cluster.cluster_port(index);
            assert!(connection.call("READONLY").expect("READONLY").is_ok());
            for tag in TAGS {
                let reply = connection.call(&format!("MGET {{{tag}}}one {{{tag}}}other")).expect("MGET");
                if let Reply::Array(items) = &reply {
                    assert_eq!(sum(items), 2000, "{tag} at the copy of node {index}: {reply:?}");
                }
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn sum(items: &[Reply]) -> i64 {
    items.iter().map(|item| item.text().parse::<i64>().expect("a number")).sum()
}
