//! What one connection asks for itself, and what it may do to others: replies off, no marks, pauses, kills.

use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use korum_tests::harness::resp::{Connection, Reply, encode};
use korum_tests::harness::server::Server;

fn lines(text: &str) -> Vec<u8> {
    text.lines().flat_map(|line| encode(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())).collect()
}

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

/// The number of a field of `INFO`.
fn field(connection: &mut Connection, name: &str) -> u64 {
    let text = ask(connection, "INFO everything").text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let digits = value.expect(name).trim().trim_start_matches("count=");
    digits.parse().expect("a number")
}

#[test]
fn replies_can_be_switched_off() {
    let server = Server::start();
    let mut client = server.connect();
    let request = "CLIENT REPLY OFF\nSET a 1\nINCR a\nGET a\nNOSUCH\nGET\nINFO\nMGET a b\nCLIENT REPLY ON";
    client.send(&lines(request)).expect("sent");
    assert!(client.reply().expect("only the last one is answered").is_ok());
    client.send(&lines("CLIENT REPLY SKIP\nINCR a\nGET a\nPING")).expect("sent");
    assert_eq!(client.reply().expect("the command after the skipped one"), Reply::from("3"));
    assert_eq!(client.reply().expect("PING"), Reply::Simple("PONG".into()));
}

#[test]
fn commands_that_run_alone_leave_nothing_behind() {
    let server = Server::start();
    let mut client = server.connect();
    client
        .send(&lines("WAIT 0 0\nWAIT 0 0\nINFO server\nINFO server\nPING\nWAIT 0 10\nGET a"))
        .expect("sent");
    let replies: Vec<Reply> = (0..7).map(|_| client.reply().expect("every command is answered")).collect();
    assert_eq!(replies[4], Reply::Simple("PONG".into()));
    assert_eq!(replies[6], Reply::Null);
}

#[test]
fn wait_takes_its_time_when_there_are_too_few_replicas() {
    let server = Server::start();
    let mut client = server.connect();
    let begin = Instant::now();
    assert_eq!(ask(&mut client, "WAIT 1 200"), Reply::Integer(0));
    assert!(begin.elapsed() >= Duration::from_millis(200));
    // Somebody else may end it.
    let id = ask(&mut client, "CLIENT ID").integer().expect("an id");
    client.send(&lines("WAIT 1 0")).expect("sent");
    let mut other = server.connect();
    let unblocked = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        ask(&mut other, &format!("CLIENT UNBLOCK {id}")) == Reply::Integer(1)
    });
    assert!(unblocked);
    assert_eq!(client.reply().expect("as if its time had run out"), Reply::Integer(0));
}

#[test]
fn reads_leave_no_mark_for_those_who_wish_so() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "SET key value");
    if ask(&mut client, "CLIENT NO-TOUCH on").error().is_some() {
        return; // a Redis older than 7.2
    }
    thread::sleep(Duration::from_millis(2100));
    ask(&mut client, "GET key");
    ask(&mut client, "STRLEN key");
    assert!(ask(&mut client, "OBJECT IDLETIME key").integer() >= Some(2));
    ask(&mut client, "TOUCH key");
    assert!(ask(&mut client, "OBJECT IDLETIME key").integer() < Some(2));
}

#[test]
fn a_pause_holds_back_what_it_says_and_can_be_ended() {
    let server = Server::start();
    let (mut boss, mut client) = (server.connect(), server.connect());
    assert!(ask(&mut boss, "CLIENT PAUSE 60000 WRITE").is_ok());
    assert_eq!(ask(&mut client, "GET a"), Reply::Null);
    client.send(&lines("GET a\nSET a 1\nGET a")).expect("sent");
    assert_eq!(client.reply().expect("reads go on"), Reply::Null);
    client.patience(Duration::from_millis(300)).expect("a timeout");
    let held_back = client.reply().expect_err("writes wait").kind();
    assert!(matches!(held_back, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{held_back}");
    client.patience(Duration::from_secs(5)).expect("a timeout");
    assert!(ask(&mut boss, "CLIENT UNPAUSE").is_ok());
    assert!(client.reply().expect("SET").is_ok());
    assert_eq!(client.reply().expect("GET"), Reply::from("1"));
    let begin = Instant::now();
    assert!(ask(&mut boss, "CLIENT PAUSE 300").is_ok());
    assert_eq!(ask(&mut client, "GET a"), Reply::from("1"));
    assert!(begin.elapsed() >= Duration::from_millis(290), "all commands wait for the end");
}

#[test]
fn clients_are_listed_and_killed() {
    let server = Server::start();
    let (mut boss, mut client) = (server.connect(), server.connect());
    ask(&mut client, "CLIENT SETNAME victim");
    ask(&mut client, "GET a");
    let id = ask(&mut client, "CLIENT ID").integer().expect("an id");
    let list = ask(&mut boss, "CLIENT LIST").text();
    let line = |name: &str| list.lines().find(|line| line.contains(name)).expect("it is listed").to_owned();
    assert!(line("name=victim").contains(" cmd=client|id "), "{list}");
    assert!(line("cmd=client|list").contains(" qbuf="), "{list}");
    assert_eq!(ask(&mut boss, &format!("CLIENT KILL ID {id}")), Reply::Integer(1));
    assert!(client.reply().is_err(), "closed");
    // One that waits for a write to be read is closed too.
    let mut greedy = server.connect();
    ask(&mut boss, &format!("SET big {}", "x".repeat(1 << 20)));
    greedy.send(&lines(&"GET big\n".repeat(64))).expect("sent");
    thread::sleep(Duration::from_millis(100));
    assert!(ask(&mut boss, "CLIENT KILL TYPE normal").integer() >= Some(1));
    let gone = (0..100).any(|_| {
        thread::sleep(Duration::from_millis(20));
        field(&mut boss, "connected_clients") == 1
    });
    assert!(gone);
}

#[test]
fn idle_clients_are_closed_also_those_that_were_idle_before() {
    let server = Server::start();
    let (mut boss, mut idle) = (server.connect(), server.connect());
    assert_eq!(ask(&mut idle, "PING"), Reply::Simple("PONG".into()));
    assert!(ask(&mut boss, "CONFIG SET timeout 1").is_ok());
    let begin = Instant::now();
    assert!(idle.reply().is_err());
    assert!(begin.elapsed() < Duration::from_secs(4), "closed by the server, not by our patience");
    ask(&mut server.connect(), "CONFIG SET timeout 0");
}

#[test]
fn what_was_asked_is_counted() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "SET a 1");
    ask(&mut client, "CONFIG RESETSTAT");
    for words in ["GET a", "MGET a b", "EXISTS c", "GETDEL d", "INCR a", "STRLEN a", "DEL nothing"] {
        ask(&mut client, words);
    }
    assert_eq!((field(&mut client, "keyspace_hits"), field(&mut client, "keyspace_misses")), (3, 3));
    for words in ["NOSUCH", "SET a", "INCR", "RESTORE k 0 junk"] {
        ask(&mut client, words);
    }
    ask(&mut client, "SET text x");
    ask(&mut client, "INCR text");
    assert_eq!(field(&mut client, "errorstat_ERR"), 5);
    assert_eq!(field(&mut client, "total_error_replies"), 5);
    assert!(field(&mut client, "total_commands_processed") >= 10);
}
