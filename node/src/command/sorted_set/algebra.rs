//! Several sorted sets put together; plain sets count as sorted ones with scores of 1.
//!
//! For: unions, intersections and differences, answered, counted or stored.

use std::borrow::Cow;
use std::ops::Range;

use indexmap::IndexMap;

use super::range::store;
use super::{Layout, number};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop, WRONG_TYPE};
use crate::store::collection::Keyed;
use crate::store::{Keyspace, Score, Set, SortedSet, StringRef, ValueRef};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores of a member become one.
#[derive(Clone, Copy, Default)]
enum Aggregate {
    #[default]
    Sum,
    Least,
    Greatest,
}

impl Aggregate {
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            // Opposite infinities are nothing, as in Redis.
            Self::Sum => number_or_zero(one + other),
            Self::Least => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Self::Greatest => {
                if other > one {
                    other
                } else {
                    one
                }
            }
        }
    }
}

fn number_or_zero(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number }
}

/// `ZUNION numkeys key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]`
pub fn zunion(call: &mut Call<'_>) {
    answer(call, Operation::Union, "zunion");
}

/// `ZINTER numkeys key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX] [WITHSCORES]`
pub fn zinter(call: &mut Call<'_>) {
    answer(call, Operation::Intersection, "zinter");
}

/// `ZDIFF numkeys key … [WITHSCORES]`
pub fn zdiff(call: &mut Call<'_>) {
    answer(call, Operation::Difference, "zdiff");
}

/// `ZUNIONSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX]`
pub fn zunionstore(call: &mut Call<'_>) {
    store_result(call, Operation::Union, "zunionstore");
}

/// `ZINTERSTORE destination numkeys key … [WEIGHTS weight …] [AGGREGATE SUM|MIN|MAX]`
pub fn zinterstore(call: &mut Call<'_>) {
    store_result(call, Operation::Intersection, "zinterstore");
}

/// `ZDIFFSTORE destination numkeys key …`
pub fn zdiffstore(call: &mut Call<'_>) {
    store_result(call, Operation::Difference, "zdiffstore");
}

/// `ZINTERCARD numkeys key … [LIMIT limit]`
pub fn zintercard(call: &mut Call<'_>) {
    call.answer(|call| {
        let keys = read_all(call, 1, "zintercard")?;
        let options = Options::parse(call, &keys, |option| is(option, "limit"))?;
        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        let mut sources = sources(call.keyspace, call, keys, &options);
        sources.sort_by_key(Source::len);
        let found = intersection(&sources, options.aggregate).take(limit).count();
        call.reply.integer(found as i64);
        Ok(())
    });
}

fn answer(call: &mut Call<'_>, operation: Operation, command: &str) {
    call.answer(|call| {
        let keys = read_all(call, 1, command)?;
        let with_scores = |option: &[u8]| is(option, "withscores");
        let options = Options::parse(call, &keys, |option| operation.takes(option) || with_scores(option))?;
        let sources = sources(call.keyspace, call, keys, &options);
        let mut found = operation.of(sources, options.aggregate);
        found.sort_unstable_by(|(one, score), (other, than)| (score, one).cmp(&(than, other)));
        let layout = Layout::of(&call.reply, options.with_scores);
        layout.open(&mut call.reply, found.len());
        found.iter().for_each(|(member, score)| layout.member(&mut call.reply, member, *score));
        Ok(())
    });
}

fn store_result(call: &mut Call<'_>, operation: Operation, command: &'static str) {
    call.answer(|call| {
        let keys = read_all(call, 2, command)?;
        let options = Options::parse(call, &keys, |option| operation.takes(option))?;
        let sources = sources(call.keyspace, call, keys, &options);
        let found = operation.of(sources, options.aggregate);
        let set: SortedSet = found.iter().map(|(member, score)| (&member[..], *score)).collect();
        drop(found);
        let target = call.place(1);
        store(call, target, set, command);
        Ok(())
    });
}

/// Looks at all keys behind their number, which is argument `first`: expired ones end, and all others are sets.
fn read_all(call: &mut Call<'_>, first: usize, command: &str) -> Result<Range<usize>, Stop> {
    let count = integer(call.arg(first))?;
    if count < 1 {
        return Err(format!("ERR at least 1 input key is needed for '{command}' command").into());
    }
    let left = call.args.len() - (first + 1);
    let count = usize::try_from(count).ok().filter(|&count| count <= left).ok_or(SYNTAX_ERROR)?;
    let keys = first + 1..first + 1 + count;
    for index in keys.clone() {
        let value = call.read(call.place(index)).map(|entry| entry.value());
        if value.is_some_and(|value| !matches!(value, ValueRef::Set(_) | ValueRef::SortedSet(_))) {
            return Err(WRONG_TYPE.into());
        }
    }
    Ok(keys)
}

#[derive(Default)]
struct Options {
    weights: Option<Vec<f64>>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: usize,
}

