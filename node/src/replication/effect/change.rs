//! A change inside a collection, as bytes.
//!
//! For: the effects of commands on a few items.
//! Not here: whole collections (`state`).
//!
//! ```text
//! change = kind of collection | what | its parts
//! hash   = 1 field value | 2 field | 3 field deadline | 4 field     set, delete, ends, does not end
//! list   = 1 item | 2 item | 3 count | 4 count          push front, back, pop front, back
//!        | 5 index item | 6 index item                  set, insert
//!        | 7 item limit | 8 item limit                  remove equal ones, from the front, from the back
//! stream = 1 id fields | 2 ids | 3 id                   add, delete, trim
//!        | 4 last deleted added                         accounts
//!        | 5 group id read | 6 group                    set and destroy a group
//!        | 7 group consumer time active | 8 group consumer
//!        | 9 group consumer time deliveries ids         see, delete, deliver to a consumer
//!        | 10 group ids                                 acknowledge
//! set    = 1 member | 2 member                          add, remove
//! sorted set = 1 member score | 2 member                put, remove      score = 8 bytes, little-endian, not NaN
//! ```

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::codec::{put_bytes, put_varint, take_byte, take_bytes, take_length, take_varint};
use super::stream;
use crate::store::{Change, HashChange, Kind, ListChange, Score, SetChange, SortedSetChange};

const HASH_SET: u8 = 1;
const HASH_DELETE: u8 = 2;
const HASH_DEADLINE: u8 = 3;
const HASH_PERSIST: u8 = 4;
const SET_ADD: u8 = 1;
const SET_REMOVE: u8 = 2;
const SORTED_SET_PUT: u8 = 1;
const SORTED_SET_REMOVE: u8 = 2;

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
        Change::Hash(HashChange::Deadline { field, deadline_ms }) => {
            out.put_u8(if deadline_ms.is_some() { HASH_DEADLINE } else { HASH_PERSIST });
            put_bytes(out, field);
            deadline_ms.into_iter().for_each(|deadline| put_varint(out, deadline));
        }
        Change::List(change) => put_list(out, &change),
        Change::Stream(change) => stream::put(out, &change),
        Change::Set(SetChange::Add { member }) => {
            out.put_u8(SET_ADD);
            put_bytes(out, member);
        }
        Change::Set(SetChange::Remove { member }) => {
            out.put_u8(SET_REMOVE);
            put_bytes(out, member);
        }
        Change::SortedSet(SortedSetChange::Put { member, score }) => {
            out.put_u8(SORTED_SET_PUT);
            put_bytes(out, member);
            out.put_slice(&score.to_bytes());
        }
        Change::SortedSet(SortedSetChange::Remove { member }) => {
            out.put_u8(SORTED_SET_REMOVE);
            put_bytes(out, member);
        }
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
        Kind::Stream => stream::take(what, input).map(Change::Stream),
        Kind::Set => take_set(what, input).map(Change::Set),
        Kind::SortedSet => take_sorted_set(what, input).map(Change::SortedSet),
    }
}

fn take_hash<'a>(what: u8, input: &mut &'a [u8]) -> Result<HashChange<'a>, EffectError> {
    let field = take_bytes(input)?;
    match what {
        HASH_SET => Ok(HashChange::Set { field, value: take_bytes(input)? }),
        HASH_DELETE => Ok(HashChange::Delete { field }),
        HASH_DEADLINE => Ok(HashChange::Deadline { field, deadline_ms: Some(take_varint(input)?) }),
        HASH_PERSIST => Ok(HashChange::Deadline { field, deadline_ms: None }),
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

fn take_set<'a>(what: u8, input: &mut &'a [u8]) -> Result<SetChange<'a>, EffectError> {
    let member = take_bytes(input)?;
    match what {
        SET_ADD => Ok(SetChange::Add { member }),
        SET_REMOVE => Ok(SetChange::Remove { member }),
        _ => Err(EffectError::Malformed),
    }
}

fn take_sorted_set<'a>(what: u8, input: &mut &'a [u8]) -> Result<SortedSetChange<'a>, EffectError> {
    let member = take_bytes(input)?;
    match what {
        SORTED_SET_PUT => {
            let (score, rest) = input.split_first_chunk::<8>().ok_or(EffectError::Truncated)?;
            *input = rest;
            let score = Score::from_bytes(score).ok_or(EffectError::Malformed)?;
            Ok(SortedSetChange::Put { member, score })
        }
        SORTED_SET_REMOVE => Ok(SortedSetChange::Remove { member }),
        _ => Err(EffectError::Malformed),
    }
}
