//! Streams.
//!
//! For: what the files of this family share: finding a stream, writing ids and entries, texts of errors.
//! Not here: how a stream is kept (`store::xstream`).
//! Next: `ids` reads ids; then the commands by topic, from `add` to `info`.

use std::borrow::Cow;
use std::io::Write;

use korum_protocol::resp::ReplyWriter;

use super::{Call, Stop};
use crate::store::keyspace::Place;
use crate::store::xstream::{Entry, Group, StreamChange, StreamId};
use crate::store::{Change, Classes, Collection, Stream};

mod add;
mod claim;
mod edit;
mod fixed;
mod group;
mod ids;
mod info;
mod pending;
mod range;
mod read;
#[cfg(test)]
mod tests;
mod trim;

pub use add::xadd;
pub use claim::{xautoclaim, xclaim};
pub use edit::{xdel, xsetid};
pub use fixed::fixed_request;
pub use group::{
    GROUP_HELP, xgroup_create, xgroup_createconsumer, xgroup_delconsumer, xgroup_destroy, xgroup_setid,
};
pub use info::{INFO_HELP, xinfo_consumers, xinfo_groups, xinfo_stream};
pub use pending::{xack, xpending};
pub use range::{xlen, xrange, xrevrange};
pub use read::{xread, xreadgroup};
pub use trim::xtrim;

/// The answer to a key that must be there.
const NO_SUCH_KEY: &str = "ERR no such key";

/// The stream of a key that was looked at before; this look counts no more.
fn again<'k>(call: &'k Call<'_>, place: Place<'_>) -> Option<&'k Stream> {
    call.keyspace.peek(place.key, call.now_ms).and_then(|entry| Stream::of(entry.value()))
}

/// As [`again`], for a group of it.
fn group_again<'k>(call: &'k Call<'_>, place: Place<'_>, name: &[u8]) -> Option<&'k Group> {
    again(call, place).and_then(|stream| stream.group(name))
}

/// Changes the stream of a key that was looked at before.
fn change(call: &mut Call<'_>, place: Place<'_>, change: StreamChange<'_>) {
    call.change(place, Change::Stream(change));
}

/// A consumer of a group that is there has asked for something, and has got it if `is_active`. Tells of a new one.
fn see(call: &mut Call<'_>, place: Place<'_>, group: &[u8], consumer: &[u8], is_active: bool) {
    let is_new = group_again(call, place, group).is_some_and(|group| group.consumer(consumer).is_none());
    let now_ms = call.now_ms;
    change(call, place, StreamChange::See { group, consumer, now_ms, is_active });
    if is_new {
        call.notify(Classes::STREAM, "xgroup-createconsumer", place);
    }
}

/// Writes an id as a bulk string.
fn reply_id(reply: &mut ReplyWriter<'_>, id: StreamId) {
    let mut text = [0; 41];
    let mut rest = &mut text[..];
    let is_written = write!(rest, "{id}").is_ok();
    debug_assert!(is_written, "two numbers of at most 20 digits");
    let left = rest.len();
    reply.bulk(&text[..text.len() - left]);
}

/// Writes an entry: its id, and its fields with their values.
fn reply_entry(reply: &mut ReplyWriter<'_>, entry: Entry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id);
    reply.array(2 * entry.len());
    for (name, value) in entry.fields() {
        reply.bulk(name);
        reply.bulk(value);
    }
}

/// Writes entries, `count` at most; 0: all.
fn reply_entries<'e>(
    reply: &mut ReplyWriter<'_>,
    entries: impl Iterator<Item = Entry<'e>> + Clone,
    count: usize,
) {
    let entries = entries.take(if count == 0 { usize::MAX } else { count });
    // Counting skips from entry to entry, which costs little beside writing them.
    reply.array(entries.clone().count());
    entries.for_each(|entry| reply_entry(reply, entry));
}

/// What an error quotes of an argument: as in Redis, up to a zero byte.
fn quoted(argument: &[u8]) -> Cow<'_, str> {
    let end = memchr::memchr(0, argument).unwrap_or(argument.len());
    String::from_utf8_lossy(&argument[..end])
}

/// The answer to a group that is not there.
fn no_group(key: &[u8], group: &[u8]) -> Stop {
    format!("NOGROUP No such key '{}' or consumer group '{}'", quoted(key), quoted(group)).into()
}

/// The answer to options of a subcommand that do not belong there.
fn unknown_subcommand(call: &Call<'_>, command: &str) -> Stop {
    let sub = call.arg(1);
    let sub = quoted(&sub[..sub.len().min(128)]);
    format!("ERR unknown subcommand or wrong number of arguments for '{sub}'. Try {command} HELP.").into()
}
