//! Two counters of one slot that change together, in a transaction or a script: whoever sees one change without the
//! other has seen half a step.

use super::{Reply, number};

/// A command on both.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// One off the first, one onto the second.
    Transfer {
        /// In a script, else in a transaction.
        by_script: bool,
    },
    /// Both, by `MGET`, or in a transaction.
    Read {
        /// In a transaction.
        in_unit: bool,
    },
}

/// The second; the first is the same below zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pair(i64);

impl Command {
    pub(super) fn is_read(&self) -> bool {
        matches!(self, Command::Read { .. })
    }

    pub(super) fn apply(&self, pair: &mut Pair) -> Reply {
        match self {
            Command::Transfer { .. } => {
                pair.0 += 1;
                Reply::List(vec![Reply::Integer(-pair.0), Reply::Integer(pair.0)])
            }
            Command::Read { .. } if pair.0 == 0 => Reply::List(vec![Reply::Nil, Reply::Nil]),
            Command::Read { .. } => Reply::List(vec![number(-pair.0), number(pair.0)]),
        }
    }

    /// How far the pair is from what the reply saw; 0 if it is that.
    pub(super) fn distance(&self, pair: &Pair, reply: &Reply) -> u64 {
        let mut next = pair.clone();
        if self.apply(&mut next) == *reply {
            return 0;
        }
        let seen = match reply {
            Reply::List(both) => match both.get(1) {
                Some(Reply::Integer(seen)) => Some(*seen),
                Some(Reply::Value(seen)) => super::text::integer(seen),
                _ => None,
            },
            _ => None,
        };
        seen.map_or(u64::MAX, |seen| 1 + super::hash::missing(next.0, seen))
    }
}
