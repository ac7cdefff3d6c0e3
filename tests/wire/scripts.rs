//! `EVAL` and `SCRIPT` on one node, as Redis answers.

use std::time::Duration;

use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::server::Server;

fn eval(connection: &mut Connection, source: &str, keys: &[&str], arguments: &[&str]) -> Reply {
    let count = keys.len().to_string();
    let mut words: Vec<&[u8]> = vec![b"EVAL", source.as_bytes(), count.as_bytes()];
    words.extend(keys.iter().chain(arguments).map(|word| word.as_bytes()));
    connection.call_bytes(&words).expect("a reply")
}

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

fn error(reply: &Reply) -> &str {
    reply.error().unwrap_or_default()
}

#[test]
fn scripts_run_with_their_keys_and_are_known_afterwards() {
    let server = Server::start();
    let mut client = server.connect();
    let source = "redis.call('set', KEYS[1], ARGV[1]) return {KEYS[1], redis.call('get', KEYS[1])}";
    let reply = eval(&mut client, source, &["{s}a"], &["7"]);
    assert_eq!(reply.items(), [Reply::from("{s}a"), Reply::from("7")]);
    let digest = client.call_bytes(&[b"SCRIPT", b"LOAD", source.as_bytes()]).expect("LOAD").text();
    assert_eq!(digest.len(), 40);
    let reply = ask(&mut client, &format!("EVALSHA {} 1 {{s}}b 8", digest.to_uppercase()));
    assert_eq!(reply.items(), [Reply::from("{s}b"), Reply::from("8")]);
    let reply = ask(&mut client, &format!("SCRIPT EXISTS {digest} {}", "0".repeat(40)));
    assert_eq!(reply.items(), [Reply::Integer(1), Reply::Integer(0)]);
    assert!(ask(&mut client, "SCRIPT FLUSH").is_ok());
    let reply = ask(&mut client, &format!("EVALSHA {digest} 1 {{s}}b 8"));
    assert_eq!(error(&reply), "NOSCRIPT No matching script. Please use EVAL.");
    assert_eq!(error(&ask(&mut client, "EVALSHA ffff 0")), "NOSCRIPT No matching script. Please use EVAL.");
    // Without keys, and known by that.
    assert_eq!(eval(&mut client, "return #ARGV", &[], &["a", "b"]), Reply::Integer(2));
    let digest = client.call_bytes(&[b"SCRIPT", b"LOAD", b"return #ARGV"]).expect("LOAD").text();
    assert_eq!(ask(&mut client, &format!("EVALSHA_RO {digest} 0 x")), Reply::Integer(1));
}

#[test]
fn arguments_and_scripts_that_are_wrong_are_refused_as_redis_does() {
    let server = Server::start();
    let mut client = server.connect();
    for (words, text) in [
        ("EVAL return_1 -1", "ERR Number of keys can't be negative"),
        ("EVAL return_1 x", "ERR value is not an integer or out of range"),
        ("EVAL return_1 2 a", "ERR Number of keys can't be greater than number of args"),
        ("EVAL return_1", "ERR wrong number of arguments for 'eval' command"),
        ("SCRIPT FLUSH x", "ERR SCRIPT FLUSH only support SYNC|ASYNC option"),
        ("SCRIPT KILL", "NOTBUSY No scripts in execution right now."),
        ("SCRIPT nosuch", "ERR unknown subcommand 'nosuch'. Try SCRIPT HELP."),
    ] {
        assert_eq!(error(&ask(&mut client, words)), text, "{words}");
    }
    let reply = client.call_bytes(&[b"SCRIPT", b"LOAD", b"bad bad"]).expect("LOAD");
    assert_eq!(
        error(&reply),
        "ERR Error compiling script (new function): user_script:1: '=' expected near 'bad'"
    );
    let reply = eval(&mut client, "return redis.call('incr', KEYS[1])", &["{s}n"], &[]);
    assert_eq!(reply, Reply::Integer(1));
    let reply = eval(
        &mut client,
        "redis.call('set', KEYS[1], 'x') return redis.call('incr', KEYS[1])",
        &["{s}n"],
        &[],
    );
    assert!(error(&reply).starts_with("ERR value is not an integer or out of range script: "), "{reply:?}");
    assert!(error(&reply).ends_with(", on @user_script:1."), "{reply:?}");
    // What was written before the error stays, as with Redis.
    assert_eq!(ask(&mut client, "GET {s}n").text(), "x");
    if server.pid().is_some() {
        let reply = eval(&mut client, "return redis.call('get', 'a')", &["b"], &[]);
        assert!(error(&reply).contains("do not hash to the same slot"), "{reply:?}");
        let reply = eval(&mut client, "return redis.call('get', 'a')", &[], &[]);
        assert!(error(&reply).contains("was given none"), "{reply:?}");
        let reply = eval(&mut client, "return 1", &["a", "b"], &[]);
        assert_eq!(error(&reply), "CROSSSLOT Keys in request don't hash to the same slot");
    }
}

#[test]
fn scripts_stand_in_transactions() {
    let server = Server::start();
    let mut client = server.connect();
    let source = "return redis.call('incrby', KEYS[1], ARGV[1])";
    let digest = client.call_bytes(&[b"SCRIPT", b"LOAD", source.as_bytes()]).expect("LOAD").text();
    ask(&mut client, "MULTI");
    for words in [
        "SET {s}n 1".to_owned(),
        format!("EVALSHA {digest} 1 {{s}}n 5"),
        "GET {s}n".to_owned(),
        format!("EVALSHA {} 1 {{s}}n 5", "f".repeat(40)),
    ] {
        assert_eq!(ask(&mut client, &words).text(), "QUEUED");
    }
    assert_eq!(eval(&mut client, "return 'no keys'", &[], &[]).text(), "QUEUED");
    assert_eq!(eval(&mut client, source, &["{s}n"], &["10"]).text(), "QUEUED");
    let reply = ask(&mut client, "EXEC");
    let items = reply.items();
    assert!(items[0].is_ok());
    assert_eq!(items[1..3], [Reply::Integer(6), Reply::from("6")]);
    assert!(error(&items[3]).starts_with("NOSCRIPT"), "{items:?}");
    assert_eq!(items[4..], [Reply::from("no keys"), Reply::Integer(16)]);
}

#[test]
fn a_script_that_runs_too_long_is_ended() {
    let server = Server::start();
    if server.pid().is_none() {
        return; // Redis goes on
    }
    let mut client = server.connect();
    assert!(ask(&mut client, "CONFIG SET lua-time-limit 100").is_ok());
    let reply = eval(&mut client, "redis.call('set', KEYS[1], 'there') while true do end", &["{s}a"], &[]);
    assert!(error(&reply).starts_with("ERR Script killed: it ran for more than 100 ms"), "{reply:?}");
    assert_eq!(ask(&mut client, "GET {s}a").text(), "there");
    assert!(ask(&mut client, "CONFIG SET busy-reply-threshold 60000").is_ok());
    let address = server.address();
    let endless = std::thread::spawn(move || {
        let mut client = Connection::open(address, Duration::from_secs(30)).expect("a connection");
        eval(&mut client, "while true do end", &[], &[])
    });
    let killed = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        let mut other = server.connect();
        let _ = other.patience(Duration::from_millis(300));
        other.call("SCRIPT KILL").is_ok_and(|reply| reply.is_ok())
    });
    assert!(killed);
    let reply = endless.join().expect("the script ends");
    assert!(error(&reply).starts_with("ERR Script killed by user with SCRIPT KILL."), "{reply:?}");
}
