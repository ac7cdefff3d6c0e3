//! Opening a connection to another node.
//!
//! For: one attempt with a deadline, and a precise reason when it fails.
//! Not here: how often to try (`backoff`, `rpc`), what a refusal proves (`cluster::liveness`).

use std::io::ErrorKind;
use std::time::Duration;

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::peer::message::{Purpose, Rejection};
use tokio::time::timeout;

use super::{LocalPeer, PeerConnection, PeerError, handshake};
use crate::env::transport::TcpStream;

/// Why a dial gave no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// Nothing listens there: the process is gone.
    #[error("the connection was refused: no node runs at that address")]
    Refused,
    /// No answer in time: the process is stopped or slow, or its machine is cut off.
    #[error("no answer in time")]
    Timeout,
    /// The machine is not reached, or its name is not known.
    #[error("the address is not reachable: {0}")]
    Unreachable(#[source] std::io::Error),
    /// Another node answered at the address.
    #[error("another node answered at that address: {found:?}")]
    WrongPeer {
        /// Who answered.
        found: NodeId,
        /// Which run of it.
        incarnation: Incarnation,
    },
    /// The node there belongs to another cluster.
    #[error("the node at that address belongs to another cluster")]
    WrongCluster,
    /// The two nodes do not share the cluster secret.
    #[error("the cluster secret differs: give all nodes the same")]
    Unauthorized,
    /// The node there will not talk.
    #[error("the node at that address refuses: {0}")]
    Rejected(Rejection),
    /// Whatever answered does not speak the peer protocol, or broke off.
    #[error("no peer answered at that address: {0}")]
    Protocol(#[source] PeerError),
}

impl From<PeerError> for DialError {
    fn from(error: PeerError) -> Self {
        DialError::Protocol(error)
    }
}

/// Opens a connection; with `expect`, only to that node.
///
/// Safe to cancel.
///
/// # Errors
/// One of [`DialError`], at the latest after `deadline`.
pub async fn dial(
    local: &LocalPeer,
    address: &str,
    expect: Option<NodeId>,
    purpose: Purpose,
    deadline: Duration,
) -> Result<PeerConnection, DialError> {
    let attempt = async {
        let stream = TcpStream::connect(address).await.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => DialError::Refused,
            ErrorKind::TimedOut => DialError::Timeout,
            _ => DialError::Unreachable(error),
        })?;
        handshake::greet(local, stream, purpose, expect).await
    };
    timeout(deadline, attempt).await.unwrap_or(Err(DialError::Timeout))
}
