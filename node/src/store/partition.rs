//! One partition on this node: its entries, how far its copy has come, and its part in the cluster.
//!
//! For: the unit of locking, ordering and replication.
//! Not here: what a role implies (`replication::{primary, replica, transition}`).

use korum_protocol::id::{Epoch, NodeId};

use super::keyspace::Keyspace;
use crate::replication::history::History;
use crate::replication::primary::Primary;

/// Everything under one partition's lock.
pub struct Partition {
    /// The entries.
    pub keyspace: Keyspace,
    /// How this copy came about.
    pub history: History,
    /// What this node is to the partition.
    pub role: Role,
    /// The newest era that this node's maps have shown. What a primary of an older one says is outdated,
    /// whatever map the receiving task looked at.
    pub newest_era: Epoch,
}

/// What a node is to a partition. The map decides, except that a primary may make a node a target.
#[expect(
    clippy::large_enum_variant,
    reason = "read with every command: a box would cost a step; there are few of them"
)]
pub enum Role {
    /// Neither serves nor holds it; entries may remain from an earlier run, to compare when it catches up.
    Absent,
    /// Catches up from the primary; never read, never counted.
    Target {
        /// Who streams.
        primary: NodeId,
        /// In which era.
        era: Epoch,
    },
    /// Holds a complete copy.
    Replica {
        /// Whose effects it takes.
        primary: NodeId,
        /// In which era.
        era: Epoch,
    },
    /// Orders all reads and writes.
    Primary(Primary),
}

impl Role {
    /// The primary's state, if this is a primary.
    pub fn primary_mut(&mut self) -> Option<&mut Primary> {
        if let Self::Primary(primary) = self { Some(primary) } else { None }
    }
}

impl Partition {
    /// An empty partition of which nothing is known.
    #[must_use]
    pub fn new(keyspace: Keyspace, history: History) -> Self {
        Self { keyspace, history, role: Role::Absent, newest_era: Epoch(0) }
    }

    /// The primary's state, if this node is the primary.
    #[must_use]
    pub fn as_primary(&self) -> Option<&Primary> {
        if let Role::Primary(primary) = &self.role { Some(primary) } else { None }
    }

    /// The same, to change it.
    pub fn as_primary_mut(&mut self) -> Option<&mut Primary> {
        self.role.primary_mut()
    }

    /// From whom this copy takes messages of `era`, if from anyone.
    #[must_use]
    pub fn follows(&self, sender: NodeId, sender_era: Epoch) -> bool {
        match self.role {
            Role::Target { primary, era } | Role::Replica { primary, era } => {
                primary == sender && era == sender_era
            }
            Role::Absent | Role::Primary(_) => false,
        }
    }
}
