//! Databases of one node: what a connection chooses, and what it and others are told of it.

use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::server::Server;

use crate::talk::talk;

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

#[test]
fn a_connection_has_a_database_until_it_is_reset() {
    let server = Server::start();
    for (request, expected) in [
        (
            "SET a 0\nSELECT 1\nGET a\nSET a 1\nSELECT 15\nGET a\nSELECT 0\nGET a",
            "+OK|+OK|$-1|+OK|+OK|$-1|+OK|$1|0|",
        ),
        (
            "SELECT 16\nSELECT -1\nSELECT x\nGET a",
            "-ERR DB index is out of range|-ERR DB index is out of range|-ERR value is not an integer or out of range|$1|0|",
        ),
        ("SELECT 1\nGET a\nRESET\nGET a", "+OK|$1|1|+RESET|$1|0|"),
        (
            "SELECT 1\nMULTI\nGET a\nSELECT 0\nGET a\nEXEC\nGET a",
            "+OK|+OK|+QUEUED|+QUEUED|+QUEUED|*3|$1|1|+OK|$1|0|$1|0|",
        ),
        ("SELECT 1\nMULTI\nSELECT 0\nDISCARD\nGET a", "+OK|+OK|+QUEUED|+OK|$1|1|"),
        (
            "SELECT 1\nMULTI\nSELECT 99\nGET a\nEXEC",
            "+OK|+OK|+QUEUED|+QUEUED|*2|-ERR DB index is out of range|$1|1|",
        ),
        ("SELECT 1\nMULTI\nSELECT 0\nPING\nEXEC\nGET a", "+OK|+OK|+QUEUED|+QUEUED|*2|+OK|+PONG|$1|0|"),
        ("MOVE a 1\nSELECT 2\nSET b 2\nMOVE b 0\nEXISTS b\nSELECT 0\nGETDEL b", ":0|+OK|+OK|:1|:0|+OK|$1|2|"),
        (
            "SWAPDB 0 1\nGET a\nSWAPDB 1 0\nGET a\nSWAPDB 0 x\nSWAPDB 0 16",
            "+OK|$1|1|+OK|$1|0|-ERR invalid second DB index|-ERR DB index is out of range|",
        ),
        (
            "SELECT 7\nDBSIZE\nSET c 1\nMULTI\nSET {e}d 1\nFLUSHDB\nSET e 1\nEXEC\nKEYS *\nFLUSHDB\nSELECT 0\nDBSIZE",
            "+OK|:0|+OK|+OK|+QUEUED|+QUEUED|+QUEUED|*3|+OK|+OK|+OK|*1|$1|e|+OK|+OK|:1|",
        ),
    ] {
        assert_eq!(talk(&server, request, expected), expected, "{request}");
    }
    let mut client = server.connect();
    assert!(ask(&mut client, "SELECT 1").is_ok());
    let script = |source: &[u8], client: &mut Connection| {
        client.call_bytes(&[b"EVAL", source, b"1", b"a", b"0"]).expect("a reply")
    };
    let both = b"local one = redis.call('GET', KEYS[1]) redis.call('SELECT', ARGV[1]) return {one, redis.call('GET', KEYS[1])}";
    assert_eq!(script(both, &mut client).items(), [Reply::from("1"), Reply::from("0")]);
    assert_eq!(ask(&mut client, "GET a"), Reply::from("1"), "what a script has chosen is its own");
    let info = ask(&mut client, "INFO keyspace").text();
    assert_eq!(info, "# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\ndb1:keys=1,expires=0,avg_ttl=0\r\n");
    // Keys that look like stored ones are keys like others.
    for key in [&b"\xff\x01a"[..], b"\xff", b"\xff\x00\xffa"] {
        assert!(ask(&mut client, "SELECT 0").is_ok());
        assert!(client.call_bytes(&[b"SET", key, b"odd"]).expect("SET").is_ok());
        assert_eq!(client.call_bytes(&[b"MOVE", key, b"3"]).expect("MOVE"), Reply::Integer(1));
        assert!(ask(&mut client, "SELECT 3").is_ok());
        assert_eq!(ask(&mut client, "DBSIZE"), Reply::Integer(1));
        assert_eq!(client.call_bytes(&[b"GETDEL", key]).expect("GETDEL"), Reply::from("odd"));
    }
    assert!(ask(&mut client, "SELECT 1").is_ok());
    assert_eq!(ask(&mut client, "GET a"), Reply::from("1"));
}

