//! `MULTI` and `WATCH` on one node, as Redis answers: what is queued, what spoils it, what stops it.

use korum_tests::harness::resp::{Connection, Reply, encode};
use korum_tests::harness::server::Server;

/// Sends lines on a new connection; the bytes that come back, with `|` for line ends.
fn exchange(server: &Server, lines: &[&str]) -> String {
    let request: Vec<u8> = lines
        .iter()
        .flat_map(|line| encode(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()))
        .collect();
    server.exchange(&request).0.replace("\r\n", "|")
}

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

const ABORTED: &str = "-EXECABORT Transaction discarded because of previous errors.|";

#[test]
fn what_is_queued_runs_at_exec_and_answers_in_its_place() {
    let server = Server::start();
    for (lines, expected) in [
        (&["MULTI", "EXEC"][..], "+OK|*0|"),
        (&["EXEC"], "-ERR EXEC without MULTI|"),
        (&["DISCARD"], "-ERR DISCARD without MULTI|"),
        (
            &["MULTI", "SET {t}a x", "INCR {t}a", "GET {t}a", "EXEC"],
            "+OK|+QUEUED|+QUEUED|+QUEUED|*3|+OK|-ERR value is not an integer or out of range|$1|x|",
        ),
        (
            &["MULTI", "PING", "SET {t}b 1", "ECHO hi", "INCR {t}b", "SELECT 0", "EXEC", "GET {t}b"],
            "+OK|+QUEUED|+QUEUED|+QUEUED|+QUEUED|+QUEUED|*5|+PONG|+OK|$2|hi|:2|+OK|$1|2|",
        ),
        (&["MULTI", "SET {t}c 1", "DISCARD", "GET {t}c"], "+OK|+QUEUED|+OK|$-1|"),
        (&["MULTI", "PING", "DISCARD", "DISCARD"], "+OK|+QUEUED|+OK|-ERR DISCARD without MULTI|"),
        (&["MULTI", "RESET", "EXEC"], "+OK|+RESET|-ERR EXEC without MULTI|"),
        (&["MULTI", "QUIT"], "+OK|+OK|"),
        (
            &["MULTI", "MSET {t}1 a {t}2 b", "MGET {t}1 {t}2 {t}3", "DEL {t}1 {t}2", "EXEC"],
            "+OK|+QUEUED|+QUEUED|+QUEUED|*3|+OK|*3|$1|a|$1|b|$-1|:2|",
        ),
        (&["MULTI", "WAIT 0 0", "SET {t}w 1", "EXEC"], "+OK|+QUEUED|+QUEUED|*2|:0|+OK|"),
        (&["HELLO 3", "MULTI", "GET no", "EXEC"], "+OK|+QUEUED|*1|_|"),
    ] {
        let answer = exchange(&server, lines);
        let answer =
            if lines[0] == "HELLO 3" { answer.split("*0|").last().unwrap_or_default() } else { &answer };
        assert_eq!(answer, expected, "{lines:?}");
    }
}

#[test]
fn an_error_while_queueing_spoils_the_whole() {
    let server = Server::start();
    for (lines, expected) in [
        (
            &["MULTI", "SET a", "SET a 1", "EXEC", "GET a"][..],
            "+OK|-ERR wrong number of arguments for 'set' command|+QUEUED|-EXECABORT Transaction discarded because of \
             previous errors.|$-1|",
        ),
        (
            &["MULTI", "NOSUCH", "EXEC"],
            &format!("+OK|-ERR unknown command 'NOSUCH', with args beginning with: |{ABORTED}"),
        ),
        (
            &["MULTI", "SHUTDOWN", "EXEC", "EXEC"],
            &format!("+OK|-ERR Command not allowed inside a transaction|{ABORTED}-ERR EXEC without MULTI|"),
        ),
        (
            &["MULTI", "EXEC x", "EXEC"],
            "+OK|-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command|-ERR EXEC \
             without MULTI|",
        ),
        // These two do not.
        (&["MULTI", "MULTI", "SET a 1", "EXEC"], "+OK|-ERR MULTI calls can not be nested|+QUEUED|*1|+OK|"),
        (
            &["MULTI", "WATCH a", "SET a 1", "EXEC"],
            "+OK|-ERR WATCH inside MULTI is not allowed|+QUEUED|*1|+OK|",
        ),
        (&["MULTI x"], "-ERR wrong number of arguments for 'multi' command|"),
        (&["WATCH"], "-ERR wrong number of arguments for 'watch' command|"),
    ] {
        assert_eq!(exchange(&server, lines), expected, "{lines:?}");
    }
}

#[test]
fn keys_of_several_slots_are_refused() {
    let server = Server::start();
    if server.pid().is_none() {
        return; // a plain Redis has no slots
    }
    let crossing = "-CROSSSLOT Keys in request don't hash to the same slot|";
    for (lines, expected) in [
        (
            &["MULTI", "SET a 1", "SET b 1", "EXEC", "GET a"][..],
            format!("+OK|+QUEUED|+QUEUED|{crossing}$-1|"),
        ),
        (&["MULTI", "MGET a b", "EXEC"], format!("+OK|{crossing}{ABORTED}")),
        (&["WATCH a b"], crossing.to_owned()),
        (&["WATCH a", "MULTI", "SET b 1", "EXEC"], format!("+OK|+OK|+QUEUED|{crossing}")),
        (
            &["WATCH a", "WATCH b", "UNWATCH", "MULTI", "SET b 1", "EXEC"],
            "+OK|+OK|+OK|+OK|+QUEUED|*1|+OK|".into(),
        ),
    ] {
        assert_eq!(exchange(&server, lines), expected, "{lines:?}");
    }
}

