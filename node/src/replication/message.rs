//! What a primary and its replicas say to each other, as raw length-prefixed bytes.
//!
//! For: the two directions of a replication link. A frame from the primary carries the epoch that the
//! replica's map must have reached before it answers, and the position of its last message; a frame
//! from the replica acknowledges a position in each lane and answers comparisons.
//! Not here: framing and checksums (`protocol::peer::frame`), what is done with a message.

use bytes::{Buf, BufMut, BytesMut};
use korum_protocol::id::{Epoch, Position};
use korum_protocol::map::PartitionId;
use korum_protocol::rope::Rope;

/// Bytes of a frame's header: epoch and last position.
pub const HEADER_BYTES: usize = 16;

/// Why a peer's bytes are not messages.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed replication message")]
pub struct Malformed;

/// The bytes of effects in a message: those that arrived, or those that are to be sent.
pub trait Payload {
    /// How many bytes.
    fn size(&self) -> usize;
    /// Appends them.
    fn append_to(&self, out: &mut Rope);
}

impl Payload for &[u8] {
    fn size(&self) -> usize {
        self.len()
    }

    fn append_to(&self, out: &mut Rope) {
        out.extend_from_slice(self);
    }
}

impl Payload for &Rope {
    fn size(&self) -> usize {
        self.len()
    }

    fn append_to(&self, out: &mut Rope) {
        out.append(self);
    }
}

/// One message of a primary about one partition.
#[derive(Debug, PartialEq, Eq)]
pub struct Message<B> {
    /// The partition.
    pub partition: PartitionId,
    /// The era of the primary that speaks.
    pub era: Epoch,
    /// What it says.
    pub body: Body<B>,
}

/// What a primary says about a partition.
#[derive(Debug, PartialEq, Eq)]
pub enum Body<B> {
    /// The next effects of a copy that is in step; the first has this sequence number.
    Effects {
        /// Sequence of the first effect.
        first: u64,
        /// How many effects.
        count: u32,
        /// The effects.
        bytes: B,
    },
    /// Effects on the part of a copy that was already streamed; they carry no sequence.
    Passing {
        /// The effects.
        bytes: B,
    },
    /// How far has your copy come?
    Compare {
        /// Comes back in the answer, so that no older answer is taken for this one's.
        question: u64,
    },
    /// Everything in a range of the hash space.
    Chunk {
        /// First hash of the range.
        from: u64,
        /// First hash after the range.
        to: u64,
        /// Full-state effects.
        bytes: B,
    },
    /// Your copy is complete, at this position.
    Complete {
        /// The position.
        position: Position,
    },
}

const EFFECTS: u8 = 1;
const PASSING: u8 = 2;
const COMPARE: u8 = 3;
const CHUNK: u8 = 4;
const COMPLETE: u8 = 5;

impl<B: Payload> Message<B> {
    /// Bytes of the message, or a few more.
    #[must_use]
    pub fn size(&self) -> usize {
        let payload = match &self.body {
            Body::Effects { bytes, .. } | Body::Passing { bytes } | Body::Chunk { bytes, .. } => bytes.size(),
            Body::Compare { .. } | Body::Complete { .. } => 0,
        };
        31 + payload
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Rope) {
        let mut head = |kind: u8, room: usize| {
            let out = out.copied_mut();
            out.reserve(11 + room);
            out.put_u8(kind);
            out.put_u16(self.partition);
            out.put_u64(self.era.0);
        };
        match &self.body {
            Body::Effects { first, count, bytes } => {
                head(EFFECTS, 16);
                out.copied_mut().put_u64(*first);
                out.copied_mut().put_u32(*count);
                put_bytes(out, bytes);
            }
            Body::Passing { bytes } => {
                head(PASSING, 4);
                put_bytes(out, bytes);
            }
            Body::Compare { question } => {
                head(COMPARE, 8);
                out.copied_mut().put_u64(*question);
            }
            Body::Chunk { from, to, bytes } => {
                head(CHUNK, 20);
                out.copied_mut().put_u64(*from);
                out.copied_mut().put_u64(*to);
                put_bytes(out, bytes);
            }
            Body::Complete { position } => {
                head(COMPLETE, 16);
                out.copied_mut().put_u64(position.era.0);
                out.copied_mut().put_u64(position.sequence);
            }
        }
    }
}

fn put_bytes(out: &mut Rope, bytes: &impl Payload) {
    let length = u32::try_from(bytes.size()).expect("the effects of one request are under 4 GiB");
    out.copied_mut().put_u32(length);
    bytes.append_to(out);
}

fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = input.try_get_u32().map_err(|_| Malformed)? as usize;
    if input.len() < length {
        return Err(Malformed);
    }
    let (bytes, rest) = input.split_at(length);
    *input = rest;
    Ok(bytes)
}

