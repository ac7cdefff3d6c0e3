//! What a primary knows of its partition's other copies, and when it may answer.
//!
//! For: sequencing effects, feeding the copies, and saying which acknowledgements an answer waits for.
//! Pure but for appending to links, which never waits.
//! Not here: locks, sockets, proposals (`rebalance`), role changes (`transition`).
//!
//! ```text
//! Unlinked ──link──▶ Comparing ──known──▶ Behind ──repaired──────────▶ Live
//!    ▲                   │                  └──too far──┐              ▲
//!    │                   └──────unknown───────────▶ Streaming ─────────┘
//!    └──────────────── link broke (from any stage) ─────────────────────
//! ```

use std::sync::Arc;

use korum_protocol::id::{Epoch, Incarnation, NodeId};
use korum_protocol::map::PartitionId;
use korum_protocol::rope::Rope;
use smallvec::SmallVec;

use super::effect::{Effect, Effects};
use super::history::History;
use super::link::{Lane, Link, Place};
use super::message::{Body, Compared, Message, SERVICE_BYTES, Standing};
use super::replica::in_order;
pub use super::waits::{Settlement, Waits};
use crate::dispatch::blocking::park::Waiter;
use crate::env::mistake::{Mistake, makes};
use crate::store::parts::PartsId;
use crate::store::served::Service;
use crate::store::waiting::Waiting;
use crate::store::{HashPosition, Keyspace};

/// Bytes of one chunk: read under the partition's lock in well under a millisecond.
pub const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of states beyond which a copy is streamed instead of repaired: a repair is read, sent and applied as a
/// whole, in about a millisecond.
const REPAIR_BYTES_MAX: usize = 1 << 20;
/// The same, for the effects that a copy lacks.
const REPAIR_STEPS_MAX: usize = 8192;

/// A primary's side of one partition.
pub struct Primary {
    /// The epoch at which this node became primary.
    pub era: Epoch,
    /// A cutover that ends this node's primacy is being proposed, in this membership epoch: requests
    /// wait for its outcome.
    pub frozen: Option<Epoch>,
    /// The membership epoch of the map that this was last brought in line with.
    pub membership_epoch: Epoch,
    /// The other copies: all other holders, and the nodes that catch up.
    pub copies: SmallVec<[PeerCopy; 2]>,
    /// Commands that wait for something to come. They are handed back when this ends.
    pub waiting: Waiting<Waiter>,
}

/// Another node's copy, as its primary sees it.
pub struct PeerCopy {
    /// Whose.
    pub node: NodeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    /// Is a holder, by the map that this was last brought in line with.
    pub is_holder: bool,
    /// Answers wait for its acknowledgements: it is a holder, or was proposed as one.
    pub is_required: bool,
    /// Proposed as a holder in this membership epoch; the outcome is open.
    pub proposed: Option<Epoch>,
    /// Everything that was ever to be acknowledged by it was, before the link broke.
    pub is_clean: bool,
    /// How far it is.
    pub stage: Stage,
}

/// How far another copy is.
pub enum Stage {
    /// There is no connection.
    Unlinked,
    /// Asked how far its copy has come.
    Comparing {
        /// The connection.
        link: Arc<Link>,
        /// The question that is open.
        question: u64,
    },
    /// Has answered, and waits to be brought up to date.
    Behind {
        /// The connection.
        link: Arc<Link>,
        /// What it answered.
        standing: Standing,
    },
    /// Is being streamed; entries before `next` are there.
    Streaming {
        /// The connection.
        link: Arc<Link>,
        /// Where the next chunk starts.
        next: HashPosition,
        /// The large collection that stands there, while it is sent in parts.
        parts: Option<PartsId>,
    },
    /// Gets every effect in order.
    Live {
        /// The connection.
        link: Arc<Link>,
        /// Position on the link of the message that completed the copy.
        completed: Place,
        /// Position on the link of the last message about this partition.
        sent: Place,
    },
}

/// What a chunk or a repair had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What it was.
    pub what: Piece,
    /// Bytes.
    pub bytes: usize,
    /// Keys.
    pub keys: u64,
    /// Its place on the copy's link.
    pub place: Place,
}

/// What is sent to a copy that is not in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// All that it lacks.
    Repair,
    /// The first chunk of a stream.
    FirstChunk,
    /// Another chunk.
    NextChunk,
    /// A part of a large collection.
    Part,
}

/// May a request be executed now?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Yes.
    Ready,
    /// Not before a copy has agreed, a link has drained or a cutover has an outcome.
    Wait,
}

impl PeerCopy {
    /// A copy of which nothing is known yet, on the link to its node if there is one.
    pub fn new(node: NodeId, incarnation: Incarnation, is_holder: bool) -> Self {
        Self {
            node,
            incarnation,
            is_holder,
            is_required: is_holder,
            proposed: None,
            is_clean: false,
            stage: Stage::Unlinked,
        }
    }

