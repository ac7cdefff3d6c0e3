//! What one key does: the sequential meaning of the commands that the checker knows.
//!
//! For: state and command to reply and state. Not here: time (`search` decides whether a deadline has passed).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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
    /// `DEL`
    Del,
    /// `GETDEL`
    GetDel,
    /// `PEXPIRE ms`; the time is not zero.
    Expire(Duration),
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
    /// The error of `INCR` on a value that is no integer, or the largest.
    NotInteger,
}

/// What the key holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct State {
    /// Its value, if it exists.
    pub value: Option<Bytes>,
    /// The earliest and the latest moment at which it may go, if it expires.
    pub expires: Option<(Duration, Duration)>,
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
        *self == Command::Get
    }

    /// Does it give the key a deadline?
    #[must_use]
    pub fn expires(&self) -> bool {
        matches!(self, Command::Expire(_) | Command::Set { expire: Some(_), .. })
    }

    /// Is what it leaves the same whatever there was?
    pub(super) fn overwrites(&self) -> bool {
        matches!(self, Command::Set { condition: Condition::Always, .. } | Command::Del | Command::GetDel)
    }

    /// Could it give this reply, once `APPEND` and `INCR` have made more of what is there, or the key has expired?
    /// False only if it surely could not.
    pub(super) fn may_see(&self, state: &State, reply: &Reply) -> bool {
        let value = state.value.as_deref().unwrap_or_default();
        let is_gone = state.value.is_none() || state.expires.is_some();
        let number = integer(value).or(value.is_empty().then_some(0));
        // more digits make a negative number smaller
        let least = number.map(|number| if number < 0 { i64::MIN } else { number });
        match (self, reply) {
            (_, Reply::Value(seen)) => {
                let grows = seen.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-')
                    && least.is_some_and(|least| integer(seen).is_none_or(|seen| least <= seen));
                is_gone || seen.starts_with(value) || grows
            }
            (Command::Incr, Reply::Integer(sum)) => is_gone || least.is_some_and(|least| least < *sum),
            (Command::Append(tail), Reply::Integer(length)) => {
                let least = i64::try_from(value.len() + tail.len()).unwrap_or(i64::MAX);
                is_gone || number.is_some() || least <= *length
            }
            (Command::Get | Command::GetDel | Command::Set { get: true, .. }, Reply::Nil) => is_gone,
            (Command::Set { condition: Condition::Missing, .. }, Reply::Ok)
            | (Command::Del | Command::Expire(_), Reply::Integer(0)) => is_gone,
            _ => true,
        }
    }

    /// Executes it; `deadline` makes of a lifetime the moments between which the key may go.
    pub(super) fn apply(
        &self,
        state: &State,
        deadline: impl Fn(Duration) -> (Duration, Duration),
    ) -> (Reply, State) {
        let State { value: old, expires } = state;
        let found = || old.clone().map_or(Reply::Nil, Reply::Value);
        match self {
            Command::Get => (found(), state.clone()),
            Command::Set { value, condition, get, expire } => {
                let sets = match condition {
                    Condition::Always => true,
                    Condition::Missing => old.is_none(),
                    Condition::Existing => old.is_some(),
                };
                let reply = match (get, sets) {
                    (true, _) => found(),
                    (false, true) => Reply::Ok,
                    (false, false) => Reply::Nil,
                };
                let new = State { value: Some(value.clone()), expires: expire.map(deadline) };
                (reply, if sets { new } else { state.clone() })
            }
            Command::Incr => {
                let number = old.as_deref().map_or(Some(0), integer).and_then(|number| number.checked_add(1));
                number.map_or((Reply::NotInteger, state.clone()), |number| {
                    let value = Some(number.to_string().as_bytes().into());
                    (Reply::Integer(number), State { value, expires: *expires })
                })
            }
            Command::Append(tail) => {
                let value: Bytes = [old.as_deref().unwrap_or_default(), tail].concat().into();
                let length = i64::try_from(value.len()).unwrap_or(i64::MAX);
                (Reply::Integer(length), State { value: Some(value), expires: *expires })
            }
            Command::Del => (Reply::Integer(old.is_some().into()), State::default()),
            Command::GetDel => (found(), State::default()),
            Command::Expire(after) => match old {
                Some(_) => (Reply::Integer(1), State { value: old.clone(), expires: Some(deadline(*after)) }),
                None => (Reply::Integer(0), State::default()),
            },
        }
    }
}

/// A number as Redis takes it: no sign `+`, no leading zeros.
fn integer(bytes: &[u8]) -> Option<i64> {
    let number = std::str::from_utf8(bytes).ok()?.parse::<i64>().ok()?;
    (number.to_string().as_bytes() == bytes).then_some(number)
}

impl fmt::Display for Command {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Get => out.write_str("GET"),
            Command::Set { value, condition, get, expire } => {
                write!(out, "SET {}", text(value))?;
                out.write_str(match condition {
                    Condition::Always => "",
                    Condition::Missing => " NX",
                    Condition::Existing => " XX",
                })?;
                out.write_str(if *get { " GET" } else { "" })?;
                expire.map_or(Ok(()), |after| write!(out, " PX {}", after.as_millis()))
            }
            Command::Incr => out.write_str("INCR"),
            Command::Append(value) => write!(out, "APPEND {}", text(value)),
            Command::Del => out.write_str("DEL"),
            Command::GetDel => out.write_str("GETDEL"),
            Command::Expire(after) => write!(out, "PEXPIRE {}", after.as_millis()),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Ok => out.write_str("OK"),
            Reply::Nil => out.write_str("nil"),
            Reply::Value(value) => out.write_str(&text(value)),
            Reply::Integer(number) => write!(out, "{number}"),
            Reply::NotInteger => out.write_str("not an integer"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => out.write_str("nothing"),
            Some(value) => out.write_str(&text(value)),
        }?;
        self.expires.map_or(Ok(()), |(first, last)| {
            write!(out, ", which expires between {:.6} and {:.6}", first.as_secs_f64(), last.as_secs_f64())
        })
    }
}

/// What values consist of whose text cannot matter, because no reply shows it; no workload writes it.
pub(super) const UNSEEN: u8 = 0xff;

fn text(value: &[u8]) -> String {
    if value.contains(&UNSEEN) {
        return format!("{} bytes of which no reply shows all", value.len());
    }
    format!("{:?}", String::from_utf8_lossy(value))
}
