//! The one worker that fetches cluster maps.
//!
//! For: merging any number of wishes for a newer map into one request; pacing; asking members, then seeds.
//! Not here: what is done with a map (`links` installs it), whether to retry (`retry`).
//!
//! Single flight: whoever needs a newer map calls [`Wanted::newer_than`] and waits for the first round that
//! *starts* after the call, or for any newer epoch, whichever comes first.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use korum_protocol::id::Epoch;
use korum_protocol::map::ClusterMap;
use korum_protocol::peer::wire;
use korum_protocol::resp::decode::{Reply, encode_request};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::connection::Link;
use crate::error::AttemptError;
use crate::links::Core;
use crate::retry::with_jitter;
use crate::topology::Topology;

/// Version byte in front of a map on the wire.
const MAP_VERSION: u8 = 1;
/// Topology requests in any second, of one client. One `Client` per process is the rule, so this is per process.
const ASKS_PER_SECOND: usize = 5;
/// Least time between the starts of two rounds: five a second.
const ROUND_EVERY: Duration = Duration::from_millis(200);
/// A node that has not answered for this long is not waited for alone: the next one is asked as well.
const STAGGER: Duration = Duration::from_millis(200);
/// Longest wait for one node's map.
const ASK_DEADLINE: Duration = Duration::from_secs(1);

/// Who wants a newer map, and what came of it.
#[derive(Debug)]
pub(crate) struct Wanted {
    bell: Notify,
    /// Somebody wants to know whether there is a newer map at all.
    poked: AtomicBool,
    /// Somebody needs an epoch of at least this.
    epoch_needed: AtomicU64,
    /// Rounds begun.
    begun: AtomicU64,
    finished: watch::Sender<Finished>,
    /// Who probably has it: the node that redirected somebody.
    hint: Mutex<Option<Link>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Finished {
    round: u64,
    epoch: Epoch,
}

impl Wanted {
    pub(crate) fn new() -> Self {
        Self {
            bell: Notify::new(),
            poked: AtomicBool::new(false),
            epoch_needed: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            finished: watch::Sender::new(Finished::default()),
            hint: Mutex::new(None),
        }
    }

