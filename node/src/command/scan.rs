//! The options of the walks over a collection.
//!
//! For: `HSCAN SSCAN ZSCAN key cursor [MATCH pattern] [COUNT count]`.
//! Not here: the walk (`store::collection::Scan`), `SCAN` over keys (`partition`).

use korum_protocol::command::glob;
use korum_protocol::resp::{Args, ReplyWriter};

use super::args::{integer, is};
use super::{SYNTAX_ERROR, Stop};

/// What such a command asks for.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions<'a> {
    /// Where to go on.
    pub cursor: u64,
    /// About how many items to look at.
    pub count: usize,
    /// `NOVALUES` of `HSCAN`: fields only.
    pub no_values: bool,
    pattern: Option<&'a [u8]>,
}

/// Reads the cursor, argument 2; no digits are a zero. As in Redis, that comes before the key is looked up, and the
/// options only if it is there.
///
/// # Errors
/// With Redis' text.
pub fn cursor(args: &Args<'_>) -> Result<u64, Stop> {
    match args.get(2) {
        Some(b"") => Ok(0),
        text => text
            .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok())
            .ok_or("ERR invalid cursor".into()),
    }
}

impl<'a> ScanOptions<'a> {
    /// Reads cursor and options, from argument 2 on.
    ///
    /// # Errors
    /// With Redis' texts.
    pub fn parse(args: &Args<'a>) -> Result<Self, Stop> {
        let cursor = cursor(args)?;
        let mut options = Self { cursor, count: 10, no_values: false, pattern: None };
        let is_hash = args.get(0).is_some_and(|name| is(name, "hscan"));
        let mut index = 3;
        while let Some(option) = args.get(index) {
            match args.get(index + 1) {
                Some(pattern) if is(option, "match") => options.pattern = Some(pattern),
                Some(count) if is(option, "count") => {
                    let count = integer(count)?;
                    options.count =
                        usize::try_from(count).ok().filter(|&count| count > 0).ok_or(SYNTAX_ERROR)?;
                }
                _ if is_hash && is(option, "novalues") => {
                    options.no_values = true;
                    index -= 1;
                }
                _ => return Err(SYNTAX_ERROR.into()),
            }
            index += 2;
        }
        Ok(options)
    }

    /// Whether an item is asked for.
    #[must_use]
    pub fn wants(&self, item: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, item))
    }
}

/// Opens the answer: the cursor, and an array of `items`, which the caller writes next.
pub fn reply_head(reply: &mut ReplyWriter<'_>, next: u64, items: usize) {
    reply.array(2);
    reply.bulk(next.to_string().as_bytes());
    reply.array(items);
}
