//! How fast moves may go.
//!
//! For: bytes per second over all streams of this node, as a bucket that fills with time.

use std::cell::Cell;
use std::time::Duration;

use crate::env::Tick;

/// Time whose worth of bytes may be sent at once.
const BURST: Duration = Duration::from_millis(100);

/// A bucket of bytes.
pub struct Throttle {
    bytes_per_second: u64,
    left: Cell<i64>,
    filled: Tick,
}

impl Throttle {
    /// A full bucket; 0 sets no limit.
    #[must_use]
    pub fn new(bytes_per_second: u64, now: Tick) -> Self {
        let mut throttle = Self { bytes_per_second, left: Cell::new(0), filled: now };
        throttle.left.set(throttle.capacity());
        throttle.filled = now;
        throttle
    }

    fn capacity(&self) -> i64 {
        i64::try_from(u128::from(self.bytes_per_second) * BURST.as_millis() / 1000).unwrap_or(i64::MAX).max(1)
    }

    /// Adds what time has brought.
    pub fn refill(&mut self, now: Tick) {
        let brought = u128::from(self.bytes_per_second) * now.since(self.filled).as_nanos() / 1_000_000_000;
        if brought > 0 {
            let brought = i64::try_from(brought).unwrap_or(i64::MAX);
            self.left.set(self.left.get().saturating_add(brought).min(self.capacity()));
            self.filled = now;
        }
    }

    /// May anything be sent now? What is then sent may go over; the debt is paid first.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.bytes_per_second == 0 || self.left.get() > 0
    }

    /// So many bytes were sent.
    pub fn take(&self, bytes: usize) {
        self.left.set(self.left.get() - i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_no_faster_than_the_limit() {
        let mut throttle = Throttle::new(1_000_000, Tick(0));
        let mut sent = 0;
        for millisecond in 0..2_000 {
            throttle.refill(Tick(millisecond * 1_000_000));
            while throttle.has_room() {
                throttle.take(10_000);
                sent += 10_000;
            }
        }
        assert!((1_900_000..=2_150_000).contains(&sent), "{sent}");
    }

    #[test]
    fn no_limit_never_refuses() {
        let throttle = Throttle::new(0, Tick(0));
        throttle.take(1 << 40);
        assert!(throttle.has_room());
    }
}