    /// Has a newer map looked for soon; does not wait.
    pub(crate) fn poke(&self) {
        self.poked.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    /// Waits until there is a map newer than `epoch`, or a round that began after this call has ended,
    /// or the deadline. `hint` leads to a node that probably has it.
    pub(crate) async fn newer_than(&self, epoch: Epoch, hint: Option<Link>, deadline: Instant) {
        let mut finished = self.finished.subscribe();
        if finished.borrow().epoch > epoch {
            return;
        }
        if let Some(link) = hint {
            *self.hint.lock().unwrap_or_else(PoisonError::into_inner) = Some(link);
        }
        let round = self.begun.load(Ordering::Acquire) + 1;
        self.epoch_needed.fetch_max(epoch.0 + 1, Ordering::AcqRel);
        self.bell.notify_one();
        let enough = finished.wait_for(|finished| finished.round >= round || finished.epoch > epoch);
        // Neither the deadline nor the end of the worker is an error here: the caller looks at the map it has.
        let _ = timeout_at(deadline, enough).await;
    }

    fn is_needed(&self, epoch: Epoch) -> bool {
        self.poked.load(Ordering::Acquire) || self.epoch_needed.load(Ordering::Acquire) > epoch.0
    }

    fn take_hint(&self) -> Option<Link> {
        self.hint.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs until it is aborted: on demand, and every `settings.refresh_interval` as a belt.
pub(crate) async fn run(core: Arc<Core>) {
    let wanted = &core.wanted;
    let mut pace = Pace::default();
    let mut good: Option<Link> = None;
    let mut last_round = Instant::now();
    loop {
        let periodic = last_round + with_jitter(core.settings.refresh_interval, rand::random());
        tokio::select! {
            () = wanted.bell.notified() => {}
            () = sleep_until(periodic) => wanted.poke(),
        }
        sleep_until(last_round + ROUND_EVERY).await;
        let epoch = core.epoch();
        if !wanted.is_needed(epoch) {
            continue;
        }
        last_round = Instant::now();
        wanted.poked.store(false, Ordering::Release);
        let round = wanted.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let candidates = core.candidates([wanted.take_hint(), good.take()]);
        match fetch(candidates, Some(epoch), &mut pace, last_round + 2 * ASK_DEADLINE).await {
            Ok((link, Some(topology))) => {
                tracing::debug!(from = %link.address(), epoch = %topology.epoch(), "newer cluster map");
                core.install(*topology);
                good = Some(link);
            }
            Ok((_, None)) => {}
            Err(problem) => tracing::warn!(%problem, "no node gave a cluster map; trying again"),
        }
        wanted.finished.send_replace(Finished { round, epoch: core.epoch() });
    }
}

/// Asks the candidates one after the other, the next as soon as one fails or is slow.
/// The first answer counts: a newer map, or `None` when there is nothing newer.
///
/// # Errors
/// In words, when no candidate answered before the deadline.
pub(crate) async fn fetch(
    candidates: Vec<Link>,
    known: Option<Epoch>,
    pace: &mut Pace,
    deadline: Instant,
) -> Result<(Link, Option<Box<Topology>>), String> {
    let mut asked = JoinSet::new();
    let mut candidates = candidates.into_iter().peekable();
    let mut ask_at = Instant::now();
    let mut problem = "no address to ask".to_owned();
    loop {
        let more = candidates.peek().is_some();
        if !more && asked.is_empty() {
            return Err(problem);
        }
        tokio::select! {
            biased;
            Some(answer) = asked.join_next(), if !asked.is_empty() => match answer {
                Ok((link, Answer::Map(topology))) => return Ok((link, topology)),
                Ok((link, Answer::Failed { text, sent })) => {
                    problem = format!("{}: {text}", link.address());
                    if !sent {
                        pace.forgive();
                    }
                    ask_at = Instant::now();
                }
                Err(error) => problem = error.to_string(),
            },
            () = sleep_until(ask_at.max(pace.earliest(Instant::now()))), if more => {
                let now = Instant::now();
                pace.count(now);
                ask_at = now + STAGGER;
                if let Some(link) = candidates.next() {
                    asked.spawn(ask(link, known, now + ASK_DEADLINE));
                }
            }
            () = sleep_until(deadline) => return Err(problem),
        }
    }
}

enum Answer {
    Map(Option<Box<Topology>>),
    Failed { text: String, sent: bool },
}

async fn ask(link: Link, known: Option<Epoch>, deadline: Instant) -> (Link, Answer) {
    let mut request = BytesMut::new();
    match known {
        Some(epoch) => encode_request(&["KORUM", "MAP", &epoch.to_string()], &mut request),
        None => encode_request(&["KORUM", "MAP"], &mut request),
    }
    let mut exchange = link.exchange(request.freeze(), 1, deadline).await;
    let failed = |text: String, sent| Answer::Failed { text, sent };
    let answer = match (exchange.replies.pop(), exchange.failure) {
        (Some(reply), _) => match read_map(&reply) {
            Ok(topology) => Answer::Map(topology),
            Err(text) => failed(text, true),
        },
        (None, Some(error)) => {
            let sent = matches!(error, AttemptError::Unknown { .. });
            failed(error.to_string(), sent)
        }
        (None, None) => failed("no answer".into(), true),
    };
    (link, answer)
}

/// What `KORUM MAP` answered: a map, or null for "not newer than what you have".
fn read_map(reply: &Reply) -> Result<Option<Box<Topology>>, String> {
    match reply {
        Reply::Null => Ok(None),
        Reply::Bulk(bytes) => {
            let (&version, map) = bytes.split_first().ok_or("an empty map")?;
            if version != MAP_VERSION {
                return Err(format!(
                    "a map of version {version}; this client reads version {MAP_VERSION}: update it"
                ));
            }
            let map: ClusterMap = wire::decode(map).map_err(|error| error.to_string())?;
            Topology::new(map).map(|topology| Some(Box::new(topology)))
        }
        Reply::Error(text) => Err(String::from_utf8_lossy(text).into_owned()),
        other => Err(format!("expected a map, got {}", crate::reply::kind(other))),
    }
}

/// At most [`ASKS_PER_SECOND`] in any second.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    asked: VecDeque<Instant>,
}

impl Pace {
    /// The first moment, not before `now`, at which one more is within the limit.
    fn earliest(&self, now: Instant) -> Instant {
        match self.asked.front() {
            Some(&first) if self.asked.len() >= ASKS_PER_SECOND => now.max(first + Duration::from_secs(1)),
            _ => now,
        }
    }

    fn count(&mut self, now: Instant) {
        if self.asked.len() >= ASKS_PER_SECOND {
            self.asked.pop_front();
        }
        self.asked.push_back(now);
    }

    /// The last request was never sent, so it was no load on anybody.
    fn forgive(&mut self) {
        self.asked.pop_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_sees_more_than_five_requests() {
        let mut pace = Pace::default();
        let mut now = Instant::now();
        let mut times = Vec::new();
        for number in 0..40 {
            now = pace.earliest(now + Duration::from_millis(number * 7));
            pace.count(now);
            times.push(now);
        }
        assert!(times.windows(6).all(|six| six[5] - six[0] >= Duration::from_secs(1)));
    }

    #[test]
    fn what_is_no_map_is_refused_in_words() {
        assert!(matches!(read_map(&Reply::Null), Ok(None)));
        for bytes in [&b""[..], b"\x02abc", b"\x01", b"\x01\xff\xff\xff\xff"] {
            assert!(read_map(&Reply::Bulk(bytes::Bytes::copy_from_slice(bytes))).is_err());
        }
        assert!(read_map(&Reply::Integer(3)).is_err());
    }
}
