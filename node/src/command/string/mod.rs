//! Strings.
//!
//! For: the commands on whole strings: get, set, with and without conditions and deadlines.
//! Next: `number` counts, `range` works on parts, `lcs` compares.

use korum_protocol::limits::BULK_BYTES_MAX;

use super::args::{integer, invalid_expire, is, wrong_number};
use korum_protocol::rope::HELD_BYTES_MIN;

use super::{Call, SYNTAX_ERROR, Stop, reply_long_string, reply_string};
use crate::store::{Classes, ValueRef};

pub mod float;
pub mod lcs;
mod natural;
pub mod number;
pub mod range;

#[cfg(test)]
mod float_tests;
#[cfg(test)]
mod tests;

pub use lcs::lcs;
pub use number::{decr, decrby, incr, incrby, incrbyfloat};
pub use range::{append, getrange, setrange, strlen, substr};

/// When a key is to end, as an option says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ExpireUnit {
    Ex,
    Px,
    ExAt,
    PxAt,
}

impl ExpireUnit {
    fn parse(option: &[u8]) -> Option<Self> {
        [("ex", Self::Ex), ("px", Self::Px), ("exat", Self::ExAt), ("pxat", Self::PxAt)]
            .into_iter()
            .find_map(|(name, unit)| is(option, name).then_some(unit))
    }

    /// The deadline in Unix ms that `text` means.
    fn deadline(self, text: &[u8], now_ms: u64, command: &str) -> Result<u64, Stop> {
        let invalid = || invalid_expire(command);
        let number = integer(text)?;
        if number <= 0 {
            return Err(invalid());
        }
        let ms = match self {
            Self::Ex | Self::ExAt => number.checked_mul(1000).ok_or_else(invalid)?,
            Self::Px | Self::PxAt => number,
        };
        let ms = match self {
            Self::Ex | Self::Px => ms.checked_add_unsigned(now_ms).ok_or_else(invalid)?,
            Self::ExAt | Self::PxAt => ms,
        };
        u64::try_from(ms).map_err(|_| invalid())
    }
}

/// The options of `SET` and `GETEX`.
#[derive(Default)]
struct Options<'a> {
    if_missing: bool,
    if_present: bool,
    get: bool,
    keep_deadline: bool,
    persist: bool,
    expire: Option<(ExpireUnit, &'a [u8])>,
}

impl<'a> Options<'a> {
    fn parse(call: &Call<'a>, start: usize, of_set: bool) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut index = start;
        while let Some(option) = call.args.get(index) {
            index += 1;
            if of_set && is(option, "nx") && !options.if_present {
                options.if_missing = true;
            } else if of_set && is(option, "xx") && !options.if_missing {
                options.if_present = true;
            } else if of_set && is(option, "get") {
                options.get = true;
            } else if of_set && is(option, "keepttl") && options.expire.is_none() {
                options.keep_deadline = true;
            } else if !of_set && is(option, "persist") && options.expire.is_none() {
                options.persist = true;
            } else if let Some(unit) = ExpireUnit::parse(option)
                && !options.keep_deadline
                && !options.persist
                && options.expire.is_none_or(|(other, _)| other == unit)
                && let Some(text) = call.args.get(index)
            {
                options.expire = Some((unit, text));
                index += 1;
            } else {
                return Err(SYNTAX_ERROR.into());
            }
        }
        Ok(options)
    }

    fn deadline(&self, now_ms: u64, command: &str) -> Result<Option<u64>, Stop> {
        self.expire.map(|(unit, text)| unit.deadline(text, now_ms, command)).transpose()
    }
}

/// Answers the string at argument 1, or null; whether it did.
fn reply_get(call: &mut Call<'_>) -> Result<(), Stop> {
    let place = call.place(1);
    // Not `call.read_string`: the reply is written while the string is borrowed.
    let Some(entry) = call.looks.read(call.keyspace, place, call.now_ms, call.effects) else {
        call.reply.null();
        return Ok(());
    };
    let string = super::string_of(entry.value())?;
    if string.len() < HELD_BYTES_MIN {
        reply_string(&mut call.reply, string);
    } else {
        reply_long_string(call, place);
    }
    Ok(())
}

/// `GET key`
pub fn get(call: &mut Call<'_>) {
    call.answer(reply_get);
}

/// `SET key value [NX|XX] [GET] [EX seconds|PX ms|EXAT unix|PXAT unix-ms|KEEPTTL]`
pub fn set(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let options = Options::parse(call, 3, true)?;
        let mut deadline = options.deadline(call.now_ms, "set")?;
        if options.get {
            reply_get(call)?;
        }
        if options.if_missing || options.if_present || options.keep_deadline {
            let found = call.look(place).map(|entry| entry.deadline_ms());
            if options.if_missing && found.is_some() || options.if_present && found.is_none() {
                if !options.get {
                    call.reply.null();
                }
                return Ok(());
            }
            if options.keep_deadline {
                deadline = found.flatten();
            }
        }
        call.put(place, ValueRef::string(call.arg(2)), deadline);
        call.notify(Classes::STRING, "set", place);
        if options.expire.is_some() {
            call.notify(Classes::GENERIC, "expire", place);
        }
        if !options.get {
            call.reply.ok();
        }
        Ok(())
    });
}