    /// The link in use.
    #[must_use]
    pub fn link(&self) -> Option<&Arc<Link>> {
        match &self.stage {
            Stage::Unlinked => None,
            Stage::Comparing { link, .. }
            | Stage::Behind { link, .. }
            | Stage::Streaming { link, .. }
            | Stage::Live { link, .. } => Some(link),
        }
    }

    /// The large collection that is being sent to it in parts.
    fn parts(&self) -> Option<PartsId> {
        if let Stage::Streaming { parts, .. } = &self.stage { *parts } else { None }
    }

    /// Everything sent was acknowledged.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        matches!(&self.stage, Stage::Live { link, sent, .. } if link.has_acknowledged(*sent))
    }

    /// The peer has said that its copy is complete, and it is connected.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(&self.stage, Stage::Live { link, completed, .. }
            if !link.is_broken() && link.has_acknowledged(*completed))
            || makes(Mistake::EarlyHolder) && matches!(&self.stage, Stage::Streaming { .. })
    }

    /// It waits for what [`Primary::catch_up`] sends.
    #[must_use]
    pub fn is_catching_up(&self) -> bool {
        matches!(self.stage, Stage::Behind { .. } | Stage::Streaming { .. })
    }

    /// Takes a fresh connection: asks how far the copy has come, beside this one's `history`.
    pub fn connect(&mut self, partition: PartitionId, era: Epoch, history: &History, link: &Arc<Link>) {
        self.unlink();
        let question = link.next_question();
        let body = Body::Compare { question, path: history.path().into() };
        link.append(&Message { partition, era, body });
        self.stage = Stage::Comparing { link: Arc::clone(link), question };
    }

    /// Asks again, on the same connection.
    pub fn ask_again(&mut self, partition: PartitionId, era: Epoch, history: &History) {
        match self.link().filter(|link| !link.is_broken()).cloned() {
            Some(link) => self.connect(partition, era, history, &link),
            None => self.unlink(),
        }
    }

    /// Everything was sent, with the message at `sent`: from now on the copy gets every effect.
    fn goes_live(&mut self, link: Arc<Link>, sent: Place) {
        self.is_clean = false;
        self.stage = Stage::Live { link, completed: sent, sent };
    }

    /// The connection is gone.
    pub fn unlink(&mut self) {
        match &self.stage {
            Stage::Unlinked => {}
            Stage::Live { link, sent, .. } => {
                self.is_clean = link.has_acknowledged(*sent);
                self.stage = Stage::Unlinked;
            }
            // Nothing was executed since the last time it was known to be clean: requests waited.
            Stage::Comparing { .. } | Stage::Behind { .. } | Stage::Streaming { .. } => {
                self.stage = Stage::Unlinked;
            }
        }
    }
}

impl Primary {
    /// A primary of `era`, with no other copies yet.
    #[must_use]
    pub fn new(era: Epoch) -> Self {
        let membership_epoch = Epoch(0);
        Self { era, frozen: None, membership_epoch, copies: SmallVec::new(), waiting: Waiting::default() }
    }

    /// May a command be executed now? Writes need every required copy in step, with room on its link;
    /// reads need to know that nothing unacknowledged can be seen, or what to wait for.
    #[must_use]
    pub fn admits(&self, is_write: bool) -> Admission {
        let is_ready = |copy: &PeerCopy| match &copy.stage {
            Stage::Live { link, sent, .. } if !link.is_broken() => {
                !is_write || !link.is_full(link.lane_after(*sent))
            }
            Stage::Live { link, sent, .. } => !is_write && link.has_acknowledged(*sent),
            Stage::Unlinked | Stage::Comparing { .. } | Stage::Behind { .. } | Stage::Streaming { .. } => {
                !is_write && copy.is_clean
            }
        };
        if self.frozen.is_none() && self.copies.iter().all(|copy| !copy.is_required || is_ready(copy)) {
            Admission::Ready
        } else {
            Admission::Wait
        }
    }

    /// Is there room for a large write on every copy's link?
    #[must_use]
    pub fn admits_large(&self) -> bool {
        self.copies
            .iter()
            .filter_map(PeerCopy::link)
            .all(|link| link.is_broken() || !link.is_full(Lane::Large))
    }

