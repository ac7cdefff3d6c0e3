//! The keyspace against a model: a map of the standard library.

use std::collections::{BTreeSet, HashMap};

use korum_protocol::rope::Rope;
use proptest::prelude::*;

use super::segment::SEGMENT_ENTRIES_MAX;
use super::{
    Change, Garbage, HashChange, HashPosition, HashRange, Keyspace, Source, StreamChange, StreamId,
    StringRef, Value, ValueRef,
};
use crate::replication::effect::{Effect, EffectError, Effects};
use crate::store::database::{split, stored};
use crate::store::xstream::{Fields, Trimmed};

mod entry;
mod memory;

const SEED: u64 = 42;
type Content = HashMap<Vec<u8>, (Value, Option<u64>)>;

fn content(keyspace: &Keyspace) -> Content {
    let all = keyspace.scan(HashPosition::START, usize::MAX);
    assert_eq!(all.next, None);
    all.entries
        .iter()
        .map(|entry| (entry.key().to_vec(), (entry.value().to_value(), entry.deadline_ms())))
        .collect()
}

fn key(number: u32) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

/// The same, some of them in other rooms than the first.
fn roomy(number: u32) -> Vec<u8> {
    stored([0, 0, 0, 2, 255][number as usize % 5], &key(number)).into_owned()
}

fn filled(count: u32) -> Keyspace {
    let mut keyspace = Keyspace::new(SEED);
    for number in 0..count {
        put(
            &mut keyspace,
            &key(number),
            i64::from(number),
            number.is_multiple_of(3).then_some(u64::from(number)),
        );
    }
    keyspace
}

fn put(keyspace: &mut Keyspace, key: &[u8], number: i64, deadline_ms: Option<u64>) {
    let value = ValueRef::String(StringRef::Integer(number));
    keyspace.put(keyspace.place(key), value, deadline_ms, &mut Garbage::default());
}

/// A write as a test invents it.
#[derive(Clone, Debug)]
enum Write {
    Set(u32, Vec<u8>, Option<u64>),
    Number(u32, i64, Option<u64>),
    Delete(u32),
    Deadline(u32, Option<u64>),
    Append(u32, Vec<u8>),
    Overwrite(u32, u8, Vec<u8>),
    /// A field of a hash; an empty value deletes it.
    Field(u32, u8, Vec<u8>),
    /// An entry of a stream with this ms, or without a value, what is older is gone.
    Entry(u32, u8, Vec<u8>),
    /// Many keys at once, so that segments split and merge.
    Fill(u32),
    Thin(u32),
    Clear,
    ClearRoom(u8),
}

