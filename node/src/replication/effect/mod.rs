//! Effects: what a write did, as replicas are told.
//!
//! For: encoding, decoding and collecting them. An effect is about one key (or all), with the outcome in
//! full and deadlines in absolute time, so that applying it needs no clock and no chance.
//! Not here: who gets them and when (`primary`), applying them (`store::Keyspace::apply`).
//!
//! ```text
//! effect   = 1 key value | 2 key value deadline | 3 key | 4 key deadline | 5 key | 6 key bytes
//!          | 7 key offset bytes | 8 | 9 key state | 10 key state deadline | 11 key change
//!          | 12 key node client number | 13 room | 14 key | 15 key deadline
//!            set           set until               delete  deadline         persist append
//!            overwrite            clear  a collection, the same until       a change inside one
//!            a command that waited was served        clear one database
//!                                                    has come in parts, the same until
//! key, bytes = varint length, bytes      deadline, offset = varint
//! value    = 1 zigzag varint | 2 bytes | 3 bytes                        integer, string, raw string
//! state, change: see `state`, `change`
//! ```
//! New types of values get new type bytes; a node that meets one it does not know refuses the frame.

use bytes::{BufMut, Bytes, BytesMut};
use korum_protocol::rope::Rope;

use crate::store::served::Token;
use crate::store::{Change, ValueRef};
use codec::{
    put_bytes, put_key, put_value, put_varint, take_byte, take_bytes, take_length, take_value, take_varint,
};

mod change;
mod codec;
mod collected;
mod part;
mod state;
mod stream;

pub use collected::Effects;
pub use part::put_part;
pub use state::State;

const SET: u8 = 1;
const SET_UNTIL: u8 = 2;
const DELETE: u8 = 3;
const DEADLINE: u8 = 4;
const PERSIST: u8 = 5;
const APPEND: u8 = 6;
const OVERWRITE: u8 = 7;
const CLEAR: u8 = 8;
const COLLECTION: u8 = 9;
const COLLECTION_UNTIL: u8 = 10;
const CHANGE: u8 = 11;
const SERVED: u8 = 12;
const CLEAR_ROOM: u8 = 13;
const PARTED: u8 = 14;
const PARTED_UNTIL: u8 = 15;

/// What happened to one key, or to all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect<'a> {
    /// The key now has exactly this value and this deadline (Unix ms). A collection is read back as
    /// [`Effect::Collection`].
    Set {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: ValueRef<'a>,
        /// Its deadline; `None` if it has none.
        deadline_ms: Option<u64>,
    },
    /// The key now is exactly this collection.
    Collection {
        /// The key.
        key: &'a [u8],
        /// Its value.
        state: State<'a>,
        /// Its deadline, Unix ms; `None` if it has none.
        deadline_ms: Option<u64>,
    },
    /// In a chunk: the key now is the collection that has come in parts.
    Parted {
        /// The key.
        key: &'a [u8],
        /// Its deadline, Unix ms; `None` if it has none.
        deadline_ms: Option<u64>,
    },
    /// Something happened inside the collection of a key, which is created by it, or ends with its last item.
    Change {
        /// The key.
        key: &'a [u8],
        /// What happened.
        change: Change<'a>,
    },
    /// The key is gone.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// The key has this deadline (Unix ms), or none; its value is as it was.
    Deadline {
        /// The key.
        key: &'a [u8],
        /// Its deadline; `None` if it has none.
        deadline_ms: Option<u64>,
    },
    /// A string has grown at its end.
    Append {
        /// The key.
        key: &'a [u8],
        /// What it has grown by.
        tail: &'a [u8],
    },
    /// A part of a string was written over; zeros fill it up to `offset`.
    Overwrite {
        /// The key.
        key: &'a [u8],
        /// Where the part begins, bytes.
        offset: usize,
        /// The part.
        bytes: &'a [u8],
    },
    /// A command of another node's client that waited for a key was served with what was done before.
    Served {
        /// The key.
        key: &'a [u8],
        /// Which command.
        token: Token,
    },
    /// All keys of the partition are gone.
    Clear,
    /// All keys of one room are gone.
    ClearRoom {
        /// Which.
        room: u8,
    },
}

