//! Permission to serve, for a while.
//!
//! For: a node's lease, what the Raft leader has granted, and what a new leader must wait out. No IO.
//! Not here: who is marked down (`liveness`), the messages (`heartbeat`).
//! The argument: a lease counts from when the heartbeat was *sent*, so it ends on the node at the latest `lease`
//! after the leader granted it. A leader grants only if a leadership confirmation that began at most
//! `confirm_window` ago succeeded; after another leader was elected none can begin and succeed. So that one knows,
//! `confirm_window + lease` (and the clocks' drift) after its election, that no lease of its predecessor runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use korum_protocol::id::{Incarnation, NodeId};

use crate::env::Tick;
use crate::env::mistake::{Mistake, makes};

/// The clocks of liveness. Defaults replace a killed node in tens of milliseconds and a silent one in about a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// How often a node heartbeats the leader: a seventh of a lease, so that a few lost ones do no harm.
    pub heartbeat: Duration,
    /// How long a lease lasts: with the margin and the detection a silent node is replaced within a second.
    pub lease: Duration,
    /// How old a confirmation of leadership may be when a lease is granted on it: several confirmations long.
    pub confirm_window: Duration,
    /// How much slower one machine's clock may run than another's, permille. Quartz is off by less than 1.
    pub drift_permille: u32,
    /// Fixed part of the margin: a timer tick and a descheduled thread.
    pub drift_fixed: Duration,
    /// A node that is down for so long no longer counts: copies are made elsewhere.
    pub rereplicate_after: Duration,
    /// A voter that is down for so long is replaced: longer than a restart, shorter than the next accident.
    pub voter_replace_after: Duration,
    /// Raft's heartbeat interval.
    pub raft_heartbeat: Duration,
    /// Raft's shortest election timeout.
    pub raft_election: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(100),
            lease: Duration::from_millis(700),
            confirm_window: Duration::from_millis(200),
            drift_permille: 50,
            drift_fixed: Duration::from_millis(20),
            rereplicate_after: Duration::from_secs(30),
            voter_replace_after: Duration::from_secs(5),
            raft_heartbeat: Duration::from_millis(50),
            raft_election: Duration::from_millis(150),
        }
    }
}

impl Timing {
    /// By how much two clocks may disagree over a lease and a confirmation.
    #[must_use]
    pub fn margin(&self) -> Duration {
        (self.lease + self.confirm_window) * self.drift_permille / 1000 + self.drift_fixed
    }

    /// After a grant, on the granting leader's clock, when that lease has surely run out.
    #[must_use]
    pub fn lease_end(&self) -> Duration {
        self.lease + self.margin()
    }

    /// After its election, on its own clock, when a leader knows that no lease of a predecessor runs.
    #[must_use]
    pub fn takeover(&self) -> Duration {
        self.confirm_window + self.lease_end()
    }
}

/// A node's own permission to serve. Read on every batch, extended by heartbeats.
#[derive(Debug, Default)]
pub struct Lease {
    until: AtomicU64,
    /// Heartbeats sent before this moment extend nothing. Guards all writes.
    not_before: Mutex<Tick>,
}

impl Lease {
    /// May this node serve now?
    #[must_use]
    pub fn is_valid(&self, now: Tick) -> bool {
        now.0 < self.until.load(Ordering::Acquire)
    }

    /// When it runs out, as far as is known now.
    #[must_use]
    pub fn until(&self) -> Tick {
        Tick(self.until.load(Ordering::Acquire))
    }

    /// The leader granted `duration` in answer to a heartbeat that was sent at `sent_at`. Never shortens.
    pub fn extend(&self, sent_at: Tick, duration: Duration) {
        let not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        if sent_at >= *not_before {
            self.until.fetch_max((sent_at + duration).0, Ordering::AcqRel);
        }
    }

    /// The permission ends now; answers to heartbeats sent before now extend nothing.
    pub fn revoke(&self, now: Tick) {
        let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        *not_before = now.max(*not_before);
        self.until.store(0, Ordering::Release);
    }

    /// The permission ends now and does not come back: the node stops.
    pub fn give_back(&self) {
        self.revoke(Tick(u64::MAX));
    }

    /// The node stops: nothing extends the permission any more.
    #[must_use]
    pub fn is_given_back(&self) -> bool {
        *self.not_before.lock().unwrap_or_else(PoisonError::into_inner) == Tick(u64::MAX)
    }

