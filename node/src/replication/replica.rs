//! What a copy does with its primary's messages.
//!
//! For: applying a stream to a partition, deterministically; refusing what does not fit.
//! Not here: sockets and waiting for the map (`session`).

use korum_protocol::id::{NodeId, Position};
use korum_protocol::map::Row;
use korum_protocol::rope::HELD_BYTES_MIN;

use super::effect::{Effect, EffectError};
use super::history::History;
use super::message::{AHEAD_MAX, Body, Compared, Message, Standing};
use crate::env::mistake::{Mistake, makes};
use crate::store::{Garbage, HashPosition, HashRange, Partition, Role, Source, StringRef, ValueRef};

/// Why a message was not applied. The link is given up: what it acknowledged would no longer mean
/// that it was applied.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// This node does not take that sender's messages in that era.
    #[error("partition {0} does not follow that primary in that era")]
    NotFollowing(u16),
    /// Effects are missing before these, or among them.
    #[error("partition {0} expects another sequence")]
    Gap(u16),
    /// It is not what the copy answered that is repaired.
    #[error("partition {0} does not stand where it is to be repaired")]
    Elsewhere(u16),
    /// The bytes are not effects.
    #[error(transparent)]
    Effect(#[from] EffectError),
}

/// Applies one message of `sender`; answers a comparison.
///
/// `source` is what the message's bytes are a part of.
///
/// `row` is the partition's in this node's map. A node that should hold the partition becomes a target
/// when its primary asks how far its copy has come. What an outdated primary says to a node that holds
/// nothing is passed over; its effects are refused by every holder, and its successor is one of them, so
/// it can acknowledge nothing. What the present primary says to a copy that it believes to follow, and that
/// does not, must not be acknowledged: the copy was given up in between.
///
/// # Errors
/// When the message does not fit what this copy knows.
pub fn receive(
    partition: &mut Partition,
    me: NodeId,
    sender: NodeId,
    row: &Row,
    message: &Message<&[u8]>,
    source: &Source,
    garbage: &mut Garbage,
) -> Result<Option<Compared>, Refused> {
    let Message { partition: id, era, body } = message;
    let is_primary = row.primary == Some(sender) && row.era == *era && partition.newest_era == *era;
    if (!is_primary || !partition.follows(sender, *era)) && !makes(Mistake::AnyEra) {
        let is_wanted = row.replica_set.contains(&me) || row.holders.contains(&me);
        match (body, &partition.role) {
            (Body::Effects { .. }, Role::Replica { .. } | Role::Primary(_)) => {
                return Err(Refused::NotFollowing(*id));
            }
            (Body::Compare { .. }, Role::Absent | Role::Target { .. }) if is_primary && is_wanted => {
                partition.role = Role::Target { primary: sender, era: *era };
            }
            // A stream that would be acknowledged and not applied.
            (_, Role::Absent | Role::Target { .. }) if is_primary && is_wanted => {
                return Err(Refused::NotFollowing(*id));
            }
            // Not wanted by this map, so the sender's answers do not depend on this copy.
            _ => return Ok(None),
        }
    }
    let Partition { keyspace, history, .. } = partition;
    match body {
        Body::Compare { question, path } => {
            keyspace.drop_arriving(garbage);
            let standing = standing(history, path);
            return Ok(Some(Compared { partition: *id, era: *era, question: *question, standing }));
        }
        Body::Effects { first, count, bytes } => {
            let next = history.position().filter(|position| position.era == *era);
            if next.map(|position| position.sequence + 1) != Some(*first) && !makes(Mistake::AnyEra) {
                return Err(Refused::Gap(*id));
            }
            let mut bytes = *bytes;
            for _ in 0..*count {
                history.step(keyspace.apply(&Effect::decode(&mut bytes)?, source, garbage));
            }
            if !bytes.is_empty() {
                return Err(Refused::Gap(*id));
            }
        }
        Body::Repair { from, common, path, steps, ahead, services, bytes } => {
            if history.position() != Some(*from) {
                return Err(Refused::Elsewhere(*id));
            }
            keyspace.apply_places(&in_order(steps, ahead), services, bytes, source, garbage)?;
            history.follow(*common, path, steps);
        }
        Body::Passing { bytes } => {
            history.forget();
            let mut bytes = *bytes;
            while !bytes.is_empty() {
                keyspace.apply(&Effect::decode(&mut bytes)?, source, garbage);
            }
        }
        Body::Chunk { from, to, services, bytes } => {
            history.forget();
            let range = HashRange { from: HashPosition::new(*from), until: HashPosition::new(*to) };
            keyspace.apply_chunk(range, services, bytes, source, garbage)?;
        }
        Body::Part { begins, bytes } => {
            history.forget();
            keyspace.apply_part(*begins, bytes, garbage)?;
        }
        Body::Complete { path } => history.replace(path),
    }
    Ok(None)
}

/// Where a copy stands beside its primary's path, if its backlog tells.
fn standing(history: &History, path: &[Position]) -> Option<Standing> {
    let common = history.common(path)?;
    let ahead = history.since(common)?;
    let ahead: Vec<_> = (ahead.len() <= AHEAD_MAX).then(|| ahead.collect())?;
    Some(Standing { position: history.position()?, common, ahead })
}

/// The places of both, in order, each once.
pub fn in_order(steps: &[HashPosition], ahead: &[HashPosition]) -> Vec<HashPosition> {
    let mut places = [steps, ahead].concat();
    places.sort_unstable();
    places.dedup();
    places
}

/// The strings of the effects in a message, as far as they can be read: the long ones among them may have to be
/// copied before the message is applied.
pub fn strings<'a>(message: &Message<&'a [u8]>) -> Vec<&'a [u8]> {
    let mut bytes = match message.body {
        Body::Effects { bytes, .. }
        | Body::Passing { bytes }
        | Body::Chunk { bytes, .. }
        | Body::Repair { bytes, .. } => bytes,
        // A collection copies its items.
        Body::Compare { .. } | Body::Complete { .. } | Body::Part { .. } => &[],
    };
    let mut strings = Vec::new();
    while let Ok(effect) = Effect::decode(&mut bytes) {
        if let Effect::Set { value: ValueRef::String(StringRef::Bytes(string)), .. } = effect
            && string.len() >= HELD_BYTES_MIN
        {
            strings.push(string);
        }
    }
    strings
}
