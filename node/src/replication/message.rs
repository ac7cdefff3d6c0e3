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

use super::history::{PATH_MAX, Path};
use crate::store::HashPosition;
use crate::store::served::{SERVICES_MAX, Service, Token};

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
        /// The path of the primary's copy.
        path: Path,
    },
    /// Everything that your copy lacks or has too much.
    Repair {
        /// Where the copy stands, as it answered.
        from: Position,
        /// The last position on both paths.
        common: Position,
        /// The path of the primary's copy, which is the copy's from now on.
        path: Path,
        /// Where the effects since `common` took place on the primary's path, in order.
        steps: Vec<HashPosition>,
        /// Where those took place that only the copy has, as it answered.
        ahead: Vec<HashPosition>,
        /// All that was served at these places.
        services: Vec<Service>,
        /// Full-state effects of all keys at these places.
        bytes: B,
    },
    /// Everything in a range of the hash space.
    Chunk {
        /// First hash of the range.
        from: u64,
        /// First hash after the range.
        to: u64,
        /// All that was served there.
        services: Vec<Service>,
        /// Full-state effects.
        bytes: B,
    },
    /// The next part of a large collection, which a chunk will give its place, and changes of the parts before.
    Part {
        /// It is the first one.
        begins: bool,
        /// Effects on the collection.
        bytes: B,
    },
    /// The stream is over: your copy is complete.
    Complete {
        /// The path of the primary's copy, which is the copy's from now on.
        path: Path,
    },
}

const EFFECTS: u8 = 1;
const PASSING: u8 = 2;
const COMPARE: u8 = 3;
const CHUNK: u8 = 4;
const COMPLETE: u8 = 5;
const REPAIR: u8 = 6;
const PART: u8 = 7;

/// Bytes of a position in hash order.
const PLACE_BYTES: usize = 6;
/// Bytes of a service: its place and three numbers.
pub const SERVICE_BYTES: usize = PLACE_BYTES + 24;
/// Bytes of a copy's position.
const POSITION_BYTES: usize = 16;
/// Places that a copy is ahead at in an answer: a copy that has more is streamed.
pub const AHEAD_MAX: usize = 256;

