//! From elements to registers, and from registers to a count.
//!
//! For: Redis' hash (MurmurHash64A with its seed), and the estimator that needs no tables (O. Ertl, "New cardinality
//! estimation algorithms for HyperLogLog sketches", arXiv:1702.01284).

use super::sketch::{REGISTERS, Run};

const SEED: u64 = 0xadc8_3b19;
const INDEX_BITS: u32 = 14;
/// Bits of a hash that are left for the value of a register.
const VALUE_BITS: usize = 50;
/// The limit of the correction for many registers: 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// MurmurHash64A, by Austin Appleby, with little-endian words.
#[must_use]
pub fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// Which register an element is about, and the value that it is at least.
#[must_use]
pub fn register(element: &[u8]) -> (usize, u8) {
    let hash = murmur64a(element, SEED);
    let index = hash as usize % REGISTERS;
    let rest = hash >> INDEX_BITS | 1 << VALUE_BITS;
    (index, rest.trailing_zeros() as u8 + 1)
}

/// About how many different elements the registers have seen.
#[must_use]
pub fn count(runs: &[Run]) -> u64 {
    let mut histogram = [0_u32; 64];
    for run in runs {
        histogram[usize::from(run.value & 0x3f)] += run.length as u32;
    }
    let all = REGISTERS as f64;
    let mut sum = all * tau((all - f64::from(histogram[VALUE_BITS + 1])) / all);
    for number in histogram[1..=VALUE_BITS].iter().rev() {
        sum = (sum + f64::from(*number)) * 0.5;
    }
    sum += all * sigma(f64::from(histogram[0]) / all);
    (ALPHA * all * all / sum).round() as u64
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut factor, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * factor;
        factor += factor;
        if before == sum {
            return sum;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut factor, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        factor *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * factor;
        if before == sum {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_registers_are_none_and_full_ones_are_many() {
        let run = |value| [Run { value, length: REGISTERS, bytes: 0 }];
        assert_eq!(count(&run(0)), 0);
        assert!(count(&run(1)) > 10_000);
        assert!(count(&run(51)) > 1 << 60);
    }
}