    /// Numbers the effects of one command and sends them to the copies. Called under the lock under
    /// which they were made.
    pub fn replicate(
        &mut self,
        partition: PartitionId,
        history: &mut History,
        keyspace: &mut Keyspace,
        effects: &Effects,
    ) {
        let (era, first) = (self.era, history.sequence() + 1);
        effects.places().for_each(|place| history.step(place));
        for copy in &mut self.copies {
            match &mut copy.stage {
                Stage::Live { link, sent, .. } => {
                    let body = Body::Effects { first, count: effects.count() as u32, bytes: effects.rope() };
                    *sent = link.append(&Message { partition, era, body });
                }
                Stage::Streaming { link, next, parts } => {
                    let mut passing = Rope::new();
                    for (at, part) in effects.iter() {
                        let is_forgotten =
                            makes(Mistake::ForgottenDelete) && Effect::is_delete(part.copied());
                        if at.is_none_or(|at| at < *next) && !is_forgotten {
                            passing.append(&part);
                        }
                    }
                    if !passing.is_empty() {
                        let body = Body::Passing { bytes: &passing };
                        link.append(&Message { partition, era, body });
                    }
                    if let Some(changes) = parts.and_then(|id| keyspace.take_part_changes(id)) {
                        let body = Body::Part { begins: false, bytes: &changes };
                        link.append(&Message { partition, era, body });
                    }
                }
                Stage::Unlinked | Stage::Comparing { .. } | Stage::Behind { .. } => {}
            }
        }
        keyspace.keep_parts(|id| self.copies.iter().any(|copy| copy.parts() == Some(id)));
    }

    /// Are there copies that want to hear of effects at all?
    #[must_use]
    pub fn is_followed(&self) -> bool {
        !self.copies.is_empty()
    }

    /// What an answer that saw the present content has to wait for; adds it to `waits`.
    pub fn settlement(&self, waits: &mut Waits) -> Settlement {
        let mut settlement = Settlement::Done;
        if makes(Mistake::AnswerBeforeCopies) {
            return settlement;
        }
        for copy in self.copies.iter().filter(|copy| copy.is_required) {
            match &copy.stage {
                Stage::Live { link, sent, .. } if link.has_acknowledged(*sent) => {}
                Stage::Live { link, sent, .. } if !link.is_broken() => {
                    waits.add(link, *sent);
                    settlement = settlement.worse(Settlement::Acknowledgements);
                }
                Stage::Unlinked
                | Stage::Comparing { .. }
                | Stage::Behind { .. }
                | Stage::Streaming { .. }
                    if copy.is_clean || makes(Mistake::EarlyHolder) => {}
                Stage::Unlinked
                | Stage::Comparing { .. }
                | Stage::Behind { .. }
                | Stage::Streaming { .. }
                | Stage::Live { .. } => {
                    settlement = Settlement::Agreement;
                    waits.add_open();
                }
            }
        }
        settlement
    }

    /// Before a cutover is proposed that makes a copy a holder, or only puts the holders in order: from now
    /// on answers wait for it, and if the cutover ends this primacy, requests wait for the outcome.
    pub fn offer(&mut self, node: NodeId, membership_epoch: Epoch, offer: Offer) -> Offered {
        if self.membership_epoch != membership_epoch {
            return Offered::No;
        }
        let Some(copy) = self.copies.iter_mut().find(|copy| copy.node == node) else { return Offered::No };
        let is_open = copy.proposed == Some(membership_epoch);
        if !is_open && !copy.is_complete() && !offer.already_holds {
            return Offered::No;
        }
        copy.is_required = true;
        copy.proposed = Some(membership_epoch);
        if offer.ends_my_primacy && !makes(Mistake::NoFreeze) {
            self.frozen = Some(membership_epoch);
        }
        if is_open { Offered::Again } else { Offered::First }
    }

    /// A proposal is decided, or was never made: a copy that it did not make a holder is not waited for
    /// any more, and requests go on unless another proposal is open.
    pub fn withdraw(&mut self, node: NodeId, membership_epoch: Epoch) {
        let of_now = |copy: &&mut PeerCopy| copy.node == node && copy.proposed == Some(membership_epoch);
        if let Some(copy) = self.copies.iter_mut().find(of_now) {
            copy.proposed = None;
            copy.is_required = copy.is_holder;
            if let Some(link) = copy.link() {
                link.recheck();
            }
        }
        self.thaw();
    }

    /// Requests go on when no proposal is open whose outcome they could wait for.
    pub fn thaw(&mut self) {
        if self.copies.iter().all(|copy| copy.proposed.is_none()) {
            self.frozen = None;
        }
    }

    /// A copy answered how far it has come. True if it is to be brought up to date now, because answers wait for it.
    #[must_use]
    pub fn compared(&mut self, node: NodeId, on: &Arc<Link>, answer: Compared) -> bool {
        let Some(copy) = self.copies.iter_mut().find(|copy| copy.node == node) else { return false };
        match &copy.stage {
            Stage::Comparing { link, question } if Arc::ptr_eq(link, on) && *question == answer.question => {
                let link = Arc::clone(on);
                copy.stage = match answer.standing {
                    Some(standing) => Stage::Behind { link, standing },
                    None => Stage::Streaming { link, next: HashPosition::START, parts: None },
                };
                copy.is_required
            }
            // An answer of an earlier question.
            Stage::Unlinked
            | Stage::Comparing { .. }
            | Stage::Behind { .. }
            | Stage::Streaming { .. }
            | Stage::Live { .. } => false,
        }
    }

