//! Giving pending entries to another consumer.
//!
//! For: `XCLAIM`, `XAUTOCLAIM`.

use bytes::BytesMut;
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::resp::ReplyWriter;

use super::{again, change, group_again, ids, no_group, quoted, reply_entry, reply_id, see};
use crate::command::args::is;
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::keyspace::Place;
use crate::store::xstream::{Deliveries, Ids, StreamChange, StreamId};
use crate::store::{Stream, integer};

/// How many entries `XAUTOCLAIM` looks at for each that it may return.
const ATTEMPTS_FACTOR: u64 = 10;

struct Claim {
    ids: Vec<StreamId>,
    min_idle_ms: i64,
    time_ms: u64,
    retry_count: Option<u64>,
    force: bool,
    just_id: bool,
    last_id: StreamId,
}

impl Claim {
    /// Reads what stands behind the consumer.
    fn parse(call: &Call<'_>) -> Result<Self, Stop> {
        let number = |text: &[u8], what: &str| {
            integer::parse(text).ok_or_else(|| Stop::from(format!("ERR Invalid {what} argument for XCLAIM")))
        };
        let now = call.now_ms as i64;
        let mut claim = Self {
            ids: Vec::new(),
            min_idle_ms: number(call.arg(4), "min-idle-time")?.max(0),
            time_ms: call.now_ms,
            retry_count: None,
            force: false,
            just_id: false,
            last_id: StreamId::MIN,
        };
        let (mut time, mut index) = (now, 5);
        while let Some(id) = call.args.get(index).and_then(|text| ids::strict(text, 0).ok()) {
            claim.ids.push(id);
            index += 1;
        }
        while let Some(option) = call.args.get(index) {
            index += 2;
            match call.args.get(index - 1) {
                _ if is(option, "force") => {
                    claim.force = true;
                    index -= 1;
                }
                _ if is(option, "justid") => {
                    claim.just_id = true;
                    index -= 1;
                }
                Some(text) if is(option, "idle") => time = now.wrapping_sub(number(text, "IDLE option")?),
                Some(text) if is(option, "time") => time = number(text, "TIME option")?,
                Some(text) if is(option, "retrycount") => {
                    claim.retry_count = u64::try_from(number(text, "RETRYCOUNT option")?).ok();
                }
                Some(text) if is(option, "lastid") => claim.last_id = ids::strict(text, 0)?,
                _ => return Err(format!("ERR Unrecognized XCLAIM option '{}'", quoted(option)).into()),
            }
        }
        // A time that cannot be is the present, since clocks of clients differ.
        claim.time_ms = u64::try_from(time).ok().filter(|time| *time <= call.now_ms).unwrap_or(call.now_ms);
        Ok(claim)
    }
}

/// `XCLAIM key group consumer min-idle-time id … [IDLE ms] [TIME unix-ms] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]`
pub fn xclaim(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, group, consumer) = (call.place(1), call.arg(2), call.arg(3));
        let key = call.arg(1);
        let found = call.read_collection::<Stream>(place)?.and_then(|stream| stream.group(group));
        let (last_id, entries_read) =
            found.map(|group| (group.last_id, group.entries_read)).ok_or_else(|| no_group(key, group))?;
        let claim = Claim::parse(call)?;
        if claim.last_id > last_id {
            change(call, place, StreamChange::SetGroup { group, last_id: claim.last_id, entries_read });
        }
        see(call, place, group, consumer, false);
        let (mut body, mut claimed) = (BytesMut::new(), 0);
        for &id in &claim.ids {
            // An id that is given again and again must not make an answer without bound.
            if body.len() > BULK_BYTES_MAX {
                break;
            }
            claimed += usize::from(claim_one(call, place, &claim, id, &mut body));
        }
        if claimed > 0 {
            see(call, place, group, consumer, true);
        }
        call.reply.array(claimed);
        call.reply.raw(&body);
        Ok(())
    });
}

