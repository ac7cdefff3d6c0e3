//! Who this node is, over all its restarts.
//!
//! For: the data directory: its lock, the node id, the cluster it belongs to, and the incarnation, which grows
//! durably at every start. An identity that was given up (`intention`) is replaced here.
//! Not here: Raft's files beside it (`raft`), what an incarnation means (`liveness`).

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use korum_protocol::id::{ClusterId, Incarnation, NodeId};
use rand::RngExt;

use super::intention::Intention;
use crate::env::random;

const FILE: &str = "identity";
const LOCK: &str = "lock";
const HEAD: &str = "korum identity 1";
/// A whole identity file is shorter than this.
const BYTES_MAX: u64 = 1024;

/// An opened data directory. Nobody else can open it while this value lives.
#[derive(Debug)]
pub struct Identity {
    dir: PathBuf,
    _lock: File,
    persisted: Persisted,
}

/// What the file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Persisted {
    node: NodeId,
    cluster_id: Option<ClusterId>,
    incarnation: Incarnation,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Another process uses it.
    #[error("the data directory {} is in use by another process: stop it, or give this node its own directory", .0.display())]
    InUse(PathBuf),
    /// A file says nothing sensible.
    #[error(
        "the file {} is damaged ({why}): restore it, or empty the data directory so that this node starts as a new one",
        path.display()
    )]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The directory holds other files of a node, but not who it was.
    #[error(
        "the data directory {} has a Raft log but no identity file: restore it, or empty the directory so that this node starts as a new one",
        .0.display()
    )]
    Missing(PathBuf),
    /// The file system refused.
    #[error("cannot use the data directory {}", dir.display())]
    Io {
        /// Which directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Identity {
    /// Locks the directory (made if it is missing), reads or mints the identity, and begins a new incarnation,
    /// which is on disk when this returns. Blocks on the disk.
    ///
    /// # Errors
    /// When another process has it, the file is damaged, or the disk refuses.
    pub fn open(dir: &Path) -> Result<Self, IdentityError> {
        let failed = |source| IdentityError::Io { dir: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed)?;
        let lock =
            File::options().create(true).truncate(false).write(true).open(dir.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(IdentityError::InUse(dir.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let intention = Intention::read(dir)?;
        let persisted = match read_checked(dir, FILE, BYTES_MAX, parse)? {
            None if is_filled(&dir.join(super::RAFT_DIR)) => {
                return Err(IdentityError::Missing(dir.to_owned()));
            }
            None => Persisted::mint(),
            Some(known) if intention.is_some_and(|intention| intention.given_up == known.node) => {
                tracing::info!(node = %known.node, "the cluster of this node alone was given up to join another");
                empty(dir).map_err(failed)?;
                Persisted::mint()
            }
            Some(known) => known,
        };
        let mut identity = Self { dir: dir.to_owned(), _lock: lock, persisted };
        identity.begin_incarnation(Incarnation(0)).map_err(failed)?;
        Ok(identity)
    }

    /// This node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.persisted.node
    }

    /// The cluster it belongs to, once it does.
    #[must_use]
    pub fn cluster_id(&self) -> Option<ClusterId> {
        self.persisted.cluster_id
    }

    /// Which run of the node this is.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.persisted.incarnation
    }

    /// Begins an incarnation newer than the present one and than `known`; durable on return. Blocks on the disk.
    ///
    /// # Errors
    /// When the disk refuses; the incarnation is then as it was.
    pub fn begin_incarnation(&mut self, known: Incarnation) -> io::Result<Incarnation> {
        // `known` came over the wire.
        let newest = self.persisted.incarnation.max(known);
        let incarnation = Incarnation(newest.0.saturating_add(1));
        self.save(Persisted { incarnation, ..self.persisted })?;
        Ok(incarnation)
    }

    /// The node belongs to a cluster from now on; durable on return. Blocks on the disk.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn set_cluster_id(&mut self, cluster_id: ClusterId) -> io::Result<()> {
        if self.persisted.cluster_id == Some(cluster_id) {
            return Ok(());
        }
        self.save(Persisted { cluster_id: Some(cluster_id), ..self.persisted })
    }

    fn save(&mut self, persisted: Persisted) -> io::Result<()> {
        write_checked(&self.dir, FILE, print(&persisted))?;
        self.persisted = persisted;
        Ok(())
    }
}

impl Persisted {
    /// A node that never was.
    fn mint() -> Self {
        Self { node: NodeId(mint()), cluster_id: None, incarnation: Incarnation(0) }
    }
}

/// Raft's files are gone when this returns; the identity still says whose they were, so that a crash before
/// the new one is written makes this begin again.
fn empty(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir.join(super::RAFT_DIR)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::open(dir)?.sync_all()
}

/// Writes a small file with a checksum, whole or not at all; durable on return. Blocks on the disk.
pub(super) fn write_checked(dir: &Path, name: &str, mut text: String) -> io::Result<()> {
    let checksum = crc32fast::hash(text.as_bytes());
    text.push_str(&format!("checksum {checksum:08x}\n"));
    let temporary = dir.join(format!("{name}.new"));
    let mut file = File::create(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, dir.join(name))?;
    File::open(dir)?.sync_all()
}

