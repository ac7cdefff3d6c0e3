//! Clients that write down what they called, when, and what came of it: histories for `check`.
//!
//! For: a seeded random workload on a few hot keys, through client ports, cluster ports and the Rust client; clients that
//! wait for what others push.
//! Not here: what happens to the nodes meanwhile; whether the histories are right (`check`).
//! Next: `door` is how a command reaches a node and what its answers mean, `workload` is which command comes next.
//!
//! All times are of this process' monotonic clock, from one moment on.

mod door;
mod workload;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub use door::Door;
pub use workload::Keys;

use crate::check::{Answer, Command, Operation, Outcome};

/// Pause of a client between two operations: at most this.
const PAUSE: Duration = Duration::from_millis(8);
/// Pause of a client whose node does not answer at all.
const AWAY: Duration = Duration::from_millis(20);

/// One operation of one client.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The key.
    pub key: String,
    /// The node whose client port was asked; `None` through other doors, which go where they like.
    pub node: Option<usize>,
    /// What happened.
    pub operation: Operation,
}

/// What was recorded.
#[derive(Default)]
pub struct Record {
    /// All operations, of no particular order.
    pub operations: Vec<Recorded>,
    /// Error replies that no client expects: how each began.
    pub strange: Vec<String>,
}

/// Clients at work.
pub struct Recorder {
    begin: Instant,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Record>>,
}

impl Recorder {
    /// Starts one client per door, with the keys that it uses.
    #[must_use]
    pub fn start(doors: Vec<(Door, Keys)>, seed: u64) -> Self {
        let (begin, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let threads = doors.into_iter().enumerate().map(|(number, (door, keys))| {
            let (stop, random) = (Arc::clone(&stop), StdRng::seed_from_u64(seed ^ (number as u64) << 32));
            let client = Client { number, door, keys, begin, random, calls: 0, record: Record::default() };
            std::thread::spawn(move || client.work(&stop))
        });
        let threads = threads.collect();
        Self { begin, stop, threads }
    }

    /// The moment from which times count.
    #[must_use]
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// Ends the clients after the operations at hand, then reads each one's keys once through each of `last`.
    ///
    /// # Panics
    /// When a client panicked.
    #[must_use]
    pub fn stop(self, last: Vec<(Door, Keys)>) -> Record {
        self.stop.store(true, Ordering::Relaxed);
        let count = self.threads.len();
        let mut record = Record::default();
        let mut add = |more: Record| {
            record.operations.extend(more.operations);
            record.strange.extend(more.strange);
        };
        self.threads.into_iter().for_each(|thread| add(thread.join().expect("a client does not panic")));
        for (number, (door, keys)) in last.into_iter().enumerate() {
            let random = StdRng::seed_from_u64(0);
            let mut client = Client {
                number: count + number,
                door,
                keys: keys.clone(),
                begin: self.begin,
                random,
                calls: 0,
                record: Record::default(),
            };
            for (key, reading) in keys.readings() {
                client.call(key, reading);
            }
            add(client.record);
        }
        record
    }
}

struct Client {
    number: usize,
    door: Door,
    keys: Keys,
    begin: Instant,
    random: StdRng,
    calls: u64,
    record: Record,
}

impl Client {
    fn work(mut self, stop: &AtomicBool) -> Record {
        while !stop.load(Ordering::Relaxed) {
            self.calls += 1;
            let value = format!("c{}n{}.", self.number, self.calls);
            let (key, command) = workload::next(&mut self.random, &self.keys, &value);
            if command.is_plain() || self.door.has_own_connection() {
                self.call(key, command);
            }
            std::thread::sleep(PAUSE.mul_f64(self.random.random()));
        }
        self.record
    }

    fn call(&mut self, key: String, command: Command) {
        if !self.door.is_open() {
            std::thread::sleep(AWAY);
            return;
        }
        let call = self.begin.elapsed();
        let answer = self.door.call(&key, &command);
        let at = self.begin.elapsed();
        let outcome = match answer {
            Answer::Done(reply) => Outcome::Acknowledged { at, reply },
            Answer::NotDone | Answer::Moved(_) => Outcome::Failed,
            Answer::Unknown => Outcome::Unknown,
            Answer::Strange(text) => {
                self.record.strange.push(text);
                Outcome::Unknown
            }
        };
        let operation = Operation { client: self.number, call, command, outcome };
        self.record.operations.push(Recorded { key, node: self.door.node(), operation });
    }
}
