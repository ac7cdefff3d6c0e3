//! Publish and subscribe at one node: confirmations, messages, what a client that listens may do, slow ones.
//!
//! For: replies byte for byte as Redis 7.0 has them, in both protocols.
//! Not here: several nodes (`process/pubsub.rs`), libraries (`wire/py`).

use std::time::Duration;

use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::server::Server;

use crate::talk::{lines, talk};

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

fn words(parts: &[&str]) -> Vec<Reply> {
    parts.iter().map(|&part| part.into()).collect()
}

#[test]
fn a_pipeline_is_answered_in_its_order_in_resp2() {
    let server = Server::start();
    for (request, expected) in [
        (
            "SUBSCRIBE a b a\nPING\nPING hi\nGET x\nUNSUBSCRIBE a\nUNSUBSCRIBE\nUNSUBSCRIBE\nPING\nGET x",
            "*3|$9|subscribe|$1|a|:1|*3|$9|subscribe|$1|b|:2|*3|$9|subscribe|$1|a|:2|*2|$4|pong|$0||*2|$4|pong|$2|hi|\
             -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
             context|*3|$11|unsubscribe|$1|a|:1|*3|$11|unsubscribe|$1|b|:0|*3|$11|unsubscribe|$-1|:0|+PONG|$-1|",
        ),
        (
            "PSUBSCRIBE a* b*\nSUBSCRIBE q\nSSUBSCRIBE s1\nPUNSUBSCRIBE b*\nSUNSUBSCRIBE\nUNSUBSCRIBE\nPUNSUBSCRIBE zz\nSUNSUBSCRIBE zz",
            "*3|$10|psubscribe|$2|a*|:1|*3|$10|psubscribe|$2|b*|:2|*3|$9|subscribe|$1|q|:3|*3|$10|ssubscribe|$2|s1|:1|\
             *3|$12|punsubscribe|$2|b*|:2|*3|$12|sunsubscribe|$2|s1|:0|*3|$11|unsubscribe|$1|q|:1|\
             *3|$12|punsubscribe|$2|zz|:1|*3|$12|sunsubscribe|$2|zz|:0|",
        ),
        ("SUBSCRIBE a\nRESET\nGET x", "*3|$9|subscribe|$1|a|:1|+RESET|$-1|"),
        (
            "SET k 1\nSUBSCRIBE a\nUNSUBSCRIBE\nGET k\nDEL k",
            "+OK|*3|$9|subscribe|$1|a|:1|*3|$11|unsubscribe|$1|a|:0|$1|1|:1|",
        ),
        ("PUBLISH c x\nSUBSCRIBE c", ":0|*3|$9|subscribe|$1|c|:1|"),
        ("SUBSCRIBE a\nQUIT", "*3|$9|subscribe|$1|a|:1|+OK|"),
        ("SUBSCRIBE", "-ERR wrong number of arguments for 'subscribe' command|"),
        ("PUBLISH a", "-ERR wrong number of arguments for 'publish' command|"),
        (
            "PUBSUB CHANNELS a b",
            "-ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.|",
        ),
        ("PUBSUB NUMPAT x", "-ERR wrong number of arguments for 'pubsub|numpat' command|"),
        ("PUBSUB FOO", "-ERR unknown subcommand 'FOO'. Try PUBSUB HELP.|"),
    ] {
        assert_eq!(talk(&server, request, expected), expected, "{request}");
    }
}

#[test]
fn a_client_of_resp3_may_do_everything_and_gets_pushes() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "HELLO 3");
    client.send(&lines("SUBSCRIBE a\nGET x\nPING\nPSUBSCRIBE a*\nSSUBSCRIBE a")).expect("sent");
    let push = |parts: &[&str], number: i64| {
        Reply::Push(words(parts).into_iter().chain([Reply::Integer(number)]).collect())
    };
    let replies: Vec<Reply> = (0..5).map(|_| client.reply().expect("a reply")).collect();
    let pong = Reply::Simple("PONG".into());
    assert_eq!(
        replies,
        [
            push(&["subscribe", "a"], 1),
            Reply::Null,
            pong,
            push(&["psubscribe", "a*"], 2),
            push(&["ssubscribe", "a"], 1)
        ]
    );
    // Its own messages come too, before the reply or after it.
    let mut replies = vec![ask(&mut client, "PUBLISH a x")];
    replies.extend((0..2).map(|_| client.reply().expect("a message")));
    let (integers, pushes): (Vec<Reply>, Vec<Reply>) =
        replies.into_iter().partition(|reply| reply.integer().is_some());
    assert_eq!(integers, [Reply::Integer(2)]);
    assert_eq!(pushes[0], Reply::Push(words(&["message", "a", "x"])));
    assert_eq!(pushes[1], Reply::Push(words(&["pmessage", "a*", "a", "x"])));
    let mut other = server.connect();
    assert_eq!(ask(&mut other, "SPUBLISH a y"), Reply::Integer(1));
    assert_eq!(client.reply().expect("a message"), Reply::Push(words(&["smessage", "a", "y"])));
    assert_eq!(ask(&mut client, "UNSUBSCRIBE"), push(&["unsubscribe", "a"], 1));
}

