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

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio::task::JoinHandle;

thread_local! {
    static WORKER: Cell<usize> = const { Cell::new(0) };
}

/// The number of the worker thread that asks, from 0; 0 on any other thread.
#[must_use]
pub fn worker_number() -> usize {
    WORKER.get()
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
    pub fn start(count: usize) -> io::Result<Arc<Self>> {
        let (stop, _) = watch::channel(false);
        let mut workers = Vec::with_capacity(count.max(1));
        for number in 0..count.max(1) {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            workers.push(runtime.handle().clone());
            let mut stopped = stop.subscribe();
            std::thread::Builder::new().name(format!("korum-worker-{number}")).spawn(move || {
                WORKER.set(number);
                // Either a stop or the end of the executor ends the thread, and with it its tasks.
                let _ = runtime.block_on(stopped.wait_for(|&is_stopped| is_stopped));
                runtime.shutdown_background();
            })?;
        }
        Ok(Arc::new(Self { workers, next: AtomicUsize::new(0), stop }))
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
