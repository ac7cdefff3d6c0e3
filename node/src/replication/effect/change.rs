//! A change inside a collection, as bytes.
//!
//! For: the effects of commands on a few items.
//! Not here: whole collections (`state`).
//!
//! ```text
//! change = kind of collection | what | its parts
//! hash   = 1 field value | 2 field                      set, delete
//! set    = 1 member | 2 member                          add, remove
//! sorted set = 1 member score | 2 member                put, remove      score = 8 bytes, little-endian, not NaN
//! ```

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::codec::{put_bytes, take_byte, take_bytes};
use crate::store::{Change, HashChange, Kind, Score, SetChange, SortedSetChange};

const HASH_SET: u8 = 1;
const HASH_DELETE: u8 = 2;
const SET_ADD: u8 = 1;
const SET_REMOVE: u8 = 2;
const SORTED_SET_PUT: u8 = 1;
const SORTED_SET_REMOVE: u8 = 2;

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

/// Takes a change from the front of `input`.
pub(super) fn take<'a>(input: &mut &'a [u8]) -> Result<Change<'a>, EffectError> {
    let kind = take_byte(input)?;
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind).ok_or(EffectError::Malformed)?;
    let what = take_byte(input)?;
    match kind {
        Kind::Hash => take_hash(what, input).map(Change::Hash),
        Kind::Set => take_set(what, input).map(Change::Set),
        Kind::SortedSet => take_sorted_set(what, input).map(Change::SortedSet),
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
