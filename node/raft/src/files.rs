//! The files of a Raft directory, read and replaced.
//!
//! For: opening what an earlier run left, and replacing a file so that a crash leaves the old or the new.
//! Not here: writing in place (`log_file`, `vote_file`), what the files say (`journal`, `snapshot`).
//!
//! | file | holds |
//! |---|---|
//! | `log` | the journal, and zeros behind it |
//! | `vote` | what this node voted last, two slots |
//! | `snapshot` | the map at some entry, one record |
//! | `*.new` | an unfinished replacement; ignored and overwritten |

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use korum_protocol::peer::wire;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::journal::Log;
use super::log_file::{self, LogFile};
use super::record::{self, Next};
use super::types::Vote;
use super::vote_file::{self, VoteFile};

/// The journal.
const LOG: &str = "log";
/// What this node voted last.
const VOTE: &str = "vote";
/// The map at some entry.
pub const SNAPSHOT: &str = "snapshot";
/// Longest log that is read at start, bytes. It is read as a whole; snapshots keep it to about 1,200
/// entries and their history, which is this much only if nearly every change is of the largest kind.
const LOG_BYTES_MAX: u64 = 4 << 30;

/// A Raft directory.
#[derive(Clone, Debug)]
pub struct Directory(pub PathBuf);

impl Directory {
    /// Makes the directory if there is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self(path.to_owned()))
    }

    /// The log as far as it is whole, and the file to append to. What is not whole is cut off, for good.
    pub fn open_log(&self) -> io::Result<(Log, LogFile)> {
        let path = self.0.join(LOG);
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        if file.metadata()?.len() > LOG_BYTES_MAX {
            return Err(self.invalid(LOG, "it is longer than any log of this program"));
        }
        let mut bytes = vec![];
        file.read_to_end(&mut bytes)?;
        let (log, file, cut) = LogFile::recover(file, &bytes)?;
        if let Some(cut) = cut {
            let (path, dropped) = (path.display(), cut.dropped);
            if cut.damage {
                // A power cut can do this to writes that nobody was told of, as pages reach the disk in
                // any order. A failing disk can do it too, and then what others count on is gone.
                tracing::error!("{path} is DAMAGED: {dropped} bytes dropped, with good records among them");
            } else {
                tracing::warn!("{path} ended in an unfinished record: {dropped} bytes dropped");
            }
        }
        self.sync()?;
        Ok((log, file))
    }

    /// A log of these records beside the present one; durable on return.
    pub fn new_log(&self, records: Vec<u8>) -> io::Result<LogFile> {
        let end = records.len() as u64;
        let bytes = log_file::with_room(records);
        let file = self.write_new(LOG, &bytes)?;
        Ok(LogFile::at(file, end, bytes.len() as u64))
    }

    /// Puts the log that [`Directory::new_log`] made in place of the present one; durable on return.
    pub fn put_new_log(&self) -> io::Result<()> {
        self.put_new(LOG)
    }

    /// What this node voted last, and the file to write the next vote to.
    pub fn open_vote(&self) -> io::Result<(Option<Vote>, VoteFile)> {
        let path = self.0.join(VOTE);
        if !path.try_exists()? {
            self.replace(VOTE, &[0; vote_file::FILE_BYTES])?;
        }
        let mut file = OpenOptions::new().read(true).write(true).open(&path)?;
        let mut bytes = vec![];
        (&mut file).take(vote_file::FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        VoteFile::recover(file, &bytes).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => self.invalid(VOTE, &error.to_string()),
            _ => error,
        })
    }

    /// The value of a file that holds one record; `None` if there is no such file.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let file = match File::open(self.0.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![];
        let limit = (record::BODY_BYTES_MAX + record::HEADER_BYTES) as u64;
        file.take(limit + 1).read_to_end(&mut bytes)?;
        match record::next(&bytes) {
            Next::Record { body, rest: [] } => {
                wire::decode(body).map(Some).map_err(|error| self.invalid(name, &error.to_string()))
            }
            _ => Err(self.invalid(name, "it is damaged, or of a later version")),
        }
    }

    /// Replaces a file by the given bytes; durable on return.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.write_new(name, bytes)?;
        self.put_new(name)
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<File> {
        let mut file = File::create(self.0.join(format!("{name}.new")))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(file)
    }

    fn put_new(&self, name: &str) -> io::Result<()> {
        fs::rename(self.0.join(format!("{name}.new")), self.0.join(name))?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    /// An error that says what to do.
    pub fn invalid(&self, name: &str, reason: &str) -> io::Error {
        let path = self.0.join(name);
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "cannot use {}: {reason}. Let this node join as a new one: start it with an empty data directory",
                path.display()
            ),
        )
    }
}

/// One value as a file of one record.
pub fn one_record<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = vec![];
    record::write(&wire::encode(value), &mut bytes);
    bytes
}
