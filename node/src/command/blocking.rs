//! How long a command waits that finds nothing.
//!
//! For: the timeouts of commands that may wait, with Redis' errors; telling whether there is something for one.
//! Not here: waiting (`dispatch::blocking`); what they do when there is something is their family's.
//!
//! Run on a partition, such a command does what it can do at once, or answers null: that is all that it does in a
//! transaction or a script.

use std::time::Duration;

use korum_protocol::command::CommandId;
use korum_protocol::resp::Args;

use super::args::is;
use super::string::float::LongDouble;
use super::{Call, Stop};
use crate::store::waiting::Wanted;
use crate::store::{Entry, integer};

/// How long a command waits; `None`: for ever. To be asked of one that was found right.
#[must_use]
pub fn timeout(id: CommandId, args: &Args<'_>, now_ms: u64) -> Option<Duration> {
    let at = match id {
        CommandId::BlMPop | CommandId::BzMPop => 1,
        CommandId::BlPop
        | CommandId::BrPop
        | CommandId::BlMove
        | CommandId::BrPopLPush
        | CommandId::BzPopMin
        | CommandId::BzPopMax => args.len() - 1,
        CommandId::XRead | CommandId::XReadGroup => {
            let ms = block_option(args).and_then(integer::parse).and_then(|ms| u64::try_from(ms).ok());
            return ms.filter(|&ms| ms > 0).map(Duration::from_millis);
        }
        _ => return None,
    };
    seconds(args.get(at)?, now_ms).ok().flatten()
}

/// How long `XREAD` and `XREADGROUP` are told to wait, in milliseconds; `None` if they are not.
#[must_use]
pub fn block_option<'a>(args: &Args<'a>) -> Option<&'a [u8]> {
    let mut index = 1;
    while let Some(option) = args.get(index) {
        if is(option, "block") {
            return args.get(index + 1);
        }
        index += match option {
            _ if is(option, "streams") => return None,
            _ if is(option, "noack") => 1,
            _ if is(option, "group") => 3,
            _ => 2,
        };
    }
    None
}

/// Where the keys of `KORUM READY` begin.
pub const READY_KEYS: usize = 4;

/// What `KORUM READY` asks for: `LIST` or `ZSET`; `None` for a value of any type.
#[must_use]
pub fn ready_for(args: &Args<'_>) -> Option<Wanted> {
    match args.get(READY_KEYS - 1)? {
        b"LIST" => Some(Wanted::ListItem),
        b"ZSET" => Some(Wanted::Member),
        _ => None,
    }
}

/// `KORUM READY slot LIST|ZSET|ANY key …`: which of the keys is the first that has such a value, or null. Nothing is
/// taken.
pub fn ready(call: &mut Call<'_>) {
    let wanted = ready_for(&call.args);
    let has_it = |&at: &usize| {
        let value = call.keyspace.peek(call.place(at).key, call.now_ms).map(Entry::value);
        wanted.map_or(value.is_some(), |wanted| wanted.is_met(value))
    };
    let first = (READY_KEYS..call.args.len()).find(has_it);
    match first.and_then(|first| i64::try_from(first - READY_KEYS).ok()) {
        Some(first) => call.reply.integer(first),
        None => call.reply.null(),
    }
}

/// Checks the timeout at an argument, which is in seconds.
pub fn check(call: &Call<'_>, index: usize) -> Result<(), Stop> {
    seconds(call.arg(index), call.now_ms).map(|_| ())
}

/// A timeout in seconds, with fractions, rounded up to milliseconds; `None`: none.
fn seconds(text: &[u8], now_ms: u64) -> Result<Option<Duration>, Stop> {
    let seconds = LongDouble::parse(text).ok_or("ERR timeout is not a float or out of range")?;
    let (is_negative, ms) = seconds.thousandths();
    match ms.and_then(|ms| i64::try_from(ms).ok()) {
        Some(0) => Ok(None),
        _ if is_negative => Err("ERR timeout is negative".into()),
        Some(ms) if i64::MAX - ms >= now_ms as i64 => Ok(Some(Duration::from_millis(ms as u64))),
        Some(_) | None => Err("ERR timeout is out of range".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_seconds_with_fractions() {
        let ms =
            |text: &str| seconds(text.as_bytes(), 1_000).map(|wait| wait.map_or(0, |wait| wait.as_millis()));
        for (text, expected) in [
            ("0", 0),
            ("1", 1000),
            ("0.5", 500),
            ("0.001", 1),
            ("0.0001", 1),
            ("1.0011", 1002),
            ("-0.0001", 0),
            ("0x10", 16_000),
            ("1e3", 1_000_000),
            ("9223372036854774", 9_223_372_036_854_774_000),
        ] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
        for (text, error) in [
            ("x", "ERR timeout is not a float or out of range"),
            ("", "ERR timeout is not a float or out of range"),
            ("nan", "ERR timeout is not a float or out of range"),
            ("-1", "ERR timeout is negative"),
            ("-inf", "ERR timeout is negative"),
            ("inf", "ERR timeout is out of range"),
            ("9223372036854775", "ERR timeout is out of range"),
            ("1e30", "ERR timeout is out of range"),
        ] {
            assert_eq!(ms(text), Err(error.into()), "{text}");
        }
    }
}
