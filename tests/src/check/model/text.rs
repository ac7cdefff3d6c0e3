//! Strings and counters, and what every key has: `DEL` and deadlines.

use std::time::Duration;

use super::{Bytes, Command, Condition, Reply, State, Value};

impl State {
    /// The text that the key holds.
    pub(in crate::check) fn text(&self) -> Option<&Bytes> {
        if let Some(Value::Text(text)) = &self.value { Some(text) } else { None }
    }
}

/// Could the command give this reply, once `APPEND` and `INCR` have made more of what is there, or the key has expired?
/// False only if it surely could not.
pub(super) fn may_see(command: &Command, state: &State, reply: &Reply) -> bool {
    let value = state.text().map(|text| &text[..]).unwrap_or_default();
    let is_gone = state.value.is_none() || state.expires.is_some();
    let number = integer(value).or(value.is_empty().then_some(0));
    // more digits make a negative number smaller
    let least = number.map(|number| if number < 0 { i64::MIN } else { number });
    match (command, reply) {
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

/// Executes a command; `deadline` as in [`Command::apply`].
pub(super) fn apply(
    command: &Command,
    state: &State,
    deadline: impl Fn(Duration) -> (Duration, Duration),
) -> (Reply, State) {
    let (old, expires) = (state.text(), state.expires);
    let found = || old.cloned().map_or(Reply::Nil, Reply::Value);
    let text = |value: Bytes| Some(Value::Text(value));
    match command {
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
            let new = State { value: text(value.clone()), expires: expire.map(deadline) };
            (reply, if sets { new } else { state.clone() })
        }
        Command::Incr => {
            let number = old.map_or(Some(0), |old| integer(old)).and_then(|number| number.checked_add(1));
            number.map_or((Reply::NotInteger, state.clone()), |number| {
                (Reply::Integer(number), State { value: text(number.to_string().as_bytes().into()), expires })
            })
        }
        Command::Append(tail) => {
            let value: Bytes = [old.map(|old| &old[..]).unwrap_or_default(), &tail[..]].concat().into();
            let length = i64::try_from(value.len()).unwrap_or(i64::MAX);
            (Reply::Integer(length), State { value: text(value), expires })
        }
        Command::Swap { expected, value } => match old == expected.as_ref() {
            true => (Reply::Ok, State { value: text(value.clone()), expires: None }),
            false => (Reply::Nil, state.clone()),
        },
        Command::Del => (Reply::Integer(state.value.is_some().into()), State::default()),
        Command::GetDel => (found(), State::default()),
        Command::Expire(after) if state.value.is_some() => {
            (Reply::Integer(1), State { value: state.value.clone(), expires: Some(deadline(*after)) })
        }
        Command::Expire(_) => (Reply::Integer(0), State::default()),
        _ => (found(), state.clone()),
    }
}

/// A number as Redis takes it: no sign `+`, no leading zeros.
pub(super) fn integer(bytes: &[u8]) -> Option<i64> {
    let number = std::str::from_utf8(bytes).ok()?.parse::<i64>().ok()?;
    (number.to_string().as_bytes() == bytes).then_some(number)
}

/// What values consist of whose text cannot matter, because no reply shows it; no workload writes it.
pub(in crate::check) const UNSEEN: u8 = 0xff;

/// A value for people.
pub(in crate::check) fn text(value: &[u8]) -> String {
    if value.contains(&UNSEEN) {
        return format!("{} bytes of which no reply shows all", value.len());
    }
    format!("{:?}", String::from_utf8_lossy(value))
}
