//! Replies become values of Lua, and values of Lua become replies, as Redis converts them.
//!
//! For: what a script gets from a command, and what its caller gets from the script.
//! Not here: running commands (`host`) and scripts (`vm`).
//!
//! ```text
//! reply           value                         value                                reply
//! integer         number                        number                               integer, cut off
//! bulk string     string                        string                               bulk string
//! array           table                         table                                array, up to the first nil
//! status, error   {ok = …}, {err = …}           {ok = …}, {err = …}                  status, error
//! null            false (nil in RESP3)          false, true (RESP3: booleans)        null, 1
//! map, set        {map = …}, {set = …}          {map = …}, {set = …}                 map, set
//! double, …       {double = …}, …               {double = …}, {big_number = …}, …    double, big number, …
//! ```

use korum_protocol::resp::{Reply, ReplyWriter};
use korum_protocol::rope::Mark;

use mlua::{Lua, Table, Value};

use super::format::general;

/// Bytes of the reply of a script.
pub const REPLY_BYTES_MAX: usize = 128 << 20;
/// How deep tables in a reply may stand in each other: Redis' stack ends at about as many.
const DEPTH_MAX: usize = 100;

/// Values of a reply between two questions whether to go on.
const VALUES: usize = 4096;

/// Why a value is no reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ended {
    TooLarge,
    Stopped,
}

/// A reply as a value. `is_resp3`: the script has asked for RESP3.
///
/// # Errors
/// When there is no memory for it.
pub fn to_lua(lua: &Lua, reply: &Reply, is_resp3: bool) -> mlua::Result<Value> {
    let text = |bytes: &[u8]| lua.create_string(bytes).map(Value::String);
    let field = |name: &str, value: Value| {
        let table = lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Simple(bytes) => field("ok", text(bytes)?),
        Reply::Error(bytes) => field("err", text(bytes)?),
        Reply::Integer(number) => Ok(Value::Number(*number as f64)),
        Reply::Bulk(bytes) => text(bytes),
        Reply::Null => Ok(if is_resp3 { Value::Nil } else { Value::Boolean(false) }),
        Reply::Array(values) | Reply::Push(values) => {
            let table = lua.create_table_with_capacity(values.len(), 0)?;
            for (at, value) in values.iter().enumerate() {
                table.raw_set(at + 1, to_lua(lua, value, is_resp3)?)?;
            }
            Ok(Value::Table(table))
        }
        Reply::Map(pairs) => {
            let table = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                table.raw_set(to_lua(lua, key, is_resp3)?, to_lua(lua, value, is_resp3)?)?;
            }
            field("map", Value::Table(table))
        }
        Reply::Set(values) => {
            let table = lua.create_table_with_capacity(0, values.len())?;
            for value in values {
                table.raw_set(to_lua(lua, value, is_resp3)?, true)?;
            }
            field("set", Value::Table(table))
        }
        Reply::Double(number) => field("double", Value::Number(*number)),
        Reply::Boolean(value) => Ok(Value::Boolean(*value)),
        Reply::BigNumber(digits) => field("big_number", text(digits)?),
        Reply::Verbatim { format, text: bytes } => {
            let table = lua.create_table_with_capacity(0, 2)?;
            table.raw_set("format", lua.create_string(format)?)?;
            table.raw_set("string", lua.create_string(bytes)?)?;
            field("verbatim_string", Value::Table(table))
        }
    }
}

/// The error reply of a command as a value.
///
/// # Errors
/// When there is no memory for it.
pub fn error(lua: &Lua, text: &str) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("err", text)?;
    Ok(Value::Table(table))
}

/// Writes the value of a script as its reply; an error instead, if that would be too large. Every so many values it is
/// asked whether it shall go on; if not, nothing is written.
pub fn reply(value: &Value, is_resp3: bool, goes_on: &mut dyn FnMut() -> bool, reply: &mut ReplyWriter<'_>) {
    let start = reply.mark();
    let mut form = Form { is_resp3, start, values: 0, goes_on };
    match write(value, &mut form, reply, 0) {
        Ok(()) => {}
        Err(Ended::TooLarge) => {
            reply.take_back(start);
            reply.error("ERR the reply of the script is too large");
        }
        Err(Ended::Stopped) => reply.take_back(start),
    }
}

