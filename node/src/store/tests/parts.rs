//! Large collections in parts: what arrives is equal, in the same order, whatever changes meanwhile.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::store::edits::Edit;
use crate::store::{Kind, Source};

const KEY: &[u8] = b"collection";

/// What happens beside changes of the collection.
#[derive(Clone, Copy, Debug)]
enum Event {
    Edit(Edit),
    Delete,
    Replace,
    Deadline(u64),
    Clear,
}

fn edits(kind: Kind, count: usize) -> impl Strategy<Value = Vec<Edit>> {
    let edit = (any::<u8>(), 0..48u8).prop_map(move |(what, item)| Edit { kind, what, item, number: 0 });
    proptest::collection::vec(edit, 0..count)
}

fn events(kind: Kind) -> impl Strategy<Value = Vec<Event>> {
    let edit = (any::<u8>(), 0..48u8)
        .prop_map(move |(what, item)| Event::Edit(Edit { kind, what, item, number: 0 }));
    let event = prop_oneof![
        60 => edit,
        1 => Just(Event::Delete),
        1 => Just(Event::Replace),
        1 => (1..9u64).prop_map(Event::Deadline),
        1 => Just(Event::Clear),
    ];
    proptest::collection::vec(event, 0..200)
}

fn state(keyspace: &Keyspace) -> Vec<u8> {
    let mut out = BytesMut::new();
    if let Some(entry) = keyspace.peek(KEY, 0) {
        let deadline_ms = entry.deadline_ms();
        Effect::Set { key: KEY, value: entry.value(), deadline_ms }.encode(&mut out);
    }
    out.to_vec()
}

/// A node and one that is being brought its content.
struct Pair {
    primary: Keyspace,
    target: Keyspace,
    next: HashPosition,
    parts: Option<PartsId>,
    number: u64,
    /// Parts that were sent.
    sent: usize,
}

impl Pair {
    fn new(kind: Kind, before: Vec<Edit>) -> Self {
        let (mut primary, mut target) = (Keyspace::new(7), Keyspace::new(7));
        let mut value = kind.empty_table();
        let mut number = 0;
        for edit in before {
            number += 1;
            let _ = Edit { number, ..edit }.with(|change| change.apply(&mut value));
        }
        let mut garbage = Garbage::default();
        let is_there = match value.as_ref() {
            ValueRef::Hash(hash) => !hash.is_empty(),
            ValueRef::Set(set) => !set.is_empty(),
            ValueRef::SortedSet(set) => !set.is_empty(),
            ValueRef::List(list) => !list.is_empty(),
            ValueRef::Stream(_) => true,
            ValueRef::String(_) => unreachable!("it is a collection"),
        };
        if is_there {
            primary.put_value(primary.place(KEY), value, None, &mut garbage);
        }
        // The target has something else there, and more.
        for key in [KEY, b"stale"] {
            target.put(target.place(key), ValueRef::string(b"former"), None, &mut garbage);
        }
        Self { primary, target, next: HashPosition::START, parts: None, number, sent: 0 }
    }

    fn take(&mut self, begins: bool, part: &[u8]) {
        self.target.apply_part(begins, part, &mut Garbage::default()).expect("the next part");
    }

    /// As `Primary::catch_up` does it. True at the end.
    fn catch_up(&mut self, budget: usize) -> bool {
        self.parts = self.parts.filter(|&id| self.primary.has_parts(id));
        let begins = self.parts.is_none();
        if begins {
            self.parts = self.primary.begin_parts(self.next, budget);
        }
        let mut entries = Rope::new();
        let chunk = if let Some(id) = self.parts {
            let mut part = Rope::new();
            let is_last = self.primary.read_part(id, budget, &mut part).expect("it is there");
            self.take(begins, &part.into_bytes());
            self.sent += 1;
            if !is_last {
                return false;
            }
            self.parts = None;
            self.primary.read_parted(self.next, id, &mut entries)
        } else {
            self.primary.read_chunk(self.next, budget, &mut entries)
        };
        let bytes: Bytes = entries.into_bytes();
        let mut garbage = Garbage::default();
        self.target.apply_chunk(chunk.range, &[], &bytes, &Source::none(), &mut garbage).expect("a chunk");
        self.target.check();
        self.next = chunk.range.until;
        chunk.next.is_none()
    }

    fn pass(&mut self, effect: &Effect<'_>) {
        if effect.key().is_none_or(|key| self.primary.hash_position(key) < self.next) {
            self.target.apply(effect, &Source::none(), &mut Garbage::default());
        }
    }

