//! Ranges of a sorted set, as arguments say them.
//!
//! For: ranges of places, of scores and of names, and which ranks they are.
//! Not here: what is done with them (`range`).

use std::ops::Range;

use super::number;
use crate::command::Stop;
use crate::command::args::integer;
use crate::store::SortedSet;

/// A range that was read.
#[derive(Clone, Copy, Debug)]
pub enum Bounds<'a> {
    /// First and last place; negative ones count from the end.
    Places(i64, i64),
    /// Lowest and highest score.
    Scores(ScoreEnd, ScoreEnd),
    /// Lowest and highest name.
    Names(NameEnd<'a>, NameEnd<'a>),
}

/// What kind of range it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Places in the order.
    Place,
    /// Scores.
    Score,
    /// Names, where all scores are equal.
    Name,
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug)]
pub struct ScoreEnd {
    score: f64,
    is_outside: bool,
}

/// One end of a range of names.
#[derive(Clone, Copy, Debug)]
pub enum NameEnd<'a> {
    /// Before all names.
    Lowest,
    /// Behind all names.
    Highest,
    /// This name, in the range.
    With(&'a [u8]),
    /// This name, outside of the range.
    Without(&'a [u8]),
}

impl ScoreEnd {
    fn parse(text: &[u8]) -> Result<Self, Stop> {
        let (text, is_outside) = match text {
            [b'(', rest @ ..] => (rest, true),
            text => (text, false),
        };
        let score = number::parse_loosely(text).ok_or("ERR min or max is not a float")?;
        Ok(Self { score, is_outside })
    }
}

impl<'a> NameEnd<'a> {
    fn parse(text: &'a [u8]) -> Result<Self, Stop> {
        match text {
            b"-" => Ok(Self::Lowest),
            b"+" => Ok(Self::Highest),
            [b'[', name @ ..] => Ok(Self::With(name)),
            [b'(', name @ ..] => Ok(Self::Without(name)),
            _ => Err("ERR min or max not valid string range item".into()),
        }
    }

    /// Whether a name comes before a range that begins here.
    fn is_after(self, name: &[u8]) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::With(end) => name < end,
            Self::Without(end) => name <= end,
        }
    }

    /// Whether a name does not come behind a range that ends here.
    fn is_not_before(self, name: &[u8]) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::With(end) => name <= end,
            Self::Without(end) => name < end,
        }
    }
}

impl<'a> Bounds<'a> {
    /// Reads the ends of a range: the lower one, then the higher one.
    pub fn parse(by: By, low: &'a [u8], high: &'a [u8]) -> Result<Self, Stop> {
        Ok(match by {
            By::Place => Self::Places(integer(low)?, integer(high)?),
            By::Score => Self::Scores(ScoreEnd::parse(low)?, ScoreEnd::parse(high)?),
            By::Name => Self::Names(NameEnd::parse(low)?, NameEnd::parse(high)?),
        })
    }

    /// The ranks that are in the range. Places are counted from the highest score if it is read downwards.
    #[must_use]
    pub fn ranks(&self, set: &SortedSet, downwards: bool) -> Range<usize> {
        let (start, end) = match *self {
            Self::Places(first, last) => {
                let places = places(set.len(), first, last);
                if downwards {
                    (set.len() - places.end, set.len() - places.start)
                } else {
                    (places.start, places.end)
                }
            }
            Self::Scores(low, high) => {
                let is_before = |score: f64| score < low.score || low.is_outside && score == low.score;
                let is_inside = |score: f64| score < high.score || !high.is_outside && score == high.score;
                (
                    set.partition_point(|_, score| is_before(score.get())),
                    set.partition_point(|_, score| is_inside(score.get())),
                )
            }
            Self::Names(low, high) => (
                set.partition_point(|name, _| low.is_after(name)),
                set.partition_point(|name, _| high.is_not_before(name)),
            ),
        };
        start..end.max(start)
    }
}

/// The places from `first` to `last` of `len`, where negative ones count from the end.
fn places(len: usize, first: i64, last: i64) -> Range<usize> {
    let from_start = |place: i64| if place < 0 { place.saturating_add_unsigned(len as u64) } else { place };
    let start = usize::try_from(from_start(first)).unwrap_or(0).min(len);
    let end = usize::try_from(from_start(last).saturating_add(1)).unwrap_or(0).min(len);
    if start < end { start..end } else { 0..0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Score;
    use proptest::prelude::*;

    fn set(len: usize) -> SortedSet {
        let members: Vec<_> = (0..len).map(|number| format!("{number:03}")).collect();
        members
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_bytes(), Score::new(at as f64).unwrap()))
            .collect()
    }

    proptest! {
        #[test]
        fn ranges_hold_what_they_say(len in 0..300usize, low in -400..400i64, high in -400..400i64, outside: bool) {
            let set = set(len);
            let bounds = Bounds::Places(low, high);
            let absolute = |place: i64| if place < 0 { place + len as i64 } else { place };
            let expected = (0..len as i64).filter(|at| (absolute(low)..=absolute(high)).contains(at)).count();
            prop_assert_eq!(bounds.ranks(&set, false).len(), expected);
            prop_assert_eq!(bounds.ranks(&set, true).len(), expected);

            let text = |number: i64| format!("{}{number}", if outside { "(" } else { "" }).into_bytes();
            let (low_text, high_text) = (text(low), text(high));
            let bounds = Bounds::parse(By::Score, &low_text, &high_text).unwrap();
            let is_inside = |at: &i64| if outside { low < *at && *at < high } else { low <= *at && *at <= high };
            let expected: Vec<_> = (0..len as i64).filter(is_inside).map(|at| at as usize).collect();
            prop_assert!(bounds.ranks(&set, false).eq(expected));
        }
    }
}
