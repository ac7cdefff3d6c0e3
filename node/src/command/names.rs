//! The keys of one call, as they are stored.
//!
//! For: turning the keys that a command names into those of its database, without a copy where they are the same; and
//! which database a number means.
//! Not here: the stored form itself (`store::database`).

use std::cell::OnceCell;

use korum_protocol::resp::Args;

use super::args::small_integer;
use super::{Call, Stop};
use crate::dispatch::{Caller, Port};
use crate::store::database::{Databases, MARK, stored};
use crate::store::keyspace::Place;

/// The answer to a number that no database has.
pub const NO_SUCH_DATABASE: &str = "ERR DB index is out of range";
const NOT_IN_CLUSTER: &str = "ERR SELECT is not allowed in cluster mode";

/// What the keys of one call mean. Each call has its own: it keeps the stored forms that differ from the arguments.
#[derive(Debug)]
pub struct Names {
    databases: Databases,
    database: u8,
    room: u8,
    /// From this first byte on, keys are stored in another form.
    first_other: u8,
    is_cluster: bool,
    /// By argument, made when they are asked for.
    others: OnceCell<Box<[StoredForm]>>,
}

/// The stored form of an argument, once it has been asked for.
type StoredForm = OnceCell<Box<[u8]>>;

impl Names {
    /// Of a call in this database. `is_cluster`: there is only one, as in Redis Cluster.
    #[must_use]
    pub fn new(databases: &Databases, database: u8, is_cluster: bool) -> Self {
        let room = databases.room(database);
        let first_other = if room == 0 { MARK } else { 0 };
        Self {
            databases: databases.clone(),
            database,
            room,
            first_other,
            is_cluster,
            others: OnceCell::new(),
        }
    }

    /// Of a caller's call.
    #[must_use]
    pub fn of(databases: &Databases, caller: Caller) -> Self {
        Self::new(databases, caller.database, caller.port == Port::Cluster)
    }

    /// Of a call in the same place, in another database.
    #[must_use]
    pub fn with(&self, database: u8) -> Self {
        Self::new(&self.databases, database, self.is_cluster)
    }

    /// The database that the call is about.
    #[must_use]
    pub fn database(&self) -> u8 {
        self.database
    }

    /// The room of its keys.
    #[must_use]
    pub fn room(&self) -> u8 {
        self.room
    }

    /// All databases.
    #[must_use]
    pub fn databases(&self) -> &Databases {
        &self.databases
    }

    /// It came through the port where there is one database.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    /// The stored form of the key at an argument, which is there. Names of one call are asked about its arguments only.
    #[inline]
    pub fn at<'n>(&'n self, args: &Args<'n>, index: usize) -> &'n [u8] {
        let key = args.get(index).unwrap_or_default();
        // An empty key is looked at closer.
        if *key.first().unwrap_or(&MARK) < self.first_other {
            key
        } else {
            self.other(args.len(), index, key)
        }
    }

    fn other<'n>(&'n self, arguments: usize, index: usize, key: &'n [u8]) -> &'n [u8] {
        if self.room == 0 && key.is_empty() {
            return key;
        }
        let others = self.others.get_or_init(|| vec![OnceCell::new(); arguments].into());
        match others.get(index) {
            Some(other) => other.get_or_init(|| stored(self.room, key).into()),
            None => key,
        }
    }

    /// The database that `SELECT` means by a number.
    ///
    /// # Errors
    /// With Redis' text, if it means none.
    pub fn select(&self, number: &[u8]) -> Result<u8, Stop> {
        select(&self.databases, number, self.is_cluster)
    }

    /// The database that an option means by a number.
    ///
    /// # Errors
    /// With Redis' text, if it means none.
    pub fn find(&self, number: &[u8]) -> Result<u8, Stop> {
        find(&self.databases, number)
    }
}

fn find(databases: &Databases, number: &[u8]) -> Result<u8, Stop> {
    databases.find(small_integer(number)?.into()).ok_or(NO_SUCH_DATABASE.into())
}

/// The database that `SELECT` means by a number.
///
/// # Errors
/// With Redis' text, if it means none.
pub fn select(databases: &Databases, number: &[u8], is_cluster: bool) -> Result<u8, Stop> {
    if small_integer(number)? != 0 && is_cluster {
        return Err(NOT_IN_CLUSTER.into());
    }
    find(databases, number)
}

impl<'a> Call<'a> {
    /// The key at argument `index`, in the call's database.
    #[inline]
    pub fn place(&self, index: usize) -> Place<'a> {
        self.keyspace.place(self.names.at(&self.args, index))
    }

    /// The stored form of a key that stands at no argument.
    #[must_use]
    pub fn stored<'k>(&self, key: &'k [u8]) -> std::borrow::Cow<'k, [u8]> {
        stored(self.names.room, key)
    }

    /// The stored form of the key at argument `index` in another database.
    #[must_use]
    pub fn stored_in(&self, database: u8, index: usize) -> std::borrow::Cow<'a, [u8]> {
        stored(self.names.databases.room(database), self.args.get(index).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::map::DatabaseOrder;

    use super::*;

    #[test]
    fn keys_are_stored_as_their_database_has_it() {
        let buffer = b"mgeta\xffb";
        let ranges = [0..4, 4..5, 5..7, 7..7];
        let args = Args::new(buffer, &ranges);
        let stored =
            |names: &Names| -> Vec<Vec<u8>> { (1..4).map(|at| names.at(&args, at).to_vec()).collect() };
        let databases = Databases::default();
        let first = Names::new(&databases, 0, false);
        assert_eq!(stored(&first), [&b"a"[..], b"\xff\x00\xffb", b""]);
        assert!(std::ptr::eq(first.at(&args, 1), &args[1]), "nothing is copied");
        assert_eq!(stored(&first.with(7)), [&b"\xff\x07a"[..], b"\xff\x07\xffb", b"\xff\x07"]);
        let swapped = Databases::new(16, DatabaseOrder::default().swapped(0, 7));
        assert_eq!(stored(&Names::new(&swapped, 7, false)), stored(&first));
    }

    #[test]
    fn numbers_are_refused_in_the_words_of_redis() {
        let text = |number: &str, is_cluster| {
            select(&Databases::default(), number.as_bytes(), is_cluster).map_err(std::borrow::Cow::into_owned)
        };
        assert_eq!(text("15", false), Ok(15));
        for number in ["16", "-1", "300"] {
            assert_eq!(text(number, false), Err(NO_SUCH_DATABASE.to_owned()), "{number}");
        }
        for is_cluster in [false, true] {
            let error = Err("ERR value is not an integer or out of range".to_owned());
            assert_eq!(text("x", is_cluster), error);
            assert_eq!(text("0", is_cluster), Ok(0));
        }
        assert_eq!(text("1", true), Err(NOT_IN_CLUSTER.to_owned()));
    }
}
