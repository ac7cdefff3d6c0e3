//! Inline commands: one line of text becomes arguments.
//!
//! For: people with telnet and health checks that send `PING\r\n`.
//! Not here: finding the line and its limits (`request`).
//!
//! The rules are those of Redis: arguments are separated by blanks; `"…"` knows `\n \r \t \b \a`,
//! `\xHH` and `\` before any other byte; `'…'` knows `\'` only; a closing quote must end its argument;
//! a zero byte ends the line.

use std::ops::Range;

/// Appends the unescaped arguments of `line` to `text` and where each stands to `ranges`.
/// `None` when quotes are unbalanced.
pub(super) fn split(line: &[u8], text: &mut Vec<u8>, ranges: &mut Vec<Range<usize>>) -> Option<()> {
    let line = &line[..memchr::memchr(0, line).unwrap_or(line.len())];
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Some(());
        }
        let start = text.len();
        rest = argument(rest, text)?;
        ranges.push(start..text.len());
    }
}

/// Unescapes one argument; what follows it is returned.
fn argument<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Some(rest),
            [b'"', quoted @ ..] => return closed(double_quoted(quoted, text)?),
            [b'\'', quoted @ ..] => return closed(single_quoted(quoted, text)?),
            [byte, after @ ..] => {
                text.push(*byte);
                rest = after;
            }
        }
    }
}

/// A closing quote ends its argument: a blank or the end must follow.
fn closed(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(|byte| is_blank(*byte)).then_some(rest)
}

fn double_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, after) = match rest {
            [] => return None,
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (nibble(*high) << 4 | nibble(*low), after)
            }
            [b'\\', escaped, after @ ..] => (unescape(*escaped), after),
            [byte, after @ ..] => (*byte, after),
        };
        text.push(byte);
        rest = after;
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], text: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, after) = match rest {
            [] => return None,
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [byte, after @ ..] => (*byte, after),
        };
        text.push(byte);
        rest = after;
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// C's `isspace`.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
