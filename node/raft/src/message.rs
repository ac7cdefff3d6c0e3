//! What Raft says between nodes: one version byte, one request or reply.
//!
//! For: encoding, and refusing what no sound peer would send before Raft sees it.
//! Not here: carrying it (`network`, and the node's peer links).

use bytes::Bytes;
use korum_protocol::peer::wire;
use openraft::error::InstallSnapshotError;
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::snapshot::{Content, SNAPSHOT_BYTES_MAX};
use super::types::{TypeConfig, Vote};

/// Version of all Raft messages.
const VERSION: u8 = 1;
/// Highest term or index that is taken seriously: counting up from it cannot overflow.
const COUNTER_MAX: u64 = 1 << 62;

/// A question to another node's Raft.
#[derive(Serialize, Deserialize)]
pub enum Request {
    /// Will you vote for me?
    Vote(VoteRequest<u64>),
    /// Here are entries, or a sign of life.
    Append(AppendEntriesRequest<TypeConfig>),
    /// Here is a part of a snapshot.
    Snapshot(InstallSnapshotRequest<TypeConfig>),
}

/// Its answer.
#[derive(Serialize, Deserialize)]
pub enum Reply {
    /// To a vote request.
    Vote(VoteResponse<u64>),
    /// To entries.
    Append(AppendEntriesResponse<u64>),
    /// To a part of a snapshot.
    Snapshot(Result<InstallSnapshotResponse<u64>, InstallSnapshotError>),
    /// There is no answer; the text says why.
    Failed(String),
}

/// The bytes of a message.
pub fn encode<T: Serialize>(message: &T) -> Bytes {
    let body = wire::encode(message);
    let mut bytes = Vec::with_capacity(1 + body.len());
    bytes.push(VERSION);
    bytes.extend_from_slice(&body);
    bytes.into()
}

/// The message of these bytes, or what is wrong with them.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match bytes.split_first() {
        Some((&VERSION, body)) => wire::decode(body).map_err(|error| error.to_string()),
        Some((other, _)) => Err(format!("a Raft message of version {other}; this node speaks {VERSION}")),
        None => Err("an empty Raft message".into()),
    }
}

impl Request {
    /// Is this what a sound peer may send? What Raft takes for granted is checked here.
    pub fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Vote(request) => {
                check_vote(&request.vote)?;
                need(!request.vote.committed, "a vote request with a committed vote")?;
                check_index(request.last_log_id.map(|last| last.index))
            }
            Self::Append(request) => {
                check_vote(&request.vote)?;
                need(request.vote.committed, "entries from a node that was not elected")?;
                check_index(request.leader_commit.map(|commit| commit.index))?;
                check_index(request.prev_log_id.map(|previous| previous.index))?;
                let mut previous = request.prev_log_id;
                for entry in &request.entries {
                    let next = previous.map_or(0, |previous| previous.index + 1);
                    need(entry.log_id.index == next, "entries with a gap")?;
                    need(previous.is_none_or(|previous| previous < entry.log_id), "entries out of order")?;
                    previous = Some(entry.log_id);
                }
                let newest = previous.map(|last| last.leader_id);
                need(newest.is_none_or(|leader| leader <= request.vote.leader_id), "entries from the future")
            }
            Self::Snapshot(request) => {
                check_vote(&request.vote)?;
                need(request.vote.committed, "a snapshot from a node that was not elected")?;
                check_index(request.meta.last_log_id.map(|last| last.index))?;
                let end = request.offset.checked_add(request.data.len() as u64);
                need(end.is_some_and(|end| end <= SNAPSHOT_BYTES_MAX as u64), "a snapshot that is too long")?;
                if request.offset == 0 && request.done {
                    let (content, _) =
                        Content::decode(&request.data).map_err(|_| "a snapshot that does not decode")?;
                    let same = content.applied == request.meta.last_log_id
                        && content.membership == request.meta.last_membership;
                    need(same, "a snapshot under another's name")?;
                }
                Ok(())
            }
        }
    }
}

fn check_vote(vote: &Vote) -> Result<(), &'static str> {
    need(vote.leader_id.term <= COUNTER_MAX, "a term out of range")
}

fn check_index(index: Option<u64>) -> Result<(), &'static str> {
    need(index.is_none_or(|index| index <= COUNTER_MAX), "an index out of range")
}

fn need(condition: bool, otherwise: &'static str) -> Result<(), &'static str> {
    if condition { Ok(()) } else { Err(otherwise) }
}
