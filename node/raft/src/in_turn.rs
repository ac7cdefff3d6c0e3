//! Work that is done in turn, off the caller's thread.
//!
//! For: the seam at which a simulation stands. A thread does the work; in a simulation, where one thread runs
//! everything, whoever hands it over does it.
//! Not here: the work (`whole_files`).

/// Nobody does the work any more.
#[derive(Debug)]
pub struct Ended;

#[cfg(not(feature = "sim"))]
mod thread {
    use std::io;
    use std::thread::{Builder, JoinHandle};

    use tokio::sync::mpsc;

    use super::Ended;

    /// The way to the thread, which ends when the last of these is dropped.
    pub struct InTurn<T>(mpsc::Sender<T>);

    impl<T: Send + 'static> InTurn<T> {
        /// Starts the thread. Whoever hands over more than `waiting_max` things waits.
        pub fn start(
            name: &str,
            waiting_max: usize,
            mut work: impl FnMut(T) + Send + 'static,
        ) -> io::Result<(Self, JoinHandle<()>)> {
            let (send, mut queue) = mpsc::channel(waiting_max);
            let thread = Builder::new().name(name.to_owned()).spawn(move || {
                while let Some(next) = queue.blocking_recv() {
                    work(next);
                }
            })?;
            Ok((Self(send), thread))
        }

        /// Hands something over.
        pub async fn give(&self, next: T) -> Result<(), Ended> {
            self.0.send(next).await.map_err(|_| Ended)
        }

        /// The same, on a thread that may block.
        pub fn give_blocking(&self, next: T) -> Result<(), Ended> {
            self.0.blocking_send(next).map_err(|_| Ended)
        }
    }

    impl<T> Clone for InTurn<T> {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    /// The thread, to wait for.
    pub type Thread = JoinHandle<()>;
}

#[cfg(feature = "sim")]
mod at_once {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::Ended;

    type Work<T> = Box<dyn FnMut(T) + Send>;

    /// The way to the work.
    pub struct InTurn<T>(Arc<Mutex<Work<T>>>);

    impl<T: Send + 'static> InTurn<T> {
        /// Starts nothing.
        pub fn start(_: &str, _: usize, work: impl FnMut(T) + Send + 'static) -> io::Result<(Self, Thread)> {
            Ok((Self(Arc::new(Mutex::new(Box::new(work)))), ()))
        }

        /// Does it.
        pub async fn give(&self, next: T) -> Result<(), Ended> {
            self.give_blocking(next)
        }

        /// Does it.
        pub fn give_blocking(&self, next: T) -> Result<(), Ended> {
            let mut work = self.0.lock().map_err(|_| Ended)?;
            work(next);
            Ok(())
        }
    }

    impl<T> Clone for InTurn<T> {
        fn clone(&self) -> Self {
            Self(Arc::clone(&self.0))
        }
    }

    /// There is no thread.
    pub type Thread = ();
}

#[cfg(feature = "sim")]
pub use at_once::{InTurn, Thread};
#[cfg(not(feature = "sim"))]
pub use thread::{InTurn, Thread};
