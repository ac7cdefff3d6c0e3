//! Large frames travel in pieces, so that small ones pass between them.
//!
//! For: the form of a piece, and putting frames together again within a bound; pure.
//! Not here: which frames are cut and when the next piece goes (the node's `net::peer`).
//!
//! ```text
//! piece = frame of kind 255, whose body is  stream u8 | kind u8 | total u32 | offset u32 | bytes
//! ```
//! Pieces of one stream follow each other without a gap and make one frame of `kind` and `total` bytes; up to
//! [`STREAMS_MAX`] frames may be under way at a time. The checksum of each piece is that of its frame.

use bytes::{Buf, Bytes, BytesMut};

/// The kind of a frame that is a piece of another one.
pub const PIECE: u8 = 255;
/// Bytes of one piece, and the longest body of a frame that is not cut: a fraction of a millisecond of copying,
/// checking and sending, and far above the cost of a system call.
pub const PIECE_BYTES: usize = 256 << 10;
/// Bytes before the bytes of a piece.
pub const HEAD_BYTES: usize = 10;
/// Frames that may be under way on one connection: so many of different size make progress together.
pub const STREAMS_MAX: usize = 4;

/// Why a piece does not fit. The connection is of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PieceError {
    /// Too short for what it must say, or it says what cannot be.
    #[error("a piece of a frame is malformed")]
    Malformed,
    /// The frames that were announced are longer together than this connection allows.
    #[error("frames of {length} bytes under way are over the limit of {limit}")]
    OverLimit {
        /// Bytes announced.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
    /// It does not follow the last piece of its stream.
    #[error("a piece of stream {stream} at {offset} does not follow the one before it")]
    OutOfPlace {
        /// The stream.
        stream: u8,
        /// Where it says that it belongs.
        offset: usize,
    },
}

/// What stands before the bytes of a piece.
#[must_use]
pub fn head(stream: u8, kind: u8, total: u32, offset: u32) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    (head[0], head[1]) = (stream, kind);
    head[2..6].copy_from_slice(&total.to_be_bytes());
    head[6..].copy_from_slice(&offset.to_be_bytes());
    head
}

/// A frame that is not whole yet.
#[derive(Debug)]
struct Partial {
    kind: u8,
    total: usize,
    body: BytesMut,
}

/// The frames of one connection that are under way.
#[derive(Debug, Default)]
pub struct Assembly {
    streams: [Option<Partial>; STREAMS_MAX],
}

