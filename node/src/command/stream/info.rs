//! Looking inside a stream.
//!
//! For: the subcommands of `XINFO`. Argument 2 is the key.

use korum_protocol::resp::ReplyWriter;

use super::{NO_SUCH_KEY, quoted, reply_entries, reply_entry, reply_id, unknown_subcommand};
use crate::command::Call;
use crate::command::args::{integer, is};
use crate::store::Stream;
use crate::store::xstream::{Consumer, Entry, Group, ID_BYTES, StreamId};

/// What `XINFO HELP` lists.
pub const INFO_HELP: &[&str] = &[
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
];

/// Entries that `XINFO STREAM FULL` shows of each kind.
const FULL_COUNT: usize = 10;

/// `XINFO STREAM key [FULL [COUNT count]]`
pub fn xinfo_stream(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, options) = (call.place(2), (call.args.len(), call.args.get(3), call.args.get(4)));
        // Redis looks for the key before it looks at the options.
        call.read_collection::<Stream>(place)?.ok_or(NO_SUCH_KEY)?;
        let full = match options {
            (3, ..) => None,
            (4, Some(full), _) if is(full, "full") => Some(FULL_COUNT),
            (6, Some(full), Some(count)) if is(full, "full") && is(count, "count") => {
                let count = integer(call.arg(5))?;
                Some(usize::try_from(count).unwrap_or(FULL_COUNT))
            }
            _ => return Err(unknown_subcommand(call, "XINFO")),
        };
        let entry = call.keyspace.peek(place.key, call.now_ms);
        let stream = entry.and_then(|entry| <Stream as crate::store::Collection>::of(entry.value()));
        let (stream, reply) = (stream.ok_or(NO_SUCH_KEY)?, &mut call.reply);
        reply.map(if full.is_some() { 9 } else { 10 });
        accounts(reply, stream);
        match full {
            None => ends(reply, stream),
            Some(count) => all(reply, stream, count),
        }
        Ok(())
    });
}

fn accounts(reply: &mut ReplyWriter<'_>, stream: &Stream) {
    number(reply, "length", stream.len());
    number(reply, "radix-tree-keys", stream.blocks() as u64);
    number(reply, "radix-tree-nodes", tree_nodes(stream.block_ids()) as u64);
    reply.bulk(b"last-generated-id");
    reply_id(reply, stream.last_id());
    reply.bulk(b"max-deleted-entry-id");
    reply_id(reply, stream.max_deleted());
    number(reply, "entries-added", stream.entries_added());
    reply.bulk(b"recorded-first-entry-id");
    reply_id(reply, stream.first_id());
}

fn ends(reply: &mut ReplyWriter<'_>, stream: &Stream) {
    number(reply, "groups", stream.groups().len() as u64);
    let mut end = |name: &str, entry: Option<Entry<'_>>| {
        reply.bulk(name.as_bytes());
        match entry {
            Some(entry) => reply_entry(reply, entry),
            None => reply.null(),
        }
    };
    end("first-entry", stream.range(StreamId::MIN, StreamId::MAX).next());
    end("last-entry", stream.range_back(StreamId::MIN, StreamId::MAX).next());
}

fn all(reply: &mut ReplyWriter<'_>, stream: &Stream, count: usize) {
    reply.bulk(b"entries");
    reply_entries(reply, stream.range(StreamId::MIN, StreamId::MAX), count);
    reply.bulk(b"groups");
    reply.array(stream.groups().len());
    let most = if count == 0 { usize::MAX } else { count };
    for (name, group) in stream.groups() {
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(name);
        progress(reply, stream, group);
        number(reply, "pel-count", group.pending().len() as u64);
        reply.bulk(b"pending");
        reply.array(group.pending().len().min(most));
        for (id, pending) in group.pending().take(most) {
            reply.array(4);
            reply_id(reply, id);
            reply.bulk(&pending.consumer);
            reply.integer(pending.delivered_ms as i64);
            reply.integer(pending.count as i64);
        }
        reply.bulk(b"consumers");
        reply.array(group.consumers().len());
        for (name, consumer) in group.consumers() {
            whole_consumer(reply, group, name, consumer, most);
        }
    }
}

fn whole_consumer(reply: &mut ReplyWriter<'_>, group: &Group, name: &[u8], consumer: &Consumer, most: usize) {
    reply.map(5);
    reply.bulk(b"name");
    reply.bulk(name);
    number(reply, "seen-time", consumer.seen_ms);
    reply.bulk(b"active-time");
    reply.integer(consumer.active_ms.map_or(-1, |ms| ms as i64));
    number(reply, "pel-count", consumer.pending().len() as u64);
    reply.bulk(b"pending");
    reply.array(consumer.pending().len().min(most));
    for (id, pending) in consumer.pending().take(most).filter_map(|id| Some((id, group.pending_entry(id)?))) {
        reply.array(3);
        reply_id(reply, id);
        reply.integer(pending.delivered_ms as i64);
        reply.integer(pending.count as i64);
    }
}

