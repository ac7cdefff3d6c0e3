//! What operators watch: commands as they come in, slow ones, delays.

use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::server::Server;

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

#[test]
fn monitor_shows_what_others_ask() {
    let server = Server::start();
    let (mut client, mut watcher) = (server.connect(), server.connect());
    assert!(ask(&mut watcher, "MONITOR").is_ok());
    ask(&mut client, "SET a 1");
    ask(&mut client, "CONFIG GET port");
    ask(&mut client, "GET a");
    let line = watcher.reply().expect("a line").text();
    let (_, command) = line.split_once("] ").expect("time, address, command");
    assert_eq!(command, "\"SET\" \"a\" \"1\"");
    let line = watcher.reply().expect("a line").text();
    assert!(line.ends_with("\"GET\" \"a\""), "commands for operators are not shown: {line}");
    assert_eq!(ask(&mut watcher, "RESET").text(), "RESET");
    ask(&mut client, "GET a");
    assert_eq!(ask(&mut watcher, "PING"), Reply::Simple("PONG".into()));
}

#[test]
fn slow_commands_are_logged() {
    let server = Server::start();
    let mut client = server.connect();
    ask(&mut client, "CLIENT SETNAME me");
    ask(&mut client, "CONFIG SET slowlog-log-slower-than 0");
    ask(&mut client, "SLOWLOG RESET");
    ask(&mut client, "SET a 1");
    ask(&mut client, "GET a");
    ask(&mut client, "CONFIG SET slowlog-log-slower-than -1");
    let entries = ask(&mut client, "SLOWLOG GET -1");
    let command =
        |entry: &Reply| -> Vec<String> { entry.items()[3].items().iter().map(Reply::text).collect() };
    let commands: Vec<Vec<String>> = entries.items().iter().map(command).collect();
    assert!(commands.contains(&vec!["SET".into(), "a".into(), "1".into()]), "{commands:?}");
    assert!(commands.contains(&vec!["GET".into(), "a".into()]), "{commands:?}");
    let entry = &entries.items()[0];
    assert_eq!((entry.items().len(), entry.items()[5].text()), (6, "me".to_owned()));
    assert!(ask(&mut client, "SLOWLOG LEN").integer() >= Some(2));
    assert_eq!(ask(&mut client, "SLOWLOG GET 1").items().len(), 1);
    assert!(ask(&mut client, "SLOWLOG RESET").is_ok());
    assert_eq!(ask(&mut client, "SLOWLOG LEN"), Reply::Integer(0));
    ask(&mut client, "CONFIG SET slowlog-log-slower-than 10000");
}
