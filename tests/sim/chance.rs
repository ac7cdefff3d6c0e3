//! Every source of chance of the process, from one seed.
//!
//! For: the C function `getrandom`, from which the standard library's hash maps, tokio's `select!` and every `rand`
//! take their seeds. The executable's own comes before the system's.
//! Not here: what the world decides by chance (`scenario` has generators of its own).

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static STATE: AtomicU64 = AtomicU64::new(0);

/// Begins anew.
pub fn seed(seed: u64) {
    STATE.store(seed ^ 0x6b6f_7275_6d00_0001, Relaxed);
}

/// The next number (SplitMix64).
fn next() -> u64 {
    let mut mixed = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// As the system's function of that name.
///
/// # Safety
/// `buffer` points to `length` writable bytes, as its callers promise to the system.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    if length > 0 {
        // SAFETY: the caller hands over a buffer of that length.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&next().to_le_bytes()[..part.len()]);
        }
    }
    length as isize
}
