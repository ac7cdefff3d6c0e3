//! `FUNCTION` and `FCALL` on one node, as Redis answers.

use std::time::{Duration, Instant};

use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::server::Server;

const COUNTER: &str = "#!lua name=counter
redis.register_function('add', function(keys, args) return redis.call('incrby', keys[1], args[1] or 1) end)
redis.register_function{function_name='look', callback=function(keys) return redis.call('get', keys[1]) end, flags={'no-writes'}}
redis.register_function('count', function(keys, args) return {#keys, #args} end)
";

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

fn load(connection: &mut Connection, code: &str) -> Reply {
    connection.call_bytes(&[b"FUNCTION", b"LOAD", b"REPLACE", code.as_bytes()]).expect("LOAD")
}

fn error(reply: &Reply) -> &str {
    reply.error().unwrap_or_default()
}

#[test]
fn libraries_are_loaded_called_listed_and_removed() {
    let server = Server::start();
    let mut client = server.connect();
    assert!(ask(&mut client, "FUNCTION FLUSH").is_ok());
    assert_eq!(error(&ask(&mut client, "FCALL add 1 {f}n")), "ERR Function not found");
    assert_eq!(load(&mut client, COUNTER).text(), "counter");
    let again = client.call_bytes(&[b"FUNCTION", b"LOAD", COUNTER.as_bytes()]).expect("LOAD");
    assert_eq!(error(&again), "ERR Library 'counter' already exists");
    for (words, reply) in [
        ("FCALL add 1 {f}n", Reply::Integer(1)),
        ("FCALL ADD 1 {f}n 5", Reply::Integer(6)),
        ("FCALL_RO look 1 {f}n", Reply::from("6")),
    ] {
        assert_eq!(ask(&mut client, words), reply, "{words}");
    }
    for (words, text) in [
        ("FCALL nosuch 0", "ERR Function not found"),
        ("FCALL count x", "ERR Bad number of keys provided"),
        ("FCALL count -1", "ERR Number of keys can't be negative"),
        ("FCALL count 2 a", "ERR Number of keys can't be greater than number of args"),
        ("FCALL count", "ERR wrong number of arguments for 'fcall' command"),
        ("FCALL_RO add 1 {f}n", "ERR Can not execute a script with write flag using *_ro command."),
        ("FUNCTION LIST foo", "ERR Unknown argument foo"),
        ("FUNCTION LIST LIBRARYNAME", "ERR library name argument was not given"),
        ("FUNCTION LOAD x y", "ERR Unknown option given: x"),
        ("FUNCTION LOAD x", "ERR Missing library metadata"),
        ("FUNCTION DELETE nosuch", "ERR Library not found"),
        ("FUNCTION FLUSH x", "ERR FUNCTION FLUSH only supports SYNC|ASYNC option"),
        (
            "FUNCTION FLUSH sync x",
            "ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.",
        ),
        ("FUNCTION RESTORE x", "ERR DUMP payload version or checksum are wrong"),
        (
            "FUNCTION RESTORE x foo",
            "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
        ),
        ("FUNCTION KILL", "NOTBUSY No scripts in execution right now."),
        ("FUNCTION nosuch", "ERR unknown subcommand 'nosuch'. Try FUNCTION HELP."),
    ] {
        assert_eq!(error(&ask(&mut client, words)), text, "{words}");
    }
    let list = ask(&mut client, "FUNCTION LIST WITHCODE LIBRARYNAME COUNT*");
    let library = list.items()[0].items();
    assert_eq!(library[1].text(), "counter");
    assert_eq!(library[3].text(), "LUA");
    assert_eq!(library[5].items().len(), 3);
    assert_eq!(library[7].text(), COUNTER);
    let stats = ask(&mut client, "FUNCTION STATS");
    let engine = stats.items()[3].items()[1].items();
    assert_eq!((&engine[1], &engine[3]), (&Reply::Integer(1), &Reply::Integer(3)));
    assert!(ask(&mut client, "FUNCTION DELETE counter").is_ok());
    assert_eq!(error(&ask(&mut client, "FCALL add 1 {f}n")), "ERR Function not found");
    assert!(ask(&mut client, "FUNCTION HELP").items().len() > 20);
}

#[test]
fn functions_are_dumped_restored_and_no_keys() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "FUNCTION FLUSH");
    ask(&mut client, "FLUSHALL");
    load(&mut client, COUNTER);
    let dump = match ask(&mut client, "FUNCTION DUMP") {
        Reply::Bulk(bytes) => bytes,
        other => panic!("{other:?}"),
    };
    let mut restore = |words: &[&[u8]]| {
        let words: Vec<&[u8]> =
            [&b"FUNCTION"[..], b"RESTORE", &dump].into_iter().chain(words.iter().copied()).collect();
        client.call_bytes(&words).expect("RESTORE")
    };
    assert_eq!(error(&restore(&[])), "ERR Library counter already exists");
    assert!(restore(&[b"REPLACE"]).is_ok() && restore(&[b"flush"]).is_ok());
    assert_eq!(ask(&mut client, "DBSIZE"), Reply::Integer(0));
    assert_eq!(ask(&mut client, "KEYS *").items().len(), 0);
    assert_eq!(ask(&mut client, "RANDOMKEY"), Reply::Null);
    assert!(ask(&mut client, "FLUSHALL").is_ok() && ask(&mut client, "FLUSHDB").is_ok());
    assert_eq!(ask(&mut client, "FCALL count 0 a b").items(), [Reply::Integer(0), Reply::Integer(2)]);
    // A key that looks like the one that they stand under is another one.
    let key: &[u8] = b"\xff\xfffunctions";
    assert!(client.call_bytes(&[b"SET", key, b"mine"]).expect("SET").is_ok());
    assert_eq!(client.call_bytes(&[b"GET", key]).expect("GET").text(), "mine");
    assert_eq!(client.call_bytes(&[b"DEL", key]).expect("DEL"), Reply::Integer(1));
    assert_eq!(ask(&mut client, "FCALL count 0").items(), [Reply::Integer(0), Reply::Integer(0)]);
    ask(&mut client, "FUNCTION FLUSH");
}

