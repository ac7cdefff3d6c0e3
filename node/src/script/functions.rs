//! The functions that this node knows, and until when it may run them.
//!
//! For: finding a function by its name; deciding whether what is known is still what the cluster has.
//! Not here: asking for it (`dispatch::functions`), what libraries are (`library`), compiled code (`vm`).
//!
//! The libraries are one value, under a key of Korum's own, and its primary is *the keeper* here. A node keeps a copy,
//! which is **valid** only
//! - until [`VALID`] after the moment at which the node *asked* the keeper,
//! - in the run of the node that asked, and
//! - as long as nobody has told it that they change ([`Functions::doubt`]).
//!
//! Whoever changes them tells all nodes that are up, and answers its client when all have heard of it, or when what an
//! unreachable one knows cannot be valid any more. So after the answer no node runs what was there before.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use korum_protocol::id::{Epoch, Incarnation};
use tokio::sync::Notify;

use super::cache::{Digest, digest};
use super::library::{Function, Libraries, Library};
use crate::env::Tick;

/// How long a copy of the libraries is valid: longer than a failover, so that functions run on while the keeper is
/// replaced; a change waits as long for a node that is up and does not answer.
pub const VALID: Duration = Duration::from_secs(2);
/// What clocks may drift apart in that time.
pub const MARGIN: Duration = Duration::from_millis(50);
/// A copy of this age is asked for again when it is used, so that nobody who uses functions waits.
const RENEWED_AFTER: Duration = Duration::from_millis(500);

/// A library, and the name of its code.
#[derive(Debug)]
pub struct Kept {
    /// The library.
    pub library: Library,
    /// Of its code.
    pub digest: Digest,
}

/// The libraries of one version.
#[derive(Debug, Default)]
pub struct Known {
    /// Which.
    pub version: u64,
    /// The libraries, in the order in which they came.
    pub libraries: Vec<Kept>,
    /// By name in lower case: which library, and which of its functions.
    by_name: HashMap<Vec<u8>, (usize, usize)>,
}

impl Known {
    fn new(libraries: Libraries) -> Self {
        let mut by_name = HashMap::new();
        for (at, library) in libraries.list.iter().enumerate() {
            for (number, function) in library.functions.iter().enumerate() {
                by_name.insert(function.name.to_ascii_lowercase(), (at, number));
            }
        }
        let kept = |library: Library| Kept { digest: digest(&library.code), library };
        Self {
            version: libraries.version,
            libraries: libraries.list.into_iter().map(kept).collect(),
            by_name,
        }
    }

    /// The function of this name, in any case, and its library.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<(&Kept, &Function)> {
        let (library, function) = *self.by_name.get(&name.to_ascii_lowercase())?;
        let kept = &self.libraries[library];
        Some((kept, &kept.library.functions[function]))
    }

    /// Number of functions.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.by_name.len()
    }
}

/// A question to the keeper.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    at: Tick,
    run: Incarnation,
    told: u64,
    /// The version that is known, 0 if none is.
    pub version: u64,
}

/// What a node knows of functions. Shared by all threads; the lock is held for a look.
#[derive(Default)]
pub struct Functions {
    state: Mutex<State>,
    /// How often this node was told that the libraries change.
    told: AtomicU64,
    /// The epoch of the newest map that this node has begun to adopt.
    epoch: AtomicU64,
    /// Somebody wants a valid copy, now or soon.
    pub wanted: Notify,
}

#[derive(Default)]
struct State {
    known: Arc<Known>,
    /// The question that the copy, or that it is still the same, was the answer to.
    asked: Option<Asked>,
}

impl Functions {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// May this run of the node run functions at this moment? If not, or not for long any more, the keeper is asked.
    #[must_use]
    pub fn is_valid(&self, now: Tick, run: Option<Incarnation>) -> bool {
        let state = self.state();
        let told = self.told.load(SeqCst);
        let asked = state.asked.filter(|asked| Some(asked.run) == run && asked.told == told);
        let age = asked.map(|asked| now.since(asked.at));
        drop(state);
        if age.is_none_or(|age| age >= RENEWED_AFTER) {
            self.wanted.notify_one();
        }
        age.is_some_and(|age| age < VALID)
    }