    fn event(&mut self, event: Event) {
        self.number += 1;
        let (number, mut garbage) = (self.number, Garbage::default());
        let place = self.primary.place(KEY);
        match event {
            Event::Edit(edit) => Edit { number, ..edit }.with(|change| {
                self.primary.change_collection(place, change, &mut garbage);
                self.pass(&Effect::Change { key: KEY, change: *change });
            }),
            Event::Delete => {
                self.primary.remove(place, &mut garbage);
                self.pass(&Effect::Delete { key: KEY });
            }
            Event::Replace => {
                self.primary.put(place, ValueRef::string(b"7"), None, &mut garbage);
                self.pass(&Effect::Set { key: KEY, value: ValueRef::string(b"7"), deadline_ms: None });
            }
            Event::Deadline(deadline) => {
                let deadline_ms = Some(deadline);
                self.primary.set_deadline(place, deadline_ms);
                self.pass(&Effect::Deadline { key: KEY, deadline_ms });
            }
            Event::Clear => {
                let _ = self.primary.clear();
                self.pass(&Effect::Clear);
            }
        }
        self.primary.check();
        let changes = self.parts.and_then(|id| self.primary.take_part_changes(id));
        if let Some(changes) = changes {
            self.take(false, &changes.into_bytes());
        }
    }

    /// Copies everything while things happen; how many parts there were.
    fn copy(mut self, budget: usize, events: Vec<Event>, at_once: usize) -> usize {
        let mut events = events.into_iter();
        while !self.catch_up(budget) {
            for event in events.by_ref().take(at_once) {
                self.event(event);
            }
        }
        events.for_each(|event| self.event(event));
        assert_eq!(state(&self.target), state(&self.primary), "in the same order");
        assert_eq!(self.target.len(), self.primary.len());
        assert!(self.primary.leaving.is_empty() && self.target.arriving.is_none());
        self.sent
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_collection_arrives_in_order_although_it_is_written(
        (before, events) in kinds().prop_flat_map(|kind| (edits(kind, 150), events(kind))),
        kind_budget in 1..24usize,
        at_once in 0..6usize,
    ) {
        // All edits are of one kind.
        let kind = events
            .iter()
            .find_map(|event| if let Event::Edit(edit) = event { Some(edit.kind) } else { None })
            .or(before.first().map(|edit| edit.kind))
            .unwrap_or(Kind::List);
        Pair::new(kind, before).copy(kind_budget, events, at_once);
    }
}

#[test]
fn a_part_is_as_large_as_it_should_be() {
    for kind in Kind::ALL {
        let adds = match kind {
            Kind::List => 11,
            Kind::Stream => 15,
            Kind::Hash | Kind::Set | Kind::SortedSet => 5,
        };
        let before = (0..240).map(|item| Edit { kind, what: adds, item, number: 0 }).collect();
        let sent = Pair::new(kind, before).copy(500, Vec::new(), 0);
        assert!((4..=240).contains(&sent), "{kind:?}: {sent} parts");
    }
}

#[test]
fn what_is_no_part_of_what_arrives_is_refused() {
    let mut target = Keyspace::new(7);
    let mut garbage = Garbage::default();
    let change = Change::Set(SetChange::Add { member: b"m" });
    let mut bytes = BytesMut::new();
    Effect::Change { key: KEY, change }.encode(&mut bytes);
    assert!(target.apply_part(false, &bytes, &mut garbage).is_err(), "nothing arrives");
    assert!(target.apply_part(true, &bytes, &mut garbage).is_err(), "it begins with items");
    let mut named = BytesMut::new();
    Effect::Parted { key: KEY, deadline_ms: None }.encode(&mut named);
    let range = crate::store::HashRange::ALL;
    assert!(target.apply_chunk(range, &[], &named, &Source::none(), &mut garbage).is_err());
    let mut set = crate::store::Set::table();
    set.add(b"one");
    let mut first = BytesMut::new();
    Effect::Set { key: KEY, value: ValueRef::Set(&set), deadline_ms: None }.encode(&mut first);
    target.apply_part(true, &first, &mut garbage).unwrap();
    target.apply_part(false, &bytes, &mut garbage).unwrap();
    let mut other = BytesMut::new();
    Effect::Change { key: b"other", change }.encode(&mut other);
    assert!(target.apply_part(false, &other, &mut garbage).is_err());
    target.apply_chunk(range, &[], &named, &Source::none(), &mut garbage).unwrap();
    assert_eq!(target.peek(KEY, 0).map(Entry::value).map(|value| value.encoding()), Some("hashtable"));
    // It has its place: nothing arrives any more.
    assert!(target.apply_part(false, &bytes, &mut garbage).is_err());
}

#[test]
fn a_command_that_changes_too_much_ends_a_copying() {
    let mut primary = Keyspace::new(7);
    let mut garbage = Garbage::default();
    let place = primary.place(KEY);
    let mut set = crate::store::Set::table();
    let member = |number: u32| [&number.to_le_bytes()[..], &[7; 1000]].concat();
    (0..20_000).for_each(|number| set.add(&member(number)));
    primary.put_value(place, Value::Set(Box::new(set)), None, &mut garbage);
    let id = primary.begin_parts(place.position, 1 << 10).expect("it is large");
    for _ in 0..9_000 {
        primary.read_part(id, 1 << 10, &mut Rope::new()).expect("it is there");
    }
    for number in 0..18_000 {
        let change = Change::Set(SetChange::Remove { member: &member(number) });
        primary.change_collection(place, &change, &mut garbage);
    }
    assert!(!primary.has_parts(id));
}
