//! Replies written by `ReplyWriter` come back from `ReplyDecoder`; hostile replies are refused.

use bytes::{Bytes, BytesMut};
use korum_protocol::resp::{DecodeError, ProtocolVersion, Reply, ReplyDecoder, ReplyWriter};
use proptest::prelude::*;

fn decode_all(input: &[u8], piece: usize) -> Result<Vec<Reply>, DecodeError> {
    let (mut decoder, mut buffer, mut replies) = (ReplyDecoder::new(), BytesMut::new(), Vec::new());
    for part in input.chunks(piece.max(1)) {
        buffer.extend_from_slice(part);
        while let Some(reply) = decoder.decode(&mut buffer)? {
            replies.push(reply);
        }
    }
    assert!(buffer.is_empty(), "left over: {buffer:?}");
    Ok(replies)
}

fn one(input: &[u8]) -> Reply {
    let mut replies =
        decode_all(input, usize::MAX).unwrap_or_else(|error| panic!("{error}: {}", input.escape_ascii()));
    assert_eq!(replies.len(), 1);
    replies.remove(0)
}

fn text(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn every_type_is_decoded() {
    let nulls = vec![Reply::Null, Reply::Null, Reply::Array(vec![Reply::Null])];
    let pairs = vec![
        (Reply::Simple(text("b")), Reply::Integer(1)),
        (Reply::Array(vec![Reply::Simple(text("a"))]), Reply::Boolean(true)),
    ];
    for (input, expected) in [
        (&b"+OK\r\n"[..], Reply::Simple(text("OK"))),
        (b"+\r\n", Reply::Simple(text(""))),
        (b"-ERR no\r\n", Reply::Error(text("ERR no"))),
        (b"!6\r\nERR no\r\n", Reply::Error(text("ERR no"))),
        (b":-7\r\n", Reply::Integer(-7)),
        (b"$3\r\na\r\n\r\n", Reply::Bulk(text("a\r\n"))),
        (b"$0\r\n\r\n", Reply::Bulk(text(""))),
        (b"$-1\r\n", Reply::Null),
        (b"*-1\r\n", Reply::Null),
        (b"_\r\n", Reply::Null),
        (b"*0\r\n", Reply::Array(vec![])),
        (b"*3\r\n$-1\r\n*-1\r\n*1\r\n_\r\n", Reply::Array(nulls)),
        (b"%2\r\n+b\r\n:1\r\n*1\r\n+a\r\n#t\r\n", Reply::Map(pairs)),
        (b"~2\r\n:1\r\n:1\r\n", Reply::Set(vec![Reply::Integer(1), Reply::Integer(1)])),
        (b">1\r\n+x\r\n", Reply::Push(vec![Reply::Simple(text("x"))])),
        (b",1.5\r\n", Reply::Double(1.5)),
        (b",inf\r\n", Reply::Double(f64::INFINITY)),
        (b",-inf\r\n", Reply::Double(f64::NEG_INFINITY)),
        (b"#f\r\n", Reply::Boolean(false)),
        (b"(123456789012345678901234567890\r\n", Reply::BigNumber(text("123456789012345678901234567890"))),
        (b"=7\r\ntxt:abc\r\n", Reply::Verbatim { format: *b"txt", text: text("abc") }),
        (b"|1\r\n+ttl\r\n:1\r\n*1\r\n|0\r\n:5\r\n", Reply::Array(vec![Reply::Integer(5)])),
    ] {
        assert_eq!(one(input), expected, "{}", input.escape_ascii());
        assert_eq!(decode_all(input, 1).expect("decodes"), [expected], "{}", input.escape_ascii());
    }
}

#[test]
fn hostile_replies_are_refused() {
    for input in [
        &b"?\r\n"[..],
        b"\r\n",
        b"$-2\r\n",
        b"$536870913\r\n",
        b"$?\r\n",
        b"*?\r\n",
        b"*33554433\r\n",
        b"%-1\r\n",
        b"$1\r\nabc\r\n",
        b"=3\r\ntxt\r\n",
        b"=5\r\nabc:x\r\n",
        b":x\r\n",
        b",x\r\n",
        b"#x\r\n",
        b"+a\rb\r\n",
        &b"*1\r\n".repeat(10_000),
        &b"|1\r\n".repeat(10_000),
        &b"*33554431\r\n".repeat(2),
        &[b'+'; 70_000],
    ] {
        assert!(decode_all(input, usize::MAX).is_err(), "{}", input[..input.len().min(40)].escape_ascii());
    }
}

fn value() -> impl Strategy<Value = Reply> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    let line = || "[ -~]{0,12}".prop_map(Bytes::from);
    let leaf = prop_oneof![
        line().prop_map(Reply::Simple),
        line().prop_map(Reply::Error),
        any::<i64>().prop_map(Reply::Integer),
        bytes().prop_map(Reply::Bulk),
        Just(Reply::Null),
        any::<bool>().prop_map(Reply::Boolean),
        (-1e9f64..1e9).prop_map(Reply::Double),
        bytes().prop_map(|text| Reply::Verbatim { format: *b"txt", text }),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Reply::Array),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Reply::Set),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Reply::Push),
            prop::collection::vec((inner.clone(), inner), 0..3).prop_map(Reply::Map),
        ]
    })
}

fn write_all(values: &[Reply], out: &mut ReplyWriter) {
    for value in values {
        write(value, out);
    }
}

fn write(reply: &Reply, out: &mut ReplyWriter) {
    match reply {
        Reply::Simple(text) => out.simple(std::str::from_utf8(text).expect("ascii")),
        Reply::Error(text) => out.error_bytes(text),
        Reply::Integer(number) => out.integer(*number),
        Reply::Bulk(bytes) => out.bulk(bytes),
        Reply::Null => out.null(),
        Reply::Boolean(value) => out.boolean(*value),
        Reply::Double(number) => out.double(&number.to_string()),
        Reply::Verbatim { text, .. } => out.verbatim("txt", text),
        Reply::BigNumber(_) => unreachable!("not generated"),
        Reply::Array(values) => {
            out.array(values.len());
            write_all(values, out);
        }
        Reply::Set(values) => {
            out.set(values.len());
            write_all(values, out);
        }
        Reply::Push(values) => {
            out.push(values.len());
            write_all(values, out);
        }
        Reply::Map(pairs) => {
            out.map(pairs.len());
            for (key, value) in pairs {
                write(key, out);
                write(value, out);
            }
        }
    }
}

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let bytes = b"*$%~>|+-:_,#(!=0123456789\r\n\r\n\r\ntx".to_vec();
    let piece = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"*2\r\n".to_vec()),
        Just(b"%1\r\n".to_vec()),
        Just(b"$1\r\na\r\n".to_vec()),
        prop::collection::vec(prop::sample::select(bytes), 0..8),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_in_any_pieces(
        values in prop::collection::vec(value(), 1..4),
        piece in 1usize..20,
    ) {
        let mut buffer = BytesMut::new();
        write_all(&values, &mut ReplyWriter::new(&mut buffer, ProtocolVersion::Resp3));
        prop_assert_eq!(&decode_all(&buffer, usize::MAX).expect("decodes"), &values);
        prop_assert_eq!(&decode_all(&buffer, piece).expect("decodes"), &values);
    }

    #[test]
    fn no_bytes_panic(input in hostile()) {
        let mut buffer = BytesMut::from(&input[..]);
        let mut decoder = ReplyDecoder::new();
        while let Ok(Some(_)) = decoder.decode(&mut buffer) {}
    }
}
