//! Strings: `GET`, `SET`, `MGET`, `MSET`, `INCRBY`.

use bytes::Bytes;
use korum_protocol::resp::decode::Reply;

use super::{borrowed, on_key};
use crate::client::Client;
use crate::error::Error;
use crate::reply::FromReply;

impl Client {
    /// The value of a key, if it has one. It shares memory with the connection's read buffer: what is kept for
    /// long is better copied.
    ///
    /// # Errors
    /// See [`Error`]; `WRONGTYPE` when the key holds no string.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>, Error> {
        self.execute(on_key("GET", true, key.as_ref(), &[])).await
    }

    /// Gives a key a value; an old one, of whatever type, and its expiry are gone.
    /// When this returns `Ok`, the value survives the loss of any R-1 nodes.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::UnknownOutcome`] when the answer was lost.
    pub async fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.execute(on_key("SET", false, key.as_ref(), &[value.as_ref()])).await
    }

    /// The values of several keys, in the order of the keys. Each slot is read at its own moment.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn mget(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Bytes>>, Error> {
        let mut values = vec![None; keys.len()];
        for (positions, reply) in self.split("MGET", true, &borrowed(keys), None).await? {
            let part = match reply {
                Reply::Array(part) if part.len() == positions.len() => part,
                other => {
                    let (expected, got) = ("a value for each key", crate::reply::kind(&other));
                    return Err(Error::UnexpectedReply { expected, got });
                }
            };
            for (position, value) in positions.into_iter().zip(part) {
                values[position] = Option::from_reply(value)?;
            }
        }
        Ok(values)
    }

    /// Gives several keys values. Atomic for keys of one slot only; when it fails, some may be set.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::UnknownOutcome`] when an answer was lost.
    pub async fn mset(&self, pairs: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)]) -> Result<(), Error> {
        let (keys, values): (Vec<&[u8]>, Vec<&[u8]>) =
            pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).unzip();
        self.split("MSET", false, &keys, Some(&values)).await.map(drop)
    }

    /// Adds to the integer that a key holds (0 if it has none) and returns the sum.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::UnknownOutcome`] when the answer was lost: it is never added twice.
    pub async fn incr(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64, Error> {
        self.execute(on_key("INCRBY", false, key.as_ref(), &[by.to_string().as_bytes()])).await
    }
}
