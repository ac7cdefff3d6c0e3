//! What one partition answers when every partition is asked.
//!
//! For: the parts of `DBSIZE KEYS SCAN RANDOMKEY FLUSHDB FLUSHALL`, as the internal commands `KORUM PART` and
//! `KORUM CLEAR`, whose argument 2 is the partition's number. They are about the call's database.
//! Not here: which partitions are asked, and what their answers make together (`dispatch::everywhere`).

use std::borrow::Cow;

use korum_protocol::command::glob;
use korum_protocol::resp::Args;

use super::{Call, SYNTAX_ERROR, Stop};
use crate::store::database::split;
use crate::store::reserved;
use crate::store::{Entry, HashPosition};

/// Entries that a step of `SCAN` looks at where its database has few of them, whatever its count: a millisecond.
const LOOKED_MAX: usize = 10_000;

/// `KORUM CLEAR partition [DB]`
pub fn clear(call: &mut Call<'_>) {
    let room = call.names.room();
    if call.args.get(3).is_none() {
        // Functions are not data: they stay, as in Redis.
        let functions = call.keyspace.take(call.keyspace.place(reserved::FUNCTIONS));
        call.effects.garbage_mut().absorb(&mut call.keyspace.clear());
        call.effects.cleared();
        if let Some(functions) = functions {
            let place = call.keyspace.place(reserved::FUNCTIONS);
            call.keyspace.put(place, functions.value(), None, call.effects.garbage_mut());
            call.effects.set(place, functions.value(), None);
        }
    } else if call.keyspace.count(room).keys > 0 {
        call.keyspace.clear_room(room, call.effects.garbage_mut());
        call.effects.cleared_room(room);
    }
    call.reply.ok();
}

/// `KORUM PART partition COUNT | SIZES | SWAPPED swaps | RANDOM | KEYS pattern
/// | SCAN from count [MATCH pattern] [TYPE type]`
pub fn part(call: &mut Call<'_>) {
    let args = call.args;
    match args.get(3).map(<[u8]>::to_ascii_uppercase).as_deref() {
        Some(b"COUNT") => call.reply.integer(call.keyspace.count(call.names.room()).keys as i64),
        Some(b"SIZES") => sizes(call),
        Some(b"SWAPPED") if args.len() == 5 => {
            let swaps = std::str::from_utf8(&args[4]).ok().and_then(|text| text.parse::<u64>().ok());
            call.reply.integer(swaps.is_some_and(|swaps| call.names.databases().swaps() >= swaps).into());
        }
        Some(b"RANDOM") => random(call),
        Some(b"KEYS") if args.len() == 5 => keys(call, &args[4]),
        Some(b"SCAN") if args.len() >= 6 => scan(call),
        _ => call.reply.error(SYNTAX_ERROR),
    }
}

/// Of each database that has keys: its number, its keys, those with a deadline, and what is left until then, ms, of all
/// of them together.
fn sizes(call: &mut Call<'_>) {
    let counts: Vec<_> = call.keyspace.counts().filter(|(room, _)| *room != reserved::ROOM).collect();
    call.reply.array(4 * counts.len());
    for (room, count) in counts {
        let left_ms = i64::try_from(count.left_ms(call.now_ms)).unwrap_or(i64::MAX);
        let numbers =
            [call.names.databases().database(room).into(), count.keys as i64, count.expires as i64, left_ms];
        numbers.into_iter().for_each(|number| call.reply.integer(number));
    }
}

/// The name of an entry that is alive and in a room.
fn name_in(entry: &Entry, room: u8, now_ms: u64) -> Option<&[u8]> {
    let (of, name) = split(entry.key());
    (of == room && !entry.is_expired(now_ms)).then_some(name)
}

fn random(call: &mut Call<'_>) {
    match call.keyspace.random(call.names.room(), call.now_ms, call.random) {
        Some(entry) => call.reply.bulk(split(entry.key()).1),
        None => call.reply.null(),
    }
}

fn keys(call: &mut Call<'_>, pattern: &[u8]) {
    let mut found: Vec<&[u8]> = Vec::new();
    let room = call.names.room();
    let mut from = Some(HashPosition::START);
    while let Some(position) = from {
        let scanned = call.keyspace.scan(position, usize::MAX);
        found.extend(
            scanned
                .entries
                .iter()
                .filter_map(|entry| name_in(entry, room, call.now_ms))
                .filter(|name| glob::matches(pattern, name)),
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
    let room = call.names.room();
    let held = call.keyspace.count(room).keys;
    if held == 0 {
        call.reply.array(2);
        call.reply.integer(-1);
        return call.reply.array(0);
    }
    // Where the database has a small share of the keys, more of them are looked at.
    let share = call.keyspace.len() / held;
    let count = if share > 1 { count.max(count.saturating_mul(share).min(LOOKED_MAX)) } else { count };
    let scanned = call.keyspace.scan(HashPosition::new(from), count);
    let is_wanted = |key: &[u8], type_name: &str| {
        filter.pattern.is_none_or(|pattern| glob::matches(pattern, key))
            && filter.type_name.is_none_or(|wanted| wanted.eq_ignore_ascii_case(type_name.as_bytes()))
    };
    let found: Vec<&[u8]> = scanned
        .entries
        .iter()
        .filter_map(|entry| Some((name_in(entry, room, call.now_ms)?, entry)))
        .filter(|(name, entry)| is_wanted(name, entry.value().type_name()))
        .map(|(name, _)| name)
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
