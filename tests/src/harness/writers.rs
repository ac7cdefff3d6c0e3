//! Writers that remember every acknowledged write.
//!
//! For: "nothing acknowledged is lost". What may be read of a key afterwards: its last acknowledged value, or one whose
//! outcome is unknown (such a write may take effect at any time after it was sent). Not here: what happens to the nodes meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::resp::{Connection, Reply};
use super::wait;

/// What the writers do.
#[derive(Clone)]
pub struct Load {
    /// Threads, each with one connection and keys of its own.
    pub writers: usize,
    /// Keys of each writer, written round and round.
    pub keys: u32,
    /// Writes per second of all together; `None`: as fast as they go. What a wait held up is made up for afterwards, so
    /// this is reached as long as `writers * pipeline` writes take less than their part of a second.
    pub rate: Option<u64>,
    /// Writes that are sent together.
    pub pipeline: usize,
    /// Length of each value, bytes; shorter ones are padded.
    pub value_bytes: usize,
    /// Begins each key; several loads on one cluster need several.
    pub name: &'static str,
}

impl Default for Load {
    fn default() -> Self {
        Self { writers: 4, keys: 2_000, rate: None, pipeline: 1, value_bytes: 1, name: "w" }
    }
}

/// Writers at work.
pub struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<(Arc<AtomicU64>, JoinHandle<History>)>,
}

/// What one writer saw.
#[derive(Default)]
pub struct History {
    prefix: String,
    /// The last acknowledged value of each key.
    acknowledged: Vec<Option<u64>>,
    unknown: BTreeMap<u32, Vec<u64>>,
    /// When each acknowledgement came.
    pub times: Vec<Instant>,
    /// The longest time from sending a batch to its last reply, or to giving its connection up, and when it began.
    pub longest_wait: Option<(Duration, Instant)>,
    /// Error replies.
    pub errors: Vec<String>,
    /// Connections that ended or waited too long.
    pub disconnects: usize,
}

impl Writers {
    /// Starts them; each begins at another of the client ports and goes on to the next when its connection ends.
    #[must_use]
    pub fn start(ports: &[u16], load: &Load) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..load.writers).map(|number| {
            let (stop, load, mut ports) = (Arc::clone(&stop), load.clone(), ports.to_vec());
            let turn = number % ports.len();
            ports.rotate_left(turn);
            let count = Arc::new(AtomicU64::new(0));
            let counted = Arc::clone(&count);
            let name = format!("{}{number}", load.name);
            (count, std::thread::spawn(move || write(&name, &ports, &load, &stop, &counted)))
        });
        let threads = threads.collect();
        Self { stop, threads }
    }

    /// Waits until every writer has had `count` more acknowledgements.
    ///
    /// # Panics
    /// When one has not after `limit`.
    pub fn wait_each(&self, count: u64, limit: Duration) {
        let counts = || self.threads.iter().map(|(count, _)| count.load(Ordering::Relaxed));
        let goals: Vec<u64> = counts().map(|now| now + count).collect();
        wait::until(&format!("{count} more acknowledgements for each writer"), limit, || {
            let missing: Vec<u64> =
                counts().zip(&goals).map(|(now, goal)| goal.saturating_sub(now)).collect();
            if missing.iter().all(|&missing| missing == 0) {
                Ok(())
            } else {
                Err(format!("the writers miss {missing:?}"))
            }
        });
    }

    /// Ends them after the writes at hand.
    ///
    /// # Panics
    /// When one panicked.
    #[must_use]
    pub fn stop(self) -> Vec<History> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.threads.into_iter().map(|(_, thread)| thread.join());
        ended.map(|history| history.expect("a writer does not panic")).collect()
    }
}

/// Acknowledged writes per second of all writers between two moments.
#[must_use]
pub fn rate(histories: &[History], from: Instant, to: Instant) -> f64 {
    let times = histories.iter().flat_map(|history| &history.times);
    times.filter(|&&time| from <= time && time < to).count() as f64 / (to - from).as_secs_f64()
}

/// The longest wait of all writers, and when it began.
#[must_use]
pub fn longest_wait(histories: &[History]) -> Option<(Duration, Instant)> {
    histories.iter().filter_map(|history| history.longest_wait).max()
}

impl History {
    /// The longest time without an acknowledgement, from the last one before `event` on.
    #[must_use]
    pub fn gap(&self, event: Instant) -> Duration {
        let first = self.times.iter().rposition(|&time| time <= event).unwrap_or(0);
        let later = &self.times[first..];
        if later.len() < 2 {
            return Duration::MAX; // nothing was acknowledged afterwards
        }
        later.windows(2).map(|two| two[1] - two[0]).max().unwrap_or(Duration::MAX)
    }

    /// The longest time without an acknowledgement that began before `until` and did not end before `event`, and when it
    /// began.
    #[must_use]
    pub fn gap_between(&self, event: Instant, until: Instant) -> (Duration, Instant) {
        let gaps = self.times.windows(2).filter(|two| two[1] > event && two[0] < until);
        gaps.map(|two| (two[1] - two[0], two[0])).max().unwrap_or((Duration::MAX, event))
    }

