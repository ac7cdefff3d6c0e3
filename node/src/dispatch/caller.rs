//! Who asks, and on which terms.
//!
//! For: what a command's execution and its reply depend on beside its arguments; the same for commands that
//! another node forwards, which say it in a few bytes.
//! Not here: what a connection remembers (`net::session`).

use korum_protocol::id::NodeId;
use korum_protocol::resp::ProtocolVersion;

use super::route::Port;

/// In the first byte of a forward: answers wait for the primary alone.
const ASYNC: u8 = 0x10;
/// In the first byte of a forward: reads do not count as uses.
const NO_TOUCH: u8 = 0x20;

/// Bytes in which another node is told of a caller.
pub const CALLER_BYTES: usize = 10;

/// Who asks, and how the answer is to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Which door it came through.
    pub port: Port,
    /// Which RESP it speaks.
    pub version: ProtocolVersion,
    /// Answers wait for all holders; false asks for Redis' own weaker promise.
    pub is_strong: bool,
    /// Reads may be answered by any copy.
    pub reads_copies: bool,
    /// Reads count as uses of a key.
    pub marks_access: bool,
    /// The database that it has chosen.
    pub database: u8,
    /// The client, if it does not want to be told of what it changes itself.
    pub spared: Option<Spared>,
}

/// A client that keeps what it reads, and is not to be told of its own changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spared {
    /// The node that it is connected to; `None`: this one.
    pub node: Option<NodeId>,
    /// Its id there.
    pub client: u64,
}

impl Caller {
    /// One who has chosen nothing: RESP2, strong promises, database 0.
    #[must_use]
    pub const fn plain(port: Port) -> Self {
        Self {
            port,
            version: ProtocolVersion::Resp2,
            is_strong: true,
            reads_copies: false,
            marks_access: true,
            database: 0,
            spared: None,
        }
    }

    /// What another node has to know of it.
    #[must_use]
    pub fn to_bytes(self) -> [u8; CALLER_BYTES] {
        let version = if self.version == ProtocolVersion::Resp3 { 3 } else { 2 };
        let terms =
            version | if self.is_strong { 0 } else { ASYNC } | if self.marks_access { 0 } else { NO_TOUCH };
        let mut bytes = [0; CALLER_BYTES];
        (bytes[0], bytes[1]) = (terms, self.database);
        // Ids begin at 1.
        bytes[2..].copy_from_slice(&self.spared.map_or(0, |spared| spared.client).to_be_bytes());
        bytes
    }

    /// The same caller, as another node sees it to which `peer` tells of it; `None` for bytes that mean nothing.
    #[must_use]
    pub fn forwarded(bytes: [u8; CALLER_BYTES], peer: NodeId) -> Option<Self> {
        let [terms, database, client @ ..] = bytes;
        let version = match terms & !(ASYNC | NO_TOUCH) {
            2 => ProtocolVersion::Resp2,
            3 => ProtocolVersion::Resp3,
            _ => return None,
        };
        let (is_strong, marks_access) = (terms & ASYNC == 0, terms & NO_TOUCH == 0);
        let client = u64::from_be_bytes(client);
        let spared = (client != 0).then_some(Spared { node: Some(peer), client });
        Some(Self {
            port: Port::Forwarded,
            version,
            is_strong,
            reads_copies: false,
            marks_access,
            database,
            spared,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forward_keeps_the_terms() {
        for byte in 0..=u8::MAX {
            let bytes = [byte, !byte, 0, 0, 0, 0, 0, 0, 0, byte];
            match Caller::forwarded(bytes, NodeId(7)) {
                Some(caller) => {
                    assert_eq!(caller.to_bytes(), bytes);
                    let spared = Spared { node: Some(NodeId(7)), client: byte.into() };
                    assert_eq!(caller.spared, Some(spared).filter(|_| byte != 0));
                }
                None => assert!(byte & 0xF != 2 && byte & 0xF != 3 || byte & 0xC0 != 0, "{byte}"),
            }
        }
    }
}
