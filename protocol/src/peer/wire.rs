//! The one module that names bincode.
//!
//! For: serde values to bytes and back, with a limit on what decoding may allocate.
//! Not here: frames and checksums (`frame`).
//! Rule: messages hold `Bytes`, never `Vec<u8>`, and stored or sent records carry a version.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::CONTROL_FRAME_BYTES_MAX;

/// Why bytes are not the value that was expected.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// Truncated, of another type, or over the limit.
    #[error("cannot decode a {what}: {reason}")]
    Decode {
        /// The type that was expected.
        what: &'static str,
        /// What the decoder met.
        reason: String,
    },
    /// Bytes were left over, so the writer meant another type.
    #[error("cannot decode a {what}: {left} bytes left over")]
    Trailing {
        /// The type that was expected.
        what: &'static str,
        /// How many bytes were left.
        left: usize,
    },
}

/// The bytes of a value.
///
/// # Panics
/// Never for the types of this crate: they hold nothing that bincode cannot write.
#[must_use]
pub fn encode<T: Serialize>(value: &T) -> Bytes {
    bincode::serde::encode_to_vec(value, bincode::config::standard())
        .expect("plain data always encodes")
        .into()
}

/// The value of exactly these bytes.
///
/// # Errors
/// When the bytes are not one whole value, or decoding would allocate over `CONTROL_FRAME_BYTES_MAX`.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let what = std::any::type_name::<T>();
    let config = bincode::config::standard().with_limit::<CONTROL_FRAME_BYTES_MAX>();
    let (value, read) = bincode::serde::decode_from_slice(bytes, config)
        .map_err(|error| WireError::Decode { what, reason: error.to_string() })?;
    if read == bytes.len() { Ok(value) } else { Err(WireError::Trailing { what, left: bytes.len() - read }) }
}
