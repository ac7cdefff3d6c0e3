//! Deadlines of single fields, as Redis 7.4 has them.
//!
//! For: `HEXPIRE` and kin, `HTTL` and kin, `HPERSIST`, `HGETDEL`.
//! Not here: removing what has ended (`store::keyspace`).

use crate::command::args::{integer, invalid_expire, is};
use crate::command::key::expire::Conditions;
use crate::command::{Call, Stop};
use crate::store::keyspace::Place;
use crate::store::{Change, Classes, Hash, HashChange};

/// Latest deadline of a field, Unix ms (Redis' bound).
const DEADLINE_MAX: u64 = (1 << 46) - 1;
const NO_FIELD: i64 = -2;
const NO_DEADLINE: i64 = -1;
const REFUSED: i64 = 0;
const DONE: i64 = 1;
const DELETED: i64 = 2;

/// Where `FIELDS count field …` stands: the index of the first field. `what` is the error for a count of none.
fn fields_at(call: &Call<'_>, at: usize, what: &'static str) -> Result<usize, Stop> {
    if !call.args.get(at).is_some_and(|word| is(word, "fields")) {
        return Err("ERR Mandatory argument FIELDS is missing or not at the right position".into());
    }
    let count = call.args.get(at + 1).and_then(|count| integer(count).ok()).filter(|&count| count > 0);
    let count = count.ok_or(what)?;
    if usize::try_from(count) != Ok(call.args.len() - at - 2) {
        return Err("ERR The `numfields` parameter must match the number of arguments".into());
    }
    Ok(at + 2)
}

const COUNT_OF_NONE: &str = "ERR Number of fields must be a positive integer";

/// A value and its deadline, Unix ms.
type WithDeadline<'c> = (&'c [u8], Option<u64>);

/// The value of a field, if it is there, and its deadline.
fn field<'c>(
    call: &'c mut Call<'_>,
    place: Place<'_>,
    field: &[u8],
) -> Result<Option<WithDeadline<'c>>, Stop> {
    let hash = call.read_collection::<Hash>(place)?;
    Ok(hash.and_then(|hash| hash.get(field).map(|value| (value, hash.deadline(field)))))
}

/// Tells of what was done to fields, and of the end of the hash.
fn notify(call: &mut Call<'_>, place: Place<'_>, event: &'static str) {
    call.notify(Classes::HASH, event, place);
    if !call.keyspace.contains(place.key) {
        call.notify(Classes::GENERIC, "del", place);
    }
}

/// `HEXPIRE key seconds [NX|XX|GT|LT] FIELDS count field …`
pub fn hexpire(call: &mut Call<'_>) {
    call.answer(|call| set_deadlines(call, 1000, call.now_ms, "hexpire"));
}

/// `HPEXPIRE key ms [NX|XX|GT|LT] FIELDS count field …`
pub fn hpexpire(call: &mut Call<'_>) {
    call.answer(|call| set_deadlines(call, 1, call.now_ms, "hpexpire"));
}

/// `HEXPIREAT key unix [NX|XX|GT|LT] FIELDS count field …`
pub fn hexpireat(call: &mut Call<'_>) {
    call.answer(|call| set_deadlines(call, 1000, 0, "hexpireat"));
}

/// `HPEXPIREAT key unix-ms [NX|XX|GT|LT] FIELDS count field …`
pub fn hpexpireat(call: &mut Call<'_>) {
    call.answer(|call| set_deadlines(call, 1, 0, "hpexpireat"));
}

