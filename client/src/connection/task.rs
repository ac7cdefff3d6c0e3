//! The task that owns one node's socket.
//!
//! For: connecting on demand with back-off, coalescing requests into few writes, reading replies, noticing stalls.
//! Not here: the order of replies (`in_flight`), what callers make of failures.
//!
//! It ends when every [`super::Link`] is gone and nothing is in flight, or when it is aborted.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use korum_protocol::resp::decode::Reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::handshake::{self, Opened};
use super::in_flight::InFlight;
use super::{Exchange, Job, LinkSettings, Replies};
use crate::error::AttemptError;
use crate::refresh::Wanted;
use crate::retry::{backoff, with_jitter};

/// Requests in flight on one connection; as many again wait in the queue.
const IN_FLIGHT_MAX: usize = 4_096;
/// Requests taken from the queue at once.
const TAKE_MAX: usize = 256;
/// No more requests are taken while this many bytes wait to be written. One request may go beyond it.
const OUT_BYTES_MAX: usize = 256 << 10;
/// Room offered to each read, bytes.
const READ_BYTES: usize = 16 << 10;
/// How often stalls are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// No byte for this long while requests wait: time to ask for a newer map. A healthy node answers in milliseconds.
const STALL: Duration = Duration::from_millis(200);
/// First pause after a failed connect.
const BACKOFF_FIRST: Duration = Duration::from_millis(10);
/// Longest pause between connects: a node that returns is used again within a second.
const BACKOFF_LONGEST: Duration = Duration::from_secs(1);

/// Runs until all links are gone.
pub(super) async fn run(
    address: Arc<str>,
    settings: Arc<LinkSettings>,
    wanted: Arc<Wanted>,
    mut jobs: mpsc::Receiver<Job>,
) {
    let mut failures = 0;
    // Nothing is connected until somebody asks.
    while let Some(job) = jobs.recv().await {
        let error = match handshake::open(&address, &settings).await {
            Ok(opened) => {
                let mut connection = Connection::new(&address, &settings, &wanted, opened);
                connection.take(job);
                let end = connection.serve(&mut jobs).await;
                connection.in_flight.fail_all(connection.written, &address, &end.reason());
                if connection.answered {
                    failures = 0;
                    continue;
                }
                AttemptError::NotSent { node: address.clone(), reason: end.reason() }
            }
            Err(error) => {
                refuse(job, &error);
                error
            }
        };
        tracing::debug!(node = %address, %error, "no connection");
        failures += 1;
        let pause = with_jitter(backoff(failures - 1, BACKOFF_FIRST, BACKOFF_LONGEST), rand::random());
        if !refuse_until(Instant::now() + pause, &mut jobs, &error).await {
            return;
        }
    }
}

/// Answers at once what comes during the pause: its caller knows better than to wait here.
/// False when all links are gone.
async fn refuse_until(end: Instant, jobs: &mut mpsc::Receiver<Job>, error: &AttemptError) -> bool {
    let pause = sleep_until(end);
    tokio::pin!(pause);
    loop {
        tokio::select! {
            biased;
            job = jobs.recv() => match job {
                Some(job) => refuse(job, error),
                None => return false,
            },
            () = &mut pause => return true,
        }
    }
}

fn refuse(job: Job, error: &AttemptError) {
    let _ = job.reply.send(Exchange { replies: Replies::new(), failure: Some(error.clone()) });
}

/// Why a connection ended.
enum End {
    /// All links are gone and everything is answered.
    Done,
    /// The node closed it.
    Closed,
    /// The socket failed.
    Socket(std::io::Error),
    /// The node sent what is no reply, or more replies than requests.
    Nonsense(String),
    /// A request is far beyond its deadline.
    Overdue,
}

impl End {
    fn reason(&self) -> Arc<str> {
        match self {
            Self::Done => "the client was closed".into(),
            Self::Closed => "the node closed the connection".into(),
            Self::Socket(error) => error.to_string().into(),
            Self::Nonsense(what) => what.as_str().into(),
            Self::Overdue => "it did not answer long after the deadline".into(),
        }
    }
}

