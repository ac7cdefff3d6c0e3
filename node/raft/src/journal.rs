//! The log as a value, and the records that rebuild it.
//!
//! For: what the log holds now, replay of a file, and the shortest file that says the same.
//! Not here: files and threads (`writer`), openraft's trait (`log_store`).
//!
//! The file is a journal: entries, but also every truncation, purge and commit, in order, and zeros behind
//! them. So it is only ever appended to, a cut tail is always an older state of the same log, and now and
//! then the whole is written anew ([`Log::rewrite`]).

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use korum_protocol::peer::wire;
use serde::{Deserialize, Serialize};

use super::record::{self, Next};
use super::types::{Entry, LogId};

/// A file shorter than this is not worth writing anew, bytes.
const REWRITE_BYTES_MIN: usize = 1 << 20;

/// One step of the log's history.
#[derive(Serialize, Deserialize)]
pub enum Record {
    /// The log grows by this entry.
    Entry(Entry),
    /// Entries from this index on are gone: another leader's stand there.
    Truncate(u64),
    /// Entries up to this one are gone: a snapshot holds what they did.
    Purge(LogId),
    /// Entries up to this one are agreed.
    Committed(LogId),
}

impl Record {
    /// This record's bytes, framed.
    pub fn bytes(&self) -> Vec<u8> {
        let body = wire::encode(self);
        let mut bytes = Vec::with_capacity(body.len() + record::HEADER_BYTES);
        record::write(&body, &mut bytes);
        bytes
    }
}

/// What the log holds.
#[derive(Default)]
pub struct Log {
    entries: BTreeMap<u64, (Entry, usize)>,
    /// The last entry that was purged.
    pub purged: Option<LogId>,
    /// The last entry known to be agreed.
    pub committed: Option<LogId>,
    /// Bytes of all entries that are kept.
    live_bytes: usize,
    /// Bytes of all records in the file, all history included.
    file_bytes: usize,
}

/// Why a file was cut.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes behind the good ones that must go; what follows them is zeros already.
    pub dropped: usize,
    /// Good records stood behind the bad one: more than a torn tail.
    pub damage: bool,
}

impl Log {
    /// The log that a file's bytes describe, how many of them are good, and what follows those if not zeros.
    pub fn replay(bytes: &[u8]) -> (Self, usize, Option<Cut>) {
        let mut log = Self::default();
        let mut left = bytes;
        loop {
            let (record, rest) = match record::next(left) {
                Next::End | Next::Bad => break,
                Next::Record { body, rest } => match wire::decode::<Record>(body) {
                    Ok(record) => (record, rest),
                    Err(_) => break,
                },
            };
            log.apply(record, left.len() - rest.len());
            left = rest;
        }
        let cut = left.iter().rposition(|byte| *byte != 0).map(|last| {
            let dropped = last + 1;
            Cut { dropped, damage: record::good_one_follows(&left[..dropped]) }
        });
        (log, bytes.len() - left.len(), cut)
    }

    /// Takes one step; `bytes` is the size of its framed record.
    pub fn apply(&mut self, record: Record, bytes: usize) {
        self.file_bytes += bytes;
        match record {
            Record::Entry(entry) => {
                self.live_bytes += bytes;
                if let Some((_, old)) = self.entries.insert(entry.log_id.index, (entry, bytes)) {
                    self.live_bytes -= old;
                }
            }
            Record::Truncate(since) => {
                let gone = self.entries.split_off(&since);
                self.forget(&gone);
            }
            Record::Purge(upto) => {
                let kept = self.entries.split_off(&(upto.index.saturating_add(1)));
                let gone = std::mem::replace(&mut self.entries, kept);
                self.forget(&gone);
                self.purged = self.purged.max(Some(upto));
            }
            Record::Committed(upto) => self.committed = self.committed.max(Some(upto)),
        }
    }

    fn forget(&mut self, gone: &BTreeMap<u64, (Entry, usize)>) {
        self.live_bytes -= gone.values().map(|(_, bytes)| bytes).sum::<usize>();
    }

    /// The last entry, or the last purged one.
    pub fn last(&self) -> Option<LogId> {
        self.entries.last_key_value().map(|(_, (entry, _))| entry.log_id).or(self.purged)
    }

    /// The last entry known to be agreed, as far as it or a snapshot of it is here.
    pub fn committed_here(&self) -> Option<LogId> {
        self.committed.min(self.last())
    }

    /// Entries of a range of indices, in order; at least one, then as many as fit in `bytes_max`.
    pub fn range(&self, range: impl RangeBounds<u64>, bytes_max: usize) -> Vec<Entry> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        if is_empty(bounds) {
            return vec![];
        }
        let mut bytes = 0;
        let fits = |&(_, (_, size)): &(&u64, &(Entry, usize))| {
            let first = bytes == 0;
            bytes += size;
            first || bytes <= bytes_max
        };
        self.entries.range(bounds).take_while(fits).map(|(_, (entry, _))| entry.clone()).collect()
    }

    /// A shorter file that says the same, once half of the present one is history.
    pub fn rewrite_if_worth_it(&mut self) -> Option<Vec<u8>> {
        if self.file_bytes < REWRITE_BYTES_MIN.max(2 * self.live_bytes) {
            return None;
        }
        let bytes = self.rewrite();
        self.file_bytes = bytes.len();
        Some(bytes)
    }

    /// The shortest file that says the same.
    pub fn rewrite(&self) -> Vec<u8> {
        let purged = self.purged.map(Record::Purge);
        let entries = self.entries.values().map(|(entry, _)| Record::Entry(entry.clone()));
        let committed = self.committed.map(Record::Committed);
        purged.into_iter().chain(entries).chain(committed).flat_map(|record| record.bytes()).collect()
    }
}

