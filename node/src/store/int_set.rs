//! Integers in order, each once, in as many bytes as the largest needs.
//!
//! For: small sets of integers.
//! Not here: when a set is one (`set`).

/// Integers of 2, 4 or 8 bytes each, little-endian, ascending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntSet {
    bytes: Vec<u8>,
    width: usize,
}

impl Default for IntSet {
    fn default() -> Self {
        Self { bytes: Vec::new(), width: 2 }
    }
}

/// Bytes that an integer needs.
fn width_of(number: i64) -> usize {
    if i16::try_from(number).is_ok() {
        2
    } else if i32::try_from(number).is_ok() {
        4
    } else {
        8
    }
}

impl IntSet {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    /// None.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The integer with this index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<i64> {
        let start = index.checked_mul(self.width)?;
        let bytes = self.bytes.get(start..start + self.width)?;
        // The sign fills the bytes that were left out.
        let fill = if bytes[self.width - 1] & 0x80 == 0 { 0 } else { 0xff };
        let mut whole = [fill; 8];
        whole[..self.width].copy_from_slice(bytes);
        Some(i64::from_le_bytes(whole))
    }

    /// All, ascending.
    pub fn iter(&self) -> impl Iterator<Item = i64> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The index of an integer, or where it belongs.
    fn search(&self, number: i64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle).map(|found| found.cmp(&number)) {
                Some(std::cmp::Ordering::Less) => low = middle + 1,
                Some(std::cmp::Ordering::Equal) => return Ok(middle),
                _ => high = middle,
            }
        }
        Err(low)
    }

    /// Whether an integer is there.
    #[must_use]
    pub fn contains(&self, number: i64) -> bool {
        self.search(number).is_ok()
    }

    /// Adds an integer; whether it is new.
    pub fn insert(&mut self, number: i64) -> bool {
        let Err(index) = self.search(number) else { return false };
        if width_of(number) > self.width {
            self.widen(width_of(number));
        }
        let (at, end, width) = (index * self.width, self.bytes.len(), self.width);
        self.bytes.reserve_exact(width);
        self.bytes.resize(end + width, 0);
        self.bytes.copy_within(at..end, at + width);
        self.bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        true
    }

    /// Removes an integer; whether it was there.
    pub fn remove(&mut self, number: i64) -> bool {
        let Ok(index) = self.search(number) else { return false };
        self.bytes.drain(index * self.width..(index + 1) * self.width);
        if self.bytes.capacity() > 2 * self.bytes.len().max(32) {
            self.bytes.shrink_to_fit();
        }
        true
    }

    fn widen(&mut self, width: usize) {
        let mut bytes = Vec::with_capacity((self.len() + 1) * width);
        self.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()[..width]));
        *self = Self { bytes, width };
    }

    /// What it holds on the heap, bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_behaves_like_an_ordered_set(
            steps in proptest::collection::vec((any::<bool>(), any::<i64>(), 0..64u32), 1..200),
        ) {
            let (mut set, mut model) = (IntSet::default(), BTreeSet::new());
            for (adds, number, shift) in steps {
                let number = number >> shift;
                if adds {
                    prop_assert_eq!(set.insert(number), model.insert(number));
                } else {
                    let number = model.iter().next().copied().unwrap_or(number);
                    prop_assert_eq!(set.remove(number), model.remove(&number));
                }
                prop_assert_eq!(set.contains(number), model.contains(&number));
                prop_assert!(set.iter().eq(model.iter().copied()));
                prop_assert_eq!(set.get(set.len()), None);
            }
        }
    }
}
