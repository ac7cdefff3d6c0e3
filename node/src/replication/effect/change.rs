//! A change inside a collection, as bytes.
//!
//! For: the effects of commands on a few items.
//! Not here: whole collections (`state`).
//!
//! ```text
//! change = kind of collection | what | its parts
//! hash   = 1 field value | 2 field | 3 field deadline | 4 field     set, delete, ends, does not end
//! ```

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::codec::{put_bytes, put_varint, take_byte, take_bytes, take_varint};
use crate::store::{Change, HashChange, Kind};

const HASH_SET: u8 = 1;
const HASH_DELETE: u8 = 2;
const HASH_DEADLINE: u8 = 3;
const HASH_PERSIST: u8 = 4;

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
    }
}

/// Takes a change from the front of `input`.
pub(super) fn take<'a>(input: &mut &'a [u8]) -> Result<Change<'a>, EffectError> {
    let kind = take_byte(input)?;
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind).ok_or(EffectError::Malformed)?;
    let what = take_byte(input)?;
    match kind {
        Kind::Hash => take_hash(what, input).map(Change::Hash),
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
