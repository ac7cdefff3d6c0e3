//! Values in the form of Redis' files: there and back, and bytes that are none.

use std::panic::AssertUnwindSafe;

use super::*;
use proptest::prelude::*;

const PAYLOADS: &str = include_str!("payloads_redis_7_0.txt");

/// A payload that a Redis wrote.
fn payload(name: &str) -> Vec<u8> {
    let line = PAYLOADS.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let digits = line.unwrap_or_else(|| panic!("no payload {name}")).as_bytes();
    let number = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(number).collect()
}

fn payloads() -> Vec<Vec<u8>> {
    let names =
        PAYLOADS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(' ').next());
    names.map(payload).collect()
}

/// The body with the footer that belongs to it.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut payload = [body, &VERSION.to_le_bytes()].concat();
    payload.extend_from_slice(&crc64::checksum(&payload).to_le_bytes());
    payload
}

const ITEMS: [&str; 15] = [
    "a",
    "12",
    "-1",
    "127",
    "128",
    "-4096",
    "4095",
    "4096",
    "-32768",
    "32768",
    "8388607",
    "8388608",
    "-2147483649",
    "9223372036854775807",
    "01",
];

#[test]
fn a_listpack_of_a_hash_is_read() {
    let Ok(Value::Hash(hash)) = restore(&payload("hash")) else { panic!("not a hash") };
    assert_eq!(hash.len(), 17);
    for (index, item) in ITEMS[..14].iter().enumerate() {
        assert_eq!(hash.get(format!("f{index}").as_bytes()), Some(item.as_bytes()));
    }
    assert_eq!(hash.get(b"f14"), Some(&[b'x'; 63][..]));
    assert_eq!(hash.get(b"f15"), Some(&b""[..]));
    assert_eq!(hash.get(b"f16"), Some(&b"01"[..]));
    let Ok(Value::Hash(hash)) = restore(&payload("hash-table")) else { panic!("not a hash") };
    assert_eq!(hash.get(&[b'y'; 300]), Some(&[b'q'; 20_000][..]));
}

#[test]
fn a_quicklist_is_read() {
    let Ok(Value::List(list)) = restore(&payload("list")) else { panic!("not a list") };
    let items: Vec<&[u8]> = list.iter().collect();
    assert_eq!(items.len(), 19);
    assert!(ITEMS[..14].iter().zip(&items).all(|(item, found)| item.as_bytes() == *found));
    assert_eq!((items[15], items[17].len(), items[18].len()), (&b""[..], 300, 6000));
    let again = Value::List(list.clone());
    assert_eq!(restore(&dump(again.as_ref())), Ok(again));
}

#[test]
fn sets_are_read() {
    let Ok(Value::Set(set)) = restore(&payload("intset")) else { panic!("not a set") };
    assert!(set.len() == 4 && [&b"-5"[..], b"1", b"2", b"70000"].iter().all(|member| set.contains(member)));
    let Ok(Value::Set(set)) = restore(&payload("set")) else { panic!("not a set") };
    assert!(set.len() == 3 && [b"a", b"b", b"1"].iter().all(|member| set.contains(&member[..])));
    // As Redis 7.2 writes it: a listpack of "a" and 1.
    let body = [&[TYPE_SET_LISTPACK, 12, 12, 0, 0, 0, 2, 0][..], &[0x81, b'a', 2, 1, 1, 0xff]].concat();
    let Ok(Value::Set(set)) = restore(&sealed(&body)) else { panic!("not a set") };
    assert!(set.len() == 2 && set.contains(b"a") && set.contains(b"1"));
}

#[test]
fn sorted_sets_are_read() {
    for (name, count) in [("zset", 4), ("zset2", 5)] {
        let Ok(Value::SortedSet(set)) = restore(&payload(name)) else { panic!("not a sorted set") };
        assert_eq!(set.len(), count);
        for (member, score) in [(b"a", 1.0), (b"c", f64::NEG_INFINITY), (b"d", f64::INFINITY)] {
            assert_eq!(set.score(member), Score::new(score));
        }
        let again = Value::SortedSet(set);
        assert_eq!(restore(&dump(again.as_ref())), Ok(again));
    }
    let body = [TYPE_SORTED_SET_TEXT, 2, 1, b'a', 3, b'1', b'.', b'5', 1, b'b', 255];
    let Ok(Value::SortedSet(set)) = restore(&sealed(&body)) else { panic!("not a sorted set") };
    assert_eq!((set.score(b"a"), set.score(b"b")), (Score::new(1.5), Score::new(f64::NEG_INFINITY)));
    let body = [TYPE_SORTED_SET_TEXT, 1, 1, b'a', 253];
    assert_eq!(restore(&sealed(&body)), Err(RdbError::Content));
}

