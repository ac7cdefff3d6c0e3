//! Events of keys: `notify-keyspace-events` and what is told then.

use std::time::{Duration, Instant};

use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::server::Server;

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

/// The channel and the text of the next message.
fn next(listener: &mut Connection) -> (String, String) {
    let message = listener.reply().expect("a message");
    (message.items()[2].text(), message.items()[3].text())
}

fn pair(channel: &str, text: &str) -> (String, String) {
    (channel.to_owned(), text.to_owned())
}

#[test]
fn events_are_told_in_both_forms_as_far_as_they_are_wanted() {
    let server = Server::start();
    let (mut client, mut listener) = (server.connect(), server.connect());
    ask(&mut listener, "PSUBSCRIBE __key*@0__:*");
    ask(&mut client, "SET a 1");
    assert!(ask(&mut client, "CONFIG SET notify-keyspace-events KEA").is_ok());
    assert_eq!(ask(&mut client, "CONFIG GET notify-keyspace-events").items()[1], Reply::from("AKE"));
    ask(&mut client, "SET a 1 EX 100");
    assert_eq!(next(&mut listener), pair("__keyspace@0__:a", "set"));
    assert_eq!(next(&mut listener), pair("__keyevent@0__:set", "a"));
    assert_eq!(next(&mut listener), pair("__keyspace@0__:a", "expire"));
    assert_eq!(next(&mut listener), pair("__keyevent@0__:expire", "a"));
    assert!(ask(&mut client, "CONFIG SET notify-keyspace-events Eg").is_ok());
    ask(&mut client, "SET a 2");
    ask(&mut client, "DEL a b");
    assert_eq!(next(&mut listener), pair("__keyevent@0__:del", "a"));
    // No form, no events.
    assert!(ask(&mut client, "CONFIG SET notify-keyspace-events A").is_ok());
    ask(&mut client, "SET a 2");
    assert!(ask(&mut client, "CONFIG SET notify-keyspace-events KEx").is_ok());
    let begin = Instant::now();
    ask(&mut client, "SET short x PX 100");
    assert_eq!(next(&mut listener), pair("__keyspace@0__:short", "expired"));
    assert_eq!(next(&mut listener), pair("__keyevent@0__:expired", "short"));
    assert!(begin.elapsed() >= Duration::from_millis(100));
    ask(&mut client, "CONFIG SET notify-keyspace-events ");
}

#[test]
fn events_of_a_key_are_in_the_order_of_what_happened() {
    let server = Server::start();
    let (mut client, mut listener) = (server.connect(), server.connect());
    ask(&mut client, "CONFIG SET notify-keyspace-events Eg$");
    ask(&mut listener, "PSUBSCRIBE __keyevent@0__:*");
    let commands: Vec<Vec<Vec<u8>>> = (0..500)
        .flat_map(|_| [&b"SET a 1"[..], b"INCR a", b"EXPIRE a 100", b"DEL a"])
        .map(|line| line.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect())
        .collect();
    client.pipeline(&commands).expect("answered");
    for _ in 0..500 {
        for event in ["set", "incrby", "expire", "del"] {
            assert_eq!(next(&mut listener), pair(&format!("__keyevent@0__:{event}"), "a"));
        }
    }
}