    /// The node does not stop after all: heartbeats sent from now on earn the permission again.
    pub fn take_up(&self, now: Tick) {
        *self.not_before.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// What a leader has granted in its present term.
#[derive(Debug, Default)]
pub struct Grants {
    leading: Option<Leading>,
    granted: BTreeMap<NodeId, Grant>,
}

#[derive(Clone, Copy, Debug)]
struct Leading {
    term: u64,
    since: Tick,
    confirmed: Option<Tick>,
}

#[derive(Clone, Copy, Debug)]
struct Grant {
    incarnation: Incarnation,
    /// When the last lease of this node was granted, whatever its incarnation was.
    at: Option<Tick>,
    /// This run was decided to be gone, or gave its lease back: it gets none any more.
    withheld: bool,
    /// This run said itself that it serves no more.
    returned: bool,
}

impl Grants {
    /// This node leads in `term`; a new term forgets what was granted and waits for its predecessor's leases.
    pub fn lead(&mut self, term: u64, now: Tick) {
        if self.leading.is_none_or(|leading| leading.term != term) {
            self.granted.clear();
            self.leading = Some(Leading { term, since: now, confirmed: None });
        }
    }

    /// This node leads no more.
    pub fn step_down(&mut self) {
        self.leading = None;
        self.granted.clear();
    }

    /// The term in which this node leads, and since when.
    #[must_use]
    pub fn leading(&self) -> Option<(u64, Tick)> {
        self.leading.map(|leading| (leading.term, leading.since))
    }

    /// A quorum confirmed the leadership in `term`; the confirmation began at `began`.
    pub fn confirmed(&mut self, term: u64, began: Tick) {
        if let Some(leading) = &mut self.leading
            && leading.term == term
        {
            leading.confirmed = leading.confirmed.max(Some(began));
        }
    }

    /// Has a quorum confirmed this leader recently enough to grant?
    #[must_use]
    pub fn is_confirmed(&self, timing: &Timing, now: Tick) -> bool {
        let confirmed = self.leading.and_then(|leading| leading.confirmed);
        confirmed.is_some_and(|began| now.since(began) <= timing.confirm_window)
    }

    /// For how long no quorum has confirmed this leader.
    #[must_use]
    pub fn unconfirmed_for(&self, now: Tick) -> Duration {
        self.leading.map_or(Duration::ZERO, |leading| now.since(leading.confirmed.unwrap_or(leading.since)))
    }

    /// Grants a lease to an up node, or nothing while no quorum has confirmed or it is being marked down.
    pub fn grant(
        &mut self,
        node: NodeId,
        incarnation: Incarnation,
        timing: &Timing,
        now: Tick,
    ) -> Option<Duration> {
        if !self.is_confirmed(timing, now) {
            return None;
        }
        let grant = self.entry(node, incarnation);
        if grant.withheld || grant.incarnation != incarnation {
            return None;
        }
        grant.at = Some(now);
        Some(timing.lease)
    }

    /// From now on this run gets no lease: it is about to be marked down.
    pub fn withhold(&mut self, node: NodeId, incarnation: Incarnation) {
        let grant = self.entry(node, incarnation);
        grant.withheld |= grant.incarnation == incarnation;
    }

    /// This run gave its lease back and serves no more.
    pub fn returned(&mut self, node: NodeId, incarnation: Incarnation) {
        self.withhold(node, incarnation);
        let grant = self.entry(node, incarnation);
        grant.returned |= grant.incarnation == incarnation;
    }

    /// Is it certain, by the clock alone, that this run of the node holds no lease?
    #[must_use]
    pub fn has_run_out(&self, node: NodeId, incarnation: Incarnation, timing: &Timing, now: Tick) -> bool {
        let Some(leading) = self.leading else { return false };
        let grant = self.granted.get(&node).filter(|grant| grant.incarnation >= incarnation);
        if grant.is_some_and(|grant| grant.returned && grant.incarnation == incarnation) {
            return true;
        }
        let mine = grant.and_then(|grant| grant.at);
        let takeover = if makes(Mistake::NoTakeoverWait) { Duration::ZERO } else { timing.takeover() };
        now >= leading.since + takeover && mine.is_none_or(|at| now >= at + timing.lease_end())
    }

    fn entry(&mut self, node: NodeId, incarnation: Incarnation) -> &mut Grant {
        let fresh = Grant { incarnation, at: None, withheld: false, returned: false };
        let grant = self.granted.entry(node).or_insert(fresh);
        if incarnation > grant.incarnation {
            // The older run may still hold what it was granted: its time stays.
            *grant = Grant { at: grant.at, ..fresh };
        }
        grant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NODE: NodeId = NodeId(1);
    const RUN: Incarnation = Incarnation(3);

    fn at(ms: u64) -> Tick {
        Tick(1_000_000_000) + Duration::from_millis(ms)
    }

    #[test]
    fn a_lease_counts_from_when_the_heartbeat_was_sent_and_never_shrinks() {
        let lease = Lease::default();
        assert!(!lease.is_valid(at(0)));
        lease.extend(at(100), Duration::from_millis(700));
        lease.extend(at(50), Duration::from_millis(700));
        assert!(lease.is_valid(at(799)));
        assert!(!lease.is_valid(at(800)));
        lease.revoke(at(200));
        assert!(!lease.is_valid(at(200)));
        lease.extend(at(199), Duration::from_millis(700));
        assert!(!lease.is_valid(at(200)), "an answer that was under way");
        lease.extend(at(201), Duration::from_millis(700));
        assert!(lease.is_valid(at(300)));
        lease.give_back();
        lease.extend(at(400), Duration::from_millis(700));
        assert!(!lease.is_valid(at(400)));
        lease.take_up(at(500));
        lease.extend(at(499), Duration::from_millis(700));
        assert!(!lease.is_valid(at(500)), "sent while the permission was given back");
        lease.extend(at(500), Duration::from_millis(700));
        assert!(lease.is_valid(at(500)));
    }

    #[test]
    fn a_leader_grants_only_on_a_fresh_confirmation_of_its_own_term() {
        let (timing, mut grants) = (Timing::default(), Grants::default());
        grants.confirmed(1, at(0));
        assert_eq!(grants.grant(NODE, RUN, &timing, at(0)), None);
        grants.lead(2, at(0));
        grants.confirmed(1, at(0));
        assert_eq!(grants.grant(NODE, RUN, &timing, at(1)), None);
        grants.confirmed(2, at(1));
        assert_eq!(grants.grant(NODE, RUN, &timing, at(201)), Some(timing.lease));
        assert_eq!(grants.grant(NODE, RUN, &timing, at(202)), None);
    }

    #[test]
    fn a_new_leader_waits_out_its_predecessor() {
        let (timing, mut grants) = (Timing::default(), Grants::default());
        grants.lead(5, at(0));
        let end = at(0) + timing.takeover();
        assert!(!grants.has_run_out(NODE, RUN, &timing, Tick(end.0 - 1)));
        assert!(grants.has_run_out(NODE, RUN, &timing, end));
        grants.lead(6, at(900));
        assert!(!grants.has_run_out(NODE, RUN, &timing, end));
    }

    #[test]
    fn a_run_that_is_being_marked_down_gets_no_lease_but_a_newer_one_does() {
        let (timing, mut grants) = (Timing::default(), Grants::default());
        grants.lead(1, at(0));
        grants.confirmed(1, at(0));
        assert!(grants.grant(NODE, RUN, &timing, at(0)).is_some());
        grants.withhold(NODE, RUN);
        assert!(grants.grant(NODE, RUN, &timing, at(1)).is_none());
        assert!(!grants.has_run_out(NODE, RUN, &timing, at(2)));
        grants.returned(NODE, RUN);
        assert!(grants.has_run_out(NODE, RUN, &timing, at(2)));
        assert!(grants.grant(NODE, RUN.next(), &timing, at(3)).is_some());
        assert!(grants.grant(NODE, RUN, &timing, at(3)).is_none(), "the old run stays without");
    }

    proptest! {
        /// Whatever two leaders do on clocks that drift, a lease that a node believes in is never declared run out.
        #[test]
        fn no_lease_outlives_what_the_leader_believes(
            sent in 0u64..300,
            travel in 0u64..300,
            node_slow in 0.95f64..1.0,
            confirm_age in 0u64..=200,
            elected in 0u64..1000,
        ) {
            let timing = Timing::default();
            // True time; the old leader's clock is exact, the node's runs slow, so its lease ends late.
            let granted = sent + travel;
            let confirmed = granted.saturating_sub(confirm_age);
            let node_end = sent as f64 + timing.lease.as_secs_f64() * 1000.0 / node_slow;
            let mut old = Grants::default();
            old.lead(1, Tick(0));
            old.confirmed(1, at(confirmed));
            prop_assert!(old.grant(NODE, RUN, &timing, at(granted)).is_some());
            let probe = |grants: &Grants, from: u64| (from..6000).find(|ms| grants.has_run_out(NODE, RUN, &timing, at(*ms)));
            prop_assert!(probe(&old, granted).unwrap() as f64 >= node_end);
            // A successor is elected after that confirmation.
            let elected = confirmed + elected;
            let mut new = Grants::default();
            new.lead(2, at(elected));
            prop_assert!(probe(&new, elected).unwrap() as f64 >= node_end);
        }
    }
}
