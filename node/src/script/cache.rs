//! The scripts that this node knows, by their digests, and what it lets them do.
//!
//! For: `EVALSHA`, `SCRIPT EXISTS`; the time that a script may take; `SCRIPT KILL`, `FUNCTION KILL` and `STATS`.
//! Not here: compiled scripts, which each thread keeps for itself (`vm`), other nodes (`dispatch::scripts`), which
//! functions there are (`functions`).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::resp::Args;
use sha1::{Digest as _, Sha1};

use super::functions::Functions;
use crate::env::{Clock, Tick};

/// Bytes of one script.
pub const SCRIPT_BYTES_MAX: usize = 4 << 20;
/// Bytes of all scripts that are kept; beyond that the oldest are forgotten.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Scripts that are kept.
const KEPT_MAX: usize = 65_536;
/// How long a script may run unless told otherwise: much less than others wait for an answer, since its partition and
/// its thread wait for it.
pub const TIME_LIMIT: Duration = Duration::from_millis(1000);

/// Arguments of a running function that are shown, and bytes of each.
const SHOWN_ARGUMENTS: usize = 32;
const SHOWN_BYTES: usize = 128;

/// The SHA-1 of a script's source.
pub type Digest = [u8; 20];

/// The digest of a script.
#[must_use]
pub fn digest(source: &[u8]) -> Digest {
    Sha1::digest(source).into()
}

/// A digest as 40 hexadecimal digits.
#[must_use]
pub fn hex(digest: &Digest) -> String {
    use std::fmt::Write;
    digest.iter().fold(String::with_capacity(40), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The digest that 40 hexadecimal digits name, in any case.
#[must_use]
pub fn parse_hex(text: &[u8]) -> Option<Digest> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut digest = Digest::default();
    if text.len() != 2 * digest.len() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(digest)
}

/// What a node knows of scripts. Shared by all threads; the lock is held for a lookup.
pub struct Scripts {
    kept: Mutex<Kept>,
    time_limit_ms: AtomicU64,
    /// Scripts, and functions, that run now.
    running: [AtomicU64; 2],
    /// Grows with every `SCRIPT KILL`, and `FUNCTION KILL`: what began before it ends.
    kills: [AtomicU64; 2],
    /// The functions that run now, by number.
    shown: Mutex<BTreeMap<u64, RunningFunction>>,
    next: AtomicU64,
    /// The functions that there are.
    pub functions: Functions,
}

/// What runs and may be ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `EVAL` and kin.
    Script,
    /// `FCALL` and kin.
    Function,
}

/// A function that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningFunction {
    /// Its name.
    pub name: Bytes,
    /// The command that called it, as far as it is shown.
    pub command: Vec<Bytes>,
    /// Since when.
    pub since: Tick,
}

#[derive(Default)]
struct Kept {
    sources: HashMap<Digest, Bytes>,
    /// In the order in which they came.
    order: VecDeque<Digest>,
    bytes: usize,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            time_limit_ms: AtomicU64::new(TIME_LIMIT.as_millis() as u64),
            running: Default::default(),
            kills: Default::default(),
            shown: Mutex::default(),
            next: AtomicU64::new(0),
            functions: Functions::default(),
        }
    }
}

impl Scripts {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source of a script.
    #[must_use]
    pub fn get(&self, digest: &Digest) -> Option<Bytes> {
        self.kept().sources.get(digest).cloned()
    }

    /// Whether a script is known.
    #[must_use]
    pub fn knows(&self, digest: &Digest) -> bool {
        self.kept().sources.contains_key(digest)
    }

    /// Keeps a script, which may cost older ones their place.
    pub fn keep(&self, digest: Digest, source: &[u8]) {
        let mut kept = self.kept();
        if kept.sources.contains_key(&digest) || source.len() > SCRIPT_BYTES_MAX {
            return;
        }
        kept.bytes += source.len();
        kept.sources.insert(digest, Bytes::copy_from_slice(source));
        kept.order.push_back(digest);
        while kept.bytes > KEPT_BYTES_MAX || kept.order.len() > KEPT_MAX {
            let Some(oldest) = kept.order.pop_front() else { break };
            let source = kept.sources.remove(&oldest);
            kept.bytes -= source.map_or(0, |source| source.len());
        }
    }

    /// Forgets all.
    pub fn flush(&self) {
        *self.kept() = Kept::default();
    }

