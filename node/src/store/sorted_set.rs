//! Sorted sets: members with scores, in the order of scores, and of members where those are equal.
//!
//! For: the data of `ZADD` and kin; packed in order while there are few, else a table beside an order.
//! Not here: what a command means (`command::sorted_set`), bytes between nodes (`replication::effect`).
//!
//! The table keeps an order of its own, for walks and for chance: that in which members came, except that the last
//! one takes the place of one that is removed. It follows from the changes alone, so it is the same on all copies.

use indexmap::IndexMap;

use super::collection::{Keyed, Scan, table_bytes};
use super::packed::Packed;
use super::ranks::Ranks;
use super::score::Score;

/// Most members of a packed sorted set, and the longest, bytes (Redis' defaults).
pub const PACKED_MEMBERS_MAX: usize = 128;
/// See [`PACKED_MEMBERS_MAX`].
pub const PACKED_MEMBER_BYTES_MAX: usize = 64;

/// A sorted set. Two are equal if they have the same members with the same scores.
#[derive(Clone, Debug, Default)]
pub struct SortedSet(Form);

#[derive(Clone, Debug)]
enum Form {
    /// Member, score, member, score … in order.
    Packed(Packed),
    Table(Box<Table>),
}

#[derive(Clone, Debug)]
struct Table {
    scores: IndexMap<Box<[u8]>, Score, Keyed>,
    /// Indexes of the table, in order. (Four thousand million members do not fit a node.)
    ranks: Ranks,
    /// Bytes of all members.
    items: usize,
}

/// What happens to a sorted set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SortedSetChange<'a> {
    /// The member has this score now.
    Put {
        /// The member.
        member: &'a [u8],
        /// Its score.
        score: Score,
    },
    /// The member is gone.
    Remove {
        /// The member.
        member: &'a [u8],
    },
}

impl Default for Form {
    fn default() -> Self {
        Self::Packed(Packed::default())
    }
}

/// A member and its score.
type Pair<'a> = (&'a [u8], Score);

fn score_of(item: &[u8]) -> Score {
    Score::from_bytes(item).unwrap_or_default()
}

/// The pairs of a packed set from `rank` on.
fn packed_upwards(packed: &Packed, rank: usize) -> impl Iterator<Item = Pair<'_>> {
    let mut items = packed.iter().skip(2 * rank);
    std::iter::from_fn(move || Some((items.next()?, score_of(items.next()?))))
}

impl Table {
    /// Whether an item of the order comes before `score` and `member`.
    fn is_before(&self, item: u32, score: Score, member: &[u8]) -> bool {
        self.pair(item).is_some_and(|(found, of)| (of, found) < (score, member))
    }

    fn pair(&self, item: u32) -> Option<Pair<'_>> {
        self.scores.get_index(item as usize).map(|(member, score)| (&member[..], *score))
    }

    fn put(&mut self, member: &[u8], score: Score) {
        let index = match self.scores.get_full(member) {
            Some((_, _, old)) if *old == score => return,
            Some((index, _, old)) => {
                let old = *old;
                self.take_rank(old, member);
                self.scores[index] = score;
                index
            }
            None => {
                self.items += member.len();
                self.scores.insert_full(member.into(), score).0
            }
        };
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.insert(index as u32, |item| self.is_before(item, score, member));
        self.ranks = ranks;
    }

    fn take_rank(&mut self, score: Score, member: &[u8]) {
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.remove(|item| self.is_before(item, score, member));
        self.ranks = ranks;
    }

    fn remove(&mut self, member: &[u8]) {
        let Some((index, _, score)) = self.scores.get_full(member) else { return };
        let score = *score;
        self.take_rank(score, member);
        // The last one takes the place of the one that is removed.
        let last = self.scores.len() - 1;
        if index != last {
            let mut ranks = std::mem::take(&mut self.ranks);
            if let Some((moved, score)) = self.pair(last as u32) {
                ranks.replace(index as u32, |item| self.is_before(item, score, moved));
            }
            self.ranks = ranks;
        }
        self.scores.swap_remove_index(index);
        self.items -= member.len();
        if self.scores.capacity() > 4 * self.scores.len().max(8) {
            self.scores.shrink_to(2 * self.scores.len());
        }
    }
}

