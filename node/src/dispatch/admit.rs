//! May a connection run this command now?
//!
//! For: one answer from the command and the connection's state.
//! Not here: arity and names (`korum_protocol::command::resolve`), leases and roles (`batch`).

use korum_protocol::command::{CommandSpec, Flags};
use korum_protocol::limits::REQUEST_BYTES_MAX;

use crate::net::session::Session;

const TOO_LARGE: &str = "ERR the request is too large; split it into smaller ones";
const NO_AUTH: &str = "NOAUTH Authentication required.";

/// Lets the command through, or says why not.
///
/// # Errors
/// With the text of the error reply.
pub fn admit(spec: &CommandSpec, session: &Session, request_bytes: usize) -> Result<(), &'static str> {
    if !session.authenticated && !spec.flags.contains(Flags::NO_AUTH) {
        return Err(NO_AUTH);
    }
    if request_bytes > REQUEST_BYTES_MAX { Err(TOO_LARGE) } else { Ok(()) }
}
