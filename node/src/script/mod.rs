//! Lua scripts: Redis' environment for them, on top of Lua 5.1.
//!
//! For: compiling and running a script against one partition, with a limit of time and of memory, and the scripts
//! that this node knows.
//! Not here: where a script runs (`dispatch::scripts`), the commands `EVAL` and `SCRIPT` (`command::script`).
//!
//! ```text
//! vm        one interpreter a thread, its compiled scripts, the limits
//! prelude   the globals that scripts see, in Lua
//! host      redis.call: a nested call on the script's partition
//! convert   replies become values of Lua, values of Lua become replies
//! json, msgpack, pack, bits    cjson, cmsgpack, struct, bit
//! ```

pub mod bits;
pub mod cache;
pub mod convert;
pub mod format;
pub mod host;
pub mod json;
pub mod msgpack;
pub mod pack;
pub mod raise;
pub mod vm;

pub use cache::{Digest, Scripts, digest};