/// Takes the next message off `input`.
///
/// # Errors
/// When the bytes are not a whole message.
pub fn decode<'a>(input: &mut &'a [u8]) -> Result<Message<&'a [u8]>, Malformed> {
    let u64_of = |input: &mut &'a [u8]| input.try_get_u64().map_err(|_| Malformed);
    let kind = input.try_get_u8().map_err(|_| Malformed)?;
    let partition = input.try_get_u16().map_err(|_| Malformed)?;
    let era = Epoch(u64_of(input)?);
    let body = match kind {
        EFFECTS => Body::Effects {
            first: u64_of(input)?,
            count: input.try_get_u32().map_err(|_| Malformed)?,
            bytes: take_bytes(input)?,
        },
        PASSING => Body::Passing { bytes: take_bytes(input)? },
        COMPARE => Body::Compare { question: u64_of(input)? },
        CHUNK => Body::Chunk { from: u64_of(input)?, to: u64_of(input)?, bytes: take_bytes(input)? },
        COMPLETE => {
            Body::Complete { position: Position { era: Epoch(u64_of(input)?), sequence: u64_of(input)? } }
        }
        _ => return Err(Malformed),
    };
    Ok(Message { partition, era, body })
}

/// A replica's answer to a comparison: how far its copy has come, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The partition.
    pub partition: PartitionId,
    /// The era of the primary that asked.
    pub era: Epoch,
    /// Which question this answers.
    pub question: u64,
    /// `None` when the copy is incomplete or there is none.
    pub position: Option<Position>,
}

/// Bytes of one comparison's answer.
const COMPARED_BYTES: usize = 35;

/// How far a replica has come, in each lane of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// The last message applied of the lane of small ones.
    pub small: u64,
    /// The last message applied of the lane of large ones.
    pub large: u64,
}

/// The bytes of a replica's frame: everything up to `acknowledged` is applied.
#[must_use]
pub fn encode_answer(acknowledged: Acknowledged, compared: &[Compared]) -> BytesMut {
    let mut out = BytesMut::with_capacity(16 + COMPARED_BYTES * compared.len());
    out.put_u64(acknowledged.small);
    out.put_u64(acknowledged.large);
    for answer in compared {
        out.put_u16(answer.partition);
        out.put_u64(answer.era.0);
        out.put_u64(answer.question);
        out.put_u8(u8::from(answer.position.is_some()));
        let position = answer.position.unwrap_or_default();
        out.put_u64(position.era.0);
        out.put_u64(position.sequence);
    }
    out
}

/// Reads a replica's frame.
///
/// # Errors
/// When the bytes are not a whole answer.
pub fn decode_answer(mut input: &[u8]) -> Result<(Acknowledged, Vec<Compared>), Malformed> {
    let small = input.try_get_u64().map_err(|_| Malformed)?;
    let large = input.try_get_u64().map_err(|_| Malformed)?;
    if !input.len().is_multiple_of(COMPARED_BYTES) {
        return Err(Malformed);
    }
    let mut compared = Vec::with_capacity(input.len() / COMPARED_BYTES);
    while !input.is_empty() {
        let (partition, era, question) = (input.get_u16(), Epoch(input.get_u64()), input.get_u64());
        let is_known = input.get_u8() != 0;
        let position = Position { era: Epoch(input.get_u64()), sequence: input.get_u64() };
        compared.push(Compared { partition, era, question, position: is_known.then_some(position) });
    }
    Ok((Acknowledged { small, large }, compared))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<Message<&'static [u8]>> {
        let at = |body| Message { partition: 7, era: Epoch(3), body };
        vec![
            at(Body::Effects { first: 9, count: 2, bytes: &b"effects"[..] }),
            at(Body::Passing { bytes: b"" }),
            at(Body::Compare { question: 5 }),
            at(Body::Chunk { from: 1, to: u64::MAX, bytes: b"chunk" }),
            at(Body::Complete { position: Position { era: Epoch(3), sequence: 11 } }),
        ]
    }

    #[test]
    fn messages_read_back_in_order() {
        let mut out = Rope::new();
        messages().iter().for_each(|message| message.encode(&mut out));
        let out = out.into_bytes();
        let mut input = &out[..];
        for message in messages() {
            assert_eq!(decode(&mut input), Ok(message));
        }
        assert!(input.is_empty());
    }

    #[test]
    fn truncated_messages_are_refused() {
        for message in messages() {
            let mut out = Rope::new();
            message.encode(&mut out);
            let out = out.into_bytes();
            assert!((out.len()..out.len() + 20).contains(&message.size()));
            for end in 0..out.len() {
                assert_eq!(decode(&mut &out[..end]), Err(Malformed), "{message:?} cut at {end}");
            }
        }
    }

    #[test]
    fn answers_read_back() {
        let compared = vec![
            Compared { partition: 1, era: Epoch(2), question: 1, position: None },
            Compared {
                partition: 3,
                era: Epoch(2),
                question: 2,
                position: Some(Position { era: Epoch(1), sequence: 5 }),
            },
        ];
        let acknowledged = Acknowledged { small: 9, large: 4 };
        assert_eq!(decode_answer(&encode_answer(acknowledged, &compared)), Ok((acknowledged, compared)));
        assert_eq!(decode_answer(&[0; 17]), Err(Malformed));
    }
}
