//! Which peers have been silent for too long while they owed acknowledgements?
//!
//! For: telling a peer that is slow from one that is not reached, each with its own patience. Pure: what was seen of
//! links, and when.
//! Not here: what becomes of their copies (`execute`), signs of life (`replication::session`).

use std::collections::HashMap;
use std::time::Duration;

use korum_protocol::id::NodeId;

use crate::env::Tick;
use crate::replication::session::SIGN_OF_LIFE;

/// A peer that owes something for so long is looked at more often.
const SUSPECT: Duration = Duration::from_millis(100);
/// Shortest silence that counts: several signs of life are missing.
const SILENCE_MIN: Duration = SIGN_OF_LIFE.saturating_mul(3);

/// What a look saw of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Grows with what is acknowledged.
    pub progress: u64,
    /// Grows with whatever is heard.
    pub heard: u64,
    /// Something is not acknowledged.
    pub owes: bool,
}

/// What is remembered of all peers.
#[derive(Default)]
pub struct Silences {
    by_peer: HashMap<NodeId, Known>,
}

struct Known {
    seen: Option<Seen>,
    /// Since when nothing was acknowledged.
    no_progress: Tick,
    /// Since when nothing was heard.
    silent: Tick,
}

impl Silences {
    /// Is this peer stalled: no acknowledgement for `timeout`, or nothing heard of it for half of that? `seen` is `None`
    /// while there is no link, which is no sign of life.
    pub fn is_stalled(
        &mut self,
        peer: NodeId,
        seen: Option<Seen>,
        now: Tick,
        timeout: Duration,
        lease: Duration,
    ) -> bool {
        let known = self.by_peer.entry(peer).or_insert(Known { seen, no_progress: now, silent: now });
        if let Some(seen) = seen {
            let before = known.seen.replace(seen);
            if !seen.owes || before.is_none_or(|before| before.progress != seen.progress) {
                known.no_progress = now;
            }
            if !seen.owes || before.is_none_or(|before| before != seen) {
                known.silent = now;
            }
        }
        // A node that nobody hears hears nobody: its own lease is over before it calls the others silent.
        let silence = (timeout / 2).max(SILENCE_MIN).max(lease + lease / 4).min(timeout);
        now.since(known.no_progress) >= timeout || now.since(known.silent) >= silence
    }

    /// Nothing is expected of any other peer.
    pub fn keep(&mut self, is_expected: impl Fn(NodeId) -> bool) {
        self.by_peer.retain(|peer, _| is_expected(*peer));
    }

    /// Is a peer silent for longer than acknowledgements take?
    #[must_use]
    pub fn has_suspects(&self, now: Tick) -> bool {
        self.by_peer.values().any(|known| now.since(known.silent) >= SUSPECT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(7);
    const TIMEOUT: Duration = Duration::from_secs(2);
    const LEASE: Duration = Duration::from_millis(700);

    fn at(ms: u64) -> Tick {
        Tick(ms * 1_000_000)
    }

    fn owing(progress: u64, heard: u64) -> Option<Seen> {
        Some(Seen { progress, heard, owes: true })
    }

    #[test]
    fn who_is_heard_has_the_whole_timeout_and_who_is_silent_half_of_it() {
        let mut silences = Silences::default();
        for ms in (0..2_000).step_by(200) {
            assert!(!silences.is_stalled(PEER, owing(5, ms), at(ms), TIMEOUT, LEASE), "{ms}");
        }
        assert!(silences.is_stalled(PEER, owing(5, 2_000), at(2_000), TIMEOUT, LEASE));
        assert!(!silences.is_stalled(PEER, owing(6, 2_001), at(2_001), TIMEOUT, LEASE), "it acknowledges");
        assert!(!silences.has_suspects(at(2_050)));
        assert!(!silences.is_stalled(PEER, owing(6, 2_001), at(3_000), TIMEOUT, LEASE));
        assert!(silences.has_suspects(at(3_000)));
        assert!(silences.is_stalled(PEER, owing(6, 2_001), at(3_001), TIMEOUT, LEASE));
    }

    #[test]
    fn a_lost_link_is_no_sign_of_life_and_a_settled_one_expects_none() {
        let mut silences = Silences::default();
        let settled = Some(Seen { progress: 9, heard: 9, owes: false });
        assert!(!silences.is_stalled(PEER, settled, at(0), TIMEOUT, LEASE));
        assert!(!silences.is_stalled(PEER, settled, at(10_000), TIMEOUT, LEASE));
        assert!(!silences.is_stalled(PEER, None, at(10_900), TIMEOUT, LEASE));
        assert!(silences.is_stalled(PEER, None, at(11_000), TIMEOUT, LEASE));
        silences.keep(|peer| peer != PEER);
        assert!(!silences.has_suspects(at(11_000)));
        assert!(!silences.is_stalled(PEER, None, at(11_100), TIMEOUT, LEASE));
    }
}
