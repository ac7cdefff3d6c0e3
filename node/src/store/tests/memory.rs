//! What is held, given back, shared and left to others to drop.

use bytes::Bytes;
use korum_protocol::rope::Rope;

use super::{SEED, filled, key, put};
use crate::store::garbage::LARGE_VALUE_BYTES;
use crate::store::{Garbage, HashPosition, Keyspace, StringRef, ValueRef};

#[test]
fn an_emptied_keyspace_holds_nothing() {
    let mut keyspace = Keyspace::new(SEED);
    assert_eq!(keyspace.memory_bytes(), 0);
    keyspace = filled(20_000);
    keyspace.check();
    assert!(keyspace.memory_bytes() > 20_000 * 20);
    for number in 0..20_000 {
        assert!(keyspace.remove(keyspace.place(&key(number)), &mut Garbage::default()));
        if number % 1000 == 0 {
            keyspace.check();
        }
    }
    keyspace.check();
    assert_eq!(keyspace.memory_bytes(), 0);
    keyspace = filled(5000);
    let garbage = keyspace.clear();
    assert!(!garbage.is_empty());
    assert_eq!((keyspace.len(), keyspace.memory_bytes()), (0, 0));
    keyspace.check();
}

#[test]
fn a_thinned_keyspace_gives_its_memory_back() {
    let mut keyspace = filled(50_000);
    let full = keyspace.memory_bytes();
    for number in 100..50_000 {
        keyspace.remove(keyspace.place(&key(number)), &mut Garbage::default());
    }
    keyspace.check();
    assert!(keyspace.memory_bytes() * 20 < full, "{} of {full}", keyspace.memory_bytes());
}

#[test]
fn churn_does_not_grow_the_table() {
    for living in [300, 700, 850, 2000] {
        let mut keyspace = Keyspace::new(SEED);
        let mut most = 0;
        for number in 0..60_000 {
            put(&mut keyspace, &key(number), 1, None);
            if number >= living {
                keyspace.remove(keyspace.place(&key(number - living)), &mut Garbage::default());
            }
            if number % 500 == 0 {
                keyspace.check();
            }
            most = most.max(keyspace.memory_bytes());
        }
        // 25 to 30 bytes of entry, and a bucket of 17 that is used to three eighths at least.
        assert!(most < living as usize * 76 + 4000, "{most} for {living}");
    }
}

#[test]
fn large_values_are_shared_with_a_stream_and_copied_only_when_changed() {
    let mut keyspace = filled(100);
    let large = vec![b'x'; LARGE_VALUE_BYTES];
    let mut garbage = Garbage::default();
    keyspace.put(keyspace.place(b"set"), ValueRef::string(&large), None, &mut garbage);
    keyspace.append(keyspace.place(b"appended"), &large);
    let mut chunk = Rope::new();
    let read = keyspace.read_chunk(HashPosition::START, usize::MAX, &mut chunk);
    assert_eq!((read.entries, read.next), (102, None));
    let bytes = chunk.flat().into_owned();
    let pieces: Vec<Bytes> = chunk.take_pieces().into();
    assert_eq!(pieces.iter().filter(|piece| piece.len() == large.len()).count(), 2);
    keyspace.check();
    let address = |keyspace: &Keyspace, key: &[u8]| match keyspace.peek(key, 0).unwrap().value() {
        ValueRef::String(StringRef::Bytes(bytes) | StringRef::Raw(bytes)) => bytes.as_ptr(),
        other => panic!("{other:?}"),
    };
    for key in [b"set".as_slice(), b"appended"] {
        assert!(pieces.iter().any(|piece| piece.as_ptr() == address(&keyspace, key)));
    }
    // The stream's copy stays as it was read.
    keyspace.overwrite(keyspace.place(b"set"), 0, b"changed");
    assert!(pieces.iter().any(|piece| **piece == large[..]));
    assert!(pieces.concat() == bytes);
    keyspace.check();
    drop(pieces);
    let before = address(&keyspace, b"appended");
    keyspace.overwrite(keyspace.place(b"appended"), 0, b"changed");
    assert_eq!(address(&keyspace, b"appended"), before, "nobody holds on to it: changed in place");
}

#[test]
fn large_values_become_garbage() {
    let mut keyspace = Keyspace::new(SEED);
    let mut garbage = Garbage::default();
    let large = vec![b'x'; LARGE_VALUE_BYTES];
    let place = keyspace.place(b"k");
    keyspace.put(place, ValueRef::string(&large), None, &mut garbage);
    keyspace.put(place, ValueRef::string(b"small"), None, &mut garbage);
    assert!(!std::mem::take(&mut garbage).is_empty());
    keyspace.put(place, ValueRef::string(&large), None, &mut garbage);
    assert!(garbage.is_empty());
    assert!(keyspace.remove(place, &mut garbage));
    assert!(!garbage.is_empty());
}
