//! Commands without a key that speak for every partition: `DBSIZE KEYS SCAN RANDOMKEY FLUSHALL FLUSHDB`.
//!
//! For: asking each partition where it is served, as tasks like any other, so that forwards, moves and
//! failovers in between are nobody's special case. On the client port all partitions are asked, on the
//! cluster port those of which this node is primary.
//! Not here: what one partition answers (`command::partition`).

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec, resolve};
use korum_protocol::map::{PartitionId, View};
use korum_protocol::resp::Args;
use korum_protocol::resp::decode::encode_request;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};

use super::batch::Batch;
use super::caller::Caller;
use super::parts::{Combine, Into, TaskRequest};
use super::route::Port;
use crate::command::partition::ScanOptions;
use crate::node::Node;

/// Most partitions that one `SCAN` asks: enough to pass over a sparse keyspace in few calls.
const SCAN_PARTITIONS_MAX: usize = 1024;
/// Partitions that `RANDOMKEY` asks when most are not empty.
const RANDOM_PARTITIONS: usize = 16;

/// A scan's cursor: the partition in the high bits, the position in hash order (48 bits) in the low ones.
/// 0 starts and ends a scan.
pub mod scan_cursor {
    use korum_protocol::map::PartitionId;

    const POSITION_BITS: u32 = 48;

    /// The cursor of a position in a partition.
    #[must_use]
    pub fn join(partition: PartitionId, position: u64) -> u64 {
        (u64::from(partition) << POSITION_BITS) | position
    }

    /// The cursor of the next partition's start.
    #[must_use]
    pub fn after(partition: PartitionId) -> u64 {
        (u64::from(partition) + 1) << POSITION_BITS
    }

    /// Partition and position.
    #[must_use]
    pub fn split(cursor: u64) -> (u64, u64) {
        (cursor >> POSITION_BITS, cursor & ((1 << POSITION_BITS) - 1))
    }
}

/// Runs the opened command if it is one of these. False if it is not.
pub fn run(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
) -> bool {
    let mut fan = Fan { batch, node, view, caller };
    match spec.id {
        CommandId::DbSize => fan.sum(),
        CommandId::FlushAll | CommandId::FlushDb => fan.flush(args, None),
        CommandId::Keys => fan.keys(&args[1]),
        CommandId::RandomKey => fan.random_key(),
        CommandId::Scan => fan.scan(args),
        _ => return false,
    }
    true
}

/// Asks some partitions whether they are served, for the opened command: its reply is a number if all are,
/// and, for a strong caller, if every write there until now is on all copies.
pub(super) fn ask(batch: &mut Batch, node: &Node, view: &View, caller: Caller, partitions: &[PartitionId]) {
    let mut fan = Fan { batch, node, view, caller };
    for &partition in partitions {
        fan.ask(partition, &[b"PART", b"COUNT"]);
    }
    fan.batch.last().combine = Combine::Sum(0);
}

/// Counts the partitions that are served with so many swaps of databases, for the opened command.
pub(super) fn ask_swapped(batch: &mut Batch, node: &Node, view: &View, caller: Caller, swaps: u64) {
    let swaps = swaps.to_string();
    Fan { batch, node, view, caller }.ask_all(&[b"PART", b"SWAPPED", swaps.as_bytes()], Combine::Sum(0));
}

/// Asks all partitions how large their databases are, for the opened command.
pub(super) fn ask_sizes(batch: &mut Batch, node: &Node, view: &View, caller: Caller) {
    Fan { batch, node, view, caller }.ask_all(&[b"PART", b"SIZES"], Combine::Concat);
}

/// Runs a request of Korum's own on a partition, as a part of the opened command: here and now, or as a task.
pub(super) fn submit(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    partition: PartitionId,
    request: Bytes,
    caller: Caller,
) {
    let mut parser = RequestParser::new(RequestLimits::unlimited());
    let Ok(Parsed::Request { .. }) = parser.parse(&request) else {
        unreachable!("a request that was just encoded")
    };
    let args = parser.args(&request);
    let spec = resolve(&args).expect("what nodes tell each other is in the table");
    let is_here = view.row(partition).primary == Some(node.id());
    batch.scratch.clear();
    let is_done = is_here && batch.execute(node, partition, spec, &args, caller, Into::Scratch);
    batch.postpone(spec, partition, TaskRequest::Part(request), false);
    if is_done {
        batch.answer_last();
    }
}

/// `FLUSHALL`, or `FLUSHDB`, on all partitions but one, where it was done already.
pub(super) fn flush_others(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    args: &Args<'_>,
    caller: Caller,
    except: PartitionId,
) {
    Fan { batch, node, view, caller }.flush(args, Some(except));
}

struct Fan<'a> {
    batch: &'a mut Batch,
    node: &'a Node,
    view: &'a View,
    caller: Caller,
}

