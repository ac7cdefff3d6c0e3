//! Ids as clients spell them.
//!
//! For: `ms`, `ms-seq`, `-`, `+`, `(ms-seq`, `ms-*`, with Redis' errors.
//! Not here: `$` and `>`, which mean something to single commands only.

use crate::command::Stop;
use crate::store::integer;
use crate::store::xstream::StreamId;

/// Longest text of an id, bytes (Redis' buffer for it).
const ID_TEXT_MAX: usize = 127;

const INVALID: &str = "ERR Invalid stream ID specified as stream command argument";

/// What `XADD` was told about the id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewId {
    /// `*`
    Any,
    /// `ms-*`
    Within(u64),
    /// `ms-seq`
    Exact(StreamId),
}

/// An id, without the words `-` and `+`. A missing second number is `missing`.
///
/// # Errors
/// With Redis' text if it is none.
pub fn strict(text: &[u8], missing: u64) -> Result<StreamId, Stop> {
    match split(text)? {
        (b"", Some(b"")) | (b"+", None) => Err(INVALID.into()),
        (ms, seq) => Ok(StreamId { ms: number(ms)?, seq: seq.map_or(Ok(missing), number)? }),
    }
}

/// An id, or `-` for the least, or `+` for the greatest.
///
/// # Errors
/// With Redis' text if it is none of these.
pub fn any(text: &[u8], missing: u64) -> Result<StreamId, Stop> {
    match split(text)? {
        (b"", Some(b"")) => Ok(StreamId::MIN),
        (b"+", None) => Ok(StreamId::MAX),
        _ => strict(text, missing),
    }
}

/// Where an interval begins.
///
/// # Errors
/// With Redis' text if it is no id, or nothing comes after it.
pub fn start(text: &[u8]) -> Result<StreamId, Stop> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => {
            strict(rest, 0)?.next().ok_or("ERR invalid start ID for the interval".into())
        }
        _ => any(text, 0),
    }
}

/// Where an interval ends.
///
/// # Errors
/// With Redis' text if it is no id, or nothing comes before it.
pub fn end(text: &[u8]) -> Result<StreamId, Stop> {
    match text {
        [b'(', rest @ ..] if !rest.is_empty() => {
            strict(rest, u64::MAX)?.previous().ok_or("ERR invalid end ID for the interval".into())
        }
        _ => any(text, u64::MAX),
    }
}

/// The id of a new entry.
///
/// # Errors
/// With Redis' text if it is none.
pub fn new(text: &[u8]) -> Result<NewId, Stop> {
    match split(text)? {
        (b"*", None) => Ok(NewId::Any),
        (ms, Some(b"*")) => number(ms).map(NewId::Within),
        _ => strict(text, 0).map(NewId::Exact),
    }
}

/// The texts before and behind the first `-`. As in Redis, a zero byte ends them.
fn split(text: &[u8]) -> Result<(&[u8], Option<&[u8]>), Stop> {
    if text.len() > ID_TEXT_MAX {
        return Err(INVALID.into());
    }
    let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
    Ok(match memchr::memchr(b'-', text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    })
}

/// A number as C reads it: what is not in the only spelling may have blanks and a sign in front, and a negative one
/// wraps around.
fn number(text: &[u8]) -> Result<u64, Stop> {
    if let Some(number) = integer::parse(text) {
        return u64::try_from(number).map_err(|_| INVALID.into());
    }
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let digits = &text[text.iter().take_while(|byte| blank(byte)).count()..];
    let (is_negative, digits) = match digits {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_number);
    let number: u64 = digits.and_then(|digits| digits.parse().ok()).ok_or(INVALID)?;
    Ok(if is_negative { number.wrapping_neg() } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let id = |ms, seq| Some(StreamId::new(ms, seq));
        for (text, expected) in [
            ("1-2", id(1, 2)),
            ("7", id(7, 9)),
            ("0-0", id(0, 0)),
            ("18446744073709551615-18446744073709551615", Some(StreamId::MAX)),
            ("18446744073709551616-0", None),
            ("007-01", id(7, 1)),
            (" 1- +2", id(1, 2)),
            ("1--05", id(1, u64::MAX - 4)),
            ("1--5", None),
            ("-5", None),
            ("1-", None),
            ("-", None),
            ("+", None),
            ("", None),
            ("*", None),
            ("1-*", None),
            ("1-2-3", None),
            ("x", None),
            ("1\0x", id(1, 9)),
        ] {
            assert_eq!(strict(text.as_bytes(), 9).ok(), expected, "{text:?}");
        }
        assert_eq!((any(b"-", 0), any(b"+", 0)), (Ok(StreamId::MIN), Ok(StreamId::MAX)));
        assert_eq!((start(b"(1-2"), end(b"(1-0")), (Ok(StreamId::new(1, 3)), Ok(StreamId::new(0, u64::MAX))));
        assert!(start(b"(-").is_err() && start(b"(").is_err() && end(b"(0-0").is_err());
        assert_eq!((new(b"*"), new(b"5-*")), (Ok(NewId::Any), Ok(NewId::Within(5))));
        assert_eq!(new(b"5"), Ok(NewId::Exact(StreamId::new(5, 0))));
        assert!(new(b"-").is_err() && new(b"-*").is_err());
    }
}
