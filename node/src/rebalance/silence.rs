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
/// After so long without a look this node was silent itself, and knows nothing of the others' silence.
const OWN_SILENCE: Duration = Duration::from_millis(500);
/// Shortest silence that counts: several signs of life are missing.
const SILENCE_MIN: Duration = SIGN_OF_LIFE.saturating_mul(3);

/// A peer that has opened so many links since it last owed nothing is believed only when it owes nothing: what it
/// acknowledges on each is the first question, and never the writes that wait.
const LINKS_MAX: u32 = 3;

/// What a look saw of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Which link of this node it is: counts begin anew with each.
    pub link: u64,
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
    looked: Tick,
}

struct Known {
    seen: Option<Seen>,
    /// Links that were seen since nothing was owed.
    links: u32,
    /// Since when nothing was acknowledged.
    no_progress: Tick,
    /// Since when nothing was heard.
    silent: Tick,
}

impl Silences {
    /// Before each look. All is forgotten if it may be this node that is not heard: it has no lease, or did not look
    /// for long.
    pub fn begin_look(&mut self, now: Tick, is_leased: bool) {
        if !is_leased || now.since(self.looked) > OWN_SILENCE {
            self.by_peer.clear();
        }
        self.looked = now;
    }

    /// Is this peer stalled: no acknowledgement for `timeout`, or nothing heard of it for half of that? `seen` is `None`
    /// while there is no link, which is no sign of life; neither is a new link.
    pub fn is_stalled(
        &mut self,
        peer: NodeId,
        seen: Option<Seen>,
        now: Tick,
        timeout: Duration,
        lease: Duration,
    ) -> bool {
        let fresh = Known { seen: None, links: 0, no_progress: now, silent: now };
        let known = self.by_peer.entry(peer).or_insert(fresh);
        if let Some(seen) = seen {
            let before = known.seen.replace(seen).filter(|before| before.link == seen.link);
            known.links = match before {
                _ if !seen.owes => 0,
                Some(_) => known.links,
                None => known.links.saturating_add(1),
            };
            let counts = |is_sign: fn(&Seen, &Seen) -> bool| {
                let is_sign = before.is_some_and(|before| is_sign(&before, &seen));
                !seen.owes || is_sign && known.links <= LINKS_MAX
            };
            if counts(|before, seen| before.progress != seen.progress) {
                known.no_progress = now;
            }
            if counts(|before, seen| before != seen) {
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
        Some(Seen { link: 1, progress, heard, owes: true })
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
        let settled = Some(Seen { link: 1, progress: 9, heard: 9, owes: false });
        assert!(!silences.is_stalled(PEER, settled, at(0), TIMEOUT, LEASE));
        assert!(!silences.is_stalled(PEER, settled, at(10_000), TIMEOUT, LEASE));
        assert!(!silences.is_stalled(PEER, None, at(10_900), TIMEOUT, LEASE));
        assert!(silences.is_stalled(PEER, None, at(11_000), TIMEOUT, LEASE));
        silences.keep(|peer| peer != PEER);
        assert!(!silences.has_suspects(at(11_000)));
        assert!(!silences.is_stalled(PEER, None, at(11_100), TIMEOUT, LEASE));
    }

    #[test]
    fn who_was_silent_itself_knows_nothing_of_the_silence_of_others() {
        for (away, is_leased, forgets) in [(400, true, false), (600, true, true), (400, false, true)] {
            let mut silences = Silences::default();
            silences.begin_look(at(10_000), true);
            assert!(!silences.is_stalled(PEER, owing(5, 5), at(10_000), TIMEOUT, LEASE));
            silences.begin_look(at(10_000 + away), is_leased);
            assert_eq!(!silences.has_suspects(at(10_000 + away)), forgets, "{away} ms, leased {is_leased}");
        }
    }

    #[test]
    fn a_peer_that_opens_one_link_after_the_other_is_not_waited_for_longer() {
        let mut silences = Silences::default();
        let on = |link, progress| Some(Seen { link, progress, heard: progress, owes: true });
        // Each link lives for 100 ms; on each of them it acknowledges the first question.
        let mut stalled_at = None;
        for link in 1..60 {
            let begin = link * 100;
            for (ms, seen) in [(0, on(link, 0)), (40, on(link, 1)), (80, None)] {
                if silences.is_stalled(PEER, seen, at(begin + ms), TIMEOUT, LEASE) {
                    stalled_at.get_or_insert(begin + ms);
                }
            }
        }
        // From the last sign of life that counted, on the third link.
        assert_eq!(stalled_at, Some(1_340));
        // It catches up, and begins anew.
        let settled = Some(Seen { link: 60, progress: 7, heard: 7, owes: false });
        assert!(!silences.is_stalled(PEER, settled, at(6_000), TIMEOUT, LEASE));
        assert!(!silences.is_stalled(PEER, on(61, 0), at(6_900), TIMEOUT, LEASE));
        assert!(!silences.is_stalled(PEER, on(61, 1), at(6_990), TIMEOUT, LEASE));
        assert!(!silences.is_stalled(PEER, on(61, 1), at(7_900), TIMEOUT, LEASE));
    }
}
