//! Hashes.
//!
//! For: the commands on fields and their values.
//! Not here: how a hash is kept (`store::hash`).
//! Next: `random_field` picks by chance.

use korum_protocol::limits::BULK_BYTES_MAX;

use super::args::{integer, wrong_number};
use super::scan::{ScanOptions, cursor, reply_head};
use super::string::REPLY_TOO_LARGE;
use super::string::float::LongDouble;
use super::{Call, Stop};
use crate::store::{Change, Classes, Hash, HashChange, integer as text};

mod field_deadline;
mod value_deadline;
mod random_field;
#[cfg(test)]
mod deadline_tests;
#[cfg(test)]
mod tests;

pub use field_deadline::{
    hexpire, hexpireat, hexpiretime, hpersist, hpexpire, hpexpireat, hpexpiretime, hpttl, httl,
};
pub use random_field::hrandfield;
pub use value_deadline::{hgetdel, hgetex, hsetex};

/// `HSET key field value …`
pub fn hset(call: &mut Call<'_>) {
    call.answer(|call| {
        let created = set_all(call, "hset")?;
        call.reply.integer(created);
        Ok(())
    });
}

/// `HMSET key field value …`
pub fn hmset(call: &mut Call<'_>) {
    call.answer(|call| {
        set_all(call, "hmset")?;
        call.reply.ok();
        Ok(())
    });
}

/// Sets all fields; how many of them are new.
fn set_all(call: &mut Call<'_>, command: &str) -> Result<i64, Stop> {
    if !call.args.len().is_multiple_of(2) {
        return Err(wrong_number(command));
    }
    let place = call.place(1);
    let before = call.read_collection::<Hash>(place)?.map_or(0, Hash::len);
    for index in (2..call.args.len()).step_by(2) {
        let (field, value) = (call.arg(index), call.arg(index + 1));
        call.change(place, Change::Hash(HashChange::Set { field, value }));
    }
    call.notify(Classes::HASH, "hset", place);
    let after = call.read_collection::<Hash>(place)?.map_or(0, Hash::len);
    Ok((after - before) as i64)
}

/// `HSETNX key field value`
pub fn hsetnx(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, field, value) = (call.place(1), call.arg(2), call.arg(3));
        let is_new = call.read_collection::<Hash>(place)?.is_none_or(|hash| hash.get(field).is_none());
        if is_new {
            call.change(place, Change::Hash(HashChange::Set { field, value }));
            call.notify(Classes::HASH, "hset", place);
        }
        call.reply.integer(i64::from(is_new));
        Ok(())
    });
}

/// `HGET key field`
pub fn hget(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, field) = (call.place(1), call.arg(2));
        let (hash, reply) = call.read_beside::<Hash>(place)?;
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        }
        Ok(())
    });
}

/// `HMGET key field …`
pub fn hmget(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, args) = (call.place(1), call.args);
        let (hash, reply) = call.read_beside::<Hash>(place)?;
        let start = reply.mark();
        reply.array(args.len() - 2);
        for index in 2..args.len() {
            if reply.written_since(start) > BULK_BYTES_MAX {
                reply.take_back(start);
                return Err(REPLY_TOO_LARGE.into());
            }
            match hash.and_then(|hash| hash.get(&args[index])) {
                Some(value) => reply.bulk(value),
                None => reply.null(),
            }
        }
        Ok(())
    });
}

/// `HGETALL key`
pub fn hgetall(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let (hash, reply) = call.read_beside::<Hash>(place)?;
        reply.map(hash.map_or(0, Hash::len));
        for (field, value) in hash.into_iter().flat_map(Hash::iter) {
            reply.bulk(field);
            reply.bulk(value);
        }
        Ok(())
    });
}

/// `HKEYS key`
pub fn hkeys(call: &mut Call<'_>) {
    list(call, |(field, _)| field);
}

/// `HVALS key`
pub fn hvals(call: &mut Call<'_>) {
    list(call, |(_, value)| value);
}

/// Takes a field or its value from the two.
type Part = for<'h> fn((&'h [u8], &'h [u8])) -> &'h [u8];

fn list(call: &mut Call<'_>, part: Part) {
    call.answer(|call| {
        let place = call.place(1);
        let (hash, reply) = call.read_beside::<Hash>(place)?;
        reply.array(hash.map_or(0, Hash::len));
        hash.into_iter().flat_map(Hash::iter).for_each(|pair| reply.bulk(part(pair)));
        Ok(())
    });
}

