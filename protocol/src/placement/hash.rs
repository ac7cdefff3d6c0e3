//! The hash of the placement: SplitMix64 (PLACEMENT.md §2).
//!
//! For: every random-looking choice of the placement.
//! Not here: hashing of keys into slots (`slot`).

/// The golden-ratio increment of SplitMix64.
const PHI: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of SplitMix64.
#[must_use]
pub fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The `j`-th output, from 0, of SplitMix64 seeded with `seed`.
#[must_use]
pub fn sm(seed: u64, j: u64) -> u64 {
    mix64(seed.wrapping_add(PHI.wrapping_mul(j.wrapping_add(1))))
}