impl SortedSet {
    /// How it is kept, as a number for [`SortedSet::in_form`].
    #[must_use]
    pub fn form(&self) -> u8 {
        self.is_table().into()
    }

    /// An empty one that is kept so, as long as what comes into it allows.
    #[must_use]
    pub fn in_form(form: u8) -> Self {
        if form == 0 { Self::default() } else { Self::table() }
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.len() / 2,
            Form::Table(table) => table.scores.len(),
        }
    }

    /// No members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The score of a member.
    #[must_use]
    pub fn score(&self, member: &[u8]) -> Option<Score> {
        match &self.0 {
            Form::Packed(packed) => {
                packed_upwards(packed, 0).find(|(found, _)| *found == member).map(|(_, score)| score)
            }
            Form::Table(table) => table.scores.get(member).copied(),
        }
    }

    /// The place of a member in the order.
    #[must_use]
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        let score = self.score(member)?;
        Some(self.partition_point(|found, of| (of, found) < (score, member)))
    }

    /// How many members come before the first one for which `is_before` is not true.
    #[must_use]
    pub fn partition_point(&self, mut is_before: impl FnMut(&[u8], Score) -> bool) -> usize {
        match &self.0 {
            Form::Packed(packed) => {
                packed_upwards(packed, 0).take_while(|(member, score)| is_before(member, *score)).count()
            }
            Form::Table(table) => table.ranks.partition_point(|item| {
                table.pair(item).is_some_and(|(member, score)| is_before(member, score))
            }),
        }
    }

    /// The members from `rank` on, lowest scores first.
    pub fn upwards(&self, rank: usize) -> impl Iterator<Item = Pair<'_>> {
        let (packed, table) = self.forms();
        let pairs = packed.map(|packed| packed_upwards(packed, rank));
        let others = table.map(|table| table.ranks.upwards(rank).filter_map(move |item| table.pair(item)));
        pairs.into_iter().flatten().chain(others.into_iter().flatten())
    }

    /// The members from `rank` on, highest scores first; none if there is no such rank.
    pub fn downwards(&self, rank: usize) -> impl Iterator<Item = Pair<'_>> {
        let (packed, table) = self.forms();
        let pairs = packed.filter(|packed| rank < packed.len() / 2).map(|packed| {
            let mut items = packed.iter().rev().skip(packed.len() - 2 * (rank + 1));
            std::iter::from_fn(move || {
                let score = score_of(items.next()?);
                Some((items.next()?, score))
            })
        });
        let others = table.map(|table| table.ranks.downwards(rank).filter_map(move |item| table.pair(item)));
        pairs.into_iter().flatten().chain(others.into_iter().flatten())
    }

    fn forms(&self) -> (Option<&Packed>, Option<&Table>) {
        match &self.0 {
            Form::Packed(packed) => (Some(packed), None),
            Form::Table(table) => (None, Some(table)),
        }
    }

    /// The member with this index in the set's own order, which is not that of scores.
    #[must_use]
    pub fn nth(&self, index: usize) -> Option<Pair<'_>> {
        match &self.0 {
            Form::Packed(packed) => packed.get(2 * index).zip(packed.get(2 * index + 1).map(score_of)),
            Form::Table(table) => table.pair(u32::try_from(index).ok()?),
        }
    }

    /// The index of a member of a table in the set's own order.
    #[must_use]
    pub fn index_of(&self, member: &[u8]) -> Option<usize> {
        if let Form::Table(table) = &self.0 { table.scores.get_index_of(member) } else { None }
    }

    /// An empty one that never was packed.
    #[must_use]
    pub fn table() -> Self {
        let mut set = Self::default();
        set.unpack();
        set
    }

    /// Whether it is not packed (any more).
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.0, Form::Table(_))
    }

    /// All members in the set's own order, which is not that of scores.
    pub fn iter(&self) -> impl Iterator<Item = Pair<'_>> {
        let (packed, table) = self.forms();
        let pairs = packed.map(|packed| packed_upwards(packed, 0));
        let entries = table.into_iter().flat_map(|table| &table.scores);
        let entries = entries.map(|(member, score)| (&member[..], *score));
        pairs.into_iter().flatten().chain(entries)
    }

    /// The next members of a walk, by their indexes; see [`Scan::downwards`]. A packed set is walked in one step.
    #[must_use]
    pub fn scan(&self, cursor: u64, count: usize) -> Scan {
        match &self.0 {
            Form::Packed(_) => Scan::whole(self.len()),
            Form::Table(table) => Scan::downwards(table.scores.len(), cursor, count),
        }
    }

    /// Does what a primary did.
    pub fn apply(&mut self, change: &SortedSetChange<'_>) {
        match *change {
            SortedSetChange::Put { member, score } => self.put(member, score),
            SortedSetChange::Remove { member } => self.remove(member),
        }
    }

    /// Gives a member a score.
    pub fn put(&mut self, member: &[u8], score: Score) {
        if let Form::Packed(packed) = &mut self.0 {
            let place = position(packed, member);
            if place.is_some()
                || packed.len() < 2 * PACKED_MEMBERS_MAX && member.len() <= PACKED_MEMBER_BYTES_MAX
            {
                if let Some(place) = place {
                    packed.remove(2 * place, 2);
                }
                let is_before = |(found, of): &Pair<'_>| (*of, *found) < (score, member);
                let rank = packed_upwards(packed, 0).take_while(is_before).count();
                packed.insert(2 * rank, member);
                packed.insert(2 * rank + 1, &score.to_bytes());
                return;
            }
            self.unpack();
        }
        if let Form::Table(table) = &mut self.0 {
            table.put(member, score);
        }
    }

    fn remove(&mut self, member: &[u8]) {
        match &mut self.0 {
            Form::Packed(packed) => {
                if let Some(place) = position(packed, member) {
                    packed.remove(2 * place, 2);
                }
            }
            Form::Table(table) => table.remove(member),
        }
    }

    /// Becomes a table, in the same order.
    fn unpack(&mut self) {
        let scores = IndexMap::with_capacity_and_hasher(self.len() + 1, Keyed);
        let mut table = Box::new(Table { scores, ranks: Ranks::default(), items: 0 });
        self.iter().for_each(|(member, score)| table.put(member, score));
        self.0 = Form::Table(table);
    }

    /// Bytes of all members, or somewhat more.
    #[must_use]
    pub fn item_bytes(&self) -> usize {
        match &self.0 {
            Form::Packed(packed) => packed.bytes(),
            Form::Table(table) => table.items,
        }
    }

    /// What it holds on the heap, itself included, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.0 {
                Form::Packed(packed) => packed.heap_bytes(),
                Form::Table(table) => {
                    let scores = table_bytes::<(Box<[u8]>, Score)>(table.scores.capacity());
                    size_of::<Table>() + table.items + scores + table.ranks.heap_bytes()
                }
            }
    }

    /// What `OBJECT ENCODING` answers.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        match self.0 {
            Form::Packed(_) => "listpack",
            Form::Table(_) => "skiplist",
        }
    }
}

