//! Framing: inline commands, protocol errors, any split of the bytes, pipelines.

use korum_tests::harness::resp::{Reply, encode};
use korum_tests::harness::server::Server;

/// A request that breaks the protocol, and the error after which the server closes.
const BROKEN: &[(&[u8], &str)] = &[
    (b"SET 'a b\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
    (b"*abc\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
    (b"*2147483648\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
    (b"*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
    (b"*1\r\nPING\r\n", "-ERR Protocol error: expected '$', got 'P'\r\n"),
    (b"*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'\r\n"),
    (b"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
    (b"*1\r\n$abc\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
    (b"*1\r\n$536870913\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
    (b"*1\r\n$99999999999999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
];

#[test]
fn protocol_errors_are_those_of_redis_and_end_the_connection() {
    let server = Server::start();
    for (request, expected) in BROKEN {
        let (answer, closed) = server.exchange(request);
        assert_eq!(answer, *expected, "after {:?}", String::from_utf8_lossy(request));
        assert!(closed, "stays open after {:?}", String::from_utf8_lossy(request));
    }
    // what came before the broken request is answered first
    let (answer, closed) = server.exchange(b"PING\r\n*1\r\n!\r\n");
    assert_eq!((answer.as_str(), closed), ("+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n", true));
    // lines without an end
    for (start, name) in
        [("", "inline request"), ("*", "mbulk count string"), ("*1\r\n$", "bulk count string")]
    {
        let request = format!("{start}{}", "1".repeat(70_000));
        let (answer, closed) = server.exchange(request.as_bytes());
        assert_eq!((answer, closed), (format!("-ERR Protocol error: too big {name}\r\n"), true));
    }
    server.assert_answers();
}

#[test]
fn inline_commands_work_as_typed() {
    let server = Server::start();
    for (request, expected) in [
        ("PING\r\n", "+PONG\r\n"),
        ("ping\n", "+PONG\r\n"),
        ("  PING   hello  \r\n", "$5\r\nhello\r\n"),
        ("\r\n\r\nPING\r\n", "+PONG\r\n"),
        ("ECHO \"a b\\x41\\n\"\r\n", "$5\r\na bA\n\r\n"),
        ("ECHO 'it\\'s'\r\n", "$4\r\nit's\r\n"),
        ("ECHO ''\r\n", "$0\r\n\r\n"),
        ("*0\r\n*-1\r\nPING\r\n", "+PONG\r\n"),
    ] {
        assert_eq!(server.exchange(request.as_bytes()), (expected.to_owned(), false), "after {request:?}");
    }
}

#[test]
fn any_split_of_the_bytes_gives_the_same_replies() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.call("DEL split").expect("DEL");
    let request =
        [encode(&[b"SET", b"split", b"a\r\nb\0c"]), b"GET split\r\n".to_vec(), encode(&[b"PING"])].concat();
    let expected = b"+OK\r\n$6\r\na\r\nb\0c\r\n+PONG\r\n";
    for at in 1..request.len() {
        connection.send(&request[..at]).expect("the first part");
        std::thread::sleep(std::time::Duration::from_millis(1));
        connection.send(&request[at..]).expect("the second part");
        assert_eq!(connection.exactly(expected.len()).expect("replies"), expected, "split at {at}");
    }
    for byte in &request {
        connection.send(&[*byte]).expect("a byte");
    }
    assert_eq!(connection.exactly(expected.len()).expect("replies"), expected, "byte by byte");
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let server = Server::start();
    let mut connection = server.connect();
    let commands: Vec<_> = (0..20_000_u32)
        .map(|number| match number % 4 {
            0 => vec![b"SET".to_vec(), b"pipe".to_vec(), number.to_string().into_bytes()],
            1 => vec![b"GET".to_vec(), b"pipe".to_vec()],
            2 => vec![b"ECHO".to_vec(), number.to_string().into_bytes()],
            _ => vec![b"NOSUCH".to_vec()],
        })
        .collect();
    let replies = connection.pipeline(&commands).expect("replies");
    for (number, reply) in replies.iter().enumerate() {
        let expected = match number % 4 {
            0 => Reply::Simple("OK".into()),
            1 => Reply::from((number - 1).to_string().as_str()),
            2 => Reply::from(number.to_string().as_str()),
            _ => Reply::Error("ERR unknown command 'NOSUCH', with args beginning with: ".into()),
        };
        assert_eq!(*reply, expected, "reply {number}");
    }
}

#[test]
fn what_follows_a_command_of_the_whole_cluster_is_answered_too() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.patience(std::time::Duration::from_secs(5)).expect("a timeout");
    for alone in
        ["WAIT 0 0", "DBSIZE", "KEYS nothing", "SCAN 0", "FLUSHALL", "RANDOMKEY", "CLIENT ID", "INFO server"]
    {
        connection.send(format!("{alone}\r\nECHO after\r\n").as_bytes()).expect("both at once");
        let _ = connection.reply().expect(alone);
        assert_eq!(connection.reply().expect("what follows").text(), "after", "after {alone}");
    }
}

#[test]
fn a_large_value_comes_back_whole() {
    let server = Server::start();
    let mut connection = server.connect();
    let value: Vec<u8> =
        (0..8_u32 << 20).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert!(connection.call_bytes(&[b"SET", b"large", &value]).expect("SET").is_ok());
    assert_eq!(connection.call("GET large").expect("GET"), Reply::Bulk(value));
    assert_eq!(connection.call("DEL large").expect("DEL"), Reply::Integer(1));
}

#[test]
fn quit_is_answered_and_closes() {
    let server = Server::start();
    assert_eq!(server.exchange(b"QUIT\r\nPING\r\n"), ("+OK\r\n".to_owned(), true));
    // a client that says that it will send no more still gets its replies
    let mut connection = server.connect();
    connection.send(b"PING\r\n").expect("PING");
    connection.finish().expect("half closed");
    let (bytes, closed) = connection.rest().expect("the rest");
    assert_eq!((String::from_utf8_lossy(&bytes).as_ref(), closed), ("+PONG\r\n", true));
}
