//! What was delivered and not acknowledged.
//!
//! For: `XPENDING`, `XACK`.

use std::iter;

use korum_protocol::resp::ReplyWriter;

use super::{change, group_again, ids, no_group, reply_id};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::Stream;
use crate::store::xstream::{Group, Ids, Pending, StreamChange, StreamId};

/// `XACK key group id …`
pub fn xack(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, group) = (call.place(1), call.arg(2));
        if call.read_collection::<Stream>(place)?.is_none_or(|stream| stream.group(group).is_none()) {
            call.reply.integer(0);
            return Ok(());
        }
        let ids = call.args.iter().skip(3).map(|text| ids::strict(text, 0)).collect::<Result<Vec<_>, _>>()?;
        let mut pending: Vec<_> = match group_again(call, place, group) {
            Some(group) => ids.into_iter().filter(|id| group.pending_entry(*id).is_some()).collect(),
            None => Vec::new(),
        };
        pending.sort_unstable();
        pending.dedup();
        let bytes: Vec<_> = pending.into_iter().map(StreamId::to_bytes).collect();
        if !bytes.is_empty() {
            change(call, place, StreamChange::Acknowledge { group, ids: Ids::new(&bytes) });
        }
        call.reply.integer(bytes.len() as i64);
        Ok(())
    });
}

/// Which pending entries are asked for.
struct Wanted<'a> {
    start: StreamId,
    end: StreamId,
    count: usize,
    idle_ms: i64,
    consumer: Option<&'a [u8]>,
}

impl<'a> Wanted<'a> {
    fn parse(call: &Call<'a>) -> Result<Self, Stop> {
        let (mut first, mut idle_ms) = (3, 0);
        if is(call.arg(3), "idle") {
            idle_ms = integer(call.arg(4))?;
            if call.args.len() < 8 {
                return Err(SYNTAX_ERROR.into());
            }
            first = 5;
        }
        let count = integer(call.arg(first + 2))?;
        Ok(Self {
            count: usize::try_from(count.max(0)).unwrap_or(usize::MAX),
            start: ids::start(call.arg(first))?,
            end: ids::end(call.arg(first + 1))?,
            idle_ms,
            consumer: call.args.get(first + 3),
        })
    }
}

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`
pub fn xpending(call: &mut Call<'_>) {
    call.answer(|call| {
        let wanted = match call.args.len() {
            3 => None,
            6..=9 => Some(Wanted::parse(call)?),
            _ => return Err(SYNTAX_ERROR.into()),
        };
        let (place, key, name, now_ms) = (call.place(1), call.arg(1), call.arg(2), call.now_ms);
        let (stream, reply) = call.read_beside::<Stream>(place)?;
        let group = stream.and_then(|stream| stream.group(name)).ok_or_else(|| no_group(key, name))?;
        match wanted {
            None => summary(reply, group),
            Some(wanted) => list(reply, group, &wanted, now_ms),
        }
        Ok(())
    });
}

fn summary(reply: &mut ReplyWriter<'_>, group: &Group) {
    let mut pending = group.pending();
    reply.array(4);
    reply.integer(pending.len() as i64);
    let Some((first, _)) = pending.next() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    let last = pending.next_back().map_or(first, |(last, _)| last);
    reply_id(reply, first);
    reply_id(reply, last);
    let busy = || group.consumers().filter(|(_, consumer)| consumer.pending().len() > 0);
    reply.array(busy().count());
    for (name, consumer) in busy() {
        reply.array(2);
        reply.bulk(name);
        reply.bulk_integer(consumer.pending().len() as i64);
    }
}

fn list(reply: &mut ReplyWriter<'_>, group: &Group, wanted: &Wanted<'_>, now_ms: u64) {
    let idle = |pending: &Pending| now_ms.wrapping_sub(pending.delivered_ms) as i64;
    let of_group = wanted.consumer.is_none().then(|| group.pending_from(wanted.start));
    let of_consumer = wanted.consumer.and_then(|name| group.consumer(name)).map(move |consumer| {
        consumer.pending_from(wanted.start).filter_map(move |id| Some((id, group.pending_entry(id)?)))
    });
    let found = iter::empty()
        .chain(of_group.into_iter().flatten())
        .chain(of_consumer.into_iter().flatten())
        .take_while(|(id, _)| *id <= wanted.end)
        .filter(|(_, pending)| wanted.idle_ms == 0 || idle(pending) >= wanted.idle_ms)
        .take(wanted.count);
    reply.array(found.clone().count());
    for (id, pending) in found {
        reply.array(4);
        reply_id(reply, id);
        reply.bulk(&pending.consumer);
        reply.integer(idle(pending).max(0));
        reply.integer(pending.count as i64);
    }
}
