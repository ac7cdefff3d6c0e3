//! The bytes of a HyperLogLog, as Redis keeps them in a string.
//!
//! For: 16384 registers of 6 bits, sparse while most are zero, else dense; equal in every byte with Redis.
//! Not here: keys (`mod`), hashing and estimating (`estimate`).
//!
//! ```text
//! sketch   = "HYLL" | encoding: 0 dense, 1 sparse | 3 zeros | count, 8 bytes little-endian | registers
//!            the count is a cache; its highest bit says that it is outdated
//! dense    = 6 bits a register, lowest bits first
//! sparse   = 00llllll                  l+1 registers that are zero
//!          | 01llllll llllllll         l+1 registers that are zero
//!          | 1vvvvvll                  l+1 registers that are v+1
//! ```

/// Number of registers.
pub const REGISTERS: usize = 1 << 14;
/// Bytes before the registers.
pub const HEADER_BYTES: usize = 16;
/// How a sketch begins.
pub const MAGIC: &[u8; 4] = b"HYLL";
/// Where the count stands, and its last byte with the mark that it is outdated.
pub const COUNT_AT: usize = 8;
const OUTDATED_AT: usize = 15;
const OUTDATED: u8 = 0x80;
/// Bytes of a dense sketch.
pub const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * 6 / 8;
/// Longest sparse sketch, bytes (Redis' default of `hll-sparse-max-bytes`).
pub const SPARSE_BYTES_MAX: usize = 3000;
const SPARSE_VALUE_MAX: u8 = 32;
const SPARSE_VALUE_RUN_MAX: usize = 4;
const SPARSE_ZERO_RUN_MAX: usize = 64;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;

/// The registers of a sketch are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupted;

/// One run of equal registers of a sparse sketch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// What they are.
    pub value: u8,
    /// How many.
    pub length: usize,
    /// Bytes that it takes.
    pub bytes: usize,
}

impl Run {
    fn take(bytes: &[u8]) -> Option<Self> {
        let first = *bytes.first()?;
        Some(match first >> 6 {
            0 => Self { value: 0, length: usize::from(first & 0x3f) + 1, bytes: 1 },
            1 => {
                let length = (usize::from(first & 0x3f) << 8 | usize::from(*bytes.get(1)?)) + 1;
                Self { value: 0, length, bytes: 2 }
            }
            _ => Self { value: (first >> 2 & 0x1f) + 1, length: usize::from(first & 3) + 1, bytes: 1 },
        })
    }

    fn put(out: &mut Vec<u8>, value: u8, length: usize) {
        match (value, length) {
            (_, 0) => {}
            (0, ..=SPARSE_ZERO_RUN_MAX) => out.push(length as u8 - 1),
            (0, _) => out.extend_from_slice(&[0x40 | ((length - 1) >> 8) as u8, (length - 1) as u8]),
            _ => out.push(0x80 | (value - 1) << 2 | (length as u8 - 1)),
        }
    }
}

/// A new, empty sketch.
#[must_use]
pub fn empty() -> Vec<u8> {
    let mut sketch = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    Run::put(&mut sketch, 0, REGISTERS);
    sketch
}

/// Whether a string looks like a sketch.
#[must_use]
pub fn is_sketch(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER_BYTES
        && bytes.starts_with(MAGIC)
        && (bytes[4] == SPARSE || bytes[4] == DENSE && bytes.len() == DENSE_BYTES)
}

/// Whether a sketch is dense.
#[must_use]
pub fn is_dense(sketch: &[u8]) -> bool {
    sketch[4] == DENSE
}

/// The count that is kept in a sketch, unless it is outdated.
#[must_use]
pub fn kept_count(sketch: &[u8]) -> Option<u64> {
    let count = sketch[COUNT_AT..HEADER_BYTES].try_into().ok().map(u64::from_le_bytes)?;
    (sketch[OUTDATED_AT] & OUTDATED == 0).then_some(count)
}

/// Marks the count as outdated.
pub fn forget_count(sketch: &mut [u8]) {
    sketch[OUTDATED_AT] |= OUTDATED;
}

/// What [`forget_count`] writes, and where.
#[must_use]
pub fn forgotten(sketch: &[u8]) -> (usize, u8) {
    (OUTDATED_AT, sketch[OUTDATED_AT] | OUTDATED)
}

/// A register of a dense sketch.
#[must_use]
pub fn dense_register(sketch: &[u8], index: usize) -> u8 {
    let (at, shift) = dense_place(index);
    let low = sketch[at];
    let high = sketch.get(at + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([low, high]) >> shift) as u8 & 0x3f
}

/// The bytes, and where they stand, of a dense sketch whose register gets this value.
#[must_use]
pub fn with_dense_register(sketch: &[u8], index: usize, value: u8) -> (usize, [u8; 2], usize) {
    let (at, shift) = dense_place(index);
    let high = sketch.get(at + 1).copied().unwrap_or(0);
    let both = u16::from_le_bytes([sketch[at], high]) & !(0x3f << shift) | u16::from(value) << shift;
    let length = if at + 1 < sketch.len() { 2 } else { 1 };
    (at, both.to_le_bytes(), length)
}