/// `SETNX key value`
pub fn setnx(call: &mut Call<'_>) {
    let place = call.place(1);
    let set = call.look(place).is_none();
    if set {
        call.put(place, ValueRef::string(call.arg(2)), None);
        call.notify(Classes::STRING, "set", place);
    }
    call.reply.integer(i64::from(set));
}

/// `SETEX key seconds value`
pub fn setex(call: &mut Call<'_>) {
    set_until(call, ExpireUnit::Ex, "setex");
}

/// `PSETEX key ms value`
pub fn psetex(call: &mut Call<'_>) {
    set_until(call, ExpireUnit::Px, "psetex");
}

fn set_until(call: &mut Call<'_>, unit: ExpireUnit, command: &str) {
    call.answer(|call| {
        let deadline = unit.deadline(call.arg(2), call.now_ms, command)?;
        let place = call.place(1);
        call.put(place, ValueRef::string(call.arg(3)), Some(deadline));
        call.notify(Classes::STRING, "set", place);
        call.notify(Classes::GENERIC, "expire", place);
        call.reply.ok();
        Ok(())
    });
}

/// `GETSET key value`
pub fn getset(call: &mut Call<'_>) {
    call.answer(|call| {
        reply_get(call)?;
        let place = call.place(1);
        call.put(place, ValueRef::string(call.arg(2)), None);
        call.notify(Classes::STRING, "set", place);
        Ok(())
    });
}

/// `GETDEL key`
pub fn getdel(call: &mut Call<'_>) {
    call.answer(|call| {
        reply_get(call)?;
        let place = call.place(1);
        if call.delete(place) {
            call.notify(Classes::GENERIC, "del", place);
        }
        Ok(())
    });
}

/// `GETEX key [EX seconds|PX ms|EXAT unix|PXAT unix-ms|PERSIST]`
pub fn getex(call: &mut Call<'_>) {
    call.answer(|call| {
        let options = Options::parse(call, 2, false)?;
        let place = call.place(1);
        if call.read_string(place)?.is_none() {
            call.reply.null();
            return Ok(());
        }
        let deadline = options.deadline(call.now_ms, "getex")?;
        reply_get(call)?;
        match (options.expire, deadline) {
            (Some((ExpireUnit::ExAt | ExpireUnit::PxAt, _)), Some(deadline)) if deadline <= call.now_ms => {
                call.delete(place);
                call.notify(Classes::GENERIC, "del", place);
            }
            (_, Some(_)) => {
                call.set_deadline(place, deadline);
                call.notify(Classes::GENERIC, "expire", place);
            }
            _ if options.persist && call.look(place).is_some_and(|entry| entry.deadline_ms().is_some()) => {
                call.set_deadline(place, None);
                call.notify(Classes::GENERIC, "persist", place);
            }
            _ => {}
        }
        Ok(())
    });
}

/// Text for a reply of several values that would be longer than the longest value.
pub const REPLY_TOO_LARGE: &str = "ERR the reply is too large; ask for fewer keys at a time";

/// `MGET key …`: keys of other types answer null.
pub fn mget(call: &mut Call<'_>) {
    let start = call.reply.mark();
    call.reply.array(call.args.len() - 1);
    for index in 1..call.args.len() {
        // It must fit in a frame between nodes, and in memory, however often a key is named.
        if call.reply.written_since(start) > BULK_BYTES_MAX {
            call.reply.take_back(start);
            return call.reply.error(REPLY_TOO_LARGE);
        }
        let place = call.place(index);
        match call.looks.read(call.keyspace, place, call.now_ms, call.effects).map(|entry| entry.value()) {
            Some(ValueRef::String(string)) if string.len() < HELD_BYTES_MIN => {
                reply_string(&mut call.reply, string);
            }
            Some(ValueRef::String(_)) => reply_long_string(call, place),
            Some(_) | None => call.reply.null(),
        }
    }
}

/// `MSET key value …`
pub fn mset(call: &mut Call<'_>) {
    if call.args.len().is_multiple_of(2) {
        return call.reply.error(&wrong_number("mset"));
    }
    put_all(call);
    call.reply.ok();
}

/// `MSETNX key value …`: all or none.
pub fn msetnx(call: &mut Call<'_>) {
    if call.args.len().is_multiple_of(2) {
        return call.reply.error(&wrong_number("msetnx"));
    }
    let taken = (1..call.args.len()).step_by(2).any(|index| call.look(call.place(index)).is_some());
    if !taken {
        put_all(call);
    }
    call.reply.integer(i64::from(!taken));
}

fn put_all(call: &mut Call<'_>) {
    for index in (1..call.args.len()).step_by(2) {
        let place = call.place(index);
        call.put(place, ValueRef::string(call.arg(index + 1)), None);
        call.notify(Classes::STRING, "set", place);
    }
}