/// What all of a reply is written by.
struct Form<'g> {
    is_resp3: bool,
    /// Where it begins.
    start: Mark,
    /// Values so far.
    values: usize,
    goes_on: &'g mut dyn FnMut() -> bool,
}

fn write(value: &Value, form: &mut Form<'_>, reply: &mut ReplyWriter<'_>, depth: usize) -> Result<(), Ended> {
    form.values += 1;
    if form.values.is_multiple_of(VALUES) && !(form.goes_on)() {
        return Err(Ended::Stopped);
    }
    match value {
        Value::String(text) => reply.bulk(&text.as_bytes()),
        Value::Integer(number) => reply.integer(*number),
        Value::Number(number) => reply.integer(cut(*number)),
        Value::Boolean(value) if form.is_resp3 => reply.boolean(*value),
        Value::Boolean(true) => reply.integer(1),
        Value::Table(_) if depth > DEPTH_MAX => reply.error("ERR reached lua stack limit"),
        Value::Table(table) => return write_table(table, form, reply, depth + 1),
        _ => reply.null(),
    }
    // One string may stand in it any number of times.
    if reply.written_since(form.start) > REPLY_BYTES_MAX { Err(Ended::TooLarge) } else { Ok(()) }
}

fn write_table(
    table: &Table,
    form: &mut Form<'_>,
    reply: &mut ReplyWriter<'_>,
    depth: usize,
) -> Result<(), Ended> {
    if reply.written_since(form.start) > REPLY_BYTES_MAX {
        return Err(Ended::TooLarge);
    }
    let get = |name: &str| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
    if let Value::String(text) = get("err") {
        reply.error_bytes(&text.as_bytes());
        return Ok(());
    }
    if let Value::String(text) = get("ok") {
        reply.simple(&text.to_string_lossy());
        return Ok(());
    }
    let double = match get("double") {
        Value::Number(number) => Some(number),
        Value::Integer(number) => Some(number as f64),
        _ => None,
    };
    if let Some(number) = double {
        reply.double(&general(number, 17));
        return Ok(());
    }
    if let Value::Table(map) = get("map") {
        reply.map(map.pairs::<Value, Value>().count());
        for pair in map.pairs::<Value, Value>() {
            let (key, value) = pair.map_err(|_| Ended::TooLarge)?;
            write(&key, form, reply, depth)?;
            write(&value, form, reply, depth)?;
        }
        return Ok(());
    }
    if let Value::Table(set) = get("set") {
        reply.set(set.pairs::<Value, Value>().count());
        for pair in set.pairs::<Value, Value>() {
            write(&pair.map_err(|_| Ended::TooLarge)?.0, form, reply, depth)?;
        }
        return Ok(());
    }
    if let Value::String(digits) = get("big_number") {
        reply.big_number(&digits.to_string_lossy());
        return Ok(());
    }
    if let Value::Table(verbatim) = get("verbatim_string") {
        let part = |name: &str| verbatim.raw_get::<mlua::LuaString>(name).ok();
        if let (Some(format), Some(text)) = (part("format"), part("string")) {
            let mut letters = format.to_string_lossy();
            letters.truncate(letters.floor_char_boundary(3));
            reply.verbatim(&format!("{letters:<3}"), &text.as_bytes());
            return Ok(());
        }
    }
    let element = |at: usize| table.raw_get::<Value>(at).unwrap_or(Value::Nil);
    let count = (1..).take_while(|&at| !element(at).is_nil()).count();
    reply.array(count);
    (1..=count).try_for_each(|at| write(&element(at), form, reply, depth))
}

/// A number as an integer, as C casts it: what does not fit is the least of all.
#[must_use]
pub fn cut(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}
