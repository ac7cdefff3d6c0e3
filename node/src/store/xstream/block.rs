//! Up to a hundred entries in one allocation.
//!
//! For: entries side by side, as differences to the first one: the names of its fields are written once.
//! Not here: which block an entry belongs to (`mod`).
//!
//! ```text
//! block  = names of the first entry's fields: number, strings | entries
//! entry  = length of the rest | ms, seq as differences to the first id | 0 values | n fields with values
//!                                                  the names of the block, own names
//! ```
//! Numbers and strings are those of `fields`; a difference is zigzag. When a block is full is decided as Redis 7
//! does for its nodes with its defaults, so that `~` trims the same entries: that takes the size that Redis' form
//! of the block would have.

use super::fields::{Entry, Fields, put_number, put_string, take_number, take_string};
use super::id::StreamId;
use crate::store::integer;

/// Most entries that a block ever takes (Redis' `stream-node-max-entries`).
pub const BLOCK_ENTRIES_MAX: u16 = 100;
/// A block takes nothing that would fill it up to this (Redis' `stream-node-max-bytes`).
const BLOCK_BYTES_MAX: usize = 4096;

/// Entries whose ids follow each other. It is never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    /// The id of the entry that came last, whether it is still there or not.
    pub(super) last: StreamId,
    /// Entries that are there.
    pub(super) len: u16,
    /// Entries that came, those included that are gone.
    pub(super) used: u16,
    /// What Redis' listpack of it would take, bytes.
    listpack_bytes: u32,
}

impl Block {
    /// A block that begins with this entry.
    pub(super) fn new(id: StreamId, fields: &Fields<'_>) -> Self {
        let mut bytes = Vec::with_capacity(fields.bytes().len() + 24);
        put_number(&mut bytes, fields.len() as u64);
        fields.iter().for_each(|(name, _)| put_string(&mut bytes, name));
        let names: usize = fields.iter().map(|(name, _)| listpack::string(name)).sum();
        let head =
            listpack::EMPTY + 3 * listpack::integer(0) + listpack::integer(fields.len() as i64) + names;
        let mut block = Self {
            bytes,
            last: id,
            len: 0,
            used: 0,
            listpack_bytes: u32::try_from(head).unwrap_or(u32::MAX),
        };
        block.push(id, id, fields);
        block
    }

    /// Whether it takes one more entry.
    pub(super) fn has_room(&self, fields: &Fields<'_>) -> bool {
        let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.used < BLOCK_ENTRIES_MAX && self.listpack_bytes as usize + bytes < BLOCK_BYTES_MAX
    }

    /// Adds an entry; `first` is the id of the block.
    pub(super) fn push(&mut self, first: StreamId, id: StreamId, fields: &Fields<'_>) {
        let (ms, seq) = (id.ms.wrapping_sub(first.ms) as i64, id.seq.wrapping_sub(first.seq) as i64);
        let (pairs, mut names, _) = self.parts();
        let has_names = pairs == fields.len()
            && fields.iter().all(|(name, _)| take_string(&mut names).is_some_and(|known| known == name));
        let mut entry = Vec::with_capacity(24 + if has_names { 0 } else { fields.bytes().len() });
        put_number(&mut entry, zigzag(ms));
        put_number(&mut entry, zigzag(seq));
        put_number(&mut entry, if has_names { 0 } else { fields.len() as u64 });
        // Flags, differences and the number of items behind; then the items.
        let count = fields.len() as i64;
        let mut listpack_bytes = listpack::integer(0) + listpack::integer(ms) + listpack::integer(seq);
        listpack_bytes += listpack::integer(3 + if has_names { count } else { 2 * count + 1 });
        if has_names {
            let values: usize = fields.iter().map(|(_, value)| value.len() + 10).sum();
            entry.reserve(values);
            for (_, value) in fields.iter() {
                put_string(&mut entry, value);
                listpack_bytes += listpack::string(value);
            }
        } else {
            entry.extend_from_slice(fields.bytes());
            listpack_bytes += listpack::integer(count);
            for (name, value) in fields.iter() {
                listpack_bytes += listpack::string(name) + listpack::string(value);
            }
        }
        put_number(&mut self.bytes, entry.len() as u64);
        self.bytes.extend_from_slice(&entry);
        self.listpack_bytes =
            self.listpack_bytes.saturating_add(u32::try_from(listpack_bytes).unwrap_or(u32::MAX));
        self.last = id;
        self.len += 1;
        self.used += 1;
    }

