//! What is answered to bytes that are no request, in the words of Redis 7.
//!
//! For: the errors of `request`. Not here: errors of commands (`command::resolve`, `command::args`).

/// Why the bytes are no request. The connection answers [`RequestError::reply`] and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// `*` without a number, or with too large a one.
    #[error("invalid multibulk length")]
    MultibulkLength,
    /// `$` without a number, with a negative or too large a one.
    #[error("invalid bulk length")]
    BulkLength,
    /// Something else where `$` must stand.
    #[error("expected '$', got '{}'", .0.escape_ascii())]
    ExpectedBulk(u8),
    /// An inline command longer than the limit.
    #[error("too big inline request")]
    InlineTooBig,
    /// A `*` header longer than the limit.
    #[error("too big mbulk count string")]
    CountTooBig,
    /// A `$` header longer than the limit.
    #[error("too big bulk count string")]
    LengthTooBig,
    /// An inline command whose quotes do not close, or do not end an argument.
    #[error("unbalanced quotes in request")]
    UnbalancedQuotes,
    /// A bulk string that is longer than it said.
    #[error("expected CRLF after a bulk string")]
    MissingCrlf,
}

impl RequestError {
    /// The text of the error reply: `ERR Protocol error: …`, with the client's byte as it came.
    #[must_use]
    pub fn reply(&self) -> Vec<u8> {
        let mut text = b"ERR Protocol error: ".to_vec();
        match self {
            Self::ExpectedBulk(byte) => {
                text.extend_from_slice(&[b"expected '$', got '", &[*byte][..], b"'"].concat())
            }
            other => text.extend_from_slice(other.to_string().as_bytes()),
        }
        text
    }
}
