//! How a record lies on disk: length, version, checksum, body.
//!
//! For: writing records one after another, and reading back exactly those that were written whole.
//! Not here: what a body means (`journal`, `snapshot`), files (`writer`).
//!
//! ```text
//! | length of body, u32 LE | version, u8 | CRC32 of length, version and body, u32 LE | body |
//! ```

use korum_protocol::limits::CONTROL_FRAME_BYTES_MAX;

/// Version of all records in a Raft directory. A build that cannot read a newer one refuses to start.
pub const RECORD_VERSION: u8 = 1;
/// Longest body, bytes: what the decoder may allocate is the limit for what it may read.
pub const BODY_BYTES_MAX: usize = CONTROL_FRAME_BYTES_MAX;
/// Length, version, checksum. Never all zeros, as the version is not.
pub const HEADER_BYTES: usize = 9;
/// How far behind a bad record we look for a good one, bytes. Only to say how bad the damage is.
const SEARCH_BYTES_MAX: usize = 1 << 20;

/// What stands at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A whole record, and what follows it.
    Record {
        /// The bytes that were written.
        body: &'a [u8],
        /// What follows.
        rest: &'a [u8],
    },
    /// Nothing: no bytes, or zeros where a header would be. What follows the zeros was not looked at.
    End,
    /// Not a whole record: torn, damaged or of a later version.
    Bad,
}

/// Appends a record to `out`.
///
/// # Panics
/// If the body is longer than [`BODY_BYTES_MAX`]: whoever makes bodies keeps that bound.
pub fn write(body: &[u8], out: &mut Vec<u8>) {
    assert!(body.len() <= BODY_BYTES_MAX, "a record of {} bytes", body.len());
    let length = (body.len() as u32).to_le_bytes();
    out.extend_from_slice(&length);
    out.push(RECORD_VERSION);
    out.extend_from_slice(&checksum(length, body).to_le_bytes());
    out.extend_from_slice(body);
}

/// Reads the record at the start of `bytes`.
pub fn next(bytes: &[u8]) -> Next<'_> {
    if is_zero(&bytes[..bytes.len().min(HEADER_BYTES)]) {
        return Next::End;
    }
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Next::Bad };
    let [l0, l1, l2, l3, version, c0, c1, c2, c3] = *header;
    let length = [l0, l1, l2, l3];
    let body_bytes = u32::from_le_bytes(length) as usize;
    if version != RECORD_VERSION || body_bytes > BODY_BYTES_MAX || body_bytes > rest.len() {
        return Next::Bad;
    }
    let (body, rest) = rest.split_at(body_bytes);
    if checksum(length, body) == u32::from_le_bytes([c0, c1, c2, c3]) {
        Next::Record { body, rest }
    } else {
        Next::Bad
    }
}

/// Does a good record stand somewhere after the first byte? Then the damage is not a torn tail.
pub fn good_one_follows(bytes: &[u8]) -> bool {
    let search = bytes.len().min(SEARCH_BYTES_MAX);
    (1..search).any(|at| matches!(next(&bytes[at..]), Next::Record { .. }))
}

/// Are all of these bytes zeros?
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn checksum(length: [u8; 4], body: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&length);
    crc.update(&[RECORD_VERSION]);
    crc.update(body);
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut bodies = vec![];
        while let Next::Record { body, rest } = next(bytes) {
            bodies.push(body.to_vec());
            bytes = rest;
        }
        bodies
    }

    proptest! {
        #[test]
        fn records_read_back_as_written(bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8)) {
            let mut bytes = vec![];
            bodies.iter().for_each(|body| write(body, &mut bytes));
            prop_assert_eq!(read_all(&bytes), bodies);
        }

        #[test]
        fn damage_yields_only_a_prefix_of_what_was_written(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 1..8),
            at in any::<prop::sample::Index>(), flip in 1..=255u8, keep in any::<prop::sample::Index>(),
        ) {
            let mut bytes = vec![];
            bodies.iter().for_each(|body| write(body, &mut bytes));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            bytes.truncate(keep.index(bytes.len() + 1));
            prop_assert!(bodies.starts_with(&read_all(&bytes)));
        }

        #[test]
        fn noise_is_never_a_record(bytes in prop::collection::vec(any::<u8>(), 1..256)) {
            prop_assert_eq!(next(&bytes), if is_zero(&bytes[..bytes.len().min(HEADER_BYTES)]) { Next::End } else { Next::Bad });
        }
    }

    #[test]
    fn a_tail_of_zeros_is_the_end() {
        for zeros in [0, 1, HEADER_BYTES, 64] {
            assert_eq!(next(&vec![0; zeros]), Next::End);
        }
        let mut bytes = vec![];
        write(b"body", &mut bytes);
        bytes.extend([0; 64]);
        assert_eq!(read_all(&bytes), [b"body"]);
    }
}