fn dense_place(index: usize) -> (usize, usize) {
    (HEADER_BYTES + index * 6 / 8, index * 6 % 8)
}

/// The runs of a sparse sketch; the last one is an error if they are not all registers.
fn runs(sketch: &[u8]) -> impl Iterator<Item = Result<Run, Corrupted>> {
    let (mut at, mut left) = (HEADER_BYTES, REGISTERS);
    std::iter::from_fn(move || {
        if at >= sketch.len() {
            let is_short = std::mem::take(&mut left) > 0;
            return is_short.then_some(Err(Corrupted));
        }
        match Run::take(&sketch[at..]) {
            Some(run) if run.length <= left => {
                at += run.bytes;
                left -= run.length;
                Some(Ok(run))
            }
            _ => {
                (at, left) = (sketch.len(), 0);
                Some(Err(Corrupted))
            }
        }
    })
}

/// The runs of a sparse sketch, whether they make sense or not.
#[must_use]
pub fn written_runs(sketch: &[u8]) -> Vec<Run> {
    let mut at = HEADER_BYTES;
    std::iter::from_fn(|| {
        let run = Run::take(sketch.get(at..)?)?;
        at += run.bytes;
        Some(run)
    })
    .collect()
}

/// All runs of a sketch, sparse or not.
///
/// # Errors
/// When a sparse one does not have as many registers as it should.
pub fn all_runs(sketch: &[u8]) -> Result<Vec<Run>, Corrupted> {
    if is_dense(sketch) {
        let run = |index| Run { value: dense_register(sketch, index), length: 1, bytes: 0 };
        return Ok((0..REGISTERS).map(run).collect());
    }
    runs(sketch).collect()
}

/// Makes a sketch dense.
///
/// # Errors
/// When it is corrupted; then it is as it was.
pub fn make_dense(sketch: &mut Vec<u8>) -> Result<(), Corrupted> {
    if is_dense(sketch) {
        return Ok(());
    }
    let runs = all_runs(sketch)?;
    let mut dense = vec![0; DENSE_BYTES];
    dense[..HEADER_BYTES].copy_from_slice(&sketch[..HEADER_BYTES]);
    dense[4] = DENSE;
    let mut index = 0;
    for run in runs {
        for register in index..index + run.length {
            set_dense(&mut dense, register, run.value);
        }
        index += run.length;
    }
    *sketch = dense;
    Ok(())
}

fn set_dense(sketch: &mut [u8], index: usize, value: u8) {
    let (at, bytes, length) = with_dense_register(sketch, index, value);
    sketch[at..at + length].copy_from_slice(&bytes[..length]);
}

/// Raises a register; whether it was lower. The count is outdated then.
///
/// # Errors
/// When the sketch is corrupted.
pub fn raise(sketch: &mut Vec<u8>, index: usize, value: u8) -> Result<bool, Corrupted> {
    let raised = if is_dense(sketch) {
        let is_lower = dense_register(sketch, index) < value;
        if is_lower {
            set_dense(sketch, index, value);
        }
        is_lower
    } else {
        raise_sparse(sketch, index, value)?
    };
    if raised {
        forget_count(sketch);
    }
    Ok(raised)
}

fn raise_sparse(sketch: &mut Vec<u8>, index: usize, value: u8) -> Result<bool, Corrupted> {
    if value > SPARSE_VALUE_MAX {
        make_dense(sketch)?;
        set_dense(sketch, index, value);
        return Ok(true);
    }
    // The run that the register is in, the place of the one before it, and the first register of it.
    let (mut at, mut before, mut first) = (HEADER_BYTES, HEADER_BYTES, 0);
    let run = loop {
        let run = Run::take(sketch.get(at..).unwrap_or_default()).ok_or(Corrupted)?;
        if index < first + run.length {
            break run;
        }
        before = at;
        at += run.bytes;
        first += run.length;
    };
    if run.value >= value {
        return Ok(false);
    }
    let mut parts = Vec::with_capacity(5);
    Run::put(&mut parts, run.value, index - first);
    Run::put(&mut parts, value, 1);
    Run::put(&mut parts, run.value, first + run.length - 1 - index);
    if parts.len() > run.bytes && sketch.len() + parts.len() - run.bytes > SPARSE_BYTES_MAX {
        make_dense(sketch)?;
        set_dense(sketch, index, value);
        return Ok(true);
    }
    sketch.splice(at..at + run.bytes, parts);
    join(sketch, before);
    Ok(true)
}

/// Joins runs of the same value, at most five steps from `at` on, as Redis does: more would be other bytes.
fn join(sketch: &mut Vec<u8>, mut at: usize) {
    for _ in 0..5 {
        let Some(run) = Run::take(sketch.get(at..).unwrap_or_default()) else { return };
        let next = Run::take(&sketch[at + run.bytes..]);
        match next {
            Some(next)
                if run.value > 0
                    && next.value == run.value
                    && run.length + next.length <= SPARSE_VALUE_RUN_MAX =>
            {
                let mut joined = Vec::new();
                Run::put(&mut joined, run.value, run.length + next.length);
                sketch.splice(at..at + 2, joined);
            }
            _ => at += run.bytes,
        }
    }
}
