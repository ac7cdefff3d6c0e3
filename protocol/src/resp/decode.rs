//! Reply bytes become values, on the client's side.
//!
//! For: [`Reply`], [`ReplyDecoder`] and the encoding of requests.
//! Not here: the guard that finds the end of a reply (`guard`), sockets, retries.
//!
//! `redis-protocol` decodes every value. Aggregates are opened here instead: its decoder recurses
//! without a bound, starts over with every read, and keeps maps in hash maps, which lose the order
//! and refuse some keys. So the guard first makes sure that one whole reply of bounded depth is
//! there; only then it is cut off the buffer and built, sharing the bulk strings' bytes.

use bytes::{BufMut, Bytes, BytesMut};
use redis_protocol::error::RedisProtocolError;
use redis_protocol::{resp2, resp3};

use super::guard::Guard;
use super::reply::decimal;

/// One decoded reply of either protocol version.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+`: a status.
    Simple(Bytes),
    /// `-` or `!`: an error, its prefix included.
    Error(Bytes),
    /// `:`: a signed 64-bit integer.
    Integer(i64),
    /// `$`: bytes.
    Bulk(Bytes),
    /// `_`, `$-1` or `*-1`: nothing.
    Null,
    /// `*`: values in order.
    Array(Vec<Reply>),
    /// `%`: keys and values in the order in which they came.
    Map(Vec<(Reply, Reply)>),
    /// `~`: values without an order.
    Set(Vec<Reply>),
    /// `>`: a message that answers no request.
    Push(Vec<Reply>),
    /// `,`: a floating point number.
    Double(f64),
    /// `#`: true or false.
    Boolean(bool),
    /// `(`: the digits of an integer of any size.
    BigNumber(Bytes),
    /// `=`: text with the format it is in (`txt`, `mkd`).
    Verbatim {
        /// Three letters.
        format: [u8; 3],
        /// The text without its format.
        text: Bytes,
    },
}

impl Reply {
    /// The bytes of a bulk string, a status or a verbatim text.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Simple(bytes) | Self::Bulk(bytes) | Self::Verbatim { text: bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// The number of an integer reply.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    /// The text of an error reply.
    #[must_use]
    pub fn as_error(&self) -> Option<&Bytes> {
        if let Self::Error(text) = self { Some(text) } else { None }
    }
}

/// Why the bytes are no reply. The connection cannot be trusted after that.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A value begins with a byte that names no type.
    #[error("reply: no type begins with '{}'", .0.escape_ascii())]
    UnknownType(u8),
    /// A length or count is no number, negative, or past its limit.
    #[error("reply: invalid length")]
    Length,
    /// A line is longer than [`crate::limits::LINE_BYTES_MAX`].
    #[error("reply: a line is too long")]
    LineTooLong,
    /// A line or a bulk string does not end with CRLF.
    #[error("reply: expected CRLF")]
    MissingCrlf,
    /// Aggregates nest deeper than [`crate::limits::REPLY_DEPTH_MAX`].
    #[error("reply: nested too deep")]
    TooDeep,
    /// The reply has more bytes or elements than this side holds.
    #[error("reply: too big")]
    TooBig,
    /// A value is not what its type promises.
    #[error("reply: invalid value")]
    Value(#[from] RedisProtocolError),
    /// A value that this decoder does not know, or that is cut short inside a whole reply.
    #[error("reply: malformed value")]
    Malformed,
}

/// Decodes the replies of one connection.
#[derive(Debug, Default)]
pub struct ReplyDecoder {
    guard: Guard,
}

impl ReplyDecoder {
    /// A decoder for a fresh connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next reply off the front of `buffer`; `None` when it is not whole yet. Then the next
    /// call must bring the same bytes and more: the work over all calls is linear. Bulk strings share
    /// the buffer's memory.
    ///
    /// # Errors
    /// [`DecodeError`]: close the connection.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Reply>, DecodeError> {
        let Some(length) = self.guard.find_end(buffer)? else { return Ok(None) };
        let bytes = buffer.split_to(length).freeze();
        let mut builder = Builder { bytes: &bytes, position: 0 };
        let reply = builder.value()?;
        if builder.position == length { Ok(Some(reply)) } else { Err(DecodeError::Malformed) }
    }
}

/// Walks over one whole reply that the guard has seen: depth and counts are bounded.
struct Builder<'a> {
    bytes: &'a Bytes,
    position: usize,
}

