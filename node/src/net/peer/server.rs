//! Accepts peers.
//!
//! For: the peer port: a bounded number of connections, each handed to the room that its purpose names.
//! Not here: what the rooms do with them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::peer::message::Purpose;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::rpc::{OnEvent, PeerEvent, Trouble, serve_rpc};
use super::{LocalPeer, PeerConnection, PeerIdentity, accept};
use crate::env::transport::{TcpListener, TcpStream};

/// Connections at once: some thirty from each node of a large cluster. Further ones wait in the listen queue.
const CONNECTIONS_MAX: usize = 8192;

/// A future that a handler returns.
pub type Reply = Pin<Box<dyn Future<Output = Bytes> + Send>>;
/// Answers one request of a peer.
pub type RpcHandler = Arc<dyn Fn(PeerIdentity, Bytes) -> Reply + Send + Sync>;
/// Takes over a data connection; must not block.
pub type OnConnection = Arc<dyn Fn(PeerConnection, Purpose) + Send + Sync>;

/// Hears who connects (`true`) and who ends (`false`); must not block.
pub type OnPeer = Arc<dyn Fn(&PeerIdentity, Purpose, bool) + Send + Sync>;

/// Where accepted connections go.
#[derive(Clone)]
pub struct PeerHandlers {
    /// Raft's requests.
    pub raft: RpcHandler,
    /// Control requests.
    pub control: RpcHandler,
    /// `Replication` and `Forward` connections.
    pub data: OnConnection,
    /// Hears of every peer that connects, and (`false`) of each `Raft` or `Control` connection that ends.
    pub on_peer: OnPeer,
    /// Hears of connections that end.
    pub on_event: OnEvent,
}

/// The peer port.
pub struct PeerServer {
    local: Arc<LocalPeer>,
    handlers: PeerHandlers,
}

impl PeerServer {
    /// A server that is not running yet.
    #[must_use]
    pub fn new(local: Arc<LocalPeer>, handlers: PeerHandlers) -> Arc<Self> {
        Arc::new(Self { local, handlers })
    }

    /// Accepts until it is dropped; dropping it also ends the `Raft` and `Control` connections.
    pub async fn run(self: Arc<Self>, listener: TcpListener) {
        let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut tasks = JoinSet::new();
        loop {
            let permit = Arc::clone(&free).acquire_owned().await.expect("the semaphore is never closed");
            while tasks.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) => {
                    let server = Arc::clone(&self);
                    tasks.spawn(async move {
                        server.serve(stream).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    // Out of file descriptors, most likely: others must first end.
                    tracing::warn!(%error, "cannot accept a peer connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn serve(&self, stream: TcpStream) {
        let address = stream.peer_addr().ok();
        let (mut connection, purpose) = match accept(&self.local, stream).await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(?address, %error, "a peer connection was not accepted");
                return;
            }
        };
        (self.handlers.on_peer)(&connection.peer, purpose, true);
        let handler = match purpose {
            Purpose::Raft => &self.handlers.raft,
            Purpose::Control => &self.handlers.control,
            Purpose::Replication | Purpose::Forward => return (self.handlers.data)(connection, purpose),
        };
        let cluster_id = connection.peer.cluster_id;
        tokio::select! {
            biased;
            () = self.local.until_silent(cluster_id, purpose) => {}
            served = serve_rpc(&mut connection, |peer, request| handler(peer, request)) => {
                if let Err(error) = served {
                    tracing::debug!(node = ?connection.peer.node, %error, "a peer connection broke");
                }
            }
        }
        (self.handlers.on_peer)(&connection.peer, purpose, false);
        // A clean end is a hint too: a killed process closes its sockets in good order.
        let incarnation = Some(connection.peer.incarnation);
        (self.handlers.on_event)(PeerEvent {
            node: connection.peer.node,
            incarnation,
            trouble: Trouble::Broken,
        });
    }
}
