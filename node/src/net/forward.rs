//! Commands on their way to the node that serves them, and back.
//!
//! For: one ordered connection to each peer, on which the batches of all client connections travel.
//! Not here: what is forwarded and why (`dispatch`).
//! Next: `serve` is the other end.
//!
//! ```text
//! request  id u64 | caller 10 | requests, as RESP           (any number, one after the other)
//! reply    id u64 | first u32 | (status u8 | length u32 | reply)*     (for each request from the first on; in
//!                                                                     several frames when it is much)
//! told     requests, as RESP                 (that nobody answers)
//! waiting  id u64 | caller 10 | client u64 | number u64 | resumed u8 | one request, as RESP
//!                                          (of a command that waits; its reply comes when there is one)
//! cancel   id u64                          (of a command that waits: it shall not; its reply comes, or a null)
//! goodbye  (nothing)                        (the last frame of a node that leaves: what it has not answered by
//!                                           now it has not executed, and it can be sent elsewhere)
//! ```
//! A frame that is longer than a piece is cut, and small ones pass it; so the frames of one batch may arrive in any
//! order, and a batch whose order matters waits for the answers of what must come first.

mod serve;
mod waiting;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::peer::piece::{PIECE_BYTES, STREAMS_MAX};
use korum_protocol::rope::Rope;
use rand::RngExt;
use smallvec::SmallVec;
use tokio::sync::{Notify, oneshot};

use super::peer::{Backoff, Cutter, FrameReader, FrameWriter, PeerConnection, Purpose, dial};
use crate::dispatch::caller::CALLER_BYTES;
use crate::dispatch::{publish, track};
use crate::env::random::random;
use crate::node::Node;

pub use serve::serve;
pub use waiting::WaitingCall;

/// Frame kind: requests.
const REQUESTS: u8 = 1;
/// Frame kind: replies.
const REPLIES: u8 = 2;
/// Frame kind: all that is answered was answered.
const GOODBYE: u8 = 3;
/// Frame kind: requests that nobody answers.
const TOLD: u8 = 4;
/// Frame kind: a request that may wait.
const WAITING: u8 = 5;
/// Frame kind: a request that waits shall not any more.
const CANCEL: u8 = 6;
/// Unsent bytes at which a peer's connection takes no more: the batch waits and tries again.
const OUTBOX_BYTES_MAX: usize = 64 << 20;
/// Bytes of a frame of requests or replies, unless it carries a single longer one: it is not cut.
pub const FRAME_BYTES: usize = PIECE_BYTES;
/// Bytes at the front of a long reply that are kept apart from it: more than its headers have.
const REPLY_HEAD_BYTES: usize = 64;
/// Bytes before the requests of a frame.
pub const REQUEST_HEADER_BYTES: usize = 8 + CALLER_BYTES;
/// How long the answers of a node that is down in the map are waited for, after its connection is given up.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// How long a dial may take.
const DIAL_WAIT: Duration = Duration::from_secs(1);

/// What the other node says to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its reply.
    Reply(Rope),
    /// It did nothing: it is not the primary, or cannot serve now.
    NotExecuted,
    /// It cannot say whether the write is kept.
    Unknown,
}

/// Why there are no answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardError {
    /// Nothing was sent, or the other node said that it has not executed it.
    NotSent,
    /// It was sent, and the connection broke or time ran out.
    Unknown,
}

type Answers = Result<Vec<Answer>, ForwardError>;

/// A batch on its way.
pub struct Pending {
    receiver: Option<oneshot::Receiver<Answers>>,
}

impl Pending {
    /// Waits for the answers. Safe to drop.
    ///
    /// # Errors
    /// When there will be none.
    pub async fn wait(self) -> Answers {
        match self.receiver {
            None => Err(ForwardError::NotSent),
            Some(receiver) => receiver.await.unwrap_or(Err(ForwardError::Unknown)),
        }
    }
}

/// The forward connections to all peers.
#[derive(Default)]
pub struct Forwards {
    by_peer: RwLock<HashMap<NodeId, Arc<Channel>>>,
}