/// Claims an entry if it may be claimed, and writes it; whether it was.
fn claim_one(
    call: &mut Call<'_>,
    place: Place<'_>,
    claim: &Claim,
    id: StreamId,
    body: &mut BytesMut,
) -> bool {
    let (group, consumer, now_ms) = (call.arg(2), call.arg(3), call.now_ms);
    let Some(stream) = again(call, place) else { return false };
    let pending = stream.group(group).and_then(|group| group.pending_entry(id));
    let (is_new, idle) =
        pending.map_or((true, i64::MAX), |pending| (false, now_ms.wrapping_sub(pending.delivered_ms) as i64));
    let bytes = [id.to_bytes()];
    let ids = Ids::new(&bytes);
    let Some(entry) = stream.get(id) else {
        // It was deleted, and nobody needs to acknowledge it any more.
        if !is_new {
            change(call, place, StreamChange::Acknowledge { group, ids });
        }
        return false;
    };
    if (is_new && !claim.force) || (!is_new && claim.min_idle_ms > 0 && idle < claim.min_idle_ms) {
        return false;
    }
    let reply = &mut ReplyWriter::new(body, call.reply.version());
    if claim.just_id {
        reply_id(reply, id)
    } else {
        reply_entry(reply, entry)
    }
    let deliveries = match claim.retry_count {
        Some(count) => Deliveries::Set(count),
        None if claim.just_id => Deliveries::Same,
        // In Redis it begins with one and is counted once more.
        None if is_new => Deliveries::Set(2),
        None => Deliveries::More,
    };
    let time_ms = claim.time_ms;
    change(call, place, StreamChange::Deliver { group, consumer, time_ms, deliveries, ids });
    true
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`
pub fn xautoclaim(call: &mut Call<'_>) {
    call.answer(|call| {
        let min_idle_ms =
            integer::parse(call.arg(4)).ok_or("ERR Invalid min-idle-time argument for XAUTOCLAIM")?;
        let start = ids::start(call.arg(5))?;
        let (mut count, mut just_id, mut index) = (100, false, 6);
        while let Some(option) = call.args.get(index) {
            match call.args.get(index + 1) {
                Some(number) if is(option, "count") => {
                    let most = i64::MAX / 16;
                    count = integer::parse(number)
                        .filter(|count| (1..=most).contains(count))
                        .ok_or("ERR COUNT must be > 0")?;
                    index += 2;
                }
                _ if is(option, "justid") => {
                    just_id = true;
                    index += 1;
                }
                _ => return Err(SYNTAX_ERROR.into()),
            }
        }
        let (place, key, group, consumer) = (call.place(1), call.arg(1), call.arg(2), call.arg(3));
        if call.read_collection::<Stream>(place)?.is_none_or(|stream| stream.group(group).is_none()) {
            return Err(no_group(key, group));
        }
        let found = idle_entries(call, place, start, min_idle_ms, count as u64);
        let now_ms = call.now_ms;
        let is_active = !found.claimed.is_empty();
        see(call, place, group, consumer, is_active);
        if !found.deleted.is_empty() {
            change(call, place, StreamChange::Acknowledge { group, ids: Ids::new(&found.deleted) });
        }
        if is_active {
            let deliveries = if just_id { Deliveries::Same } else { Deliveries::More };
            let ids = Ids::new(&found.claimed);
            change(call, place, StreamChange::Deliver { group, consumer, time_ms: now_ms, deliveries, ids });
        }
        reply_claimed(call, place, &found, just_id);
        Ok(())
    });
}

/// What `XAUTOCLAIM` came upon.
struct Found {
    claimed: Vec<[u8; 16]>,
    /// Pending, and not in the stream any more.
    deleted: Vec<[u8; 16]>,
    /// Where to go on; the least id at the end.
    next: StreamId,
}

fn idle_entries(call: &Call<'_>, place: Place<'_>, start: StreamId, min_idle_ms: i64, count: u64) -> Found {
    let mut found = Found { claimed: Vec::new(), deleted: Vec::new(), next: StreamId::MIN };
    let (Some(stream), Some(group)) = (again(call, place), group_again(call, place, call.arg(2))) else {
        return found;
    };
    let mut pending = group.pending_from(start);
    let (mut attempts, mut left) = (count.saturating_mul(ATTEMPTS_FACTOR), count);
    while attempts > 0 && left > 0 {
        attempts -= 1;
        let Some((id, entry)) = pending.next() else { break };
        if stream.get(id).is_none() {
            found.deleted.push(id.to_bytes());
            left -= 1;
        } else if min_idle_ms <= 0 || call.now_ms.wrapping_sub(entry.delivered_ms) as i64 >= min_idle_ms {
            found.claimed.push(id.to_bytes());
            left -= 1;
        }
    }
    found.next = pending.next().map_or(StreamId::MIN, |(id, _)| id);
    found
}

fn reply_claimed(call: &mut Call<'_>, place: Place<'_>, found: &Found, just_id: bool) {
    let entry = call.keyspace.peek(place.key, call.now_ms);
    let stream = entry.and_then(|entry| <Stream as crate::store::Collection>::of(entry.value()));
    let reply = &mut call.reply;
    reply.array(3);
    reply_id(reply, found.next);
    reply.array(found.claimed.len());
    for id in Ids::new(&found.claimed).iter() {
        match stream.and_then(|stream| stream.get(id)) {
            Some(entry) if !just_id => reply_entry(reply, entry),
            _ => reply_id(reply, id),
        }
    }
    reply.array(found.deleted.len());
    Ids::new(&found.deleted).iter().for_each(|id| reply_id(reply, id));
}
