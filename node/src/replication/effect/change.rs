//! A change inside a collection, as bytes.
//!
//! For: the effects of commands on a few items.
//! Not here: whole collections (`state`).
//!
//! ```text
//! change = kind of collection | what | its parts
//! hash   = 1 field value | 2 field                      set, delete
//! stream = 1 id fields | 2 ids | 3 id                   add, delete, trim
//!        | 4 last deleted added                         accounts
//!        | 5 group id read | 6 group                    set and destroy a group
//!        | 7 group consumer time active | 8 group consumer
//!        | 9 group consumer time deliveries ids         see, delete, deliver to a consumer
//!        | 10 group ids                                 acknowledge
//! ```

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::{
    codec::{put_bytes, take_byte, take_bytes},
    stream,
};
use crate::store::{Change, HashChange, Kind};

const HASH_SET: u8 = 1;
const HASH_DELETE: u8 = 2;

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
        Change::Stream(change) => stream::put(out, &change),
    }
}

/// Takes a change from the front of `input`.
pub(super) fn take<'a>(input: &mut &'a [u8]) -> Result<Change<'a>, EffectError> {
    let kind = take_byte(input)?;
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind).ok_or(EffectError::Malformed)?;
    let what = take_byte(input)?;
    match kind {
        Kind::Hash => take_hash(what, input).map(Change::Hash),
        Kind::Stream => stream::take(what, input).map(Change::Stream),
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
