//! `bit`: operations on the bits of numbers, as in Lua BitOp.
//!
//! For: numbers as 32 bits with a sign, whatever they are; the rest is a line each.

use mlua::{Lua, MultiValue, Table, Value};

use super::raise;

/// The functions.
pub fn functions(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let one = |name: &str, operation: fn(i32) -> i32| {
        table.raw_set(
            name,
            lua.create_function(move |lua, words: MultiValue| answer(lua, number(&words, 0).map(operation)))?,
        )
    };
    one("tobit", |x| x)?;
    one("bnot", |x| !x)?;
    one("bswap", i32::swap_bytes)?;
    let many = |name: &str, operation: fn(i32, i32) -> i32| {
        table.raw_set(
            name,
            lua.create_function(move |lua, words: MultiValue| {
                let first = number(&words, 0);
                let all = (1..words.len())
                    .try_fold(first, |sum, at| Some(Some(operation(sum?, number(&words, at)?))));
                answer(lua, all.flatten())
            })?,
        )
    };
    many("band", |x, y| x & y)?;
    many("bor", |x, y| x | y)?;
    many("bxor", |x, y| x ^ y)?;
    let shift = |name: &str, operation: fn(i32, u32) -> i32| {
        table.raw_set(
            name,
            lua.create_function(move |lua, words: MultiValue| {
                let (value, by) = (number(&words, 0), number(&words, 1));
                answer(lua, value.zip(by).map(|(value, by)| operation(value, by.cast_unsigned() & 31)))
            })?,
        )
    };
    shift("lshift", |x, n| (x.cast_unsigned() << n).cast_signed())?;
    shift("rshift", |x, n| (x.cast_unsigned() >> n).cast_signed())?;
    shift("arshift", |x, n| x >> n)?;
    shift("rol", i32::rotate_left)?;
    shift("ror", i32::rotate_right)?;
    table.raw_set(
        "tohex",
        lua.create_function(|lua, words: MultiValue| {
            let digits = if words.len() > 1 { number(&words, 1) } else { Some(8) };
            let Some((value, digits)) = number(&words, 0).zip(digits) else {
                return Err(raise::at(lua, NO_NUMBER));
            };
            let count = digits.unsigned_abs().min(8) as usize;
            let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
            lua.create_string(&text[8 - count..])
        })?,
    )?;
    Ok(table)
}

const NO_NUMBER: &str = "bad argument to a function of bit (number expected)";

fn answer(lua: &Lua, result: Option<i32>) -> mlua::Result<f64> {
    result.map(f64::from).ok_or_else(|| raise::at(lua, NO_NUMBER))
}

/// An argument, modulo 2^32, rounded to even: the low bits of a sum that leaves no room for a fraction.
fn number(words: &MultiValue, at: usize) -> Option<i32> {
    let number = match words.get(at)? {
        Value::Integer(number) => *number as f64,
        Value::Number(number) => *number,
        Value::String(text) => text.to_string_lossy().trim().parse().ok()?,
        _ => return None,
    };
    Some(((number + 6_755_399_441_055_744.0).to_bits() as u32).cast_signed())
}
