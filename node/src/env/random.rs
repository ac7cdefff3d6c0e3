//! Chance.
//!
//! For: ids, random keys, jitter.

use rand::rngs::SmallRng;

/// A node's source of chance; one per worker, never shared.
pub type Random = SmallRng;

/// A source that nobody can foresee.
#[must_use]
pub fn random() -> Random {
    rand::make_rng()
}
