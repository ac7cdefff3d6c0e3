//! How a key is kept.
//!
//! For: the subcommands of `OBJECT`, `DEBUG OBJECT` and `MEMORY USAGE`. Argument 2 is the key.

use korum_protocol::command::{CommandId, CommandSpec};
use korum_protocol::resp::Args;

use super::rdb;
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR};
use crate::store::keyspace::seconds;
use crate::store::{Entry, StringRef, ValueRef};

/// Integers below this are shared in Redis, so that their count of references says "many".
const SHARED_INTEGERS: i64 = 10_000;

/// Bytes of a dump that are not the value: its type, the version, the checksum.
const DUMP_FRAME_BYTES: usize = 11;

/// What `OBJECT HELP` lists.
pub const OBJECT_HELP: &[&str] = &[
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>.",
    "FREQ <key>",
    "    Return the access frequency index of the <key>. The returned integer is",
    "    proportional to the logarithm of the recent access frequency of the key.",
    "IDLETIME <key>",
    "    Return the idle time of the <key>, that is the approximated number of",
    "    seconds elapsed since the last access to the key.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>.",
];

/// The entry of argument 2, or a null answer.
fn object<'c>(call: &'c mut Call<'_>) -> Option<&'c Entry> {
    let place = call.place(2);
    if call.look(place).is_none() {
        call.reply.null();
    }
    // What was expired is gone by now, or hidden.
    call.keyspace.peek(place.key, call.now_ms)
}

/// `OBJECT ENCODING key`
pub fn object_encoding(call: &mut Call<'_>) {
    if let Some(encoding) = object(call).map(|entry| entry.value().encoding()) {
        call.reply.bulk(encoding.as_bytes());
    }
}

/// `OBJECT REFCOUNT key`
pub fn object_refcount(call: &mut Call<'_>) {
    if let Some(count) = object(call).map(|entry| references(entry.value())) {
        call.reply.integer(count);
    }
}

fn references(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::String(StringRef::Integer(0..SHARED_INTEGERS)) => i64::from(i32::MAX),
        _ => 1,
    }
}

/// `OBJECT IDLETIME key`: seconds since the last access.
pub fn object_idletime(call: &mut Call<'_>) {
    let now = seconds(call.now_ms);
    if let Some(access) = object(call).map(Entry::access) {
        call.reply.integer(i64::from(now.saturating_sub(access)));
    }
}

/// `OBJECT FREQ key`: an error, while no eviction policy counts accesses.
pub fn object_freq(call: &mut Call<'_>) {
    if object(call).is_some() {
        call.reply.error(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        );
    }
}

/// Is it `DEBUG OBJECT key`? Its key is none that the table of commands knows of.
#[must_use]
pub fn is_debug_object(spec: &CommandSpec, args: &Args<'_>) -> bool {
    spec.id == CommandId::Debug && args.len() == 3 && is(&args[1], "object")
}

/// `DEBUG OBJECT key`: what test suites read of it. Nothing has an address here.
pub fn debug_object(call: &mut Call<'_>) {
    let (place, now) = (call.place(2), seconds(call.now_ms));
    let Some(entry) = call.keyspace.peek(place.key, call.now_ms) else {
        return call.reply.error("ERR no such key");
    };
    let references = references(entry.value());
    let line = format!(
        "Value at:0x0 refcount:{references} encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
        entry.value().encoding(),
        rdb::dump(entry.value()).len() - DUMP_FRAME_BYTES,
        entry.access() & 0xFF_FFFF,
        now.saturating_sub(entry.access()),
    );
    call.reply.simple(&line);
}

/// `MEMORY USAGE key [SAMPLES count]`: an estimate; a string needs no samples.
pub fn memory_usage(call: &mut Call<'_>) {
    for at in (3..call.args.len()).step_by(2) {
        let Some(count) = call.args.get(at + 1).filter(|_| is(call.arg(at), "samples")) else {
            return call.reply.error(SYNTAX_ERROR);
        };
        match integer(count) {
            Ok(0..) => {}
            Ok(_) => return call.reply.error(SYNTAX_ERROR),
            Err(text) => return call.reply.error(&text),
        }
    }
    if let Some(bytes) = object(call).map(Entry::memory_bytes) {
        call.reply.integer(bytes as i64);
    }
}
