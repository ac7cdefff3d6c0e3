//! Reading several streams, for oneself or for a group.
//!
//! For: `XREAD`, `XREADGROUP`.
//! Not here: one range of one stream (`range`).

use bytes::BytesMut;
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};

use super::{again, change, ids, quoted, reply_entries, reply_entry, reply_id, see};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::keyspace::Place;
use crate::store::xstream::{Deliveries, Ids, StreamChange, StreamId};
use crate::store::{Stream, integer as text};

/// What is read of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Start {
    /// What comes after this id; for a group, of what is pending at the consumer.
    After(StreamId),
    /// What was given to nobody of the group yet.
    New,
}

/// What such a command asks for.
pub(super) struct Request<'a> {
    /// Most entries of each stream; 0: all.
    count: usize,
    /// Group and consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    no_ack: bool,
    /// Where the keys begin; as many ids follow them.
    pub(super) first: usize,
    pub(super) streams: usize,
}

impl<'a> Request<'a> {
    pub(super) fn parse(args: &Args<'a>, is_group: bool) -> Result<Self, Stop> {
        let mut request = Self { count: 0, group: None, no_ack: false, first: 0, streams: 0 };
        let only_group = |option: &str| {
            let text =
                format!("ERR The {option} option is only supported by XREADGROUP. You called XREAD instead.");
            if is_group { Ok(()) } else { Err(Stop::from(text)) }
        };
        let mut index = 1;
        while let Some(option) = args.get(index) {
            index += 2;
            match (args.get(index - 1), args.get(index)) {
                (Some(timeout), _) if is(option, "block") => {
                    let timeout =
                        text::parse(timeout).ok_or("ERR timeout is not an integer or out of range")?;
                    if timeout < 0 {
                        return Err("ERR timeout is negative".into());
                    }
                }
                (Some(count), _) if is(option, "count") => {
                    request.count = usize::try_from(integer(count)?.max(0)).unwrap_or(usize::MAX);
                }
                (Some(_), _) if is(option, "streams") => {
                    request.first = index - 1;
                    break;
                }
                (Some(group), Some(consumer)) if is(option, "group") => {
                    only_group("GROUP")?;
                    request.group = Some((group, consumer));
                    index += 1;
                }
                _ if is(option, "noack") => {
                    only_group("NOACK")?;
                    request.no_ack = true;
                    index -= 1;
                }
                _ => return Err(SYNTAX_ERROR.into()),
            }
        }
        if request.first == 0 {
            return Err(SYNTAX_ERROR.into());
        }
        let listed = args.len() - request.first;
        request.streams = listed / 2;
        if !listed.is_multiple_of(2) {
            return Err(
                "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified."
                    .into(),
            );
        }
        if is_group && request.group.is_none() {
            return Err("ERR Missing GROUP option for XREADGROUP".into());
        }
        Ok(request)
    }

    /// Looks at all streams before anything is done, and gives what is to be read of each.
    fn places(&self, call: &mut Call<'a>) -> Result<Vec<(Place<'a>, Start)>, Stop> {
        let mut places = Vec::with_capacity(self.streams);
        for index in self.first..self.first + self.streams {
            let (place, id) = (call.place(index), call.arg(index + self.streams));
            let stream = call.read_collection::<Stream>(place)?;
            if let Some((group, _)) = self.group
                && stream.is_none_or(|stream| stream.group(group).is_none())
            {
                return Err(format!(
                    "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option",
                    quoted(place.name()),
                    quoted(group)
                )
                .into());
            }
            let top = stream.map_or(StreamId::MIN, Stream::last_id);
            places.push((place, self.start(id, top)?));
        }
        Ok(places)
    }

    fn start(&self, id: &[u8], top: StreamId) -> Result<Start, Stop> {
        match (id, self.group.is_some()) {
            (b"$", false) => Ok(Start::After(top)),
            (b"$", true) => Err("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the \
                                 history of this consumer by specifying a proper ID, or use the > ID to get new \
                                 messages. The $ ID would just return an empty result set."
                .into()),
            (b">", true) => Ok(Start::New),
            (b">", false) => Err("ERR The > ID can be specified only when calling XREADGROUP using the GROUP \
                                  <group> <consumer> option."
                .into()),
            (text, true) => Ok(match ids::strict(text, 0)? {
                // Redis' own way to write it.
                StreamId::MAX => Start::New,
                id => Start::After(id),
            }),
            (text, false) => Ok(Start::After(ids::strict(text, 0)?)),
        }
    }
}

/// The answer, as it is written: streams that have something.
struct Answer {
    body: BytesMut,
    streams: usize,
    version: ProtocolVersion,
}

impl Answer {
    fn new(version: ProtocolVersion) -> Self {
        Self { body: BytesMut::new(), streams: 0, version }
    }

    /// Whether it is so large that other streams have to wait for the next call: the same one may be listed again
    /// and again.
    fn is_full(&self) -> bool {
        self.body.len() > BULK_BYTES_MAX
    }

