//! Streams in the format.
//!
//! For: reading types 15, 19 and 21 (each one adds numbers), writing type 19, which Redis 7.0 and later read.
//! Not here: the listpacks that entries stand in (`listpack`).
//!
//! ```text
//! stream   = number | for each: string of 16 (first id, big-endian), string that holds a listpack
//!          | entries | last id | [19, 21: first id | greatest deleted id | entries added] | number | group …
//! group    = name | last id | [19, 21: entries read] | number | for each: id 16, time 8, deliveries
//!          | number | for each: name | seen 8 | [21: active 8] | number | id 16 …
//! listpack = entries | deleted | number | fields … | 0 | entry …
//! entry    = flags | ms and sequence above the first id | number | field value …  or, with flag 2: value …  | items before
//! id       = ms | sequence          numbers as lengths, times little-endian
//! ```

use korum_protocol::limits::BULK_BYTES_MAX;

use super::RdbError;
use super::listpack::{self, Writer};
use super::string::{Item, read, read_number, take_array, write, write_length};
use crate::store::xstream::{Deliveries, Fields, Group, Ids};
use crate::store::{Stream, StreamChange, StreamId, StringRef, Value};

/// Deleted entries stay in their listpack with this flag.
const FLAG_DELETED: i64 = 1;
/// The fields of an entry are those of its listpack.
const FLAG_SAME_FIELDS: i64 = 2;
/// Entries of one listpack when written.
const ENTRIES_MAX: usize = 100;
const UNKNOWN: u64 = u64::MAX;

/// The versions of the form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StreamForm {
    /// Type 15, of Redis 5.
    First,
    /// Type 19, of Redis 7.0.
    Second,
    /// Type 21, of Redis 7.2.
    Third,
}

/// Takes a stream.
///
/// # Errors
/// When it is not whole, or contradicts itself.
pub fn read_stream(form: StreamForm, input: &mut &[u8]) -> Result<Value, RdbError> {
    let (mut stream, mut room) = (Stream::default(), BULK_BYTES_MAX);
    for _ in 0..read_number(input)? {
        let first: [u8; 16] = (&*read(input)?).try_into().map_err(|_| RdbError::Content)?;
        read_entries(&mut stream, StreamId::from_bytes(first), &read(input)?, &mut room)?;
    }
    let (entries, last_id) = (read_number(input)?, read_id(input)?);
    if entries != stream.len() || last_id < stream.last_id() {
        return Err(RdbError::Content);
    }
    let (max_deleted, entries_added) = if form >= StreamForm::Second {
        let _first_id = read_id(input)?;
        (read_id(input)?, read_number(input)?)
    } else {
        (StreamId::MIN, entries)
    };
    stream.apply(&StreamChange::SetAccounts { last_id, max_deleted, entries_added });
    for _ in 0..read_number(input)? {
        read_group(form, &mut stream, input)?;
    }
    Ok(Value::Stream(Box::new(stream)))
}

fn read_id(input: &mut &[u8]) -> Result<StreamId, RdbError> {
    Ok(StreamId::new(read_number(input)?, read_number(input)?))
}

fn take_id(input: &mut &[u8]) -> Result<StreamId, RdbError> {
    take_array(input).map(StreamId::from_bytes)
}

/// The items of a listpack, one after the other.
struct Items<'a>(std::vec::IntoIter<Item<'a>>);

impl<'a> Items<'a> {
    fn next(&mut self) -> Result<Item<'a>, RdbError> {
        self.0.next().ok_or(RdbError::Content)
    }

    fn integer(&mut self) -> Result<i64, RdbError> {
        self.next()?.integer()
    }

    /// A number of items that are still to come.
    fn count(&mut self) -> Result<usize, RdbError> {
        let count = usize::try_from(self.integer()?).ok();
        count.filter(|count| *count <= self.0.len()).ok_or(RdbError::Content)
    }
}

/// Adds the entries of a listpack. Names of fields that entries share are written once and kept for each; `room` is
/// what all entries may take, bytes.
fn read_entries(
    stream: &mut Stream,
    first: StreamId,
    bytes: &[u8],
    room: &mut usize,
) -> Result<(), RdbError> {
    let mut items = Items(listpack::items(bytes)?.into_iter());
    let (count, deleted) = (items.count()?, items.count()?);
    let mut names = Vec::new();
    for _ in 0..items.count()? {
        names.push(items.next()?.text());
    }
    if items.integer()? != 0 {
        return Err(RdbError::Content);
    }
    for _ in 0..count.checked_add(deleted).ok_or(RdbError::Content)? {
        let flags = items.integer()?;
        let id = StreamId::new(
            first.ms.wrapping_add(items.integer()? as u64),
            first.seq.wrapping_add(items.integer()? as u64),
        );
        let mut fields = Vec::new();
        if flags & FLAG_SAME_FIELDS != 0 {
            for name in &names {
                fields.push(name.clone());
                fields.push(items.next()?.text());
            }
        } else {
            for _ in 0..items.count()? {
                fields.push(items.next()?.text());
                fields.push(items.next()?.text());
            }
        }
        items.integer()?;
        let taken = fields.iter().map(|item| item.len()).sum();
        *room = room.checked_sub(taken).ok_or(RdbError::Content)?;
        if flags & FLAG_DELETED == 0 {
            let bytes = Fields::encode(fields.iter().map(|item| &item[..]));
            let fields = Fields::from_bytes(&bytes).ok_or(RdbError::Content)?;
            if id <= stream.last_id() {
                return Err(RdbError::Content);
            }
            stream.apply(&StreamChange::Add { id, fields });
        }
    }
    if items.0.next().is_none() { Ok(()) } else { Err(RdbError::Content) }
}

