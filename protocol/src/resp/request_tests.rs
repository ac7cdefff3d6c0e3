//! What only this room can see: the parser's own work and memory.

use super::*;

fn array(arguments: usize, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("*{arguments}\r\n").into_bytes();
    for _ in 0..arguments {
        bytes.extend_from_slice(format!("${}\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Feeds `bytes` in pieces; the parser's work in looked-at bytes.
fn feed(parser: &mut RequestParser, bytes: &[u8], piece: usize) -> usize {
    for end in (piece..bytes.len()).step_by(piece) {
        assert_eq!(parser.parse(&bytes[..end]), Ok(Parsed::Incomplete));
    }
    assert_eq!(parser.parse(bytes), Ok(Parsed::Request { consumed: bytes.len() }));
    parser.work
}

#[test]
fn a_million_arguments_in_reads_of_16_kib_cost_linear_work() {
    let bytes = array(1 << 20, b"x");
    let mut parser = RequestParser::default();
    assert!(feed(&mut parser, &bytes, 16 << 10) <= bytes.len() + bytes.len() / 1000);
    assert_eq!(parser.args(&bytes).len(), 1 << 20);
    // The next small request gives the memory back.
    assert_eq!(parser.parse(b"*1\r\n$4\r\nPING\r\n"), Ok(Parsed::Request { consumed: 14 }));
    assert!(parser.ranges.capacity() <= SLOTS_KEPT);
}

#[test]
fn a_long_line_byte_by_byte_costs_linear_work() {
    let mut line = vec![b'a'; 60_000];
    line.push(b'\n');
    assert_eq!(feed(&mut RequestParser::default(), &line, 1), line.len());
}

#[test]
fn a_header_alone_allocates_nothing() {
    let mut parser = RequestParser::default();
    assert_eq!(parser.parse(b"*1048576\r\n"), Ok(Parsed::Incomplete));
    assert_eq!(parser.ranges.capacity(), 0);
    assert_eq!(parser.wanted(), 0);
    assert_eq!(parser.parse(b"*1048576\r\n$536870912\r\nab"), Ok(Parsed::Incomplete));
    assert_eq!(parser.ranges.capacity(), 0);
    assert_eq!(parser.wanted(), 536_870_912);
}
