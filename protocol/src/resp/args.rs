//! The arguments of one request, borrowed from the query buffer.
//!
//! For: reading arguments without copying them.
//! Not here: parsing of the wire (`request`), typed cursors (`command::args`).

use std::ops::{Index, Range};

/// The arguments of one request; argument 0 is the command's name.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    buffer: &'a [u8],
    ranges: &'a [Range<usize>],
}

impl<'a> Args<'a> {
    /// `ranges` are positions in `buffer`; the parser made them, so they lie within it.
    #[must_use]
    pub fn new(buffer: &'a [u8], ranges: &'a [Range<usize>]) -> Self {
        Self { buffer, ranges }
    }

    /// Number of arguments, the name included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// No argument at all, not even a name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The argument at `index`, if there is one.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.ranges.get(index).map(|range| &self.buffer[range.clone()])
    }

    /// All arguments, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + '_ {
        self.ranges.iter().map(|range| &self.buffer[range.clone()])
    }

    /// Bytes of all arguments.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.ranges.iter().map(ExactSizeIterator::len).sum()
    }

    /// Where the arguments stand in the buffer of the request.
    #[must_use]
    pub fn ranges(&self) -> &'a [Range<usize>] {
        self.ranges
    }

    /// Other arguments in the same buffer.
    #[must_use]
    pub fn pick<'b>(&self, ranges: &'b [Range<usize>]) -> Args<'b>
    where
        'a: 'b,
    {
        Args { buffer: self.buffer, ranges }
    }

    /// The arguments from `start` on, before `end`.
    #[must_use]
    pub fn part(&self, start: usize, end: usize) -> Args<'a> {
        let end = end.min(self.ranges.len());
        Args { buffer: self.buffer, ranges: &self.ranges[start.min(end)..end] }
    }

    /// The arguments from `start` on (to treat `OBJECT ENCODING key` as `ENCODING key`).
    #[must_use]
    pub fn tail(&self, start: usize) -> Args<'a> {
        Args { buffer: self.buffer, ranges: &self.ranges[start.min(self.ranges.len())..] }
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    /// # Panics
    /// When there is no argument `index`: only for positions that the arity check has shown.
    fn index(&self, index: usize) -> &[u8] {
        &self.buffer[self.ranges[index].clone()]
    }
}
