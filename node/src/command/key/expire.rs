//! Deadlines of keys.

use crate::command::args::{integer, invalid_expire, is};
use crate::command::{Call, Stop};
use crate::store::Classes;

/// Which deadlines a conditional `EXPIRE` may replace.
#[derive(Clone, Copy, Default, Debug)]
pub struct Conditions {
    if_none: bool,
    if_some: bool,
    if_later: bool,
    if_earlier: bool,
}

impl Conditions {
    fn parse(call: &Call<'_>) -> Result<Self, Stop> {
        let mut conditions = Self::default();
        for option in call.args.tail(3).iter() {
            if is(option, "nx") {
                conditions.if_none = true;
            } else if is(option, "xx") {
                conditions.if_some = true;
            } else if is(option, "gt") {
                conditions.if_later = true;
            } else if is(option, "lt") {
                conditions.if_earlier = true;
            } else {
                return Err(format!("ERR Unsupported option {}", String::from_utf8_lossy(option)).into());
            }
        }
        let Self { if_none, if_some, if_later, if_earlier } = conditions;
        if if_none && (if_some || if_later || if_earlier) {
            return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
        }
        if if_later && if_earlier {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(conditions)
    }

    /// The one condition that `HEXPIRE` may have, if this is the word for one.
    #[must_use]
    pub fn of_field(word: &[u8]) -> Option<Self> {
        let mut conditions = Self::default();
        for (name, condition) in [
            ("nx", &mut conditions.if_none),
            ("xx", &mut conditions.if_some),
            ("gt", &mut conditions.if_later),
            ("lt", &mut conditions.if_earlier),
        ] {
            *condition = is(word, name);
        }
        let Self { if_none, if_some, if_later, if_earlier } = conditions;
        (if_none || if_some || if_later || if_earlier).then_some(conditions)
    }

    /// Whether `new` may replace `old`; a missing deadline is later than any.
    #[must_use]
    pub fn allow(&self, old: Option<u64>, new: i64) -> bool {
        let old = old.map(|old| i64::try_from(old).unwrap_or(i64::MAX));
        !(self.if_none && old.is_some()
            || self.if_some && old.is_none()
            || self.if_later && old.is_none_or(|old| new <= old)
            || self.if_earlier && old.is_some_and(|old| new >= old))
    }
}

/// `EXPIRE key seconds [NX|XX|GT|LT]`
pub fn expire(call: &mut Call<'_>) {
    call.answer(|call| set_deadline(call, 1000, call.now_ms, "expire"));
}

/// `PEXPIRE key ms [NX|XX|GT|LT]`
pub fn pexpire(call: &mut Call<'_>) {
    call.answer(|call| set_deadline(call, 1, call.now_ms, "pexpire"));
}

/// `EXPIREAT key unix [NX|XX|GT|LT]`
pub fn expireat(call: &mut Call<'_>) {
    call.answer(|call| set_deadline(call, 1000, 0, "expireat"));
}

/// `PEXPIREAT key unix-ms [NX|XX|GT|LT]`
pub fn pexpireat(call: &mut Call<'_>) {
    call.answer(|call| set_deadline(call, 1, 0, "pexpireat"));
}

fn set_deadline(call: &mut Call<'_>, unit_ms: i64, base_ms: u64, command: &str) -> Result<(), Stop> {
    let conditions = Conditions::parse(call)?;
    let number = integer(call.arg(2))?;
    let deadline = number
        .checked_mul(unit_ms)
        .and_then(|ms| ms.checked_add_unsigned(base_ms))
        .ok_or_else(|| invalid_expire(command))?;
    let place = call.place(1);
    let Some(old) = call.read(place).map(|entry| entry.deadline_ms()) else {
        call.reply.integer(0);
        return Ok(());
    };
    if !conditions.allow(old, deadline) {
        call.reply.integer(0);
        return Ok(());
    }
    match u64::try_from(deadline) {
        Ok(deadline) if deadline > call.now_ms => {
            call.set_deadline(place, Some(deadline));
            call.notify(Classes::GENERIC, "expire", place);
        }
        // It has passed already.
        _ => {
            call.delete(place);
            call.notify(Classes::GENERIC, "del", place);
        }
    }
    call.reply.integer(1);
    Ok(())
}

/// `TTL key`: seconds, -1 without a deadline, -2 without a key.
pub fn ttl(call: &mut Call<'_>) {
    reply_deadline(call, call.now_ms, 1000);
}

/// `PTTL key`
pub fn pttl(call: &mut Call<'_>) {
    reply_deadline(call, call.now_ms, 1);
}

/// `EXPIRETIME key`
pub fn expiretime(call: &mut Call<'_>) {
    reply_deadline(call, 0, 1000);
}

/// `PEXPIRETIME key`
pub fn pexpiretime(call: &mut Call<'_>) {
    reply_deadline(call, 0, 1);
}

fn reply_deadline(call: &mut Call<'_>, base_ms: u64, unit_ms: u64) {
    let answer = match call.look(call.place(1)).map(|entry| entry.deadline_ms()) {
        None => -2,
        Some(None) => -1,
        // Rounded to the nearest unit, as Redis does.
        Some(Some(deadline)) => {
            let rest = deadline.saturating_sub(base_ms).saturating_add(unit_ms / 2) / unit_ms;
            i64::try_from(rest).unwrap_or(i64::MAX)
        }
    };
    call.reply.integer(answer);
}

/// `PERSIST key`
pub fn persist(call: &mut Call<'_>) {
    let place = call.place(1);
    let had = call.read(place).is_some_and(|entry| entry.deadline_ms().is_some());
    if had {
        call.set_deadline(place, None);
        call.notify(Classes::GENERIC, "persist", place);
    }
    call.reply.integer(i64::from(had));
}
