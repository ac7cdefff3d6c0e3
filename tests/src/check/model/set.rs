//! Sets of a few members.

use std::collections::BTreeSet;

use super::Reply;

/// All members that there ever are.
pub const MEMBERS: [&str; 4] = ["1", "two", "3", "four"];

/// A command on a set.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// `SADD member`
    Add(&'static str),
    /// `SREM member`
    Remove(&'static str),
    /// `SMISMEMBER` of all members.
    Read,
}

/// What a set holds.
pub type Set = BTreeSet<&'static str>;

impl Command {
    pub(super) fn is_read(&self) -> bool {
        *self == Command::Read
    }

    pub(super) fn apply(&self, set: &mut Set) -> Reply {
        match self {
            Command::Add(member) => Reply::Integer(set.insert(member).into()),
            Command::Remove(member) => Reply::Integer(set.remove(member).into()),
            Command::Read => Reply::List(
                MEMBERS.iter().map(|member| Reply::Integer(set.contains(member).into())).collect(),
            ),
        }
    }

    /// How far a set is from what the reply saw; 0 if it is that.
    pub(super) fn distance(&self, set: &Set, reply: &Reply) -> u64 {
        let found = self.apply(&mut set.clone());
        match (&found, reply) {
            (Reply::List(found), Reply::List(seen)) => {
                found.iter().zip(seen).filter(|(found, seen)| found != seen).count() as u64
            }
            _ => u64::from(found != *reply),
        }
    }
}
