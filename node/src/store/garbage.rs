//! What was removed and is too large to drop under a lock.
//!
//! For: handing large values to whoever drops them where nobody waits.

use bytes::Bytes;

use super::entry::Entry;
use super::expiry::ExpiryIndex;
use super::table::Table;
use super::value::Value;

/// A value of at least so many bytes is not dropped under the lock: giving back a mapping of this
/// size costs the allocator a system call.
pub const LARGE_VALUE_BYTES: usize = 64 << 10;

/// Removed content; dropping it may take long.
#[derive(Default, Debug)]
pub struct Garbage {
    values: Vec<Value>,
    buffers: Vec<Bytes>,
    tables: Vec<(Table, ExpiryIndex)>,
}

impl FromIterator<Bytes> for Garbage {
    fn from_iter<T: IntoIterator<Item = Bytes>>(buffers: T) -> Self {
        let mut garbage = Self::default();
        buffers.into_iter().for_each(|buffer| garbage.add_buffer(buffer));
        garbage
    }
}

impl Garbage {
    /// Keeps `value` if it is large, drops it at once if not.
    pub fn add(&mut self, value: Value) {
        if value.heap_bytes() >= LARGE_VALUE_BYTES {
            self.values.push(value);
        }
    }

    /// As [`Self::add`], for a buffer of which this may be the last holder.
    pub fn add_buffer(&mut self, buffer: Bytes) {
        if buffer.len() >= LARGE_VALUE_BYTES {
            self.buffers.push(buffer);
        }
    }

    /// As [`Self::add`], for the value of an entry.
    pub(super) fn add_entry(&mut self, entry: Entry) {
        if entry.heap_bytes() >= LARGE_VALUE_BYTES {
            self.add(entry.into_value());
        }
    }

    /// Keeps all that a partition held.
    pub(super) fn add_table(&mut self, table: Table, expiry: ExpiryIndex) {
        if !table.is_empty() {
            self.tables.push((table, expiry));
        }
    }

    /// Moves everything out of `other`.
    pub fn absorb(&mut self, other: &mut Garbage) {
        self.values.append(&mut other.values);
        self.buffers.append(&mut other.buffers);
        self.tables.append(&mut other.tables);
    }

    /// Nothing is kept: it need not be handed anywhere.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.buffers.is_empty() && self.tables.is_empty()
    }
}
