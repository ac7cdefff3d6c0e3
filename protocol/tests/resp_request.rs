//! The request parser from outside: texts, splits, hostile bytes, and redis-protocol as the oracle.

use korum_protocol::resp::{Parsed, RequestError, RequestLimits, RequestParser};
use proptest::prelude::*;
use redis_protocol::resp2;

/// Everything that a whole input yields, one request after the other.
#[derive(Debug, PartialEq)]
struct Outcome {
    requests: Vec<Vec<Vec<u8>>>,
    error: Option<RequestError>,
    left: usize,
}

/// Parses `input`, delivered in `pieces` and then the rest at once.
fn parse_in_pieces(input: &[u8], pieces: &[usize], limits: RequestLimits) -> Outcome {
    let mut parser = RequestParser::new(limits);
    let mut outcome = Outcome { requests: Vec::new(), error: None, left: 0 };
    let (mut start, mut end) = (0, 0);
    let mut pieces = pieces.iter().copied();
    loop {
        match parser.parse(&input[start..end]) {
            Ok(Parsed::Incomplete) if end == input.len() => break,
            Ok(Parsed::Incomplete) => end = (end + pieces.next().unwrap_or(usize::MAX >> 1)).min(input.len()),
            Ok(Parsed::Empty { consumed }) => start += consumed,
            Ok(Parsed::Request { consumed }) => {
                let args = parser.args(&input[start..end]);
                outcome.requests.push(args.iter().map(<[u8]>::to_vec).collect());
                start += consumed;
            }
            Err(error) => {
                outcome.error = Some(error);
                break;
            }
        }
    }
    outcome.left = input.len() - start;
    outcome
}

fn parse(input: &[u8]) -> Outcome {
    parse_in_pieces(input, &[], RequestLimits::default())
}

fn one(input: &[u8]) -> Vec<Vec<u8>> {
    let outcome = parse(input);
    assert_eq!((outcome.requests.len(), outcome.error), (1, None), "{}", input.escape_ascii());
    outcome.requests.into_iter().next().expect("one request")
}

fn text_of_error(input: &[u8]) -> String {
    let error = parse(input).error.unwrap_or_else(|| panic!("accepted: {}", input.escape_ascii()));
    String::from_utf8(error.reply()).expect("ascii")
}

#[test]
fn pipelined_requests_come_out_in_order() {
    let input = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n";
    let outcome = parse(input);
    let expected: &[&[&[u8]]] = &[&[b"GET", b"a"], &[b"PING"], &[b"SET", b"a", b""]];
    assert_eq!(outcome.requests, expected);
    assert_eq!((outcome.error, outcome.left), (None, 0));
}

#[test]
fn nothing_to_run_is_skipped() {
    for input in [&b"\r\n"[..], b"\n", b"  \r\n", b"*0\r\n", b"*-1\r\n", b"*-5\r\n"] {
        assert_eq!(
            parse(input),
            Outcome { requests: vec![], error: None, left: 0 },
            "{}",
            input.escape_ascii()
        );
    }
}

#[test]
fn errors_have_the_texts_of_redis() {
    let too_long = |start: &[u8]| [start, &[b'1'; 70_000][..]].concat();
    for (input, text) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*1 \r\n", "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$+4\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$9223372036854775807\r\n", "invalid bulk length"),
        (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
        (b"*1\r\n$4\r\nPINGXX", "expected CRLF after a bulk string"),
        (b"GET \"a\r\n", "unbalanced quotes in request"),
        (b"GET \"a\"b\r\n", "unbalanced quotes in request"),
        (b"GET 'a'b\r\n", "unbalanced quotes in request"),
        (&too_long(b"GET "), "too big inline request"),
        (&too_long(b"*"), "too big mbulk count string"),
        (&too_long(b"*1\r\n$"), "too big bulk count string"),
    ] {
        assert_eq!(text_of_error(input), format!("ERR Protocol error: {text}"));
    }
}