    /// Opens the part of a stream: its entries are to be written next.
    fn open(&mut self, key: &[u8]) -> ReplyWriter<'_> {
        self.streams += 1;
        let mut reply = ReplyWriter::new(&mut self.body, self.version);
        if self.version == ProtocolVersion::Resp2 {
            reply.array(2);
        }
        reply.bulk(key);
        reply
    }

    fn finish(self, reply: &mut ReplyWriter<'_>) {
        match (self.streams, self.version) {
            (0, _) => reply.null_array(),
            (streams, ProtocolVersion::Resp2) => reply.array(streams),
            (streams, ProtocolVersion::Resp3) => reply.map(streams),
        }
        reply.raw(&self.body);
    }
}

/// `XREAD [COUNT count] [BLOCK ms] STREAMS key … id …`
pub fn xread(call: &mut Call<'_>) {
    call.answer(|call| {
        let request = Request::parse(&call.args, false)?;
        let mut answer = Answer::new(call.reply.version());
        for (place, from) in request.places(call)? {
            let (Start::After(after), false) = (from, answer.is_full()) else { continue };
            let Some(stream) = again(call, place).filter(|stream| stream.top_id() > after) else { continue };
            let start = after.next().unwrap_or(StreamId::MAX);
            reply_entries(&mut answer.open(place.name()), stream.range(start, StreamId::MAX), request.count);
        }
        answer.finish(&mut call.reply);
        Ok(())
    });
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK ms] [NOACK] STREAMS key … id …`
pub fn xreadgroup(call: &mut Call<'_>) {
    call.answer(|call| {
        let request = Request::parse(&call.args, true)?;
        let mut answer = Answer::new(call.reply.version());
        for (place, from) in request.places(call)? {
            if answer.is_full() {
                break;
            }
            match from {
                Start::New => read_new(call, place, &request, &mut answer),
                Start::After(after) => read_history(call, place, &request, after, &mut answer),
            }
        }
        answer.finish(&mut call.reply);
        Ok(())
    });
}

/// Gives what nobody of the group has got yet to the consumer.
fn read_new(call: &mut Call<'_>, place: Place<'_>, request: &Request<'_>, answer: &mut Answer) {
    let Some((name, consumer)) = request.group else { return };
    let Some(stream) = again(call, place) else { return };
    let Some(group) = stream.group(name) else { return };
    let (mut last_id, mut entries_read) = (group.last_id, group.entries_read);
    let mut given = Vec::new();
    if let Some(start) = last_id.next().filter(|start| *start <= stream.top_id()) {
        let entries = stream.range(start, StreamId::MAX);
        let most = if request.count == 0 { usize::MAX } else { request.count };
        for entry in entries.clone().take(most) {
            entries_read = match entries_read {
                Some(read) if !stream.has_gaps_from(entry.id) => Some(read.wrapping_add(1)),
                _ if stream.entries_added() > 0 => stream.entries_until(entry.id),
                read => read,
            };
            last_id = entry.id;
            given.push(entry.id.to_bytes());
        }
        reply_entries(&mut answer.open(place.name()), entries, request.count);
    }
    let now_ms = call.now_ms;
    let is_active = !given.is_empty() && !request.no_ack;
    see(call, place, name, consumer, is_active);
    if !given.is_empty() {
        change(call, place, StreamChange::SetGroup { group: name, last_id, entries_read });
    }
    if is_active {
        let (ids, deliveries) = (Ids::new(&given), Deliveries::Set(1));
        change(
            call,
            place,
            StreamChange::Deliver { group: name, consumer, time_ms: now_ms, deliveries, ids },
        );
    }
}

/// Gives what is pending at the consumer to it once more.
fn read_history(
    call: &mut Call<'_>,
    place: Place<'_>,
    request: &Request<'_>,
    after: StreamId,
    answer: &mut Answer,
) {
    let Some((name, consumer)) = request.group else { return };
    let Some(stream) = again(call, place) else { return };
    let found = stream.group(name).and_then(|group| group.consumer(consumer));
    let most = if request.count == 0 { usize::MAX } else { request.count };
    let start = after.next().unwrap_or(StreamId::MAX);
    let pending: Vec<_> =
        found.into_iter().flat_map(|consumer| consumer.pending_from(start)).take(most).collect();
    let mut reply = answer.open(place.name());
    reply.array(pending.len());
    let mut given = Vec::new();
    for id in pending {
        match stream.get(id) {
            Some(entry) => {
                reply_entry(&mut reply, entry);
                given.push(id.to_bytes());
            }
            // It was deleted.
            None => {
                reply.array(2);
                reply_id(&mut reply, id);
                reply.null_array();
            }
        }
    }
    let now_ms = call.now_ms;
    see(call, place, name, consumer, false);
    if !given.is_empty() {
        let (ids, deliveries) = (Ids::new(&given), Deliveries::More);
        change(
            call,
            place,
            StreamChange::Deliver { group: name, consumer, time_ms: now_ms, deliveries, ids },
        );
    }
}
