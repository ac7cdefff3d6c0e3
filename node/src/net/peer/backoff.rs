//! When to try a dead peer again.
//!
//! For: quick attempts at first, then about one a second, so that a dead peer costs nothing. Pure.

use std::time::Duration;

use crate::env::Tick;

/// First wait after a failure: a restarting process is met early.
const FIRST: Duration = Duration::from_millis(20);
/// Longest wait; and how long a connection must have lived for the next failure to be a first one.
const LAST: Duration = Duration::from_secs(1);

/// Attempts at one peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    failures: u32,
    next: Tick,
}

impl Backoff {
    /// May one try now?
    pub fn is_ready(&self, now: Tick) -> bool {
        now >= self.next
    }

    /// An attempt failed; `jitter` in `0.0..1.0` spreads the next ones of many nodes.
    pub fn failed(&mut self, now: Tick, jitter: f64) {
        self.next = now + self.wait(jitter);
    }

    /// A connection that was opened then, if one was, is gone: how long to wait before the next attempt. One that is
    /// taken and closed at once is as good as none.
    pub fn ended(&mut self, opened: Option<Tick>, now: Tick, jitter: f64) -> Duration {
        if opened.is_some_and(|opened| now.since(opened) >= LAST) {
            self.succeeded();
        }
        self.wait(jitter)
    }

    fn wait(&mut self, jitter: f64) -> Duration {
        // The first four stay quick (a leader that lost one connection must not wait), then doubling.
        let wait = FIRST.saturating_mul(1 << self.failures.saturating_sub(3).min(10)).min(LAST);
        self.failures = self.failures.saturating_add(1);
        wait.mul_f64(0.75 + jitter / 4.0)
    }

    /// An attempt succeeded.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_at_a_dead_peer_become_one_a_second() {
        let mut backoff = Backoff::default();
        let mut now = Tick(1);
        let mut attempts = Vec::new();
        for _ in 0..20 {
            assert!(backoff.is_ready(now));
            backoff.failed(now, 0.999);
            let next = backoff.next;
            attempts.push(next.since(now));
            now = next;
        }
        assert!(attempts[..4].iter().all(|wait| *wait <= FIRST));
        assert!(attempts[10..].iter().all(|wait| *wait > LAST.mul_f64(0.9) && *wait <= LAST));
        backoff.succeeded();
        assert!(backoff.is_ready(now));
    }

    #[test]
    fn a_peer_that_takes_connections_and_closes_them_is_not_dialed_more_often() {
        let mut backoff = Backoff::default();
        let (opened, soon) = (Some(Tick(1)), Tick(1) + Duration::from_millis(5));
        let waits: Vec<_> = (0..20).map(|_| backoff.ended(opened, soon, 0.5)).collect();
        assert!(waits[10..].iter().all(|wait| *wait > LAST.mul_f64(0.7)));
        assert!(backoff.ended(None, soon, 0.5) > LAST.mul_f64(0.7));
        assert!(backoff.ended(opened, soon + LAST, 0.5) <= FIRST);
    }
}
