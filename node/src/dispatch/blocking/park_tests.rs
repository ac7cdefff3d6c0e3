//! Who waits at a partition, who is served by what comes, and what is told of it.

use korum_protocol::command::table;

use super::*;
use crate::store::{Change, ListChange};

const TOKEN: Token = Token { node: 3, client: 1, number: 77 };

/// Where a command of these words is said to have been served, that has taken something at the place of `taken` and
/// then put something at that of `put`.
fn noted(words: &[&[u8]], taken: &[u8], put: Option<&[u8]>) -> Option<HashPosition> {
    let mut keyspace = Keyspace::new(7);
    let mut effects = Effects::new(true);
    let item = &b"item"[..];
    effects.change(keyspace.place(taken), Change::List(ListChange::PopFront { count: 1 }));
    if let Some(put) = put {
        effects.change(keyspace.place(put), Change::List(ListChange::PushBack { item }));
    }
    let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
    for word in words {
        ranges.push(buffer.len()..buffer.len() + word.len());
        buffer.extend_from_slice(word);
    }
    let args = Args::new(&buffer, &ranges);
    let spec = table::lookup(words[0]).expect("a command");
    let parking = Parking { request: Bytes::new(), token: Some((TOKEN, false)), gauge: Arc::default() };
    let names = Names::new(&keyspace.databases, 0, false);
    parking.note_served(spec, &args, &names, &mut keyspace, &mut effects);
    let position = effects.places().last().flatten();
    let services = keyspace.served.at(position.as_slice());
    assert_eq!(services.iter().any(|service| service.token == TOKEN), keyspace.served.has(TOKEN));
    position.filter(|_| keyspace.served.has(TOKEN))
}

#[test]
fn what_is_served_at_once_is_known_where_it_was_taken() {
    let at = |key: &[u8]| Some(Keyspace::new(7).hash_position(key));
    assert_eq!(noted(&[b"BLPOP", b"one", b"two", b"0"], b"two", None), at(b"two"));
    // The first key had ended, which is an effect too.
    assert_eq!(noted(&[b"BLPOP", b"one", b"two", b"0"], b"one", Some(b"two")), at(b"two"));
    let moved = [&b"BLMOVE"[..], b"one", b"two", b"LEFT", b"RIGHT", b"0"];
    assert_eq!(noted(&moved, b"one", Some(b"two")), at(b"one"));
    assert_eq!(noted(&[b"BZPOPMIN", b"one", b"0"], b"one", None), at(b"one"));
    // Who only looks has taken nothing.
    assert_eq!(noted(&[b"XREAD", b"BLOCK", b"0", b"STREAMS", b"one", b"$"], b"one", None), None);
}
