//! What a partition holds: entries in hash order, their deadlines, their sizes.
//!
//! For: storing, finding, scanning, streaming and expiring keys, as pure data.
//! Not here: clocks, sockets, and what a command means (`command`). Locks are taken in `partitions` only.
//! Next: `keyspace` is the door; `table` the extendible hash under it; `entry` the bytes of one key.

pub mod partitions;
pub mod partition;
pub mod keyspace;
pub mod table;
pub mod database;
pub mod counts;
mod segment;
pub mod entry;
pub mod value;
pub mod integer;
pub mod collection;
pub mod packed;
pub mod hash;
pub mod blocks;
pub mod list;
pub mod waiting;
pub mod served;
pub mod reserved;
pub mod xstream;
pub mod int_set;
pub mod set;
pub mod score;
pub mod ranks;
pub mod sorted_set;
pub mod position;
pub mod scan;
pub mod random;
pub mod expiry;
pub mod expire;
pub mod stream;
pub mod parts;
pub mod apply;
pub mod source;
pub mod garbage;
pub mod notice;
pub mod janitor;
pub mod check;

#[cfg(test)]
pub(crate) mod edits;
#[cfg(test)]
mod tests;

pub use collection::{Change, Collection, Kind};
pub use counts::Count;
pub use database::Databases;
pub use entry::Entry;
pub use garbage::Garbage;
pub use hash::{Hash, HashChange};
pub use janitor::Janitor;
pub use keyspace::Keyspace;
pub use list::{List, ListChange};
pub use notice::{Classes, Notice, Notices};
pub use partition::{Partition, Role};
pub use partitions::Store;
pub use position::{HashPosition, HashRange};
pub use scan::Scanned;
pub use score::Score;
pub use set::{Set, SetChange};
pub use sorted_set::{SortedSet, SortedSetChange};
pub use source::Source;
pub use stream::Chunk;
pub use value::{StringRef, StringValue, Value, ValueRef};
pub use xstream::{Stream, StreamChange, StreamId};
