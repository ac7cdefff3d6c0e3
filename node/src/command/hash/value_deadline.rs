//! Values of fields together with their deadlines, as Redis 8 has them.
//!
//! For: `HGETDEL`, `HGETEX`, `HSETEX`.
//! Not here: deadlines alone (`field_deadline`).

use super::field_deadline::{
    COUNT_OF_NONE, NO_FIELDS, Step, deadline_of, each_field, fields_at, moment, set_deadline, unit_of,
};
use crate::command::args::{integer, is, wrong_number};
use crate::command::{Call, Stop};
use crate::store::keyspace::Place;
use crate::store::{Change, Classes, Hash, HashChange};

/// Answers the value of a field; whether it is there, and its deadline.
fn reply_value(call: &mut Call<'_>, place: Place<'_>, field: &[u8]) -> Result<Option<Option<u64>>, Stop> {
    let (hash, reply) = call.read_beside::<Hash>(place)?;
    let found = hash.and_then(|hash| hash.get(field).map(|value| (value, hash.deadline(field))));
    match found {
        Some((value, _)) => reply.bulk(value),
        None => reply.null(),
    }
    Ok(found.map(|(_, deadline)| deadline))
}

/// `HGETDEL key FIELDS count field …`: values, and the fields are gone.
pub fn hgetdel(call: &mut Call<'_>) {
    call.answer(|call| {
        call.read_collection::<Hash>(call.place(1))?;
        let first = fields_at(call, 2, COUNT_OF_NONE)?;
        each_field(call, first, "", |call, place, name| {
            if reply_value(call, place, name)?.is_none() {
                return Ok(Step::Nothing);
            }
            call.change(place, Change::Hash(HashChange::Delete { field: name }));
            Ok(Step::Deleted)
        })
    });
}

/// `HGETEX key [EX seconds|PX ms|EXAT unix|PXAT unix-ms|PERSIST] FIELDS count field …`: values, and the fields have
/// another deadline, or none.
pub fn hgetex(call: &mut Call<'_>) {
    call.answer(|call| {
        call.read_collection::<Hash>(call.place(1))?;
        let word = call.arg(2);
        let (wanted, at) = if let Some((unit_ms, base_ms)) = unit_of(word, call.now_ms) {
            (Some(Some(moment(call.arg(3), unit_ms, base_ms, "hgetex")?)), 4)
        } else if is(word, "persist") {
            (Some(None), 3)
        } else {
            (None, 2)
        };
        let first = fields_at(call, at, COUNT_OF_NONE)?;
        let event = if wanted == Some(None) { "hpersist" } else { "hexpire" };
        each_field(call, first, event, |call, place, name| {
            let old = reply_value(call, place, name)?;
            Ok(match (old, wanted) {
                (Some(None), Some(None)) => Step::Nothing,
                (Some(old), Some(deadline)) => set_deadline(call, place, name, old, deadline),
                (None, _) | (_, None) => Step::Nothing,
            })
        })
    });
}

/// What `HSETEX` is told beside the fields.
#[derive(Default)]
struct SetOptions {
    /// Only if all fields are there, or only if none is.
    condition: Option<bool>,
    deadline_ms: Option<u64>,
    keeps_deadlines: bool,
    /// Index of the first field.
    first: usize,
}

impl SetOptions {
    fn parse(call: &Call<'_>) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut at = 2;
        while let Some(word) = call.args.get(at) {
            let unit = unit_of(word, call.now_ms);
            if is(word, "fields") {
                options.first = Self::first_of_pairs(call, at)?;
                return Ok(options);
            } else if unit.is_some() || is(word, "keepttl") {
                if options.deadline_ms.is_some() || options.keeps_deadlines {
                    return Err(
                        "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified".into()
                    );
                }
                match unit {
                    Some((unit_ms, base_ms)) => {
                        at += 1;
                        let text = call.args.get(at).ok_or("ERR missing expire time")?;
                        options.deadline_ms = Some(moment(text, unit_ms, base_ms, "hsetex")?);
                    }
                    None => options.keeps_deadlines = true,
                }
            } else if is(word, "fxx") || is(word, "fnx") {
                if options.condition.replace(is(word, "fxx")).is_some() {
                    return Err("ERR Only one of FXX or FNX arguments can be specified".into());
                }
            } else {
                return Err(format!("ERR unknown argument: {}", String::from_utf8_lossy(word)).into());
            }
            at += 1;
        }
        Err(NO_FIELDS.into())
    }

    /// The first of `FIELDS count field value …`.
    fn first_of_pairs(call: &Call<'_>, at: usize) -> Result<usize, Stop> {
        let left = call.args.len() - at;
        if left <= 3 {
            return Err(wrong_number("hsetex"));
        }
        let count = integer(call.arg(at + 1)).ok().filter(|count| (1..=i64::from(i32::MAX)).contains(count));
        let count = count.ok_or("ERR invalid number of fields")?;
        if usize::try_from(2 * count) != Ok(left - 2) {
            return Err(wrong_number("hsetex"));
        }
        Ok(at + 2)
    }
}

/// `HSETEX key [FNX|FXX] [EX seconds|PX ms|EXAT unix|PXAT unix-ms|KEEPTTL] FIELDS count field value …`: 1 if the fields
/// were set, all of them, 0 if none was.
pub fn hsetex(call: &mut Call<'_>) {
    call.answer(|call| {
        let options = SetOptions::parse(call)?;
        let place = call.place(1);
        let args = call.args;
        let pairs = || (options.first..args.len()).step_by(2).map(|at| (&args[at], &args[at + 1]));
        let hash = call.read_collection::<Hash>(place)?;
        let is_there = |field: &[u8]| hash.is_some_and(|hash| hash.get(field).is_some());
        let is_refused = |wanted| pairs().any(|(field, _)| is_there(field) != wanted);
        if options.condition.is_some_and(is_refused) {
            call.reply.integer(0);
            return Ok(());
        }
        let (mut has_deadline, mut is_deleted) = (false, false);
        for (field, value) in pairs() {
            let old = deadline_of(call, place, field)?.flatten();
            call.change(place, Change::Hash(HashChange::Set { field, value }));
            let wanted = if options.keeps_deadlines { old } else { options.deadline_ms };
            if wanted.is_some() {
                match set_deadline(call, place, field, None, wanted) {
                    Step::Deleted => is_deleted = true,
                    Step::Changed | Step::Nothing => has_deadline |= options.deadline_ms.is_some(),
                }
            }
        }
        call.notify(Classes::HASH, "hset", place);
        if has_deadline {
            call.notify(Classes::HASH, "hexpire", place);
        }
        if is_deleted {
            call.notify_removal(Classes::HASH, "hdel", place);
        }
        call.reply.integer(1);
        Ok(())
    });
}
