//! Request bytes become argument ranges, or `Incomplete`, or a typed error.
//!
//! For: the one parser that stands between strangers and the node: bounded, incremental, linear,
//! without an allocation per request. Never panics, whatever the bytes.
//! Not here: quoting rules of inline commands (`inline`), what the arguments mean (`command`),
//! the bound of the whole query buffer (the connection owns that buffer).
//!
//! ```text
//! Start ── '*' ──► Count ── N > 0 ──► Length ──► Body ──► Length … ──► Request
//!   │                └──── N <= 0 ──► Empty
//!   └── else ──► Line ──► Request, or Empty for a blank line
//! ```
//!
//! Differences to Redis 7, all on the strict side: the CRLF after a bulk string and the LF after a
//! header are checked, a wrong first byte of a bulk header is answered without waiting for its line,
//! and the number of arguments is bounded by [`crate::limits::ARGUMENTS_MAX`].
//! Next: `command::resolve` names what was parsed.

use std::ops::Range;

use super::error::RequestError;
use super::{Args, inline};
use crate::limits;

/// Most range slots kept for the next request: a rare giant must not hold its memory for ever.
const SLOTS_KEPT: usize = 1024;
/// Most bytes of unescaped inline text kept for the next request.
const INLINE_BYTES_KEPT: usize = 4096;
/// More digits than a header within any limit has; longer headers take the slow path.
const HEADER_DIGITS_MAX: usize = 10;

/// What one request may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Longest bulk string, bytes.
    pub bulk_bytes: usize,
    /// Most arguments, the command's name included.
    pub arguments: usize,
    /// Longest inline command or header line, bytes.
    pub line_bytes: usize,
}

impl RequestLimits {
    /// For a request that was checked before, perhaps with other limits.
    #[must_use]
    pub fn unlimited() -> Self {
        Self { bulk_bytes: usize::MAX, arguments: usize::MAX, line_bytes: usize::MAX }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            bulk_bytes: limits::BULK_BYTES_MAX,
            arguments: limits::ARGUMENTS_MAX,
            line_bytes: limits::LINE_BYTES_MAX,
        }
    }
}

/// How far the parser came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The request goes on beyond the buffer: read more, then call again with the same start.
    Incomplete,
    /// Nothing to run (`\r\n`, `*0\r\n`, `*-1\r\n`): drop `consumed` bytes.
    Empty {
        /// Bytes from the start of the buffer that are done with.
        consumed: usize,
    },
    /// One whole request: see [`RequestParser::args`], then drop `consumed` bytes.
    Request {
        /// Bytes from the start of the buffer that are done with.
        consumed: usize,
    },
}

/// Where in a request the parser stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the first byte; also after a request, an empty one, or an error.
    Start,
    /// In the line of an inline command.
    Line,
    /// In the `*` header.
    Count,
    /// In a `$` header.
    Length,
    /// In a bulk string of that many bytes.
    Body(usize),
}

/// The state of one connection's current request. Reused for all of its requests.
#[derive(Debug)]
pub struct RequestParser {
    limits: RequestLimits,
    stage: Stage,
    /// Where the current header, line or body starts in the buffer.
    position: usize,
    /// Up to where the current line was searched for its end.
    searched: usize,
    /// Arguments still to come, the present one included.
    remaining: usize,
    wanted: usize,
    ranges: Vec<Range<usize>>,
    /// Arguments of an inline command, unescaped; `ranges` then point here.
    inline: Vec<u8>,
    is_inline: bool,
    /// Bytes looked at so far, to show that the work is linear.
    #[cfg(test)]
    pub(super) work: usize,
}

impl Default for RequestParser {
    fn default() -> Self {
        Self::new(RequestLimits::default())
    }
}

impl RequestParser {
    /// A parser for a fresh connection.
    #[must_use]
    pub fn new(limits: RequestLimits) -> Self {
        Self {
            limits,
            stage: Stage::Start,
            position: 0,
            searched: 0,
            remaining: 0,
            wanted: 0,
            ranges: Vec::new(),
            inline: Vec::new(),
            is_inline: false,
            #[cfg(test)]
            work: 0,
        }
    }

    /// Parses on. `buffer` starts where the current request starts; after [`Parsed::Incomplete`] the
    /// next call brings the same bytes and more, and goes on where this one stopped.
    ///
    /// # Errors
    /// [`RequestError`] when the bytes are no request; the stream cannot be trusted after that.
    pub fn parse(&mut self, buffer: &[u8]) -> Result<Parsed, RequestError> {
        if self.stage == Stage::Start {
            let Some(&first) = buffer.first() else { return Ok(Parsed::Incomplete) };
            self.begin();
            self.stage = if first == b'*' { Stage::Count } else { Stage::Line };
        }
        self.wanted = 0;
        let outcome = self.go_on(buffer);
        if !matches!(outcome, Ok(Parsed::Incomplete)) {
            self.stage = Stage::Start;
        }
        outcome
    }

    /// The arguments of the request that [`Self::parse`] just found in this same `buffer`.
    #[must_use]
    pub fn args<'a>(&'a self, buffer: &'a [u8]) -> Args<'a> {
        Args::new(if self.is_inline { &self.inline } else { buffer }, &self.ranges)
    }

    /// After [`Parsed::Incomplete`] inside a bulk string: how many more bytes it needs at least, so
    /// that the connection can make room at once. Otherwise 0. Bounded by the limit of a bulk string.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Whether a request has begun and is not whole: a connection that closes now is cut short.
    #[must_use]
    pub fn is_midway(&self) -> bool {
        self.stage != Stage::Start
    }

    fn begin(&mut self) {
        self.position = 0;
        self.searched = 0;
        self.is_inline = false;
        self.ranges.clear();
        if self.ranges.capacity() > SLOTS_KEPT {
            self.ranges.shrink_to(SLOTS_KEPT);
        }
    }

