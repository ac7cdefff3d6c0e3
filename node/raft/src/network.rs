//! openraft's network on a carrier that somebody else provides.
//!
//! For: the seam. One message out, one back, and errors that make openraft wait a little.
//! Not here: sockets (the node's peer links behind [`RaftTransport`]), the bytes (`message`).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use korum_protocol::id::NodeId;
use openraft::error::{InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, RaftNetwork, RaftNetworkFactory};

use super::message::{Reply, Request, decode, encode};
use super::types::TypeConfig;
use super::{RaftTransport, TransportError};

/// Wait before an unreachable node is tried again: a restarted one is found at once, and a dead one
/// costs little. (openraft's own default is 500 ms.)
const BACKOFF: Duration = Duration::from_millis(30);

type RpcError<E = openraft::error::Infallible> = RPCError<u64, BasicNode, RaftError<u64, E>>;

/// Nodes that are gone for good and for which this one answers itself.
pub type StandIns = Arc<Mutex<BTreeSet<NodeId>>>;

/// The term in which this node stands but asks nobody for its vote; 0 if there is none.
pub type SilentTerm = Arc<AtomicU64>;

/// Makes a [`Link`] for each target.
pub struct Network {
    /// The carrier.
    pub transport: Arc<dyn RaftTransport>,
    /// Whom it does not ask.
    pub stand_ins: StandIns,
    /// When it asks for no votes.
    pub silent: SilentTerm,
}

/// The way to one node.
pub struct Link {
    transport: Arc<dyn RaftTransport>,
    stand_ins: StandIns,
    silent: SilentTerm,
    target: NodeId,
    address: String,
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Link {
        Link {
            transport: self.transport.clone(),
            stand_ins: self.stand_ins.clone(),
            silent: self.silent.clone(),
            target: NodeId(target),
            address: node.addr.clone(),
        }
    }
}

impl Link {
    /// openraft drops this future when the time is over, so it keeps nothing between calls.
    async fn ask(&self, request: &Request, option: &RPCOption) -> Result<Reply, TransportError> {
        if self.stand_ins.lock().unwrap_or_else(PoisonError::into_inner).contains(&self.target) {
            return Ok(agreeing(request));
        }
        let bytes = encode(request);
        let reply = self.transport.call(self.target, self.address.clone(), bytes, option.hard_ttl()).await?;
        match decode(&reply).map_err(TransportError)? {
            Reply::Failed(reason) => Err(TransportError(reason)),
            reply => Ok(reply),
        }
    }
}

/// What a node answers that agrees to everything.
fn agreeing(request: &Request) -> Reply {
    match request {
        Request::Vote(request) => Reply::Vote(VoteResponse::new(request.vote, request.last_log_id, true)),
        Request::Append(_) => Reply::Append(AppendEntriesResponse::Success),
        Request::Snapshot(request) => Reply::Snapshot(Ok(InstallSnapshotResponse { vote: request.vote })),
    }
}

fn unreachable<E: std::error::Error>(error: &TransportError) -> RpcError<E> {
    RPCError::Unreachable(Unreachable::new(error))
}

fn mixed_up<E: std::error::Error>() -> RpcError<E> {
    RPCError::Network(NetworkError::new(&TransportError("the reply is to another question".into())))
}

impl RaftNetwork<TypeConfig> for Link {
    async fn vote(
        &mut self,
        rpc: VoteRequest<u64>,
        option: RPCOption,
    ) -> Result<VoteResponse<u64>, RpcError> {
        if rpc.vote.leader_id().term == self.silent.load(Ordering::Relaxed) {
            return Err(unreachable(&TransportError("this node stands aside in this term".into())));
        }
        match self.ask(&Request::Vote(rpc), &option).await {
            Ok(Reply::Vote(reply)) => Ok(reply),
            Ok(_) => Err(mixed_up()),
            Err(error) => Err(unreachable(&error)),
        }
    }

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RpcError> {
        match self.ask(&Request::Append(rpc), &option).await {
            Ok(Reply::Append(reply)) => Ok(reply),
            Ok(_) => Err(mixed_up()),
            Err(error) => Err(unreachable(&error)),
        }
    }

    async fn install_snapshot(
        &mut self,
        rpc: InstallSnapshotRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, RpcError<InstallSnapshotError>> {
        match self.ask(&Request::Snapshot(rpc), &option).await {
            Ok(Reply::Snapshot(Ok(reply))) => Ok(reply),
            // openraft starts over from the first part when it is told of a mismatch.
            Ok(Reply::Snapshot(Err(mismatch))) => {
                Err(RPCError::RemoteError(RemoteError::new(self.target.0, RaftError::APIError(mismatch))))
            }
            Ok(_) => Err(mixed_up()),
            Err(error) => Err(unreachable(&error)),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(std::iter::repeat(BACKOFF))
    }
}