/// Where a group stands, and how far that is behind.
fn progress(reply: &mut ReplyWriter<'_>, stream: &Stream, group: &Group) {
    reply.bulk(b"last-delivered-id");
    reply_id(reply, group.last_id);
    reply.bulk(b"entries-read");
    match group.entries_read {
        Some(read) => reply.integer(read as i64),
        None => reply.null(),
    }
    reply.bulk(b"lag");
    match lag(stream, group) {
        Some(lag) => reply.integer(lag),
        None => reply.null(),
    }
}

/// How many entries were added that the group has not read, if that can be told.
fn lag(stream: &Stream, group: &Group) -> Option<i64> {
    let added = stream.entries_added();
    let read = match group.entries_read {
        _ if added == 0 => return Some(0),
        Some(read) if !stream.has_gaps_from(group.last_id) => read,
        _ => stream.entries_until(group.last_id)?,
    };
    Some(added.wrapping_sub(read) as i64)
}

fn number(reply: &mut ReplyWriter<'_>, name: &str, number: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(number as i64);
}

/// `XINFO GROUPS key`
pub fn xinfo_groups(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(2);
        let (stream, reply) = call.read_beside::<Stream>(place)?;
        let stream = stream.ok_or(NO_SUCH_KEY)?;
        reply.array(stream.groups().len());
        for (name, group) in stream.groups() {
            reply.map(6);
            reply.bulk(b"name");
            reply.bulk(name);
            number(reply, "consumers", group.consumers().len() as u64);
            number(reply, "pending", group.pending().len() as u64);
            progress(reply, stream, group);
        }
        Ok(())
    });
}

/// `XINFO CONSUMERS key group`
pub fn xinfo_consumers(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, key, name, now_ms) = (call.place(2), call.arg(2), call.arg(3), call.now_ms);
        let (stream, reply) = call.read_beside::<Stream>(place)?;
        let group = stream.ok_or(NO_SUCH_KEY)?.group(name).ok_or_else(|| {
            format!("NOGROUP No such consumer group '{}' for key name '{}'", quoted(name), quoted(key))
        })?;
        reply.array(group.consumers().len());
        for (name, consumer) in group.consumers() {
            let since = |ms: u64| now_ms.saturating_sub(ms);
            reply.map(4);
            reply.bulk(b"name");
            reply.bulk(name);
            number(reply, "pending", consumer.pending().len() as u64);
            number(reply, "idle", since(consumer.seen_ms));
            reply.bulk(b"inactive");
            reply.integer(consumer.active_ms.map_or(-1, |ms| since(ms) as i64));
        }
        Ok(())
    });
}

/// How many nodes a radix tree of these ids has, in which a chain of bytes without a branch is one node: what Redis
/// keeps its blocks in. Ids come in order.
fn tree_nodes(ids: impl Iterator<Item = StreamId>) -> usize {
    let chain = |from: usize, to: usize| usize::from(to > from);
    // Depths of the branches above the last id, each with its node counted when the tree has left it.
    let (mut nodes, mut open, mut before) = (0, Vec::<usize>::new(), None::<[u8; ID_BYTES]>);
    let mut left = None;
    for id in ids.map(StreamId::to_bytes) {
        if let Some(last) = before {
            let common = last.iter().zip(&id).take_while(|(one, other)| one == other).count();
            nodes += 1 + chain(left.map_or(common, |left: usize| left.max(common)) + 1, ID_BYTES);
            while let Some(depth) = open.pop_if(|depth| *depth > common) {
                let above = open.last().map_or(common, |above| common.max(*above));
                nodes += 1 + chain(above + 1, depth);
            }
            if open.last() != Some(&common) {
                open.push(common);
            }
            left = Some(common);
        }
        before = Some(id);
    }
    let Some(_) = before else { return 1 };
    nodes += 1 + left.map_or(chain(0, ID_BYTES), |left| chain(left + 1, ID_BYTES));
    while let Some(depth) = open.pop() {
        nodes += 1 + open.last().map_or(chain(0, depth), |above| chain(above + 1, depth));
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_the_tree_are_counted() {
        let nodes = |ids: &[(u64, u64)]| tree_nodes(ids.iter().map(|(ms, seq)| StreamId::new(*ms, *seq)));
        assert_eq!(nodes(&[]), 1);
        assert_eq!(nodes(&[(1, 1)]), 2);
        // A chain of 7 bytes, a branch, two chains of 8 bytes, two ends.
        assert_eq!(nodes(&[(1, 1), (2, 1)]), 6);
        // A chain of 15 bytes, a branch, three ends.
        assert_eq!(nodes(&[(1, 1), (1, 2), (1, 3)]), 5);
        // The chain, the branch, a chain of 7 bytes to another branch with two ends, a chain with an end.
        assert_eq!(nodes(&[(1, 1), (1, 2), (2, 1)]), 8);
    }
}
