//! Hashes: three fields that are set, and one that is counted.

use std::collections::BTreeMap;
use std::fmt;

use super::text::integer;
use super::{Bytes, Reply};

/// Fields that are set.
pub const FIELDS: [&str; 3] = ["a", "b", "c"];
/// The field that is counted.
pub const COUNTER: &str = "n";

/// A command on a hash.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// `HSET field value`
    Set(&'static str, Bytes),
    /// `HGET field`
    Get(&'static str),
    /// `HINCRBY n 1`, in a script or not.
    Count {
        /// In a script.
        by_script: bool,
    },
    /// `HDEL field`
    Delete(&'static str),
    /// `HMGET` of all fields.
    Read,
}

/// What a hash holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Hash(BTreeMap<&'static str, Bytes>);

impl Hash {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn get(&self, field: &str) -> Reply {
        self.0.get(field).map_or(Reply::Nil, |value| Reply::Value(value.clone()))
    }

    fn count(&self) -> i64 {
        self.0.get(COUNTER).and_then(|value| integer(value)).unwrap_or(0)
    }

    fn read(&self) -> Vec<Reply> {
        FIELDS.iter().chain([&COUNTER]).map(|field| self.get(field)).collect()
    }
}

impl Command {
    pub(super) fn is_read(&self) -> bool {
        matches!(self, Command::Get(_) | Command::Read)
    }

    pub(super) fn apply(&self, hash: &mut Hash) -> Reply {
        match self {
            Command::Set(field, value) => {
                Reply::Integer(hash.0.insert(field, value.clone()).is_none().into())
            }
            Command::Get(field) => hash.get(field),
            Command::Count { .. } => {
                let count = hash.count() + 1;
                hash.0.insert(COUNTER, count.to_string().as_bytes().into());
                Reply::Integer(count)
            }
            Command::Delete(field) => Reply::Integer(hash.0.remove(field).is_some().into()),
            Command::Read => Reply::List(hash.read()),
        }
    }

    /// How far a hash is from what the reply saw; 0 if it is that.
    pub(super) fn distance(&self, hash: &Hash, reply: &Reply) -> u64 {
        match (self, reply) {
            // It counts upwards only.
            (Command::Count { .. }, Reply::Integer(sum)) => missing(hash.count() + 1, *sum),
            (Command::Read, Reply::List(seen)) => hash
                .read()
                .iter()
                .zip(seen)
                .enumerate()
                .map(|(at, (have, seen))| match (have == seen, value_of(seen)) {
                    (true, _) => 0,
                    (false, Some(seen)) if at == FIELDS.len() => 1 + missing(hash.count(), seen),
                    (false, _) => 1,
                })
                .sum(),
            _ => u64::from(self.apply(&mut hash.clone()) != *reply),
        }
    }
}

fn value_of(reply: &Reply) -> Option<i64> {
    if let Reply::Value(value) = reply { integer(value) } else { None }
}

/// How much is missing, of what only grows until it is deleted.
pub(super) fn missing(have: i64, seen: i64) -> u64 {
    u64::try_from(seen - have).unwrap_or(1 << 32)
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields =
            self.0.iter().map(|(field, value)| format!("{field}={}", String::from_utf8_lossy(value)));
        write!(out, "{{{}}}", fields.collect::<Vec<_>>().join(" "))
    }
}
