//! Commands on their way to the node that serves them, and back.
//!
//! For: one ordered connection to each peer, on which the batches of all client connections travel.
//! Not here: what is forwarded and why (`dispatch`).
//!
//! ```text
//! request  id u64 | caller u8 | requests, as RESP           (any number, one after the other)
//! reply    id u64 | (status u8 | length u32 | reply)*       (for each request, in order; in several
//!                                                           frames when it is much)
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use tokio::sync::{Notify, oneshot};

use super::peer::{FrameReader, FrameWriter, PeerConnection, Purpose, dial};
use crate::dispatch::{Batch, Caller};
use crate::env::random::random;
use crate::node::Node;

/// Frame kind: requests.
const REQUESTS: u8 = 1;
/// Frame kind: replies.
const REPLIES: u8 = 2;
/// Unsent bytes at which a peer's connection takes no more: the batch waits and tries again.
const OUTBOX_BYTES_MAX: usize = 64 << 20;
/// Batches that one peer may have waiting here for acknowledgements.
const WAITING_MAX: usize = 4096;
/// Bytes of replies after which a new frame begins: far below the limit of a frame, far above a header.
const REPLY_FRAME_BYTES: usize = 1 << 20;
/// Bytes of replies after which the rest of a batch is handed back, to be sent again: what one batch may hold here.
const REPLIES_BYTES_MAX: usize = 16 << 20;
/// How long a dial may take.
const DIAL_WAIT: Duration = Duration::from_secs(1);
/// First and longest pause between dials.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// What the other node says to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its reply.
    Reply(Bytes),
    /// It did nothing: it is not the primary, or cannot serve now.
    NotExecuted,
    /// It cannot say whether the write is kept.
    Unknown,
}

/// Why there are no answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardError {
    /// Nothing was sent.
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
    count: usize,
    answers: Vec<Answer>,
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
    /// Framed bodies that are not yet taken by the writer.
    unsent: Vec<(u64, BytesMut)>,
    unsent_bytes: usize,
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

    fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        self.is_closed.store(true, Ordering::Release);
        let unsent: Vec<u64> = state.unsent.drain(..).map(|(id, _)| id).collect();
        for id in unsent {
            if let Some(waiting) = state.waiting.remove(&id) {
                let _ = waiting.sender.send(Err(ForwardError::NotSent));
            }
        }
        // Dropping the rest tells them that the outcome is unknown.
        state.waiting.clear();
    }
}

impl Forwards {
    /// Sends a batch of `count` requests of one kind of caller (`Caller::to_byte`); never waits.
    #[must_use]
    pub fn send(&self, target: NodeId, caller: u8, requests: Bytes, count: usize) -> Pending {
        let channel = self.by_peer.read().unwrap_or_else(PoisonError::into_inner).get(&target).cloned();
        let Some(channel) = channel else { return Pending { receiver: None } };
        let id = channel.ids.fetch_add(1, Ordering::Relaxed);
        let mut body = BytesMut::with_capacity(9 + requests.len());
        body.put_u64(id);
        body.put_u8(caller);
        body.put_slice(&requests);
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = channel.state();
            if state.is_closed || state.unsent_bytes > OUTBOX_BYTES_MAX {
                return Pending { receiver: None };
            }
            state.unsent_bytes += body.len();
            state.unsent.push((id, body));
            state.waiting.insert(id, Waiting { count, answers: Vec::with_capacity(count), sender });
        }
        channel.appended.notify_one();
        Pending { receiver: Some(receiver) }
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
    let mut pause = RETRY_PAUSE;
    while let Some(address) = node.peer_address(peer, incarnation) {
        match dial(node.local_peer(), &address, Some(peer), Purpose::Forward, DIAL_WAIT).await {
            Ok(PeerConnection { mut reader, mut writer, peer: found })
                if found.incarnation == incarnation =>
            {
                pause = RETRY_PAUSE;
                let channel = node.forwards().open(peer);
                node.notify_changed();
                tokio::select! {
                    result = write_requests(&channel, &mut writer) => drop(result),
                    result = read_replies(&channel, &mut reader) => drop(result),
                    () = node.until_gone(peer, incarnation) => {}
                }
                node.forwards().close(peer, &channel);
                node.suspect(peer, incarnation);
            }
            Ok(_) => {}
            Err(_) => node.suspect(peer, incarnation),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_PAUSE_MAX);
    }
}

async fn write_requests(channel: &Channel, writer: &mut FrameWriter) -> Result<(), super::peer::PeerError> {
    loop {
        let unsent = {
            let mut state = channel.state();
            state.unsent_bytes = 0;
            std::mem::take(&mut state.unsent)
        };
        if unsent.is_empty() {
            channel.appended.notified().await;
            continue;
        }
        for (_, body) in unsent {
            writer.write(REQUESTS, &body).await?;
        }
        writer.flush().await?;
    }
}