/// The rank of a member of a packed set.
fn position(packed: &Packed, member: &[u8]) -> Option<usize> {
    packed.iter().step_by(2).position(|found| found == member)
}

impl<'a> FromIterator<Pair<'a>> for SortedSet {
    fn from_iter<T: IntoIterator<Item = Pair<'a>>>(pairs: T) -> Self {
        let mut set = Self::default();
        pairs.into_iter().for_each(|(member, score)| set.put(member, score));
        set
    }
}

impl PartialEq for SortedSet {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(member, score)| other.score(member) == Some(score))
    }
}

impl Eq for SortedSet {}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Model {
        scores: HashMap<Vec<u8>, Score>,
        order: BTreeSet<(Score, Vec<u8>)>,
    }

    impl Model {
        fn remove(&mut self, member: &[u8]) {
            if let Some(score) = self.scores.remove(member) {
                self.order.remove(&(score, member.to_vec()));
            }
        }

        fn put(&mut self, member: &[u8], score: Score) {
            self.remove(member);
            self.scores.insert(member.to_vec(), score);
            self.order.insert((score, member.to_vec()));
        }

        fn compare(&self, set: &SortedSet) -> Result<(), TestCaseError> {
            let order: Vec<(&[u8], Score)> =
                self.order.iter().map(|(score, member)| (&member[..], *score)).collect();
            prop_assert!(set.upwards(0).eq(order.iter().copied()));
            let step = (order.len() / 5).max(1);
            for (rank, (member, score)) in order.iter().enumerate().step_by(step) {
                prop_assert_eq!(set.rank(member), Some(rank));
                prop_assert_eq!(set.score(member), Some(*score));
                prop_assert!(set.upwards(rank).eq(order[rank..].iter().copied()));
                prop_assert!(set.downwards(rank).eq(order[..=rank].iter().rev().copied()));
                let below = order.iter().filter(|(_, other)| other < score).count();
                prop_assert_eq!(set.partition_point(|_, other| other < *score), below);
            }
            prop_assert_eq!(set.upwards(order.len()).chain(set.downwards(order.len())).count(), 0);
            prop_assert!(set.iter().enumerate().all(|(at, pair)| set.nth(at) == Some(pair)));
            prop_assert_eq!(set.iter().count(), order.len());
            prop_assert_eq!(&set.iter().collect::<SortedSet>(), set);
            Ok(())
        }
    }

    fn number(kind: u8, value: i16) -> Score {
        let number = match kind {
            0 => f64::INFINITY,
            1 => f64::NEG_INFINITY,
            2 => -0.0,
            3 => f64::from(value) / 3.0,
            _ => f64::from(value % 5),
        };
        Score::new(number).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_behaves_like_an_ordered_set(
            steps in proptest::collection::vec((0..4u8, 0..2000u16, 0..9u8, any::<i16>()), 1..3000),
            members in proptest::sample::select(vec![40u16, 130, 2000]),
        ) {
            let (mut set, mut model) = (SortedSet::default(), Model::default());
            for (what, member, kind, value) in steps {
                let member = format!("m{}", member % members).into_bytes();
                if what == 0 {
                    set.apply(&SortedSetChange::Remove { member: &member });
                    model.remove(&member);
                } else {
                    let score = number(kind, value);
                    set.apply(&SortedSetChange::Put { member: &member, score });
                    model.put(&member, score);
                }
            }
            model.compare(&set)?;
            if let Form::Table(table) = &set.0 {
                prop_assert_eq!(table.items, model.scores.keys().map(Vec::len).sum::<usize>());
                prop_assert_eq!(table.ranks.upwards(0).count(), set.len());
            }
            for member in model.scores.clone().into_keys().skip(3) {
                set.apply(&SortedSetChange::Remove { member: &member });
                model.remove(&member);
            }
            model.compare(&set)?;
        }
    }

    #[test]
    fn encodings_are_those_of_redis() {
        let mut set = SortedSet::default();
        (0..128).for_each(|number: u16| set.put(number.to_string().as_bytes(), Score::ONE));
        set.put(b"7", Score::default());
        assert_eq!(set.encoding(), "listpack");
        set.put(b"more", Score::ONE);
        assert_eq!(set.encoding(), "skiplist");
        let mut set = SortedSet::default();
        set.put(&[0; 64], Score::ONE);
        assert_eq!(set.encoding(), "listpack");
        set.put(&[0; 65], Score::ONE);
        assert_eq!(set.encoding(), "skiplist");
    }
}
