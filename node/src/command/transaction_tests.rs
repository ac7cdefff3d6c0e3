//! Units on one partition: all or nothing, in one set of effects; watched keys against a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use korum_protocol::command::CommandId;
use korum_protocol::id::{Epoch, Position};
use korum_protocol::resp::request::{RequestLimits, RequestParser};
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use korum_protocol::rope::Rope;
use proptest::prelude::*;
use rand::SeedableRng;

use super::super::testing::NOW_MS;
use super::super::unit::{UnitWriter, Watched, watch_request};
use super::super::{Call, Looks, Names};
use crate::dispatch::execute;
use crate::env::random::Random;
use crate::replication::effect::Effects;
use crate::replication::history::History;
use crate::store::{Keyspace, Source};

/// A partition at its primary.
struct Room {
    keyspace: Keyspace,
    history: History,
    now_ms: u64,
    /// Effects of the last request.
    count: usize,
}

impl Room {
    fn new(backlog_max: usize) -> Self {
        let mut history = History::new(backlog_max);
        history.begin(Epoch(3));
        Self { keyspace: Keyspace::new(7), history, now_ms: NOW_MS, count: 0 }
    }

    fn run(&mut self, id: CommandId, request: &[u8]) -> String {
        let mut parser = RequestParser::new(RequestLimits::unlimited());
        parser.parse(request).expect("a request");
        let args: Args<'_> = parser.args(request);
        let (mut out, mut effects) = (Rope::new(), Effects::new(true));
        let call = &mut Call {
            args,
            names: &Names::new(&self.keyspace.databases.clone(), 0, false),
            keyspace: &mut self.keyspace,
            now_ms: self.now_ms,
            random: &mut Random::seed_from_u64(1),
            effects: &mut effects,
            looks: &mut Looks::default(),
            source: &Source::none(),
            scripts: &Arc::default(),
            reply: ReplyWriter::holding(&mut out, ProtocolVersion::Resp2),
        };
        execute::run_on(id, call, &mut self.history);
        self.count = effects.count();
        effects.places().for_each(|place| self.history.step(place));
        String::from_utf8_lossy(&out.into_bytes()).replace("\r\n", "|")
    }

    fn exec(&mut self, watched: &[Watched], lines: &[&str]) -> String {
        let mut writer = UnitWriter::default();
        for line in lines {
            writer.push_words(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        }
        self.run(CommandId::KorumExec, &writer.finish(0, watched, false))
    }

    fn watch(&mut self, key: &str) -> Watched {
        let reply = self.run(CommandId::KorumWatch, &watch_request(0, std::iter::once(key.as_bytes())));
        let numbers: Vec<u64> = reply.split([':', '|']).filter_map(|word| word.parse().ok()).collect();
        let [era, sequence, swaps] = numbers[..] else { panic!("{reply}") };
        let key = Bytes::copy_from_slice(key.as_bytes());
        Watched { key, since: Position { era: Epoch(era), sequence }, swaps }
    }
}

#[test]
fn commands_run_in_order_and_an_error_stops_only_itself() {
    let mut room = Room::new(8);
    let lines = ["SET a x", "INCR a", "NOSUCH", "GET", "KORUM CLEAR 0", "SET b 1", "INCR b", "GET a"];
    let reply = room.exec(&[], &lines);
    let expected = "*8|+OK|-ERR value is not an integer or out of range|-ERR unknown command 'NOSUCH', with args \
                    beginning with: |-ERR wrong number of arguments for 'get' command|+OK|+OK|:2|$-1|";
    assert_eq!(reply, expected);
    assert_eq!(room.count, 4);
    assert_eq!(room.exec(&[], &[]), "*0|");
}

#[test]
fn a_watched_key_that_changed_in_between_stops_everything() {
    let mut room = Room::new(8);
    let watched = room.watch("a");
    room.exec(&[], &["SET b 1"]);
    assert_eq!(room.exec(std::slice::from_ref(&watched), &["SET c 1"]), "*1|+OK|");
    room.exec(&[], &["SET a 1"]);
    assert_eq!(room.exec(std::slice::from_ref(&watched), &["SET c 2"]), "*-1|");
    assert_eq!((room.count, room.exec(&[], &["GET c"])), (0, "*1|$1|1|".to_owned()));
    // What changes nothing is no change, and neither is what comes to another key.
    let watched = room.watch("nobody");
    room.exec(&[], &["DEL nobody", "EXPIRE nobody 9", "GET nobody"]);
    assert_eq!(room.exec(std::slice::from_ref(&watched), &[]), "*0|");
    room.exec(&[], &["KORUM CLEAR 0"]);
    assert_eq!(room.exec(&[watched], &[]), "*-1|");
}

#[test]
fn a_watched_key_that_expires_has_changed_whether_or_not_it_was_removed() {
    let mut room = Room::new(8);
    room.exec(&[], &["SET a 1 PX 100"]);
    let watched = room.watch("a");
    assert_eq!(room.exec(std::slice::from_ref(&watched), &[]), "*0|");
    room.now_ms += 200;
    assert_eq!(room.exec(std::slice::from_ref(&watched), &["SET b 1"]), "*-1|");
    // One that was expired already when it was watched is only gone.
    let later = room.watch("a");
    assert_eq!((room.count, room.exec(&[later], &["SET b 1"])), (1, "*1|+OK|".to_owned()));
    assert_eq!(room.exec(&[watched], &["SET b 1"]), "*-1|");
}

#[test]
fn doubt_is_a_change() {
    let mut room = Room::new(2);
    let watched = room.watch("a");
    room.exec(&[], &["SET b 1", "SET b 2"]);
    assert_eq!(room.exec(std::slice::from_ref(&watched), &[]), "*0|");
    room.exec(&[], &["SET b 3"]);
    assert_eq!(room.exec(std::slice::from_ref(&watched), &[]), "*-1|", "the backlog is too short");
    for (era, sequence) in [(2, 0), (3, 9), (4, 0)] {
        let since = Position { era: Epoch(era), sequence };
        assert_eq!(
            room.exec(&[Watched { since, ..watched.clone() }], &[]),
            "*-1|",
            "{since:?} is not on the path"
        );
    }
    assert_eq!(room.run(CommandId::KorumExec, b"KORUM EXEC 0 xxxx\r\n"), "-ERR syntax error|");
}

#[derive(Clone, Debug)]
enum Deed {
    Watch(u8),
    Write(u8),
    Expire(u8),
    Clear,
    Pass,
    /// Another era begins: the same process, or another that has taken over everything.
    Era,
    Exec,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        3 => (0..4_u8).prop_map(Deed::Watch),
        4 => (0..4_u8).prop_map(Deed::Write),
        2 => (0..4_u8).prop_map(Deed::Expire),
        1 => Just(Deed::Pass),
        1 => Just(Deed::Clear),
        1 => Just(Deed::Era),
        4 => Just(Deed::Exec),
    ];
    prop::collection::vec(deed, 1..60)
}

