//! Free ports of loopback.
//!
//! Below the range from which the kernel takes ports for outgoing connections, so that a node that was killed
//! finds its port free when it comes back. Different test processes draw from different places.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 11_000;
const COUNT: u32 = 21_000; // up to 32000; Linux' ephemeral ports begin at 32768
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port that nobody listens on now and that this process has not handed out before.
///
/// # Panics
/// When there is none.
pub fn free() -> u16 {
    let offset = std::process::id().wrapping_mul(2_654_435_761) % COUNT;
    for _ in 0..COUNT {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + (offset + next) % COUNT).expect("below 32000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port on 127.0.0.1");
}
