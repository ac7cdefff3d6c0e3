//! Typed answers become bytes, in RESP2 or RESP3.
//!
//! For: writing replies into a buffer with no value in between.
//! Not here: decoding (`decode`), the texts of errors (`command` families).

use bytes::{BufMut, Bytes, BytesMut};

use crate::rope::{HELD_BYTES_MIN, Held, Mark, Rope};

/// Which RESP a connection speaks; `HELLO` changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProtocolVersion {
    /// The default of a fresh connection.
    #[default]
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

/// Appends replies to a buffer, in the connection's protocol version.
pub struct ReplyWriter<'a> {
    out: &'a mut BytesMut,
    /// Where long strings are held; without it they are copied.
    held: Option<&'a mut Held>,
    version: ProtocolVersion,
}

impl<'a> ReplyWriter<'a> {
    /// A writer that appends to `out`.
    pub fn new(out: &'a mut BytesMut, version: ProtocolVersion) -> Self {
        Self { out, held: None, version }
    }

    /// A writer that appends to `out`, and holds on to long strings that are handed over.
    pub fn holding(out: &'a mut Rope, version: ProtocolVersion) -> Self {
        Self { out: &mut out.bytes, held: Some(&mut out.held), version }
    }

    /// The same writer, for somebody who writes a part of the reply.
    pub fn reborrow(&mut self) -> ReplyWriter<'_> {
        ReplyWriter { out: self.out, held: self.held.as_deref_mut(), version: self.version }
    }

    /// The version that this writer speaks.
    #[must_use]
    pub fn version(&self) -> ProtocolVersion {
        self.version
    }

    /// The present end of what was written.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.out.len(), strings: self.held.as_ref().map_or(0, |held| held.count()) }
    }

    /// Bytes written after a mark.
    #[must_use]
    pub fn written_since(&self, mark: Mark) -> usize {
        let held = self.held.as_ref().map_or(0, |held| held.total_since(mark));
        self.out.len() - mark.bytes + held
    }

    /// What was written after a mark is an error.
    #[must_use]
    pub fn is_error_since(&self, mark: Mark) -> bool {
        self.out.get(mark.bytes) == Some(&b'-')
    }

    /// Takes back what was written after a mark.
    pub fn take_back(&mut self, mark: Mark) {
        self.out.truncate(mark.bytes);
        if let Some(held) = &mut self.held {
            held.truncate(mark.strings);
        }
    }

    fn is_resp3(&self) -> bool {
        self.version == ProtocolVersion::Resp3
    }

    fn header(&mut self, kind: u8, number: i64) {
        let mut digits = [0u8; 20];
        let text = decimal(number, &mut digits);
        self.out.reserve(text.len() + 3);
        self.out.put_u8(kind);
        self.out.put_slice(text);
        self.out.put_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.reserve(text.len() + 3);
        self.out.put_u8(kind);
        // A line must not end early: what a caller put into it cannot forge a second reply.
        self.out.extend(text.iter().map(|&byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte }));
        self.out.put_slice(b"\r\n");
    }

    /// `+text`
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// `+OK`
    pub fn ok(&mut self) {
        self.out.put_slice(b"+OK\r\n");
    }

    /// `-text`: the text starts with its prefix (`ERR …`, `WRONGTYPE …`).
    pub fn error(&mut self, text: &str) {
        self.line(b'-', text.as_bytes());
    }

    /// `-text` from bytes that may quote a client's arguments.
    pub fn error_bytes(&mut self, text: &[u8]) {
        self.line(b'-', text);
    }

    /// `:number`
    pub fn integer(&mut self, number: i64) {
        self.header(b':', number);
    }

    /// `$length bytes`
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len() as i64);
        self.out.reserve(bytes.len() + 2);
        self.out.put_slice(bytes);
        self.out.put_slice(b"\r\n");
    }

    /// As [`Self::bulk`], for a string that can be held on to: a long one is not copied.
    pub fn bulk_held(&mut self, string: &Bytes) {
        let Some(held) = self.held.as_mut().filter(|_| string.len() >= HELD_BYTES_MIN) else {
            return self.bulk(string);
        };
        let mut digits = [0u8; 20];
        let text = decimal(string.len() as i64, &mut digits);
        self.out.reserve(text.len() + 5);
        self.out.put_u8(b'$');
        self.out.put_slice(text);
        self.out.put_slice(b"\r\n");
        held.push(self.out.len(), string.clone());
        self.out.put_slice(b"\r\n");
    }

    /// An integer as a bulk string, as `GET` answers for a counter.
    pub fn bulk_integer(&mut self, number: i64) {
        let mut digits = [0u8; 20];
        let text = decimal(number, &mut digits);
        self.bulk(text);
    }

    /// Nothing, where a bulk string or a value is expected: `$-1` or `_`.
    pub fn null(&mut self) {
        self.out.put_slice(if self.is_resp3() { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// Nothing, where an array is expected: `*-1` or `_`.
    pub fn null_array(&mut self) {
        self.out.put_slice(if self.is_resp3() { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// Opens an array of `length` elements, which the caller writes next.
    pub fn array(&mut self, length: usize) {
        self.header(b'*', length as i64);
    }

    /// Opens a map of `pairs`, which the caller writes next as key, value, key, value …: a flat array in RESP2.
    pub fn map(&mut self, pairs: usize) {
        if self.is_resp3() { self.header(b'%', pairs as i64) } else { self.header(b'*', 2 * pairs as i64) }
    }

    /// Opens a set of `length` elements: an array in RESP2.
    pub fn set(&mut self, length: usize) {
        self.header(if self.is_resp3() { b'~' } else { b'*' }, length as i64);
    }

    /// Opens a push message of `length` elements: an array in RESP2.
    pub fn push(&mut self, length: usize) {
        self.header(if self.is_resp3() { b'>' } else { b'*' }, length as i64);
    }

    /// A boolean: `#t` or `:1`.
    pub fn boolean(&mut self, value: bool) {
        if self.is_resp3() {
            self.out.put_slice(if value { b"#t\r\n" } else { b"#f\r\n" });
        } else {
            self.integer(i64::from(value));
        }
    }

    /// A double, as text that the caller formatted as Redis does: `,text` or a bulk string.
    pub fn double(&mut self, text: &str) {
        if self.is_resp3() { self.line(b',', text.as_bytes()) } else { self.bulk(text.as_bytes()) }
    }

    /// An integer of any size, as its digits: `(digits` or a bulk string.
    pub fn big_number(&mut self, digits: &str) {
        if self.is_resp3() { self.line(b'(', digits.as_bytes()) } else { self.bulk(digits.as_bytes()) }
    }

    /// Text with a format of three letters (`txt`, `mkd`): `=` in RESP3, a bulk string in RESP2.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        debug_assert_eq!(format.len(), 3);
        if self.is_resp3() {
            self.header(b'=', text.len() as i64 + 4);
            self.out.put_slice(format.as_bytes());
            self.out.put_u8(b':');
            self.out.put_slice(text);
            self.out.put_slice(b"\r\n");
        } else {
            self.bulk(text);
        }
    }

    /// Bytes that are already a reply in this version (from another node, or cached).
    pub fn raw(&mut self, reply: &[u8]) {
        self.out.put_slice(reply);
    }
}

/// The decimal text of `number`, written into the end of `digits`.
pub fn decimal(number: i64, digits: &mut [u8; 20]) -> &[u8] {
    let mut rest = number.unsigned_abs();
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    &digits[start..]
}
