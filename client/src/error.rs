//! What can go wrong, in two layers: one attempt, and the whole request.
//!
//! For: telling apart *not done*, *done but refused* and *unknown*; every message says what to do next.
//! Not here: what is tried again (`retry`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An error reply of a node, as it was sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerError {
    text: Arc<str>,
}

impl ServerError {
    /// The error with this text, prefix first (`WRONGTYPE Operation against …`).
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into() }
    }

    /// The first word, by which clients tell errors apart: `ERR`, `WRONGTYPE`, `MOVED`, `OOM` …
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// The whole text, prefix included.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why one attempt at one node brought no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttemptError {
    /// No byte of the request reached the socket: it was surely not executed.
    #[error("not sent to {node}: {reason}")]
    NotSent {
        /// Address of the node.
        node: Arc<str>,
        /// What stood in the way.
        reason: Arc<str>,
    },
    /// The request was sent, the answer did not come: it may or may not have been executed.
    #[error("no answer from {node}: {reason}")]
    Unknown {
        /// Address of the node.
        node: Arc<str>,
        /// What was met instead of an answer.
        reason: Arc<str>,
    },
    /// The node let us connect but not speak: wrong credentials, or not a Korum node.
    #[error("{node} refused the connection's handshake: {error}")]
    Refused {
        /// Address of the node.
        node: Arc<str>,
        /// Its answer.
        error: ServerError,
    },
    /// The map names no node for the key, or the node answered that it cannot serve now.
    #[error("{0}")]
    NotServed(ServerError),
}

/// What a caller gets when a request fails.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A node answered with an error: the request was judged and refused, repeating it changes nothing.
    #[error("{0}")]
    Server(ServerError),
    /// The request was sent and its answer was lost. It may or may not have been executed;
    /// it was not repeated because that could execute it twice.
    #[error(
        "the outcome of {command} is unknown ({last}): it may or may not have been executed; \
         read the key to find out, or repeat the request if executing it twice does no harm"
    )]
    UnknownOutcome {
        /// Name of the command.
        command: Arc<str>,
        /// How the answer was lost.
        #[source]
        last: AttemptError,
    },
    /// Nothing was executed (or only reads were), and the deadline or the number of attempts is used up.
    #[error(
        "{command} was not served after {attempts} attempts in {waited:?} ({last}): it is safe to repeat it; \
         if this lasts, ask `KORUM STATUS` which nodes are up"
    )]
    Unavailable {
        /// Name of the command.
        command: Arc<str>,
        /// How many attempts were made.
        attempts: u32,
        /// Time from the first attempt to this answer.
        waited: Duration,
        /// How the last attempt ended.
        #[source]
        last: AttemptError,
    },
    /// The handshake was refused by a node.
    #[error(
        "{0}; check user and password (ClientBuilder::credentials) and that the address is a Korum node's"
    )]
    Handshake(AttemptError),
    /// No seed gave a cluster map in time.
    #[error(
        "none of the seeds {seeds} gave a cluster map within {waited:?} (last: {last}); \
         check that a node runs there and that the ports are its client or cluster ports"
    )]
    Connect {
        /// The seeds, as they were given.
        seeds: String,
        /// How long was tried.
        waited: Duration,
        /// The last failure met.
        last: String,
    },
    /// The request cannot be sent as it is; nothing was sent.
    #[error("{0}")]
    Request(String),
    /// A node's answer is not of the kind that was asked for.
    #[error("expected {expected}, got {got}; use Client::command to see the reply as it is")]
    UnexpectedReply {
        /// The type that was wanted.
        expected: &'static str,
        /// The reply, shortened.
        got: String,
    },
}

impl Error {
    /// The node's error prefix (`WRONGTYPE`, `OOM` …) when a node refused the request.
    #[must_use]
    pub fn prefix(&self) -> Option<&str> {
        match self {
            Self::Server(error) => Some(error.prefix()),
            _ => None,
        }
    }

    /// True when the request may have been executed although no answer came.
    #[must_use]
    pub fn is_unknown_outcome(&self) -> bool {
        matches!(self, Self::UnknownOutcome { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_error_keeps_its_prefix() {
        let error = ServerError::new("MOVED 42 10.0.0.1:16379");
        assert_eq!(error.prefix(), "MOVED");
        assert_eq!(error.text(), "MOVED 42 10.0.0.1:16379");
        assert_eq!(Error::Server(ServerError::new("OOM no")).prefix(), Some("OOM"));
    }
}