impl Write {
    fn effects<T>(&self, mut each: impl FnMut(Effect<'_>) -> T) {
        let deadline = |deadline: &Option<u64>| deadline.map(|ms| ms % 1000);
        match self {
            Self::Set(number, bytes, ms) => {
                let (value, deadline_ms) = (ValueRef::string(bytes), deadline(ms));
                each(Effect::Set { key: &roomy(*number), value, deadline_ms });
            }
            Self::Number(number, integer, ms) => {
                let (value, deadline_ms) = (ValueRef::String(StringRef::Integer(*integer)), deadline(ms));
                each(Effect::Set { key: &roomy(*number), value, deadline_ms });
            }
            Self::Delete(number) => drop(each(Effect::Delete { key: &roomy(*number) })),
            Self::Deadline(number, ms) => {
                each(Effect::Deadline { key: &roomy(*number), deadline_ms: deadline(ms) });
            }
            Self::Append(number, tail) => drop(each(Effect::Append { key: &roomy(*number), tail })),
            Self::Overwrite(number, offset, bytes) => {
                each(Effect::Overwrite { key: &roomy(*number), offset: usize::from(*offset), bytes });
            }
            Self::Field(number, field, value) => {
                let (key, field) = (format!("hash:{}", number % 5), &[*field % 16][..]);
                let change = match &value[..] {
                    [] => HashChange::Delete { field },
                    value => HashChange::Set { field, value },
                };
                each(Effect::Change { key: key.as_bytes(), change: Change::Hash(change) });
            }
            Self::Entry(number, ms, value) => {
                let (key, id) =
                    (format!("stream:{}", number % 5), StreamId::new(u64::from(*ms), u64::from(*number)));
                let bytes = Fields::encode([&b"field"[..], value].into_iter());
                let change = match Fields::from_bytes(&bytes) {
                    Some(fields) if !value.is_empty() => StreamChange::Add { id, fields },
                    _ => StreamChange::Trim(Trimmed { through: id }),
                };
                each(Effect::Change { key: key.as_bytes(), change: Change::Stream(change) });
            }
            Self::Fill(count) => (0..*count).for_each(|number| {
                let value = ValueRef::String(StringRef::Integer(i64::from(number)));
                each(Effect::Set { key: &roomy(number), value, deadline_ms: None });
            }),
            Self::Thin(count) => {
                (0..*count).for_each(|number| drop(each(Effect::Delete { key: &roomy(number) })))
            }
            Self::Clear => drop(each(Effect::Clear)),
            Self::ClearRoom(room) => drop(each(Effect::ClearRoom { room: *room })),
        }
    }
}

fn write() -> impl Strategy<Value = Write> {
    let number = 0..3000u32;
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        6 => (number.clone(), bytes(), any::<Option<u64>>()).prop_map(|(n, b, d)| Write::Set(n, b, d)),
        3 => (number.clone(), any::<i64>(), any::<Option<u64>>()).prop_map(|(n, i, d)| Write::Number(n, i, d)),
        4 => number.clone().prop_map(Write::Delete),
        3 => (number.clone(), any::<Option<u64>>()).prop_map(|(n, d)| Write::Deadline(n, d)),
        2 => (number.clone(), bytes()).prop_map(|(n, b)| Write::Append(n, b)),
        2 => (number.clone(), any::<u8>(), bytes()).prop_map(|(n, o, b)| Write::Overwrite(n, o, b)),
        4 => (number.clone(), any::<u8>(), bytes()).prop_map(|(n, f, v)| Write::Field(n, f, v)),
        4 => (number.clone(), any::<u8>(), bytes()).prop_map(|(n, ms, v)| Write::Entry(n, ms, v)),
        2 => number.clone().prop_map(Write::Fill),
        1 => number.prop_map(Write::Thin),
        1 => Just(Write::Clear),
        1 => prop_oneof![Just(0), Just(2), Just(7)].prop_map(Write::ClearRoom),
    ]
}