/// `BTreeMap::range` panics on an inverted range; openraft may ask for one.
fn is_empty(bounds: (std::ops::Bound<u64>, std::ops::Bound<u64>)) -> bool {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    match bounds {
        (Included(start), Excluded(end)) | (Excluded(start), Included(end) | Excluded(end)) => start >= end,
        (Included(start), Included(end)) => start > end,
        (Unbounded, _) | (_, Unbounded) => false,
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::map::MapChange;
    use openraft::{CommittedLeaderId, EntryPayload};
    use proptest::prelude::*;

    use super::*;

    fn id(term: u64, index: u64) -> LogId {
        LogId::new(CommittedLeaderId::new(term, 1), index)
    }

    fn entry(term: u64, index: u64) -> Entry {
        let change = MapChange::Set { name: format!("name {index}"), value: Some("x".repeat(term as usize)) };
        Entry { log_id: id(term, index), payload: EntryPayload::Normal(change) }
    }

    fn look(log: &Log) -> (Vec<LogId>, Option<LogId>, Option<LogId>) {
        (log.range(.., usize::MAX).iter().map(|entry| entry.log_id).collect(), log.purged, log.committed)
    }

    /// A history as Raft makes one: appends, truncations of the tail, purges of what is committed.
    fn history(steps: &[u8]) -> Vec<Record> {
        let mut records = vec![];
        let (mut next, mut committed, mut term) = (0, 0, 1);
        for step in steps {
            match step % 8 {
                0 if next > committed => {
                    next -= 1;
                    term += 1;
                    records.push(Record::Truncate(next));
                }
                1 if next > committed => {
                    committed = next;
                    records.push(Record::Committed(id(term, next - 1)));
                }
                2 if committed > 1 => records.push(Record::Purge(id(1, committed - 2))),
                _ => {
                    records.push(Record::Entry(entry(term, next)));
                    next += 1;
                }
            }
        }
        records
    }

    proptest! {
        #[test]
        fn replay_of_a_damaged_file_is_an_older_state_of_the_same_log(
            steps in prop::collection::vec(any::<u8>(), 1..40),
            at in any::<prop::sample::Index>(), flip in 0..=255u8, keep in any::<prop::sample::Index>(),
            zeros in 0..64usize,
        ) {
            let mut bytes = vec![];
            let mut states = vec![look(&Log::default())];
            let mut log = Log::default();
            for record in history(&steps) {
                let framed = record.bytes();
                log.apply(record, framed.len());
                bytes.extend(framed);
                states.push(look(&log));
            }
            bytes.resize(bytes.len() + zeros, 0);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            bytes.truncate(keep.index(bytes.len() + 1));

            let (found, good, cut) = Log::replay(&bytes);
            prop_assert!(states.contains(&look(&found)));
            // Cutting is final: what was kept replays to the same, without a complaint.
            bytes[good..good + cut.map_or(0, |cut| cut.dropped)].fill(0);
            let (again, good_again, cut) = Log::replay(&bytes);
            prop_assert_eq!((look(&again), good_again, cut), (look(&found), good, None));
        }

        #[test]
        fn a_rewritten_file_says_the_same(steps in prop::collection::vec(any::<u8>(), 1..60)) {
            let mut log = Log::default();
            for record in history(&steps) {
                let size = record.bytes().len();
                log.apply(record, size);
            }
            let (again, _, cut) = Log::replay(&log.rewrite());
            prop_assert_eq!(cut, None);
            prop_assert_eq!(look(&again), look(&log));
            prop_assert_eq!(again.live_bytes, log.live_bytes);
        }
    }

    #[test]
    fn damage_in_the_middle_is_told_from_a_torn_tail() {
        let mut bytes: Vec<u8> = (0..3).flat_map(|index| Record::Entry(entry(1, index)).bytes()).collect();
        let torn = &bytes[..bytes.len() - 1];
        assert_eq!(Log::replay(torn).2.map(|cut| cut.damage), Some(false));
        bytes.extend([0; 64]);
        assert_eq!(Log::replay(&bytes).2, None);
        bytes[20] ^= 1;
        assert_eq!(Log::replay(&bytes).2.map(|cut| cut.damage), Some(true));
        // Zeros where a header was are not the end if something follows them.
        bytes[..record::HEADER_BYTES].fill(0);
        assert_eq!(Log::replay(&bytes).2.map(|cut| cut.damage), Some(true));
    }

    #[test]
    fn a_range_gives_at_least_one_entry_and_then_what_fits() {
        let mut log = Log::default();
        (0..10).for_each(|index| log.apply(Record::Entry(entry(1, index)), 100));
        assert_eq!(log.range(3..9, 1).len(), 1);
        assert_eq!(log.range(3..9, 250).len(), 2);
        assert_eq!(log.range(3..9, usize::MAX).len(), 6);
        #[expect(clippy::reversed_empty_ranges, reason = "openraft may ask for one")]
        let nothing = log.range(9..3, usize::MAX);
        assert!(nothing.is_empty());
    }
}
