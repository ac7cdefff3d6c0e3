//! Walking the keys in hash order, a bounded piece at a time.
//!
//! For: `SCAN`, `KEYS`, `CLUSTER GETKEYSINSLOT`.
//! A key that is there throughout a full walk is seen at least once, whatever splits and merges happen.

use super::entry::Entry;
use super::keyspace::Keyspace;
use super::position::HashPosition;

/// One piece of a walk.
pub struct Scanned<'a> {
    /// The entries, expired ones included, in hash order.
    pub entries: Vec<&'a Entry>,
    /// Where to go on; `None` at the end.
    pub next: Option<HashPosition>,
}

impl Keyspace {
    /// All entries from `from` on, up to a position chosen so that there are at least `count` of them
    /// unless the end comes first (and hardly more).
    #[must_use]
    pub fn scan(&self, from: HashPosition, count: usize) -> Scanned<'_> {
        let mut entries = Vec::new();
        let mut at = from;
        while let Some((range, _)) = self.table.segment(at) {
            let mut found = self.sorted(at);
            let missing = count.max(1) - entries.len();
            if found.len() > missing {
                let cut = found[missing].0;
                // Entries of one position are never parted.
                let cut = if found[missing - 1].0 == cut { cut.next() } else { cut };
                found.truncate(found.partition_point(|(position, _)| *position < cut));
                entries.extend(found.into_iter().map(|(_, entry)| entry));
                return Scanned { entries, next: (cut < HashPosition::END).then_some(cut) };
            }
            entries.extend(found.into_iter().map(|(_, entry)| entry));
            at = range.until;
            if entries.len() >= count.max(1) {
                break;
            }
        }
        let next = (at < HashPosition::END && !self.is_empty()).then_some(at);
        Scanned { entries, next }
    }

    /// The entries of the segment of `from`, from there on, by position.
    pub(super) fn sorted(&self, from: HashPosition) -> Vec<(HashPosition, &Entry)> {
        let Some((_, entries)) = self.table.segment(from) else { return Vec::new() };
        let mut found: Vec<_> = entries
            .iter()
            .map(|entry| (self.hash_position(entry.key()), entry))
            .filter(|(position, _)| *position >= from)
            .collect();
        found.sort_unstable_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.key().cmp(y.key())));
        found
    }
}
