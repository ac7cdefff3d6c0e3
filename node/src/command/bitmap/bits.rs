//! Bits of bytes, the highest of the first byte first.
//!
//! For: counting, finding, and integers of up to 64 bits anywhere among them. Behind the end stand zeros.
//! Not here: keys, options.

use std::ops::Range;

/// Bytes, seen as bits.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a>(pub &'a [u8]);

impl Bits<'_> {
    /// The byte at `index`, without the bits that are outside the range.
    fn within(self, index: usize, range: &Range<usize>) -> u8 {
        self.0[index] & mask(index, range)
    }

    /// How many of the bits in `range`, which is within the bytes, are set.
    #[must_use]
    pub fn count(self, range: Range<usize>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let (first, last) = (range.start / 8, (range.end - 1) / 8);
        let mut count = u64::from(self.within(first, &range).count_ones());
        if last > first {
            count += u64::from(self.within(last, &range).count_ones());
            let (words, rest) = self.0[first + 1..last].as_chunks::<8>();
            count += words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum::<u64>();
            count += rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        }
        count
    }

    /// The first bit in `range`, which is within the bytes and not empty, that is `bit`.
    #[must_use]
    pub fn find(self, bit: bool, range: Range<usize>) -> Option<usize> {
        let (first, last) = (range.start / 8, (range.end - 1) / 8);
        let skip = if bit { 0 } else { 0xff };
        let wanted = |index: usize| {
            let byte = (self.0[index] ^ skip) & mask(index, &range);
            (byte != 0).then(|| 8 * index + byte.leading_zeros() as usize)
        };
        wanted(first).or_else(|| {
            let middle = &self.0[first + 1..last.max(first + 1)];
            match middle.iter().position(|byte| *byte != skip) {
                Some(index) => wanted(first + 1 + index),
                None => (last > first).then(|| wanted(last)).flatten(),
            }
        })
    }

    /// The unsigned integer in `width` bits (at most 64) from `offset` on.
    #[must_use]
    pub fn integer(self, offset: usize, width: u32) -> u64 {
        let window = self.window(offset);
        let shift = 128 - (offset % 8) as u32 - width;
        let all = u64::MAX >> (64 - width);
        (window >> shift) as u64 & all
    }

    /// 16 bytes from the one that holds `offset` on.
    fn window(self, offset: usize) -> u128 {
        let mut window = [0; 16];
        for (target, source) in window.iter_mut().zip(self.0.iter().skip(offset / 8)) {
            *target = *source;
        }
        u128::from_be_bytes(window)
    }

    /// The bytes that hold `width` bits from `offset` on, with the lowest bits of `number` in their place.
    #[must_use]
    pub fn with_integer(self, offset: usize, width: u32, number: u64) -> Vec<u8> {
        let shift = 128 - (offset % 8) as u32 - width;
        let all = u128::from(u64::MAX >> (64 - width));
        let window = self.window(offset) & !(all << shift) | (u128::from(number) & all) << shift;
        let bytes = (offset % 8 + width as usize).div_ceil(8);
        window.to_be_bytes()[..bytes].to_vec()
    }
}

/// The bits of the byte at `index` that are in the range.
fn mask(index: usize, range: &Range<usize>) -> u8 {
    let before = range.start.saturating_sub(8 * index).min(8);
    let behind = (8 * index + 8).saturating_sub(range.end).min(8);
    (0xff_u16 >> before) as u8 & (0xff_u16 << behind) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit(bytes: &[u8], index: usize) -> bool {
        bytes.get(index / 8).is_some_and(|byte| byte >> (7 - index % 8) & 1 == 1)
    }

    proptest! {
        #[test]
        fn ranges_are_counted_and_searched_bit_by_bit(
            bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1..60),
            start in 0..480usize, length in 1..480usize, wanted: bool,
        ) {
            let start = start % (8 * bytes.len());
            let range = start..(start + length).min(8 * bytes.len());
            let count = range.clone().filter(|&index| bit(&bytes, index)).count();
            prop_assert_eq!(Bits(&bytes).count(range.clone()), count as u64);
            let found = range.clone().find(|&index| bit(&bytes, index) == wanted);
            prop_assert_eq!(Bits(&bytes).find(wanted, range), found);
        }

        #[test]
        fn integers_are_read_and_written_anywhere(
            bytes in proptest::collection::vec(any::<u8>(), 0..20),
            offset in 0..150usize, width in 1..=64u32, number: u64,
        ) {
            let expected = (0..width as usize).fold(0, |sum, index| sum << 1 | u64::from(bit(&bytes, offset + index)));
            prop_assert_eq!(Bits(&bytes).integer(offset, width), expected);
            let part = Bits(&bytes).with_integer(offset, width, number);
            let mut changed = bytes.clone();
            changed.resize(bytes.len().max(offset / 8 + part.len()), 0);
            changed[offset / 8..offset / 8 + part.len()].copy_from_slice(&part);
            prop_assert_eq!(Bits(&changed).integer(offset, width), number & u64::MAX >> (64 - width));
            for index in (0..8 * changed.len()).filter(|index| !(offset..offset + width as usize).contains(index)) {
                prop_assert_eq!(bit(&changed, index), bit(&bytes, index));
            }
        }
    }
}