#[test]
fn inline_quotes_follow_redis() {
    let cases: &[(&[u8], &[&[u8]])] = &[
        (b"GET foo\r\n", &[b"GET", b"foo"]),
        (b"  GET\t foo  \n", &[b"GET", b"foo"]),
        (b"SET a \"x y\"\r\n", &[b"SET", b"a", b"x y"]),
        (b"SET a \"\\x41\\n\\r\\t\\b\\a\\q\\\"\"\r\n", &[b"SET", b"a", b"A\n\r\t\x08\x07q\""]),
        (b"SET a \"\\x4\"\r\n", &[b"SET", b"a", b"x4"]),
        (b"SET a 'x\\ny\\'z'\r\n", &[b"SET", b"a", b"x\\ny'z"]),
        (b"SET a \"\"\r\n", &[b"SET", b"a", b""]),
        (b"SET pre\"x y\" ''\r\n", &[b"SET", b"prex y", b""]),
        (b"GET a\0b\r\n", &[b"GET", b"a"]),
    ];
    for (input, expected) in cases {
        assert_eq!(one(input), *expected, "{}", input.escape_ascii());
    }
}

#[test]
fn wanted_says_how_much_of_a_bulk_is_missing() {
    let mut parser = RequestParser::default();
    assert_eq!(parser.parse(b"*1\r\n$100\r\nabc"), Ok(Parsed::Incomplete));
    assert_eq!(parser.wanted(), 99);
    assert!(parser.is_midway());
}

fn encode(args: &[Vec<u8>]) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    korum_protocol::resp::encode_request(args, &mut out);
    out.to_vec()
}

fn arguments() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..8)
}

/// Bytes that look like RESP more often than not.
fn nearly_resp() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"*2\r\n".to_vec()),
        Just(b"$3\r\nabc\r\n".to_vec()),
        Just(b"$0\r\n\r\n".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"GET a".to_vec()),
        arguments().prop_map(|args| encode(&args)),
        prop::collection::vec(prop::sample::select(b"*$-0123456789\r\n\"'\\x a".to_vec()), 0..12),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_result(
        input in nearly_resp(),
        pieces in prop::collection::vec(1usize..9, 0..200),
        line_bytes in prop_oneof![Just(16usize), Just(64 << 10)],
    ) {
        let limits = RequestLimits { bulk_bytes: 1000, arguments: 100, line_bytes };
        let whole = parse_in_pieces(&input, &[], limits);
        prop_assert_eq!(&parse_in_pieces(&input, &pieces, limits), &whole);
        prop_assert_eq!(&parse_in_pieces(&input, &vec![1; input.len()], limits), &whole);
    }

    #[test]
    fn what_redis_protocol_decodes_we_parse_the_same(requests in prop::collection::vec(arguments(), 1..5)) {
        use resp2::types::RangeFrame::{Array, BulkString};
        let input: Vec<u8> = requests.iter().flat_map(|args| encode(args)).collect();
        let mut start = 0;
        let mut expected = Vec::new();
        while let Ok(Some((Array(frames), consumed))) = resp2::decode::decode_range(&input[start..]) {
            let bulk = |frame: &resp2::types::RangeFrame| match frame {
                BulkString((from, to)) => input[start + from..start + to].to_vec(),
                other => panic!("unexpected {other:?}"),
            };
            expected.push(frames.iter().map(bulk).collect::<Vec<_>>());
            start += consumed;
        }
        prop_assert_eq!(&expected, &requests);
        prop_assert_eq!(parse(&input).requests, requests);
    }

    #[test]
    fn inline_text_comes_back_unescaped(args in arguments()) {
        let mut line = Vec::new();
        for arg in &args {
            line.push(b'"');
            line.extend(arg.iter().flat_map(|byte| format!("\\x{byte:02x}").into_bytes()));
            line.extend_from_slice(b"\" ");
        }
        line.push(b'\n');
        prop_assert_eq!(one(&line), args);
    }
}
