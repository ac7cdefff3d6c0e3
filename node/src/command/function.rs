//! Functions: calling them on the partition of their keys, and their libraries under their own key.
//!
//! For: `KORUM FCALL`, `FCALL` as a part of a transaction; `KORUM LIBRARIES` and `KORUM CHANGE-LIBRARIES` on the
//! partition that keeps them; the replies of `FUNCTION LIST`, `STATS` and `DUMP`.
//! Not here: the interpreter (`script::vm`), where a function runs and who is told of a change (`dispatch::functions`).

use bytes::{Bytes, BytesMut};
use korum_protocol::command::glob;
use korum_protocol::id::Epoch;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::encode_header;
use korum_protocol::resp::{Args, ReplyWriter};
use rand::Rng;

use super::args::integer;
use super::key::rdb;
use super::unit::put_bulks;
use super::{Call, SYNTAX_ERROR};
use crate::env::Tick;
use crate::script::functions::Known;
use crate::script::library::{Change, FLAGS, Function, Libraries};
use crate::script::{Scripts, vm};
use crate::store::reserved::FUNCTIONS;
use crate::store::{StringValue, Value};

/// The answer to a function that is not there.
const NOT_FOUND: &str = "ERR Function not found";
const WRITES: &str = "ERR Can not execute a script with write flag using *_ro command.";
/// The answer of a keeper whose map is older than its asker's.
const TOO_EARLY: &str = "TRYAGAIN this node does not know the asker's map yet";
/// The only engine, as it is shown.
const ENGINE: &[u8] = b"LUA";

/// What `FUNCTION HELP` says.
pub const HELP: &[&str] = &[
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Create a new library with the given library name and code.",
    "DELETE <LIBRARY NAME>",
    "    Delete the given library.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return general information on all the libraries:",
    "    * Library name",
    "    * The engine used to run the Library",
    "    * Library description",
    "    * Functions list",
    "    * Library code (if WITHCODE is given)",
    "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
    "STATS",
    "    Return information about the current function running:",
    "    * Function name",
    "    * Command used to run the function",
    "    * Duration in MS that the function is running",
    "    If no function is running, return nil",
    "    In addition, returns a list of available engines.",
    "KILL",
    "    Kill the current running function.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all the libraries.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the libraries.",
    "    * SYNC: Synchronously flush the libraries.",
    "DUMP",
    "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
    "    control how to handle existing libraries (default APPEND):",
    "    * FLUSH: delete all existing libraries.",
    "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
    "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
    "      libraries with the new libraries (notice that even on this option there is a chance of failure",
    "      in case of functions name collision with another library).",
];

