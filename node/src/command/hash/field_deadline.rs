//! Deadlines of single fields, as Redis 7.4 has them.
//!
//! For: `HEXPIRE` and kin, `HTTL` and kin, `HPERSIST`.
//! Not here: removing what has ended (`store::keyspace`).
//! Next: `value_deadline` reads and sets values with their deadlines.

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

pub(super) const NO_FIELDS: &str = "ERR Mandatory argument FIELDS is missing or not at the right position";
pub(super) const COUNT_OF_NONE: &str = "ERR Number of fields must be a positive integer";

/// Where `FIELDS count field …` stands: the index of the first field. `what` is the error for a count of none.
pub(super) fn fields_at(call: &Call<'_>, at: usize, what: &'static str) -> Result<usize, Stop> {
    if !call.args.get(at).is_some_and(|word| is(word, "fields")) {
        return Err(NO_FIELDS.into());
    }
    let count = call.args.get(at + 1).and_then(|count| integer(count).ok()).filter(|&count| count > 0);
    let count = count.ok_or(what)?;
    if usize::try_from(count) != Ok(call.args.len() - at - 2) {
        return Err("ERR The `numfields` parameter must match the number of arguments".into());
    }
    Ok(at + 2)
}

/// A moment, Unix ms: `text` is in units of so many ms, from `base_ms` on.
pub(super) fn moment(text: &[u8], unit_ms: u64, base_ms: u64, command: &str) -> Result<u64, Stop> {
    let number = u64::try_from(integer(text)?).map_err(|_| "ERR invalid expire time, must be >= 0")?;
    let moment = number.checked_mul(unit_ms).and_then(|ms| ms.checked_add(base_ms));
    moment.filter(|moment| *moment <= DEADLINE_MAX).ok_or_else(|| invalid_expire(command))
}

/// `EX`, `PX`, `EXAT` or `PXAT`: its unit in ms, and from when on it counts.
pub(super) fn unit_of(word: &[u8], now_ms: u64) -> Option<(u64, u64)> {
    let units = [("ex", (1000, now_ms)), ("px", (1, now_ms)), ("exat", (1000, 0)), ("pxat", (1, 0))];
    units.into_iter().find(|(name, _)| is(word, name)).map(|(_, unit)| unit)
}

/// What was done to a field.
pub(super) enum Step {
    Nothing,
    Changed,
    Deleted,
}

/// Answers for each of the fields from argument `first` on; then tells of what `one` has done to them: `event`, or that
/// they are deleted, and of the end of the hash.
pub(super) fn each_field(
    call: &mut Call<'_>,
    first: usize,
    event: &'static str,
    mut one: impl FnMut(&mut Call<'_>, Place<'_>, &[u8]) -> Result<Step, Stop>,
) -> Result<(), Stop> {
    let place = call.place(1);
    call.reply.array(call.args.len() - first);
    let (mut is_changed, mut is_deleted) = (false, false);
    for index in first..call.args.len() {
        let field = call.arg(index);
        match one(call, place, field)? {
            Step::Nothing => {}
            Step::Changed => is_changed = true,
            Step::Deleted => is_deleted = true,
        }
    }
    if is_changed {
        call.notify(Classes::HASH, event, place);
    }
    if is_deleted {
        call.notify_removal(Classes::HASH, "hdel", place);
    }
    Ok(())
}

/// Whether a field is there, and its deadline.
pub(super) fn deadline_of(
    call: &mut Call<'_>,
    place: Place<'_>,
    field: &[u8],
) -> Result<Option<Option<u64>>, Stop> {
    let hash = call.read_collection::<Hash>(place)?;
    Ok(hash.and_then(|hash| hash.get(field).map(|_| hash.deadline(field))))
}

/// Gives a field that is there a deadline, or takes it away; one that has passed takes the field with it.
pub(super) fn set_deadline(
    call: &mut Call<'_>,
    place: Place<'_>,
    field: &[u8],
    old: Option<u64>,
    deadline_ms: Option<u64>,
) -> Step {
    if deadline_ms.is_some_and(|deadline| deadline <= call.now_ms) {
        call.change(place, Change::Hash(HashChange::Delete { field }));
        return Step::Deleted;
    }
    if old != deadline_ms {
        call.change(place, Change::Hash(HashChange::Deadline { field, deadline_ms }));
    }
    Step::Changed
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
    call.read_collection::<Hash>(call.place(1))?;
    let deadline = moment(call.arg(2), unit_ms, base_ms, command)?;
    let conditions = Conditions::of_field(call.arg(3));
    let at = if conditions.is_some() { 4 } else { 3 };
    let first = fields_at(call, at, "ERR Parameter `numFields` should be greater than 0")?;
    let conditions = conditions.unwrap_or_default();
    each_field(call, first, "hexpire", |call, place, name| {
        let (answer, step) = match deadline_of(call, place, name)? {
            None => (NO_FIELD, Step::Nothing),
            Some(old) if !conditions.allow(old, deadline as i64) => (REFUSED, Step::Nothing),
            Some(old) => match set_deadline(call, place, name, old, Some(deadline)) {
                Step::Deleted => (DELETED, Step::Deleted),
                step => (DONE, step),
            },
        };
        call.reply.integer(answer);
        Ok(step)
    })
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
    call.read_collection::<Hash>(call.place(1))?;
    let first = fields_at(call, 2, COUNT_OF_NONE)?;
    each_field(call, first, "", |call, place, name| {
        let answer = match deadline_of(call, place, name)? {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(deadline)) => deadline.saturating_sub(base_ms).div_ceil(unit_ms) as i64,
        };
        call.reply.integer(answer);
        Ok(Step::Nothing)
    })
}

/// `HPERSIST key FIELDS count field …`
pub fn hpersist(call: &mut Call<'_>) {
    call.answer(|call| {
        call.read_collection::<Hash>(call.place(1))?;
        let first = fields_at(call, 2, COUNT_OF_NONE)?;
        each_field(call, first, "hpersist", |call, place, name| {
            let (answer, step) = match deadline_of(call, place, name)? {
                None => (NO_FIELD, Step::Nothing),
                Some(None) => (NO_DEADLINE, Step::Nothing),
                Some(old) => (DONE, set_deadline(call, place, name, old, None)),
            };
            call.reply.integer(answer);
            Ok(step)
        })
    });
}
