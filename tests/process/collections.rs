//! Large collections are copied to a node that joins, while they are written: nobody waits for long, and the copies are
//! equal in the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use korum_tests::harness::alone;
use korum_tests::harness::cluster::Cluster;
use korum_tests::harness::resp::{Connection, Reply};

use crate::size;

/// Longest wait of a write beside the copying: what a machine without time to spare may take, and far below what a
/// collection takes that is copied in one go, again and again because it changed.
const LONGEST_WAIT: Duration = Duration::from_secs(15);

/// The collections: key, command that adds, words of item `number` behind it.
const KINDS: [(&str, &str); 5] =
    [("c:hash", "HSET"), ("c:set", "SADD"), ("c:zset", "ZADD"), ("c:list", "RPUSH"), ("c:stream", "XADD")];

fn words(command: &str, number: u64) -> Vec<Vec<u8>> {
    let (item, text) = (format!("item:{number}"), number.to_string());
    let words = match command {
        "HSET" => vec![item, text],
        "ZADD" => vec![(number % 1000).to_string(), item],
        "XADD" => vec!["*".to_owned(), "field".to_owned(), item],
        _ => vec![item],
    };
    words.into_iter().map(String::into_bytes).collect()
}

fn load(client: &mut Connection, count: u64) {
    for (key, command) in KINDS {
        // An entry of a stream is a command of its own.
        let at_once = if command == "XADD" { 1 } else { 500 };
        let head = || vec![command.as_bytes().to_vec(), key.as_bytes().to_vec()];
        let commands: Vec<Vec<Vec<u8>>> = (0..count / at_once)
            .map(|part| {
                let items = (part * at_once..(part + 1) * at_once).flat_map(|number| words(command, number));
                head().into_iter().chain(items).collect()
            })
            .collect();
        for part in commands.chunks(1000) {
            for reply in client.pipeline(part).expect("items") {
                assert!(reply.error().is_none(), "{reply:?}");
            }
        }
    }
}

/// A change of one of the collections, some of which make it smaller.
fn change(number: u64, count: u64) -> String {
    let any = number.wrapping_mul(7_919) % count;
    match number % 14 {
        0 => format!("HSET c:hash item:{any} {number}"),
        1 => format!("HSET c:hash new:{number} {number}"),
        2 => format!("HDEL c:hash item:{any}"),
        3 => format!("SADD c:set new:{number}"),
        4 => format!("SREM c:set item:{any}"),
        5 => format!("ZADD c:zset {number} item:{any}"),
        6 => format!("ZREM c:zset item:{any}"),
        7 => format!("LPUSH c:list new:{number}"),
        8 => format!("RPUSH c:list new:{number}"),
        9 => format!("LSET c:list {any} other:{number}"),
        10 => "LPOP c:list".to_owned(),
        11 => "RPOP c:list".to_owned(),
        12 => format!("XADD c:stream * field new:{number}"),
        _ => "SPOP c:set".to_owned(),
    }
}

/// Changes them until told to stop; how long each change took.
fn changes(mut client: Connection, first: u64, count: u64, is_over: &AtomicBool) -> Vec<(Instant, Duration)> {
    client.patience(Duration::from_secs(30)).expect("a deadline");
    let mut waits = Vec::new();
    for number in (first..).step_by(2) {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        let reply = client.call(&change(number, count)).expect("a change");
        // What is out of range became so by other changes.
        assert!(reply.error().is_none_or(|text| text.contains("out of range")), "{reply:?}");
        waits.push((began, began.elapsed()));
        thread::sleep(Duration::from_millis(1));
    }
    waits
}

#[test]
fn large_collections_are_copied_to_a_joining_node_while_they_are_written() {
    let _alone = alone();
    let mut cluster = Cluster::start(1);
    let count = size(200_000, 1_000_000);
    let mut client = cluster.client(0);
    client.patience(Duration::from_secs(60)).expect("a deadline");
    load(&mut client, count);
    let is_over = AtomicBool::new(false);
    let writers = [cluster.client(0), cluster.client(0)];
    let (waits, begin, end) = thread::scope(|scope| {
        let is_over = &is_over;
        let writers: Vec<_> = (0..)
            .zip(writers)
            .map(|(first, client)| scope.spawn(move || changes(client, first, count, is_over)))
            .collect();
        let begin = Instant::now();
        let joiner = cluster.add();
        cluster.wait_answering(joiner);
        cluster.wait_ready(Duration::from_secs(size(120, 600)));
        let end = Instant::now();
        is_over.store(true, Ordering::Relaxed);
        let waits: Vec<_> =
            writers.into_iter().flat_map(|writer| writer.join().expect("changes are answered")).collect();
        (waits, begin, end)
    });
    let during = waits.iter().filter(|(began, _)| (begin..end).contains(began)).count();
    let longest = waits.iter().map(|(_, wait)| *wait).max().expect("there were changes");
    println!(
        "five collections of {count}: {:.1?}, {during} changes meanwhile, longest wait {longest:.0?}",
        end - begin
    );
    assert!(during > 100, "hardly any changes meanwhile: {during}");
    assert!(longest < LONGEST_WAIT, "a change took {longest:?}");

    // Both nodes hold every partition now.
    let mut copies: Vec<Connection> = (0..2).map(|index| cluster.cluster_port(index)).collect();
    for copy in &mut copies {
        copy.patience(Duration::from_secs(60)).expect("a deadline");
        assert!(copy.call("READONLY").expect("READONLY").is_ok());
    }
    for (key, _) in KINDS {
        let mut dumps = copies.iter_mut().map(|copy| copy.call(&format!("DUMP {key}")).expect("DUMP"));
        let (one, other) = (dumps.next().expect("two"), dumps.next().expect("two"));
        let Reply::Bulk(bytes) = &one else { panic!("{key}: {one:?}") };
        assert!(bytes.len() > count as usize, "{key} is there");
        assert!(one == other, "{key} is another one on the copy, or stands in another order");
    }
}