fn read_group(form: StreamForm, stream: &mut Stream, input: &mut &[u8]) -> Result<(), RdbError> {
    let name = read(input)?;
    let group = &*name;
    let last_id = read_id(input)?;
    let entries_read = if form >= StreamForm::Second { read_number(input)? } else { UNKNOWN };
    let entries_read = Some(entries_read).filter(|read| *read != UNKNOWN);
    if stream.group(group).is_some() {
        return Err(RdbError::Content);
    }
    stream.apply(&StreamChange::SetGroup { group, last_id, entries_read });
    let mut pending = std::collections::HashMap::new();
    for _ in 0..read_number(input)? {
        let id = take_id(input)?;
        let time_ms = u64::from_le_bytes(take_array(input)?);
        if pending.insert(id, (time_ms, read_number(input)?)).is_some() {
            return Err(RdbError::Content);
        }
    }
    for _ in 0..read_number(input)? {
        let name = read(input)?;
        let consumer = &*name;
        if stream.group(group).is_some_and(|group| group.consumer(consumer).is_some()) {
            return Err(RdbError::Content);
        }
        let seen_ms = u64::from_le_bytes(take_array(input)?);
        if form >= StreamForm::Third {
            let active_ms = u64::from_le_bytes(take_array(input)?);
            if active_ms != UNKNOWN {
                stream.apply(&StreamChange::See { group, consumer, now_ms: active_ms, is_active: true });
            }
        }
        stream.apply(&StreamChange::See { group, consumer, now_ms: seen_ms, is_active: false });
        for _ in 0..read_number(input)? {
            let id = take_id(input)?;
            // Each is pending at one consumer only.
            let (time_ms, count) = pending.remove(&id).ok_or(RdbError::Content)?;
            let ids = [id.to_bytes()];
            let (ids, deliveries) = (Ids::new(&ids), Deliveries::Set(count));
            stream.apply(&StreamChange::Deliver { group, consumer, time_ms, deliveries, ids });
        }
    }
    if pending.is_empty() { Ok(()) } else { Err(RdbError::Content) }
}

/// Appends a stream.
pub fn write_stream(out: &mut Vec<u8>, stream: &Stream) {
    let entries: Vec<_> = stream.range(StreamId::MIN, StreamId::MAX).collect();
    let nodes = entries.chunks(ENTRIES_MAX);
    write_length(out, nodes.len() as u64);
    for node in nodes {
        let first = node[0].id;
        let mut pack = Writer::empty();
        [node.len() as i64, 0, 0, 0].into_iter().for_each(|number| pack.integer(number));
        for entry in node {
            pack.integer(0);
            pack.integer(entry.id.ms.wrapping_sub(first.ms) as i64);
            pack.integer(entry.id.seq.wrapping_sub(first.seq) as i64);
            pack.integer(entry.len() as i64);
            for (field, value) in entry.fields() {
                pack.bytes(field);
                pack.bytes(value);
            }
            pack.integer(2 * entry.len() as i64 + 4);
        }
        write_length(out, 16);
        out.extend_from_slice(&first.to_bytes());
        let pack = pack.finish();
        write_length(out, pack.len() as u64);
        out.extend_from_slice(&pack);
    }
    write_length(out, stream.len());
    for id in [stream.last_id(), stream.first_id(), stream.max_deleted()] {
        write_id(out, id);
    }
    write_length(out, stream.entries_added());
    write_length(out, stream.groups().len() as u64);
    for (name, group) in stream.groups() {
        write(out, StringRef::Bytes(name));
        write_group(out, group);
    }
}

fn write_id(out: &mut Vec<u8>, id: StreamId) {
    write_length(out, id.ms);
    write_length(out, id.seq);
}

fn write_group(out: &mut Vec<u8>, group: &Group) {
    write_id(out, group.last_id);
    write_length(out, group.entries_read.unwrap_or(UNKNOWN));
    write_length(out, group.pending().len() as u64);
    for (id, pending) in group.pending() {
        out.extend_from_slice(&id.to_bytes());
        out.extend_from_slice(&pending.delivered_ms.to_le_bytes());
        write_length(out, pending.count);
    }
    write_length(out, group.consumers().len() as u64);
    for (name, consumer) in group.consumers() {
        write(out, StringRef::Bytes(name));
        out.extend_from_slice(&consumer.seen_ms.to_le_bytes());
        write_length(out, consumer.pending().len() as u64);
        consumer.pending().for_each(|id| out.extend_from_slice(&id.to_bytes()));
    }
}
