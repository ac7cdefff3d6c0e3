//! What nodes say to each other outside of data: who they are, heartbeats, proposals, joins.
//!
//! For: the handshake of every peer connection, and requests and replies of the `Control` purpose.
//! Not here: Raft's own messages (opaque bytes of the crate `korum-raft`), effects and streams
//! (the node's `replication`).

use serde::{Deserialize, Serialize};

use crate::id::{ClusterId, Epoch, Incarnation, NodeId};
use crate::map::{MapChange, Refusal, change::Registration};

/// Frame kinds of the handshake and of request-reply connections; data connections use 64 and up.
pub mod kind {
    /// Dialer's [`super::Hello`].
    pub const HELLO: u8 = 1;
    /// Acceptor's [`super::Welcome`].
    pub const WELCOME: u8 = 2;
    /// Dialer's proof that it knows the secret: 32 bytes.
    pub const PROOF: u8 = 3;
    /// Acceptor's word that the proof was right; empty.
    pub const READY: u8 = 4;
    /// A request; its body belongs to the purpose.
    pub const REQUEST: u8 = 16;
    /// The reply to the request before it.
    pub const REPLY: u8 = 17;
    /// First kind that is free for data connections.
    pub const DATA: u8 = 64;
}

/// Longest frame of a handshake, bytes: what a stranger may make a node hold.
pub const HANDSHAKE_BYTES_MAX: usize = 2048;
/// Longest peer address in a handshake, bytes: a DNS name and a port.
pub const ADDRESS_BYTES_MAX: usize = 262;

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Purpose {
    /// Raft's requests and replies.
    Raft,
    /// [`ControlRequest`]s and [`ControlReply`]s.
    Control,
    /// Effects and streams.
    Replication,
    /// Commands whose keys live elsewhere.
    Forward,
}

impl Purpose {
    /// Longest frame on such a connection, bytes.
    #[must_use]
    pub fn frame_bytes_max(self) -> usize {
        match self {
            Purpose::Raft | Purpose::Control => crate::limits::CONTROL_FRAME_BYTES_MAX,
            Purpose::Replication | Purpose::Forward => crate::limits::DATA_FRAME_BYTES_MAX,
        }
    }
}

/// A number used once, so that a proof cannot be replayed.
pub type Nonce = [u8; 16];
/// HMAC-SHA256 over the handshake.
pub type Proof = [u8; 32];

/// The dialer's first words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Who dials.
    pub node: NodeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    /// Its cluster; `None` while it asks to join one.
    pub cluster_id: Option<ClusterId>,
    /// Where its own peer port is reached, as `host:port`.
    pub address: String,
    /// What the connection is for.
    pub purpose: Purpose,
    /// Has it a cluster secret?
    pub secret: bool,
    /// Its challenge.
    pub nonce: Nonce,
}

/// The acceptor's answer: always says who it is, also when it refuses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// Who answers.
    pub node: NodeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    /// Its cluster; `None` while it is in none.
    pub cluster_id: Option<ClusterId>,
    /// Has it a cluster secret?
    pub secret: bool,
    /// Its challenge.
    pub nonce: Nonce,
    /// Why it will not talk; `None` when it will.
    pub rejection: Option<Rejection>,
}

/// A `Welcome` and the acceptor's proof over both sides' words; present when both have a secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProvenWelcome {
    /// The words.
    pub welcome: Welcome,
    /// The proof.
    pub proof: Option<Proof>,
}

/// Why an acceptor will not talk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum Rejection {
    /// The dialer belongs to another cluster.
    #[error("it belongs to another cluster")]
    WrongCluster,
    /// The acceptor is in no cluster yet.
    #[error("it is in no cluster yet")]
    NotInCluster,
    /// Only a member may open this kind of connection.
    #[error("only members of its cluster may open this kind of connection")]
    MembersOnly,
    /// Exactly one side has a cluster secret.
    #[error("one side has a cluster secret and the other has none: give all nodes the same")]
    Secret,
    /// The dialer claims to be the acceptor.
    #[error("both sides have the same node id: was a data directory copied?")]
    SameNode,
}

/// That a run of a node is gone, as one node saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// Who is gone.
    pub node: NodeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    /// How long ago that was seen, milliseconds.
    pub age_ms: u32,
}

/// Most evidence in one message: every other node of a large cluster.
pub const EVIDENCE_MAX: usize = 1024;

/// A node's sign of life to the Raft leader; the answer grants a lease.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Who.
    pub node: NodeId,
    /// Which run of it.
    pub incarnation: Incarnation,
    /// Epoch of the map it uses.
    pub epoch: Epoch,
    /// Recent evidence that others are gone.
    pub evidence: Vec<Evidence>,
}

/// The leader's answer to a heartbeat.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum HeartbeatReply {
    /// May serve for so long, counted from when the heartbeat was sent.
    Granted {
        /// Length of the lease, milliseconds.
        lease_ms: u32,
        /// The leader's epoch.
        epoch: Epoch,
    },
    /// Ask there.
    NotLeader(LeaderHint),
    /// Leads, but no quorum has confirmed it recently.
    NotConfirmed,
    /// The map says that this run of the node is down (or the run is older than the map's):
    /// it must register a newer incarnation than `known`.
    MarkedDown {
        /// The incarnation in the map.
        known: Incarnation,
    },
    /// The map does not know this node (any more).
    Unknown,
    /// The map has an older run of this node: register first.
    NotRegistered,
}