fn set_deadlines(call: &mut Call<'_>, unit_ms: u64, base_ms: u64, command: &str) -> Result<(), Stop> {
    let place = call.place(1);
    call.read_collection::<Hash>(place)?;
    let number = u64::try_from(integer(call.arg(2))?).map_err(|_| "ERR invalid expire time, must be >= 0")?;
    let deadline = number
        .checked_mul(unit_ms)
        .and_then(|ms| ms.checked_add(base_ms))
        .filter(|deadline| *deadline <= DEADLINE_MAX)
        .ok_or_else(|| invalid_expire(command))?;
    let conditions = Conditions::of_field(call.arg(3));
    let at = if conditions.is_some() { 4 } else { 3 };
    let first = fields_at(call, at, "ERR Parameter `numFields` should be greater than 0")?;
    let (conditions, now_ms) = (conditions.unwrap_or_default(), call.now_ms);
    call.reply.array(call.args.len() - first);
    let (mut are_set, mut are_deleted) = (false, false);
    for index in first..call.args.len() {
        let name = call.arg(index);
        let answer = match field(call, place, name)? {
            None => NO_FIELD,
            Some((_, old)) if !conditions.allow(old, deadline as i64) => REFUSED,
            Some(_) if deadline <= now_ms => {
                call.change(place, Change::Hash(HashChange::Delete { field: name }));
                are_deleted = true;
                DELETED
            }
            Some((_, old)) => {
                let deadline_ms = Some(deadline);
                if old != deadline_ms {
                    call.change(place, Change::Hash(HashChange::Deadline { field: name, deadline_ms }));
                }
                are_set = true;
                DONE
            }
        };
        call.reply.integer(answer);
    }
    if are_set {
        call.notify(Classes::HASH, "hexpire", place);
    }
    if are_deleted {
        notify(call, place, "hdel");
    }
    Ok(())
}

/// `HTTL key FIELDS count field …`: seconds, -1 without a deadline, -2 without a field.
pub fn httl(call: &mut Call<'_>) {
    call.answer(|call| reply_deadlines(call, call.now_ms, 1000));
}

/// `HPTTL key FIELDS count field …`
pub fn hpttl(call: &mut Call<'_>) {
    call.answer(|call| reply_deadlines(call, call.now_ms, 1));
}

/// `HEXPIRETIME key FIELDS count field …`
pub fn hexpiretime(call: &mut Call<'_>) {
    call.answer(|call| reply_deadlines(call, 0, 1000));
}

/// `HPEXPIRETIME key FIELDS count field …`
pub fn hpexpiretime(call: &mut Call<'_>) {
    call.answer(|call| reply_deadlines(call, 0, 1));
}

fn reply_deadlines(call: &mut Call<'_>, base_ms: u64, unit_ms: u64) -> Result<(), Stop> {
    let place = call.place(1);
    call.read_collection::<Hash>(place)?;
    let first = fields_at(call, 2, COUNT_OF_NONE)?;
    call.reply.array(call.args.len() - first);
    for index in first..call.args.len() {
        let name = call.arg(index);
        let answer = match field(call, place, name)? {
            None => NO_FIELD,
            Some((_, None)) => NO_DEADLINE,
            Some((_, Some(deadline))) => deadline.saturating_sub(base_ms).div_ceil(unit_ms) as i64,
        };
        call.reply.integer(answer);
    }
    Ok(())
}

/// `HPERSIST key FIELDS count field …`
pub fn hpersist(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        call.read_collection::<Hash>(place)?;
        let first = fields_at(call, 2, COUNT_OF_NONE)?;
        let mut is_changed = false;
        call.reply.array(call.args.len() - first);
        for index in first..call.args.len() {
            let name = call.arg(index);
            let answer = match field(call, place, name)? {
                None => NO_FIELD,
                Some((_, None)) => NO_DEADLINE,
                Some((_, Some(_))) => {
                    call.change(place, Change::Hash(HashChange::Deadline { field: name, deadline_ms: None }));
                    is_changed = true;
                    DONE
                }
            };
            call.reply.integer(answer);
        }
        if is_changed {
            call.notify(Classes::HASH, "hpersist", place);
        }
        Ok(())
    });
}

/// `HGETDEL key FIELDS count field …`: values, and the fields are gone.
pub fn hgetdel(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        call.read_collection::<Hash>(place)?;
        let first = fields_at(call, 2, COUNT_OF_NONE)?;
        let mut is_changed = false;
        call.reply.array(call.args.len() - first);
        for index in first..call.args.len() {
            let name = call.arg(index);
            let (hash, reply) = call.read_beside::<Hash>(place)?;
            let found = hash.and_then(|hash| hash.get(name));
            match found {
                Some(value) => reply.bulk(value),
                None => reply.null(),
            }
            if found.is_some() {
                call.change(place, Change::Hash(HashChange::Delete { field: name }));
                is_changed = true;
            }
        }
        if is_changed {
            notify(call, place, "hdel");
        }
        Ok(())
    });
}