impl Builder<'_> {
    fn value(&mut self) -> Result<Reply, DecodeError> {
        loop {
            let kind = *self.bytes.get(self.position).ok_or(DecodeError::Malformed)?;
            return match kind {
                b'+' | b'-' | b':' | b'$' => self.resp2_scalar(),
                b'*' => match self.count()? {
                    -1 => Ok(Reply::Null),
                    count => Ok(Reply::Array(self.values(count)?)),
                },
                b'~' => {
                    let count = self.count()?;
                    Ok(Reply::Set(self.values(count)?))
                }
                b'>' => {
                    let count = self.count()?;
                    Ok(Reply::Push(self.values(count)?))
                }
                b'%' => Ok(Reply::Map(self.pairs()?)),
                b'|' => {
                    // Attributes are remarks about the value that follows; nothing here asks for them.
                    self.pairs()?;
                    continue;
                }
                _ => self.resp3_scalar(),
            };
        }
    }

    fn values(&mut self, count: i64) -> Result<Vec<Reply>, DecodeError> {
        // The guard has seen that many values, so the count is no empty promise.
        let mut values = Vec::with_capacity(usize::try_from(count).map_err(|_| DecodeError::Length)?);
        for _ in 0..count {
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn pairs(&mut self) -> Result<Vec<(Reply, Reply)>, DecodeError> {
        let count = self.count()?;
        (0..count).map(|_| Ok((self.value()?, self.value()?))).collect()
    }

    /// The count of the aggregate whose header stands here.
    fn count(&mut self) -> Result<i64, DecodeError> {
        let rest = &self.bytes[self.position + 1..];
        let end = memchr::memchr(b'\r', rest).ok_or(DecodeError::Malformed)?;
        self.position += end + 3;
        super::integer(&rest[..end]).ok_or(DecodeError::Length)
    }

    fn resp2_scalar(&mut self) -> Result<Reply, DecodeError> {
        use resp2::types::RangeFrame as Frame;
        let found = resp2::decode::decode_range(&self.bytes[self.position..])?;
        let (frame, length) = found.ok_or(DecodeError::Malformed)?;
        let reply = match frame {
            Frame::SimpleString(range) => Reply::Simple(self.slice(range)),
            Frame::Error(range) => Reply::Error(self.slice(range)),
            Frame::Integer(number) => Reply::Integer(number),
            Frame::BulkString(range) => Reply::Bulk(self.slice(range)),
            Frame::Null => Reply::Null,
            Frame::Array(_) => return Err(DecodeError::Malformed),
        };
        self.position += length;
        Ok(reply)
    }

    fn resp3_scalar(&mut self) -> Result<Reply, DecodeError> {
        use resp3::types::RangeFrame as Frame;
        let found = resp3::decode::complete::decode_range(&self.bytes[self.position..])?;
        let (frame, length) = found.ok_or(DecodeError::Malformed)?;
        let reply = match frame {
            Frame::Null => Reply::Null,
            Frame::Boolean { data, .. } => Reply::Boolean(data),
            Frame::Double { data, .. } => Reply::Double(data),
            Frame::BigNumber { data, .. } => Reply::BigNumber(self.slice(data)),
            Frame::BlobError { data, .. } => Reply::Error(self.slice(data)),
            Frame::VerbatimString { data, format, .. } => Reply::Verbatim {
                format: match format {
                    resp3::types::VerbatimStringFormat::Text => *b"txt",
                    resp3::types::VerbatimStringFormat::Markdown => *b"mkd",
                },
                text: self.slice(data),
            },
            _ => return Err(DecodeError::Malformed),
        };
        self.position += length;
        Ok(reply)
    }

    /// A range relative to the value that stands here.
    fn slice(&self, (start, end): (usize, usize)) -> Bytes {
        self.bytes.slice(self.position + start..self.position + end)
    }
}

/// The length of the reply at the front of `buffer`; `None` when it is not whole, or no reply.
#[must_use]
pub fn reply_length(buffer: &[u8]) -> Option<usize> {
    Guard::default().find_end(buffer).ok().flatten()
}

/// Appends one request to `out`: an array of bulk strings.
pub fn encode_request(args: &[impl AsRef<[u8]>], out: &mut BytesMut) {
    let payload: usize = args.iter().map(|arg| arg.as_ref().len() + 16).sum();
    out.reserve(payload + 16);
    encode_header(b'*', args.len(), out);
    for arg in args {
        encode_header(b'$', arg.as_ref().len(), out);
        out.put_slice(arg.as_ref());
        out.put_slice(b"\r\n");
    }
}

/// Appends the header of an array (`*`) or a bulk string (`$`).
pub fn encode_header(kind: u8, number: usize, out: &mut BytesMut) {
    let mut digits = [0u8; 20];
    out.put_u8(kind);
    out.put_slice(decimal(number as i64, &mut digits));
    out.put_slice(b"\r\n");
}
