//! A transaction as one request: `KORUM EXEC slot head key … argument …`.
//!
//! For: writing it where `EXEC` came in, reading it where the partition is; both ends of one form.
//! Not here: queueing (`dispatch::transaction`), running it (`transaction`).
//!
//! ```text
//! head = watched u32 | (era u64 | sequence u64 | swaps u64)*  for each watched key | (arguments u32)*  for each command
//! ```
//! The watched keys follow, then the arguments of all commands, one command after the other, as they came in: so long
//! ones are found in the request's buffer, and nothing is parsed twice.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use korum_protocol::id::{Epoch, Position};
use korum_protocol::resp::Args;
use korum_protocol::resp::decode::{encode_header, encode_request};

/// Arguments before the watched keys.
const PREFIX: usize = 4;
/// Bytes of the head for each watched key.
const WATCHED_BYTES: usize = 24;

/// A key that must not have changed, and since when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watched {
    /// The key, as it would be stored if each database had the room of its number (`store::database`).
    pub key: Bytes,
    /// Where its partition stood when it was watched.
    pub since: Position,
    /// How often databases had been swapped by then.
    pub swaps: u64,
}

/// Collects the commands of a unit.
#[derive(Default)]
pub struct UnitWriter {
    counts: Vec<u32>,
    arguments: usize,
    body: BytesMut,
}

impl UnitWriter {
    /// Appends a command of so many arguments, which are in `bulks` as bulk strings.
    pub fn push(&mut self, arguments: usize, bulks: &[u8]) {
        self.counts.push(arguments as u32);
        self.arguments += arguments;
        self.body.extend_from_slice(bulks);
    }

    /// Appends a command.
    pub fn push_words(&mut self, words: &[&[u8]]) {
        let mut bulks = BytesMut::new();
        put_bulks(words.iter().copied(), &mut bulks);
        self.push(words.len(), &bulks);
    }

    /// The whole request. `reads_only`: none of the commands writes.
    #[must_use]
    pub fn finish(self, slot: u16, watched: &[Watched], reads_only: bool) -> Bytes {
        let mut head = BytesMut::with_capacity(4 + WATCHED_BYTES * watched.len() + 4 * self.counts.len());
        head.put_u32(watched.len() as u32);
        for key in watched {
            head.put_u64(key.since.era.0);
            head.put_u64(key.since.sequence);
            head.put_u64(key.swaps);
        }
        self.counts.iter().for_each(|&count| head.put_u32(count));
        let name: &[u8] = if reads_only { b"EXEC-RO" } else { b"EXEC" };
        let mut request = BytesMut::with_capacity(self.body.len() + head.len() + 64 + 32 * watched.len());
        encode_header(b'*', PREFIX + watched.len() + self.arguments, &mut request);
        put_bulks([b"KORUM", name, slot.to_string().as_bytes(), &head].into_iter(), &mut request);
        put_bulks(watched.iter().map(|key| &key.key[..]), &mut request);
        request.extend_from_slice(&self.body);
        request.freeze()
    }
}

/// The request that asks for the position from which on these keys are watched: `KORUM WATCH slot key …`.
#[must_use]
pub fn watch_request<'k>(slot: u16, keys: impl Iterator<Item = &'k [u8]>) -> Bytes {
    let slot = slot.to_string();
    let mut words: Vec<&[u8]> = vec![b"KORUM", b"WATCH", slot.as_bytes()];
    keys.for_each(|key| words.push(key));
    let mut request = BytesMut::new();
    encode_request(&words, &mut request);
    request.freeze()
}

/// Appends arguments as bulk strings.
pub fn put_bulks<'w>(words: impl Iterator<Item = &'w [u8]>, out: &mut BytesMut) {
    for word in words {
        encode_header(b'$', word.len(), out);
        out.put_slice(word);
        out.put_slice(b"\r\n");
    }
}

/// A unit that was read.
#[derive(Clone, Copy)]
pub struct Unit<'a> {
    args: Args<'a>,
    watched: usize,
    /// Positions of the watched keys.
    since: &'a [u8],
    /// Numbers of arguments of the commands.
    counts: &'a [u8],
}

