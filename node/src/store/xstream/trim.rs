//! Which entries are too old?
//!
//! For: the rules of `MAXLEN` and `MINID`, exact or by whole blocks; a decision, which `change` carries out.

use super::Stream;
use super::id::StreamId;

/// What is to stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// So many entries.
    Length(u64),
    /// Entries from this id on.
    Id(StreamId),
}

/// How a stream is to be trimmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trim {
    /// What is to stay.
    pub until: Until,
    /// Whole blocks only.
    pub is_rough: bool,
    /// Most entries that may go; 0: any number.
    pub limit: u64,
}

/// Blocks whose last id came until `through` go, and entries until then of the block after them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trimmed {
    /// The greatest id that goes.
    pub through: StreamId,
}

impl Stream {
    /// What a trim takes away, and how many entries that are; `None`: nothing.
    #[must_use]
    pub fn trimmed(&self, trim: &Trim) -> Option<(Trimmed, u64)> {
        let (mut left, mut gone, mut through) = (self.len, 0, None);
        for (first, block) in &self.blocks {
            let entries = u64::from(block.len);
            let is_done = matches!(trim.until, Until::Length(most) if left <= most);
            if is_done || (trim.limit > 0 && gone + entries > trim.limit) {
                break;
            }
            let is_whole = match trim.until {
                Until::Length(most) => left - entries >= most,
                Until::Id(id) => block.last < id,
            };
            if !is_whole {
                let mut ids = block.entries(*first).map(|entry| entry.id);
                let (part, last) = match trim.until {
                    _ if trim.is_rough => (0, None),
                    Until::Length(most) => (left - most, ids.nth((left - most - 1) as usize)),
                    Until::Id(id) => {
                        let ids: Vec<_> = ids.take_while(|found| *found < id).collect();
                        (ids.len() as u64, ids.last().copied())
                    }
                };
                gone += part;
                through = last.or(through);
                break;
            }
            left -= entries;
            gone += entries;
            through = Some(block.last);
        }
        through.map(|through| (Trimmed { through }, gone))
    }
}