/// Why bytes are not an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EffectError {
    /// They end too early.
    #[error("an effect ends before its end")]
    Truncated,
    /// A number is longer than 64 bits, or too large for what it says.
    #[error("a number in an effect is too large")]
    TooLarge,
    /// A kind of effect that this version does not know.
    #[error("effect of unknown kind {0}")]
    UnknownEffect(u8),
    /// A type of value that this version does not know.
    #[error("value of unknown type {0}")]
    UnknownValue(u8),
    /// The items of a collection, or of a change of one, that do not make one up.
    #[error("the items of a collection do not fit together")]
    Malformed,
    /// A chunk or repair holds something else than full states of keys that belong there.
    #[error("a chunk or repair holds what is not the state of a key that belongs there")]
    NotOfChunk,
}

impl<'a> Effect<'a> {
    /// Are these the bytes of a [`Effect::Delete`]?
    #[must_use]
    pub fn is_delete(bytes: &[u8]) -> bool {
        bytes.first() == Some(&DELETE)
    }

    /// Appends the bytes of this effect to `out`.
    pub fn encode(&self, out: &mut BytesMut) {
        match *self {
            Self::Set { key, value: ValueRef::String(string), deadline_ms } => {
                put_key(out, if deadline_ms.is_some() { SET_UNTIL } else { SET }, key);
                put_value(out, string);
                put_deadline(out, deadline_ms);
            }
            Self::Set { key, value, deadline_ms } => {
                put_key(out, if deadline_ms.is_some() { COLLECTION_UNTIL } else { COLLECTION }, key);
                state::put(out, value);
                put_deadline(out, deadline_ms);
            }
            Self::Collection { key, state, deadline_ms } => {
                put_key(out, if deadline_ms.is_some() { COLLECTION_UNTIL } else { COLLECTION }, key);
                state.put(out);
                put_deadline(out, deadline_ms);
            }
            Self::Parted { key, deadline_ms } => {
                put_key(out, if deadline_ms.is_some() { PARTED_UNTIL } else { PARTED }, key);
                put_deadline(out, deadline_ms);
            }
            Self::Change { key, change } => {
                put_key(out, CHANGE, key);
                change::put(out, &change);
            }
            Self::Delete { key } => put_key(out, DELETE, key),
            Self::Deadline { key, deadline_ms: None } => put_key(out, PERSIST, key),
            Self::Deadline { key, deadline_ms: Some(deadline) } => {
                put_key(out, DEADLINE, key);
                put_varint(out, deadline);
            }
            Self::Append { key, tail } => {
                put_key(out, APPEND, key);
                put_bytes(out, tail);
            }
            Self::Overwrite { key, offset, bytes } => {
                put_key(out, OVERWRITE, key);
                put_varint(out, offset as u64);
                put_bytes(out, bytes);
            }
            Self::Served { key, token } => {
                put_key(out, SERVED, key);
                [token.node, token.client, token.number]
                    .into_iter()
                    .for_each(|number| put_varint(out, number));
            }
            Self::Clear => out.put_u8(CLEAR),
            Self::ClearRoom { room } => out.put_slice(&[CLEAR_ROOM, room]),
        }
    }

    /// Appends a `Set` of a string that is held on to, if it is long, instead of being copied.
    pub fn encode_held(key: &[u8], string: Bytes, deadline_ms: Option<u64>, out: &mut Rope) {
        put_key(out.copied_mut(), if deadline_ms.is_some() { SET_UNTIL } else { SET }, key);
        codec::put_string_head(out.copied_mut(), string.len());
        out.push(string);
        if let Some(deadline) = deadline_ms {
            put_varint(out.copied_mut(), deadline);
        }
    }

