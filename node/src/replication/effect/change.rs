//! A change inside a collection, as bytes.
//!
//! For: the effects of commands on a few items.
//! Not here: whole collections (`state`).
//!
//! ```text
//! change = kind of collection | what | its parts
//! hash   = 1 field value | 2 field                      set, delete
//! list   = 1 item | 2 item | 3 count | 4 count          push front, back, pop front, back
//!        | 5 index item | 6 index item                  set, insert
//!        | 7 item limit | 8 item limit                  remove equal ones, from the front, from the back
//! ```

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::codec::{put_bytes, put_varint, take_byte, take_bytes, take_length};
use crate::store::{Change, HashChange, Kind, ListChange};

const HASH_SET: u8 = 1;
const HASH_DELETE: u8 = 2;

const LIST_PUSH_FRONT: u8 = 1;
const LIST_PUSH_BACK: u8 = 2;
const LIST_POP_FRONT: u8 = 3;
const LIST_POP_BACK: u8 = 4;
const LIST_SET: u8 = 5;
const LIST_INSERT: u8 = 6;
const LIST_REMOVE_FROM_FRONT: u8 = 7;
const LIST_REMOVE_FROM_BACK: u8 = 8;

/// Appends a change.
pub(super) fn put(out: &mut BytesMut, change: &Change<'_>) {
    out.put_u8(change.kind() as u8);
    match *change {
        Change::Hash(HashChange::Set { field, value }) => {
            out.put_u8(HASH_SET);
            put_bytes(out, field);
            put_bytes(out, value);
        }
        Change::Hash(HashChange::Delete { field }) => {
            out.put_u8(HASH_DELETE);
            put_bytes(out, field);
        }
        Change::List(change) => put_list(out, &change),
    }
}

fn put_list(out: &mut BytesMut, change: &ListChange<'_>) {
    match *change {
        ListChange::PushFront { item } => {
            out.put_u8(LIST_PUSH_FRONT);
            put_bytes(out, item);
        }
        ListChange::PushBack { item } => {
            out.put_u8(LIST_PUSH_BACK);
            put_bytes(out, item);
        }
        ListChange::PopFront { count } => {
            out.put_u8(LIST_POP_FRONT);
            put_varint(out, count as u64);
        }
        ListChange::PopBack { count } => {
            out.put_u8(LIST_POP_BACK);
            put_varint(out, count as u64);
        }
        ListChange::Set { index, item } => {
            out.put_u8(LIST_SET);
            put_varint(out, index as u64);
            put_bytes(out, item);
        }
        ListChange::Insert { index, item } => {
            out.put_u8(LIST_INSERT);
            put_varint(out, index as u64);
            put_bytes(out, item);
        }
        ListChange::RemoveEqual { item, limit, from_back } => {
            out.put_u8(if from_back { LIST_REMOVE_FROM_BACK } else { LIST_REMOVE_FROM_FRONT });
            put_bytes(out, item);
            put_varint(out, limit as u64);
        }
    }
}

/// Takes a change from the front of `input`.
pub(super) fn take<'a>(input: &mut &'a [u8]) -> Result<Change<'a>, EffectError> {
    let kind = take_byte(input)?;
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind).ok_or(EffectError::Malformed)?;
    let what = take_byte(input)?;
    match kind {
        Kind::Hash => take_hash(what, input).map(Change::Hash),
        Kind::List => take_list(what, input).map(Change::List),
    }
}

fn take_hash<'a>(what: u8, input: &mut &'a [u8]) -> Result<HashChange<'a>, EffectError> {
    let field = take_bytes(input)?;
    match what {
        HASH_SET => Ok(HashChange::Set { field, value: take_bytes(input)? }),
        HASH_DELETE => Ok(HashChange::Delete { field }),
        _ => Err(EffectError::Malformed),
    }
}

fn take_list<'a>(what: u8, input: &mut &'a [u8]) -> Result<ListChange<'a>, EffectError> {
    Ok(match what {
        LIST_PUSH_FRONT => ListChange::PushFront { item: take_bytes(input)? },
        LIST_PUSH_BACK => ListChange::PushBack { item: take_bytes(input)? },
        LIST_POP_FRONT => ListChange::PopFront { count: take_length(input)? },
        LIST_POP_BACK => ListChange::PopBack { count: take_length(input)? },
        LIST_SET => ListChange::Set { index: take_length(input)?, item: take_bytes(input)? },
        LIST_INSERT => ListChange::Insert { index: take_length(input)?, item: take_bytes(input)? },
        LIST_REMOVE_FROM_FRONT | LIST_REMOVE_FROM_BACK => {
            let item = take_bytes(input)?;
            let from_back = what == LIST_REMOVE_FROM_BACK;
            ListChange::RemoveEqual { item, limit: take_length(input)?, from_back }
        }
        _ => return Err(EffectError::Malformed),
    })
}
