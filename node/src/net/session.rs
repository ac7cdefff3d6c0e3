//! What a connection remembers between its commands.
//!
//! For: the state that `HELLO`, `AUTH`, `CLIENT`, `READONLY` and kin change, and that the dispatcher reads.
//! Not here: the socket and its buffers (`connection`), what other connections may see (`clients`).

use std::collections::BTreeSet;

use korum_protocol::map::PartitionId;
use korum_protocol::resp::ProtocolVersion;

use crate::command::tracking;
use crate::config::Consistency;
use crate::dispatch::caller::Spared;
use crate::dispatch::transaction::Transaction;
use crate::dispatch::{Caller, Port};

/// Which of the two client-facing ports a connection came through.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PortKind {
    /// Behaves as one Redis: keys that live elsewhere are forwarded.
    Client,
    /// Behaves as a node of Redis Cluster: keys that live elsewhere are redirected.
    Cluster,
}

/// Whether replies are sent (`CLIENT REPLY`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReplyMode {
    /// They are.
    #[default]
    On,
    /// They are not, until `CLIENT REPLY ON`.
    Off,
    /// Not for this command, nor for the next one.
    SkipNext,
    /// Not for this command.
    Skip,
}

/// One connection's state. Owned by its task; no one else reads it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its id in the registry.
    pub id: u64,
    /// The port it came through.
    pub port: PortKind,
    /// The RESP version of its replies.
    pub version: ProtocolVersion,
    /// It gave the password, or none is asked for.
    pub authenticated: bool,
    /// It may read from replicas.
    pub readonly: bool,
    /// The next command was redirected here by `ASK`.
    pub asking: bool,
    /// Whether replies are sent.
    pub reply_mode: ReplyMode,
    /// Its reads do not count as uses for eviction.
    pub no_touch: bool,
    /// The database that it has chosen.
    pub database: u8,
    /// What its writes wait for; `None`: what the node's settings say.
    pub consistency: Option<Consistency>,
    /// Partitions to which it has written with the weaker promise.
    pub written: BTreeSet<PartitionId>,
    /// What it has queued since `MULTI`, and what it watches.
    pub transaction: Transaction,
    /// `EXEC` runs: its reply is not finished.
    pub is_executing: bool,
    /// It keeps what it reads, and is told of changes.
    pub tracking: Option<tracking::Options>,
    /// Close it once what was written so far is sent.
    pub closing: bool,
}

impl Session {
    /// A fresh connection.
    #[must_use]
    pub fn new(id: u64, port: PortKind, password_needed: bool) -> Self {
        Self {
            id,
            port,
            version: ProtocolVersion::Resp2,
            authenticated: !password_needed,
            readonly: false,
            asking: false,
            reply_mode: ReplyMode::On,
            no_touch: false,
            database: 0,
            consistency: None,
            written: BTreeSet::new(),
            transaction: Transaction::default(),
            is_executing: false,
            tracking: None,
            closing: false,
        }
    }

    /// On which terms it asks at this moment; `default` is what writes wait for unless it was told.
    #[must_use]
    pub fn caller(&self, default: Consistency) -> Caller {
        Caller {
            port: match self.port {
                PortKind::Client => Port::Client,
                PortKind::Cluster => Port::Cluster,
            },
            version: self.version,
            is_strong: self.consistency.unwrap_or(default) == Consistency::Strong,
            reads_copies: self.readonly && self.port == PortKind::Cluster,
            marks_access: !self.no_touch,
            database: self.database,
            spared: self.tracking.filter(|it| it.no_loop).map(|_| Spared { node: None, client: self.id }),
        }
    }

    /// Call after each command: whether its reply has to be thrown away.
    pub fn end_command(&mut self) -> bool {
        match self.reply_mode {
            ReplyMode::On => false,
            ReplyMode::Off => true,
            ReplyMode::SkipNext => {
                self.reply_mode = ReplyMode::Skip;
                true
            }
            ReplyMode::Skip => {
                self.reply_mode = ReplyMode::On;
                true
            }
        }
    }

    /// Back to a fresh connection, as `RESET` does.
    pub fn reset(&mut self, password_needed: bool) {
        *self = Self::new(self.id, self.port, password_needed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_silences_itself_and_the_next_command_only() {
        let mut session = Session::new(1, PortKind::Client, false);
        session.reply_mode = ReplyMode::SkipNext;
        let muted: Vec<bool> = (0..3).map(|_| session.end_command()).collect();
        assert_eq!(muted, [true, true, false]);
    }
}
