//! Large values and commands with very many keys: they arrive whole, and nobody else waits for them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use korum_protocol::placement::slot::slot_of;
use korum_tests::harness::alone;
use korum_tests::harness::cluster::Cluster;
use korum_tests::harness::resp::{Connection, Reply};

use crate::size;

/// The promise, for a release build; every day a debug build on a shared machine may take three times as long. A node that
/// copies a large value in one go, or sends it in one piece, is far above both.
const LONGEST_WAIT_MS: [u64; 2] = [300, 100];
/// Times a large value is written and read. What another process on the machine delays differs from time to time,
/// so half of the times may be worse.
const ROUNDS: usize = 5;

/// Small keys of each node.
const SMALL_KEYS: usize = 997;
/// Partitions of a cluster, unless it is told otherwise.
const PARTITIONS: u32 = 4096;

fn small(node: usize, number: usize) -> String {
    format!("small:{node}:{number}")
}

fn partition(key: String) -> u32 {
    u32::from(slot_of(key.as_bytes())) / (16384 / PARTITIONS)
}

/// When a small command began and how long it took.
type Wait = (Instant, Duration);

/// Writes and reads small values of many partitions until told to stop.
fn small_commands(mut client: Connection, node: usize, is_over: &AtomicBool) -> Vec<Wait> {
    let mut waits = Vec::new();
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let key = small(node, number % SMALL_KEYS);
        let began = Instant::now();
        assert!(client.call(&format!("SET {key} {number}")).expect("SET").is_ok());
        assert_eq!(client.call(&format!("GET {key}")).expect("GET").text(), number.to_string());
        waits.push((began, began.elapsed()));
        thread::sleep(Duration::from_millis(1));
    }
    waits
}

/// The longest wait of a command that ran between two moments.
fn longest(waits: &[Wait], (from, until): (Instant, Instant)) -> Duration {
    let is_in = |wait: &&Wait| wait.0 < until && wait.0 + wait.1 > from;
    waits.iter().filter(is_in).map(|wait| wait.1).max().expect("small commands ran all the time")
}

#[test]
fn nobody_waits_for_a_large_value_of_another_partition() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let value: Vec<u8> = (0..size(160, 500) << 20).map(|at| (at % 251) as u8).collect();
    // It is forwarded, and replicated to the third node or back to the first. What shares its partition does wait for it.
    let small: HashSet<u32> =
        (0..3).flat_map(|node| (0..SMALL_KEYS).map(move |n| small(node, n))).map(partition).collect();
    let key = (0..)
        .map(|number| format!("large:{number}"))
        .find(|key| cluster.primary_of(key) == 1 && !small.contains(&partition(key.clone())));
    let key = key.expect("every node is primary of some keys");
    let is_over = AtomicBool::new(false);
    let (mut busy, mut quiet) = (Vec::new(), Vec::new());
    let waits: Vec<Wait> = thread::scope(|scope| {
        let is_over = &is_over;
        let others: Vec<_> = (0..3)
            .map(|node| {
                let client = cluster.client(node);
                scope.spawn(move || small_commands(client, node, is_over))
            })
            .collect();
        let mut client = cluster.client(0);
        client.patience(Duration::from_secs(60)).expect("a deadline");
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let set = client.call_bytes(&[b"SET", key.as_bytes(), &value]).expect("SET");
            assert!(set.is_ok(), "{:?}", set.error());
            let stored = Instant::now();
            let Reply::Bulk(found) = client.call(&format!("GET {key}")).expect("GET") else {
                panic!("no bulk string")
            };
            let read = Instant::now();
            assert!(found == value, "the value comes back whole");
            busy.extend([(began, stored), (stored, read)]);
            let pause = Instant::now();
            thread::sleep(Duration::from_millis(300));
            quiet.push((pause, Instant::now()));
        }
        is_over.store(true, Ordering::Relaxed);
        others.into_iter().flat_map(|other| other.join().expect("small commands are answered")).collect()
    });
    let mut quiet: Vec<_> = quiet.into_iter().map(|times| longest(&waits, times)).collect();
    quiet.sort();
    let mut busy: Vec<_> = busy.into_iter().map(|times| longest(&waits, times)).collect();
    busy.sort();
    println!("longest waits beside a large value {busy:?}, without one {quiet:?}");
    // On a machine where others wait that long anyway, there is that on top.
    let promise = Duration::from_millis(size(LONGEST_WAIT_MS[0], LONGEST_WAIT_MS[1]));
    let (median, bound) = (busy[busy.len() / 2], promise + 2 * quiet[quiet.len() / 2]);
    assert!(median < bound, "small commands waited {median:?} beside a large value, the bound is {bound:?}");
}

#[test]
fn a_command_with_very_many_keys_is_one_to_its_client() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let mut client = cluster.client(0);
    let keys: Vec<String> = (0..20_000).map(|number| format!("many:{number}")).collect();
    let command = |name: &'static str, words: &mut dyn Iterator<Item = &str>| -> Vec<Vec<u8>> {
        std::iter::once(name).chain(words).map(|word| word.as_bytes().to_vec()).collect()
    };
    let mut call = |command: Vec<Vec<u8>>| {
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        client.call_bytes(&words).expect("a reply")
    };
    let pairs = command("MSET", &mut keys.iter().flat_map(|key| [key.as_str(), &key[5..]]));
    assert!(call(pairs).is_ok());
    let asked = command("MGET", &mut ["none"].into_iter().chain(keys.iter().map(String::as_str)));
    let found = call(asked);
    assert_eq!(found.items().len(), keys.len() + 1);
    assert_eq!(found.items()[0].text(), "");
    assert!(found.items()[1..].iter().zip(&keys).all(|(value, key)| value.text() == key[5..]));
    let all = |name| command(name, &mut keys.iter().map(String::as_str));
    assert_eq!(call(all("EXISTS")), Reply::Integer(20_000));
    assert_eq!(call(all("DEL")), Reply::Integer(20_000));
    assert_eq!(call(all("EXISTS")), Reply::Integer(0));
    let odd = command("MSET", &mut keys[..19_999].iter().map(String::as_str));
    assert!(call(odd).error().expect("an error").contains("wrong number of arguments"));
}
