//! Counters of what a node has done.
//!
//! For: counting on the hot path without threads disturbing each other; added up when someone asks.
//! Not here: how they are shown (`info`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::command_stats::{AllTotals, CommandStats};
use crate::env::Tick;

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Counter {
    /// Commands executed.
    Commands,
    /// Connections accepted.
    Connections,
    /// Connections refused because there were too many.
    RejectedConnections,
    /// Bytes read from clients.
    BytesIn,
    /// Bytes written to clients.
    BytesOut,
    /// Reads from client sockets.
    Reads,
    /// Writes to client sockets.
    Writes,
    /// Keys looked up and found.
    Hits,
    /// Keys looked up and not found.
    Misses,
    /// Keys removed because their time was over.
    Expired,
    /// Keys removed to make room.
    Evicted,
    /// Commands forwarded to another node.
    Forwarded,
    /// Commands answered with `MOVED` or `ASK`.
    Redirected,
    /// Commands refused before they were executed.
    Rejected,
    /// Bytes of effects and streams received from nodes.
    ReplicationBytesIn,
    /// Bytes of effects and streams sent to nodes.
    ReplicationBytesOut,
    /// Bytes of partitions streamed to nodes that are to hold them.
    StreamedBytes,
    /// Keys of such partitions.
    StreamedKeys,
    /// Copies that were brought up to date from the backlog.
    Repairs,
    /// Copies that were streamed from the start.
    Streams,
    /// Waits for replicas that ran out of time: the outcome was unknown to the client.
    Unknown,
    /// Clients closed because they did not read their replies.
    OutputOverruns,
}

const COUNTERS: usize = Counter::OutputOverruns as usize + 1;

/// Most different error prefixes that are told apart by one thread.
const ERROR_PREFIXES_MAX: usize = 128;
/// Longest error prefix that is told apart, bytes.
const ERROR_PREFIX_BYTES_MAX: usize = 32;

/// The counters of one thread. Aligned so that no two threads write to one cache line
/// (128, since processors fetch lines in pairs).
#[repr(align(128))]
#[derive(Default)]
pub struct ThreadStats {
    counters: [AtomicU64; COUNTERS],
    errors: Mutex<BTreeMap<String, u64>>,
    /// By command.
    pub commands: CommandStats,
}

impl ThreadStats {
    /// Counts.
    pub fn add(&self, counter: Counter, number: u64) {
        self.counters[counter as usize].fetch_add(number, Relaxed);
    }

    /// Counts an error reply to a client, from its minus sign on.
    pub fn add_error_reply(&self, reply: &[u8]) {
        let text = &reply[1..];
        self.add_error(text);
        if text.starts_with(b"MOVED ") {
            self.add(Counter::Redirected, 1);
        } else if text.starts_with(b"UNKNOWN ") {
            self.add(Counter::Unknown, 1);
        }
    }

    /// Counts an error reply by its prefix; `reply` is the text behind the minus sign.
    pub fn add_error(&self, reply: &[u8]) {
        let end = reply.iter().position(|&byte| !byte.is_ascii_uppercase()).unwrap_or(reply.len());
        let prefix = match std::str::from_utf8(&reply[..end.min(ERROR_PREFIX_BYTES_MAX)]) {
            Ok(prefix) if !prefix.is_empty() => prefix,
            _ => "ERR",
        };
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = errors.get_mut(prefix) {
            *count += 1;
        } else if errors.len() < ERROR_PREFIXES_MAX {
            errors.insert(prefix.to_owned(), 1);
        }
    }
}

/// The counters of all threads.
pub struct Stats {
    threads: Box<[ThreadStats]>,
    rates: Mutex<Rates>,
}

/// What all threads counted together.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    counters: [u64; COUNTERS],
    /// Error replies, by prefix.
    pub errors: BTreeMap<String, u64>,
    /// Commands per second, of the last sample.
    pub commands_per_second: f64,
    /// Bytes per second from clients, of the last sample.
    pub bytes_in_per_second: f64,
    /// Bytes per second to clients, of the last sample.
    pub bytes_out_per_second: f64,
    /// Bytes per second of streams, of the last sample.
    pub streamed_bytes_per_second: f64,
}

impl Totals {
    /// One number.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }
}

/// What is measured per second, in the order of [`Rates`].
const RATED: [Counter; 4] = [Counter::Commands, Counter::BytesIn, Counter::BytesOut, Counter::StreamedBytes];

