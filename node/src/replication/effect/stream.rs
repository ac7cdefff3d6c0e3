//! Changes of streams, as bytes.
//!
//! For: the stream's part of `change`, which shows the layout.
//! Not here: whole streams (`state`).

use bytes::{BufMut, BytesMut};

use super::EffectError;
use super::codec::{put_bytes, put_varint, take_byte, take_bytes, take_varint};
use crate::store::xstream::{Deliveries, Fields, ID_BYTES, Ids, StreamChange, StreamId, Trimmed};

const ADD: u8 = 1;
const DELETE: u8 = 2;
const TRIM: u8 = 3;
const SET_ACCOUNTS: u8 = 4;
const SET_GROUP: u8 = 5;
const DESTROY_GROUP: u8 = 6;
const SEE: u8 = 7;
const DELETE_CONSUMER: u8 = 8;
const DELIVER: u8 = 9;
const ACKNOWLEDGE: u8 = 10;

const DELIVERIES_SET: u8 = 0;
const DELIVERIES_MORE: u8 = 1;
const DELIVERIES_SAME: u8 = 2;

/// Appends a change, the byte that says which one first.
pub(super) fn put(out: &mut BytesMut, change: &StreamChange<'_>) {
    match *change {
        StreamChange::Add { id, fields } => {
            out.put_u8(ADD);
            put_id(out, id);
            put_bytes(out, fields.bytes());
        }
        StreamChange::Delete { ids } => {
            out.put_u8(DELETE);
            put_bytes(out, ids.bytes());
        }
        StreamChange::Trim(Trimmed { through }) => {
            out.put_u8(TRIM);
            put_id(out, through);
        }
        StreamChange::SetAccounts { last_id, max_deleted, entries_added } => {
            out.put_u8(SET_ACCOUNTS);
            put_id(out, last_id);
            put_id(out, max_deleted);
            put_varint(out, entries_added);
        }
        StreamChange::SetGroup { group, last_id, entries_read } => {
            out.put_u8(SET_GROUP);
            put_bytes(out, group);
            put_id(out, last_id);
            out.put_u8(entries_read.is_some().into());
            put_varint(out, entries_read.unwrap_or(0));
        }
        StreamChange::DestroyGroup { group } => {
            out.put_u8(DESTROY_GROUP);
            put_bytes(out, group);
        }
        StreamChange::See { group, consumer, now_ms, is_active } => {
            out.put_u8(SEE);
            put_bytes(out, group);
            put_bytes(out, consumer);
            put_varint(out, now_ms);
            out.put_u8(is_active.into());
        }
        StreamChange::DeleteConsumer { group, consumer } => {
            out.put_u8(DELETE_CONSUMER);
            put_bytes(out, group);
            put_bytes(out, consumer);
        }
        StreamChange::Deliver { group, consumer, time_ms, deliveries, ids } => {
            out.put_u8(DELIVER);
            put_bytes(out, group);
            put_bytes(out, consumer);
            put_varint(out, time_ms);
            let (how, count) = match deliveries {
                Deliveries::Set(count) => (DELIVERIES_SET, count),
                Deliveries::More => (DELIVERIES_MORE, 0),
                Deliveries::Same => (DELIVERIES_SAME, 0),
            };
            out.put_u8(how);
            put_varint(out, count);
            put_bytes(out, ids.bytes());
        }
        StreamChange::Acknowledge { group, ids } => {
            out.put_u8(ACKNOWLEDGE);
            put_bytes(out, group);
            put_bytes(out, ids.bytes());
        }
    }
}

fn put_id(out: &mut BytesMut, id: StreamId) {
    out.put_slice(&id.to_bytes());
}

