//! Sorted sets as queues by rank: scores grow by one, the least is popped.

use std::collections::BTreeMap;
use std::time::Duration;

use super::hash::missing;
use super::text::integer;
use super::{Reply, number};

/// All members that there ever are.
pub const MEMBERS: [&str; 4] = ["1", "two", "3", "four"];

/// A command on a sorted set.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// `ZADD INCR 1 member`
    Raise(&'static str),
    /// `ZPOPMIN`, or `BZPOPMIN` if it waits: the member and its score, or nothing.
    PopLeast {
        /// How long it waits.
        wait: Option<Duration>,
    },
    /// `ZREM member`
    Remove(&'static str),
    /// `ZRANGE 0 -1 WITHSCORES`: members and scores in turn.
    Read,
}

/// What a sorted set holds.
pub type SortedSet = BTreeMap<&'static str, i64>;

impl Command {
    pub(super) fn is_read(&self) -> bool {
        *self == Command::Read
    }

    /// How long it waits, if it does.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        if let Command::PopLeast { wait } = self { *wait } else { None }
    }

    /// The same without waiting.
    pub(super) fn at_once(self) -> Self {
        if let Command::PopLeast { .. } = self { Command::PopLeast { wait: None } } else { self }
    }

    pub(super) fn apply(&self, set: &mut SortedSet) -> Reply {
        match self {
            Command::Raise(member) => {
                let score = set.entry(member).or_default();
                *score += 1;
                number(*score)
            }
            Command::PopLeast { .. } => {
                let least = ranked(set).first().copied();
                least.map_or(Reply::Nil, |(member, score)| {
                    set.remove(member);
                    Reply::List(pair(member, score))
                })
            }
            Command::Remove(member) => Reply::Integer(set.remove(member).is_some().into()),
            Command::Read => {
                Reply::List(ranked(set).into_iter().flat_map(|(member, score)| pair(member, score)).collect())
            }
        }
    }

    /// How far a sorted set is from what the reply saw; 0 if it is that.
    pub(super) fn distance(&self, set: &SortedSet, reply: &Reply) -> u64 {
        match (self, reply) {
            (Command::Raise(member), Reply::Value(score)) => {
                missing(set.get(member).copied().unwrap_or(0) + 1, integer(score).unwrap_or(i64::MAX))
            }
            (Command::PopLeast { .. }, Reply::List(seen)) => {
                let ranked = ranked(set);
                let place = ranked.iter().position(|(member, _)| seen.first() == Some(&text(member)));
                place.map_or(1 << 33, |place| place as u64 + apart(ranked[place].1, seen.get(1)))
            }
            (Command::PopLeast { .. }, Reply::Nil) => set.len() as u64,
            (Command::Read, Reply::List(seen)) => {
                let seen_of = |member: &str| {
                    let place = seen.iter().step_by(2).position(|reply| *reply == text(member));
                    place.and_then(|place| seen.get(2 * place + 1))
                };
                let one = |member: &&'static str| match (set.get(member), seen_of(member)) {
                    (None, None) => 0,
                    (Some(score), seen @ Some(_)) => apart(*score, seen),
                    (None, Some(_)) | (Some(_), None) => 1 << 33,
                };
                MEMBERS.iter().map(one).sum()
            }
            _ => u64::from(self.apply(&mut set.clone()) != *reply),
        }
    }
}

/// Members by score, those of one score by name.
fn ranked(set: &SortedSet) -> Vec<(&'static str, i64)> {
    let mut members: Vec<_> = set.iter().map(|(&member, &score)| (member, score)).collect();
    members.sort_by_key(|&(member, score)| (score, member));
    members
}

fn pair(member: &str, score: i64) -> Vec<Reply> {
    vec![text(member), number(score)]
}

fn text(member: &str) -> Reply {
    Reply::Value(member.as_bytes().into())
}

/// How much a score lacks of the one that was seen.
fn apart(score: i64, seen: Option<&Reply>) -> u64 {
    match seen {
        Some(Reply::Value(seen)) => missing(score, integer(seen).unwrap_or(i64::MAX)),
        _ => u64::MAX >> 8,
    }
}
