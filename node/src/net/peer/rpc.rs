//! Request and reply over peer connections.
//!
//! For: calls of the purposes `Raft` and `Control`: a few idle connections per peer, one exchange at a time on each.
//! Not here: what requests mean.
//! Rule: a connection goes back to its pool only after a whole reply, because callers drop futures on timeout and
//! the next reply would otherwise answer the wrong request.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::peer::message::{Purpose, kind};
use rand::RngExt;
use tokio::time::timeout;

use super::backoff::Backoff;
use super::{DialError, LocalPeer, PeerConnection, PeerError, PeerIdentity, dial};
use crate::env::{Clock, random};
use korum_raft::{RaftTransport, TransportError};

/// Idle connections kept per peer and purpose: Raft sends appends, votes and a snapshot side by side.
const IDLE_MAX: usize = 3;
/// Peers remembered at most (addresses, back-off); more nodes than any cluster has.
const PEERS_MAX: usize = 4096;

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
pub enum RpcError {
    /// Nothing was sent.
    #[error("cannot reach node {target:?}")]
    Dial {
        /// Who was called.
        target: NodeId,
        /// Why not.
        source: DialError,
    },
    /// Nothing was sent: the last attempt failed a moment ago.
    #[error("node {0:?} was not reachable a moment ago")]
    BackingOff(NodeId),
    /// The connection broke: the request may have been carried out.
    #[error("the connection broke before the reply came")]
    Broken(#[source] PeerError),
    /// No reply in time: the request may have been carried out.
    #[error("no reply in time")]
    Timeout,
}

impl RpcError {
    /// May the request have been carried out?
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, RpcError::Broken(_) | RpcError::Timeout)
    }
}

/// Something that a peer connection showed: a hint for `cluster::liveness`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerEvent {
    /// Who was meant.
    pub node: NodeId,
    /// Which run of it was connected; `None` when only the id is known.
    pub incarnation: Option<Incarnation>,
    /// What was seen.
    pub trouble: Trouble,
}

/// What a peer connection showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// An open connection broke.
    Broken,
    /// A dial was refused.
    Refused,
    /// Another process answered at the address.
    Replaced,
}

/// Who wants to hear of events; must not block.
pub type OnEvent = Arc<dyn Fn(PeerEvent) + Send + Sync>;

/// Calls other nodes.
pub struct PeerRpc {
    local: Arc<LocalPeer>,
    clock: Clock,
    on_event: OnEvent,
    slots: Mutex<HashMap<(NodeId, Purpose), Slot>>,
    book: Mutex<HashMap<NodeId, String>>,
}

#[derive(Default)]
struct Slot {
    address: String,
    idle: Vec<PeerConnection>,
    backoff: Backoff,
}

impl PeerRpc {
    /// A caller without connections. `on_event` hears when a connection breaks or a dial is refused.
    #[must_use]
    pub fn new(local: Arc<LocalPeer>, clock: Clock, on_event: OnEvent) -> Self {
        Self { local, clock, on_event, slots: Mutex::default(), book: Mutex::default() }
    }

    /// This node's side of handshakes.
    #[must_use]
    pub fn local(&self) -> &Arc<LocalPeer> {
        &self.local
    }

    /// From now on a node is reached there, whatever Raft's membership says.
    pub fn learn(&self, node: NodeId, address: &str) {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        if address.is_empty() || book.get(&node).is_some_and(|known| known == address) {
            return;
        }
        if book.len() < PEERS_MAX || book.contains_key(&node) {
            book.insert(node, address.to_owned());
        }
    }

