//! Where does this reply end, and is it safe to decode?
//!
//! For: finding the end of one whole reply in a growing buffer, with linear work, before any value
//! is built: depth, lengths, counts and the whole size are bounded here.
//! Not here: values (`decode`). Streamed types (`$?`, `*?`) are refused: no server of ours sends them.

use super::decode::DecodeError;
use crate::limits::{BULK_BYTES_MAX, LINE_BYTES_MAX, REPLY_BYTES_MAX, REPLY_DEPTH_MAX, REPLY_ELEMENTS_MAX};

/// How far into the current reply the search came.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// Where the next header or body starts.
    position: usize,
    /// Up to where the current line was searched.
    searched: usize,
    /// Length of the bulk string whose body starts at `position`.
    body: Option<usize>,
    /// Values still missing, per open aggregate; empty between two replies.
    missing: Vec<u64>,
    /// Values promised by all headers of this reply.
    elements: u64,
    /// Bytes looked at so far, to show that the work is linear.
    #[cfg(test)]
    work: usize,
}

impl Guard {
    /// The length of the reply at the front of `buffer`, once it is whole.
    pub(super) fn find_end(&mut self, buffer: &[u8]) -> Result<Option<usize>, DecodeError> {
        if self.missing.is_empty() {
            if buffer.is_empty() {
                return Ok(None);
            }
            (self.position, self.searched, self.body, self.elements) = (0, 0, None, 0);
            self.missing.push(1);
        }
        while !self.missing.is_empty() {
            if !self.step(buffer)? {
                return Ok(None);
            }
            if self.position + self.body.unwrap_or(0) > REPLY_BYTES_MAX {
                return Err(DecodeError::TooBig);
            }
        }
        Ok(Some(self.position))
    }

    /// Reads one header or one body. `false` when it is not whole yet.
    fn step(&mut self, buffer: &[u8]) -> Result<bool, DecodeError> {
        if let Some(length) = self.body {
            let end = self.position + length;
            let Some(last) = buffer.get(end..end + 2) else { return Ok(false) };
            if last != b"\r\n" {
                return Err(DecodeError::MissingCrlf);
            }
            self.body = None;
            self.go_to(end + 2);
            self.complete();
            return Ok(true);
        }
        let Some(line) = self.line(buffer)? else { return Ok(false) };
        let (kind, number) = (line[0], &line[1..]);
        self.go_to(self.position + line.len() + 2);
        match kind {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => self.complete(),
            b'$' | b'*' if number == b"-1" => self.complete(),
            b'$' | b'!' | b'=' => {
                let length = size(number, BULK_BYTES_MAX as u64)?;
                if kind == b'=' && length < 4 {
                    return Err(DecodeError::Length);
                }
                self.body = Some(length as usize);
            }
            b'*' | b'~' | b'>' => self.open(size(number, REPLY_ELEMENTS_MAX)?)?,
            b'%' => self.open(2 * size(number, REPLY_ELEMENTS_MAX)?)?,
            b'|' => {
                // The value that the attributes speak of is still to come.
                if let Some(missing) = self.missing.last_mut() {
                    *missing += 1;
                }
                self.open(2 * size(number, REPLY_ELEMENTS_MAX)?)?;
            }
            other => return Err(DecodeError::UnknownType(other)),
        }
        Ok(true)
    }

    /// The header line at `position`, its type included and its CRLF not.
    fn line<'a>(&mut self, buffer: &'a [u8]) -> Result<Option<&'a [u8]>, DecodeError> {
        let until = buffer.len().min(self.position + LINE_BYTES_MAX + 1);
        let Some(unseen) = buffer.get(self.searched..until) else { return Ok(None) };
        let found = memchr::memchr(b'\r', unseen);
        #[cfg(test)]
        {
            self.work += found.map_or(unseen.len(), |index| index + 1);
        }
        let Some(index) = found else {
            self.searched = until;
            let is_too_long = buffer.len() - self.position > LINE_BYTES_MAX;
            return if is_too_long { Err(DecodeError::LineTooLong) } else { Ok(None) };
        };
        let end = self.searched + index;
        self.searched = end;
        match buffer.get(end + 1) {
            None => Ok(None),
            Some(b'\n') if end > self.position => Ok(Some(&buffer[self.position..end])),
            Some(_) => Err(DecodeError::MissingCrlf),
        }
    }

    fn go_to(&mut self, position: usize) {
        self.position = position;
        self.searched = position;
    }

    fn open(&mut self, values: u64) -> Result<(), DecodeError> {
        self.elements += values;
        if self.elements > REPLY_ELEMENTS_MAX {
            return Err(DecodeError::TooBig);
        }
        if values == 0 {
            self.complete();
        } else if self.missing.len() > REPLY_DEPTH_MAX {
            return Err(DecodeError::TooDeep);
        } else {
            self.missing.push(values);
        }
        Ok(())
    }

    /// One value is whole, and with it every aggregate whose last value it was.
    fn complete(&mut self) {
        while let Some(missing) = self.missing.last_mut() {
            *missing -= 1;
            if *missing > 0 {
                return;
            }
            self.missing.pop();
        }
    }
}

fn size(number: &[u8], limit: u64) -> Result<u64, DecodeError> {
    let size = super::integer(number).and_then(|number| u64::try_from(number).ok());
    size.filter(|size| *size <= limit).ok_or(DecodeError::Length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_reply_in_small_pieces_is_scanned_once() {
        let mut reply = b"*50000\r\n".to_vec();
        for _ in 0..50_000 {
            reply.extend_from_slice(b"$64\r\n");
            reply.extend_from_slice(&[b'x'; 64]);
            reply.extend_from_slice(b"\r\n");
        }
        let mut guard = Guard::default();
        let mut pieces = 0;
        for end in (0..reply.len()).step_by(1000) {
            assert_eq!(guard.find_end(&reply[..end]).expect("valid"), None);
            pieces += 1;
        }
        assert_eq!(guard.find_end(&reply).expect("valid"), Some(reply.len()));
        assert!(guard.work < reply.len() + pieces, "{} of {}", guard.work, reply.len());
    }

    #[test]
    fn depth_is_bounded_by_the_constant() {
        let nested = |depth: usize| [&b"*1\r\n".repeat(depth)[..], b":1\r\n"].concat();
        let fits = nested(REPLY_DEPTH_MAX);
        assert_eq!(Guard::default().find_end(&fits).expect("fits"), Some(fits.len()));
        assert!(matches!(Guard::default().find_end(&nested(REPLY_DEPTH_MAX + 1)), Err(DecodeError::TooDeep)));
    }
}
