//! Commands that took long.
//!
//! For: the newest of them, as `SLOWLOG` shows them, and the delays that `LATENCY` shows.
//! Not here: measuring (`net::connection`, `net::forward::serve`), replies (`command::slow`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use korum_protocol::resp::Args;

/// Arguments of an entry; more are counted.
const ARGUMENTS_MAX: usize = 32;
/// Bytes of one argument; more are counted.
const ARGUMENT_BYTES_MAX: usize = 128;
/// Delays that are kept of each kind.
const DELAYS_MAX: usize = 160;

/// One command that took long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its number; they grow.
    pub id: u64,
    /// When it began, Unix seconds.
    pub began: u64,
    /// How long it took, microseconds.
    pub took_us: u64,
    /// Its arguments, cut.
    pub arguments: Vec<Vec<u8>>,
    /// Whose it was: an address.
    pub address: String,
    /// The client's name.
    pub name: String,
}

/// The log of one node.
#[derive(Default)]
pub struct SlowLog {
    state: Mutex<(u64, VecDeque<Entry>)>,
}

impl SlowLog {
    fn state(&self) -> MutexGuard<'_, (u64, VecDeque<Entry>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry; of all, the newest `len_max` stay.
    pub fn add(
        &self,
        began: u64,
        took_us: u64,
        args: &Args<'_>,
        address: String,
        name: String,
        len_max: usize,
    ) {
        let arguments = cut(args);
        let (next, entries) = &mut *self.state();
        entries.push_front(Entry { id: *next, began, took_us, arguments, address, name });
        *next += 1;
        entries.truncate(len_max);
    }

    /// The newest entries, newest first.
    pub fn newest(&self, count: usize) -> Vec<Entry> {
        self.state().1.iter().take(count).cloned().collect()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.state().1.len()
    }

    /// No entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all entries; numbers go on.
    pub fn reset(&self) {
        self.state().1.clear();
    }
}

/// The arguments of a command, as the log keeps them.
fn cut(args: &Args<'_>) -> Vec<Vec<u8>> {
    let shown = if args.len() > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { args.len() };
    let mut cut: Vec<Vec<u8>> = args
        .iter()
        .take(shown)
        .map(|arg| {
            let mut text = arg[..arg.len().min(ARGUMENT_BYTES_MAX)].to_vec();
            if arg.len() > ARGUMENT_BYTES_MAX {
                text.extend_from_slice(
                    format!("... ({} more bytes)", arg.len() - ARGUMENT_BYTES_MAX).as_bytes(),
                );
            }
            text
        })
        .collect();
    if args.len() > shown {
        cut.push(format!("... ({} more arguments)", args.len() - shown).into_bytes());
    }
    cut
}

/// A delay: when, in Unix seconds, and how long, in milliseconds.
pub type Delay = (u64, u64);

/// The delays of one kind.
#[derive(Clone, Default, Debug)]
pub struct Delays {
    /// Oldest first, one a second at most.
    pub all: VecDeque<Delay>,
    /// The longest so far, milliseconds.
    pub longest_ms: u64,
}

/// Delays by kind: `command` and `fast-command`, as Redis names them.
#[derive(Default)]
pub struct Latency {
    kinds: Mutex<BTreeMap<&'static str, Delays>>,
}

impl Latency {
    fn kinds(&self) -> MutexGuard<'_, BTreeMap<&'static str, Delays>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a delay.
    pub fn add(&self, kind: &'static str, at: u64, took_ms: u64) {
        let mut kinds = self.kinds();
        let delays = kinds.entry(kind).or_default();
        delays.longest_ms = delays.longest_ms.max(took_ms);
        match delays.all.back_mut() {
            Some((second, longest)) if *second == at => *longest = (*longest).max(took_ms),
            _ => delays.all.push_back((at, took_ms)),
        }
        if delays.all.len() > DELAYS_MAX {
            delays.all.pop_front();
        }
    }

    /// All kinds that were delayed.
    pub fn all(&self) -> Vec<(&'static str, Delays)> {
        self.kinds().iter().map(|(kind, delays)| (*kind, delays.clone())).collect()
    }

    /// Forgets the delays of these kinds, or of all if none is named; how many kinds.
    pub fn reset(&self, names: &[&[u8]]) -> usize {
        let mut kinds = self.kinds();
        let before = kinds.len();
        let is_meant = |kind: &str| names.iter().any(|name| name.eq_ignore_ascii_case(kind.as_bytes()));
        kinds.retain(|kind, _| !names.is_empty() && !is_meant(kind));
        before - kinds.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(words: &[&str], use_it: impl FnOnce(&Args<'_>) -> T) -> T {
        let text = words.concat();
        let mut end = 0;
        let mut ranges = Vec::new();
        for word in words {
            ranges.push(end..end + word.len());
            end += word.len();
        }
        use_it(&Args::new(text.as_bytes(), &ranges))
    }

    #[test]
    fn only_the_newest_stay_and_numbers_grow() {
        let log = SlowLog::default();
        for took in 0..5 {
            with(&["get", "a"], |args| log.add(7, took, args, "a:1".into(), String::new(), 3));
        }
        let ids: Vec<_> = log.newest(10).iter().map(|entry| (entry.id, entry.took_us)).collect();
        assert_eq!(ids, [(4, 4), (3, 3), (2, 2)]);
        log.reset();
        assert!(log.is_empty());
        with(&["get", "a"], |args| log.add(7, 9, args, "a:1".into(), String::new(), 3));
        assert_eq!(log.newest(1)[0].id, 5);
    }

    #[test]
    fn long_commands_are_cut() {
        let long = "x".repeat(200);
        let words: Vec<&str> = std::iter::once("mget").chain(std::iter::repeat_n(&long[..], 40)).collect();
        let arguments = with(&words, cut);
        assert_eq!(arguments.len(), 32);
        assert_eq!(arguments[1], format!("{}... (72 more bytes)", &long[..128]).into_bytes());
        assert_eq!(arguments[31], b"... (10 more arguments)");
    }

    #[test]
    fn delays_are_kept_by_second_and_kind() {
        let latency = Latency::default();
        latency.add("command", 1, 5);
        latency.add("command", 1, 9);
        latency.add("command", 2, 3);
        latency.add("fast-command", 2, 1);
        let all = latency.all();
        assert_eq!(all[0].1.all, [(1, 9), (2, 3)]);
        assert_eq!((all[0].0, all[0].1.longest_ms, all.len()), ("command", 9, 2));
        assert_eq!((latency.reset(&[b"COMMAND"]), latency.reset(&[]), latency.reset(&[])), (1, 1, 0));
    }
}
