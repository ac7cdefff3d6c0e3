//! Where big things are dropped.
//!
//! For: freeing what was deleted without stalling a worker.

use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use super::Garbage;

/// Pieces of garbage that may wait; beyond that the worker that made it drops it itself.
const WAITING_MAX: usize = 1024;

/// A thread that only drops.
pub struct Janitor {
    sender: SyncSender<Garbage>,
}

impl Janitor {
    /// Starts the thread; it ends when the janitor is dropped.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start() -> io::Result<Self> {
        let (sender, receiver) = sync_channel::<Garbage>(WAITING_MAX);
        // In a simulation nothing may depend on a second thread: whoever makes garbage drops it.
        if !cfg!(feature = "sim") {
            std::thread::Builder::new()
                .name("korum-janitor".into())
                .spawn(move || receiver.into_iter().for_each(drop))?;
        }
        Ok(Self { sender })
    }

    /// Drops it later, elsewhere.
    pub fn drop_later(&self, garbage: Garbage) {
        if garbage.is_empty() {
            return;
        }
        match self.sender.try_send(garbage) {
            Ok(()) => {}
            Err(TrySendError::Full(garbage) | TrySendError::Disconnected(garbage)) => drop(garbage),
        }
    }
}