#[test]
fn functions_stand_in_transactions() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "FUNCTION FLUSH");
    load(&mut client, COUNTER);
    ask(&mut client, "DEL {f}t");
    ask(&mut client, "MULTI");
    for words in [
        "SET {f}t 1",
        "FCALL add 1 {f}t 5",
        "GET {f}t",
        "FCALL count 0 a",
        "FCALL nosuch 1 {f}t",
        "FCALL_RO look 1 {f}t",
    ] {
        assert_eq!(ask(&mut client, words).text(), "QUEUED");
    }
    let reply = ask(&mut client, "EXEC");
    let items = reply.items();
    assert_eq!(items[1..3], [Reply::Integer(6), Reply::from("6")]);
    assert_eq!(items[3].items(), [Reply::Integer(0), Reply::Integer(1)]);
    assert_eq!(error(&items[4]), "ERR Function not found");
    assert_eq!(items[5], Reply::from("6"));
    // The libraries, too.
    ask(&mut client, "MULTI");
    let code = "#!lua name=other\nredis.register_function('other', function() return 7 end)";
    assert_eq!(load(&mut client, code).text(), "QUEUED");
    ask(&mut client, "FCALL other 0");
    ask(&mut client, "FUNCTION DELETE other");
    ask(&mut client, "FCALL other 0");
    let reply = ask(&mut client, "EXEC");
    let items = reply.items();
    assert_eq!(
        (items[0].text(), &items[1], items[2].is_ok()),
        ("other".to_owned(), &Reply::Integer(7), true)
    );
    assert_eq!(error(&items[3]), "ERR Function not found");
    ask(&mut client, "FUNCTION FLUSH");
}

#[test]
fn a_function_that_runs_is_shown_and_can_be_killed() {
    let server = Server::start();
    if server.pid().is_none() {
        return; // Redis answers nothing else meanwhile
    }
    let (mut client, mut other) = (server.connect(), server.connect());
    // What visits all partitions waits for the one where it runs, perhaps on the thread of the other connection: then it
    // is not seen, and another one is begun.
    assert!(ask(&mut client, "CONFIG SET lua-time-limit 1500").is_ok());
    load(&mut client, "#!lua name=slow\nredis.register_function('slow', function() while true do end end)");
    assert_eq!(error(&ask(&mut other, "FUNCTION KILL")), "NOTBUSY No scripts in execution right now.");
    let runner = std::thread::spawn(move || {
        for _ in 0..20 {
            let reply = ask(&mut client, "FCALL slow 1 {f}k arg");
            if error(&reply).starts_with("ERR Script killed by user with FUNCTION KILL.") {
                return true;
            }
            assert!(
                error(&reply).starts_with("ERR Script killed: it ran for more than 1500 ms"),
                "{reply:?}"
            );
        }
        false
    });
    while !runner.is_finished() {
        let stats = ask(&mut other, "FUNCTION STATS");
        let running = &stats.items()[1];
        if *running != Reply::Null {
            let fields = running.items();
            assert_eq!((fields[0].text(), fields[1].text()), ("name".to_owned(), "slow".to_owned()));
            let command: Vec<String> = fields[3].items().iter().map(Reply::text).collect();
            assert_eq!(command, ["FCALL", "slow", "1", "{f}k", "arg"]);
            assert_eq!(error(&ask(&mut other, "SCRIPT KILL")), "NOTBUSY No scripts in execution right now.");
            ask(&mut other, "FUNCTION KILL");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(runner.join().expect("it ends"), "it was seen and killed");
}

#[test]
fn a_pattern_that_goes_back_and_forth_is_stopped_in_time() {
    let server = Server::start();
    if server.pid().is_none() {
        return; // Redis takes hours
    }
    let mut client = server.connect();
    assert!(ask(&mut client, "CONFIG SET lua-time-limit 100").is_ok());
    let script = "return string.find(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b')";
    let began = Instant::now();
    let reply = client.call_bytes(&[b"EVAL", script.as_bytes(), b"0"]).expect("EVAL");
    assert!(error(&reply).starts_with("ERR Script killed: it ran for more than 100 ms"), "{reply:?}");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(ask(&mut client, "PING").text(), "PONG");
}
