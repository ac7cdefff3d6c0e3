//! Large frames on their way out, a piece at a time.
//!
//! For: cutting what is longer than a piece, several such frames in turn, so that small frames pass between.
//! Not here: the form of a piece (`protocol::peer::piece`), putting frames together again (`connection`).

use std::collections::VecDeque;

use bytes::Bytes;
use korum_protocol::limits::DATA_FRAME_BYTES_MAX;
use korum_protocol::peer::piece::{self, PIECE, PIECE_BYTES, STREAMS_MAX};
use smallvec::SmallVec;

use super::{FrameWriter, PeerError};
use crate::store::Garbage;

/// One frame, and how far it was written.
struct Cut {
    kind: u8,
    stream: u8,
    pieces: VecDeque<Bytes>,
    total: usize,
    offset: usize,
    /// What was written, until the last of it was: dropping a large buffer takes long.
    written: Vec<Bytes>,
}

/// The large frames that wait for a connection, and those that are under way on it.
///
/// Up to `streams` frames are under way at a time, with no more bytes together than the longest frame has; each
/// gets a piece in its turn, so that a short one does not wait for the end of a long one.
pub struct Cutter {
    streams: usize,
    waiting: VecDeque<(u8, VecDeque<Bytes>, usize)>,
    under_way: VecDeque<Cut>,
    pending: usize,
}

impl Cutter {
    /// With `streams` of 1 the frames arrive in the order in which they were added.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        debug_assert!((1..=STREAMS_MAX).contains(&streams));
        Self { streams, waiting: VecDeque::new(), under_way: VecDeque::new(), pending: 0 }
    }

    /// Nothing is left to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }

    /// Bytes not written yet.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.pending
    }

    /// Adds a frame; its body lies in `pieces`.
    pub fn add(&mut self, kind: u8, pieces: VecDeque<Bytes>) {
        let total = pieces.iter().map(Bytes::len).sum();
        self.pending += total;
        self.waiting.push_back((kind, pieces, total));
    }

    fn begin(&mut self) {
        while self.under_way.len() < self.streams
            && let Some(&(_, _, total)) = self.waiting.front()
        {
            let taken: usize = self.under_way.iter().map(|cut| cut.total).sum();
            if !self.under_way.is_empty() && taken + total > DATA_FRAME_BYTES_MAX {
                return;
            }
            let Some((kind, pieces, total)) = self.waiting.pop_front() else { return };
            let is_free = |stream: &u8| self.under_way.iter().all(|cut| cut.stream != *stream);
            let stream =
                (0..STREAMS_MAX as u8).find(is_free).expect("fewer are under way than there are streams");
            self.under_way.push_back(Cut { kind, stream, pieces, total, offset: 0, written: Vec::new() });
        }
    }

    /// Writes the next piece. Returns the bytes written, and what the frame was made of if that was its last.
    ///
    /// Not safe to cancel: a frame may be left half written, so the connection must then be dropped.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn write_piece(&mut self, writer: &mut FrameWriter) -> Result<(usize, Garbage), PeerError> {
        self.begin();
        let Some(mut cut) = self.under_way.pop_front() else { return Ok((0, Garbage::default())) };
        let count = cut.write_piece(writer).await?;
        self.pending -= count;
        if cut.offset < cut.total {
            self.under_way.push_back(cut);
            return Ok((count, Garbage::default()));
        }
        Ok((count, cut.written.into_iter().collect()))
    }
}

impl Cut {
    async fn write_piece(&mut self, writer: &mut FrameWriter) -> Result<usize, PeerError> {
        let mut parts: SmallVec<[Bytes; 4]> = SmallVec::new();
        let mut count = 0;
        while count < PIECE_BYTES
            && let Some(front) = self.pieces.front_mut()
        {
            let part = front.split_to(front.len().min(PIECE_BYTES - count));
            count += part.len();
            parts.push(part);
            if front.is_empty() {
                self.pieces.pop_front();
            }
        }
        let number = |size: usize| u32::try_from(size).expect("senders keep to DATA_FRAME_BYTES_MAX");
        let head = piece::head(self.stream, self.kind, number(self.total), number(self.offset));
        let is_whole = count == self.total;
        let mut slices: SmallVec<[&[u8]; 5]> = SmallVec::new();
        slices.extend((!is_whole).then_some(&head[..]));
        slices.extend(parts.iter().map(|part| &part[..]));
        writer.write_parts(if is_whole { self.kind } else { PIECE }, &slices).await?;
        self.offset += count;
        // One holder of each buffer is enough.
        drop(slices);
        self.written.extend(parts.pop());
        Ok(count)
    }
}