fn model_apply(model: &mut Content, effect: Effect<'_>) {
    let edit = |model: &mut Content, key: &[u8], edit: &dyn Fn(&mut Vec<u8>)| {
        let empty = Value::String(super::StringValue::Raw(Vec::new()));
        if let Value::String(string) = &mut model.entry(key.to_vec()).or_insert((empty, None)).0 {
            edit(string.raw_mut());
        }
    };
    match effect {
        Effect::Set { key, value, deadline_ms } => {
            model.insert(key.to_vec(), (value.to_value(), deadline_ms));
        }
        Effect::Collection { key, state, deadline_ms } => {
            model.insert(key.to_vec(), (state.to_value(), deadline_ms));
        }
        Effect::Change { key, change } => {
            let entry = model.entry(key.to_vec()).or_insert_with(|| (change.kind().empty(), None));
            if change.apply(&mut entry.0) {
                model.remove(key);
            }
        }
        Effect::Delete { key } => drop(model.remove(key)),
        Effect::Deadline { key, deadline_ms } => {
            model.entry(key.to_vec()).and_modify(|(_, deadline)| *deadline = deadline_ms);
        }
        Effect::Append { key, tail } => edit(model, key, &|bytes| bytes.extend_from_slice(tail)),
        Effect::Overwrite { key, offset, bytes: new } => edit(model, key, &|bytes| {
            bytes.resize(bytes.len().max(offset + new.len()), 0);
            bytes[offset..offset + new.len()].copy_from_slice(new);
        }),
        Effect::Served { .. } | Effect::Parted { .. } => {}
        Effect::Clear => model.clear(),
        Effect::ClearRoom { room } => model.retain(|key, _| split(key).0 != room),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn keyspace_does_what_a_map_does(writes in proptest::collection::vec(write(), 1..30)) {
        let mut keyspace = Keyspace::new(SEED);
        let mut model = Content::new();
        for write in &writes {
            write.effects(|effect| {
                keyspace.apply(&effect, &Source::none(), &mut Garbage::default());
                model_apply(&mut model, effect);
            });
            keyspace.check();
            prop_assert_eq!(keyspace.len(), model.len());
        }
        prop_assert_eq!(content(&keyspace), model);
        let at = 500;
        let living = writes.iter().fold(Content::new(), |mut model, write| {
            write.effects(|effect| model_apply(&mut model, effect));
            model
        });
        let living: Content =
            living.into_iter().filter(|(_, (_, deadline))| deadline.is_none_or(|ms| ms >= at)).collect();
        let mut effects = Effects::new(true);
        while keyspace.sweep(at, 7, &mut effects) > 0 {}
        keyspace.check();
        prop_assert!(keyspace.next_deadline().is_none_or(|deadline| deadline >= at));
        prop_assert_eq!(content(&keyspace), living);
    }

    #[test]
    fn a_stream_and_the_live_effects_converge(
        before in proptest::collection::vec(write(), 0..10),
        stale in proptest::collection::vec(write(), 0..10),
        during in proptest::collection::vec((write(), 0..5usize), 0..30),
        budget in 0..20_000usize,
    ) {
        let mut primary = Keyspace::new(SEED);
        let mut target = Keyspace::new(SEED);
        for write in &before {
            write.effects(|effect| primary.apply(&effect, &Source::none(), &mut Garbage::default()));
        }
        // What the target still holds from former times.
        for write in &stale {
            write.effects(|effect| target.apply(&effect, &Source::none(), &mut Garbage::default()));
        }
        let mut done = HashPosition::START;
        let mut at = Some(HashPosition::START);
        let mut during = during.into_iter();
        while let Some(from) = at {
            let mut bytes = Rope::new();
            let chunk = primary.read_chunk(from, budget, &mut bytes);
            primary.check();
            let bytes = bytes.into_bytes();
            prop_assert_eq!(chunk.range.from, from);
            target.apply_chunk(chunk.range, &[], &bytes, &Source::of(bytes.clone()), &mut Garbage::default()).unwrap();
            target.check();
            at = chunk.next;
            done = chunk.range.until;
            // Writes go on; those in the part that is done reach the target too.
            if let Some((write, times)) = during.next() {
                for _ in 0..times {
                    write.effects(|effect| {
                        primary.apply(&effect, &Source::none(), &mut Garbage::default());
                        if effect.key().is_none_or(|key| primary.hash_position(key) < done) {
                            target.apply(&effect, &Source::none(), &mut Garbage::default());
                        }
                    });
                }
            }
        }
        prop_assert_eq!(done, HashPosition::END);
        prop_assert_eq!(content(&target), content(&primary));
    }

    #[test]
    fn a_scan_sees_every_key_that_stays(count in 1..40usize, adds in 0..6000u32, removes in 0..6000u32) {
        let mut keyspace = filled(4000);
        let staying = |number: u32| number.is_multiple_of(4);
        let mut seen = BTreeSet::new();
        let mut at = Some(HashPosition::START);
        let mut steps = 0u32;
        while let Some(from) = at {
            let scanned = keyspace.scan(from, count * 20);
            prop_assert!(scanned.entries.len() >= count * 20 || scanned.next.is_none());
            seen.extend(scanned.entries.iter().map(|entry| entry.key().to_vec()));
            at = scanned.next;
            // Meanwhile the table grows and shrinks.
            steps += 1;
            for number in 0..adds / 4 {
                put(&mut keyspace, &key(10_000 + steps * adds + number), 1, None);
            }
            for number in (steps * removes / 8..(steps + 1) * removes / 8).filter(|number| !staying(*number)) {
                keyspace.remove(keyspace.place(&key(number)), &mut Garbage::default());
            }
            if steps > 40 {
                break;
            }
        }
        if at.is_none() {
            for number in (0..4000).filter(|number| staying(*number)) {
                prop_assert!(seen.contains(&key(number)), "{}", number);
            }
        }
        keyspace.check();
    }

    #[test]
    fn any_bytes_as_a_chunk_change_nothing_or_are_a_chunk(bytes: Vec<u8>) {
        let mut keyspace = filled(10);
        let before = content(&keyspace);
        if keyspace.apply_chunk(HashRange::ALL, &[], &bytes, &Source::none(), &mut Garbage::default()).is_err() {
            prop_assert_eq!(content(&keyspace), before);
        }
        keyspace.check();
    }
}

#[test]
fn a_chunk_is_cut_by_its_budget_and_always_progresses() {
    let mut keyspace = filled(3000);
    for budget in [0, 1, 1000, usize::MAX] {
        let (mut at, mut entries, mut chunks) = (Some(HashPosition::START), 0, 0);
        while let Some(from) = at {
            let mut bytes = Rope::new();
            let chunk = keyspace.read_chunk(from, budget, &mut bytes);
            assert!(chunk.range.until > from);
            assert!(bytes.len() <= budget.max(1).saturating_add(40));
            assert!(chunk.entries as usize <= SEGMENT_ENTRIES_MAX + 1);
            (at, entries, chunks) = (chunk.next, entries + chunk.entries, chunks + 1);
        }
        assert_eq!(entries, 3000);
        assert!(chunks >= 3);
    }
    let empty = Keyspace::new(SEED).read_chunk(HashPosition::START, 100, &mut Rope::new());
    assert_eq!((empty.range, empty.entries, empty.next), (HashRange::ALL, 0, None));
}

#[test]
fn a_chunk_with_a_key_of_another_range_is_refused() {
    let mut keyspace = filled(10);
    let mut bytes = Rope::new();
    keyspace.read_chunk(HashPosition::START, usize::MAX, &mut bytes);
    let range = HashRange { from: HashPosition::START, until: HashPosition::new(1) };
    let garbage = &mut Garbage::default();
    assert_eq!(
        keyspace.apply_chunk(range, &[], &bytes.flat(), &Source::none(), garbage),
        Err(EffectError::NotOfChunk)
    );
    bytes.clear();
    Effect::Clear.encode(bytes.copied_mut());
    assert_eq!(
        keyspace.apply_chunk(HashRange::ALL, &[], &bytes.flat(), &Source::none(), garbage),
        Err(EffectError::NotOfChunk)
    );
    assert_eq!(keyspace.len(), 10);
}

#[test]
fn random_keys_are_spread_and_never_expired() {
    use rand::SeedableRng;
    let mut random = crate::env::random::Random::seed_from_u64(3);
    let keyspace = filled(3000);
    let mut counts = HashMap::new();
    for _ in 0..30_000 {
        let entry = keyspace.random(0, 5_000, &mut random).unwrap();
        assert!(!entry.is_expired(5_000));
        *counts.entry(entry.key().to_vec()).or_insert(0) += 1;
    }
    // Two thirds have no deadline: 2000 keys, 15 draws each.
    assert!(counts.len() > 1990, "{}", counts.len());
    assert!(counts.values().all(|count| *count < 60));
    assert!(Keyspace::new(SEED).random(0, 0, &mut random).is_none());
}

#[test]
fn expired_keys_are_hidden_at_once_and_removed_by_a_read() {
    let mut keyspace = filled(4);
    let mut effects = Effects::new(true);
    let place = keyspace.place(b"key:3");
    assert!(keyspace.look(place, 3, &mut effects).is_some(), "a key lives through its last millisecond");
    assert!(keyspace.peek(b"key:3", 4).is_none());
    assert!(keyspace.read(place, 4, &mut Effects::read_only()).is_none());
    assert!(keyspace.contains(b"key:3"));
    assert_eq!(keyspace.next_deadline(), Some(0));
    assert!(keyspace.read(place, 4, &mut effects).is_none());
    assert!(!keyspace.contains(b"key:3"));
    assert_eq!(effects.count(), 1);
    assert_eq!(Effect::decode(&mut effects.rope().copied()), Ok(Effect::Delete { key: b"key:3" }));
    keyspace.check();
}

#[test]
fn an_overwrite_past_the_longest_string_is_ignored() {
    let mut keyspace = Keyspace::new(SEED);
    for offset in [usize::MAX, 512 << 20] {
        keyspace.apply(
            &Effect::Overwrite { key: b"k", offset, bytes: b"x" },
            &Source::none(),
            &mut Garbage::default(),
        );
    }
    assert!(keyspace.is_empty());
}
