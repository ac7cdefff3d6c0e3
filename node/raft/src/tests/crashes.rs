//! Log and vote on a disk that loses its power: of what was not synced, any part may be there afterwards.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use openraft::{CommittedLeaderId, EntryPayload};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::super::journal::{Log, Record};
use super::super::log_file::{LogFile, Medium};
use super::super::types::{Entry, LogId, Vote};
use super::super::vote_file::{FILE_BYTES, VoteFile};
use super::setting;

/// A disk whose power can fail at any operation.
#[derive(Clone, Default)]
struct Disk(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    durable: Vec<u8>,
    /// Writes since the last sync, in order.
    pending: Vec<(usize, Vec<u8>)>,
    /// Operations until the power fails.
    left: Option<usize>,
}

impl State {
    fn operate(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => Err(io::Error::other("no power")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn land(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        self.durable[at..end].copy_from_slice(bytes);
    }
}

impl Disk {
    fn of(bytes: Vec<u8>) -> Self {
        Self(Rc::new(RefCell::new(State { durable: bytes, ..State::default() })))
    }

    fn fail_after(&self, operations: usize) {
        self.0.borrow_mut().left = Some(operations);
    }

    /// The power fails, if it did not yet, and comes back: some pieces of the pending writes are there.
    fn crash(&self, random: &mut SmallRng) {
        let mut state = self.0.borrow_mut();
        state.left = None;
        let piece_bytes = [3, 512, 4096][random.random_range(0..3)];
        let chance = [0.0, 0.5, 0.9, 1.0][random.random_range(0..4)];
        for (mut at, bytes) in std::mem::take(&mut state.pending) {
            for piece in bytes.chunks(piece_bytes) {
                if random.random_bool(chance) {
                    state.land(at, piece);
                }
                at += piece.len();
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.borrow().durable.clone()
    }
}

impl Medium for Disk {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.pending.push((at as usize, bytes.to_vec()));
        state.operate()
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        state.operate()?;
        for (at, bytes) in std::mem::take(&mut state.pending) {
            state.land(at, &bytes);
        }
        Ok(())
    }
}

type Look = (Vec<LogId>, Option<LogId>);

fn look(log: &Log) -> Look {
    (log.range(.., usize::MAX).iter().map(|entry| entry.log_id).collect(), log.committed)
}

fn entry(term: u64, index: u64, value_bytes: usize) -> Record {
    let payload = EntryPayload::Normal(setting("name", &"x".repeat(value_bytes)));
    Record::Entry(Entry { log_id: LogId::new(CommittedLeaderId::new(term, 1), index), payload })
}

/// A step that the log has not seen before: no two entries of a test have the same term.
fn next_record(log: &Log, term: u64, random: &mut SmallRng) -> Record {
    let last = log.last();
    let next = last.map_or(0, |last| last.index + 1);
    match random.random_range(0..8) {
        0 if next > 1 => Record::Truncate(next - 1),
        1 if last.is_some() => Record::Committed(last.expect("is there")),
        _ => entry(term, next, [1, 40, 700, 9_000][random.random_range(0..4)]),
    }
}

/// Opens the log, which may take several tries when the power fails again and again.
fn reopen(disk: &Disk, random: &mut SmallRng) -> (Log, LogFile<Disk>) {
    disk.crash(random);
    while random.random_bool(0.5) {
        disk.fail_after(random.random_range(0..12));
        if LogFile::recover(disk.clone(), &disk.bytes()).is_err() {
            disk.crash(random);
        }
        disk.0.borrow_mut().left = None;
    }
    let (log, file, _) = LogFile::recover(disk.clone(), &disk.bytes()).expect("there is power");
    assert!(Log::replay(&disk.bytes()).2.is_none(), "what follows the last record is not all zeros");
    (log, file)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_a_crash_the_log_is_a_state_it_had_and_no_older_than_what_was_synced(seed in any::<u64>()) {
        let mut random = SmallRng::seed_from_u64(seed);
        let disk = Disk::default();
        let (mut log, mut file) = reopen(&disk, &mut random);
        let (mut states, mut term) = (vec![look(&log)], 0);
        for _ in 0..60 {
            if random.random_bool(0.1) {
                disk.fail_after(random.random_range(0..6));
            }
            let mut batch = vec![];
            for _ in 0..random.random_range(1..6) {
                term += 1;
                let record = next_record(&log, term, &mut random);
                let bytes = record.bytes();
                log.apply(record, bytes.len());
                states.push(look(&log));
                batch.extend(bytes);
            }
            let result = match file.append(&batch) {
                Ok(()) if random.random_bool(0.6) => file.sync().map(|()| {
                    states.drain(..states.len() - 1);
                }),
                result => result,
            };
            let result = result.and_then(|()| if random.random_bool(0.2) { file.make_room() } else { Ok(()) });
            if result.is_err() || random.random_bool(0.05) {
                (log, file) = reopen(&disk, &mut random);
                let found = look(&log);
                prop_assert!(states.contains(&found), "{found:?} is none of {states:?}");
                states = vec![found];
            }
        }
    }

    #[test]
    fn after_a_crash_the_vote_is_the_last_that_was_saved_or_one_that_was_being_saved(seed in any::<u64>()) {
        let mut random = SmallRng::seed_from_u64(seed);
        let disk = Disk::of(vec![0; FILE_BYTES]);
        let (mut found, mut file) = VoteFile::recover(disk.clone(), &disk.bytes()).unwrap();
        for term in 1..60 {
            if random.random_bool(0.2) {
                disk.fail_after(random.random_range(0..5));
            }
            let vote = Vote::new(term, 1);
            let tried = Some(vote);
            let result = file.save(&vote).and_then(|()| {
                found = Some(vote);
                if random.random_bool(0.8) { file.copy(&vote) } else { Ok(()) }
            });
            if result.is_err() || random.random_bool(0.1) {
                disk.crash(&mut random);
                // The power may fail while it is read, too.
                disk.fail_after(random.random_range(0..3));
                if VoteFile::recover(disk.clone(), &disk.bytes()).is_err() {
                    disk.crash(&mut random);
                }
                disk.0.borrow_mut().left = None;
                let (vote, again) = VoteFile::recover(disk.clone(), &disk.bytes()).unwrap();
                prop_assert!(vote == found || vote == tried, "{vote:?} instead of {found:?} or {tried:?}");
                (found, file) = (vote, again);
            }
        }
    }

    #[test]
    fn a_block_of_the_vote_that_goes_bad_changes_nothing(
        votes in 1..5u64, at in 0..FILE_BYTES, flip in 1..=255u8,
    ) {
        let mut disk = Disk::of(vec![0; FILE_BYTES]);
        let (_, mut file) = VoteFile::recover(disk.clone(), &disk.bytes()).unwrap();
        for term in 1..=votes {
            file.save(&Vote::new(term, 1)).unwrap();
            file.copy(&Vote::new(term, 1)).unwrap();
        }
        disk.sync().unwrap();
        let mut bytes = disk.bytes();
        bytes[at] ^= flip;
        let (found, _) = VoteFile::recover(Disk::of(bytes.clone()), &bytes).unwrap();
        prop_assert_eq!(found, Some(Vote::new(votes, 1)));
    }
}

#[test]
fn a_vote_of_which_both_blocks_are_bad_is_refused() {
    let disk = Disk::of(vec![0; FILE_BYTES]);
    let (_, mut file) = VoteFile::recover(disk.clone(), &disk.bytes()).unwrap();
    file.save(&Vote::new(1, 1)).unwrap();
    file.save(&Vote::new(2, 1)).unwrap();
    let mut bytes = disk.bytes();
    bytes[12] ^= 1;
    bytes[FILE_BYTES / 2 + 12] ^= 1;
    for bytes in [&bytes[..], &bytes[..FILE_BYTES - 1], &[]] {
        let error = VoteFile::recover(Disk::default(), bytes).err().expect("is refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

#[test]
fn a_log_without_zeros_and_one_that_outgrows_its_room_go_on() {
    let mut bytes = entry(1, 0, 1).bytes();
    for (index, value_bytes) in [(1, 2 << 20), (2, 1), (3, 700 << 10)] {
        let disk = Disk::of(bytes);
        let (log, mut file, cut) = LogFile::recover(disk.clone(), &disk.bytes()).unwrap();
        assert_eq!((look(&log).0.len(), cut), (index as usize, None));
        file.append(&entry(1, index, value_bytes).bytes()).unwrap();
        file.sync().unwrap();
        bytes = disk.bytes();
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    }
    assert_eq!(look(&Log::replay(&bytes).0).0.len(), 4);
}
