//! Streams as they are kept, against a plain model.

use std::collections::BTreeMap;

use super::*;
use proptest::prelude::*;

/// Fields with their values.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Entries as a simple map, groups as what is pending at whom.
#[derive(Default)]
struct Model {
    entries: BTreeMap<StreamId, Pairs>,
    pending: BTreeMap<StreamId, (Vec<u8>, u64, u64)>,
    consumers: std::collections::BTreeSet<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Step {
    Add(u64, Vec<(Vec<u8>, Vec<u8>)>),
    /// The entry at about this place, of a thousand.
    Delete(u64),
    Trim(Until, bool, u64),
    Deliver(u8, u64, Deliveries),
    Acknowledge(u64),
    DeleteConsumer(u8),
    ReadBack,
}

const GROUP: &[u8] = b"group";

fn step() -> impl Strategy<Value = Step> {
    let name = prop_oneof![Just(b"a".to_vec()), Just(b"bc".to_vec()), Just(Vec::new())];
    let value = prop_oneof![
        6 => proptest::collection::vec(any::<u8>(), 0..6),
        1 => Just(b"12345".to_vec()),
        1 => Just(vec![1; 900]),
    ];
    let pairs = proptest::collection::vec((name, value), 1..4);
    let until = prop_oneof![
        (0..300u64).prop_map(Until::Length),
        (0..400u64).prop_map(|ms| Until::Id(StreamId::new(ms, 1)))
    ];
    let deliveries =
        prop_oneof![Just(Deliveries::More), Just(Deliveries::Same), (0..9u64).prop_map(Deliveries::Set)];
    prop_oneof![
        30 => (0..3u64, pairs).prop_map(|(more, pairs)| Step::Add(more, pairs)),
        6 => (0..1000u64).prop_map(Step::Delete),
        1 => (until, any::<bool>(), 0..200u64).prop_map(|(until, rough, limit)| Step::Trim(until, rough, limit)),
        6 => (0..3u8, 0..1000u64, deliveries).prop_map(|(who, at, how)| Step::Deliver(who, at, how)),
        2 => (0..1000u64).prop_map(Step::Acknowledge),
        1 => (0..3u8).prop_map(Step::DeleteConsumer),
        1 => Just(Step::ReadBack),
    ]
}

fn encode(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let items: Vec<&[u8]> = pairs.iter().flat_map(|(name, value)| [&name[..], &value[..]]).collect();
    Fields::encode(items.into_iter())
}

fn add(stream: &mut Stream, id: StreamId, pairs: &[(Vec<u8>, Vec<u8>)]) {
    let bytes = encode(pairs);
    stream.apply(&StreamChange::Add { id, fields: Fields::from_bytes(&bytes).expect("at least one") });
}

fn owned(entry: Entry<'_>) -> (StreamId, Pairs) {
    let fields: Vec<_> = entry.fields().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    assert_eq!(fields.len(), entry.len());
    (entry.id, fields)
}

fn read_back(stream: &Stream) -> Stream {
    let mut parts = Vec::new();
    stream.parts(|part| parts.push(part.to_vec()));
    assert_eq!(parts.len(), stream.parts_len());
    Stream::from_parts(parts.iter().map(Vec::as_slice)).expect("it was just taken apart")
}

impl Model {
    /// The id of the entry at about this place, or one that is not there.
    fn nth(&self, place: u64) -> StreamId {
        let index = place as usize * self.entries.len() / 1000;
        self.entries.keys().nth(index).copied().unwrap_or(StreamId::new(place, 7))
    }

    fn apply(&mut self, stream: &mut Stream, step: &Step) {
        let who = |who: u8| vec![b'c'; who as usize];
        match step {
            Step::Add(more, pairs) => {
                let id = if *more == 0 {
                    stream.last_id().next().expect("far from the end")
                } else {
                    StreamId::new(stream.last_id().ms + more, more % 2)
                };
                add(stream, id, pairs);
                self.entries.insert(id, pairs.clone());
            }
            Step::Delete(place) => {
                let id = self.nth(*place);
                stream.apply(&StreamChange::Delete { ids: Ids::new(&[id.to_bytes()]) });
                self.entries.remove(&id);
            }
            Step::Trim(until, is_rough, limit) => {
                let trim =
                    Trim { until: *until, is_rough: *is_rough, limit: if *is_rough { *limit } else { 0 } };
                self.trim(stream, &trim);
            }
            Step::Deliver(number, place, deliveries) => {
                let (id, consumer) = (self.nth(*place), who(*number));
                let (group, consumer, now_ms) = (GROUP, &consumer[..], *place);
                stream.apply(&StreamChange::See { group, consumer, now_ms, is_active: true });
                let ids = &[id.to_bytes()];
                let ids = Ids::new(ids);
                stream.apply(&StreamChange::Deliver {
                    group,
                    consumer,
                    time_ms: now_ms,
                    deliveries: *deliveries,
                    ids,
                });
                let before = self.pending.get(&id).map(|(_, _, count)| *count);
                let count = match deliveries {
                    Deliveries::Set(count) => *count,
                    Deliveries::More => before.map_or(1, |count| count + 1),
                    Deliveries::Same => before.unwrap_or(1),
                };
                self.consumers.insert(consumer.to_vec());
                self.pending.insert(id, (consumer.to_vec(), *place, count));
            }
            Step::Acknowledge(place) => {
                let id = self.nth(*place);
                stream.apply(&StreamChange::Acknowledge { group: GROUP, ids: Ids::new(&[id.to_bytes()]) });
                self.pending.remove(&id);
            }
            Step::DeleteConsumer(number) => {
                let consumer = who(*number);
                stream.apply(&StreamChange::DeleteConsumer { group: GROUP, consumer: &consumer });
                self.consumers.remove(&consumer);
                self.pending.retain(|_, (of, ..)| *of != consumer);
            }
            Step::ReadBack => {
                let back = read_back(stream);
                assert_eq!(back, *stream);
                *stream = back;
            }
        }
    }

