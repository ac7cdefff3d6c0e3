//! The threads of a node.
//!
//! For: one runtime a worker thread, for connections and data. The main thread accepts; heartbeats and Raft have
//! threads of their own (`cluster`), so that load never delays them.
//! Not here: what runs on them.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(feature = "sim"))]
use tokio::runtime::Builder;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Stack of a worker: twice what Redis' own thread has, since a script may nest calls of C functions, some with buffers
/// of 8 KiB, 200 deep. Only what is used takes memory.
#[cfg(not(feature = "sim"))]
const STACK_BYTES: usize = 16 << 20;

thread_local! {
    static WORKER: Cell<usize> = const { Cell::new(0) };
}

/// The number of the worker thread that asks, from 0; 0 on any other thread.
#[must_use]
pub fn worker_number() -> usize {
    WORKER.get()
}

/// Runs what blocks on the disk, on a thread where that stalls nobody.
///
/// # Errors
/// When it panicked, or the runtime ends.
#[cfg(not(feature = "sim"))]
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(work).await
}

/// Runs what blocks on the disk, here and now: in a simulation one thread runs everything.
///
/// # Errors
/// Never.
#[cfg(feature = "sim")]
pub async fn blocking<T>(work: impl FnOnce() -> T) -> Result<T, tokio::task::JoinError> {
    Ok(work())
}

/// The worker threads. Dropping it ends them.
pub struct Executor {
    workers: Vec<Handle>,
    next: AtomicUsize,
    stop: watch::Sender<bool>,
}

impl Executor {
    /// Starts `count` worker threads.
    ///
    /// # Errors
    /// When the system gives no thread or no poller.
    #[cfg(not(feature = "sim"))]
    pub fn start(count: usize) -> io::Result<Arc<Self>> {
        let (stop, _) = watch::channel(false);
        let mut workers = Vec::with_capacity(count.max(1));
        for number in 0..count.max(1) {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            workers.push(runtime.handle().clone());
            let mut stopped = stop.subscribe();
            let thread = std::thread::Builder::new().name(format!("korum-worker-{number}"));
            thread.stack_size(STACK_BYTES).spawn(move || {
                WORKER.set(number);
                // Either a stop or the end of the executor ends the thread, and with it its tasks.
                let _ = runtime.block_on(stopped.wait_for(|&is_stopped| is_stopped));
                runtime.shutdown_background();
            })?;
        }
        Ok(Arc::new(Self { workers, next: AtomicUsize::new(0), stop }))
    }

    /// Lets the present runtime be the only worker: in a simulation one thread runs everything.
    ///
    /// # Errors
    /// Never.
    #[cfg(feature = "sim")]
    pub fn start(_: usize) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            workers: vec![Handle::current()],
            next: AtomicUsize::new(0),
            stop: watch::channel(false).0,
        }))
    }

    /// Runs a task on the next worker in turn.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.workers[turn % self.workers.len()].spawn(task)
    }

    /// Ends all worker threads and their tasks.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}