impl<'a> Unit<'a> {
    /// Reads the arguments of `KORUM EXEC`; `None` if they do not fit each other.
    #[must_use]
    pub fn read(args: Args<'a>) -> Option<Self> {
        let mut head = args.get(3)?;
        let watched = head.try_get_u32().ok()? as usize;
        let (since, counts) = head.split_at_checked(watched.checked_mul(WATCHED_BYTES)?)?;
        let unit = Self { args, watched, since, counts };
        let arguments: usize = unit.counts().sum();
        let fits = counts.len().is_multiple_of(4) && PREFIX + watched + arguments == args.len();
        (fits && unit.counts().all(|count| count > 0)).then_some(unit)
    }

    fn counts(&self) -> impl ExactSizeIterator<Item = usize> + use<'a> {
        self.counts.chunks_exact(4).map(|mut count| count.get_u32() as usize)
    }

    /// Number of commands.
    #[must_use]
    pub fn count(&self) -> usize {
        self.counts.len() / 4
    }

    /// The watched keys, each with the position since which it is watched, and the number of swaps until then.
    pub fn watched(&self) -> impl Iterator<Item = (&'a [u8], Position, u64)> + use<'a> {
        let keys = self.args.part(PREFIX, PREFIX + self.watched);
        self.since.chunks_exact(WATCHED_BYTES).enumerate().filter_map(move |(at, mut since)| {
            let position = Position { era: Epoch(since.get_u64()), sequence: since.get_u64() };
            Some((keys.get(at)?, position, since.get_u64()))
        })
    }

    /// The commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = Args<'a>> + use<'a> {
        let (args, mut start) = (self.args, PREFIX + self.watched);
        self.counts().map(move |count| {
            let from = start;
            start += count;
            args.part(from, start)
        })
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
    use proptest::prelude::*;

    use super::*;

    type Words = Vec<Vec<u8>>;

    fn words(args: Args<'_>) -> Words {
        args.iter().map(<[u8]>::to_vec).collect()
    }

    proptest! {
        #[test]
        fn a_unit_reads_back(
            slot in 0..16384_u16,
            watched: Vec<(Vec<u8>, u64, u64, u64)>,
            commands in prop::collection::vec(prop::collection::vec(any::<Vec<u8>>(), 1..5), 0..6),
        ) {
            let watched: Vec<Watched> = watched
                .into_iter()
                .map(|(key, era, sequence, swaps)| {
                    let since = Position { era: Epoch(era), sequence };
                    Watched { key: key.into(), since, swaps }
                })
                .collect();
            let mut writer = UnitWriter::default();
            for command in &commands {
                writer.push_words(&command.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
            let request = writer.finish(slot, &watched, false);
            let mut parser = RequestParser::new(RequestLimits::default());
            prop_assert_eq!(parser.parse(&request), Ok(Parsed::Request { consumed: request.len() }));
            let args = parser.args(&request);
            prop_assert_eq!(args[2].to_vec(), slot.to_string().into_bytes());
            let unit = Unit::read(args).expect("it was just written");
            prop_assert_eq!(unit.count(), commands.len());
            let found: Vec<Words> = unit.commands().map(words).collect();
            prop_assert_eq!(found, commands);
            let found: Vec<Watched> = unit
                .watched()
                .map(|(key, since, swaps)| Watched { key: Bytes::copy_from_slice(key), since, swaps })
                .collect();
            prop_assert_eq!(found, watched);
        }

        #[test]
        fn what_does_not_fit_is_refused(head: Vec<u8>, rest in 0..6_usize) {
            let mut buffer = head.clone();
            buffer.extend_from_slice(b"x");
            let mut ranges = vec![0..0, 0..0, 0..0, 0..head.len()];
            ranges.extend(std::iter::repeat_n(head.len()..head.len() + 1, rest));
            if let Some(unit) = Unit::read(Args::new(&buffer, &ranges)) {
                let used: usize = unit.commands().map(|args| args.len()).sum::<usize>() + unit.watched().count();
                prop_assert_eq!(used, rest);
            }
        }
    }
}
