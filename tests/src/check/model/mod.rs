//! What one key does: the sequential meaning of the commands that the checker knows.
//!
//! For: state and command to reply and state; how close a state is to what a reply saw.
//! Not here: time (`search` decides whether a deadline has passed), how a command is sent (`wire`), which one is next
//! (`chance`).
//! Next: a file for each type of value. Where two keys of a slot belong together, say the two ends of a move, they are
//! one object here, under the name of the first.

pub mod hash;
pub mod list;
pub mod pair;
pub mod set;
pub mod sorted_set;
pub mod stream;
mod text;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(super) use text::{UNSEEN, text};

use super::wire;

/// A value; cheap to copy.
pub type Bytes = Arc<[u8]>;

/// A command on the key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// `GET`
    Get,
    /// `SET value [NX | XX] [GET] [PX ms]`; with `get` and nothing else it is also `GETSET`.
    Set {
        /// The value.
        value: Bytes,
        /// `NX`, `XX` or neither.
        condition: Condition,
        /// Answer with the old value.
        get: bool,
        /// `PX`: expires after this.
        expire: Option<Duration>,
    },
    /// `INCR`
    Incr,
    /// `APPEND value`
    Append(Bytes),
    /// `GETDEL`
    GetDel,
    /// `SET value` in a transaction, after a `WATCH` and a `GET` that found `expected`. It may be refused without a
    /// reason: a node that is in doubt whether the key was touched says that it was.
    Swap {
        /// What was found.
        expected: Option<Bytes>,
        /// What comes in its place.
        value: Bytes,
    },
    /// `DEL`
    Del,
    /// `PEXPIRE ms`; the time is not zero.
    Expire(Duration),
    /// A hash.
    Hash(hash::Command),
    /// A list, or two that items go through.
    List(list::Command),
    /// A set.
    Members(set::Command),
    /// A sorted set.
    SortedSet(sorted_set::Command),
    /// A stream and one consumer group.
    Stream(stream::Command),
    /// Two counters that change together.
    Pair(pair::Command),
}

/// When a `SET` sets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// Whatever there is.
    Always,
    /// `NX`: only if there is no key.
    Missing,
    /// `XX`: only if there is one.
    Existing,
}

/// A reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Reply {
    /// `+OK`
    Ok,
    /// No value.
    Nil,
    /// A value.
    Value(Bytes),
    /// A number.
    Integer(i64),
    /// Several replies.
    List(Vec<Reply>),
    /// The error of `INCR` on a value that is no integer, or the largest.
    NotInteger,
    /// The error of `XADD` with an id that is not above the last one.
    IdTooSmall,
    /// The error of `XGROUP CREATE` when there is such a group.
    GroupExists,
    /// The error of `XREADGROUP` when there is no such group.
    NoGroup,
}

/// What a key holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "each is told in its file")]
pub enum Value {
    Text(Bytes),
    Hash(hash::Hash),
    Lists(list::Lists),
    Set(set::Set),
    SortedSet(sorted_set::SortedSet),
    Stream(stream::Stream),
    Pair(pair::Pair),
}

/// What the key holds, and how long.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct State {
    /// Its value, if it exists.
    pub value: Option<Value>,
    /// The earliest and the latest moment at which it may go, if it expires.
    pub expires: Option<(Duration, Duration)>,
}

/// The value of one kind in a state; an empty one if there is no key. A key has one kind for ever.
macro_rules! held {
    ($state:expr, $kind:ident) => {
        match &$state.value {
            Some(Value::$kind(value)) => value.clone(),
            _ => Default::default(),
        }
    };
}

impl Command {
    /// `SET value`.
    #[must_use]
    pub fn set(value: &[u8]) -> Self {
        Command::Set { value: value.into(), condition: Condition::Always, get: false, expire: None }
    }

    /// Does it only read?
    #[must_use]
    pub fn is_read(&self) -> bool {
        match self {
            Command::Get => true,
            Command::Hash(command) => command.is_read(),
            Command::List(command) => command.is_read(),
            Command::Members(command) => command.is_read(),
            Command::SortedSet(command) => command.is_read(),
            Command::Stream(command) => command.is_read(),
            Command::Pair(command) => command.is_read(),
            Command::Set { .. }
            | Command::Incr
            | Command::Append(_)
            | Command::GetDel
            | Command::Swap { .. }
            | Command::Del
            | Command::Expire(_) => false,
        }
    }

    /// Does it give the key a deadline?
    #[must_use]
    pub fn expires(&self) -> bool {
        matches!(self, Command::Expire(_) | Command::Set { expire: Some(_), .. })
    }

    /// Was it refused with this reply, or has it waited in vain? Then it did nothing, and says nothing of the key: the
    /// time may have ended while the key was out of reach.
    #[must_use]
    pub fn is_refused(&self, reply: &Reply) -> bool {
        let may_be = match self {
            Command::Swap { .. } => true,
            Command::List(command) => command.wait().is_some(),
            Command::SortedSet(command) => command.wait().is_some(),
            Command::Stream(command) => command.wait().is_some(),
            _ => false,
        };
        may_be && *reply == Reply::Nil
    }

    /// The same command with nothing in it that only its reply or its duration hangs on.
    #[must_use]
    pub(super) fn without_reply(self) -> Self {
        match self {
            Command::Set { value, condition, get: _, expire } => {
                Command::Set { value, condition, get: false, expire }
            }
            Command::GetDel => Command::Del,
            Command::List(command) => Command::List(command.at_once()),
            Command::SortedSet(command) => Command::SortedSet(command.at_once()),
            Command::Stream(command) => Command::Stream(command.at_once()),
            other => other,
        }
    }