impl Options {
    /// Reads the options behind the keys, of those that `takes` allows.
    fn parse(call: &Call<'_>, keys: &Range<usize>, takes: impl Fn(&[u8]) -> bool) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut index = keys.end;
        while let Some(option) = call.args.get(index) {
            let next = call.args.get(index + 1);
            index += 1;
            if !takes(option) {
                return Err(SYNTAX_ERROR.into());
            }
            if is(option, "withscores") {
                options.with_scores = true;
            } else if is(option, "weights") && call.args.len() - index >= keys.len() {
                let weights = (index..index + keys.len()).map(|index| number::parse(call.arg(index)));
                let weights: Result<_, _> = weights.collect();
                options.weights = Some(weights.map_err(|_| "ERR weight value is not a float")?);
                index += keys.len();
            } else if is(option, "aggregate")
                && let Some(word) = next
            {
                let known =
                    [("sum", Aggregate::Sum), ("min", Aggregate::Least), ("max", Aggregate::Greatest)];
                let found = known.into_iter().find(|(name, _)| is(word, name));
                options.aggregate = found.ok_or(SYNTAX_ERROR)?.1;
                index += 1;
            } else if is(option, "limit")
                && let Some(limit) = next
            {
                let limit = integer(limit).ok().and_then(|limit| usize::try_from(limit).ok());
                options.limit = limit.ok_or("ERR LIMIT can't be negative")?;
                index += 1;
            } else {
                return Err(SYNTAX_ERROR.into());
            }
        }
        Ok(options)
    }
}

/// One of the sets, and what its scores are multiplied with.
struct Source<'s> {
    members: Members<'s>,
    weight: f64,
}

#[derive(Clone, Copy)]
enum Members<'s> {
    None,
    Plain(&'s Set),
    Sorted(&'s SortedSet),
}

/// The sets of these arguments, all at once.
fn sources<'k>(
    keyspace: &'k Keyspace,
    call: &Call<'_>,
    keys: Range<usize>,
    options: &Options,
) -> Vec<Source<'k>> {
    let weight = |index: usize| options.weights.as_ref().map_or(1.0, |weights| weights[index]);
    keys.enumerate()
        .map(|(at, index)| {
            let members = match keyspace.peek(call.place(index).key, call.now_ms).map(|entry| entry.value()) {
                Some(ValueRef::Set(set)) => Members::Plain(set),
                Some(ValueRef::SortedSet(set)) => Members::Sorted(set),
                _ => Members::None,
            };
            Source { members, weight: weight(at) }
        })
        .collect()
}

impl<'s> Source<'s> {
    fn len(&self) -> usize {
        match self.members {
            Members::None => 0,
            Members::Plain(set) => set.len(),
            Members::Sorted(set) => set.len(),
        }
    }

    /// The weighed score of a member.
    fn score(&self, member: &[u8]) -> Option<f64> {
        match self.members {
            Members::None => None,
            Members::Plain(set) => set.contains(member).then_some(self.weight),
            Members::Sorted(set) => set.score(member).map(|score| score.get() * self.weight),
        }
    }

    /// All members with their scores, not weighed.
    fn iter(&self) -> impl Iterator<Item = (Cow<'s, [u8]>, f64)> + use<'s> {
        let (plain, sorted) = match self.members {
            Members::None => (None, None),
            Members::Plain(set) => (Some(set), None),
            Members::Sorted(set) => (None, Some(set)),
        };
        let plain = plain.into_iter().flat_map(Set::iter).map(|member| (StringRef::bytes(member), 1.0));
        let sorted = sorted.into_iter().flat_map(SortedSet::iter);
        plain.chain(sorted.map(|(member, score)| (Cow::Borrowed(member), score.get())))
    }
}

/// A member of the result.
type Found<'s> = (Cow<'s, [u8]>, Score);

impl Operation {
    /// Whether an option belongs to the operation.
    fn takes(self, option: &[u8]) -> bool {
        self != Self::Difference && (is(option, "weights") || is(option, "aggregate"))
    }

    /// The result, in no particular order.
    fn of(self, mut sources: Vec<Source<'_>>, aggregate: Aggregate) -> Vec<Found<'_>> {
        if self != Self::Difference {
            // The order in which scores are added up is Redis', since sums depend on it.
            sources.sort_by_key(Source::len);
        }
        match self {
            Self::Union => union(&sources, aggregate),
            Self::Intersection => intersection(&sources, aggregate).collect(),
            Self::Difference => difference(&sources),
        }
    }
}

fn score(number: f64) -> Score {
    Score::new(number).unwrap_or_default()
}

fn union<'s>(sources: &[Source<'s>], aggregate: Aggregate) -> Vec<Found<'s>> {
    let mut found: IndexMap<Cow<'s, [u8]>, f64, Keyed> = IndexMap::default();
    for source in sources {
        for (member, number) in source.iter() {
            let number = number_or_zero(number * source.weight);
            found.entry(member).and_modify(|old| *old = aggregate.of(*old, number)).or_insert(number);
        }
    }
    found.into_iter().map(|(member, number)| (member, score(number))).collect()
}

/// Walks over the first set, which is the smallest.
fn intersection<'s>(sources: &[Source<'s>], aggregate: Aggregate) -> impl Iterator<Item = Found<'s>> {
    let (first, others) =
        sources.split_first().map_or((None, &[][..]), |(first, others)| (Some(first), others));
    first
        .into_iter()
        .flat_map(|first| first.iter().map(move |(member, number)| (member, number * first.weight)))
        .filter_map(move |(member, number)| {
            let mut total = number_or_zero(number);
            for other in others {
                total = aggregate.of(total, other.score(&member)?);
            }
            Some((member, score(total)))
        })
}

fn difference<'s>(sources: &[Source<'s>]) -> Vec<Found<'s>> {
    let Some((first, others)) = sources.split_first() else { return Vec::new() };
    let members = first.iter().filter(|(member, _)| others.iter().all(|other| other.score(member).is_none()));
    members.map(|(member, number)| (member, score(number))).collect()
}
