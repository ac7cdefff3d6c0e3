//! Commands that wait at another node, and those of others that wait here.
//!
//! For: both ends of such a command on a forward connection: its late reply, its cancelling, the end of the connection.
//! Not here: what it waits for (`dispatch::blocking`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, BufMut, Bytes};
use korum_protocol::id::{Epoch, NodeId};
use korum_protocol::map::PartitionId;
use korum_protocol::rope::Rope;
use tokio::sync::{mpsc, oneshot};

use super::{Answer, Answers, CANCEL, Channel, ForwardError, Forwards, WAITING, encode_answers};
use crate::dispatch::blocking::park::Parked;
use crate::dispatch::blocking::{Attempt, attempt, unpark};
use crate::dispatch::caller::CALLER_BYTES;
use crate::dispatch::{Batch, Caller};
use crate::env::random::random;
use crate::node::Node;
use crate::store::served::Token;
use crate::store::waiting::Ticket;

/// A command that waits at another node; dropping it cancels it.
pub struct WaitingCall {
    sent: Option<(Arc<Channel>, u64)>,
    receiver: Option<oneshot::Receiver<Answers>>,
}

impl Forwards {
    /// Sends a request that may wait; never waits itself. `is_resumed`: it has waited on a connection that broke.
    #[must_use]
    pub fn send_waiting(
        &self,
        target: NodeId,
        caller: [u8; CALLER_BYTES],
        token: Token,
        is_resumed: bool,
        request: &Bytes,
    ) -> WaitingCall {
        let Some(channel) = self.channel(target) else { return WaitingCall { sent: None, receiver: None } };
        let id = channel.ids.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut body = Rope::new();
        let head = body.copied_mut();
        head.put_u64(id);
        head.put_slice(&caller);
        head.put_u64(token.client);
        head.put_u64(token.number);
        head.put_u8(u8::from(is_resumed));
        body.push(request.clone());
        let receiver = channel.append(id, WAITING, body, 1);
        WaitingCall { sent: receiver.is_some().then_some((channel, id)), receiver }
    }
}

impl WaitingCall {
    /// Waits for the answer. May be dropped and called again until it has given one.
    ///
    /// # Errors
    /// When there will be none.
    pub async fn wait(&mut self) -> Answers {
        let Some(receiver) = &mut self.receiver else { return Err(ForwardError::NotSent) };
        let answers = receiver.await.unwrap_or(Err(ForwardError::Unknown));
        (self.receiver, self.sent) = (None, None);
        answers
    }

    /// Asks for an end of the waiting: the answer comes at once, whatever it is.
    pub fn cancel(&mut self) {
        let Some((channel, id)) = self.sent.take() else { return };
        let mut body = Rope::new();
        body.copied_mut().put_u64(id);
        let mut state = channel.state();
        if !state.is_closed {
            state.unsent_bytes += body.len();
            state.unsent.push_back((id, CANCEL, body));
        }
        drop(state);
        channel.appended.notify_one();
    }
}

impl Drop for WaitingCall {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Where commands wait, by their ids.
type Places = HashMap<u64, (PartitionId, Epoch, Ticket)>;

/// The commands of one peer that wait here. Dropping it, with the connection, takes all away.
pub(super) struct Parkings {
    node: Arc<Node>,
    peer: NodeId,
    replies: mpsc::Sender<Rope>,
    places: Arc<Mutex<Places>>,
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Parkings {
    pub fn new(node: &Arc<Node>, peer: NodeId, replies: &mpsc::Sender<Rope>) -> Self {
        Self { node: Arc::clone(node), peer, replies: replies.clone(), places: Arc::default() }
    }

    /// Runs a request, or lets it wait.
    pub fn begin(&self, mut body: Bytes) -> Result<(), String> {
        let text = |error: bytes::TryGetError| error.to_string();
        let id = body.try_get_u64().map_err(text)?;
        let mut caller = [0; CALLER_BYTES];
        body.try_copy_to_slice(&mut caller).map_err(text)?;
        let caller = Caller::forwarded(caller, self.peer).ok_or("unknown kind of caller")?;
        let client = body.try_get_u64().map_err(text)?;
        let number = body.try_get_u64().map_err(text)?;
        let is_resumed = body.try_get_u8().map_err(text)? != 0;
        let token = Token { node: self.peer.0, client, number };
        let answer = match attempt(&self.node, &self.node.view(), &body, caller, Some((token, is_resumed))) {
            Attempt::Executed(batch) => {
                batch_answer(Arc::clone(&self.node), self.replies.clone(), id, *batch);
                return Ok(());
            }
            Attempt::Parked(parked) => {
                self.wait(id, caller, parked);
                return Ok(());
            }
            Attempt::ServedBefore => Answer::Unknown,
        };
        let replies = self.replies.clone();
        tokio::spawn(async move { answer_with(&replies, id, &[answer]).await });
        Ok(())
    }

    fn wait(&self, id: u64, caller: Caller, parked: Parked) {
        let Parked { partition, era, ticket, receiver, .. } = parked;
        lock(&self.places).insert(id, (partition, era, ticket));
        let (node, replies) = (Arc::clone(&self.node), self.replies.clone());
        let places = Arc::clone(&self.places);
        tokio::spawn(async move {
            let answered = receiver.await;
            let was_cancelled = lock(&places).remove(&id).is_none();
            match answered {
                Ok(answered) => {
                    let mut batch = Batch::new(random());
                    batch.adopt(&node, caller, partition, answered);
                    settle_and_answer(&node, &replies, id, batch).await;
                }
                Err(_) if was_cancelled => {
                    answer_with(&replies, id, &[Answer::Reply(b"*-1\r\n"[..].into())]).await;
                }
                Err(_) => answer_with(&replies, id, &[Answer::NotExecuted]).await,
            }
        });
    }

    /// A request shall not wait any more. Its task answers.
    pub fn cancel(&self, mut body: Bytes) -> Result<(), String> {
        let id = body.try_get_u64().map_err(|error| error.to_string())?;
        let place = lock(&self.places).remove(&id);
        if let Some((partition, era, ticket)) = place {
            unpark(&self.node, partition, era, ticket);
        }
        Ok(())
    }
}

impl Drop for Parkings {
    fn drop(&mut self) {
        // Not taken out: they are handed back, not cancelled.
        let places: Vec<_> = lock(&self.places).values().copied().collect();
        for (partition, era, ticket) in places {
            unpark(&self.node, partition, era, ticket);
        }
    }
}

fn batch_answer(node: Arc<Node>, replies: mpsc::Sender<Rope>, id: u64, batch: Batch) {
    tokio::spawn(async move { settle_and_answer(&node, &replies, id, batch).await });
}

async fn settle_and_answer(node: &Arc<Node>, replies: &mpsc::Sender<Rope>, id: u64, mut batch: Batch) {
    batch.settle_forwarded(node, node.request_deadline()).await;
    batch.count_looks(node);
    answer_with(replies, id, &batch.answers()).await;
}

async fn answer_with(replies: &mpsc::Sender<Rope>, id: u64, answers: &[Answer]) {
    for body in encode_answers(id, answers) {
        // A receiver that is gone means that the connection is.
        let _ = replies.send(body).await;
    }
}