/// Reads what `write_checked` wrote; `None` when there is no such file. `parse` gets the text without the checksum.
pub(super) fn read_checked<T>(
    dir: &Path,
    name: &str,
    bytes_max: u64,
    parse: impl FnOnce(&str) -> Result<T, &'static str>,
) -> Result<Option<T>, IdentityError> {
    let path = dir.join(name);
    let failed = |source| IdentityError::Io { dir: dir.to_owned(), source };
    let mut bytes = Vec::new();
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes)).map_err(failed)?,
    };
    let parsed = if bytes.len() as u64 > bytes_max { Err("it is too long") } else { unseal(&bytes) };
    let parsed = parsed.and_then(parse);
    parsed.map(Some).map_err(|why| IdentityError::Corrupt { path, why })
}

/// The text of a file without its checksum, which must be right.
fn unseal(bytes: &[u8]) -> Result<&str, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
    let (body, checksum) = text.rsplit_once("checksum ").ok_or("its checksum is missing")?;
    if u32::from_str_radix(checksum.trim_end(), 16) != Ok(crc32fast::hash(body.as_bytes())) {
        return Err("its checksum is wrong");
    }
    Ok(body)
}

/// A number for ever: never zero, which stands for "none" on the wire.
pub(super) fn mint() -> u64 {
    random::random().random_range(1..=u64::MAX)
}

fn is_filled(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some())
}

fn print(persisted: &Persisted) -> String {
    let Persisted { node, cluster_id, incarnation } = persisted;
    let cluster = cluster_id.map_or(0, |id| id.0);
    format!("{HEAD}\nnode {:016x}\ncluster {cluster:016x}\nincarnation {incarnation}\n", node.0)
}

fn parse(body: &str) -> Result<Persisted, &'static str> {
    let mut lines = body.lines();
    if lines.next() != Some(HEAD) {
        return Err("it is of another version");
    }
    let mut field = |name: &str, radix| {
        let value = lines.next().and_then(|line| line.strip_prefix(name)).ok_or("a line is missing")?;
        u64::from_str_radix(value.trim(), radix).map_err(|_| "a number is wrong")
    };
    let node = NodeId(field("node", 16)?);
    let cluster = field("cluster", 16)?;
    let incarnation = Incarnation(field("incarnation", 10)?);
    if node == NodeId(0) {
        return Err("its node id is zero");
    }
    Ok(Persisted { node, cluster_id: (cluster != 0).then_some(ClusterId(cluster)), incarnation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identity_stays_and_the_incarnation_grows_at_every_start() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Identity::open(dir.path()).unwrap();
        assert_eq!((first.incarnation(), first.cluster_id()), (Incarnation(1), None));
        first.set_cluster_id(ClusterId(7)).unwrap();
        assert_eq!(first.begin_incarnation(Incarnation(5)).unwrap(), Incarnation(6));
        let node = first.node();
        assert!(matches!(Identity::open(dir.path()), Err(IdentityError::InUse(_))));
        drop(first);
        let second = Identity::open(dir.path()).unwrap();
        assert_eq!(second.node(), node);
        assert_eq!((second.incarnation(), second.cluster_id()), (Incarnation(7), Some(ClusterId(7))));
    }

    #[test]
    fn a_damaged_identity_is_an_error_that_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        drop(Identity::open(dir.path()).unwrap());
        let path = dir.path().join(FILE);
        let mut bytes = fs::read(&path).unwrap();
        bytes[25] ^= 1;
        fs::write(&path, bytes).unwrap();
        let error = Identity::open(dir.path()).unwrap_err();
        assert!(error.to_string().contains("empty the data directory"), "{error}");
        fs::remove_file(&path).unwrap();
        fs::create_dir_all(dir.path().join(crate::cluster::RAFT_DIR).join("log")).unwrap();
        assert!(matches!(Identity::open(dir.path()), Err(IdentityError::Missing(_))));
    }

    #[test]
    fn a_given_up_identity_is_replaced_once_whenever_the_process_ends() {
        let dir = tempfile::tempdir().unwrap();
        let raft = dir.path().join(crate::cluster::RAFT_DIR);
        let mut old = Identity::open(dir.path()).unwrap();
        old.set_cluster_id(ClusterId(7)).unwrap();
        let given_up = old.node();
        fs::create_dir_all(raft.join("log")).unwrap();
        let intention = Intention { given_up, seeds: vec!["a:1".into()] };
        intention.write(dir.path()).unwrap();
        drop(old);
        // A process that ended when Raft's files were gone and the new identity was not written yet.
        let half = Intention { given_up, seeds: vec!["a:1".into()] };
        half.write(dir.path()).unwrap();
        empty(dir.path()).unwrap();
        let new = Identity::open(dir.path()).unwrap();
        assert_eq!((new.cluster_id(), new.incarnation(), raft.exists()), (None, Incarnation(1), false));
        assert_ne!(new.node(), given_up);
        let node = new.node();
        drop(new);
        // From here on it is a joiner like any other, and what it wrote stays.
        fs::create_dir_all(raft.join("log")).unwrap();
        let again = Identity::open(dir.path()).unwrap();
        assert_eq!((again.node(), again.incarnation(), raft.exists()), (node, Incarnation(2), true));
        assert_eq!(Intention::read(dir.path()).unwrap(), Some(intention));
    }

    proptest! {
        #[test]
        fn prints_and_parses(node in 1u64.., cluster: u64, incarnation: u64) {
            let cluster_id = (cluster != 0).then_some(ClusterId(cluster));
            let persisted = Persisted { node: NodeId(node), cluster_id, incarnation: Incarnation(incarnation) };
            prop_assert_eq!(parse(&print(&persisted)), Ok(persisted));
        }

        #[test]
        fn no_file_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unseal(&bytes);
            let _ = parse(&String::from_utf8_lossy(&bytes));
        }
    }
}