    fn go_on(&mut self, buffer: &[u8]) -> Result<Parsed, RequestError> {
        if self.stage == Stage::Line {
            return self.line(buffer);
        }
        if self.stage == Stage::Count {
            let Some(count) =
                self.header(buffer, RequestError::CountTooBig, RequestError::MultibulkLength)?
            else {
                return Ok(Parsed::Incomplete);
            };
            if count <= 0 {
                return Ok(Parsed::Empty { consumed: self.position });
            }
            self.remaining = usize::try_from(count).unwrap_or(usize::MAX);
            if self.remaining > self.limits.arguments {
                return Err(RequestError::MultibulkLength);
            }
            self.stage = Stage::Length;
        }
        while self.remaining > 0 {
            let Some(length) = self.body_length(buffer)? else { return Ok(Parsed::Incomplete) };
            let end = self.position + length;
            match buffer.get(end..end + 2) {
                Some(b"\r\n") => {}
                Some(_) => return Err(RequestError::MissingCrlf),
                None => {
                    self.stage = Stage::Body(length);
                    self.wanted = (end + 2).saturating_sub(buffer.len());
                    return Ok(Parsed::Incomplete);
                }
            }
            // Grows with the arguments that have really come, never with what a header promises.
            self.ranges.push(self.position..end);
            self.position = end + 2;
            self.searched = self.position;
            self.remaining -= 1;
            self.stage = Stage::Length;
        }
        Ok(Parsed::Request { consumed: self.position })
    }

    /// The length of the bulk string whose body starts at `position`; reads its header if needed.
    #[inline]
    fn body_length(&mut self, buffer: &[u8]) -> Result<Option<usize>, RequestError> {
        if let Stage::Body(length) = self.stage {
            return Ok(Some(length));
        }
        match buffer.get(self.position) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&other) => return Err(RequestError::ExpectedBulk(other)),
        }
        let Some(length) = self.header(buffer, RequestError::LengthTooBig, RequestError::BulkLength)? else {
            return Ok(None);
        };
        match usize::try_from(length) {
            Ok(length) if length <= self.limits.bulk_bytes => Ok(Some(length)),
            _ => Err(RequestError::BulkLength),
        }
    }

    /// The number of the header at `position` (`*12\r\n`), which then stands behind it.
    #[inline]
    fn header(
        &mut self,
        buffer: &[u8],
        too_big: RequestError,
        invalid: RequestError,
    ) -> Result<Option<i64>, RequestError> {
        let digits = buffer.get(self.position + 1..).unwrap_or_default();
        let mut number = 0i64;
        for (index, &byte) in digits.iter().take(HEADER_DIGITS_MAX).enumerate() {
            if byte.is_ascii_digit() && (number != 0 || index == 0) {
                number = number * 10 + i64::from(byte - b'0');
            } else if byte == b'\r' && index > 0 && digits.get(index + 1) == Some(&b'\n') {
                self.count_work(index + 3);
                self.position += index + 3;
                self.searched = self.position;
                return Ok(Some(number));
            } else {
                break;
            }
        }
        self.odd_header(buffer, too_big, invalid)
    }

    /// A header that is negative, wrong, very long or not yet whole.
    #[cold]
    fn odd_header(
        &mut self,
        buffer: &[u8],
        too_big: RequestError,
        invalid: RequestError,
    ) -> Result<Option<i64>, RequestError> {
        let Some(end) = self.find(buffer, b'\r') else {
            let is_too_big = buffer.len().saturating_sub(self.position) > self.limits.line_bytes;
            return if is_too_big { Err(too_big) } else { Ok(None) };
        };
        // A number that is wrong already need not wait for its LF.
        let number = super::integer(buffer.get(self.position + 1..end).unwrap_or_default()).ok_or(invalid)?;
        match buffer.get(end + 1) {
            None => {
                self.searched = end;
                Ok(None)
            }
            Some(b'\n') => {
                self.position = end + 2;
                self.searched = self.position;
                Ok(Some(number))
            }
            Some(_) => Err(invalid),
        }
    }

    /// An inline command: one line, ended by LF or CRLF.
    fn line(&mut self, buffer: &[u8]) -> Result<Parsed, RequestError> {
        let Some(end) = self.find(buffer, b'\n') else {
            let is_too_big = buffer.len() > self.limits.line_bytes;
            return if is_too_big { Err(RequestError::InlineTooBig) } else { Ok(Parsed::Incomplete) };
        };
        let line = &buffer[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.is_inline = true;
        self.inline.clear();
        if self.inline.capacity() > INLINE_BYTES_KEPT {
            self.inline.shrink_to(INLINE_BYTES_KEPT);
        }
        inline::split(line, &mut self.inline, &mut self.ranges).ok_or(RequestError::UnbalancedQuotes)?;
        let consumed = end + 1;
        Ok(if self.ranges.is_empty() { Parsed::Empty { consumed } } else { Parsed::Request { consumed } })
    }

    /// The first `wanted` byte of the current line, within its limit; remembers how far it looked.
    fn find(&mut self, buffer: &[u8], wanted: u8) -> Option<usize> {
        let until = buffer.len().min(self.position.saturating_add(self.limits.line_bytes).saturating_add(1));
        let from = self.searched.clamp(self.position, until.max(self.position));
        let unseen = buffer.get(from..until).unwrap_or_default();
        let found = memchr::memchr(wanted, unseen);
        self.count_work(found.map_or(unseen.len(), |index| index + 1));
        self.searched = from + unseen.len();
        found.map(|index| from + index)
    }

    #[inline]
    fn count_work(&mut self, _bytes: usize) {
        #[cfg(test)]
        {
            self.work += _bytes;
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
