//! Estimated counts of different elements, in Redis' own bytes: `GET` and `SET` carry them anywhere.
//!
//! For: `PFADD`, `PFCOUNT`, `PFMERGE` and what looks inside.
//! Next: `sketch` for the bytes, `estimate` for hashing and counting.

use super::args::is;
use super::{Call, Stop, WRONG_TYPE};
use crate::store::keyspace::{Place, seconds};
use crate::store::{Classes, StringRef, StringValue, Value, ValueRef};
use sketch::{Corrupted, Run};

pub use sketch::SPARSE_BYTES_MAX;

mod estimate;
mod sketch;
#[cfg(test)]
mod tests;

const NOT_A_SKETCH: &str = "WRONGTYPE Key is not a valid HyperLogLog string value.";
const CORRUPTED: &str = "INVALIDOBJ Corrupted HLL object detected";

impl From<Corrupted> for Stop {
    fn from(_: Corrupted) -> Self {
        CORRUPTED.into()
    }
}

/// A sketch and the deadline of its key, Unix ms.
type WithDeadline<'c> = (&'c [u8], Option<u64>);

/// The sketch of a key and the key's deadline, with its access marked.
fn read<'c>(call: &'c mut Call<'_>, place: Place<'_>) -> Result<Option<WithDeadline<'c>>, Stop> {
    let Some(entry) = call.read(place) else { return Ok(None) };
    match entry.value() {
        ValueRef::String(StringRef::Bytes(bytes) | StringRef::Raw(bytes)) if sketch::is_sketch(bytes) => {
            Ok(Some((bytes, entry.deadline_ms())))
        }
        ValueRef::String(_) => Err(NOT_A_SKETCH.into()),
        _ => Err(WRONG_TYPE.into()),
    }
}

/// Makes the string one that is changed in place, as Redis does before it looks inside.
fn unshare(call: &mut Call<'_>, place: Place<'_>) -> Result<(), Stop> {
    if call.read_string(place)?.is_some_and(|string| string.encoding() != "raw")
        && !call.effects.is_read_only()
    {
        overwrite(call, place, 0, sketch::MAGIC);
    }
    Ok(())
}

fn put(call: &mut Call<'_>, place: Place<'_>, sketch: Vec<u8>, deadline_ms: Option<u64>) {
    call.put_value(place, Value::String(StringValue::Raw(sketch)), deadline_ms);
}

fn overwrite(call: &mut Call<'_>, place: Place<'_>, offset: usize, bytes: &[u8]) {
    call.keyspace.tick(seconds(call.now_ms));
    call.keyspace.overwrite(place, offset, bytes);
    call.effects.overwrite(place, offset, bytes, call.source);
}

/// `PFADD key [element …]`
pub fn pfadd(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, args) = (call.place(1), call.args);
        let elements = args.tail(2);
        if read(call, place)?.is_some() {
            unshare(call, place)?;
        }
        let is_changed = match read(call, place)? {
            Some((dense, _)) if sketch::is_dense(dense) => {
                let mut changed = false;
                for element in elements.iter() {
                    changed |= add_to_dense(call, place, element)?;
                }
                changed
            }
            found => {
                let is_new = found.is_none();
                let (mut bytes, deadline) = match found {
                    Some((bytes, deadline)) => (bytes.to_vec(), deadline),
                    None => (sketch::empty(), None),
                };
                let mut changed = is_new;
                let mut outcome = Ok(());
                for element in elements.iter() {
                    let (index, value) = estimate::register(element);
                    match sketch::raise(&mut bytes, index, value) {
                        Ok(raised) => changed |= raised,
                        Err(error) => {
                            outcome = Err(error);
                            break;
                        }
                    }
                }
                if changed {
                    sketch::forget_count(&mut bytes);
                    put(call, place, bytes, deadline);
                }
                outcome?;
                changed
            }
        };
        if is_changed {
            call.notify(Classes::STRING, "pfadd", place);
        }
        call.reply.integer(i64::from(is_changed));
        Ok(())
    });
}

/// Adds an element to a dense sketch, of which only the bytes of its register are written.
fn add_to_dense(call: &mut Call<'_>, place: Place<'_>, element: &[u8]) -> Result<bool, Stop> {
    let (index, value) = estimate::register(element);
    let Some((dense, _)) = read(call, place)? else { return Ok(false) };
    if sketch::dense_register(dense, index) >= value {
        return Ok(false);
    }
    let (at, bytes, length) = sketch::with_dense_register(dense, index, value);
    let (mark_at, mark) = sketch::forgotten(dense);
    let is_marked = dense[mark_at] == mark;
    overwrite(call, place, at, &bytes[..length]);
    if !is_marked {
        overwrite(call, place, mark_at, &[mark]);
    }
    Ok(true)
}

