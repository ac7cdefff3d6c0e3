//! Replies and error texts that clients match on. (The long tail is compared with Redis itself: `py/differential.py`.)

use korum_tests::harness::server::Server;

/// An inline command and what exactly comes back.
const EXCHANGES: &[(&str, &str)] = &[
    ("DEL a b c n {t}1 {t}2", ""), // whatever was there
    ("SET a 1", "+OK\r\n"),
    ("GET a", "$1\r\n1\r\n"),
    ("GET nothing", "$-1\r\n"),
    ("SET a 2 NX", "$-1\r\n"),
    ("SET a 2 XX GET", "$1\r\n1\r\n"),
    ("SET a 3 EX 0", "-ERR invalid expire time in 'set' command\r\n"),
    ("SET a 3 EX x", "-ERR value is not an integer or out of range\r\n"),
    ("SET a 3 NX XX", "-ERR syntax error\r\n"),
    ("INCR a", ":3\r\n"),
    ("SET b text", "+OK\r\n"),
    ("INCR b", "-ERR value is not an integer or out of range\r\n"),
    ("INCRBYFLOAT a 0.5", "$3\r\n3.5\r\n"),
    ("APPEND b s", ":5\r\n"),
    ("STRLEN b", ":5\r\n"),
    ("GETRANGE b 0 -2", "$4\r\ntext\r\n"),
    ("SETRANGE c 3 x", ":4\r\n"),
    ("GET c", "$4\r\n\0\0\0x\r\n"),
    ("TTL a", ":-1\r\n"),
    ("TTL nothing", ":-2\r\n"),
    ("EXPIRE a 100", ":1\r\n"),
    ("TTL a", ":100\r\n"),
    ("PERSIST a", ":1\r\n"),
    ("EXPIRE a -1", ":1\r\n"),
    ("EXISTS a b b", ":2\r\n"),
    ("TYPE b", "+string\r\n"),
    ("TYPE a", "+none\r\n"),
    ("RENAME {t}nothing {t}x", "-ERR no such key\r\n"),
    ("MSET {t}1 x {t}2 y", "+OK\r\n"),
    ("MGET {t}1 nothing {t}2", "*3\r\n$1\r\nx\r\n$-1\r\n$1\r\ny\r\n"),
    ("MSET a", "-ERR wrong number of arguments for 'mset' command\r\n"),
    ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command\r\n"),
    ("DEL {t}1 {t}2 nothing", ":2\r\n"),
    ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
    ("get a b", "-ERR wrong number of arguments for 'get' command\r\n"),
    ("NOSUCH a b", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' \r\n"),
    ("CLIENT NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.\r\n"),
    ("CONFIG", "-ERR wrong number of arguments for 'config' command\r\n"),
    ("CLIENT GETNAME", "$-1\r\n"),
    ("CLIENT SETNAME me", "+OK\r\n"),
    ("CLIENT GETNAME", "$2\r\nme\r\n"),
    ("CLIENT SETNAME 'a b'", "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"),
    ("SELECT 0", "+OK\r\n"),
    ("SELECT 1000", "-ERR DB index is out of range\r\n"),
    ("SELECT x", "-ERR value is not an integer or out of range\r\n"),
    ("ECHO hello", "$5\r\nhello\r\n"),
    ("PING", "+PONG\r\n"),
    ("PING a b", "-ERR wrong number of arguments for 'ping' command\r\n"),
    (
        "AUTH x",
        "-ERR AUTH <password> called without any password configured for the default user. \
      Are you sure your configuration is correct?\r\n",
    ),
    ("OBJECT ENCODING b", "$3\r\nraw\r\n"),
    ("OBJECT REFCOUNT nothing", "$-1\r\n"),
    ("COMMAND GETKEYS MSET a 1 b 2", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
    ("COMMAND INFO nosuch", "*1\r\n$-1\r\n"),
    ("RESET", "+RESET\r\n"),
];

#[test]
fn replies_are_those_of_redis() {
    let server = Server::start();
    let mut connection = server.connect();
    for (request, expected) in EXCHANGES {
        connection.send(format!("{request}\r\n").as_bytes()).expect("a request");
        if expected.is_empty() {
            connection.reply().expect("a reply");
            continue;
        }
        // read as many bytes as are expected, then make sure that nothing else comes
        connection.send(b"ECHO end-of-it\r\n").expect("a request");
        let want = format!("{expected}$9\r\nend-of-it\r\n");
        let mut answer = Vec::new();
        while !answer.ends_with(b"$9\r\nend-of-it\r\n") {
            let byte = connection.exactly(1).unwrap_or_else(|error| {
                panic!("{request}: {error} after {:?}", String::from_utf8_lossy(&answer));
            });
            answer.extend_from_slice(&byte);
        }
        assert_eq!(String::from_utf8_lossy(&answer), want, "after {request}");
    }
}

#[test]
fn keys_and_values_are_binary_safe() {
    let server = Server::start();
    let mut connection = server.connect();
    let key: Vec<u8> = (0..=255).collect();
    let value: Vec<u8> = (0..=255).rev().collect();
    assert!(connection.call_bytes(&[b"SET", &key, &value]).expect("SET").is_ok());
    let found = connection.call_bytes(&[b"GET", &key]).expect("GET");
    assert_eq!(found, korum_tests::harness::resp::Reply::Bulk(value));
    assert!(
        connection.call_bytes(&[b"SET", b"", b""]).expect("SET").is_ok(),
        "empty keys and values are allowed"
    );
    assert_eq!(connection.call_bytes(&[b"STRLEN", b""]).expect("STRLEN").integer(), Some(0));
    let deleted = connection.call_bytes(&[b"DEL", &key, b""]).expect("DEL");
    assert_eq!(deleted.integer(), Some(2));
}

#[test]
fn scan_finds_every_key_once_while_nothing_changes() {
    let server = Server::start();
    let mut connection = server.connect();
    let commands: Vec<_> = (0..3_000)
        .map(|number| vec![b"SET".to_vec(), format!("scan:{number}").into_bytes(), b"x".to_vec()])
        .collect();
    assert!(
        connection.pipeline(&commands).expect("SET").iter().all(korum_tests::harness::resp::Reply::is_ok)
    );
    let mut cursor = "0".to_owned();
    let mut seen = std::collections::BTreeSet::new();
    for step in 0.. {
        assert!(step < 100_000, "SCAN does not end");
        let reply = connection.call(&format!("SCAN {cursor} MATCH scan:* COUNT 100")).expect("SCAN");
        let [next, keys] = reply.items() else { panic!("SCAN answers {reply:?}") };
        seen.extend(keys.items().iter().map(korum_tests::harness::resp::Reply::text));
        cursor = next.text();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 3_000);
    for number in 0..3_000 {
        connection
            .send(&korum_tests::harness::resp::encode(&[b"DEL", format!("scan:{number}").as_bytes()]))
            .expect("DEL");
    }
    for _ in 0..3_000 {
        assert_eq!(connection.reply().expect("DEL").integer(), Some(1));
    }
}

#[test]
fn keys_expire_on_time_and_without_being_read() {
    let server = Server::start();
    let mut connection = server.connect();
    let size = |connection: &mut korum_tests::harness::resp::Connection| {
        connection.call("DBSIZE").expect("DBSIZE").integer().expect("a number")
    };
    let before = size(&mut connection);
    for number in 0..200 {
        assert!(connection.call(&format!("SET expire:{number} x PX 300")).expect("SET").is_ok());
    }
    let remaining = connection.call("PTTL expire:199").expect("PTTL").integer().expect("a number");
    assert!((1..=300).contains(&remaining), "PTTL {remaining}");
    korum_tests::harness::wait::until("lazy expiry", std::time::Duration::from_secs(2), || match connection
        .call("GET expire:0")
        .expect("GET")
    {
        korum_tests::harness::resp::Reply::Null => Ok(()),
        other => Err(format!("{other:?}")),
    });
    korum_tests::harness::wait::until("active expiry", std::time::Duration::from_secs(10), || {
        let now = size(&mut connection);
        if now <= before { Ok(()) } else { Err(format!("{} keys left", now - before)) }
    });
}
