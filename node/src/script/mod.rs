//! Lua scripts: Redis' environment for them, on top of Lua 5.1.
//!
//! For: compiling and running scripts and functions against one partition, with a limit of time and of memory, and
//! those that this node knows.
//! Not here: where they run (`dispatch::{scripts, functions}`), the commands (`command::{script, function}`).
//!
//! ```text
//! vm        one interpreter a thread, what it has compiled, the limits
//! library   libraries of functions as values; functions  those that this node knows, and until when
//! prelude   the globals that scripts see, in Lua
//! host      redis.call: a nested call on the script's partition
//! convert   replies become values of Lua, values of Lua become replies
//! text, pattern                string.find and kin, bounded
//! json, msgpack, pack, bits    cjson, cmsgpack, struct, bit
//! ```

pub mod bits;
pub mod cache;
pub mod convert;
pub mod format;
pub mod functions;
pub mod host;
pub mod json;
pub mod library;
pub mod msgpack;
pub mod pack;
pub mod pattern;
pub mod raise;
pub mod text;
pub mod vm;

pub use cache::{Digest, Scripts, digest};
