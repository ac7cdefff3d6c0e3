//! What is wrong with the way from one machine to another.
//!
//! For: delays, late messages, wires that hold.
//! Not here: what travels on it (`network`).

/// One direction between two machines.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Shortest delay, microseconds.
    pub delay_us: u64,
    /// Added to it at random, microseconds.
    pub jitter_us: u64,
    /// Of a thousand messages so many are late, as if packets were lost and had to be sent again,
    pub late_permille: u32,
    /// by up to so much, microseconds.
    pub late_us: u64,
    /// Nothing arrives until this ends; nothing is lost.
    pub held: bool,
}

impl Default for Wire {
    fn default() -> Self {
        Self { delay_us: 50, jitter_us: 500, late_permille: 3, late_us: 40_000, held: false }
    }
}

impl Wire {
    /// What is wrong with either is wrong with this.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            delay_us: self.delay_us.max(other.delay_us),
            jitter_us: self.jitter_us.max(other.jitter_us),
            late_permille: self.late_permille.max(other.late_permille),
            late_us: self.late_us.max(other.late_us),
            held: self.held || other.held,
        }
    }
}