#[test]
fn what_was_published_before_an_end_comes_before_it_and_nothing_after_it() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    for _ in 0..50 {
        assert_eq!(ask(&mut client, "SUBSCRIBE a b").items()[2], Reply::Integer(1));
        client.reply().expect("the second confirmation");
        // Both travel at once: the messages come before the end of the subscription, or not at all.
        other.send(&lines(&"PUBLISH a x\nPUBLISH b y\n".repeat(20))).expect("sent");
        client.send(&lines("UNSUBSCRIBE a")).expect("sent");
        let mut has_ended = false;
        while !has_ended {
            let reply = client.reply().expect("a message or the confirmation");
            has_ended = reply.items()[0].text() == "unsubscribe";
        }
        client.send(&lines("UNSUBSCRIBE b")).expect("sent");
        loop {
            let reply = client.reply().expect("a message or the confirmation");
            assert_eq!(reply.items()[1].text(), "b", "{reply:?}");
            if reply.items()[0].text() == "unsubscribe" {
                break;
            }
        }
        (0..40).for_each(|_| drop(other.reply().expect("a count")));
    }
}

#[test]
fn a_pipeline_of_messages_arrives_in_order() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    ask(&mut client, "PSUBSCRIBE *");
    let request: String = (0..5_000).map(|number| format!("PUBLISH channel {number}\n")).collect();
    other.send(&lines(&request)).expect("sent");
    for number in 0..5_000 {
        assert_eq!(other.reply().expect("a count"), Reply::Integer(1));
        assert_eq!(client.reply().expect("a message").items()[3].text(), number.to_string());
    }
}

#[test]
fn long_messages_come_whole() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect(), server.connect());
    ask(&mut client, "SUBSCRIBE a");
    for size in [0, 1, 60_000, 70_000, 1 << 20, 5 << 20] {
        let text = vec![b'x'; size];
        assert_eq!(other.call_bytes(&[b"PUBLISH", b"a", &text]).expect("PUBLISH"), Reply::Integer(1));
        assert_eq!(client.reply().expect("a message").items()[2], Reply::Bulk(text));
    }
}

#[test]
fn who_listens_is_shown_and_forgotten_when_it_goes() {
    let server = Server::start();
    let (mut boss, mut client) = (server.connect(), server.connect());
    ask(&mut client, "CLIENT SETNAME listener");
    ask(&mut client, "SUBSCRIBE a");
    ask(&mut client, "PSUBSCRIBE b*");
    ask(&mut client, "SSUBSCRIBE c");
    assert_eq!(ask(&mut boss, "PUBSUB CHANNELS").items(), words(&["a"]));
    assert_eq!(ask(&mut boss, "PUBSUB CHANNELS b*").items(), []);
    assert_eq!(ask(&mut boss, "PUBSUB NUMSUB a b").items()[1], Reply::Integer(1));
    assert_eq!(ask(&mut boss, "PUBSUB NUMPAT"), Reply::Integer(1));
    assert_eq!(ask(&mut boss, "PUBSUB SHARDCHANNELS").items(), words(&["c"]));
    assert_eq!(ask(&mut boss, "PUBSUB SHARDNUMSUB c").items()[1], Reply::Integer(1));
    let list = ask(&mut boss, "CLIENT LIST TYPE pubsub").text();
    assert_eq!(list.lines().count(), 1);
    assert!(
        list.contains("name=listener") && list.contains(" flags=P ") && list.contains(" sub=1 psub=1 "),
        "{list}"
    );
    let info = ask(&mut boss, "INFO stats").text();
    assert!(info.contains("pubsub_channels:1\r\n") && info.contains("pubsub_patterns:1\r\n"), "{info}");
    drop(client);
    let is_forgotten = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        ask(&mut boss, "PUBSUB NUMPAT") == Reply::Integer(0)
            && ask(&mut boss, "PUBLISH a x") == Reply::Integer(0)
    });
    assert!(is_forgotten);
}

#[test]
fn who_does_not_read_is_closed_and_delays_nobody() {
    let server = Server::start();
    let (mut boss, mut slow, mut quick) = (server.connect(), server.connect(), server.connect());
    assert!(ask(&mut boss, "CONFIG SET client-output-buffer-limit").error().is_some());
    let set = [&b"CONFIG"[..], b"SET", b"client-output-buffer-limit", b"pubsub 4mb 0 0"];
    assert!(boss.call_bytes(&set).expect("CONFIG SET").is_ok());
    ask(&mut slow, "SUBSCRIBE a");
    ask(&mut quick, "SUBSCRIBE a");
    let text = vec![b'x'; 100_000];
    let mut counts = Vec::new();
    for _ in 0..400 {
        counts.push(boss.call_bytes(&[b"PUBLISH", b"a", &text]).expect("PUBLISH").integer());
        assert_eq!(quick.reply().expect("a message").items()[2], Reply::Bulk(text.clone()));
    }
    assert_eq!((counts.first(), counts.last()), (Some(&Some(2)), Some(&Some(1))));
    // What had been sent is still there to read; then comes the end.
    while let Ok(reply) = slow.reply() {
        assert_eq!(reply.items()[2], Reply::Bulk(text.clone()));
    }
    server.assert_answers();
}

#[test]
fn who_listens_may_be_silent_for_long() {
    let server = Server::start();
    let (mut boss, mut client) = (server.connect(), server.connect());
    ask(&mut client, "SUBSCRIBE a");
    assert!(ask(&mut boss, "CONFIG SET timeout 1").is_ok());
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(500));
        ask(&mut boss, "PING");
    }
    assert_eq!(ask(&mut boss, "PUBLISH a x"), Reply::Integer(1));
    assert_eq!(client.reply().expect("a message").items(), words(&["message", "a", "x"]));
    ask(&mut boss, "CONFIG SET timeout 0");
}