/// The number of keys in `FCALL function numkeys …`.
///
/// # Errors
/// With Redis' text if it is none, or more than there are arguments.
pub fn count_keys(args: &Args<'_>) -> Result<usize, &'static str> {
    let count = integer(&args[2]).map_err(|_| "ERR Bad number of keys provided")?;
    let count = usize::try_from(count).map_err(|_| "ERR Number of keys can't be negative")?;
    if count > args.len() - 3 {
        return Err("ERR Number of keys can't be greater than number of args");
    }
    Ok(count)
}

/// The request that calls a function on the partition of a slot: `KORUM FCALL slot function numkeys …`, whose last
/// arguments are those of `args` from the function's name on.
#[must_use]
pub fn call_request(slot: u16, args: &Args<'_>, reads_only: bool) -> Bytes {
    let slot = slot.to_string();
    let name: &[u8] = if reads_only { b"FCALL-RO" } else { b"FCALL" };
    let mut request = BytesMut::with_capacity(args.bytes() + 32 * args.len() + 64);
    encode_header(b'*', args.len() + 2, &mut request);
    put_bulks([b"KORUM", name, slot.as_bytes()].into_iter(), &mut request);
    put_bulks(args.tail(1).iter(), &mut request);
    request.freeze()
}

/// `KORUM FCALL slot function numkeys key … argument …`
pub fn fcall(call: &mut Call<'_>) {
    run_internal(call, false);
}

/// `KORUM FCALL-RO slot function numkeys key … argument …`
pub fn fcall_ro(call: &mut Call<'_>) {
    run_internal(call, true);
}

fn run_internal(call: &mut Call<'_>, reads_only: bool) {
    match std::str::from_utf8(&call.args[2]).ok().and_then(|slot| slot.parse().ok()) {
        // As in `FCALL function numkeys …`.
        Some(slot) => run(call, call.args.tail(2), Some(slot), reads_only),
        None => call.reply.error(SYNTAX_ERROR),
    }
}

/// `FCALL` and `FCALL_RO`, in a transaction or without keys.
pub fn nested(call: &mut Call<'_>, reads_only: bool) {
    run(call, call.args, None, reads_only);
}

/// `args`: those of `FCALL function numkeys …`. `slot`: of the keys, if it is known.
fn run(call: &mut Call<'_>, args: Args<'_>, slot: Option<u16>, reads_only: bool) {
    let known = call.scripts.functions.latest();
    let Some((kept, function)) = known.find(&args[1]) else { return call.reply.error(NOT_FOUND) };
    let count = match count_keys(&args) {
        Ok(count) => count,
        Err(text) => return call.reply.error(text),
    };
    if reads_only && !function.reads_only() {
        return call.reply.error(WRITES);
    }
    let (keys, arguments) = (args.part(3, 3 + count), args.tail(3 + count));
    let slot = slot.or_else(|| keys.get(0).map(slot_of));
    let command: &[u8] = if reads_only { b"FCALL_RO" } else { b"FCALL" };
    vm::call(call, &vm::FunctionCall { kept, function, command, words: args.tail(1), keys, arguments, slot });
}

/// The libraries as they are kept in a partition.
fn stored(call: &Call<'_>) -> Libraries {
    let entry = call.keyspace.peek(FUNCTIONS, call.now_ms);
    let string = entry.and_then(|entry| super::string_of(entry.value()).ok());
    string.and_then(|string| Libraries::decode(&string.bytes())).unwrap_or_default()
}

/// `KORUM LIBRARIES slot version epoch`: the libraries; null if the asker, whose map has this epoch, knows them.
pub fn libraries(call: &mut Call<'_>) {
    let number = |at: usize| std::str::from_utf8(&call.args[at]).ok()?.parse::<u64>().ok();
    let (Some(version), Some(epoch)) = (number(3), number(4)) else { return call.reply.error(SYNTAX_ERROR) };
    // So whoever changes the libraries later has a map in which the asker stands.
    if call.scripts.functions.epoch() < Epoch(epoch) {
        return call.reply.error(TOO_EARLY);
    }
    let libraries = stored(call);
    if libraries.version == version {
        call.reply.null();
    } else {
        call.reply.bulk(&libraries.encode());
    }
}

/// `KORUM CHANGE-LIBRARIES slot change`: the epoch of the map in which they were changed.
pub fn change(call: &mut Call<'_>) {
    let Some(change) = Change::decode(&call.args[3]) else { return call.reply.error(SYNTAX_ERROR) };
    // No two states have the same version; 0 is that of none.
    let version = call.random.next_u64().max(1);
    let changed = match stored(call).changed(change, version) {
        Ok(changed) => changed,
        Err(text) => return call.reply.error(&text),
    };
    let place = call.keyspace.place(FUNCTIONS);
    if !changed.list.is_empty() {
        let value = changed.encode();
        call.effects.set_held(place, value.clone(), None);
        let value = Value::String(StringValue::Bytes(value));
        call.keyspace.put_value(place, value, None, call.effects.garbage_mut());
    } else if call.keyspace.remove(place, call.effects.garbage_mut()) {
        call.effects.delete(place);
    }
    call.reply.integer(call.scripts.functions.epoch().0.cast_signed());
}

/// `FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]`
pub fn list(args: &Args<'_>, known: &Known, reply: &mut ReplyWriter<'_>) {
    let (mut pattern, mut has_code, mut at) = (None, false, 2);
    while let Some(word) = args.get(at) {
        if !has_code && word.eq_ignore_ascii_case(b"withcode") {
            has_code = true;
        } else if pattern.is_none() && word.eq_ignore_ascii_case(b"libraryname") {
            at += 1;
            let Some(given) = args.get(at) else {
                return reply.error("ERR library name argument was not given");
            };
            pattern = Some(given);
        } else {
            return reply.error(&format!("ERR Unknown argument {}", String::from_utf8_lossy(word)));
        }
        at += 1;
    }
    let is_asked = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches_in_any_case(pattern, name));
    let found: Vec<_> =
        known.libraries.iter().map(|kept| &kept.library).filter(|library| is_asked(&library.name)).collect();
    reply.array(found.len());
    for library in found {
        reply.map(3 + usize::from(has_code));
        reply.bulk(b"library_name");
        reply.bulk(&library.name);
        reply.bulk(b"engine");
        reply.bulk(ENGINE);
        reply.bulk(b"functions");
        reply.array(library.functions.len());
        library.functions.iter().for_each(|function| describe(function, reply));
        if has_code {
            reply.bulk(b"library_code");
            reply.bulk(&library.code);
        }
    }
}

fn describe(function: &Function, reply: &mut ReplyWriter<'_>) {
    reply.map(3);
    reply.bulk(b"name");
    reply.bulk(&function.name);
    reply.bulk(b"description");
    match &function.description {
        Some(description) => reply.bulk(description),
        None => reply.null(),
    }
    reply.bulk(b"flags");
    let has = |number: usize| function.flags & 1 << number != 0;
    let flags: Vec<&str> =
        (0..FLAGS.len()).filter(|&number| has(number)).map(|number| FLAGS[number]).collect();
    reply.set(flags.len());
    flags.into_iter().for_each(|flag| reply.simple(flag));
}

/// `FUNCTION STATS`: what runs here, and how many functions the cluster has.
pub fn stats(known: &Known, scripts: &Scripts, now: Tick, reply: &mut ReplyWriter<'_>) {
    reply.map(2);
    reply.bulk(b"running_script");
    match scripts.running_function() {
        Some(running) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(&running.name);
            reply.bulk(b"command");
            reply.array(running.command.len());
            running.command.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.integer(i64::try_from(now.since(running.since).as_millis()).unwrap_or(i64::MAX));
        }
        None => reply.null(),
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(ENGINE);
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(known.libraries.len() as i64);
    reply.bulk(b"functions_count");
    reply.integer(known.functions() as i64);
}

/// `FUNCTION DUMP`
pub fn dump(known: &Known, reply: &mut ReplyWriter<'_>) {
    let codes = known.libraries.iter().map(|kept| &kept.library.code[..]);
    reply.bulk(&rdb::functions::dump(codes));
}

#[cfg(test)]
#[path = "function_tests.rs"]
mod tests;
