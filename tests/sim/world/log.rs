//! What nodes log, with the world's time and the name of the host.
//!
//! For: reading what happened in a seed (`--verbose`; `KORUM_SIM_LOG` takes filters of tracing).
//! Not here: the trace that two runs of a seed are compared by (`env::simulated::network`).

use std::cell::{Cell, RefCell};
use std::fmt;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

thread_local! {
    static NOW_US: Cell<u64> = const { Cell::new(0) };
    static HOST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Tells the time and whose turn it is.
pub fn tell(now_us: u64, host: &str) {
    NOW_US.set(now_us);
    HOST.with(|name| {
        let mut name = name.borrow_mut();
        name.clear();
        name.push_str(host);
    });
}

/// The world's time, for those who have no world at hand.
pub fn now_us() -> u64 {
    NOW_US.get()
}

struct WorldTime;

impl FormatTime for WorldTime {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        let now = NOW_US.get();
        HOST.with(|name| {
            write!(out, "{:>4}.{:03} {:<8}", now / 1_000_000, now / 1_000 % 1_000, name.borrow())
        })
    }
}

/// Prints logs from now on.
pub fn start() {
    let filter =
        EnvFilter::try_from_env("KORUM_SIM_LOG").unwrap_or_else(|_| EnvFilter::new("info,openraft=off"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_timer(WorldTime)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}