#[derive(Default)]
struct Rates {
    at: Tick,
    seen: [u64; RATED.len()],
    per_second: [f64; RATED.len()],
}

impl Stats {
    /// Counters for so many threads.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            threads: (0..threads.max(1)).map(|_| ThreadStats::default()).collect(),
            rates: Mutex::default(),
        }
    }

    /// The counters of a thread, by its number.
    #[must_use]
    pub fn of(&self, thread: usize) -> &ThreadStats {
        &self.threads[thread % self.threads.len()]
    }

    /// Adds everything up.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for thread in &self.threads {
            for (total, counter) in totals.counters.iter_mut().zip(&thread.counters) {
                *total += counter.load(Relaxed);
            }
            for (prefix, count) in thread.errors.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                *totals.errors.entry(prefix.clone()).or_default() += count;
            }
        }
        let rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        [
            totals.commands_per_second,
            totals.bytes_in_per_second,
            totals.bytes_out_per_second,
            totals.streamed_bytes_per_second,
        ] = rates.per_second;
        totals
    }

    /// What was counted of each command.
    #[must_use]
    pub fn commands(&self) -> AllTotals {
        let mut totals = AllTotals::new();
        self.threads.iter().for_each(|thread| thread.commands.add_to(&mut totals));
        totals
    }

    /// Measures rates since the last sample; to be called about once a second.
    pub fn sample(&self, now: Tick) {
        let totals = self.totals();
        let seen = RATED.map(|counter| totals.get(counter));
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let time = now.since(rates.at);
        if time > Duration::ZERO {
            let before = rates.seen;
            let rate = |at: usize| seen[at].saturating_sub(before[at]) as f64 / time.as_secs_f64();
            rates.per_second = std::array::from_fn(rate);
            rates.seen = seen;
            rates.at = now;
        }
    }

    /// Back to zero (`CONFIG RESETSTAT`).
    pub fn reset(&self) {
        for thread in &self.threads {
            thread.counters.iter().for_each(|counter| counter.store(0, Relaxed));
            thread.errors.lock().unwrap_or_else(PoisonError::into_inner).clear();
            thread.commands.reset();
        }
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).seen = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added_up_and_reset() {
        let stats = Stats::new(2);
        stats.of(0).add(Counter::Commands, 3);
        stats.of(1).add(Counter::Commands, 4);
        stats.of(7).add_error(b"ERR syntax error");
        stats.of(0).add_error(b"WRONGTYPE Operation");
        stats.of(0).add_error(b"no prefix at all");
        stats.of(1).add_error_reply(b"-MOVED 1 h:2\r\n");
        let totals = stats.totals();
        assert_eq!((totals.get(Counter::Commands), totals.get(Counter::Redirected)), (7, 1));
        assert_eq!(
            totals.errors,
            BTreeMap::from([("ERR".to_owned(), 2), ("MOVED".to_owned(), 1), ("WRONGTYPE".to_owned(), 1)])
        );
        stats.reset();
        assert_eq!(stats.totals().get(Counter::Commands), 0);
        assert!(stats.totals().errors.is_empty());
    }

    #[test]
    fn rates_are_of_the_last_interval() {
        let stats = Stats::new(1);
        stats.sample(Tick(1_000_000_000));
        stats.of(0).add(Counter::Commands, 50);
        stats.of(0).add(Counter::StreamedBytes, 600);
        stats.sample(Tick(3_000_000_000));
        assert!((stats.totals().commands_per_second - 25.0).abs() < 1e-9);
        assert!((stats.totals().streamed_bytes_per_second - 300.0).abs() < 1e-9);
        stats.sample(Tick(4_000_000_000));
        assert!(stats.totals().commands_per_second.abs() < 1e-9);
    }

    #[test]
    fn error_prefixes_are_bounded() {
        let stats = ThreadStats::default();
        for number in 0..1000u32 {
            let letters: String =
                (0..4).map(|at| char::from(b'A' + (number >> (3 * at) & 7) as u8)).collect();
            stats.add_error(letters.as_bytes());
        }
        assert_eq!(stats.errors.lock().unwrap().len(), ERROR_PREFIXES_MAX);
    }

    #[test]
    fn counters_of_two_threads_share_no_cache_line() {
        assert_eq!(align_of::<ThreadStats>(), 128);
    }
}