impl Fan<'_> {
    /// The partitions that this caller is answered for.
    fn partitions(&self) -> Vec<PartitionId> {
        let is_asked = |id: &PartitionId| {
            self.caller.port == Port::Client || self.view.row(*id).primary == Some(self.node.id())
        };
        let count = u16::try_from(self.view.map.partitions).expect("at most 16384 partitions");
        (0..count).filter(is_asked).collect()
    }

    /// Asks one partition; its reply becomes the next task's.
    fn ask(&mut self, partition: PartitionId, words: &[&[u8]]) {
        let mut request = BytesMut::new();
        let number = partition.to_string();
        let words: Vec<&[u8]> = [&b"KORUM"[..], words[0], number.as_bytes()]
            .into_iter()
            .chain(words[1..].iter().copied())
            .collect();
        encode_request(&words, &mut request);
        submit(self.batch, self.node, self.view, partition, request.freeze(), self.caller);
    }

    fn ask_all(&mut self, words: &[&[u8]], combine: Combine) {
        self.ask_some(words, combine, None);
    }

    fn ask_some(&mut self, words: &[&[u8]], combine: Combine, except: Option<PartitionId>) {
        for partition in self.partitions().into_iter().filter(|&id| Some(id) != except) {
            self.ask(partition, words);
        }
        self.batch.last().combine = combine;
    }

    /// Keys of the caller's database in a partition, by what this node holds.
    fn keys_per_partition(&self) -> f64 {
        self.node.store().keys_per_partition(self.caller.database)
    }

    fn sum(&mut self) {
        self.ask_all(&[b"PART", b"COUNT"], Combine::Sum(0));
    }

    fn flush(&mut self, args: &Args<'_>, except: Option<PartitionId>) {
        let is_known =
            |word: &[u8]| word.eq_ignore_ascii_case(b"async") || word.eq_ignore_ascii_case(b"sync");
        if args.len() > 2 || (args.len() == 2 && !is_known(&args[1])) {
            self.batch.reply(self.caller.version).error("ERR syntax error");
            return;
        }
        let words: [&[u8]; 2] = [b"CLEAR", b"DB"];
        let is_one = args[0].eq_ignore_ascii_case(b"flushdb");
        self.ask_some(&words[..1 + usize::from(is_one)], Combine::AllOk, except);
    }

    fn keys(&mut self, pattern: &[u8]) {
        self.ask_all(&[b"PART", b"KEYS", pattern], Combine::Concat);
    }

    fn random_key(&mut self) {
        let mut partitions = self.partitions();
        let is_dense = self.keys_per_partition() >= 1.0;
        let first = self.batch.random_below(partitions.len().max(1));
        partitions.rotate_left(first);
        if is_dense {
            partitions.truncate(RANDOM_PARTITIONS);
        }
        for partition in partitions {
            self.ask(partition, &[b"PART", b"RANDOM"]);
        }
        self.batch.last().combine = Combine::Any(0);
    }

    fn scan(&mut self, args: &Args<'_>) {
        let options = match ScanOptions::parse(args) {
            Ok(options) => options,
            Err(text) => return self.batch.reply(self.caller.version).error(&text),
        };
        let (first, position) = scan_cursor::split(options.cursor);
        let partitions: Vec<_> = self.partitions().into_iter().filter(|&id| u64::from(id) >= first).collect();
        // Enough partitions to find as many keys as asked, by what this node holds itself.
        let density = self.keys_per_partition().max(0.01);
        let window = (options.count as f64 / density).ceil() as usize;
        let window = window.clamp(1, SCAN_PARTITIONS_MAX);
        let is_last = window >= partitions.len();
        for &partition in partitions.iter().take(window) {
            let from = if u64::from(partition) == first { position } else { 0 };
            let (from, count) = (from.to_string(), options.count.to_string());
            let mut words: Vec<&[u8]> = vec![b"PART", b"SCAN", from.as_bytes(), count.as_bytes()];
            words.extend(options.filter_words(args));
            self.ask(partition, &words);
        }
        self.batch.last().combine = Combine::Scan { is_last };
    }
}

#[cfg(test)]
mod tests {
    use super::scan_cursor;

    #[test]
    fn a_cursor_names_a_place_and_only_the_first_place_is_zero() {
        assert_eq!(scan_cursor::split(0), (0, 0));
        for (partition, position) in [(0, 1), (1, 0), (16383, (1 << 48) - 1)] {
            let cursor = scan_cursor::join(partition, position);
            assert_ne!(cursor, 0);
            assert!(cursor < 1 << 62, "clients may keep it in a signed number");
            assert_eq!(scan_cursor::split(cursor), (u64::from(partition), position));
        }
        assert_eq!(scan_cursor::split(scan_cursor::after(7)), (8, 0));
    }
}
