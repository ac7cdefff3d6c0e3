//! One node, one socket, many callers.
//!
//! For: [`Link`], through which any number of tasks send requests to one node; all share one pipelined connection.
//! Not here: which node (`target`), what is tried again (`retry`).
//! Next: `task` runs the socket; `in_flight` matches replies to requests in order; `handshake` opens it.
//!
//! ```text
//! callers --bounded queue--> task --one write for all that waits--> node
//!    ^                        |
//!    +------- oneshot --------+<------- replies, in order ---------
//! ```

mod handshake;
mod in_flight;
mod task;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::resp::decode::Reply;
use smallvec::SmallVec;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use crate::error::AttemptError;
use crate::refresh::Wanted;

/// Requests that may wait for one node's task. Beyond it, callers wait: only those of this node.
const QUEUE_REQUESTS_MAX: usize = 4_096;

/// Replies of one request; nearly always one.
pub(crate) type Replies = SmallVec<[Reply; 1]>;

/// What a connection needs to know besides its address.
#[derive(Clone, Debug)]
pub(crate) struct LinkSettings {
    /// Longest time to connect, resolve the name and shake hands.
    pub(crate) connect_deadline: Duration,
    /// A request this far beyond its deadline, without a byte arriving, closes the connection.
    pub(crate) overdue_grace: Duration,
    /// `AUTH` on every connection.
    pub(crate) credentials: Option<(String, String)>,
    /// `CLIENT SETNAME` on every connection.
    pub(crate) name: Option<String>,
}

/// What one request brought: as many replies as came, and why the rest did not.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Replies, in the order of the commands.
    pub(crate) replies: Replies,
    /// Holds for all commands without a reply; `None` if there are none.
    pub(crate) failure: Option<AttemptError>,
}

/// How far a request has come; decides whether a lost one was surely not executed.
#[derive(Debug, Default)]
struct Progress(AtomicU8);

impl Progress {
    const QUEUED: u8 = 0;
    const SENT: u8 = 1;
    const WITHDRAWN: u8 = 2;

    /// The task takes it to the socket; false if its caller has withdrawn it.
    fn send(&self) -> bool {
        self.advance(Self::SENT)
    }

    /// The caller takes it back; false if it may be on its way.
    fn withdraw(&self) -> bool {
        self.advance(Self::WITHDRAWN)
    }

    fn advance(&self, to: u8) -> bool {
        let before = self.0.compare_exchange(Self::QUEUED, to, Ordering::AcqRel, Ordering::Acquire);
        before.is_ok() || before == Err(to)
    }
}

/// One request in the queue: `count` commands whose bytes stand one after the other.
#[derive(Debug)]
struct Job {
    bytes: Bytes,
    count: usize,
    deadline: Instant,
    progress: Arc<Progress>,
    reply: oneshot::Sender<Exchange>,
}

/// The way to one node. Cheap to clone; the task ends when the last clone is gone and all is answered or overdue.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    queue: mpsc::Sender<Job>,
    address: Arc<str>,
    task: AbortHandle,
}

impl Link {
    /// Starts the task of one node. It connects when the first request comes.
    /// `wanted` is told when the node stalls, so that a newer map is looked for while requests still wait.
    pub(crate) fn start(address: &str, settings: Arc<LinkSettings>, wanted: Arc<Wanted>) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUE_REQUESTS_MAX);
        let address: Arc<str> = address.into();
        let task = tokio::spawn(task::run(address.clone(), settings, wanted, jobs)).abort_handle();
        Self { queue, address, task }
    }

    /// Where it leads.
    pub(crate) fn address(&self) -> &Arc<str> {
        &self.address
    }

    /// Gives the node up: what was sent has an unknown outcome at once, what was not sent was not.
    pub(crate) fn abandon(&self) {
        self.task.abort();
    }

    /// Sends `count` commands and waits for their replies until `deadline`.
    ///
    /// When the future is dropped, a request that is still queued is not sent; one that was sent may be executed,
    /// and its reply is thrown away when it comes.
    pub(crate) async fn exchange(&self, bytes: Bytes, count: usize, deadline: Instant) -> Exchange {
        let (reply, answer) = oneshot::channel();
        let progress = Arc::new(Progress::default());
        let job = Job { bytes, count, deadline, progress: progress.clone(), reply };
        let job = match self.queue.try_send(job) {
            Ok(()) => None,
            Err(mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job)) => Some(job),
        };
        if let Some(job) = job {
            match timeout_at(deadline, self.queue.send(job)).await {
                Ok(Ok(())) => {}
                Ok(Err(_closed)) => return self.not_sent("the cluster map says that the node is gone"),
                Err(_elapsed) => return self.not_sent("its queue was full until the deadline"),
            }
        }
        let lost = match timeout_at(deadline, answer).await {
            Ok(Ok(exchange)) => return exchange,
            Ok(Err(_dropped)) => "the node was given up: it is down or was replaced",
            Err(_elapsed) => "the deadline passed",
        };
        if progress.withdraw() { self.not_sent(lost) } else { self.unknown(lost) }
    }

    fn not_sent(&self, reason: &str) -> Exchange {
        let failure = AttemptError::NotSent { node: self.address.clone(), reason: reason.into() };
        Exchange { replies: Replies::new(), failure: Some(failure) }
    }

    fn unknown(&self, reason: &str) -> Exchange {
        let failure = AttemptError::Unknown { node: self.address.clone(), reason: reason.into() };
        Exchange { replies: Replies::new(), failure: Some(failure) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_either_sent_or_withdrawn() {
        let progress = Progress::default();
        assert!(progress.send());
        assert!(!progress.withdraw());
        let progress = Progress::default();
        assert!(progress.withdraw());
        assert!(!progress.send());
    }
}