    fn trim(&mut self, stream: &mut Stream, trim: &Trim) {
        let before = self.entries.len();
        let Some((trimmed, count)) = stream.trimmed(trim) else { return };
        stream.apply(&StreamChange::Trim(trimmed));
        self.entries.retain(|id, _| *id > trimmed.through);
        assert_eq!(before - self.entries.len(), count as usize);
        assert!(trim.limit == 0 || count <= trim.limit);
        match (trim.until, trim.is_rough) {
            (Until::Length(most), false) => assert_eq!(self.entries.len(), before.min(most as usize)),
            (Until::Length(most), true) => assert!(self.entries.len() >= before.min(most as usize)),
            (Until::Id(least), false) => assert!(self.entries.keys().all(|id| *id >= least)),
            (Until::Id(least), true) => assert!(trimmed.through < least),
        }
    }

    fn compare(&self, stream: &Stream, start: StreamId, end: StreamId) {
        stream.check();
        let expected: Vec<_> = if start <= end {
            self.entries.range(start..=end).map(|(id, fields)| (*id, fields.clone())).collect()
        } else {
            Vec::new()
        };
        let found: Vec<_> = stream.range(start, end).map(owned).collect();
        assert_eq!(found, expected);
        let back: Vec<_> = stream.range_back(start, end).map(owned).collect();
        assert!(back.iter().rev().eq(expected.iter()));
        assert!(expected.first().is_none_or(|(id, _)| stream.get(*id).is_some()));
        let group = stream.group(GROUP).expect("it was created");
        let pending: Vec<_> = group
            .pending()
            .map(|(id, pending)| (id, (pending.consumer.to_vec(), pending.delivered_ms, pending.count)))
            .collect();
        assert!(pending.iter().map(|(id, pending)| (id, pending)).eq(self.pending.iter()));
        assert!(group.consumers().map(|(name, _)| name).eq(self.consumers.iter().map(Vec::as_slice)));
    }
}

proptest! {
    #[test]
    fn it_behaves_like_a_map(
        steps in proptest::collection::vec(step(), 1..400),
        start in 0..300u64, end in 0..300u64,
    ) {
        let (mut stream, mut model) = (Stream::default(), Model::default());
        stream.apply(&StreamChange::SetGroup { group: GROUP, last_id: StreamId::MIN, entries_read: None });
        let mut added = 0;
        for (number, step) in steps.iter().enumerate() {
            model.apply(&mut stream, step);
            added += u64::from(matches!(step, Step::Add(..)));
            if number % 16 == 0 || !matches!(step, Step::Add(..)) {
                model.compare(&stream, StreamId::new(start, 0), StreamId::new(end, 1));
            }
        }
        model.compare(&stream, StreamId::MIN, StreamId::MAX);
        prop_assert_eq!(stream.entries_added(), added);
        prop_assert_eq!(read_back(&stream), stream);
    }

    #[test]
    fn any_bytes_are_a_stream_or_none(
        adds in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 1..9),
        index: prop::sample::Index, byte: u8, cut: bool,
    ) {
        let mut stream = Stream::default();
        for (number, value) in adds.iter().enumerate() {
            add(&mut stream, StreamId::new(number as u64 + 1, 0), &[(b"name".to_vec(), value.clone())]);
        }
        stream.apply(&StreamChange::SetGroup { group: GROUP, last_id: StreamId::new(1, 0), entries_read: Some(1) });
        stream.apply(&StreamChange::See { group: GROUP, consumer: b"c", now_ms: 1, is_active: false });
        let ids = &[StreamId::new(1, 0).to_bytes()];
        stream.apply(&StreamChange::Deliver {
            group: GROUP, consumer: b"c", time_ms: 7, deliveries: Deliveries::More, ids: Ids::new(ids),
        });
        let mut parts = Vec::new();
        stream.parts(|part| parts.push(part.to_vec()));
        let which = index.index(parts.len());
        let part = &mut parts[which];
        let place = index.index(part.len());
        if cut { part.truncate(place) } else { part[place] ^= byte.max(1) };
        if let Some(read) = Stream::from_parts(parts.iter().map(Vec::as_slice)) {
            read.check();
            prop_assert_eq!(read.range(StreamId::MIN, StreamId::MAX).map(owned).count() as u64, read.len());
        }
    }
}

#[test]
fn ids_follow_each_other() {
    let (low, high) = (StreamId::new(1, u64::MAX), StreamId::new(2, 0));
    assert_eq!((low.next(), high.previous()), (Some(high), Some(low)));
    assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
    assert_eq!(StreamId::from_bytes(low.to_bytes()), low);
    assert_eq!(high.to_string(), "2-0");
}

#[test]
fn a_block_takes_a_hundred_entries_and_names_of_fields_once() {
    let mut stream = Stream::default();
    for number in 1..=1000 {
        add(
            &mut stream,
            StreamId::new(1_700_000_000_000 + number, 0),
            &[(b"temperature".to_vec(), b"21".to_vec())],
        );
    }
    assert_eq!(stream.blocks(), 10);
    assert!(stream.heap_bytes() < 1000 * 11, "{}", stream.heap_bytes());
}
