//! A machine: one runtime on a clock of its own, stepped by the world.
//!
//! For: stepping, stopping, ending what runs on it; clocks that run fast, slow or apart.
//! Not here: what runs on it (`member`, `workload`).
//!
//! A stopped process misses its turns; when it goes on, its clock jumps by what it missed, and every timer that
//! has run out meanwhile fires at once. A killed process is a runtime that is dropped.

use std::future::Future;
use std::net::Ipv4Addr;
use std::task::{Context, Waker};
use std::time::Duration;

use korum_node::env::mistake::{Mistake, makes};
use korum_node::env::simulated::{self, Host as Place};
use korum_raft::simulated::{Disk, set_disk};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::log;

/// Time for a write to be durable on a disk that nothing is wrong with: so that a write can be cut off.
pub const DISK_DELAY: Duration = Duration::from_millis(1);

/// A machine of the world.
pub struct Host {
    pub name: String,
    pub ip: Ipv4Addr,
    pub disk: Disk,
    /// How much faster than the world its clock runs, millionths.
    pub drift_ppm: i64,
    /// How far its wall clock is ahead, microseconds.
    pub wall_skew_us: i64,
    boot_ns: u64,
    /// Milliseconds that its clock has shown since the world began.
    local_ms: u64,
    credit: i64,
    stopped: bool,
    missed_ms: u64,
    running: Option<Running>,
}

struct Running {
    runtime: Runtime,
    main: JoinHandle<()>,
    epoch: Instant,
    epoch_ms: u64,
}

impl Host {
    pub fn new(name: String, ip: Ipv4Addr, boot_ns: u64) -> Self {
        Self {
            name,
            ip,
            disk: Disk { delay: DISK_DELAY, forgets: makes(Mistake::UnsyncedLog), ..Disk::default() },
            drift_ppm: 0,
            wall_skew_us: 0,
            boot_ns,
            local_ms: 0,
            credit: 0,
            stopped: false,
            missed_ms: 0,
            running: None,
        }
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Nothing runs, or its main task has ended.
    pub fn is_idle(&self) -> bool {
        self.running.as_ref().is_none_or(|running| running.main.is_finished())
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Starts a process: `main` and all that it spawns.
    pub fn boot(&mut self, main: impl Future<Output = ()> + Send + 'static) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without a poller");
        let epoch = {
            let _inside = runtime.enter();
            Instant::now()
        };
        (self.stopped, self.missed_ms) = (false, 0);
        let main = runtime.spawn(main);
        self.running = Some(Running { runtime, main, epoch, epoch_ms: self.local_ms });
    }

    /// `kill -9`: sockets are closed, nothing else happens any more.
    pub fn kill(&mut self, now_us: u64) {
        if let Some(running) = self.running.take() {
            let place = self.place(&running, now_us);
            let _turn = self.turn(place, now_us);
            drop(running);
        }
    }

    /// `kill -STOP`
    pub fn stop(&mut self) {
        self.stopped = self.running.is_some();
    }

    /// `kill -CONT`
    pub fn go_on(&mut self) {
        self.stopped = false;
    }

    /// One millisecond of the world's time.
    pub fn step(&mut self, now_us: u64) {
        self.credit += 1_000_000 + self.drift_ppm;
        let passed = (self.credit / 1_000_000) as u64;
        self.credit %= 1_000_000;
        self.local_ms += passed;
        if self.stopped {
            self.missed_ms += passed;
            return;
        }
        let missed = std::mem::take(&mut self.missed_ms);
        if missed > 0 {
            // Its clock jumps before anything runs.
            self.within(now_us, |runtime| {
                let jump = tokio::time::advance(Duration::from_millis(missed));
                let mut jump = std::pin::pin!(jump);
                let _inside = runtime.enter();
                let _ = jump.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            });
        }
        self.within(now_us, |runtime| {
            if passed > 0 {
                runtime.block_on(tokio::time::sleep(Duration::from_millis(passed)));
            }
        });
    }

    /// Looks at what runs here as if it were its turn; a stopped process is seen with the clock of its machine.
    pub fn within<T>(&self, now_us: u64, look: impl FnOnce(&Runtime) -> T) -> Option<T> {
        let running = self.running.as_ref()?;
        let _turn = self.turn(self.place(running, now_us), now_us);
        let _inside = running.runtime.enter();
        Some(look(&running.runtime))
    }

    fn turn(&self, place: Place, now_us: u64) -> simulated::Turn {
        set_disk(self.disk);
        log::tell(now_us, &self.name);
        simulated::enter(place)
    }

    fn place(&self, running: &Running, now_us: u64) -> Place {
        let _inside = running.runtime.enter();
        let shown = Instant::now().duration_since(running.epoch);
        let missed_ns = self.missed_ms * 1_000_000;
        Place {
            ip: self.ip,
            epoch: running.epoch,
            boot_ns: self.boot_ns + running.epoch_ms * 1_000_000 + missed_ns,
            wall_us: (super::WALL_US + now_us)
                .saturating_add_signed(self.wall_skew_us)
                .saturating_sub(shown.as_micros() as u64),
        }
    }
}