    /// Appends an `Append` or `Overwrite` whose long string is held on to.
    fn encode_part(key: &[u8], offset: Option<usize>, string: Bytes, out: &mut Rope) {
        put_key(out.copied_mut(), if offset.is_some() { OVERWRITE } else { APPEND }, key);
        if let Some(offset) = offset {
            put_varint(out.copied_mut(), offset as u64);
        }
        put_varint(out.copied_mut(), string.len() as u64);
        out.push(string);
    }

    /// Takes one effect from the front of `input`; after an error `input` stands anywhere.
    ///
    /// # Errors
    /// When the bytes are cut off or are not an effect. Nothing is allocated.
    pub fn decode(input: &mut &'a [u8]) -> Result<Self, EffectError> {
        let kind = take_byte(input)?;
        if kind == CLEAR {
            return Ok(Self::Clear);
        }
        if kind == CLEAR_ROOM {
            return Ok(Self::ClearRoom { room: take_byte(input)? });
        }
        if !(SET..=PARTED_UNTIL).contains(&kind) {
            return Err(EffectError::UnknownEffect(kind));
        }
        let key = take_bytes(input)?;
        Ok(match kind {
            SET => Self::Set { key, value: take_value(input)?, deadline_ms: None },
            SET_UNTIL => {
                let value = take_value(input)?;
                Self::Set { key, value, deadline_ms: Some(take_varint(input)?) }
            }
            DELETE => Self::Delete { key },
            DEADLINE => Self::Deadline { key, deadline_ms: Some(take_varint(input)?) },
            PERSIST => Self::Deadline { key, deadline_ms: None },
            APPEND => Self::Append { key, tail: take_bytes(input)? },
            COLLECTION => Self::Collection { key, state: State::take(input)?, deadline_ms: None },
            COLLECTION_UNTIL => {
                let state = State::take(input)?;
                Self::Collection { key, state, deadline_ms: Some(take_varint(input)?) }
            }
            PARTED => Self::Parted { key, deadline_ms: None },
            PARTED_UNTIL => Self::Parted { key, deadline_ms: Some(take_varint(input)?) },
            CHANGE => Self::Change { key, change: change::take(input)? },
            SERVED => {
                let (node, client) = (take_varint(input)?, take_varint(input)?);
                Self::Served { key, token: Token { node, client, number: take_varint(input)? } }
            }
            _ => {
                let offset = take_length(input)?;
                Self::Overwrite { key, offset, bytes: take_bytes(input)? }
            }
        })
    }

    /// The key that it is about; `None` means all, or all of a room.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Set { key, .. }
            | Self::Collection { key, .. }
            | Self::Parted { key, .. }
            | Self::Change { key, .. }
            | Self::Delete { key }
            | Self::Deadline { key, .. }
            | Self::Append { key, .. }
            | Self::Served { key, .. }
            | Self::Overwrite { key, .. } => Some(key),
            Self::Clear | Self::ClearRoom { .. } => None,
        }
    }
}