struct Connection<'a> {
    address: &'a Arc<str>,
    settings: &'a LinkSettings,
    wanted: &'a Wanted,
    opened: Opened,
    out: BytesMut,
    /// Bytes that were put into `out`, and that the socket took.
    queued: u64,
    written: u64,
    in_flight: InFlight,
    /// When the node last showed a sign of life, or was first asked after an idle time.
    last_sign: Instant,
    answered: bool,
}

impl<'a> Connection<'a> {
    fn new(address: &'a Arc<str>, settings: &'a LinkSettings, wanted: &'a Wanted, opened: Opened) -> Self {
        Self {
            address,
            settings,
            wanted,
            opened,
            out: BytesMut::with_capacity(READ_BYTES),
            queued: 0,
            written: 0,
            in_flight: InFlight::default(),
            last_sign: Instant::now(),
            answered: false,
        }
    }

    /// Puts a request into the outgoing bytes, unless its caller has left.
    fn take(&mut self, job: Job) {
        if job.reply.is_closed() || !job.progress.send() {
            return;
        }
        if self.in_flight.is_empty() {
            self.last_sign = Instant::now();
        }
        let start = self.queued;
        self.out.extend_from_slice(&job.bytes);
        self.queued += job.bytes.len() as u64;
        self.in_flight.push(job, start);
    }

    async fn serve(&mut self, jobs: &mut mpsc::Receiver<Job>) -> End {
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(TAKE_MAX);
        let mut open = true;
        if let Err(end) = self.read_replies() {
            return end;
        }
        loop {
            if !open && self.in_flight.is_empty() {
                return End::Done;
            }
            let room = open && self.in_flight.len() < IN_FLIGHT_MAX && self.out.len() < OUT_BYTES_MAX;
            if self.opened.input.capacity() - self.opened.input.len() < READ_BYTES / 4 {
                self.opened.input.reserve(READ_BYTES);
            }
            let (mut reader, mut writer) = self.opened.stream.split();
            // Every branch is safe to drop: nothing is read, written or taken unless it completes.
            tokio::select! {
                read = reader.read_buf(&mut self.opened.input) => match read {
                    Ok(0) => return End::Closed,
                    Ok(_) => {
                        self.last_sign = Instant::now();
                        if let Err(end) = self.read_replies() {
                            return end;
                        }
                    }
                    Err(error) => return End::Socket(error),
                },
                write = writer.write_buf(&mut self.out), if !self.out.is_empty() => match write {
                    Ok(count) => self.written += count as u64,
                    Err(error) => return End::Socket(error),
                },
                taken = jobs.recv_many(&mut batch, TAKE_MAX), if room => {
                    open = taken > 0;
                    batch.drain(..).for_each(|job| self.take(job));
                }
                _ = look.tick(), if !self.in_flight.is_empty() => {
                    if self.is_overdue(Instant::now()) {
                        return End::Overdue;
                    }
                }
            }
        }
    }

    /// Hands out all whole replies that have arrived.
    fn read_replies(&mut self) -> Result<(), End> {
        let Opened { input, decoder, .. } = &mut self.opened;
        while let Some(reply) = decoder.decode(input).map_err(|error| End::Nonsense(error.to_string()))? {
            if let Reply::Push(_) = reply {
                tracing::trace!(node = %self.address, "a push message that nobody subscribed to");
                continue;
            }
            if !self.in_flight.answer(reply) {
                return Err(End::Nonsense("it answered what was not asked".into()));
            }
            self.answered = true;
        }
        Ok(())
    }

    /// Asks for a newer map when the node is silent; true when it has been silent for far too long.
    fn is_overdue(&self, now: Instant) -> bool {
        let silent = now.saturating_duration_since(self.last_sign);
        if silent >= STALL {
            self.wanted.poke();
        }
        let overdue = self
            .in_flight
            .oldest_deadline()
            .is_some_and(|deadline| now > deadline + self.settings.overdue_grace);
        overdue && silent > self.settings.overdue_grace
    }
}
