//! Lists as queues: items are pushed at one end and popped at the other, or moved on to a second list of the same slot.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::{Bytes, Reply};

/// A command on a list, or on it and the one that its items are moved to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// `RPUSH item`
    Push(Bytes),
    /// `LPOP`, or `BLPOP` if it waits.
    Pop {
        /// How long it waits.
        wait: Option<Duration>,
    },
    /// `LRANGE 0 -1`
    Read,
    /// `LMOVE LEFT RIGHT` to the second list, or `BLMOVE`.
    Move {
        /// How long it waits.
        wait: Option<Duration>,
    },
    /// `LPOP` of the second list, or `BLPOP`.
    Take {
        /// How long it waits.
        wait: Option<Duration>,
    },
    /// Both lists, in one transaction.
    ReadBoth,
}

/// What both lists hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Lists {
    first: VecDeque<Bytes>,
    second: VecDeque<Bytes>,
}

impl Command {
    pub(super) fn is_read(&self) -> bool {
        matches!(self, Command::Read | Command::ReadBoth)
    }

    /// How long it waits, if it does.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Command::Pop { wait } | Command::Move { wait } | Command::Take { wait } => *wait,
            Command::Push(_) | Command::Read | Command::ReadBoth => None,
        }
    }

    /// The same without waiting.
    pub(super) fn at_once(self) -> Self {
        match self {
            Command::Pop { .. } => Command::Pop { wait: None },
            Command::Move { .. } => Command::Move { wait: None },
            Command::Take { .. } => Command::Take { wait: None },
            other => other,
        }
    }

    pub(super) fn apply(&self, lists: &mut Lists) -> Reply {
        let popped = |item: Option<Bytes>| item.map_or(Reply::Nil, Reply::Value);
        match self {
            Command::Push(item) => {
                lists.first.push_back(item.clone());
                Reply::Integer(i64::try_from(lists.first.len()).unwrap_or(i64::MAX))
            }
            Command::Pop { .. } => popped(lists.first.pop_front()),
            Command::Take { .. } => popped(lists.second.pop_front()),
            Command::Move { .. } => {
                let item = lists.first.pop_front();
                lists.second.extend(item.clone());
                popped(item)
            }
            Command::Read => replies(&lists.first),
            Command::ReadBoth => Reply::List(vec![replies(&lists.first), replies(&lists.second)]),
        }
    }

    /// How far the lists are from what the reply saw; 0 if they are that.
    pub(super) fn distance(&self, lists: &Lists, reply: &Reply) -> u64 {
        match (self, reply) {
            (Command::Push(_), Reply::Integer(length)) => {
                let length = usize::try_from(*length).unwrap_or(0);
                (lists.first.len() + 1).abs_diff(length) as u64
            }
            (Command::Pop { .. } | Command::Move { .. }, Reply::Value(item)) => before(&lists.first, item),
            (Command::Take { .. }, Reply::Value(item)) => before(&lists.second, item),
            (Command::Pop { .. } | Command::Move { .. }, Reply::Nil) => lists.first.len() as u64,
            (Command::Take { .. }, Reply::Nil) => lists.second.len() as u64,
            (Command::Read, Reply::List(items)) => apart(&lists.first, items),
            (Command::ReadBoth, Reply::List(both)) => match &both[..] {
                [Reply::List(first), Reply::List(second)] => {
                    apart(&lists.first, first) + apart(&lists.second, second)
                }
                _ => u64::MAX,
            },
            _ => u64::MAX,
        }
    }
}

fn replies(items: &VecDeque<Bytes>) -> Reply {
    Reply::List(items.iter().cloned().map(Reply::Value).collect())
}

/// How many items are before this one; more than any number if it is not there.
fn before(items: &VecDeque<Bytes>, item: &Bytes) -> u64 {
    items.iter().position(|other| other == item).map_or(1 << 32, |place| place as u64)
}

/// Items that only one of the two has, and those at other places.
fn apart(items: &VecDeque<Bytes>, seen: &[Reply]) -> u64 {
    let is = |item: &Bytes, reply: &Reply| matches!(reply, Reply::Value(value) if value == item);
    let surplus = items.iter().filter(|item| !seen.iter().any(|reply| is(item, reply))).count();
    let missing = seen.iter().filter(|reply| !items.iter().any(|item| is(item, reply))).count();
    let is_same = items.len() == seen.len() && items.iter().zip(seen).all(|(item, reply)| is(item, reply));
    (2 * (surplus + missing) + usize::from(!is_same)) as u64
}

impl fmt::Display for Lists {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", replies(&self.first))?;
        if self.second.is_empty() { Ok(()) } else { write!(out, " and {}", replies(&self.second)) }
    }
}