/// A batch that waits for its answers.
struct Waiting {
    missing: usize,
    answers: Vec<Option<Answer>>,
    sender: oneshot::Sender<Answers>,
}

/// One connection to one peer.
pub struct Channel {
    state: Mutex<State>,
    appended: Notify,
    ids: AtomicU64,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Bodies that are not yet taken by the writer, with the batch's id and the frame's kind.
    unsent: VecDeque<(u64, u8, Rope)>,
    /// Some of what was told found no room.
    has_lost: bool,
    /// Requests that nobody answers, in bodies of frames that are not cut.
    told: VecDeque<Rope>,
    unsent_bytes: usize,
    /// Bytes of large ones that the writer has taken and not yet written.
    large_bytes: usize,
    /// Who waits, by the batch's id.
    waiting: HashMap<u64, Waiting>,
    is_closed: bool,
}

impl Channel {
    fn new() -> Self {
        Self {
            state: Mutex::default(),
            appended: Notify::new(),
            ids: AtomicU64::new(1),
            is_closed: AtomicBool::new(false),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next body for the writer, which has `large_bytes` under way.
    fn take_unsent(&self, large_bytes: usize) -> Option<(u8, Rope)> {
        let mut state = self.state();
        state.large_bytes = large_bytes;
        let (_, kind, body) = state.unsent.pop_front()?;
        state.unsent_bytes -= body.len();
        Some((kind, body))
    }

    /// Appends a frame whose `count` answers are waited for; `None` if the connection takes no more.
    fn append(&self, id: u64, kind: u8, body: Rope, count: usize) -> Option<oneshot::Receiver<Answers>> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            if state.is_closed || state.unsent_bytes + state.large_bytes > OUTBOX_BYTES_MAX {
                return None;
            }
            state.unsent_bytes += body.len();
            state.unsent.push_back((id, kind, body));
            state.waiting.insert(id, Waiting { missing: count, answers: vec![None; count], sender });
        }
        self.appended.notify_one();
        Some(receiver)
    }

    /// The next body of what nobody answers.
    fn take_told(&self) -> Option<Rope> {
        let mut state = self.state();
        let Some(body) = state.told.pop_front() else {
            // Whatever was lost, caches are told to trust nothing.
            return std::mem::take(&mut state.has_lost).then(track::everything);
        };
        state.unsent_bytes -= body.len();
        Some(body)
    }

    fn tell(&self, requests: &Rope) {
        let mut state = self.state();
        let waiting = state.unsent_bytes + state.large_bytes;
        if state.is_closed {
            return;
        }
        if waiting + requests.len() > OUTBOX_BYTES_MAX {
            state.has_lost = true;
            return;
        }
        state.unsent_bytes += requests.len();
        match state.told.back_mut() {
            Some(last) if last.len() + requests.len() <= FRAME_BYTES => last.append(requests),
            _ => state.told.push_back(requests.clone()),
        }
        drop(state);
        self.appended.notify_one();
    }

    /// The peer has executed nothing of what it has not answered.
    fn hand_back(&self) {
        let mut state = self.state();
        for (_, waiting) in state.waiting.drain() {
            let _ = waiting.sender.send(Err(ForwardError::NotSent));
        }
    }

    /// Takes nothing more; what was not taken for writing is handed back.
    fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        self.is_closed.store(true, Ordering::Release);
        let unsent: Vec<(u64, u8)> = state.unsent.drain(..).map(|(id, kind, _)| (id, kind)).collect();
        for (id, _) in unsent.into_iter().filter(|(_, kind)| *kind != CANCEL) {
            if let Some(waiting) = state.waiting.remove(&id) {
                let _ = waiting.sender.send(Err(ForwardError::NotSent));
            }
        }
        state.told.clear();
    }

    /// Dropping those who wait tells them that the outcome is unknown.
    fn give_up(&self) {
        self.state().waiting.clear();
    }
}

