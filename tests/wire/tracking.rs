//! Clients that keep what they read: what they are told, and the rules between the options.

use korum_tests::harness::cluster::PATIENCE;
use korum_tests::harness::resp::{Connection, Reply, encode};
use korum_tests::harness::server::Server;
use korum_tests::harness::wait;

use crate::talk::talk;

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

fn outdated(keys: &[&str]) -> Reply {
    let keys = Reply::Array(keys.iter().map(|&key| key.into()).collect());
    Reply::Push(vec!["invalidate".into(), keys])
}

#[test]
fn refusals_are_those_of_redis() {
    let server = Server::start();
    for (request, expected) in [
        ("CLIENT TRACKINGINFO", "*6|$5|flags|*1|$3|off|$8|redirect|:-1|$8|prefixes|*0|"),
        ("CLIENT GETREDIR", ":-1|"),
        (
            "CLIENT CACHING yes",
            "-ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled|",
        ),
        ("CLIENT TRACKING foo", "-ERR syntax error|"),
        ("CLIENT TRACKING on foo", "-ERR syntax error|"),
        ("CLIENT TRACKING on REDIRECT 999999", "-ERR The client ID you want redirect to does not exist|"),
        ("CLIENT TRACKING on REDIRECT x", "-ERR value is not an integer or out of range|"),
        ("CLIENT TRACKING on PREFIX a", "-ERR PREFIX option requires BCAST mode to be enabled|"),
        ("CLIENT TRACKING on BCAST OPTIN", "-ERR OPTIN and OPTOUT are not compatible with BCAST|"),
        ("CLIENT TRACKING on OPTIN OPTOUT", "-ERR You can't specify both OPTIN mode and OPTOUT mode|"),
        (
            "CLIENT TRACKING on BCAST PREFIX a PREFIX ab",
            "-ERR Prefix 'a' overlaps with another provided prefix 'ab'. Prefixes for a single client must not overlap.|",
        ),
        (
            "CLIENT TRACKING on OPTIN\nCLIENT CACHING yes\nCLIENT CACHING no\nCLIENT CACHING x\nCLIENT TRACKINGINFO\nCLIENT GETREDIR\nCLIENT TRACKING off",
            "+OK|+OK|-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.|-ERR syntax error|\
             *6|$5|flags|*3|$2|on|$5|optin|$11|caching-yes|$8|redirect|:0|$8|prefixes|*0|:0|+OK|",
        ),
        (
            "CLIENT TRACKING on BCAST PREFIX p:\nCLIENT TRACKING on BCAST PREFIX p:a\nCLIENT TRACKING on BCAST PREFIX q:\nCLIENT TRACKINGINFO",
            "+OK|-ERR Prefix 'p:a' overlaps with an existing prefix 'p:'. Prefixes for a single client must not overlap.|\
             +OK|*6|$5|flags|*2|$2|on|$5|bcast|$8|redirect|:0|$8|prefixes|*2|$2|p:|$2|q:|",
        ),
    ] {
        assert_eq!(talk(&server, request, expected), expected, "{request}");
    }
}

#[test]
fn who_has_read_a_key_hears_once_that_it_changed() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    ask(&mut client, "HELLO 3");
    assert!(ask(&mut client, "CLIENT TRACKING on").is_ok());
    ask(&mut client, "MGET a b");
    ask(&mut other, "SET a 1");
    assert_eq!(client.reply().expect("a push"), outdated(&["a"]));
    ask(&mut other, "SET a 2");
    ask(&mut other, "SET c 2");
    assert_eq!(ask(&mut client, "GET a"), Reply::from("2"), "nothing comes for what was not read again");
    ask(&mut other, "EXPIRE a 100");
    assert_eq!(client.reply().expect("a push"), outdated(&["a"]));
    ask(&mut client, "STRLEN a");
    ask(&mut other, "DEL a");
    assert_eq!(client.reply().expect("a push"), outdated(&["a"]));
    ask(&mut client, "GET b");
    ask(&mut other, "FLUSHALL");
    assert_eq!(client.reply().expect("a push"), Reply::Push(vec!["invalidate".into(), Reply::Null]));
    // What ends by itself has changed too.
    ask(&mut other, "SET short x PX 100");
    ask(&mut client, "GET short");
    assert_eq!(client.reply().expect("a push"), outdated(&["short"]));
    ask(&mut client, "GET b");
    assert!(ask(&mut client, "CLIENT TRACKING off").is_ok());
    ask(&mut other, "SET b 1");
    assert_eq!(ask(&mut client, "PING"), Reply::Simple("PONG".into()));
}