/// Who leads, as far as is known.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LeaderHint {
    /// The leader.
    pub leader: Option<NodeId>,
    /// Its peer address as `host:port`.
    pub address: Option<String>,
}

/// A request of the `Control` purpose.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ControlRequest {
    /// To the leader.
    Heartbeat(Heartbeat),
    /// To the leader, from a node with a new id.
    Join {
        /// Its id.
        node: NodeId,
        /// What is known of it.
        registration: Registration,
    },
    /// To the leader: agree on this change.
    Propose(MapChange),
    /// To the leader, at once: someone is gone.
    Evidence(Vec<Evidence>),
    /// To the leader: I stop now and serve no more; mark this run of me down.
    Leave {
        /// Who.
        node: NodeId,
        /// Which run of it.
        incarnation: Incarnation,
    },
    /// To anyone: who leads?
    WhoLeads,
    /// To a node that is alone and empty: give your own cluster up and join the one that is found there.
    Meet {
        /// Peer addresses of its members as `host:port`, the sender's first; 1 to [`SEEDS_MAX`].
        seeds: Vec<String>,
    },
    /// To any member, from one whose operator re-forms a lost quorum: how far have you come?
    ReformAsk,
    /// To a member that survives the loss of the quorum: from now on the cluster is this one.
    ReformFollow {
        /// What its nodes call it.
        formation: ClusterId,
    },
    /// To a voter, from one that found the process of Raft's leader gone: is it gone for you too?
    Canvass {
        /// The leader.
        leader: NodeId,
        /// Which run of it.
        incarnation: Incarnation,
    },
}

/// Most addresses in a [`ControlRequest::Meet`]: enough that some of them answer.
pub const SEEDS_MAX: usize = 8;

/// The reply to a [`ControlRequest`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ControlReply {
    /// To a heartbeat.
    Heartbeat(HeartbeatReply),
    /// To a join: known to the cluster since this epoch.
    Joined {
        /// Which cluster.
        cluster_id: ClusterId,
        /// The epoch of the map that knows it.
        epoch: Epoch,
    },
    /// To a proposal: agreed, and applied at this epoch.
    Proposed {
        /// The epoch that the change made.
        epoch: Epoch,
    },
    /// It was agreed that the change does not apply.
    Refused(Refusal),
    /// It may or may not be agreed later.
    Unknown(String),
    /// Ask there. Also the answer to [`ControlRequest::WhoLeads`].
    NotLeader(LeaderHint),
    /// Taken note of. To [`ControlRequest::Meet`]: it is on disk that this node joins there, and that begins now.
    Noted,
    /// To [`ControlRequest::Meet`]: all stays as it was.
    CannotMeet(CannotMeet),
    /// To [`ControlRequest::ReformAsk`].
    ReformStanding {
        /// Term and index of the last entry in its log.
        last: Option<(u64, u64)>,
        /// It may serve: there is a quorum.
        is_leased: bool,
    },
    /// To [`ControlRequest::Canvass`].
    Ballot(Ballot),
}

/// What a voter says before an election.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ballot {
    /// The leader's process is gone, as this voter saw itself.
    pub is_gone: bool,
    /// It does not believe in that leader any more, and would vote for another.
    pub is_free: bool,
    /// Term and index of the last entry in its log.
    pub last: Option<(u64, u64)>,
}

/// Why a node does not give up its cluster to join another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CannotMeet {
    /// Its cluster has other members.
    NotAlone,
    /// It holds keys, which would be lost.
    HasKeys,
    /// Now is not the moment: it starts, or is about to join or to take in somebody. Ask again.
    Busy,
    /// It does not reach the node that asks at this address of its, and why.
    Unreachable {
        /// The peer address that the asking node announces.
        address: String,
        /// What the dial said.
        why: String,
    },
    /// Its data directory cannot be written, and why.
    NotSaved(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::wire::{decode, encode};
    use proptest::prelude::*;

    #[test]
    fn the_longest_hello_fits_the_handshake_limit() {
        let hello = Hello {
            node: NodeId(u64::MAX),
            incarnation: Incarnation(u64::MAX),
            cluster_id: Some(ClusterId(u64::MAX)),
            address: "x".repeat(ADDRESS_BYTES_MAX),
            purpose: Purpose::Forward,
            secret: true,
            nonce: [255; 16],
        };
        let bytes = encode(&hello);
        assert!(bytes.len() < HANDSHAKE_BYTES_MAX);
        assert_eq!(decode::<Hello>(&bytes).unwrap(), hello);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_a_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode::<Hello>(&bytes);
            let _ = decode::<ProvenWelcome>(&bytes);
            let _ = decode::<ControlRequest>(&bytes);
            let _ = decode::<ControlReply>(&bytes);
        }
    }
}
