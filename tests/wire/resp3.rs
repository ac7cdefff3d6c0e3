//! RESP3, and the way between the two protocols.

use korum_tests::harness::resp::Reply;
use korum_tests::harness::server::Server;

#[test]
fn hello_names_the_server_in_both_protocols() {
    let server = Server::start();
    let mut connection = server.connect();
    let Reply::Map(pairs) = connection.call("HELLO 3 SETNAME wire").expect("HELLO") else {
        panic!("not a map")
    };
    let keys: Vec<String> = pairs.iter().map(|(key, _)| key.text()).collect();
    assert_eq!(keys, ["server", "version", "proto", "id", "mode", "role", "modules"]);
    assert_eq!(pairs[2].1, Reply::Integer(3));
    assert_eq!(connection.call("CLIENT GETNAME").expect("a name").text(), "wire");

    let flat = connection.call("HELLO 2").expect("HELLO");
    assert_eq!(flat.items().len(), 14);
    assert_eq!(flat.items()[5], Reply::Integer(2));

    let error = connection.call("HELLO 4").expect("HELLO");
    assert_eq!(error, Reply::Error("NOPROTO unsupported protocol version".into()));
    let error = connection.call("HELLO x").expect("HELLO");
    assert_eq!(error, Reply::Error("ERR Protocol version is not an integer or out of range".into()));
}

#[test]
fn kinds_of_replies_follow_the_protocol() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"GET no:such\r\n").expect("GET");
    assert_eq!(connection.exactly(5).expect("null"), b"$-1\r\n");
    connection.call("HELLO 3").expect("HELLO");
    connection.send(b"GET no:such\r\n").expect("GET");
    assert_eq!(connection.exactly(3).expect("null"), b"_\r\n");
    assert!(matches!(connection.call("CONFIG GET maxmemory").expect("CONFIG"), Reply::Map(_)));
    assert!(matches!(connection.call("COMMAND DOCS get").expect("DOCS"), Reply::Map(_)));
    assert!(matches!(connection.call("INFO server").expect("INFO"), Reply::Verbatim(_)));
    let info = connection.call("COMMAND INFO get").expect("INFO");
    let flags = &info.items()[0].items()[2];
    assert!(matches!(flags, Reply::Set(_)), "{flags:?}");
    assert_eq!(connection.call("RESET").expect("RESET"), Reply::Simple("RESET".into()));
    connection.send(b"GET no:such\r\n").expect("GET");
    assert_eq!(connection.exactly(5).expect("null"), b"$-1\r\n", "RESET goes back to RESP2");
}
