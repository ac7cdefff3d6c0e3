//! Counters.

use super::float::{LongDouble, NOT_A_FLOAT};
use crate::command::args::{NOT_AN_INTEGER, integer};
use crate::command::{Call, Stop, string_of};
use crate::store::{Classes, StringRef, ValueRef};

/// `INCR key`
pub fn incr(call: &mut Call<'_>) {
    call.answer(|call| add(call, 1));
}

/// `DECR key`
pub fn decr(call: &mut Call<'_>) {
    call.answer(|call| add(call, -1));
}

/// `INCRBY key increment`
pub fn incrby(call: &mut Call<'_>) {
    call.answer(|call| add(call, integer(call.arg(2))?));
}

/// `DECRBY key decrement`
pub fn decrby(call: &mut Call<'_>) {
    call.answer(|call| {
        let decrement = integer(call.arg(2))?;
        // The lowest integer has no counterpart.
        let increment = decrement.checked_neg().ok_or("ERR decrement would overflow")?;
        add(call, increment)
    });
}

fn add(call: &mut Call<'_>, increment: i64) -> Result<(), Stop> {
    let place = call.place(1);
    let (old, deadline) = match call.read(place) {
        None => (0, None),
        Some(entry) => {
            let number = string_of(entry.value())?.integer().ok_or(NOT_AN_INTEGER)?;
            (number, entry.deadline_ms())
        }
    };
    let new = old.checked_add(increment).ok_or("ERR increment or decrement would overflow")?;
    call.put(place, ValueRef::String(StringRef::Integer(new)), deadline);
    call.notify(Classes::STRING, "incrby", place);
    call.reply.integer(new);
    Ok(())
}

/// `INCRBYFLOAT key increment`: in Redis' long double, digit for digit.
pub fn incrbyfloat(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let parse = |text: &[u8]| LongDouble::parse(text).ok_or(NOT_A_FLOAT);
        let (old, deadline) = match call.read(place) {
            None => (LongDouble::ZERO, None),
            Some(entry) => (parse(&string_of(entry.value())?.bytes())?, entry.deadline_ms()),
        };
        let new = old.plus(parse(call.arg(2))?).ok_or("ERR increment would produce NaN or Infinity")?;
        let text = new.to_text();
        // Redis keeps the text, even where it spells an integer.
        call.put(place, ValueRef::String(StringRef::Bytes(text.as_bytes())), deadline);
        call.notify(Classes::STRING, "incrbyfloat", place);
        call.reply.bulk(text.as_bytes());
        Ok(())
    });
}
