//! Picking items of a collection by chance.
//!
//! For: `HRANDFIELD SRANDMEMBER ZRANDMEMBER SPOP`: which items, by their indexes.
//! Not here: the collections.

use korum_protocol::limits::BULK_BYTES_MAX;
use rand::RngExt;
use rand::seq::index;

use super::args::{NOT_AN_INTEGER, is};
use super::{SYNTAX_ERROR, Stop};
use crate::env::random::Random;
use crate::store::integer;

/// How many items are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sample {
    /// So many different ones, or all.
    Distinct(usize),
    /// So many, each picked anew.
    Repeated(usize),
}

impl Sample {
    /// Reads a count: a negative one allows repetition. `with_more` is the word of the option that doubles the
    /// answer (`WITHVALUES`), `option` the argument that may be it.
    ///
    /// # Errors
    /// With Redis' texts. Gives whether the option is there.
    pub fn parse(count: &[u8], option: Option<&[u8]>, with_more: &str) -> Result<(Self, bool), Stop> {
        let count = integer::parse(count).ok_or(NOT_AN_INTEGER)?;
        if count == i64::MIN {
            return Err(format!(
                "ERR value is out of range, value must between {} and {}",
                -i64::MAX,
                i64::MAX
            )
            .into());
        }
        let has_more = match option {
            None => false,
            Some(option) if is(option, with_more) => true,
            Some(_) => return Err(SYNTAX_ERROR.into()),
        };
        if has_more && count.unsigned_abs() > (i64::MAX / 2) as u64 {
            return Err("ERR value is out of range".into());
        }
        let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        Ok((if count < 0 { Self::Repeated(size) } else { Self::Distinct(size) }, has_more))
    }

    /// How many items of `len` will come.
    #[must_use]
    pub fn size(self, len: usize) -> usize {
        match self {
            Self::Distinct(size) => size.min(len),
            Self::Repeated(size) => {
                if len == 0 {
                    0
                } else {
                    size
                }
            }
        }
    }

    /// Whether so many items cannot be answered whatever they are: each takes at least six bytes.
    #[must_use]
    pub fn is_too_large(self, len: usize) -> bool {
        self.size(len) > BULK_BYTES_MAX / 6
    }

    /// Indexes below `len`, in no particular order.
    pub fn indexes(self, len: usize, random: &mut Random) -> impl Iterator<Item = usize> {
        let size = self.size(len);
        let distinct = match self {
            Self::Distinct(_) if size < len => index::sample(random, len, size).into_vec(),
            Self::Distinct(_) => (0..len).collect(),
            Self::Repeated(_) => Vec::new(),
        };
        let repeated = if matches!(self, Self::Repeated(_)) { size } else { 0 };
        distinct.into_iter().chain((0..repeated).map(move |_| random.random_range(0..len)))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_many_come_as_were_asked_for(len in 0..40usize, count in -60..60i64, seed: u64) {
            let random = &mut Random::seed_from_u64(seed);
            let (sample, _) = Sample::parse(count.to_string().as_bytes(), None, "").unwrap();
            let mut found: Vec<usize> = sample.indexes(len, random).collect();
            prop_assert!(found.iter().all(|&index| index < len));
            prop_assert_eq!(found.len(), sample.size(len));
            if count >= 0 {
                found.sort_unstable();
                found.dedup();
                prop_assert_eq!(found.len(), len.min(count as usize));
            } else if len > 0 {
                prop_assert_eq!(found.len(), count.unsigned_abs() as usize);
            }
        }
    }
}