fn put_deadline(out: &mut BytesMut, deadline_ms: Option<u64>) {
    if let Some(deadline) = deadline_ms {
        put_varint(out, deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::keyspace::Place;
    use crate::store::{HashChange, HashPosition, ListChange, Score, SetChange, SortedSetChange, StringRef};
    use proptest::prelude::*;

    fn effects<'a>(key: &'a [u8], bytes: &'a [u8], number: i64, deadline: Option<u64>) -> Vec<Effect<'a>> {
        let value = |string| Effect::Set { key, value: ValueRef::String(string), deadline_ms: deadline };
        let index = number.unsigned_abs() as usize;
        let list = |change| Effect::Change { key, change: Change::List(change) };
        let score = Score::new(number as f64).unwrap();
        vec![
            value(StringRef::Integer(number)),
            value(StringRef::Bytes(bytes)),
            value(StringRef::Raw(bytes)),
            Effect::Parted { key, deadline_ms: deadline },
            Effect::Delete { key },
            Effect::Deadline { key, deadline_ms: deadline },
            Effect::Append { key, tail: bytes },
            Effect::Overwrite { key, offset: number.unsigned_abs() as usize, bytes },
            Effect::Change { key, change: Change::Hash(HashChange::Set { field: key, value: bytes }) },
            Effect::Change { key, change: Change::Hash(HashChange::Delete { field: bytes }) },
            Effect::Change {
                key,
                change: Change::Hash(HashChange::Deadline { field: bytes, deadline_ms: deadline }),
            },
            list(ListChange::PushFront { item: bytes }),
            list(ListChange::PushBack { item: bytes }),
            list(ListChange::PopFront { count: index }),
            list(ListChange::PopBack { count: index }),
            list(ListChange::Set { index, item: bytes }),
            list(ListChange::Insert { index, item: bytes }),
            list(ListChange::RemoveEqual { item: bytes, limit: index, from_back: false }),
            list(ListChange::RemoveEqual { item: bytes, limit: index, from_back: true }),
            Effect::Served { key, token: Token { node: number as u64, client: 1, number: index as u64 } },
            Effect::Change { key, change: Change::Set(SetChange::Add { member: bytes }) },
            Effect::Change { key, change: Change::Set(SetChange::Remove { member: bytes }) },
            Effect::Change { key, change: Change::SortedSet(SortedSetChange::Put { member: bytes, score }) },
            Effect::Change { key, change: Change::SortedSet(SortedSetChange::Remove { member: bytes }) },
            Effect::Clear,
            Effect::ClearRoom { room: number as u8 },
        ]
    }

    proptest! {
        #[test]
        fn an_effect_reads_back_and_no_part_of_it_does(
            key: Vec<u8>, bytes: Vec<u8>, number: i64, deadline: Option<u64>,
        ) {
            for effect in effects(&key, &bytes, number, deadline) {
                let mut out = BytesMut::new();
                effect.encode(&mut out);
                let mut input = &out[..];
                prop_assert_eq!(Effect::decode(&mut input), Ok(effect));
                prop_assert!(input.is_empty());
                for len in 0..out.len() {
                    prop_assert_eq!(Effect::decode(&mut &out[..len]), Err(EffectError::Truncated));
                }
            }
        }

        #[test]
        fn any_bytes_are_an_effect_or_an_error(bytes: Vec<u8>) {
            let mut input = &bytes[..];
            while !input.is_empty() && Effect::decode(&mut input).is_ok() {}
        }
    }

    #[test]
    fn numbers_past_64_bits_are_refused() {
        let mut input = [vec![DEADLINE, 0], vec![0xff; 9], vec![0x02]].concat();
        assert_eq!(Effect::decode(&mut &input[..]), Err(EffectError::TooLarge));
        *input.last_mut().unwrap() = 0x01;
        assert_eq!(
            Effect::decode(&mut &input[..]),
            Ok(Effect::Deadline { key: b"", deadline_ms: Some(u64::MAX) })
        );
    }

    #[test]
    fn effects_that_are_not_recorded_are_still_noted() {
        let place = Place { key: b"k", position: HashPosition::START };
        for recording in [false, true] {
            let mut effects = Effects::new(recording);
            effects.delete(place);
            effects.cleared();
            assert_eq!(effects.count(), 2);
            let all: Vec<_> = effects.iter().map(|(position, part)| (position, part.len())).collect();
            let lengths = if recording { [3, 1] } else { [0, 0] };
            assert_eq!(all, [(Some(HashPosition::START), lengths[0]), (None, lengths[1])]);
            assert!(effects.places().eq([Some(HashPosition::START), None]));
            effects.clear();
            assert_eq!((effects.count(), effects.rope().len()), (0, 0));
        }
    }
}
