//! Waiting for a state, with a deadline; never for a time.

use std::time::{Duration, Instant};

/// Calls `probe` until it says `Ok`, and returns that; panics with its last reason once `limit` is over.
///
/// # Panics
/// When the deadline passes.
pub fn until<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Result<T, String>) -> T {
    let begin = Instant::now();
    loop {
        match probe() {
            Ok(value) => return value,
            Err(why) if begin.elapsed() > limit => panic!("{what}: not after {limit:?}: {why}"),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