impl Forwards {
    /// Sends a batch of `count` requests of one kind of caller (`Caller::to_bytes`); never waits.
    #[must_use]
    pub fn send(&self, target: NodeId, caller: [u8; CALLER_BYTES], requests: &Rope, count: usize) -> Pending {
        let Some(channel) = self.channel(target) else { return Pending { receiver: None } };
        let id = channel.ids.fetch_add(1, Ordering::Relaxed);
        let mut body = Rope::new();
        body.copied_mut().put_u64(id);
        body.copied_mut().put_slice(&caller);
        body.append(requests);
        Pending { receiver: channel.append(id, REQUESTS, body, count) }
    }

    fn channel(&self, target: NodeId) -> Option<Arc<Channel>> {
        self.by_peer.read().unwrap_or_else(PoisonError::into_inner).get(&target).cloned()
    }

    /// Sends requests that nobody answers to all peers that are connected; never waits. What does not find room is lost.
    pub fn tell_all(&self, requests: &Rope) {
        let channels = self.by_peer.read().unwrap_or_else(PoisonError::into_inner);
        channels.values().for_each(|channel| channel.tell(requests));
    }

    /// The same for one peer.
    pub fn tell(&self, peer: NodeId, requests: &Rope) {
        let channels = self.by_peer.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(&peer) {
            channel.tell(requests);
        }
    }

    fn open(&self, peer: NodeId) -> Arc<Channel> {
        let channel = Arc::new(Channel::new());
        self.by_peer.write().unwrap_or_else(PoisonError::into_inner).insert(peer, Arc::clone(&channel));
        channel
    }

    fn close(&self, peer: NodeId, channel: &Arc<Channel>) {
        let mut channels = self.by_peer.write().unwrap_or_else(PoisonError::into_inner);
        if channels.get(&peer).is_some_and(|present| Arc::ptr_eq(present, channel)) {
            channels.remove(&peer);
        }
        drop(channels);
        channel.close();
    }
}

/// Keeps a forward connection to one run of a peer for as long as the map shows that run up.
pub async fn keep_forward(node: Arc<Node>, peer: NodeId, incarnation: Incarnation) {
    let mut backoff = Backoff::default();
    while let Some(address) = node.peer_address(peer, incarnation) {
        let mut opened = None;
        match dial(node.local_peer(), &address, Some(peer), Purpose::Forward, DIAL_WAIT).await {
            Ok(PeerConnection { mut reader, mut writer, peer: found })
                if found.incarnation == incarnation =>
            {
                opened = Some(node.clock().now());
                let channel = node.forwards().open(peer);
                publish::tell_events(&node, Some(peer));
                track::greet(&node, peer);
                node.notify_changed();
                let mut replies = std::pin::pin!(read_replies(&channel, &mut reader));
                let has_ended = tokio::select! {
                    _ = write_requests(&node, &channel, &mut writer) => false,
                    _ = &mut replies => true,
                    () = node.until_gone(peer, incarnation) => false,
                };
                node.forwards().close(peer, &channel);
                // A node that leaves is down in the map before its last answers and its goodbye are here.
                if !has_ended {
                    let _ = tokio::time::timeout(LAST_WORDS, replies).await;
                }
                channel.give_up();
                node.suspect(peer, incarnation);
            }
            Ok(_) => {}
            Err(_) => node.suspect(peer, incarnation),
        }
        tokio::time::sleep(backoff.ended(opened, node.clock().now(), random().random())).await;
    }
}

async fn write_requests(
    node: &Node,
    channel: &Channel,
    writer: &mut FrameWriter,
) -> Result<(), super::peer::PeerError> {
    let mut large = Cutter::new(STREAMS_MAX);
    loop {
        let mut is_idle = true;
        while let Some((kind, body)) = channel.take_unsent(large.pending_bytes()) {
            is_idle = false;
            write_or_add(kind, body, writer, &mut large).await?;
        }
        while let Some(body) = channel.take_told() {
            is_idle = false;
            write_or_add(TOLD, body, writer, &mut large).await?;
        }
        if !write_piece(node, writer, &mut large).await? && is_idle {
            channel.appended.notified().await;
        }
    }
}

