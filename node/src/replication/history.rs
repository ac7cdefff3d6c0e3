//! How a copy's content came about: the positions that it went through, and where its last effects took place.
//!
//! For: finding out what two copies differ in. Each has gone a *path*, one era after the other; up to the last
//! position that lies on both paths they had the same content, and since then each has changed only at the places
//! that its *backlog* names. So the present state of those places brings one copy to where the other stands, whether
//! it is behind, ahead or both.
//! Not here: who tells whom (`primary`, `replica`), what stands at a place (`store::stream`).

use std::collections::VecDeque;

use korum_protocol::id::{Epoch, Position};
use smallvec::SmallVec;

use crate::store::HashPosition;

/// The last position of each era that a copy went through, oldest first; the last one is where it stands.
pub type Path = SmallVec<[Position; 2]>;

/// Eras of a path that are remembered: what lies further back is streamed.
pub const PATH_MAX: usize = 8;

/// One copy's path and backlog.
#[derive(Debug)]
pub struct History {
    /// Empty: nothing is known of the content.
    path: Path,
    /// Where the last effects took place, the latest at the end; each counts one position.
    backlog: VecDeque<HashPosition>,
    /// Most effects that are remembered.
    backlog_max: usize,
    /// Others may have copies that are to be brought up to date one day.
    is_kept: bool,
    /// Somebody has watched a key since the process began.
    is_watched: bool,
}

impl History {
    /// Of a copy of which nothing is known, and which will remember so many effects.
    #[must_use]
    pub fn new(backlog_max: usize) -> Self {
        Self { path: Path::new(), backlog: VecDeque::new(), backlog_max, is_kept: false, is_watched: false }
    }

    /// How far the copy has come; `None` while it is incomplete or nothing is known of it.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.path.last().copied()
    }

    /// Effects of the era in which the copy stands.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.path.last().map_or(0, |last| last.sequence)
    }

    /// The positions that it went through.
    #[must_use]
    pub fn path(&self) -> &[Position] {
        &self.path
    }

    /// Memory of the backlog, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.backlog.capacity() * size_of::<HashPosition>()
    }

    /// Effects are remembered, or (where there is nobody who could have missed them) not.
    pub fn keep(&mut self, is_kept: bool) {
        if self.is_kept && !is_kept && !self.is_watched {
            self.backlog = VecDeque::new();
        }
        self.is_kept = is_kept;
    }

    /// A key is watched: from now on effects are remembered, whether or not others have copies.
    pub fn watch(&mut self) {
        self.is_watched = true;
    }

    /// Certainly no effect took place at `place` since `position`. False on any doubt: the position is not on this
    /// path, the backlog does not reach back, something happened everywhere.
    #[must_use]
    pub fn is_untouched_since(&self, position: Position, place: HashPosition) -> bool {
        self.since(position).is_some_and(|mut places| places.all(|touched| touched != place))
    }

    /// This copy is its partition's primary from now on: its content is where the era begins.
    pub fn begin(&mut self, era: Epoch) {
        // An era without effects lies on the path at its own beginning, where the one before it ended.
        let mut is_first = true;
        self.path.retain(|end| std::mem::take(&mut is_first) || end.sequence > 0);
        if self.path.len() >= PATH_MAX {
            self.path.remove(0);
        }
        self.path.push(Position { era, sequence: 0 });
    }

    /// An effect took place at `place`; `None`: everywhere.
    pub fn step(&mut self, place: Option<HashPosition>) {
        let Some(last) = self.path.last_mut() else { return };
        last.sequence += 1;
        match place {
            Some(place) if (self.is_kept || self.is_watched) && self.backlog_max > 0 => {
                self.remember(place);
            }
            _ => self.backlog.clear(),
        }
    }

    /// The content is not that of any position any more.
    pub fn forget(&mut self) {
        self.path.clear();
        self.backlog.clear();
    }

    /// The content was replaced by that of a copy with this path.
    pub fn replace(&mut self, path: &[Position]) {
        self.forget();
        self.path.extend_from_slice(path);
    }

    /// The last position that lies on this path and on another.
    ///
    /// In one era one primary hands out the numbers, and it began at one position: two paths through the same era
    /// agree up to the shorter part of it.
    #[must_use]
    pub fn common(&self, other: &[Position]) -> Option<Position> {
        let in_both = |own: &Position| {
            let theirs = other.iter().find(|theirs| theirs.era == own.era)?;
            Some(Position { era: own.era, sequence: own.sequence.min(theirs.sequence) })
        };
        self.path.iter().rev().find_map(in_both)
    }

    /// Where the effects since a position of this path took place, in order; `None` where the backlog does not
    /// reach back.
    #[must_use]
    pub fn since(&self, position: Position) -> Option<impl ExactSizeIterator<Item = HashPosition>> {
        let steps = self.steps_since(position)?;
        let start = self.backlog.len().checked_sub(steps)?;
        Some(self.backlog.range(start..).copied())
    }

    fn steps_since(&self, position: Position) -> Option<usize> {
        let at = self.path.iter().rposition(|end| end.era == position.era)?;
        let first = self.path[at].sequence.checked_sub(position.sequence)?;
        let later = self.path[at + 1..].iter().map(|end| end.sequence);
        usize::try_from(later.fold(first, u64::saturating_add)).ok()
    }

    /// The copy has left its own path at `common` and follows another's from there, whose effects since then took
    /// place at `steps`.
    pub fn follow(&mut self, common: Position, path: &[Position], steps: &[HashPosition]) {
        let own = self.steps_since(common).unwrap_or(usize::MAX);
        self.backlog.truncate(self.backlog.len().saturating_sub(own));
        self.path.clear();
        self.path.extend_from_slice(path);
        for &step in &steps[steps.len().saturating_sub(self.backlog_max)..] {
            self.remember(step);
        }
    }

    fn remember(&mut self, place: HashPosition) {
        if self.backlog.len() >= self.backlog_max {
            self.backlog.pop_front();
        } else if self.backlog.len() == self.backlog.capacity() {
            // Twice as much, but never more than may be kept.
            let more = self.backlog.len().max(4).min(self.backlog_max - self.backlog.len());
            self.backlog.reserve_exact(more);
        }
        self.backlog.push_back(place);
    }
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