impl<B: Payload> Message<B> {
    /// Bytes of the message, or a few more.
    #[must_use]
    pub fn size(&self) -> usize {
        let payload = match &self.body {
            Body::Effects { bytes, .. } | Body::Passing { bytes } | Body::Part { bytes, .. } => bytes.size(),
            Body::Chunk { services, bytes, .. } => 4 + SERVICE_BYTES * services.len() + bytes.size(),
            Body::Compare { path, .. } | Body::Complete { path } => POSITION_BYTES * path.len(),
            Body::Repair { path, steps, ahead, services, bytes, .. } => {
                let places = PLACE_BYTES * (steps.len() + ahead.len()) + 4 + SERVICE_BYTES * services.len();
                POSITION_BYTES * (2 + path.len()) + places + bytes.size()
            }
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
            Body::Compare { question, path } => {
                head(COMPARE, 8 + 1 + POSITION_BYTES * path.len());
                out.copied_mut().put_u64(*question);
                put_path(out.copied_mut(), path);
            }
            Body::Repair { from, common, path, steps, ahead, services, bytes } => {
                head(REPAIR, POSITION_BYTES * (2 + path.len()) + PLACE_BYTES * (steps.len() + ahead.len()));
                put_position(out.copied_mut(), *from);
                put_position(out.copied_mut(), *common);
                put_path(out.copied_mut(), path);
                put_places(out.copied_mut(), steps);
                put_places(out.copied_mut(), ahead);
                put_services(out.copied_mut(), services);
                put_bytes(out, bytes);
            }
            Body::Chunk { from, to, services, bytes } => {
                head(CHUNK, 24);
                out.copied_mut().put_u64(*from);
                out.copied_mut().put_u64(*to);
                put_services(out.copied_mut(), services);
                put_bytes(out, bytes);
            }
            Body::Part { begins, bytes } => {
                head(PART, 5);
                out.copied_mut().put_u8(u8::from(*begins));
                put_bytes(out, bytes);
            }
            Body::Complete { path } => {
                head(COMPLETE, 1 + POSITION_BYTES * path.len());
                put_path(out.copied_mut(), path);
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

fn put_position(out: &mut BytesMut, position: Position) {
    out.put_u64(position.era.0);
    out.put_u64(position.sequence);
}

fn take_position(input: &mut &[u8]) -> Result<Position, Malformed> {
    let (era, sequence) = (input.try_get_u64(), input.try_get_u64());
    Ok(Position { era: Epoch(era.map_err(|_| Malformed)?), sequence: sequence.map_err(|_| Malformed)? })
}

fn put_path(out: &mut BytesMut, path: &Path) {
    out.put_u8(path.len() as u8);
    path.iter().for_each(|&end| put_position(out, end));
}

fn take_path(input: &mut &[u8]) -> Result<Path, Malformed> {
    let count = usize::from(input.try_get_u8().map_err(|_| Malformed)?);
    if count > PATH_MAX {
        return Err(Malformed);
    }
    let path = (0..count).map(|_| take_position(input)).collect::<Result<Path, _>>()?;
    if path.is_sorted_by(|end, next| end.era < next.era) { Ok(path) } else { Err(Malformed) }
}

/// The path of a primary of `era`: it ends there.
fn take_path_of(input: &mut &[u8], era: Epoch) -> Result<Path, Malformed> {
    let path = take_path(input)?;
    let is_whole = path.last().is_some_and(|end| end.era == era && end.sequence < u64::MAX / 2);
    if is_whole { Ok(path) } else { Err(Malformed) }
}

fn put_places(out: &mut BytesMut, places: &[HashPosition]) {
    out.put_u32(places.len() as u32);
    places.iter().for_each(|place| out.put_uint(place.get(), PLACE_BYTES));
}

fn take_places(input: &mut &[u8], most: usize) -> Result<Vec<HashPosition>, Malformed> {
    let count = input.try_get_u32().map_err(|_| Malformed)? as usize;
    if count > most || input.len() / PLACE_BYTES < count {
        return Err(Malformed);
    }
    Ok((0..count).map(|_| HashPosition::new(input.get_uint(PLACE_BYTES))).collect())
}

fn put_services(out: &mut BytesMut, services: &[Service]) {
    out.put_u32(services.len() as u32);
    for Service { place, token } in services {
        out.put_uint(place.get(), PLACE_BYTES);
        [token.node, token.client, token.number].into_iter().for_each(|number| out.put_u64(number));
    }
}

fn take_services(input: &mut &[u8]) -> Result<Vec<Service>, Malformed> {
    let count = input.try_get_u32().map_err(|_| Malformed)? as usize;
    if count > SERVICES_MAX || input.len() / SERVICE_BYTES < count {
        return Err(Malformed);
    }
    let service = |_| {
        let place = HashPosition::new(input.get_uint(PLACE_BYTES));
        let (node, client) = (input.get_u64(), input.get_u64());
        Service { place, token: Token { node, client, number: input.get_u64() } }
    };
    Ok((0..count).map(service).collect())
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
        COMPARE => Body::Compare { question: u64_of(input)?, path: take_path(input)? },
        CHUNK => Body::Chunk {
            from: u64_of(input)?,
            to: u64_of(input)?,
            services: take_services(input)?,
            bytes: take_bytes(input)?,
        },
        PART => {
            let begins = input.try_get_u8().map_err(|_| Malformed)?;
            Body::Part { begins: begins != 0, bytes: take_bytes(input)? }
        }
        COMPLETE => Body::Complete { path: take_path_of(input, era)? },
        REPAIR => Body::Repair {
            from: take_position(input)?,
            common: take_position(input)?,
            path: take_path_of(input, era)?,
            steps: take_places(input, usize::MAX)?,
            ahead: take_places(input, AHEAD_MAX)?,
            services: take_services(input)?,
            bytes: take_bytes(input)?,
        },
        _ => return Err(Malformed),
    };
    Ok(Message { partition, era, body })
}

/// A replica's answer to a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The partition.
    pub partition: PartitionId,
    /// The era of the primary that asked.
    pub era: Epoch,
    /// Which question this answers.
    pub question: u64,
    /// `None` when the copy is incomplete, there is none, or too little is known of it.
    pub standing: Option<Standing>,
}

/// Where a copy stands, beside its primary's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Where it stands.
    pub position: Position,
    /// The last position on both paths.
    pub common: Position,
    /// Where the effects since then took place that only this copy has.
    pub ahead: Vec<HashPosition>,
}

/// Bytes of an answer to a comparison that has no standing.
const COMPARED_BYTES: usize = 19;

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
        out.put_u8(u8::from(answer.standing.is_some()));
        if let Some(Standing { position, common, ahead }) = &answer.standing {
            put_position(&mut out, *position);
            put_position(&mut out, *common);
            put_places(&mut out, ahead);
        }
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
    let mut compared = Vec::new();
    while !input.is_empty() {
        if input.len() < COMPARED_BYTES {
            return Err(Malformed);
        }
        let (partition, era, question) = (input.get_u16(), Epoch(input.get_u64()), input.get_u64());
        let standing = match input.get_u8() {
            0 => None,
            _ => Some(Standing {
                position: take_position(&mut input)?,
                common: take_position(&mut input)?,
                ahead: take_places(&mut input, AHEAD_MAX)?,
            }),
        };
        compared.push(Compared { partition, era, question, standing });
    }
    Ok((Acknowledged { small, large }, compared))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(era: u64, sequence: u64) -> Position {
        Position { era: Epoch(era), sequence }
    }