    /// Sends a copy that is not in step all that it lacks, or, if that is too much or not known, the next chunk of
    /// a stream. `None`, with nothing sent, when the copy is not waiting for anything (any more).
    pub fn catch_up(
        &mut self,
        partition: PartitionId,
        history: &History,
        keyspace: &mut Keyspace,
        node: NodeId,
        chunk_bytes: usize,
    ) -> Option<Sent> {
        let era = self.era;
        let copy = self.copies.iter_mut().find(|copy| copy.node == node)?;
        let link = Arc::clone(copy.link().filter(|link| !link.is_broken())?);
        if let Stage::Behind { standing, .. } = &mut copy.stage {
            let mut states = Rope::new();
            if let Some((body, keys)) = repair(history, keyspace, standing, &mut states) {
                let place = link.append(&Message { partition, era, body });
                copy.goes_live(link, place);
                return Some(Sent { what: Piece::Repair, bytes: states.len(), keys, place });
            }
            let next = HashPosition::START;
            copy.stage = Stage::Streaming { link: Arc::clone(&link), next, parts: None };
        }
        let Stage::Streaming { next, parts, .. } = &mut copy.stage else { return None };
        let is_first = *next == HashPosition::START && parts.is_none();
        // What was being sent in parts may be gone.
        *parts = parts.filter(|&id| keyspace.has_parts(id));
        let begins = parts.is_none();
        if begins {
            *parts = keyspace.begin_parts(*next, chunk_bytes);
        }
        let what = match (is_first, *parts) {
            (true, _) => Piece::FirstChunk,
            (false, None) => Piece::NextChunk,
            (false, Some(_)) => Piece::Part,
        };
        let (mut entries, mut part) = (Rope::new(), Rope::new());
        let chunk = match *parts {
            None => keyspace.read_chunk(*next, chunk_bytes, &mut entries),
            Some(id) => {
                let is_last = keyspace.read_part(id, chunk_bytes, &mut part)?;
                let body = Body::Part { begins, bytes: &part };
                let place = link.append(&Message { partition, era, body });
                if !is_last {
                    return Some(Sent { what, bytes: part.len(), keys: 0, place });
                }
                *parts = None;
                keyspace.read_parted(*next, id, &mut entries)
            }
        };
        let services = told(keyspace.served.within(chunk.range));
        let bytes = part.len() + entries.len() + SERVICE_BYTES * services.len();
        let (from, to) = (chunk.range.from.get(), chunk.range.until.get());
        let body = Body::Chunk { from, to, services, bytes: &entries };
        let place = link.append(&Message { partition, era, body });
        match chunk.next {
            Some(after) => *next = after,
            None => {
                let body = Body::Complete { path: history.path().into() };
                let sent = link.append(&Message { partition, era, body });
                copy.goes_live(link, sent);
            }
        }
        Some(Sent { what, bytes, keys: u64::from(chunk.entries), place })
    }
}

/// What brings a copy from where it stands to where this one stands, its states in `states`, and their number;
/// `None` where the backlog does not reach back, or they are too many.
fn repair<'a>(
    history: &History,
    keyspace: &mut Keyspace,
    standing: &mut Standing,
    states: &'a mut Rope,
) -> Option<(Body<&'a Rope>, u64)> {
    let steps = history.since(standing.common).filter(|steps| steps.len() <= REPAIR_STEPS_MAX)?;
    let steps: Vec<HashPosition> = steps.collect();
    let places = in_order(&steps, &standing.ahead);
    let keys = keyspace.read_places(&places, REPAIR_BYTES_MAX, states)?;
    let services = told(keyspace.served.at(&places));
    let body = Body::Repair {
        from: standing.position,
        common: standing.common,
        path: history.path().into(),
        steps,
        ahead: std::mem::take(&mut standing.ahead),
        services,
        bytes: &*states,
    };
    Some((body, keys))
}

/// What is told of the commands that were served.
fn told(services: Vec<Service>) -> Vec<Service> {
    if makes(Mistake::ForgottenServices) { Vec::new() } else { services }
}

/// What a cutover would do, beside making its target a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The target is a holder already: only the order changes.
    pub already_holds: bool,
    /// This node will not be the primary after it.
    pub ends_my_primacy: bool,
}

/// May a cutover be proposed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// No: the copy is not complete, or the map has moved on.
    No,
    /// Yes, once everything is acknowledged.
    First,
    /// The same was proposed already, and its outcome is open: proposing it again adds nothing to what may
    /// happen, and settles it.
    Again,
}
