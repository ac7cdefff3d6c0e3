//! What a node counts of commands, and what test suites ask with `DEBUG`.

use std::time::{Duration, Instant};

use korum_tests::harness::resp::{Connection, Reply, encode};
use korum_tests::harness::server::Server;

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

/// Fields of a command in `INFO commandstats`: calls, rejected, failed; `None` if it is not there.
fn counts(connection: &mut Connection, command: &str) -> Option<[u64; 3]> {
    let text = ask(connection, "INFO commandstats").text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")))?;
    let field = |name: &str| {
        let value = line.split(',').find_map(|field| field.strip_prefix(&format!("{name}=")));
        value.unwrap_or_else(|| panic!("{name} in {line}")).parse().expect("a number")
    };
    assert!(line.contains("usec=") && line.contains("usec_per_call="), "{line}");
    Some([field("calls"), field("rejected_calls"), field("failed_calls")])
}

#[test]
fn commands_are_counted_wherever_they_stand() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "CONFIG RESETSTAT");
    for words in ["GET a", "GET a", "LPUSH list x", "GET list", "GET", "GET a b", "NOSUCH", "CLIENT ID"] {
        ask(&mut client, words);
    }
    assert_eq!(counts(&mut client, "get"), Some([3, 2, 1]));
    assert_eq!(counts(&mut client, "client|id"), Some([1, 0, 0]));
    assert_eq!(counts(&mut client, "nosuch"), None);
    for words in ["MULTI", "GET {list}a", "INCR list", "PING", "EXEC"] {
        ask(&mut client, words);
    }
    assert_eq!(counts(&mut client, "get"), Some([4, 2, 1]), "when it is executed, not when it is queued");
    assert_eq!(counts(&mut client, "incr"), Some([1, 0, 1]));
    assert_eq!(counts(&mut client, "exec"), Some([1, 0, 0]));
    let script = b"redis.call('set', KEYS[1], 1) redis.pcall('lpop', KEYS[1]) return 1";
    client.send(&encode(&[b"EVAL", script, b"1", b"k"])).expect("sent");
    assert_eq!(client.reply().expect("a reply"), Reply::Integer(1));
    assert_eq!(counts(&mut client, "set"), Some([1, 0, 0]));
    assert_eq!(counts(&mut client, "lpop"), Some([1, 0, 1]));
    let pipeline = encode(&[b"GET", b"a"]).repeat(500);
    client.send(&pipeline).expect("sent");
    (0..500).for_each(|_| assert_eq!(client.reply().expect("a reply"), Reply::Null));
    assert_eq!(counts(&mut client, "get"), Some([504, 2, 1]));
    ask(&mut client, "BLPOP nothing 0.01");
    assert_eq!(counts(&mut client, "blpop"), Some([1, 0, 0]));

    let histogram = ask(&mut client, "LATENCY HISTOGRAM get blpop");
    let [name, figures] = histogram.items() else { panic!("{histogram:?}") };
    assert_eq!(
        (name.text(), figures.items()[1].clone()),
        ("get".to_owned(), Reply::Integer(503)),
        "{figures:?}"
    );
    assert!(ask(&mut client, "INFO latencystats").text().contains("latency_percentiles_usec_get:p50="));
    ask(&mut client, "CONFIG RESETSTAT");
    assert_eq!(counts(&mut client, "get"), None);
    assert!(ask(&mut client, "LATENCY HISTOGRAM get").items().is_empty());
}

#[test]
fn long_sections_are_shown_when_they_are_asked_for() {
    let server = Server::start();
    let mut client = server.connect();
    let has = |client: &mut Connection, words: &str| ask(client, words).text().contains("# Commandstats");
    assert!(!has(&mut client, "INFO") && !has(&mut client, "INFO default"));
    assert!(has(&mut client, "INFO all") && has(&mut client, "INFO everything"));
}

#[test]
fn delays_are_drawn_and_reported() {
    let server = Server::start();
    let mut client = server.connect();
    assert!(ask(&mut client, "LATENCY DOCTOR").text().contains("CONFIG SET latency-monitor-threshold"));
    assert!(ask(&mut client, "CONFIG SET latency-monitor-threshold 1").is_ok());
    // A script keeps the worker busy, which is what the monitor is for.
    let script = b"local t = 0 for i = 1, 3e6 do t = t + i end return 1";
    client.send(&encode(&[b"EVAL", script, b"1", b"k"])).expect("sent");
    assert_eq!(client.reply().expect("a reply"), Reply::Integer(1));
    let report = ask(&mut client, "LATENCY DOCTOR").text();
    assert!(report.contains("1. command: ") && report.contains(" latency spikes (average "), "{report}");
    let graph = ask(&mut client, "LATENCY GRAPH command").text();
    assert!(graph.starts_with("command - high ") && graph.contains(" ms (all time high "), "{graph}");
    assert!(ask(&mut client, "CONFIG SET latency-monitor-threshold 0").is_ok());
    assert_eq!(ask(&mut client, "LATENCY RESET"), Reply::Integer(1));
    assert!(ask(&mut client, "LATENCY HISTORY command").items().is_empty());
}

#[test]
fn a_sleep_holds_back_nobody_else() {
    let server = Server::start();
    let (mut sleeper, mut other) = (server.connect(), server.connect());
    let began = Instant::now();
    sleeper.send(&encode(&[b"DEBUG", b"SLEEP", b"2"])).expect("sent");
    for _ in 0..50 {
        assert!(ask(&mut other, "SET k v").is_ok());
    }
    assert!(began.elapsed() < Duration::from_secs(2), "others wait");
    assert!(sleeper.reply().expect("a reply").is_ok());
    assert!(began.elapsed() >= Duration::from_secs(2));
}

#[test]
fn suites_are_told_how_a_key_is_kept() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "SET number 7");
    ask(&mut client, "RPUSH list a b c");
    let line = ask(&mut client, "DEBUG OBJECT number").text();
    assert!(
        line.starts_with("Value at:0x0 refcount:2147483647 encoding:int serializedlength:2 lru:"),
        "{line}"
    );
    let line = ask(&mut client, "DEBUG OBJECT list").text();
    assert!(
        line.contains(" refcount:1 encoding:listpack ") && line.contains(" lru_seconds_idle:0"),
        "{line}"
    );
    assert_eq!(ask(&mut client, "DEBUG OBJECT nothing").error(), Some("ERR no such key"));
    assert!(ask(&mut client, "DEBUG RELOAD").is_ok());
    assert_eq!(ask(&mut client, "LLEN list"), Reply::Integer(3));
}
