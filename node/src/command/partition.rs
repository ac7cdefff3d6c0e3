//! What one partition answers when every partition is asked.
//!
//! For: the parts of `DBSIZE KEYS SCAN RANDOMKEY FLUSHALL`, as the internal commands `KORUM PART` and
//! `KORUM CLEAR`, whose argument 2 is the partition's number.
//! Not here: which partitions are asked, and what their answers make together (`dispatch::everywhere`).

use std::borrow::Cow;

use korum_protocol::command::glob;
use korum_protocol::resp::Args;

use super::{Call, SYNTAX_ERROR, Stop};
use crate::store::HashPosition;
use crate::store::reserved::{FUNCTIONS, is_reserved};

/// Keys that are drawn until one is not reserved.
const RANDOM_TRIES: usize = 16;

/// `KORUM CLEAR partition`
pub fn clear(call: &mut Call<'_>) {
    // Functions are not data: they stay, as in Redis.
    let functions = call.keyspace.take(call.keyspace.place(FUNCTIONS));
    call.effects.garbage_mut().absorb(&mut call.keyspace.clear());
    call.effects.cleared();
    if let Some(functions) = functions {
        let place = call.keyspace.place(FUNCTIONS);
        call.keyspace.put(place, functions.value(), None, call.effects.garbage_mut());
        call.effects.set(place, functions.value(), None);
    }
    call.reply.ok();
}

/// `KORUM PART partition COUNT | RANDOM | KEYS pattern | SCAN from count [MATCH pattern] [TYPE type]`
pub fn part(call: &mut Call<'_>) {
    let args = call.args;
    match args.get(3).map(<[u8]>::to_ascii_uppercase).as_deref() {
        Some(b"COUNT") => call.reply.integer(call.keyspace.visible_len() as i64),
        Some(b"RANDOM") => random(call),
        Some(b"KEYS") if args.len() == 5 => keys(call, &args[4]),
        Some(b"SCAN") if args.len() >= 6 => scan(call),
        _ => call.reply.error(SYNTAX_ERROR),
    }
}

fn random(call: &mut Call<'_>) {
    // One of two at least, if there are others.
    let found = (0..RANDOM_TRIES).find_map(|_| {
        call.keyspace.random(call.now_ms, call.random).filter(|entry| !is_reserved(entry.key()))
    });
    match found {
        Some(entry) => call.reply.bulk(entry.key()),
        None => call.reply.null(),
    }
}

fn keys(call: &mut Call<'_>, pattern: &[u8]) {
    let mut found: Vec<&[u8]> = Vec::new();
    let mut from = Some(HashPosition::START);
    while let Some(position) = from {
        let scanned = call.keyspace.scan(position, usize::MAX);
        found.extend(
            scanned
                .entries
                .iter()
                .filter(|entry| !entry.is_expired(call.now_ms) && !is_reserved(entry.key()))
                .filter(|entry| glob::matches(pattern, entry.key()))
                .map(|entry| entry.key()),
        );
        from = scanned.next;
    }
    call.reply.array(found.len());
    for key in found {
        call.reply.bulk(key);
    }
}

fn scan(call: &mut Call<'_>) {
    let number =
        |at: usize| std::str::from_utf8(&call.args[at]).ok().and_then(|text| text.parse::<u64>().ok());
    let (Some(from), Some(count)) = (number(4), number(5)) else { return call.reply.error(SYNTAX_ERROR) };
    let filter = match Filter::parse(&call.args, 6) {
        Ok(filter) => filter,
        Err(text) => return call.reply.error(&text),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let scanned = call.keyspace.scan(HashPosition::new(from), count);
    let is_wanted = |key: &[u8], type_name: &str| {
        !is_reserved(key)
            && filter.pattern.is_none_or(|pattern| glob::matches(pattern, key))
            && filter.type_name.is_none_or(|wanted| wanted.eq_ignore_ascii_case(type_name.as_bytes()))
    };
    let found: Vec<&[u8]> = scanned
        .entries
        .iter()
        .filter(|entry| !entry.is_expired(call.now_ms) && is_wanted(entry.key(), entry.value().type_name()))
        .map(|entry| entry.key())
        .collect();
    call.reply.array(2);
    call.reply.integer(scanned.next.map_or(-1, |next| next.get() as i64));
    call.reply.array(found.len());
    for key in found {
        call.reply.bulk(key);
    }
}

struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    type_name: Option<&'a [u8]>,
    count: Option<u64>,
}

impl<'a> Filter<'a> {
    fn parse(args: &Args<'a>, first: usize) -> Result<Self, Stop> {
        let mut filter = Filter { pattern: None, type_name: None, count: None };
        let mut at = first;
        while let Some(word) = args.get(at) {
            let Some(value) = args.get(at + 1) else { return Err(Cow::Borrowed(SYNTAX_ERROR)) };
            match word.to_ascii_lowercase().as_slice() {
                b"match" => filter.pattern = Some(value),
                b"type" => filter.type_name = Some(value),
                b"count" => {
                    let count = std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok());
                    let count = count.ok_or(Cow::Borrowed("ERR value is not an integer or out of range"))?;
                    let count = u64::try_from(count).ok().filter(|&count| count > 0);
                    filter.count = Some(count.ok_or(Cow::Borrowed(SYNTAX_ERROR))?);
                }
                _ => return Err(Cow::Borrowed(SYNTAX_ERROR)),
            }
            at += 2;
        }
        Ok(filter)
    }
}

/// The options of `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`.
pub struct ScanOptions {
    /// Where to go on.
    pub cursor: u64,
    /// About how many keys to look at.
    pub count: u64,
}

impl ScanOptions {
    /// Reads and checks all options.
    ///
    /// # Errors
    /// With Redis' text for a bad cursor or option.
    pub fn parse(args: &Args<'_>) -> Result<Self, Stop> {
        let cursor = std::str::from_utf8(&args[1]).ok().and_then(|text| text.parse().ok());
        let cursor = cursor.ok_or(Cow::Borrowed("ERR invalid cursor"))?;
        let filter = Filter::parse(args, 2)?;
        Ok(Self { cursor, count: filter.count.unwrap_or(10) })
    }

    /// The words of the options that each partition is told.
    #[must_use]
    pub fn filter_words<'a>(&self, args: &Args<'a>) -> Vec<&'a [u8]> {
        let words = args.len().saturating_sub(2) / 2;
        let pairs = (0..words).map(|pair| (args.get(2 + 2 * pair), args.get(3 + 2 * pair)));
        pairs
            .filter_map(|(word, value)| Some((word?, value?)))
            .filter(|(word, _)| !word.eq_ignore_ascii_case(b"count"))
            .flat_map(|(word, value)| [word, value])
            .collect()
    }
}
