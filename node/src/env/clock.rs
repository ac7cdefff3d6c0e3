//! What time it is.
//!
//! For: leases, deadlines and expiry. Leases count on a clock that goes on while the machine sleeps.
//! Not here: waiting (tokio's timers do that, on the same clock as far as it goes).

use std::ops::Add;
use std::time::Duration;

#[cfg(not(feature = "sim"))]
use rustix::time::{ClockId, clock_gettime};

/// A moment of this machine's boot clock, in nanoseconds; never compared between machines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// Time from `earlier` to this moment; zero if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Tick) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Tick {
    type Output = Tick;

    fn add(self, wait: Duration) -> Tick {
        Tick(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// A node's clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    _private: (),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// The moment on the boot clock.
    #[must_use]
    #[cfg(not(feature = "sim"))]
    pub fn now(&self) -> Tick {
        let time = clock_gettime(ClockId::Boottime);
        Tick(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// Unix time, in microseconds.
    #[must_use]
    #[cfg(not(feature = "sim"))]
    pub fn wall_us(&self) -> u64 {
        let time = clock_gettime(ClockId::Realtime);
        time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
    }

    /// The moment on the boot clock of the host whose turn it is.
    #[must_use]
    #[cfg(feature = "sim")]
    pub fn now(&self) -> Tick {
        let host = super::simulated::current();
        Tick(host.boot_ns) + tokio::time::Instant::now().duration_since(host.epoch)
    }

    /// Unix time on the host whose turn it is, in microseconds.
    #[must_use]
    #[cfg(feature = "sim")]
    pub fn wall_us(&self) -> u64 {
        let host = super::simulated::current();
        host.wall_us + tokio::time::Instant::now().duration_since(host.epoch).as_micros() as u64
    }

    /// Unix time, in milliseconds: the unit of expiry.
    #[must_use]
    pub fn wall_ms(&self) -> u64 {
        self.wall_us() / 1_000
    }
}
