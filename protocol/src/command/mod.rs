//! Commands: their names, shapes and arguments, before anything is executed.
//!
//! For: finding a command by its name, checking its arity, finding its keys, describing it.
//! Not here: executing (the node's `command`), where it runs (the node's `dispatch`).
//!
//! A new family is a new file beside [`string`], listed in [`table`]; a new command is an entry of
//! two lines there and a name in [`id`].

mod bits;
pub mod flags;
pub mod id;
mod tips;
#[macro_use]
pub mod spec;
pub mod table;
// The families, as data.
pub mod bitmap;
pub mod cluster;
pub mod connection;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod key;
pub mod korum;
pub mod list;
pub mod pubsub;
pub mod scripting;
pub mod server;
pub mod stream;
pub mod set;
pub mod sorted_set;
pub mod string;
pub mod transaction;
// What is done with them.
pub mod args;
pub mod glob;
pub mod introspect;
pub mod keys;
pub mod resolve;

pub use args::{ArgsError, Cursor};
pub use flags::{Categories, Flags, KeyFlags};
pub use id::CommandId;
pub use keys::{KeysError, key_positions, keys_with_flags};
pub use resolve::{ResolveError, resolve};
pub use spec::{CommandSpec, Group, KeyForm, KeySpec};
pub use table::lookup;
