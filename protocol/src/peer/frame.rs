//! How a message between nodes stands on the wire.
//!
//! For: length, version, kind and checksum around a body of bytes; pure.
//! Not here: what a kind means (`message` and the node's rooms), sockets (the node's `net::peer`).
//! Rule: the length is checked against a cap before anything is allocated.
//!
//! ```text
//! length u32 | version u8 | kind u8 | crc32 u32 | body        (integers big-endian)
//! ```
//! `length` counts the body only; the checksum covers length, version, kind and body.

/// Bytes before the body.
pub const HEADER_BYTES: usize = 10;

/// Version of frames and of the messages in them. Nodes speak to their own version only.
pub const VERSION: u8 = 5;

/// What stands before a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the body is.
    pub kind: u8,
    /// Bytes of the body.
    pub length: usize,
    checksum: u32,
}

/// Why bytes are not a frame. After any of these the connection is of no more use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// Longer than this connection allows.
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    OverLimit {
        /// What the header says.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
    /// Another version of the protocol (or no Korum node at all).
    #[error(
        "the peer speaks version {found} of the peer protocol, this node speaks {VERSION}: run the same release on all nodes"
    )]
    Version {
        /// What the header says.
        found: u8,
    },
    /// Damaged on the way.
    #[error("a frame of kind {kind} arrived damaged (checksum)")]
    Checksum {
        /// What the header says.
        kind: u8,
    },
}

/// The header of a body.
///
/// # Panics
/// When the body is longer than `u32::MAX`: senders cut long before.
#[must_use]
pub fn header(kind: u8, body: &[u8]) -> [u8; HEADER_BYTES] {
    header_of_parts(kind, &[body])
}

/// The header of a body that lies in several pieces.
///
/// # Panics
/// As [`header`].
#[must_use]
pub fn header_of_parts(kind: u8, parts: &[&[u8]]) -> [u8; HEADER_BYTES] {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).expect("senders keep to DATA_FRAME_BYTES_MAX").to_be_bytes();
    let mut hasher = start(length, kind);
    for part in parts {
        hasher.update(part);
    }
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&length);
    header[4] = VERSION;
    header[5] = kind;
    header[6..].copy_from_slice(&hasher.finalize().to_be_bytes());
    header
}

/// Appends a whole frame.
///
/// # Panics
/// As [`header`].
pub fn encode_into(out: &mut impl bytes::BufMut, kind: u8, body: &[u8]) {
    out.put_slice(&header(kind, body));
    out.put_slice(body);
}

/// Reads the header at the front of `bytes`; `None` when it is not complete yet.
///
/// # Errors
/// When the length is over `limit` or the version is another one.
pub fn parse_header(bytes: &[u8], limit: usize) -> Result<Option<Header>, FrameError> {
    let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [a, b, c, d, version, kind, w, x, y, z] = *bytes;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > limit {
        return Err(FrameError::OverLimit { length, limit });
    }
    if version != VERSION {
        return Err(FrameError::Version { found: version });
    }
    Ok(Some(Header { kind, length, checksum: u32::from_be_bytes([w, x, y, z]) }))
}

impl Header {
    /// Is this the body that the header was written for?
    ///
    /// # Errors
    /// When the checksum or the length differs.
    pub fn check(&self, body: &[u8]) -> Result<(), FrameError> {
        let mut hasher = start((self.length as u32).to_be_bytes(), self.kind);
        hasher.update(body);
        if body.len() == self.length && hasher.finalize() == self.checksum {
            Ok(())
        } else {
            Err(FrameError::Checksum { kind: self.kind })
        }
    }
}

fn start(length: [u8; 4], kind: u8) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(&[VERSION, kind]);
    hasher
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_into(&mut out, kind, body);
        out
    }

    fn read(bytes: &[u8]) -> Result<Option<(u8, Vec<u8>)>, FrameError> {
        let Some(header) = parse_header(bytes, 1 << 16)? else { return Ok(None) };
        let Some(body) = bytes[HEADER_BYTES..].get(..header.length) else { return Ok(None) };
        header.check(body)?;
        Ok(Some((header.kind, body.to_vec())))
    }

    proptest! {
        #[test]
        fn a_frame_reads_back_and_every_prefix_waits(kind: u8, body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = frame(kind, &body);
            prop_assert_eq!(read(&bytes), Ok(Some((kind, body))));
            for end in 0..bytes.len() {
                prop_assert_eq!(read(&bytes[..end]), Ok(None));
            }
        }

        #[test]
        fn a_flipped_bit_never_gives_a_frame(
            kind: u8,
            body in proptest::collection::vec(any::<u8>(), 0..100),
            at: prop::sample::Index,
            bit in 0u8..8,
        ) {
            let mut bytes = frame(kind, &body);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(!matches!(read(&bytes), Ok(Some(_))));
        }

        #[test]
        fn pieces_give_the_same_header(kind: u8, body in proptest::collection::vec(any::<u8>(), 0..100), cut: prop::sample::Index) {
            let (a, b) = body.split_at(cut.index(body.len() + 1));
            prop_assert_eq!(header(kind, &body), header_of_parts(kind, &[a, b]));
        }

        #[test]
        fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn a_length_over_the_limit_is_refused_from_the_header_alone() {
        let bytes = frame(1, &[0; 100]);
        assert_eq!(
            parse_header(&bytes[..HEADER_BYTES], 99),
            Err(FrameError::OverLimit { length: 100, limit: 99 })
        );
    }
}