    /// Where a node was last said to be reached.
    #[must_use]
    pub fn address_of(&self, node: NodeId) -> Option<String> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }

    /// A node is no longer in the map.
    pub fn forget(&self, node: NodeId) {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).remove(&node);
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).retain(|(target, _), _| *target != node);
    }

    /// Forgets all connections: the node stops.
    pub fn close(&self) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A node has just connected to this one, so it can be dialed without waiting.
    pub fn revive(&self, node: NodeId) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in slots.iter_mut().filter(|((target, _), _)| *target == node).map(|(_, slot)| slot) {
            slot.backoff.succeeded();
        }
    }

    /// Dials a node now, to see whether it is there, and says which run of it answered. `None` when it is not
    /// known where it is reached.
    pub async fn probe(
        &self,
        target: NodeId,
        purpose: Purpose,
        limit: Duration,
    ) -> Option<Result<Incarnation, DialError>> {
        let address = self.address_of(target)?;
        let result = dial(&self.local, &address, Some(target), purpose, limit).await;
        Some(result.map(|connection| {
            let incarnation = connection.peer.incarnation;
            // Kept for use: closing it would look like trouble to the other side.
            self.visit(target, &address, purpose, |slot| slot.keep(connection));
            incarnation
        }))
    }

    /// One request, one reply. Safe to cancel (the connection is then dropped).
    ///
    /// # Errors
    /// When no reply came within `limit`; [`RpcError::is_unknown`] tells whether the request may have been carried out.
    pub async fn call(
        &self,
        target: NodeId,
        address: &str,
        purpose: Purpose,
        request: Bytes,
        limit: Duration,
    ) -> Result<Bytes, RpcError> {
        let exchange = async {
            let mut connection = self.connection(target, address, purpose, limit).await?;
            match exchange(&mut connection, &request).await {
                Ok(reply) => {
                    self.visit(target, address, purpose, |slot| {
                        slot.backoff.succeeded();
                        slot.keep(connection);
                    });
                    Ok(reply)
                }
                Err(error) => {
                    // It was taken, and broke before it answered: one more reason to wait.
                    self.visit(target, address, purpose, |slot| self.failed(slot));
                    let incarnation = Some(connection.peer.incarnation);
                    (self.on_event)(PeerEvent { node: target, incarnation, trouble: Trouble::Broken });
                    Err(RpcError::Broken(error))
                }
            }
        };
        timeout(limit, exchange).await.unwrap_or(Err(RpcError::Timeout))
    }

    async fn connection(
        &self,
        target: NodeId,
        address: &str,
        purpose: Purpose,
        limit: Duration,
    ) -> Result<PeerConnection, RpcError> {
        {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            if slots.len() >= PEERS_MAX && !slots.contains_key(&(target, purpose)) {
                slots.clear();
            }
            let slot = slots.entry((target, purpose)).or_default();
            if slot.address != address {
                *slot = Slot { address: address.to_owned(), ..Slot::default() };
            }
            while let Some(connection) = slot.idle.pop() {
                if connection.reader.is_idle() {
                    return Ok(connection);
                }
                let incarnation = Some(connection.peer.incarnation);
                (self.on_event)(PeerEvent { node: target, incarnation, trouble: Trouble::Broken });
            }
            if !slot.backoff.is_ready(self.clock.now()) {
                return Err(RpcError::BackingOff(target));
            }
        }
        // The outer deadline may strike first; the slot then simply learns nothing.
        match dial(&self.local, address, Some(target), purpose, limit.mul_f64(0.9)).await {
            // It has succeeded when something was answered on it.
            Ok(connection) => Ok(connection),
            Err(source) => {
                self.visit(target, address, purpose, |slot| self.failed(slot));
                let trouble = match source {
                    DialError::Refused => Some(Trouble::Refused),
                    DialError::WrongPeer { .. } => Some(Trouble::Replaced),
                    _ => None,
                };
                if let Some(trouble) = trouble {
                    (self.on_event)(PeerEvent { node: target, incarnation: None, trouble });
                }
                Err(RpcError::Dial { target, source })
            }
        }
    }

    fn failed(&self, slot: &mut Slot) {
        slot.backoff.failed(self.clock.now(), random::random().random());
    }

    /// What is known of that place, unless the peer is reached elsewhere by now, or there are too many.
    fn visit(&self, target: NodeId, address: &str, purpose: Purpose, visit: impl FnOnce(&mut Slot)) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= PEERS_MAX && !slots.contains_key(&(target, purpose)) {
            return;
        }
        let slot = slots.entry((target, purpose)).or_default();
        if slot.address.is_empty() {
            address.clone_into(&mut slot.address);
        }
        if slot.address == address {
            visit(slot);
        }
    }
}

impl Slot {
    fn keep(&mut self, connection: PeerConnection) {
        if self.idle.len() < IDLE_MAX {
            self.idle.push(connection);
        }
    }
}

impl RaftTransport for PeerRpc {
    fn call(
        &self,
        target: NodeId,
        address: String,
        request: Bytes,
        limit: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<Bytes, TransportError>> + Send + '_>> {
        // The map's addresses are newer than Raft's membership when a node came back elsewhere.
        let address = self.address_of(target).unwrap_or(address);
        Box::pin(async move {
            PeerRpc::call(self, target, &address, Purpose::Raft, request, limit)
                .await
                .map_err(|error| TransportError(error.to_string()))
        })
    }
}

async fn exchange(connection: &mut PeerConnection, request: &[u8]) -> Result<Bytes, PeerError> {
    connection.writer.send(kind::REQUEST, request).await?;
    let frame = connection.reader.read().await?.ok_or(PeerError::Truncated)?;
    if frame.kind == kind::REPLY {
        Ok(frame.body)
    } else {
        Err(PeerError::Protocol(format!("a frame of kind {} where a reply was expected", frame.kind)))
    }
}

/// Answers requests on a connection, one after the other, until the peer closes it.
///
/// # Errors
/// When the connection breaks or something arrives that is no request.
pub async fn serve_rpc<F, R>(connection: &mut PeerConnection, mut handler: F) -> Result<(), PeerError>
where
    F: FnMut(PeerIdentity, Bytes) -> R,
    R: Future<Output = Bytes>,
{
    while let Some(frame) = connection.reader.read().await? {
        if frame.kind != kind::REQUEST {
            return Err(PeerError::Protocol(format!(
                "a frame of kind {} where a request was expected",
                frame.kind
            )));
        }
        let mut answer = pin!(handler(connection.peer.clone(), frame.body));
        // Meanwhile nothing may arrive; an end means that nobody waits for the answer any more.
        let reply = tokio::select! {
            biased;
            reply = &mut answer => reply,
            frame = connection.reader.read() => match frame? {
                None => return Ok(()),
                Some(_) => return Err(PeerError::Protocol("a request before the reply to the last one".into())),
            },
        };
        connection.writer.send(kind::REPLY, &reply).await?;
    }
    Ok(())
}