proptest! {
    /// The model keeps, for each key, its content and how often it changed.
    #[test]
    fn a_unit_runs_only_if_no_watched_key_has_changed(deeds in deeds(), backlog_max in 0..12_usize) {
        let mut room = Room::new(backlog_max);
        let mut changes: BTreeMap<u8, u64> = BTreeMap::new();
        let mut deadlines: BTreeMap<u8, u64> = BTreeMap::new();
        // Watched keys, with the number of changes at that time.
        let mut watched: Vec<(Watched, u8, u64)> = Vec::new();
        let (mut era, mut effects, mut oldest) = (3, 0, 0);
        for deed in deeds {
            let expired: Vec<u8> = deadlines.iter().filter(|(_, at)| room.now_ms > **at).map(|(key, _)| *key).collect();
            for key in expired {
                deadlines.remove(&key);
                *changes.entry(key).or_default() += 1;
            }
            match deed {
                Deed::Watch(key) => {
                    let entry = room.watch(&format!("k{key}"));
                    if watched.is_empty() {
                        oldest = effects;
                    }
                    effects += room.count;
                    watched.push((entry, key, changes.get(&key).copied().unwrap_or_default()));
                }
                Deed::Write(key) => {
                    room.exec(&[], &[&format!("SET k{key} x")]);
                    effects += room.count;
                    deadlines.remove(&key);
                    *changes.entry(key).or_default() += 1;
                }
                Deed::Expire(key) => {
                    room.exec(&[], &[&format!("SET k{key} x PX 50")]);
                    effects += room.count;
                    deadlines.insert(key, room.now_ms + 50);
                    *changes.entry(key).or_default() += 1;
                }
                Deed::Clear => {
                    room.exec(&[], &["KORUM CLEAR 0"]);
                    effects += 1 + backlog_max;
                    deadlines.clear();
                    (0..4).for_each(|key| *changes.entry(key).or_default() += 1);
                }
                Deed::Pass => room.now_ms += 30,
                Deed::Era => {
                    era += 1;
                    room.history.begin(Epoch(era));
                    // Perhaps an era without effects, which the path forgets.
                    effects += 1 + backlog_max;
                }
                Deed::Exec => {
                    let all: Vec<Watched> = watched.iter().map(|(entry, ..)| entry.clone()).collect();
                    let has_run = room.exec(&all, &["GET other"]).starts_with("*1|");
                    let is_same = watched.iter().all(|(_, key, then)| changes.get(key).copied().unwrap_or_default() == *then);
                    prop_assert!(is_same || !has_run, "a change was missed");
                    // Where the backlog reaches back, nothing is stopped for nothing.
                    if is_same && effects - oldest <= backlog_max {
                        prop_assert!(has_run, "stopped for nothing");
                    }
                    watched.clear();
                }
            }
        }
    }
}
