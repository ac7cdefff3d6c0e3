//! What a command on several slots becomes for each of them, and how answers are put together.

use korum_protocol::command::resolve;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};

use super::*;

fn caller(port: Port) -> Caller {
    Caller::plain(port)
}

fn several_at(port: Port, line: &str) -> Option<Several> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let request = encoded(&words);
    let mut parser = RequestParser::new(RequestLimits::default());
    assert!(matches!(parser.parse(&request), Ok(Parsed::Request { .. })));
    let args = parser.args(&request);
    Several::of(resolve(&args).expect("a command"), &args, caller(port))
}

fn several(line: &str) -> Several {
    several_at(Port::Client, line).expect("keys of several slots")
}

/// A request as a line.
fn line(request: &Bytes) -> String {
    let mut parser = RequestParser::new(RequestLimits::default());
    if request.is_empty() {
        return String::new();
    }
    assert_eq!(parser.parse(request), Ok(Parsed::Request { consumed: request.len() }));
    let args = parser.args(request);
    args.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_slot_gets_the_command_with_its_own_keys() {
    let (a, b) = (slot_of(b"a"), slot_of(b"b"));
    for (whole, parts) in [
        ("BLPOP a1{a} b a2{a} 5", ["BLPOP a1{a} a2{a} 5", "BLPOP b 5"]),
        ("bzpopmax a1{a} b a2{a} 0", ["bzpopmax a1{a} a2{a} 0", "bzpopmax b 0"]),
        (
            "BLMPOP 1.5 3 a1{a} b a2{a} LEFT COUNT 7",
            ["BLMPOP 1.5 2 a1{a} a2{a} LEFT COUNT 7", "BLMPOP 1.5 1 b LEFT COUNT 7"],
        ),
        ("BZMPOP 0 3 a1{a} b a2{a} MIN", ["BZMPOP 0 2 a1{a} a2{a} MIN", "BZMPOP 0 1 b MIN"]),
    ] {
        let several = several(whole);
        assert!(several.takes);
        let found: Vec<String> = several.parts.iter().map(|part| line(&part.run)).collect();
        assert_eq!(found, parts);
        let kind = if whole.to_ascii_lowercase().starts_with("bz") { "ZSET" } else { "LIST" };
        let [first, second] = &several.parts[..] else { panic!("two parts") };
        assert_eq!(line(&first.look), format!("KORUM READY {a} ANY a1{{a}} a2{{a}}"));
        assert_eq!(line(&first.watch), format!("KORUM READY {a} {kind} a1{{a}} a2{{a}}"));
        assert_eq!(line(&second.watch), format!("KORUM READY {b} {kind} b"));
        assert_eq!((&first.numbers[..], &second.numbers[..]), (&[0, 2][..], &[1][..]));
    }
}

#[test]
fn streams_are_read_with_their_own_ids() {
    let several = several("XREAD BLOCK 70 COUNT 2 STREAMS a1{a} b a2{a} 1-1 $ 3");
    let found: Vec<[String; 3]> =
        several.parts.iter().map(|part| [&part.look, &part.run, &part.watch].map(line)).collect();
    assert_eq!(
        found,
        [
            [
                "",
                "XREAD COUNT 2 STREAMS a1{a} a2{a} 1-1 3",
                "XREAD BLOCK 0 COUNT 2 STREAMS a1{a} a2{a} 1-1 3"
            ],
            ["", "XREAD COUNT 2 STREAMS b $", "XREAD BLOCK 0 COUNT 2 STREAMS b $"],
        ]
    );
    assert!(!several.takes);
}

#[test]
fn what_has_one_slot_or_cannot_be_taken_apart_stays_whole() {
    for line in [
        "BLPOP a1{a} a2{a} 0",
        "BLPOP a 0",
        "BLMOVE a b LEFT LEFT 0",
        "BRPOPLPUSH a b 0",
        "XREADGROUP GROUP g c BLOCK 0 STREAMS a b > >",
        "XREAD STREAMS a b",
        "BLMPOP 0 9 a b LEFT",
        "MGET a b",
    ] {
        assert!(several_at(Port::Client, line).is_none(), "{line}");
    }
    for port in [Port::Cluster, Port::Forwarded] {
        assert!(several_at(port, "BLPOP a b 0").is_none(), "{port:?}");
    }
}

#[test]
fn streams_come_back_in_the_order_of_the_request() {
    let several = several("XREAD STREAMS a1{a} b a2{a} 0 0 0");
    let joined = |replies: [&str; 2], version| {
        let replies: Vec<Rope> = replies.iter().map(|reply| reply.as_bytes().into()).collect();
        let joined = several.joined(&replies, version)?;
        Some(String::from_utf8(joined.into_bytes().to_vec()).expect("text"))
    };
    let stream = |name: &str| format!("${}\r\n{name}\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*0\r\n", name.len());
    let [first, second, third] = ["a1{a}", "b", "a2{a}"].map(stream);
    let two = joined(
        [&format!("*2\r\n*2\r\n{first}*2\r\n{third}"), &format!("*1\r\n*2\r\n{second}")],
        ProtocolVersion::Resp2,
    );
    assert_eq!(two, Some(format!("*3\r\n*2\r\n{first}*2\r\n{second}*2\r\n{third}")));
    let three =
        joined([&format!("%2\r\n{first}{third}"), &format!("%1\r\n{second}")], ProtocolVersion::Resp3);
    assert_eq!(three, Some(format!("%3\r\n{first}{second}{third}")));
    let last = joined([&format!("*1\r\n*2\r\n{third}"), "*-1\r\n"], ProtocolVersion::Resp2);
    assert_eq!(last, Some(format!("*1\r\n*2\r\n{third}")));
    assert_eq!(joined(["*-1\r\n", "*-1\r\n"], ProtocolVersion::Resp2), None);
    assert_eq!(joined(["_\r\n", "_\r\n"], ProtocolVersion::Resp3), None);
}
