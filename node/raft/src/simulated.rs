//! How the disk of the host behaves whose turn it is; built with `--cfg korum_sim` only.
//!
//! For: slow disks, and records that a power cut tears.
//! Not here: when that happens (`tests/sim`).

use std::cell::Cell;
use std::time::Duration;

thread_local! {
    static DISK: Cell<Disk> = const { Cell::new(Disk { delay: Duration::ZERO, torn_permille: 0 }) };
}

/// A disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk {
    /// Time for a write to be durable.
    pub delay: Duration,
    /// When a node ends while a record is being written, so much of it has reached the disk, thousandths.
    pub torn_permille: u16,
}

impl Disk {
    /// So many of `length` bytes, never all.
    #[must_use]
    pub fn torn(self, length: usize) -> usize {
        (length * usize::from(self.torn_permille) / 1000).min(length.saturating_sub(1))
    }
}

/// The disk of the host whose turn it is.
#[must_use]
pub fn disk() -> Disk {
    DISK.get()
}

/// Makes it the turn of a host with this disk.
pub fn set_disk(disk: Disk) {
    DISK.set(disk);
}