/// Writes a small frame, keeps a large one for its turn.
async fn write_or_add(
    kind: u8,
    mut body: Rope,
    writer: &mut FrameWriter,
    large: &mut Cutter,
) -> Result<(), super::peer::PeerError> {
    let is_large = body.len() > PIECE_BYTES;
    let pieces = body.take_pieces();
    if is_large {
        large.add(kind, pieces);
        return Ok(());
    }
    let slices: SmallVec<[&[u8]; 4]> = pieces.iter().map(|piece| &piece[..]).collect();
    writer.write_parts(kind, &slices).await
}

/// Writes a piece of what is large and flushes. False if nothing was large.
async fn write_piece(
    node: &Node,
    writer: &mut FrameWriter,
    large: &mut Cutter,
) -> Result<bool, super::peer::PeerError> {
    let (count, garbage) = large.write_piece(writer).await?;
    writer.flush().await?;
    node.discard(garbage);
    if count > 0 {
        tokio::task::yield_now().await;
    }
    Ok(count > 0)
}

async fn read_replies(channel: &Channel, reader: &mut FrameReader) -> Result<(), String> {
    while let Some(frame) = reader.read().await.map_err(|error| error.to_string())? {
        if frame.kind == GOODBYE {
            channel.hand_back();
            return Ok(());
        }
        let mut body = frame.body;
        let id = body.try_get_u64().map_err(|error| error.to_string())?;
        let first = body.try_get_u32().map_err(|error| error.to_string())? as usize;
        let answers = decode_answers(body).ok_or("malformed replies")?;
        let mut state = channel.state();
        // A batch whose deadline has passed still gets its answers here, and nobody hears them.
        let Some(waiting) = state.waiting.get_mut(&id) else { continue };
        let until = first.checked_add(answers.len());
        let places = until.and_then(|until| waiting.answers.get_mut(first..until));
        let places = places.ok_or("more replies than requests")?;
        for (place, answer) in places.iter_mut().zip(answers) {
            waiting.missing -= usize::from(place.is_none());
            *place = Some(answer);
        }
        if waiting.missing == 0
            && let Some(done) = state.waiting.remove(&id)
        {
            let _ = done.sender.send(Ok(done.answers.into_iter().flatten().collect()));
        }
    }
    Ok(())
}

fn decode_answers(mut body: Bytes) -> Option<Vec<Answer>> {
    let mut answers = Vec::new();
    while body.has_remaining() {
        let status = body.try_get_u8().ok()?;
        let length = body.try_get_u32().ok()? as usize;
        if body.len() < length {
            return None;
        }
        let mut bytes = body.split_to(length);
        let mut reply = Rope::new();
        // Copied, so that it can be looked at.
        reply.extend_from_slice(&bytes.split_to(length.min(REPLY_HEAD_BYTES)));
        reply.push(bytes);
        answers.push(match status {
            0 => Answer::Reply(reply),
            1 => Answer::NotExecuted,
            2 => Answer::Unknown,
            _ => return None,
        });
    }
    Some(answers)
}

/// The bodies of the frames that carry these answers: each of at most [`FRAME_BYTES`], or of one reply.
fn encode_answers(id: u64, answers: &[Answer]) -> Vec<Rope> {
    let begin = |first: usize| {
        let mut out = Rope::new();
        out.copied_mut().put_u64(id);
        out.copied_mut().put_u32(first as u32);
        out
    };
    let mut bodies = Vec::with_capacity(1);
    let mut out = begin(0);
    let empty = Rope::new();
    let mut is_fresh = true;
    for (at, answer) in answers.iter().enumerate() {
        let (status, reply): (u8, &Rope) = match answer {
            Answer::Reply(reply) => (0, reply),
            Answer::NotExecuted => (1, &empty),
            Answer::Unknown => (2, &empty),
        };
        if !is_fresh && out.len() + reply.len() + 5 > FRAME_BYTES {
            bodies.push(std::mem::replace(&mut out, begin(at)));
        }
        is_fresh = false;
        out.copied_mut().put_u8(status);
        out.copied_mut().put_u32(u32::try_from(reply.len()).expect("replies are under 4 GiB"));
        out.append(reply);
    }
    bodies.push(out);
    bodies
}
