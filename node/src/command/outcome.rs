//! What a command of the operator leaves to do.
//!
//! For: keeping parsing and answering apart from acting: the caller proposes and joins.

use korum_protocol::map::MapChange;

use crate::config::HostPort;

/// What is left to do after a command was read.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub enum Outcome {
    /// Nothing: the reply is written.
    Replied,
    /// Propose this change; answer `+OK` once it is applied, or why it was refused. No reply is written yet.
    Propose(MapChange),
    /// Re-form the quorum from this node and those that answer. No reply is written yet.
    Reform,
    /// Bring this node and another into one cluster. No reply is written yet.
    Meet {
        /// Where the other is.
        address: HostPort,
        /// That is its peer port (which Redis calls the bus port), not any of its ports.
        is_peer_port: bool,
    },
}