    fn service(place: u64) -> Service {
        let token = Token { node: u64::MAX, client: place, number: 3 };
        Service { place: HashPosition::new(place), token }
    }

    #[test]
    fn more_services_than_are_kept_are_refused() {
        let body =
            Body::Chunk { from: 1, to: 2, services: vec![service(1); SERVICES_MAX + 1], bytes: &b""[..] };
        let mut out = Rope::new();
        Message { partition: 7, era: Epoch(3), body }.encode(&mut out);
        assert_eq!(decode(&mut &out.into_bytes()[..]), Err(Malformed));
    }

    fn messages() -> Vec<Message<&'static [u8]>> {
        let at = |body| Message { partition: 7, era: Epoch(3), body };
        vec![
            at(Body::Effects { first: 9, count: 2, bytes: &b"effects"[..] }),
            at(Body::Passing { bytes: b"" }),
            at(Body::Compare { question: 5, path: Path::new() }),
            at(Body::Repair {
                from: position(2, 4),
                common: position(2, 3),
                path: [position(2, 3), position(3, 1)].into_iter().collect(),
                steps: vec![HashPosition::new(1 << 47)],
                ahead: vec![HashPosition::new(7), HashPosition::new(8)],
                services: vec![service(7), service(8)],
                bytes: b"states",
            }),
            at(Body::Chunk { from: 1, to: u64::MAX, services: vec![service(2)], bytes: b"chunk" }),
            at(Body::Part { begins: true, bytes: b"part" }),
            at(Body::Complete { path: [position(3, 11)].into_iter().collect() }),
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
            Compared { partition: 1, era: Epoch(2), question: 1, standing: None },
            Compared {
                partition: 3,
                era: Epoch(2),
                question: 2,
                standing: Some(Standing {
                    position: position(1, 5),
                    common: position(1, 4),
                    ahead: vec![HashPosition::START],
                }),
            },
        ];
        let acknowledged = Acknowledged { small: 9, large: 4 };
        let bytes = encode_answer(acknowledged, &compared);
        assert_eq!(decode_answer(&bytes), Ok((acknowledged, compared)));
        let whole = [16, 16 + COMPARED_BYTES, bytes.len()];
        for end in (0..bytes.len()).filter(|end| !whole.contains(end)) {
            assert_eq!(decode_answer(&bytes[..end]), Err(Malformed), "cut at {end}");
        }
    }

    #[test]
    fn paths_that_are_too_long_or_out_of_order_or_end_elsewhere_are_refused() {
        let refused = |path: Path| {
            let mut out = Rope::new();
            let message: Message<&[u8]> =
                Message { partition: 7, era: Epoch(3), body: Body::Complete { path } };
            message.encode(&mut out);
            assert_eq!(decode(&mut &out.into_bytes()[..]), Err(Malformed));
        };
        refused([position(2, 1), position(3, 1), position(3, 2)].into_iter().collect());
        refused((0..=PATH_MAX as u64).map(|era| position(era, 1)).collect());
        refused(Path::new());
        refused([position(2, 1)].into_iter().collect());
        refused([position(3, u64::MAX)].into_iter().collect());
    }
}
