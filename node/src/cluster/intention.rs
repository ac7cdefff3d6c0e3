//! That this node gave up its own cluster to join another, on disk.
//!
//! For: the one file whose appearance is the moment of `CLUSTER MEET`: before it the node is what it was, after it the
//! next opening of the data directory makes it a new node that joins.
//! Not here: who decides so (`meet`), emptying the directory (`identity`).
//! Rule: it stays when the node has joined, because the addresses in it lead back to the cluster.

use std::io;
use std::path::Path;

use korum_protocol::id::NodeId;
use korum_protocol::peer::message::{ADDRESS_BYTES_MAX, SEEDS_MAX};

use super::identity::{IdentityError, read_checked, write_checked};

const FILE: &str = "join";
const HEAD: &str = "korum join 1";
/// A whole file is shorter than this.
const BYTES_MAX: u64 = (SEEDS_MAX * (ADDRESS_BYTES_MAX + 8) + 128) as u64;

/// What the file holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intention {
    /// The node id that ends with the cluster of its own.
    pub given_up: NodeId,
    /// Peer addresses of the cluster to join, as `host:port`; 1 to [`SEEDS_MAX`].
    pub seeds: Vec<String>,
}

impl Intention {
    /// What the directory says, if anything. Blocks on the disk.
    ///
    /// # Errors
    /// When the file is damaged or the disk refuses.
    pub fn read(dir: &Path) -> Result<Option<Self>, IdentityError> {
        read_checked(dir, FILE, BYTES_MAX, parse)
    }

    /// Durable on return. Blocks on the disk.
    ///
    /// # Errors
    /// When the disk refuses; then nothing is intended, except when it does not even let the file be removed: then
    /// what was written counts and this is no error.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        let Err(error) = write_checked(dir, FILE, self.print()) else { return Ok(()) };
        match std::fs::remove_file(dir.join(FILE)) {
            Err(removal) if removal.kind() != io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        }
    }

    fn print(&self) -> String {
        let seeds: String = self.seeds.iter().map(|seed| format!("seed {seed}\n")).collect();
        format!("{HEAD}\ngiven up {:016x}\n{seeds}", self.given_up.0)
    }
}

fn parse(body: &str) -> Result<Intention, &'static str> {
    let mut lines = body.lines();
    if lines.next() != Some(HEAD) {
        return Err("it is of another version");
    }
    let node = lines.next().and_then(|line| line.strip_prefix("given up ")).ok_or("a line is missing")?;
    let given_up = NodeId(u64::from_str_radix(node, 16).map_err(|_| "a number is wrong")?);
    let seeds = lines.map(|line| line.strip_prefix("seed ").map(str::to_owned).ok_or("a line is wrong"));
    let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
    if seeds.is_empty() { Err("it names no address") } else { Ok(Intention { given_up, seeds }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_directory_without_the_file_intends_nothing_and_a_damaged_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Intention::read(dir.path()).unwrap(), None);
        let intention = Intention { given_up: NodeId(7), seeds: vec!["a:1".into(), "[::1]:2".into()] };
        intention.write(dir.path()).unwrap();
        assert_eq!(Intention::read(dir.path()).unwrap(), Some(intention));
        std::fs::write(dir.path().join(FILE), "korum join 1\n").unwrap();
        assert!(matches!(Intention::read(dir.path()), Err(IdentityError::Corrupt { .. })));
    }

    proptest! {
        #[test]
        fn prints_and_parses(node: u64, seeds in proptest::collection::vec("[a-z0-9.]{1,9}:[0-9]{1,5}", 1..SEEDS_MAX)) {
            let intention = Intention { given_up: NodeId(node), seeds };
            prop_assert_eq!(parse(&intention.print()), Ok(intention));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = parse(&text);
        }
    }
}