impl Assembly {
    /// Nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.streams.iter().all(Option::is_none)
    }

    /// Takes a piece; gives the frame's kind and body if it was the last. All frames under way have at most
    /// `limit` bytes together.
    ///
    /// # Errors
    /// When the piece does not fit; nothing more can be trusted then.
    pub fn add(&mut self, mut piece: &[u8], limit: usize) -> Result<Option<(u8, Bytes)>, PieceError> {
        if piece.len() <= HEAD_BYTES {
            return Err(PieceError::Malformed);
        }
        let (stream, kind) = (piece.get_u8(), piece.get_u8());
        let (total, offset) = (piece.get_u32() as usize, piece.get_u32() as usize);
        let under_way: usize = self.streams.iter().flatten().map(|partial| partial.total).sum();
        let slot = self.streams.get_mut(usize::from(stream)).ok_or(PieceError::Malformed)?;
        if kind == PIECE {
            return Err(PieceError::Malformed);
        }
        let out_of_place = PieceError::OutOfPlace { stream, offset };
        let partial = match slot {
            Some(partial)
                if offset == partial.body.len() && (kind, total) == (partial.kind, partial.total) =>
            {
                partial
            }
            None if offset == 0 => {
                let length = under_way + total;
                if length > limit {
                    return Err(PieceError::OverLimit { length, limit });
                }
                // The room is taken at once, so that it is never copied; the system gives memory as it is filled.
                slot.insert(Partial { kind, total, body: BytesMut::with_capacity(total) })
            }
            Some(_) | None => return Err(out_of_place),
        };
        if piece.len() > partial.total - partial.body.len() {
            return Err(out_of_place);
        }
        partial.body.extend_from_slice(piece);
        if partial.body.len() < partial.total {
            return Ok(None);
        }
        Ok(slot.take().map(|partial| (partial.kind, partial.body.freeze())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(stream: u8, kind: u8, total: usize, offset: usize, bytes: &[u8]) -> Vec<u8> {
        [&head(stream, kind, total as u32, offset as u32), bytes].concat()
    }

    proptest! {
        #[test]
        fn frames_cut_anywhere_and_interleaved_come_out_whole(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 1..=STREAMS_MAX),
            turns in prop::collection::vec((any::<prop::sample::Index>(), 1usize..20), 0..80),
        ) {
            let mut assembly = Assembly::default();
            let mut sent = vec![0; bodies.len()];
            let mut whole = vec![false; bodies.len()];
            let rest = (0..bodies.len()).map(|stream| (stream, usize::MAX));
            let turns = turns.iter().map(|(index, size)| (index.index(bodies.len()), *size)).chain(rest);
            for (stream, size) in turns {
                let (body, from) = (&bodies[stream], sent[stream]);
                if from == body.len() {
                    continue;
                }
                let until = from.saturating_add(size).min(body.len());
                let bytes = piece(stream as u8, 7 + stream as u8, body.len(), from, &body[from..until]);
                let got = assembly.add(&bytes, 1 << 10).unwrap();
                sent[stream] = until;
                if until == body.len() {
                    whole[stream] = true;
                    prop_assert_eq!(got, Some((7 + stream as u8, Bytes::copy_from_slice(body))));
                } else {
                    prop_assert_eq!(got, None);
                }
            }
            prop_assert!(whole.iter().all(|&it| it));
            prop_assert!(assembly.is_empty());
        }

        #[test]
        fn no_piece_panics_or_takes_more_than_the_limit(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        ) {
            let mut assembly = Assembly::default();
            for mut bytes in pieces {
                // Small numbers, so that some of it fits.
                for at in [0, 2, 3, 4, 6, 7, 8] {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte &= if at == 0 { 7 } else { 0 };
                    }
                }
                if assembly.add(&bytes, 100).is_err() {
                    break;
                }
                let taken: usize = assembly.streams.iter().flatten().map(|it| it.body.capacity()).sum();
                prop_assert!(taken <= 100);
            }
        }
    }

    #[test]
    fn what_does_not_follow_or_fit_is_refused() {
        let out_of_place = |stream, offset| Err(PieceError::OutOfPlace { stream, offset });
        let begun = || {
            let mut assembly = Assembly::default();
            assert_eq!(assembly.add(&piece(1, 7, 10, 0, b"1234"), 50), Ok(None));
            assembly
        };
        assert_eq!(begun().add(&piece(1, 7, 10, 5, b"6"), 50), out_of_place(1, 5));
        assert_eq!(begun().add(&piece(1, 7, 10, 3, b"4"), 50), out_of_place(1, 3));
        assert_eq!(begun().add(&piece(1, 7, 11, 4, b"5"), 50), out_of_place(1, 4));
        assert_eq!(begun().add(&piece(1, 8, 10, 4, b"5"), 50), out_of_place(1, 4));
        assert_eq!(begun().add(&piece(1, 7, 10, 4, b"1234567"), 50), out_of_place(1, 4));
        assert_eq!(begun().add(&piece(2, 7, 10, 4, b"5"), 50), out_of_place(2, 4));
        assert_eq!(begun().add(&piece(1, 7, 10, 4, b""), 50), Err(PieceError::Malformed));
        assert_eq!(begun().add(&piece(4, 7, 10, 0, b"5"), 50), Err(PieceError::Malformed));
        assert_eq!(begun().add(&piece(0, PIECE, 10, 0, b"5"), 50), Err(PieceError::Malformed));
        assert_eq!(begun().add(&[], 50), Err(PieceError::Malformed));
        let huge = begun().add(&piece(0, 7, 41, 0, b"5"), 50);
        assert_eq!(huge, Err(PieceError::OverLimit { length: 51, limit: 50 }));
    }
}