#[test]
fn others_see_which_database_it_is() {
    let server = Server::start();
    let (mut client, mut listener, mut watcher) = (server.connect(), server.connect(), server.connect());
    assert!(ask(&mut client, "CONFIG SET notify-keyspace-events KEA").is_ok());
    ask(&mut listener, "PSUBSCRIBE __key*__:*");
    assert!(ask(&mut watcher, "MONITOR").is_ok());
    assert!(ask(&mut client, "SELECT 9").is_ok());
    ask(&mut client, "SET a 1");
    ask(&mut client, "MOVE a 3");
    let mut next = || {
        let message = listener.reply().expect("a message");
        format!("{} {}", message.items()[2].text(), message.items()[3].text())
    };
    for expected in [
        "__keyspace@9__:a set",
        "__keyevent@9__:set a",
        "__keyspace@9__:a move_from",
        "__keyevent@9__:move_from a",
        "__keyspace@3__:a move_to",
        "__keyevent@3__:move_to a",
    ] {
        assert_eq!(next(), expected);
    }
    let mut line = || watcher.reply().expect("a line").text();
    assert!(line().contains(" [0 127.0.0.1:"), "chosen in the one before");
    assert!(line().contains(" [9 127.0.0.1:"));
    assert!(ask(&mut client, "CLIENT INFO").text().contains(" db=9 "));
    // A swap changes what the events are told of.
    assert!(ask(&mut client, "SWAPDB 9 3").is_ok());
    ask(&mut client, "DEL a");
    assert_eq!((next(), next()), ("__keyspace@9__:a del".into(), "__keyevent@9__:del a".into()));
    ask(&mut client, "CONFIG SET notify-keyspace-events ");
    // Whoever keeps a key hears of that name in any database, as in Redis.
    let mut cache = server.connect();
    ask(&mut cache, "HELLO 3");
    assert!(ask(&mut cache, "SELECT 5").is_ok());
    assert!(ask(&mut cache, "CLIENT TRACKING on").is_ok());
    ask(&mut cache, "GET k");
    ask(&mut client, "SET k 1");
    let outdated = Reply::Push(vec!["invalidate".into(), Reply::Array(vec!["k".into()])]);
    assert_eq!(cache.reply().expect("a message"), outdated);
}

#[test]
fn walks_pass_over_other_databases() {
    let server = Server::start();
    let mut client = server.connect();
    let commands: Vec<Vec<Vec<u8>>> = (0..20_000)
        .map(|number| vec![b"SET".to_vec(), format!("key:{number}").into_bytes(), b"v".to_vec()])
        .collect();
    client.pipeline(&commands).expect("answered");
    assert!(ask(&mut client, "SELECT 1").is_ok());
    for number in 0..30 {
        assert!(ask(&mut client, &format!("SET key:{number} v")).is_ok());
    }
    let (mut cursor, mut found, mut calls) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = ask(&mut client, &format!("SCAN {cursor}"));
        found.extend(reply.items()[1].items().iter().map(Reply::text));
        cursor = reply.items()[0].text();
        calls += 1;
        if cursor == "0" {
            break;
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 30);
    assert!(calls < 200, "{calls} calls for 30 keys");
    assert!(ask(&mut client, "RANDOMKEY").text().starts_with("key:"));
    assert!(ask(&mut client, "SELECT 2").is_ok());
    assert_eq!(ask(&mut client, "RANDOMKEY"), Reply::Null);
    assert!(ask(&mut client, "FLUSHDB").is_ok());
    assert!(ask(&mut client, "SELECT 1").is_ok());
    assert_eq!(ask(&mut client, "DBSIZE"), Reply::Integer(30));
    assert!(ask(&mut client, "FLUSHDB").is_ok());
    assert!(ask(&mut client, "SELECT 0").is_ok());
    assert_eq!(ask(&mut client, "DBSIZE"), Reply::Integer(20_000));
}

#[test]
fn there_are_as_many_as_the_node_was_told() {
    let server = Server::start_with(&["--databases", "3"]);
    let mut client = server.connect();
    assert!(ask(&mut client, "SELECT 2").is_ok());
    assert_eq!(ask(&mut client, "SELECT 3").error(), Some("ERR DB index is out of range"));
    assert_eq!(ask(&mut client, "MOVE a 3").error(), Some("ERR DB index is out of range"));
    assert_eq!(ask(&mut client, "CONFIG GET databases").items()[1], Reply::from("3"));
}