/// `PFCOUNT key …`: a single sketch keeps its count, as in Redis.
pub fn pfcount(call: &mut Call<'_>) {
    call.answer(|call| {
        if call.args.len() > 2 {
            let (runs, _) = merged(call)?;
            call.reply.integer(estimate::count(&runs) as i64);
            return Ok(());
        }
        let place = call.place(1);
        if read(call, place)?.is_some() {
            unshare(call, place)?;
        }
        let Some((bytes, _)) = read(call, place)? else {
            call.reply.integer(0);
            return Ok(());
        };
        let count = match sketch::kept_count(bytes) {
            Some(count) => count,
            None => {
                let count = estimate::count(&sketch::all_runs(bytes)?);
                if !call.effects.is_read_only() {
                    overwrite(call, place, sketch::COUNT_AT, &count.to_le_bytes());
                }
                count
            }
        };
        call.reply.integer(count as i64);
        Ok(())
    });
}

/// The highest of each register in the sketches of all arguments, and whether one of them is dense.
fn merged(call: &mut Call<'_>) -> Result<(Vec<Run>, bool), Stop> {
    let mut highest = vec![Run { value: 0, length: 1, bytes: 0 }; sketch::REGISTERS];
    let mut is_dense = false;
    for index in 1..call.args.len() {
        let Some((bytes, _)) = read(call, call.place(index))? else { continue };
        is_dense |= sketch::is_dense(bytes);
        let mut at = 0;
        for run in sketch::all_runs(bytes)? {
            for register in &mut highest[at..at + run.length] {
                register.value = register.value.max(run.value);
            }
            at += run.length;
        }
    }
    Ok((highest, is_dense))
}

/// `PFMERGE destination [source …]`
pub fn pfmerge(call: &mut Call<'_>) {
    call.answer(|call| {
        let (registers, is_dense) = merged(call)?;
        let place = call.place(1);
        let (mut target, deadline) = match read(call, place)? {
            Some((bytes, deadline)) => (bytes.to_vec(), deadline),
            None => (sketch::empty(), None),
        };
        if is_dense {
            sketch::make_dense(&mut target)?;
        }
        for (index, register) in registers.iter().enumerate().filter(|(_, register)| register.value > 0) {
            sketch::raise(&mut target, index, register.value)?;
        }
        sketch::forget_count(&mut target);
        put(call, place, target, deadline);
        call.notify(Classes::STRING, "pfadd", place);
        call.reply.ok();
        Ok(())
    });
}

/// `PFDEBUG GETREG|DECODE|ENCODING|TODENSE key`
pub fn pfdebug(call: &mut Call<'_>) {
    call.answer(|call| {
        let (word, place) = (call.arg(1), call.place(2));
        if read(call, place)?.is_some() {
            unshare(call, place)?;
        }
        let (bytes, deadline) = read(call, place)?.ok_or("ERR The specified key does not exist")?;
        let (mut bytes, was_dense) = (bytes.to_vec(), sketch::is_dense(bytes));
        if is(word, "encoding") {
            call.reply.simple(if was_dense { "dense" } else { "sparse" });
        } else if is(word, "decode") {
            if was_dense {
                return Err("ERR HLL encoding is not sparse".into());
            }
            let words: Vec<_> = sketch::written_runs(&bytes).iter().map(word_of).collect();
            call.reply.bulk(words.join(" ").as_bytes());
        } else if is(word, "getreg") || is(word, "todense") {
            if !was_dense {
                sketch::make_dense(&mut bytes)?;
                put(call, place, bytes.clone(), deadline);
            }
            if is(word, "todense") {
                call.reply.integer(i64::from(!was_dense));
            } else {
                call.reply.array(sketch::REGISTERS);
                (0..sketch::REGISTERS)
                    .for_each(|index| call.reply.integer(sketch::dense_register(&bytes, index).into()));
            }
        } else {
            return Err(format!("ERR Unknown PFDEBUG subcommand '{}'", String::from_utf8_lossy(word)).into());
        }
        Ok(())
    });
}

/// A run as `PFDEBUG DECODE` writes it.
fn word_of(run: &Run) -> String {
    match run {
        Run { value: 0, length, bytes: 1 } => format!("z:{length}"),
        Run { value: 0, length, .. } => format!("Z:{length}"),
        Run { value, length, .. } => format!("v:{value},{length}"),
    }
}