    /// The copy, valid or not.
    #[must_use]
    pub fn latest(&self) -> Arc<Known> {
        Arc::clone(&self.state().known)
    }

    /// To be called before the keeper is asked.
    #[must_use]
    pub fn ask(&self, now: Tick, run: Incarnation) -> Asked {
        let told = self.told.load(SeqCst);
        let state = self.state();
        Asked { at: now, run, told, version: state.asked.map_or(0, |_| state.known.version) }
    }

    /// The keeper has answered: with the libraries, or that they are those that were known when it was asked.
    pub fn answer(&self, asked: Asked, libraries: Option<Libraries>) {
        let mut state = self.state();
        if state.asked.is_some_and(|newer| newer.at > asked.at) {
            return;
        }
        match libraries {
            Some(libraries) => state.known = Arc::new(Known::new(libraries)),
            None if state.known.version != asked.version => return,
            None => {}
        }
        state.asked = Some(asked);
    }

    /// They change, or may: nothing that was asked for before is valid any more.
    pub fn doubt(&self) {
        self.told.fetch_add(1, SeqCst);
        self.wanted.notify_one();
    }

    /// A newer map comes in force.
    pub fn adopt(&self, epoch: Epoch) {
        self.epoch.store(epoch.0, SeqCst);
    }

    /// The epoch of the newest map.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const RUN: Incarnation = Incarnation(7);

    fn libraries(version: u64) -> Libraries {
        let function = Function { name: Bytes::from_static(b"Sum"), description: None, flags: 0 };
        let library = Library {
            name: "math".into(),
            code: "#!lua name=math\n".into(),
            functions: vec![function],
            loaded: 1,
        };
        Libraries { version, list: vec![library] }
    }

    #[test]
    fn a_copy_is_valid_for_a_while_in_its_run_and_until_somebody_tells() {
        let functions = Functions::default();
        let start = Tick(1_000_000_000_000);
        assert!(!functions.is_valid(start, Some(RUN)), "nothing was asked");
        functions.answer(functions.ask(start, RUN), Some(libraries(3)));
        assert!(functions.is_valid(start + VALID / 2, Some(RUN)));
        assert!(!functions.is_valid(start + VALID, Some(RUN)), "it counts from the question");
        assert!(!functions.is_valid(start, Some(Incarnation(8))) && !functions.is_valid(start, None));
        let asked = functions.ask(start + VALID, RUN);
        assert_eq!(asked.version, 3);
        functions.answer(asked, None);
        assert!(functions.is_valid(start + VALID, Some(RUN)));
        let early = functions.ask(start + VALID, RUN);
        functions.doubt();
        assert!(!functions.is_valid(start + VALID, Some(RUN)));
        functions.answer(early, None);
        assert!(!functions.is_valid(start + VALID, Some(RUN)), "asked before it was told");
        functions.answer(functions.ask(start + VALID, RUN), Some(libraries(4)));
        assert!(functions.is_valid(start + VALID, Some(RUN)));
    }

    #[test]
    fn answers_that_overtake_each_other_do_no_harm() {
        let functions = Functions::default();
        let (first, second) = (functions.ask(Tick(10), RUN), functions.ask(Tick(20), RUN));
        functions.answer(second, Some(libraries(2)));
        functions.answer(first, Some(libraries(1)));
        assert_eq!(functions.latest().version, 2);
        let same = functions.ask(Tick(30), RUN);
        functions.answer(functions.ask(Tick(30), RUN), Some(libraries(5)));
        functions.answer(same, None);
        assert_eq!(functions.latest().version, 5);
    }

    #[test]
    fn functions_are_found_in_any_case() {
        let functions = Functions::default();
        functions.answer(functions.ask(Tick(1), RUN), Some(libraries(1)));
        let known = functions.latest();
        let (kept, function) = known.find(b"sUM").unwrap();
        assert_eq!((&kept.library.name[..], &function.name[..]), (&b"math"[..], &b"Sum"[..]));
        assert!(known.find(b"su").is_none());
        assert_eq!(known.functions(), 1);
    }
}
