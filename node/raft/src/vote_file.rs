//! The file of the vote: two slots, written in turn.
//!
//! For: a vote that is durable after one write in place, and never goes back past one that was.
//! Not here: who is voted for, when (openraft).
//!
//! ```text
//! | slot 0: record of (count, vote), zeros | slot 1: the same |      a block each
//! ```
//!
//! A vote goes to the slot that does not hold the one before, so a write that is cut off leaves that one.
//! Once it is durable it is written to the other slot too, without a sync: that copy is there for a block that
//! goes bad later. The slot with the higher count counts; a bad slot beside a good one is a write that was cut off.

use std::fs::File;
use std::io;

use korum_protocol::peer::wire;

use super::log_file::Medium;
use super::record::{self, Next};
use super::types::Vote;

/// Bytes of a slot: a block of the disk, so that no write touches both slots.
const SLOT_BYTES: usize = 4096;
/// Bytes of the file.
pub const FILE_BYTES: usize = 2 * SLOT_BYTES;

/// The file of the vote.
pub struct VoteFile<M = File> {
    medium: M,
    /// Votes that were written so far, the present one included.
    count: u64,
    /// The slot that is free to be written.
    free: usize,
}

impl<M: Medium> VoteFile<M> {
    /// The vote that `bytes`, all that stands on the medium, say, and the file to go on with.
    /// Durable on return, even if whoever wrote it did not live to sync it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] when no vote can be told from them, and what the medium says.
    pub fn recover(medium: M, bytes: &[u8]) -> io::Result<(Option<Vote>, Self)> {
        let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason);
        if bytes.len() != FILE_BYTES {
            return Err(invalid("it has another length than any vote of this version"));
        }
        let (first, second) = bytes.split_at(SLOT_BYTES);
        let (slot, found) = match (read(first), read(second)) {
            (Slot::Bad, Slot::Bad) => return Err(invalid("it is damaged, or of a later version")),
            (Slot::Good(Some(first)), Slot::Good(Some(second))) if second.0 > first.0 => (1, Some(second)),
            (Slot::Bad | Slot::Good(None), Slot::Good(second)) => (1, second),
            (Slot::Good(first), _) => (0, first),
        };
        let (count, vote) = found.map_or((0, None), |(count, vote)| (count, Some(vote)));
        let mut file = Self { medium, count, free: 1 - slot };
        file.medium.sync()?;
        vote.map_or(Ok(()), |vote| file.copy(&vote))?;
        Ok((vote, file))
    }

    /// Writes a vote; durable on return.
    pub fn save(&mut self, vote: &Vote) -> io::Result<()> {
        self.count += 1;
        self.write(self.free, vote)?;
        self.medium.sync()?;
        self.free = 1 - self.free;
        Ok(())
    }

    /// Writes the vote that was saved last to the other slot too; durable at some time.
    pub fn copy(&mut self, vote: &Vote) -> io::Result<()> {
        self.write(self.free, vote)
    }

    fn write(&mut self, slot: usize, vote: &Vote) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(SLOT_BYTES);
        record::write(&wire::encode(&(self.count, vote)), &mut bytes);
        bytes.resize(SLOT_BYTES, 0);
        self.medium.write(&bytes, (slot * SLOT_BYTES) as u64)
    }
}

enum Slot {
    /// Its vote and the vote's number; `None` before the first.
    Good(Option<(u64, Vote)>),
    Bad,
}

fn read(slot: &[u8]) -> Slot {
    match record::next(slot) {
        Next::Record { body, .. } => wire::decode(body).map_or(Slot::Bad, |found| Slot::Good(Some(found))),
        Next::End if record::is_zero(slot) => Slot::Good(None),
        Next::End | Next::Bad => Slot::Bad,
    }
}