    /// No entry will be added any more.
    pub(super) fn close(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Bytes of its entries.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Number of names, the names, the entries.
    fn parts(&self) -> (usize, &[u8], &[u8]) {
        let mut rest = &self.bytes[..];
        let pairs = take_number(&mut rest).unwrap_or(0) as usize;
        let names = rest;
        for _ in 0..pairs {
            take_string(&mut rest);
        }
        (pairs, &names[..names.len() - rest.len()], rest)
    }

    /// The entries, in order; `first` is the id of the block.
    pub(super) fn entries(&self, first: StreamId) -> impl Iterator<Item = Entry<'_>> + Clone + use<'_> {
        let (pairs, names, mut rest) = self.parts();
        std::iter::from_fn(move || {
            let mut entry = take_string(&mut rest)?;
            let ms = first.ms.wrapping_add(unzigzag(take_number(&mut entry)?) as u64);
            let seq = first.seq.wrapping_add(unzigzag(take_number(&mut entry)?) as u64);
            let own = take_number(&mut entry)? as usize;
            let (pairs, names) = if own == 0 { (pairs, Some(names)) } else { (own, None) };
            Some(Entry { id: StreamId { ms, seq }, pairs, names, content: entry })
        })
    }

    /// Removes the entries that are to go; how many went.
    pub(super) fn remove(&mut self, first: StreamId, is_gone: impl Fn(StreamId) -> bool) -> usize {
        let start = self.bytes.len() - self.parts().2.len();
        let (mut from, mut to, mut removed) = (start, start, 0);
        while from < self.bytes.len() {
            let mut rest = &self.bytes[from..];
            let id = self.entry_id(first, rest);
            let entry = take_string(&mut rest);
            let end = if entry.is_some() { self.bytes.len() - rest.len() } else { self.bytes.len() };
            if id.is_some_and(&is_gone) {
                removed += 1;
            } else {
                self.bytes.copy_within(from..end, to);
                to += end - from;
            }
            from = end;
        }
        self.bytes.truncate(to);
        if self.bytes.capacity() > 2 * self.bytes.len().max(64) {
            self.bytes.shrink_to(self.bytes.len());
        }
        self.len -= removed;
        usize::from(removed)
    }

    fn entry_id(&self, first: StreamId, mut entries: &[u8]) -> Option<StreamId> {
        let mut entry = take_string(&mut entries)?;
        let ms = first.ms.wrapping_add(unzigzag(take_number(&mut entry)?) as u64);
        let seq = first.seq.wrapping_add(unzigzag(take_number(&mut entry)?) as u64);
        Some(StreamId { ms, seq })
    }

    /// Appends it as bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.last.to_bytes());
        put_number(out, self.used.into());
        put_number(out, self.listpack_bytes.into());
        out.extend_from_slice(&self.bytes);
    }

    /// Reads all of `input`; `None` if it is not a block that begins with `first`, or its ids are not in order.
    pub(super) fn read(mut input: &[u8], first: StreamId) -> Option<Self> {
        let (last, rest) = input.split_first_chunk()?;
        input = rest;
        let last = StreamId::from_bytes(*last);
        let used = u16::try_from(take_number(&mut input)?).ok()?;
        let listpack_bytes = u32::try_from(take_number(&mut input)?).ok()?;
        let mut rest = input;
        let pairs = usize::try_from(take_number(&mut rest)?).ok()?;
        for _ in 0..pairs {
            take_string(&mut rest)?;
        }
        let (mut len, mut before) = (0u16, None);
        while !rest.is_empty() {
            let mut entry = take_string(&mut rest)?;
            let ms = first.ms.wrapping_add(unzigzag(take_number(&mut entry)?) as u64);
            let seq = first.seq.wrapping_add(unzigzag(take_number(&mut entry)?) as u64);
            let id = StreamId { ms, seq };
            if id < before.map_or(first, |before| before) || before == Some(id) {
                return None;
            }
            before = Some(id);
            let own = usize::try_from(take_number(&mut entry)?).ok()?;
            let strings = if own == 0 { pairs } else { own.checked_mul(2)? };
            for _ in 0..strings {
                take_string(&mut entry)?;
            }
            if !entry.is_empty() {
                return None;
            }
            len = len.checked_add(1)?;
        }
        let is_whole = pairs > 0 && len > 0 && len <= used && before.is_some_and(|top| top <= last);
        is_whole.then(|| Self { bytes: input.to_vec(), last, len, used, listpack_bytes })
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// How much room Redis' listpacks need, bytes.
mod listpack {
    /// One without items.
    pub(super) const EMPTY: usize = 7;

    /// An item that is an integer.
    pub(super) fn integer(number: i64) -> usize {
        let bytes = match number {
            0..=127 => 1,
            -4096..=4095 => 2,
            -32_768..=32_767 => 3,
            -8_388_608..=8_388_607 => 4,
            -2_147_483_648..=2_147_483_647 => 5,
            _ => 9,
        };
        with_length(bytes)
    }

    /// An item that is a string; one that spells an integer is kept as one.
    pub(super) fn string(bytes: &[u8]) -> usize {
        if let Some(number) = super::integer::parse(bytes) {
            return integer(number);
        }
        with_length(
            bytes.len()
                + match bytes.len() {
                    0..64 => 1,
                    64..4096 => 2,
                    _ => 5,
                },
        )
    }

    fn with_length(bytes: usize) -> usize {
        bytes
            + match bytes {
                0..=127 => 1,
                128..16_383 => 2,
                16_383..2_097_151 => 3,
                2_097_151..268_435_455 => 4,
                _ => 5,
            }
    }
}
