//! Streams with one consumer group and one consumer: entries are added with ids of the client's, given out in order,
//! and acknowledged.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Bytes, Reply};

/// An id: milliseconds and a number.
pub type Id = (u64, u64);

/// A command on a stream.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// `XGROUP CREATE 0 MKSTREAM`
    Create,
    /// `XADD id`
    Add(Id),
    /// `XREADGROUP COUNT 1 >`: the id of the entry.
    Next {
        /// How long it waits.
        wait: Option<Duration>,
    },
    /// `XACK id`
    Acknowledge(Id),
    /// `XRANGE - +`: the ids.
    Read,
}

/// What a stream holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stream {
    entries: Vec<Id>,
    last: Id,
    group: Option<Group>,
}

/// What its group has been given, and not acknowledged.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Group {
    given: Id,
    pending: BTreeSet<Id>,
}

impl Command {
    pub(super) fn is_read(&self) -> bool {
        *self == Command::Read
    }

    /// How long it waits, if it does.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        if let Command::Next { wait } = self { *wait } else { None }
    }

    /// The same without waiting.
    pub(super) fn at_once(self) -> Self {
        if let Command::Next { .. } = self { Command::Next { wait: None } } else { self }
    }

    pub(super) fn apply(&self, stream: &mut Stream) -> Reply {
        match self {
            Command::Create if stream.group.is_some() => Reply::GroupExists,
            Command::Create => {
                stream.group = Some(Group::default());
                Reply::Ok
            }
            Command::Add(id) if *id <= stream.last => Reply::IdTooSmall,
            Command::Add(id) => {
                stream.entries.push(*id);
                stream.last = *id;
                text(*id)
            }
            Command::Next { .. } => {
                let Some(group) = &mut stream.group else { return Reply::NoGroup };
                let next = stream.entries.iter().find(|id| **id > group.given);
                next.map_or(Reply::Nil, |&id| {
                    group.given = id;
                    group.pending.insert(id);
                    text(id)
                })
            }
            Command::Acknowledge(id) => {
                let was_pending = stream.group.as_mut().is_some_and(|group| group.pending.remove(id));
                Reply::Integer(was_pending.into())
            }
            Command::Read => Reply::List(stream.entries.iter().map(|&id| text(id)).collect()),
        }
    }

    /// How far a stream is from what the reply saw; 0 if it is that.
    pub(super) fn distance(&self, stream: &Stream, reply: &Reply) -> u64 {
        let open = || {
            let given = stream.group.as_ref().map_or((0, 0), |group| group.given);
            stream.entries.iter().filter(move |id| **id > given)
        };
        match (self, reply) {
            (Command::Next { .. }, Reply::Value(_) | Reply::Nil) if stream.group.is_none() => 1 << 33,
            (Command::Next { .. }, Reply::Value(seen)) => {
                open().position(|&id| spelled(id) == *seen).map_or(1 << 32, |place| place as u64)
            }
            (Command::Next { .. }, Reply::Nil) => open().count() as u64,
            (Command::Read, Reply::List(seen)) => {
                let have: Vec<Reply> = stream.entries.iter().map(|&id| text(id)).collect();
                let surplus = have.iter().filter(|id| !seen.contains(id)).count();
                (surplus + seen.iter().filter(|id| !have.contains(id)).count()) as u64
            }
            _ => u64::from(self.apply(&mut stream.clone()) != *reply),
        }
    }
}

/// An id as it is sent.
pub(in crate::check) fn spelled(id: Id) -> Bytes {
    format!("{}-{}", id.0, id.1).into_bytes().into()
}

fn text(id: Id) -> Reply {
    Reply::Value(spelled(id))
}

/// An id from its text.
#[must_use]
pub fn parsed(text: &[u8]) -> Option<Id> {
    let (first, second) = std::str::from_utf8(text).ok()?.split_once('-')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}