/// `HLEN key`
pub fn hlen(call: &mut Call<'_>) {
    count(call, |_, hash| hash.len());
}

/// `HEXISTS key field`
pub fn hexists(call: &mut Call<'_>) {
    count(call, |field, hash| usize::from(hash.get(field).is_some()));
}

/// `HSTRLEN key field`
pub fn hstrlen(call: &mut Call<'_>) {
    count(call, |field, hash| hash.get(field).map_or(0, <[u8]>::len));
}

/// Answers a number about a hash and the field at argument 2, if there is one; 0 for a missing hash.
fn count(call: &mut Call<'_>, number: fn(&[u8], &Hash) -> usize) {
    call.answer(|call| {
        let (place, field) = (call.place(1), call.args.get(2).unwrap_or_default());
        let found = call.read_collection::<Hash>(place)?.map_or(0, |hash| number(field, hash));
        call.reply.integer(found as i64);
        Ok(())
    });
}

/// `HDEL key field …`
pub fn hdel(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let mut deleted = 0;
        for index in 2..call.args.len() {
            let field = call.arg(index);
            if call.read_collection::<Hash>(place)?.is_some_and(|hash| hash.get(field).is_some()) {
                call.change(place, Change::Hash(HashChange::Delete { field }));
                deleted += 1;
            }
        }
        if deleted > 0 {
            call.notify_removal(Classes::HASH, "hdel", place);
        }
        call.reply.integer(deleted);
        Ok(())
    });
}

/// Sets a field, whose deadline stays.
fn set_kept(call: &mut Call<'_>, field: &[u8], value: &[u8]) -> Result<(), Stop> {
    let place = call.place(1);
    let deadline_ms = call.read_collection::<Hash>(place)?.and_then(|hash| hash.deadline(field));
    call.change(place, Change::Hash(HashChange::Set { field, value }));
    if deadline_ms.is_some() {
        call.change(place, Change::Hash(HashChange::Deadline { field, deadline_ms }));
    }
    Ok(())
}

/// `HINCRBY key field increment`
pub fn hincrby(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, field) = (call.place(1), call.arg(2));
        let increment = integer(call.arg(3))?;
        let old = match call.read_collection::<Hash>(place)?.and_then(|hash| hash.get(field)) {
            None => 0,
            Some(value) => text::parse(value).ok_or("ERR hash value is not an integer")?,
        };
        let new = old.checked_add(increment).ok_or("ERR increment or decrement would overflow")?;
        set_kept(call, field, new.to_string().as_bytes())?;
        call.notify(Classes::HASH, "hincrby", place);
        call.reply.integer(new);
        Ok(())
    });
}

/// `HINCRBYFLOAT key field increment`: in Redis' long double, digit for digit.
pub fn hincrbyfloat(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, field) = (call.place(1), call.arg(2));
        let increment = LongDouble::parse(call.arg(3)).ok_or("ERR value is not a valid float")?;
        if increment.is_infinite() {
            return Err("ERR value is NaN or Infinity".into());
        }
        let old = match call.read_collection::<Hash>(place)?.and_then(|hash| hash.get(field)) {
            None => LongDouble::ZERO,
            Some(value) => LongDouble::parse(value).ok_or("ERR hash value is not a float")?,
        };
        let new = old.plus(increment).ok_or("ERR increment would produce NaN or Infinity")?;
        let value = new.to_text();
        set_kept(call, field, value.as_bytes())?;
        call.notify(Classes::HASH, "hincrbyfloat", place);
        call.reply.bulk(value.as_bytes());
        Ok(())
    });
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
pub fn hscan(call: &mut Call<'_>) {
    call.answer(|call| {
        cursor(&call.args)?;
        let (place, args) = (call.place(1), call.args);
        let (hash, reply) = call.read_beside::<Hash>(place)?;
        let Some(hash) = hash else {
            reply_head(reply, 0, 0);
            return Ok(());
        };
        let options = ScanOptions::parse(&args)?;
        let scan = hash.scan(options.cursor, options.count);
        let pairs = scan.indexes.filter_map(|index| hash.scanned(index));
        let found: Vec<_> = pairs.filter(|(field, _)| options.wants(field)).collect();
        let items_each = if options.no_values { 1 } else { 2 };
        reply_head(reply, scan.next, items_each * found.len());
        for (field, value) in found {
            reply.bulk(field);
            if !options.no_values {
                reply.bulk(value);
            }
        }
        Ok(())
    });
}