/// Takes a change whose first byte was `what`.
pub(super) fn take<'a>(what: u8, input: &mut &'a [u8]) -> Result<StreamChange<'a>, EffectError> {
    Ok(match what {
        ADD => {
            let id = take_id(input)?;
            let fields = Fields::from_bytes(take_bytes(input)?).ok_or(EffectError::Malformed)?;
            StreamChange::Add { id, fields }
        }
        DELETE => StreamChange::Delete { ids: take_ids(input)? },
        TRIM => StreamChange::Trim(Trimmed { through: take_id(input)? }),
        SET_ACCOUNTS => StreamChange::SetAccounts {
            last_id: take_id(input)?,
            max_deleted: take_id(input)?,
            entries_added: take_varint(input)?,
        },
        SET_GROUP => {
            let (group, last_id) = (take_bytes(input)?, take_id(input)?);
            let is_known = take_flag(input)?;
            let count = take_varint(input)?;
            StreamChange::SetGroup { group, last_id, entries_read: is_known.then_some(count) }
        }
        DESTROY_GROUP => StreamChange::DestroyGroup { group: take_bytes(input)? },
        SEE => StreamChange::See {
            group: take_bytes(input)?,
            consumer: take_bytes(input)?,
            now_ms: take_varint(input)?,
            is_active: take_flag(input)?,
        },
        DELETE_CONSUMER => {
            StreamChange::DeleteConsumer { group: take_bytes(input)?, consumer: take_bytes(input)? }
        }
        DELIVER => StreamChange::Deliver {
            group: take_bytes(input)?,
            consumer: take_bytes(input)?,
            time_ms: take_varint(input)?,
            deliveries: take_deliveries(input)?,
            ids: take_ids(input)?,
        },
        ACKNOWLEDGE => StreamChange::Acknowledge { group: take_bytes(input)?, ids: take_ids(input)? },
        _ => return Err(EffectError::Malformed),
    })
}

fn take_id(input: &mut &[u8]) -> Result<StreamId, EffectError> {
    let (id, rest) = input.split_first_chunk::<ID_BYTES>().ok_or(EffectError::Truncated)?;
    *input = rest;
    Ok(StreamId::from_bytes(*id))
}

fn take_ids<'a>(input: &mut &'a [u8]) -> Result<Ids<'a>, EffectError> {
    Ids::from_bytes(take_bytes(input)?).ok_or(EffectError::Malformed)
}

fn take_flag(input: &mut &[u8]) -> Result<bool, EffectError> {
    match take_byte(input)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(EffectError::Malformed),
    }
}

fn take_deliveries(input: &mut &[u8]) -> Result<Deliveries, EffectError> {
    let (how, count) = (take_byte(input)?, take_varint(input)?);
    match how {
        DELIVERIES_SET => Ok(Deliveries::Set(count)),
        DELIVERIES_MORE => Ok(Deliveries::More),
        DELIVERIES_SAME => Ok(Deliveries::Same),
        _ => Err(EffectError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_change_reads_back_and_no_part_of_it_does(
            group: Vec<u8>, consumer: Vec<u8>, name: Vec<u8>, ms: u64, seq: u64, number: u64, is_it: bool,
        ) {
            let id = StreamId { ms, seq };
            let fields = Fields::encode([&name[..], &group[..]].into_iter());
            let fields = Fields::from_bytes(&fields).expect("one pair");
            let ids = [id.to_bytes(), StreamId::MIN.to_bytes()];
            let ids = Ids::new(&ids);
            let (group, consumer) = (&group[..], &consumer[..]);
            let entries_read = is_it.then_some(number);
            let deliver = |deliveries| StreamChange::Deliver { group, consumer, time_ms: number, deliveries, ids };
            for change in [
                StreamChange::Add { id, fields },
                StreamChange::Delete { ids },
                StreamChange::Trim(Trimmed { through: id }),
                StreamChange::SetAccounts { last_id: id, max_deleted: StreamId::MAX, entries_added: number },
                StreamChange::SetGroup { group, last_id: id, entries_read },
                StreamChange::DestroyGroup { group },
                StreamChange::See { group, consumer, now_ms: number, is_active: is_it },
                StreamChange::DeleteConsumer { group, consumer },
                deliver(Deliveries::Set(number)),
                deliver(Deliveries::More),
                deliver(Deliveries::Same),
                StreamChange::Acknowledge { group, ids },
            ] {
                let mut out = BytesMut::new();
                put(&mut out, &change);
                let mut input = &out[1..];
                prop_assert_eq!(take(out[0], &mut input), Ok(change));
                prop_assert!(input.is_empty());
                for len in 1..out.len() {
                    prop_assert_eq!(take(out[0], &mut &out[1..len]), Err(EffectError::Truncated));
                }
            }
        }
    }
}
