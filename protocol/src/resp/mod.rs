//! RESP2 and RESP3: bounded requests in, replies out, replies decoded on the client side.
//!
//! For: turning bytes into arguments and values into bytes.
//! Not here: what a command means, sockets.
//! Next: `command` names and checks what was parsed.

pub mod args;
pub mod decode;
pub mod error;
mod guard;
mod inline;
pub mod number;
pub mod reply;
pub mod request;

pub use args::Args;
pub use decode::{DecodeError, Reply, ReplyDecoder, encode_request, reply_length};
pub use error::RequestError;
pub use number::integer;
pub use reply::{ProtocolVersion, ReplyWriter};
pub use request::{Parsed, RequestLimits, RequestParser};