    /// Number and bytes of the scripts.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize) {
        let kept = self.kept();
        (kept.order.len(), kept.bytes)
    }

    /// How long a script may run.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        Duration::from_millis(self.time_limit_ms.load(Relaxed))
    }

    /// Says how long; never not at all.
    pub fn set_time_limit(&self, limit_ms: u64) {
        self.time_limit_ms.store(limit_ms.max(1), Relaxed);
    }

    /// Asks all of this kind that run now to end. False if none does.
    #[must_use]
    pub fn kill(&self, kind: Kind) -> bool {
        self.kills[kind as usize].fetch_add(1, Relaxed);
        self.running[kind as usize].load(Relaxed) > 0
    }

    /// How often those of this kind were asked to end.
    #[must_use]
    pub fn kills(&self, kind: Kind) -> u64 {
        self.kills[kind as usize].load(Relaxed)
    }

    /// A script or function begins; it has ended when the guard is dropped. `function`: its name, and the
    /// command with its arguments.
    #[must_use]
    pub fn begin(&self, kind: Kind, function: Option<(&Bytes, &[u8], Args<'_>)>) -> Running<'_> {
        self.running[kind as usize].fetch_add(1, Relaxed);
        let number = self.next.fetch_add(1, Relaxed);
        if let Some((name, command, words)) = function {
            let shown = |word: &[u8]| Bytes::copy_from_slice(&word[..word.len().min(SHOWN_BYTES)]);
            let words = words.iter().take(SHOWN_ARGUMENTS);
            let command = std::iter::once(command).chain(words).map(shown).collect();
            let function = RunningFunction { name: name.clone(), command, since: Clock::system().now() };
            self.shown().insert(number, function);
        }
        Running { scripts: self, kind, number }
    }

    fn shown(&self) -> MutexGuard<'_, BTreeMap<u64, RunningFunction>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The function that runs for the longest time.
    #[must_use]
    pub fn running_function(&self) -> Option<RunningFunction> {
        self.shown().values().next().cloned()
    }
}

/// A script or function that runs.
pub struct Running<'s> {
    scripts: &'s Scripts,
    kind: Kind,
    number: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.scripts.running[self.kind as usize].fetch_sub(1, Relaxed);
        if self.kind == Kind::Function {
            self.scripts.shown().remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_by_their_digests_in_any_case() {
        let scripts = Scripts::default();
        let one = digest(b"return 1");
        assert_eq!(hex(&one), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!(parse_hex(b"E0E1F9FABFC9D4800C877A703B823AC0578FF8DB"), Some(one));
        assert_eq!((parse_hex(b"e0"), parse_hex(&[b'x'; 40])), (None, None));
        assert_eq!(scripts.get(&one), None);
        scripts.keep(one, b"return 1");
        assert_eq!((scripts.get(&one).as_deref(), scripts.knows(&one)), (Some(&b"return 1"[..]), true));
        scripts.flush();
        assert_eq!(scripts.sizes(), (0, 0));
    }

    #[test]
    fn the_oldest_make_room() {
        let scripts = Scripts::default();
        let large = vec![b' '; SCRIPT_BYTES_MAX];
        for number in 0..20_u8 {
            scripts.keep([number; 20], &large);
        }
        assert_eq!(scripts.sizes(), (16, KEPT_BYTES_MAX));
        assert!(!scripts.knows(&[3; 20]) && scripts.knows(&[4; 20]));
    }

    #[test]
    fn only_what_runs_is_killed_and_only_of_its_kind() {
        let scripts = Scripts::default();
        assert!(!scripts.kill(Kind::Script));
        let running = scripts.begin(Kind::Script, None);
        assert!(scripts.kill(Kind::Script) && !scripts.kill(Kind::Function));
        drop(running);
        assert!(!scripts.kill(Kind::Script));
    }

    #[test]
    fn a_function_that_runs_is_shown() {
        let scripts = Scripts::default();
        let name = Bytes::from_static(b"f");
        let long = [b'x'; 2 * SHOWN_BYTES];
        let ranges = std::iter::once(0..long.len()).collect::<Vec<_>>();
        let running = scripts.begin(Kind::Function, Some((&name, b"FCALL", Args::new(&long, &ranges))));
        let shown = scripts.running_function().unwrap();
        assert_eq!((shown.name, shown.command.len(), shown.command[1].len()), (name, 2, SHOWN_BYTES));
        drop(running);
        assert_eq!(scripts.running_function(), None);
    }
}