#[test]
fn a_watched_key_that_changed_stops_the_transaction() {
    let server = Server::start();
    let (mut one, mut other) = (server.connect(), server.connect());
    ask(&mut one, "SET {w}a 1");
    for (words, stops) in [
        ("SET {w}a 2", true),
        ("EXPIRE {w}a 100", true),
        ("DEL {w}a", true),
        ("SET {w}b 1", false),
        ("GET {w}a", false),
        ("DEL {w}nobody", false),
    ] {
        ask(&mut one, "SET {w}a 1");
        assert!(ask(&mut one, "WATCH {w}a {w}nobody").is_ok());
        ask(&mut other, words);
        assert!(ask(&mut one, "MULTI").is_ok());
        ask(&mut one, "SET {w}result 1");
        // What is not about keys does not run either.
        ask(&mut one, "CLIENT SETNAME stopped");
        let reply = ask(&mut one, "EXEC");
        assert_eq!(reply == Reply::Null, stops, "{words}: {reply:?}");
        assert_eq!(ask(&mut one, "CLIENT GETNAME") == Reply::Null, stops, "{words}");
        ask(&mut one, "RESET");
    }
    // Its own change counts too; UNWATCH, DISCARD and an EXEC before make it forget.
    ask(&mut one, "WATCH {w}a");
    ask(&mut one, "SET {w}a 9");
    for forget in ["UNWATCH", "MULTI|DISCARD", "MULTI|EXEC"] {
        forget.split('|').for_each(|words| drop(ask(&mut one, words)));
        ask(&mut one, "MULTI");
        ask(&mut one, "GET {w}a");
        assert_eq!(ask(&mut one, "EXEC").items(), [Reply::from("9")], "{forget}");
        ask(&mut one, "WATCH {w}a");
        ask(&mut other, "SET {w}a 9");
    }
    ask(&mut one, "MULTI");
    assert_eq!(ask(&mut one, "EXEC"), Reply::Null, "also a transaction without commands");
}

#[test]
fn a_watched_key_that_expires_stops_the_transaction() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "SET {e}a 1 PX 60");
    ask(&mut client, "WATCH {e}a");
    std::thread::sleep(std::time::Duration::from_millis(90));
    ask(&mut client, "MULTI");
    ask(&mut client, "SET {e}b 1");
    assert_eq!(ask(&mut client, "EXEC"), Reply::Null);
    assert_eq!(ask(&mut client, "EXISTS {e}a {e}b"), Reply::Integer(0));
}

#[test]
fn commands_that_speak_for_everything_have_their_place() {
    let server = Server::start();
    let mut client = server.connect();
    for key in ["{f}a", "b", "c", "d"] {
        ask(&mut client, &format!("SET {key} old"));
    }
    for words in ["MULTI", "SET {f}a 1", "FLUSHALL", "SET {f}b 2", "DBSIZE", "INFO server"] {
        ask(&mut client, words);
    }
    let reply = ask(&mut client, "EXEC");
    let items = reply.items();
    assert!(items[0].is_ok() && items[1].is_ok() && items[2].is_ok(), "{items:?}");
    assert_eq!(items[3], Reply::Integer(1));
    assert!(items[4].text().contains("redis_version"));
    assert_eq!(ask(&mut client, "KEYS *").items(), [Reply::from("{f}b")]);
}

#[test]
fn others_see_what_is_queued_and_watched() {
    let server = Server::start();
    let (mut boss, mut client) = (server.connect(), server.connect());
    let id = ask(&mut client, "CLIENT ID").integer().expect("an id");
    let mut line = || ask(&mut boss, &format!("CLIENT LIST ID {id}")).text();
    ask(&mut client, "WATCH {c}a {c}b");
    if server.pid().is_some() {
        assert!(line().contains(" multi=-1 watch=2 "), "{}", line());
    }
    ask(&mut client, "MULTI");
    ask(&mut client, "SET {c}a 1");
    ask(&mut client, "GET {c}a");
    let text = line();
    assert!(
        text.contains(" multi=2 ") && text.contains(" flags=x ") && !text.contains(" multi-mem=0 "),
        "{text}"
    );
    ask(&mut client, "EXEC");
    let text = line();
    assert!(text.contains(" multi=-1 ") && text.contains(" flags=N "), "{text}");
}

#[test]
fn a_transaction_is_bounded() {
    let server = Server::start();
    if server.pid().is_none() {
        return;
    }
    let mut client = server.connect();
    ask(&mut client, "MULTI");
    let value = vec![b'x'; 20 << 20];
    assert_eq!(client.call_bytes(&[b"SET", b"{l}a", &value]).expect("a reply").text(), "QUEUED");
    let reply = client.call_bytes(&[b"SET", b"{l}b", &value]).expect("a reply");
    assert!(
        reply.error().is_some_and(|text| text.starts_with("ERR the transaction is too large")),
        "{reply:?}"
    );
    assert!(ask(&mut client, "EXEC").error().is_some_and(|text| text.starts_with("EXECABORT")));
    // A large one within the bound.
    ask(&mut client, "MULTI");
    client.call_bytes(&[b"SET", b"{l}a", &value]).expect("a reply");
    ask(&mut client, "STRLEN {l}a");
    assert_eq!(ask(&mut client, "EXEC").items()[1], Reply::Integer(20 << 20));
    // Nobody else can send what nodes tell each other.
    for words in ["KORUM EXEC 0 x", "KORUM EXEC-RO 0 x", "KORUM WATCH 0 a"] {
        assert!(ask(&mut client, words).error().is_some(), "{words}");
    }
}
