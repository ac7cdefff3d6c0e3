//! Values in the format of Redis' RDB files.
//!
//! For: the payloads of `DUMP` and `RESTORE`. Written are plain forms of version 10, which Redis 7.0 and later read;
//! read are all forms that Redis 7.0 and 7.2 write, and those before that they still read. A hash whose fields have
//! deadlines has the form of Redis 7.4, since no other keeps them.
//! Not here: the options of the commands (`dump`).
//! Next: `forms` goes through items, `stream` is about streams; `string`, `listpack` and `ziplist` are the parts.
//!
//! ```text
//! payload   = type 1 | value | version 2 (little-endian) | CRC-64 of all before 8 (little-endian)
//! scores    = (type 3) number | for each: member | 253 not a number, 254 infinite, 255 -infinite, or length and text
//!           | (type 5) number | for each: member | double 8 (little-endian)
//! deadlines = (type 24) earliest 8 (little-endian) | number | for each: deadline - earliest + 1, or 0 | field | value
//! ```

use korum_protocol::resp::number::float;

use super::crc64;
use crate::store::{
    Hash, HashChange, List, ListChange, Score, Set, SetChange, SortedSet, SortedSetChange, StringRef, Value,
    ValueRef,
};
use forms::Form;
use stream::StreamForm;
use string::{read, read_length, read_number, take, take_array, write, write_length};

mod forms;
pub mod functions;
mod listpack;
mod stream;
mod string;
#[cfg(test)]
mod tests;
mod ziplist;

/// What is written: the format of Redis 7.0.
const VERSION: u16 = 10;
/// What is written where fields have deadlines, and the newest that is read: the format of Redis 7.4.
const VERSION_MAX: u16 = 12;
const FOOTER_BYTES: usize = 10;
const TYPE_STRING: u8 = 0;
const TYPE_LIST: u8 = 1;
const TYPE_SET: u8 = 2;
const TYPE_SORTED_SET_TEXT: u8 = 3;
const TYPE_HASH: u8 = 4;
const TYPE_SORTED_SET: u8 = 5;
const TYPE_LIST_ZIPLIST: u8 = 10;
const TYPE_SET_INTEGERS: u8 = 11;
const TYPE_SORTED_SET_ZIPLIST: u8 = 12;
const TYPE_HASH_ZIPLIST: u8 = 13;
const TYPE_QUICKLIST: u8 = 14;
const TYPE_STREAM_1: u8 = 15;
const TYPE_HASH_LISTPACK: u8 = 16;
const TYPE_SORTED_SET_LISTPACK: u8 = 17;
const TYPE_QUICKLIST_2: u8 = 18;
const TYPE_STREAM_2: u8 = 19;
const TYPE_SET_LISTPACK: u8 = 20;
const TYPE_STREAM_3: u8 = 21;
const TYPE_HASH_DEADLINES: u8 = 24;

/// Why a payload is not restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RdbError {
    /// It is too short, from a newer version, or damaged.
    #[error("ERR DUMP payload version or checksum are wrong")]
    Footer,
    /// Its checksum is right, its content is not.
    #[error("ERR Bad data format")]
    Content,
}

/// The payload of a value.
#[must_use]
pub fn dump(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut version = VERSION;
    match value {
        ValueRef::String(string) => {
            out.push(TYPE_STRING);
            write(&mut out, string);
        }
        ValueRef::List(list) => {
            out.push(TYPE_LIST);
            write_length(&mut out, list.len() as u64);
            list.iter().for_each(|item| write(&mut out, StringRef::Bytes(item)));
        }
        ValueRef::Set(set) => {
            out.push(TYPE_SET);
            write_length(&mut out, set.len() as u64);
            set.iter().for_each(|member| write(&mut out, member));
        }
        ValueRef::SortedSet(set) => {
            out.push(TYPE_SORTED_SET);
            write_length(&mut out, set.len() as u64);
            for (member, score) in set.iter() {
                write(&mut out, StringRef::Bytes(member));
                out.extend_from_slice(&score.to_bytes());
            }
        }
        ValueRef::Stream(stream) => {
            out.push(TYPE_STREAM_2);
            stream::write_stream(&mut out, stream);
        }
        ValueRef::Hash(hash) if hash.next_deadline().is_some() => {
            version = VERSION_MAX;
            out.push(TYPE_HASH_DEADLINES);
            write_with_deadlines(&mut out, hash);
        }
        ValueRef::Hash(hash) => {
            out.push(TYPE_HASH);
            write_length(&mut out, hash.len() as u64);
            for (field, value) in hash.iter() {
                write(&mut out, StringRef::Bytes(field));
                write(&mut out, StringRef::Bytes(value));
            }
        }
    }
    finish(&mut out, version);
    out
}

