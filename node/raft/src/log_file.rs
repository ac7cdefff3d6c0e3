//! The file of the log: zeros written ahead of need, and records written over them.
//!
//! For: appending without changing anything of the file but its bytes, so that `fdatasync` is one write to the
//! disk and waits for no change of the file system (a file that grows has its size and its blocks to save too).
//! Not here: what records say (`journal`), when to append and to sync (`writer`).
//! Rule: behind the last record there are zeros, durably, before anything is appended. So whatever a crash leaves
//! of the appends behind the last sync, the records up to the first gap are the first that were appended.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::journal::{Cut, Log};

/// Zeros behind the last record when a log is opened or written anew, bytes: most logs are written anew
/// before they need more.
pub const ROOM_BYTES: u64 = 512 << 10;
/// Zeros that are added at a time, bytes: few syncs that save a size, none of them long.
const STEP_BYTES: u64 = 256 << 10;
/// Zeros below which more are added as soon as nobody waits, bytes: some hundred records.
const LOW_BYTES: u64 = 128 << 10;

/// What holds bytes: a file, or in tests a disk that crashes.
pub trait Medium {
    /// Writes all of `bytes` at this place; durable after the next [`Medium::sync`].
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Makes everything that was written durable.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn write(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The file of the log, open at its end.
pub struct LogFile<M = File> {
    medium: M,
    /// Where the next record goes.
    end: u64,
    /// Up to here there are records, then zeros: the file's length.
    room: u64,
    /// Up to here it was synced.
    #[cfg(feature = "sim")]
    synced: u64,
}

impl<M: Medium> LogFile<M> {
    /// A file whose records end at `end`, with zeros from there to its length `room`.
    pub fn at(medium: M, end: u64, room: u64) -> Self {
        Self {
            medium,
            end,
            room,
            #[cfg(feature = "sim")]
            synced: end,
        }
    }

    /// The log that `bytes`, all that stands on the medium, say, and the file to go on with. What is not whole
    /// is overwritten by zeros; durable on return.
    pub fn recover(mut medium: M, bytes: &[u8]) -> io::Result<(Log, Self, Option<Cut>)> {
        let (log, good, cut) = Log::replay(bytes);
        let (end, room) = (good as u64, bytes.len() as u64);
        if let Some(cut) = &cut {
            write_zeros(&mut medium, end, end + cut.dropped as u64)?;
        }
        let mut file = Self::at(medium, end, room);
        file.widen(end + ROOM_BYTES)?;
        file.sync()?;
        Ok((log, file, cut))
    }

    /// Writes records behind the last one; durable after the next [`LogFile::sync`].
    pub fn append(&mut self, records: &[u8]) -> io::Result<()> {
        self.medium.write(records, self.end)?;
        self.end += records.len() as u64;
        if self.end > self.room {
            self.room = self.end;
            self.widen(self.end + STEP_BYTES)?;
        }
        Ok(())
    }

    /// Makes everything that was appended durable.
    pub fn sync(&mut self) -> io::Result<()> {
        self.medium.sync()?;
        #[cfg(feature = "sim")]
        if !super::simulated::disk().forgets {
            self.synced = self.end;
        }
        Ok(())
    }

    /// The power is cut: of what was appended since the last sync only so much, thousandths, is there.
    #[cfg(feature = "sim")]
    pub fn lose_unsynced(&mut self, kept_permille: u16) -> io::Result<()> {
        let kept = (self.end - self.synced) * u64::from(kept_permille) / 1000;
        write_zeros(&mut self.medium, self.synced + kept, self.end)
    }

    /// Adds zeros if there are few; durable on return. For a moment at which nobody waits.
    pub fn make_room(&mut self) -> io::Result<()> {
        if self.room - self.end >= LOW_BYTES {
            return Ok(());
        }
        self.widen(self.room + STEP_BYTES)?;
        self.sync()
    }

    fn widen(&mut self, room: u64) -> io::Result<()> {
        if room > self.room {
            write_zeros(&mut self.medium, self.room, room)?;
            self.room = room;
        }
        Ok(())
    }
}

/// A whole file of these records, with room behind them.
pub fn with_room(mut records: Vec<u8>) -> Vec<u8> {
    records.resize(records.len() + ROOM_BYTES as usize, 0);
    records
}

fn write_zeros(medium: &mut impl Medium, mut from: u64, to: u64) -> io::Result<()> {
    let zeros = [0; 64 << 10];
    while from < to {
        let part = (to - from).min(zeros.len() as u64);
        medium.write(&zeros[..part as usize], from)?;
        from += part;
    }
    Ok(())
}
