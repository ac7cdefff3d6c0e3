//! Where the strings of a request or message come from, so that long ones are kept without copying them.
//!
//! For: turning a slice of a received buffer into a value that the store owns.
//! Not here: receiving (`net`), what is kept (`value`).
//!
//! A value that shares a buffer keeps the whole buffer; so only one that is most of it may. The long strings of a
//! buffer with several are copied out beforehand, a piece at a time, where nobody waits.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use korum_protocol::rope::HELD_BYTES_MIN;

/// Bytes copied before other tasks of the thread get their turn: a few hundred microseconds.
const COPY_BYTES: usize = 1 << 20;

/// A received buffer, and copies of the long strings in it that do not make it up.
#[derive(Clone, Debug, Default)]
pub struct Source {
    buffer: Bytes,
    copies: Vec<(usize, Bytes)>,
}

impl Source {
    /// Every string is copied.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// A buffer that is an allocation of its own, or most of one.
    #[must_use]
    pub fn of(buffer: Bytes) -> Self {
        Self { buffer, copies: Vec::new() }
    }

    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &Bytes {
        &self.buffer
    }

    fn may_share(&self, length: usize) -> bool {
        length >= HELD_BYTES_MIN && 2 * length >= self.buffer.len()
    }

    /// Copies the long strings among `ranges` that may not share the buffer; other tasks get their turn meanwhile.
    pub async fn copy_out(&mut self, ranges: impl Iterator<Item = Range<usize>>) {
        for range in ranges {
            if range.len() < HELD_BYTES_MIN || self.may_share(range.len()) || range.end > self.buffer.len() {
                continue;
            }
            let mut copy = BytesMut::with_capacity(range.len());
            for piece in self.buffer[range.clone()].chunks(COPY_BYTES) {
                copy.extend_from_slice(piece);
                tokio::task::yield_now().await;
            }
            self.copies.push((range.start, copy.freeze()));
        }
    }

    /// Where `part` stands in the buffer, if it is a part of it.
    #[must_use]
    pub fn position(&self, part: &[u8]) -> Option<usize> {
        let start = (part.as_ptr() as usize).checked_sub(self.buffer.as_ptr() as usize)?;
        (start.checked_add(part.len())? <= self.buffer.len()).then_some(start)
    }

    /// A string that can be kept for long.
    #[must_use]
    pub fn keep(&self, string: &[u8]) -> Bytes {
        if let Some(start) = self.position(string) {
            if self.may_share(string.len()) {
                return self.buffer.slice(start..start + string.len());
            }
            if let Some((_, copy)) =
                self.copies.iter().find(|(at, copy)| *at == start && copy.len() == string.len())
            {
                return copy.clone();
            }
        }
        Bytes::copy_from_slice(string)
    }

    /// A string that is needed for a short time only, such as on its way to a socket.
    #[must_use]
    pub fn lend(&self, string: &[u8]) -> Bytes {
        match self.position(string) {
            Some(start) if string.len() >= HELD_BYTES_MIN => self.buffer.slice(start..start + string.len()),
            Some(_) | None => Bytes::copy_from_slice(string),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: usize = HELD_BYTES_MIN;

    #[tokio::test]
    async fn a_string_shares_the_buffer_only_if_it_is_most_of_it() {
        let buffer = Bytes::from((0..5 * LONG).map(|at| at as u8).collect::<Vec<u8>>());
        let mut source = Source::of(buffer.clone());
        source.copy_out([0..LONG, LONG..4 * LONG, 4 * LONG..4 * LONG + 9].into_iter()).await;
        let is_in = |bytes: &Bytes| source.position(bytes).is_some();
        let (most, some, short) = (&buffer[LONG..4 * LONG], &buffer[..LONG], &buffer[4 * LONG..4 * LONG + 9]);
        assert!(is_in(&source.keep(most)) && !is_in(&source.keep(some)) && !is_in(&source.keep(short)));
        assert_eq!(source.keep(some).as_ptr(), source.keep(some).as_ptr(), "it was copied once, before");
        for part in [most, some, short] {
            assert_eq!(source.keep(part), part);
            assert_eq!(source.lend(part), part);
        }
        assert!(is_in(&source.lend(some)) && !is_in(&source.lend(short)));
        assert_eq!(source.keep(b"from elsewhere"), "from elsewhere");
        assert_eq!(Source::none().keep(most), most);
    }
}