async fn read_replies(channel: &Channel, reader: &mut FrameReader) -> Result<(), String> {
    while let Some(frame) = reader.read().await.map_err(|error| error.to_string())? {
        let mut body = frame.body;
        let id = body.try_get_u64().map_err(|error| error.to_string())?;
        let answers = decode_answers(body).ok_or("malformed replies")?;
        let mut state = channel.state();
        // A batch whose deadline has passed still gets its answers here, and nobody hears them.
        let Some(waiting) = state.waiting.get_mut(&id) else { continue };
        waiting.answers.extend(answers);
        if waiting.answers.len() > waiting.count {
            return Err("more replies than requests".into());
        }
        if waiting.answers.len() == waiting.count
            && let Some(done) = state.waiting.remove(&id)
        {
            let _ = done.sender.send(Ok(done.answers));
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
        let reply = body.split_to(length);
        answers.push(match status {
            0 => Answer::Reply(reply),
            1 => Answer::NotExecuted,
            2 => Answer::Unknown,
            _ => return None,
        });
    }
    Some(answers)
}

/// The bodies of the frames that carry these answers: each below [`REPLY_FRAME_BYTES`] or of one reply.
fn encode_answers(id: u64, answers: &[Answer]) -> Vec<BytesMut> {
    let mut bodies = Vec::with_capacity(1);
    let mut out = BytesMut::new();
    out.put_u64(id);
    for answer in answers {
        if out.len() >= REPLY_FRAME_BYTES {
            bodies.push(std::mem::take(&mut out));
            out.put_u64(id);
        }
        let (status, reply): (u8, &[u8]) = match answer {
            Answer::Reply(reply) => (0, reply),
            Answer::NotExecuted => (1, b""),
            Answer::Unknown => (2, b""),
        };
        out.put_u8(status);
        out.put_u32(u32::try_from(reply.len()).expect("replies are under 4 GiB"));
        out.put_slice(reply);
    }
    bodies.push(out);
    bodies
}

/// Serves the other end: runs what peers forward, and answers each batch as soon as it is settled.
pub async fn serve(node: Arc<Node>, connection: PeerConnection) {
    let PeerConnection { mut reader, mut writer, peer } = connection;
    let (replies, mut outgoing) = tokio::sync::mpsc::channel::<BytesMut>(WAITING_MAX);
    let permits = Arc::new(tokio::sync::Semaphore::new(WAITING_MAX));
    let read = async {
        let mut spare: Option<Batch> = None;
        while let Some(frame) = reader.read().await.map_err(|error| error.to_string())? {
            let mut batch = spare.take().unwrap_or_else(|| Batch::new(random()));
            let id = run_frame(&node, &mut batch, frame.body)?;
            batch.count_looks(&node);
            if batch.is_settled(&node) {
                for body in encode_answers(id, &batch.answers()) {
                    replies.send(body).await.map_err(|error| error.to_string())?;
                }
                spare = Some(batch);
                continue;
            }
            let permit = Arc::clone(&permits).acquire_owned().await.map_err(|error| error.to_string())?;
            let (node, replies) = (Arc::clone(&node), replies.clone());
            tokio::spawn(async move {
                let deadline = node.request_deadline();
                batch.settle_forwarded(&node, deadline).await;
                for body in encode_answers(id, &batch.answers()) {
                    // A receiver that is gone means that the connection is.
                    let _ = replies.send(body).await;
                }
                drop(permit);
            });
        }
        Ok::<(), String>(())
    };
    let write = async {
        while let Some(body) = outgoing.recv().await {
            writer.write(REPLIES, &body).await.map_err(|error| error.to_string())?;
            while let Ok(body) = outgoing.try_recv() {
                writer.write(REPLIES, &body).await.map_err(|error| error.to_string())?;
            }
            writer.flush().await.map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    };
    let result = tokio::select! { result = read => result, result = write => result };
    if let Err(reason) = result {
        tracing::info!(peer = ?peer.node, %reason, "forward connection ended");
    }
}

/// Runs one frame's requests, as far as they can run at once.
fn run_frame(node: &Arc<Node>, batch: &mut Batch, mut body: Bytes) -> Result<u64, String> {
    let id = body.try_get_u64().map_err(|error| error.to_string())?;
    let caller = body.try_get_u8().map_err(|error| error.to_string())?;
    let caller = Caller::forwarded(caller).ok_or("unknown kind of caller")?;
    // The node that took the request in has checked it against its limits.
    let mut parser = RequestParser::new(RequestLimits::unlimited());
    let view = node.view();
    batch.begin(node);
    let mut start = 0;
    while start < body.len() {
        match parser.parse(&body[start..]) {
            Ok(Parsed::Request { consumed }) => {
                let range = start..start + consumed;
                let args = parser.args(&body[range.clone()]);
                batch.open(range, caller);
                if batch.reply_bytes() < REPLIES_BYTES_MAX {
                    batch.run_forwarded(node, &view, &args, caller);
                } else {
                    batch.hand_back();
                }
                start += consumed;
            }
            Ok(Parsed::Empty { .. } | Parsed::Incomplete) | Err(_) => return Err("malformed requests".into()),
        }
    }
    Ok(id)
}