#[test]
fn options_choose_what_is_kept() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    ask(&mut client, "HELLO 3");
    assert!(ask(&mut client, "CLIENT TRACKING on OPTIN").is_ok());
    ask(&mut client, "GET a");
    assert!(ask(&mut client, "CLIENT CACHING yes").is_ok());
    ask(&mut client, "GET b");
    ask(&mut client, "GET c");
    ask(&mut other, "MSET a 1 b 1 c 1");
    assert_eq!(client.reply().expect("a push"), outdated(&["b"]));
    assert!(ask(&mut client, "CLIENT TRACKING off").is_ok());
    assert!(ask(&mut client, "CLIENT TRACKING on OPTOUT").is_ok());
    assert!(ask(&mut client, "CLIENT CACHING no").is_ok());
    ask(&mut client, "GET a");
    ask(&mut client, "GET b");
    ask(&mut other, "MSET a 2 b 2");
    assert_eq!(client.reply().expect("a push"), outdated(&["b"]));
    assert!(ask(&mut client, "CLIENT TRACKING off").is_ok());
    assert!(ask(&mut client, "CLIENT TRACKING on BCAST PREFIX user:").is_ok());
    ask(&mut other, "MSET user:1 x other:1 x");
    assert_eq!(client.reply().expect("a push"), outdated(&["user:1"]));
    ask(&mut other, "SET user:1 y");
    assert_eq!(client.reply().expect("a push"), outdated(&["user:1"]));
}

#[test]
fn who_does_not_want_to_hear_of_its_own_changes_does_not() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    ask(&mut client, "HELLO 3");
    assert!(ask(&mut client, "CLIENT TRACKING on NOLOOP").is_ok());
    let pong = Reply::Simple("PONG".into());
    ask(&mut client, "MGET a b");
    assert!(ask(&mut client, "SET a 1").is_ok());
    assert_eq!(ask(&mut client, "PING"), pong);
    ask(&mut other, "MSET a 2 b 2");
    assert_eq!(client.reply().expect("a push"), outdated(&["b"]), "a was not read again");
    assert!(ask(&mut client, "CLIENT TRACKING off").is_ok());
    assert!(ask(&mut client, "CLIENT TRACKING on BCAST NOLOOP").is_ok());
    assert!(ask(&mut client, "SET a 3").is_ok());
    assert_eq!(ask(&mut client, "PING"), pong);
    ask(&mut other, "SET a 4");
    assert_eq!(client.reply().expect("a push"), outdated(&["a"]));
    // Whoever waited and is served has changed the list too.
    let mut waiter = server.connect();
    waiter.send(&encode(&[b"BLPOP", b"list", b"0"])).expect("sent");
    wait::until("it waits", PATIENCE, || {
        let blocked = ask(&mut other, "INFO clients").text().contains("blocked_clients:1\r\n");
        if blocked { Ok(()) } else { Err("nobody is blocked".to_owned()) }
    });
    ask(&mut client, "RPUSH list x");
    assert_eq!(client.reply().expect("a push"), outdated(&["list"]));
}

#[test]
fn resp2_hears_through_another_connection() {
    let server = Server::start();
    let (mut client, mut listener, mut other) = (server.connect(), server.connect(), server.connect());
    let id = ask(&mut listener, "CLIENT ID").integer().expect("an id");
    ask(&mut listener, "SUBSCRIBE __redis__:invalidate");
    assert!(ask(&mut client, &format!("CLIENT TRACKING on REDIRECT {id}")).is_ok());
    assert_eq!(ask(&mut client, "CLIENT GETREDIR"), Reply::Integer(id));
    ask(&mut client, "GET a");
    ask(&mut other, "SET a 1");
    let message = listener.reply().expect("a message");
    assert_eq!(message.items()[..2], [Reply::from("message"), Reply::from("__redis__:invalidate")]);
    assert_eq!(message.items()[2], Reply::Array(vec!["a".into()]));
    assert!(ask(&mut other, "CLIENT LIST").text().contains(&format!(" redir={id} ")));
}

#[test]
fn a_full_table_forgets_and_says_so() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    assert!(ask(&mut other, "CONFIG SET tracking-table-max-keys 10").is_ok());
    ask(&mut client, "HELLO 3");
    assert!(ask(&mut client, "CLIENT TRACKING on").is_ok());
    let keys: String = (0..15).map(|number| format!(" key:{number}")).collect();
    ask(&mut client, &format!("MGET{keys}"));
    for _ in 0..5 {
        let push = client.reply().expect("a push");
        assert_eq!(push.items()[0], Reply::from("invalidate"));
    }
    assert!(ask(&mut other, "INFO stats").text().contains("tracking_total_keys:10\r\n"));
    ask(&mut other, "CONFIG SET tracking-table-max-keys 1000000");
}