    /// Keys with an acknowledged write.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.acknowledged.iter().flatten().count()
    }

    /// What cannot be read at this port as it should be, in words.
    ///
    /// # Panics
    /// When the port does not answer.
    #[must_use]
    pub fn lost(&self, port: u16) -> Vec<String> {
        let mut connection = Connection::to(port).expect("the port answers");
        connection.patience(Duration::from_secs(30)).expect("a timeout");
        let written = (0_u32..).zip(&self.acknowledged).filter_map(|(key, written)| Some((key, (*written)?)));
        let written: Vec<(u32, u64)> = written.collect();
        let mut lost = Vec::new();
        for part in written.chunks(500) {
            let reads: Vec<_> =
                part.iter().map(|&(key, _)| vec![b"GET".to_vec(), self.name_of(key).into_bytes()]).collect();
            let replies = connection.pipeline(&reads).expect("reads are answered");
            for (&(key, written), reply) in part.iter().zip(replies) {
                let found = reply.text().parse::<u64>();
                let unknown = self.unknown.get(&key).map_or(&[][..], Vec::as_slice);
                if !found.is_ok_and(|found| found == written || unknown.contains(&found)) {
                    lost.push(format!("{}: {written} was acknowledged, found {reply:?}", self.name_of(key)));
                }
            }
        }
        lost
    }

    fn name_of(&self, key: u32) -> String {
        format!("{}:{key}", self.prefix)
    }
}

/// Panics when anything acknowledged cannot be read at the port; returns how many keys were checked.
///
/// # Panics
/// That is what it is for.
pub fn assert_nothing_lost(histories: &[History], port: u16) -> usize {
    let lost: Vec<String> = histories.iter().flat_map(|history| history.lost(port)).collect();
    let total = histories.iter().map(History::keys).sum();
    assert!(
        lost.is_empty(),
        "{} of {total} acknowledged writes are lost: {:?}",
        lost.len(),
        &lost[..lost.len().min(5)]
    );
    assert!(total > 0, "nothing was acknowledged at all");
    total
}

/// Panics when a writer saw an error reply or lost its connection.
///
/// # Panics
/// That is what it is for.
pub fn assert_no_errors(histories: &[History]) {
    let errors: Vec<&String> = histories.iter().flat_map(|history| &history.errors).collect();
    assert!(errors.is_empty(), "{} error replies, the first: {}", errors.len(), errors[0]);
    let disconnects: usize = histories.iter().map(|history| history.disconnects).sum();
    assert_eq!(disconnects, 0, "connections that ended or waited too long");
}

fn write(name: &str, ports: &[u16], load: &Load, stop: &AtomicBool, count: &AtomicU64) -> History {
    let acknowledged = vec![None; load.keys as usize];
    let mut history = History { prefix: name.to_owned(), acknowledged, ..History::default() };
    let mut connection: Option<Connection> = None;
    let (mut turn, mut number) = (0, 0_u64);
    let pause =
        load.rate.map(|rate| Duration::from_secs_f64((load.pipeline * load.writers) as f64 / rate as f64));
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        if let Some(pause) = pause {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            next += pause;
        }
        if connection.is_none() {
            connection = Connection::to(ports[turn % ports.len()]).ok();
            turn += 1;
        }
        let Some(open) = connection.as_mut() else {
            history.disconnects += 1;
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        let values = number..number + load.pipeline as u64;
        let batch: Vec<_> = values.map(|value| ((value % u64::from(load.keys)) as u32, value)).collect();
        number += load.pipeline as u64;
        let begin = Instant::now();
        let is_good = send(open, &batch, load.value_bytes, &mut history);
        history.longest_wait = history.longest_wait.max(Some((begin.elapsed(), begin)));
        count.store(history.times.len() as u64, Ordering::Relaxed);
        if !is_good {
            history.disconnects += 1;
            connection = None;
        }
    }
    history
}

/// Sends a batch and takes the replies; false when the connection is of no use any more.
fn send(connection: &mut Connection, batch: &[(u32, u64)], width: usize, history: &mut History) -> bool {
    let mut bytes = Vec::new();
    for &(key, value) in batch {
        let (key, value) = (history.name_of(key), format!("{value:0width$}"));
        bytes.extend_from_slice(&super::resp::encode(&[b"SET", key.as_bytes(), value.as_bytes()]));
    }
    let mut is_good = connection.send(&bytes).is_ok();
    for &(key, value) in batch {
        let reply = if is_good { connection.reply() } else { Err(std::io::ErrorKind::BrokenPipe.into()) };
        match reply {
            Ok(Reply::Error(text)) => history.errors.push(text),
            Ok(_) => {
                // an earlier write whose outcome is unknown may still take effect, so only this one is known
                history.acknowledged[key as usize] = Some(value);
                history.times.push(Instant::now());
                continue;
            }
            Err(_) => is_good = false,
        }
        history.unknown.entry(key).or_default().push(value);
    }
    is_good
}