/// Appends version and checksum.
fn finish(out: &mut Vec<u8>, version: u16) {
    out.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64::checksum(out);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// A payload without its footer.
fn checked(payload: &[u8]) -> Result<&[u8], RdbError> {
    let body = payload.len().checked_sub(FOOTER_BYTES).ok_or(RdbError::Footer)?;
    let footer = &payload[body..];
    if u16::from_le_bytes([footer[0], footer[1]]) > VERSION_MAX
        || crc64::checksum(&payload[..body + 2]).to_le_bytes() != footer[2..]
    {
        return Err(RdbError::Footer);
    }
    Ok(&payload[..body])
}

/// The value in a payload.
///
/// # Errors
/// When the payload is damaged, or its content is none that is known here.
pub fn restore(payload: &[u8]) -> Result<Value, RdbError> {
    let mut input = checked(payload)?;
    let value = match take(&mut input, 1)? {
        [TYPE_STRING] => ValueRef::string(&read(&mut input)?).to_value(),
        [TYPE_LIST] => list(Form::Plain(1), &mut input)?,
        [TYPE_LIST_ZIPLIST] => list(Form::Ziplist, &mut input)?,
        [TYPE_QUICKLIST] => list(Form::Quicklist, &mut input)?,
        [TYPE_QUICKLIST_2] => list(Form::Quicklist2, &mut input)?,
        [TYPE_SET] => set(Form::Plain(1), &mut input)?,
        [TYPE_SET_INTEGERS] => set(Form::Integers, &mut input)?,
        [TYPE_SET_LISTPACK] => set(Form::Listpack, &mut input)?,
        [TYPE_SORTED_SET] => sorted_set_plain(&mut input, read_double)?,
        [TYPE_SORTED_SET_TEXT] => sorted_set_plain(&mut input, read_double_text)?,
        [TYPE_SORTED_SET_ZIPLIST] => sorted_set(Form::Ziplist, &mut input)?,
        [TYPE_SORTED_SET_LISTPACK] => sorted_set(Form::Listpack, &mut input)?,
        [TYPE_STREAM_1] => stream::read_stream(StreamForm::First, &mut input)?,
        [TYPE_STREAM_2] => stream::read_stream(StreamForm::Second, &mut input)?,
        [TYPE_STREAM_3] => stream::read_stream(StreamForm::Third, &mut input)?,
        [TYPE_HASH] => hash(Form::Plain(2), &mut input)?,
        [TYPE_HASH_ZIPLIST] => hash(Form::Ziplist, &mut input)?,
        [TYPE_HASH_LISTPACK] => hash(Form::Listpack, &mut input)?,
        [TYPE_HASH_DEADLINES] => hash_with_deadlines(&mut input)?,
        _ => return Err(RdbError::Content),
    };
    if input.is_empty() { Ok(value) } else { Err(RdbError::Content) }
}

fn write_with_deadlines(out: &mut Vec<u8>, hash: &Hash) {
    let earliest = hash.iter().filter_map(|(field, _)| hash.deadline(field)).min().unwrap_or(0);
    out.extend_from_slice(&earliest.to_le_bytes());
    write_length(out, hash.len() as u64);
    for (field, value) in hash.iter() {
        write_length(out, hash.deadline(field).map_or(0, |deadline| deadline - earliest + 1));
        write(out, StringRef::Bytes(field));
        write(out, StringRef::Bytes(value));
    }
}

fn hash_with_deadlines(input: &mut &[u8]) -> Result<Value, RdbError> {
    let earliest = u64::from_le_bytes(take_array(input)?);
    let mut hash = Hash::default();
    for _ in 0..read_length(input)? {
        let deadline_ms = match read_number(input)? {
            0 => None,
            more => Some(earliest.checked_add(more - 1).ok_or(RdbError::Content)?),
        };
        let (field, value) = (read(input)?, read(input)?);
        if hash.get(&field).is_some() {
            return Err(RdbError::Content);
        }
        hash.apply(&HashChange::Set { field: &field, value: &value });
        hash.apply(&HashChange::Deadline { field: &field, deadline_ms });
    }
    if hash.is_empty() { Err(RdbError::Content) } else { Ok(Value::Hash(Box::new(hash))) }
}

fn list(form: Form, input: &mut &[u8]) -> Result<Value, RdbError> {
    let mut list = List::default();
    forms::each(form, input, |item| {
        list.apply(&ListChange::PushBack { item });
        Ok(())
    })?;
    if list.is_empty() { Err(RdbError::Content) } else { Ok(Value::List(Box::new(list))) }
}

fn set(form: Form, input: &mut &[u8]) -> Result<Value, RdbError> {
    let mut set = Set::default();
    forms::each(form, input, |member| {
        let is_new = !set.contains(member);
        set.apply(&SetChange::Add { member });
        if is_new { Ok(()) } else { Err(RdbError::Content) }
    })?;
    if set.is_empty() { Err(RdbError::Content) } else { Ok(Value::Set(Box::new(set))) }
}

/// Adds a member that is not there yet.
fn put_member(set: &mut SortedSet, member: &[u8], score: Option<f64>) -> Result<(), RdbError> {
    let score = score.and_then(Score::new).ok_or(RdbError::Content)?;
    if set.score(member).is_some() {
        return Err(RdbError::Content);
    }
    set.apply(&SortedSetChange::Put { member, score });
    Ok(())
}

fn sorted_set(form: Form, input: &mut &[u8]) -> Result<Value, RdbError> {
    let mut set = SortedSet::default();
    forms::each_pair(form, input, |member, score| put_member(&mut set, member, float(score)))?;
    if set.is_empty() { Err(RdbError::Content) } else { Ok(Value::SortedSet(Box::new(set))) }
}

fn sorted_set_plain(
    input: &mut &[u8],
    score: fn(&mut &[u8]) -> Result<Option<f64>, RdbError>,
) -> Result<Value, RdbError> {
    let mut set = SortedSet::default();
    for _ in 0..read_length(input)? {
        let member = read(input)?;
        put_member(&mut set, &member, score(input)?)?;
    }
    if set.is_empty() { Err(RdbError::Content) } else { Ok(Value::SortedSet(Box::new(set))) }
}

fn read_double(input: &mut &[u8]) -> Result<Option<f64>, RdbError> {
    Ok(Some(f64::from_le_bytes(take_array(input)?)))
}

fn read_double_text(input: &mut &[u8]) -> Result<Option<f64>, RdbError> {
    Ok(match take_array::<1>(input)? {
        [253] => None,
        [254] => Some(f64::INFINITY),
        [255] => Some(f64::NEG_INFINITY),
        [length] => float(take(input, length.into())?),
    })
}

fn hash(form: Form, input: &mut &[u8]) -> Result<Value, RdbError> {
    let mut hash = Hash::default();
    forms::each_pair(form, input, |field, value| {
        let is_new = hash.get(field).is_none();
        hash.apply(&HashChange::Set { field, value });
        if is_new { Ok(()) } else { Err(RdbError::Content) }
    })?;
    if hash.is_empty() { Err(RdbError::Content) } else { Ok(Value::Hash(Box::new(hash))) }
}