    /// Is what it leaves the same whatever there was?
    pub(super) fn overwrites(&self) -> bool {
        matches!(self, Command::Set { condition: Condition::Always, .. } | Command::Del | Command::GetDel)
    }

    /// Could it give this reply after a command that made `after` of `before`, and perhaps more commands of unknown
    /// outcome? False if that command brought it no closer.
    pub(super) fn may_see(&self, before: &State, after: &State, reply: &Reply) -> bool {
        let closer = |distance: &dyn Fn(&State) -> u64| {
            let left = distance(after);
            left == 0 || left < distance(before)
        };
        match self {
            Command::Hash(command) => closer(&|state| command.distance(&held!(state, Hash), reply)),
            Command::List(command) => closer(&|state| command.distance(&held!(state, Lists), reply)),
            Command::Members(command) => closer(&|state| command.distance(&held!(state, Set), reply)),
            Command::SortedSet(command) => closer(&|state| command.distance(&held!(state, SortedSet), reply)),
            Command::Stream(command) => closer(&|state| command.distance(&held!(state, Stream), reply)),
            Command::Pair(command) => closer(&|state| command.distance(&held!(state, Pair), reply)),
            Command::Set { .. }
            | Command::Get
            | Command::Incr
            | Command::Append(_)
            | Command::GetDel
            | Command::Swap { .. }
            | Command::Del
            | Command::Expire(_) => text::may_see(self, after, reply),
        }
    }

    /// Does [`Command::may_see`] only guess? Then nothing may be called wrong before everything was tried.
    pub(super) fn guesses(&self) -> bool {
        !matches!(
            self,
            Command::Get
                | Command::Set { .. }
                | Command::Incr
                | Command::Append(_)
                | Command::GetDel
                | Command::Del
                | Command::Expire(_)
        )
    }

    /// Executes it; `deadline` makes of a lifetime the moments between which the key may go.
    pub(super) fn apply(
        &self,
        state: &State,
        deadline: impl Fn(Duration) -> (Duration, Duration),
    ) -> (Reply, State) {
        let held = |value: Value, is_there: bool| State { value: is_there.then_some(value), expires: None };
        match self {
            Command::Hash(command) => {
                let mut hash = held!(state, Hash);
                let reply = command.apply(&mut hash);
                (reply, held(Value::Hash(hash.clone()), !hash.is_empty()))
            }
            Command::List(command) => {
                let mut lists = held!(state, Lists);
                let reply = command.apply(&mut lists);
                (reply, held(Value::Lists(lists.clone()), lists != list::Lists::default()))
            }
            Command::Members(command) => {
                let mut set = held!(state, Set);
                let reply = command.apply(&mut set);
                (reply, held(Value::Set(set.clone()), !set.is_empty()))
            }
            Command::SortedSet(command) => {
                let mut set = held!(state, SortedSet);
                let reply = command.apply(&mut set);
                (reply, held(Value::SortedSet(set.clone()), !set.is_empty()))
            }
            Command::Stream(command) => {
                let mut stream = held!(state, Stream);
                let reply = command.apply(&mut stream);
                (reply, held(Value::Stream(stream.clone()), stream != stream::Stream::default()))
            }
            Command::Pair(command) => {
                let mut pair = held!(state, Pair);
                let reply = command.apply(&mut pair);
                (reply, held(Value::Pair(pair.clone()), pair != pair::Pair::default()))
            }
            Command::Set { .. }
            | Command::Get
            | Command::Incr
            | Command::Append(_)
            | Command::GetDel
            | Command::Swap { .. }
            | Command::Del
            | Command::Expire(_) => text::apply(self, state, deadline),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = wire::requests("key", self)
            .iter()
            .map(|words| {
                let words = words.iter().map(|word| String::from_utf8_lossy(word).into_owned());
                words.filter(|word| word != "key").collect::<Vec<_>>().join(" ")
            })
            .collect();
        out.write_str(&lines.join("; "))
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Ok => out.write_str("OK"),
            Reply::Nil => out.write_str("nil"),
            Reply::Value(value) => out.write_str(&text(value)),
            Reply::Integer(number) => write!(out, "{number}"),
            Reply::List(replies) => {
                let replies: Vec<String> = replies.iter().map(ToString::to_string).collect();
                write!(out, "[{}]", replies.join(", "))
            }
            Reply::NotInteger => out.write_str("not an integer"),
            Reply::IdTooSmall => out.write_str("the id is too small"),
            Reply::GroupExists => out.write_str("the group exists"),
            Reply::NoGroup => out.write_str("there is no group"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => out.write_str("nothing"),
            Some(Value::Text(value)) => out.write_str(&text(value)),
            Some(Value::Hash(hash)) => write!(out, "{hash}"),
            Some(Value::Lists(lists)) => write!(out, "{lists}"),
            Some(Value::Set(set)) => write!(out, "{set:?}"),
            Some(Value::SortedSet(set)) => write!(out, "{set:?}"),
            Some(Value::Stream(stream)) => write!(out, "{stream:?}"),
            Some(Value::Pair(pair)) => write!(out, "{pair:?}"),
        }?;
        self.expires.map_or(Ok(()), |(first, last)| {
            write!(out, ", which expires between {:.6} and {:.6}", first.as_secs_f64(), last.as_secs_f64())
        })
    }
}

/// A number as a reply that holds its text.
pub(super) fn number(number: i64) -> Reply {
    Reply::Value(number.to_string().as_bytes().into())
}