#[test]
fn a_stream_is_read() {
    let Ok(Value::Stream(stream)) = restore(&payload("stream")) else { panic!("not a stream") };
    assert_eq!((stream.len(), stream.entries_added()), (2, 3));
    assert_eq!(stream.max_deleted(), crate::store::StreamId::new(1, 2));
    assert_eq!(stream.last_id(), crate::store::StreamId::new(5, 0));
    let group = stream.group(b"g").expect("a group");
    assert_eq!((group.entries_read, group.pending().len(), group.consumers().len()), (None, 1, 1));
    let again = Value::Stream(stream);
    let Ok(Value::Stream(restored)) = restore(&dump(again.as_ref())) else { panic!("not a stream") };
    let Value::Stream(stream) = again else { unreachable!("it is one") };
    let all = |stream: &crate::store::Stream| -> Vec<_> {
        let entries = stream.range(crate::store::StreamId::MIN, crate::store::StreamId::MAX);
        let pairs = |entry: &crate::store::xstream::Entry<'_>| -> Vec<_> {
            entry.fields().map(|(field, value)| (field.to_vec(), value.to_vec())).collect()
        };
        entries.map(|entry| (entry.id, pairs(&entry))).collect()
    };
    assert_eq!(all(&stream), all(&restored));
    assert_eq!(restored.group(b"g").map(|group| group.pending().len()), Some(1));
}

#[test]
fn a_ziplist_of_a_hash_is_read() {
    // Total, last item, two items: "f" behind nothing, 5 behind three bytes.
    let list = [&[16, 0, 0, 0, 13, 0, 0, 0, 2, 0][..], &[0, 1, b'f', 3, 0xf6, 0xff]].concat();
    let body = [&[TYPE_HASH_ZIPLIST, 16][..], &list].concat();
    let Ok(Value::Hash(hash)) = restore(&sealed(&body)) else { panic!("not a hash") };
    assert_eq!(hash.get(b"f"), Some(&b"5"[..]));
    for at in 2..body.len() {
        let mut damaged = body.clone();
        damaged[at] = damaged[at].wrapping_add(0x20);
        let _ = restore(&sealed(&damaged));
    }
}

#[test]
fn a_field_twice_is_refused() {
    let body = [TYPE_HASH, 2, 1, b'f', 1, b'v', 1, b'f', 1, b'w'];
    assert_eq!(restore(&sealed(&body)), Err(RdbError::Content));
    assert_eq!(restore(&sealed(&[TYPE_HASH, 0])), Err(RdbError::Content));
}

proptest! {
    #[test]
    fn a_payload_gives_its_value_back(bytes in proptest::collection::vec(any::<u8>(), 0..20_000)) {
        let value = ValueRef::string(&bytes);
        prop_assert_eq!(restore(&dump(value)), Ok(value.to_value()));
    }

    #[test]
    fn an_integer_gives_its_text_back(number: i64, shift in 0..64u32) {
        let number = number >> shift;
        let value = ValueRef::String(StringRef::Integer(number));
        prop_assert_eq!(restore(&dump(value)), Ok(value.to_value()));
    }

    #[test]
    fn a_hash_gives_its_fields_back(
        pairs in proptest::collection::hash_map(any::<Vec<u8>>(), any::<(Vec<u8>, Option<u32>)>(), 1..50),
    ) {
        let mut hash = Hash::default();
        for (field, (value, deadline)) in &pairs {
            hash.apply(&HashChange::Set { field, value });
            hash.apply(&HashChange::Deadline { field, deadline_ms: deadline.map(u64::from) });
        }
        let value = Value::Hash(Box::new(hash));
        prop_assert_eq!(restore(&dump(value.as_ref())), Ok(value.clone()));
    }

    #[test]
    fn no_bytes_panic(kind in 0..24u8, bytes: Vec<u8>) {
        prop_assert_eq!(restore(&bytes), Err(RdbError::Footer));
        let _ = restore(&sealed(&[&[kind], &bytes[..]].concat()));
    }

    /// Payloads of Redis, a few bytes of them others, with a footer that is right all the same.
    #[test]
    fn no_damage_panics(
        which in 0..64usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let all = payloads();
        let mut body = all[which % all.len()].clone();
        body.truncate(body.len() - FOOTER_BYTES);
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| restore(&sealed(&body)).is_ok()));
        prop_assert!(outcome.is_ok());
    }
}
