//! Keys of any type: `DEL`, `EXISTS`, `PEXPIRE`, `PTTL`.

use std::time::Duration;

use super::{borrowed, on_key};
use crate::client::Client;
use crate::error::Error;

/// How long a key will live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeToLive {
    /// There is no such key.
    Missing,
    /// It has no deadline.
    Forever,
    /// It goes after this time.
    Expires(Duration),
}

impl Client {
    /// Deletes keys; the number of those that existed. When it fails, some may be deleted.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::UnknownOutcome`] when an answer was lost.
    pub async fn del(&self, keys: &[impl AsRef<[u8]>]) -> Result<u64, Error> {
        self.count("DEL", false, &borrowed(keys)).await
    }

    /// How many of the keys exist; a key named twice counts twice.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn exists(&self, keys: &[impl AsRef<[u8]>]) -> Result<u64, Error> {
        self.count("EXISTS", true, &borrowed(keys)).await
    }

    /// Lets a key go after a time, in whole milliseconds; false if there is no such key.
    ///
    /// # Errors
    /// See [`Error`]; [`Error::UnknownOutcome`] when the answer was lost.
    pub async fn expire(&self, key: impl AsRef<[u8]>, after: Duration) -> Result<bool, Error> {
        self.execute(on_key("PEXPIRE", false, key.as_ref(), &[after.as_millis().to_string().as_bytes()]))
            .await
    }

    /// How long a key will live.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn ttl(&self, key: impl AsRef<[u8]>) -> Result<TimeToLive, Error> {
        let ms: i64 = self.execute(on_key("PTTL", true, key.as_ref(), &[])).await?;
        Ok(match u64::try_from(ms) {
            Ok(ms) => TimeToLive::Expires(Duration::from_millis(ms)),
            Err(_) if ms == -1 => TimeToLive::Forever,
            Err(_) => TimeToLive::Missing,
        })
    }
}
