//! One connection, as others see it.
//!
//! For: what `CLIENT LIST` shows of it, and the switches by which others kill or wake it.
//! Not here: all of them together (`clients`), what only its own task sees (`session`).

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use korum_protocol::resp::ProtocolVersion;
use tokio::sync::Notify;

use super::outbox::{Appended, Frame, Limits, Outbox};
use super::pubsub::Counts;
use super::session::PortKind;
use crate::env::Tick;

/// Longest name, library name or version that a client may give itself, bytes.
pub const NAME_BYTES_MAX: usize = 1024;

/// What a client is at the moment, for the `flags` of `CLIENT LIST`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flag {
    /// Its reads may go to replicas.
    ReadOnly = 1,
    /// It listens to channels.
    Subscribed = 2,
    /// It waits in a blocking command.
    Blocked = 4,
    /// It is in a transaction.
    Transaction = 8,
    /// It is not closed to free memory.
    NoEvict = 16,
    /// Its reads do not count as uses.
    NoTouch = 32,
    /// It keeps what it reads, and is told of changes.
    Tracking = 64,
    /// The client that was to get its messages is gone.
    TrackingBroken = 128,
    /// It is told of all keys with its prefixes.
    TrackingAll = 256,
    /// It watches what comes in.
    Monitor = 512,
}

const FLAG_LETTERS: [(Flag, char); 10] = [
    (Flag::Monitor, 'O'),
    (Flag::Subscribed, 'P'),
    (Flag::Transaction, 'x'),
    (Flag::Blocked, 'b'),
    (Flag::Tracking, 't'),
    (Flag::TrackingBroken, 'R'),
    (Flag::TrackingAll, 'B'),
    (Flag::ReadOnly, 'r'),
    (Flag::NoEvict, 'e'),
    (Flag::NoTouch, 'T'),
];

/// Why a blocked client is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unblock {
    /// As if its time had run out.
    Timeout = 1,
    /// With an error.
    Error = 2,
}

/// One connection, as others see it.
pub struct Client {
    /// Its number; never used again.
    pub id: u64,
    /// Its end of the connection.
    pub address: SocketAddr,
    /// Our end.
    pub local: SocketAddr,
    /// The port it came through.
    pub port: PortKind,
    created: Tick,
    last_used: AtomicU64,
    flags: AtomicU32,
    resp: AtomicU8,
    /// The database that it has chosen.
    database: AtomicU8,
    query_bytes: AtomicU64,
    output_bytes: AtomicU64,
    /// Commands queued in a transaction; -1 outside of one.
    queued: AtomicI64,
    watched: AtomicU32,
    transaction_bytes: AtomicU64,
    /// Who gets its messages about what it keeps: another client, 0 for itself, -1 if it keeps nothing.
    redirect: AtomicI64,
    /// Subscriptions, by kind.
    subscriptions: [AtomicUsize; 3],
    /// What others have to say to it; there from the first of it on.
    outbox: OnceLock<Box<Outbox>>,
    unblock: AtomicU8,
    killed: AtomicBool,
    /// Signalled when it is killed or unblocked, or when the first message waits for it.
    wake: Notify,
    labels: Mutex<Labels>,
}

/// The texts of a client; changed rarely, except for the command, which is told once a batch.
#[derive(Default, Clone)]
struct Labels {
    name: String,
    library: String,
    library_version: String,
    command: &'static str,
}

impl Client {
    /// A connection that has not sent anything yet.
    pub(super) fn new(id: u64, address: SocketAddr, local: SocketAddr, port: PortKind, now: Tick) -> Self {
        Self {
            id,
            address,
            local,
            port,
            created: now,
            last_used: AtomicU64::new(now.0),
            flags: AtomicU32::new(0),
            resp: AtomicU8::new(2),
            database: AtomicU8::new(0),
            query_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            queued: AtomicI64::new(-1),
            watched: AtomicU32::new(0),
            transaction_bytes: AtomicU64::new(0),
            redirect: AtomicI64::new(-1),
            subscriptions: Default::default(),
            outbox: OnceLock::new(),
            unblock: AtomicU8::new(0),
            killed: AtomicBool::new(false),
            wake: Notify::new(),
            labels: Mutex::default(),
        }
    }

    fn labels(&self) -> MutexGuard<'_, Labels> {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what it does: once a batch, with the last command (`get`, `client|list`).
    pub fn touch(&self, now: Tick, command: &'static str) {
        self.last_used.store(now.0, Relaxed);
        self.labels().command = command;
    }

    /// When it last sent a command.
    pub fn last_used(&self) -> Tick {
        Tick(self.last_used.load(Relaxed))
    }

    /// Tells how many bytes it holds that are not yet parsed, and not yet sent.
    pub fn set_buffers(&self, query_bytes: usize, output_bytes: usize) {
        self.query_bytes.store(query_bytes as u64, Relaxed);
        self.output_bytes.store(output_bytes as u64, Relaxed);
    }

    /// Tells how many commands it has queued since `MULTI`, how many keys it watches, and what these take.
    pub fn set_transaction(&self, queued: Option<usize>, watched: usize, bytes: usize) {
        self.set_flag(Flag::Transaction, queued.is_some());
        self.queued.store(queued.map_or(-1, |count| count as i64), Relaxed);
        self.watched.store(watched as u32, Relaxed);
        self.transaction_bytes.store(bytes as u64, Relaxed);
    }

    /// Sets or clears a flag.
    pub fn set_flag(&self, flag: Flag, value: bool) {
        if value {
            self.flags.fetch_or(flag as u32, Relaxed);
        } else {
            self.flags.fetch_and(!(flag as u32), Relaxed);
        }
    }

    /// Whether a flag is set.
    pub fn has_flag(&self, flag: Flag) -> bool {
        self.flags.load(Relaxed) & flag as u32 != 0
    }

    /// Tells others which database it has chosen.
    pub fn set_database(&self, database: u8) {
        self.database.store(database, Relaxed);
    }

    /// The database that it has chosen.
    pub fn database(&self) -> u8 {
        self.database.load(Relaxed)
    }

    /// Tells its RESP version.
    pub fn set_version(&self, version: ProtocolVersion) {
        self.resp.store(if version == ProtocolVersion::Resp3 { 3 } else { 2 }, Relaxed);
    }

    /// Its RESP version.
    pub fn version(&self) -> ProtocolVersion {
        if self.resp.load(Relaxed) == 3 { ProtocolVersion::Resp3 } else { ProtocolVersion::Resp2 }
    }

    /// Tells how many subscriptions it has.
    pub fn set_subscriptions(&self, counts: Counts) {
        self.subscriptions.iter().zip(counts.0).for_each(|(to, count)| to.store(count, Relaxed));
        self.set_flag(Flag::Subscribed, counts.total() > 0);
    }

    /// Tells who gets its messages about what it keeps.
    pub fn set_redirect(&self, redirect: i64) {
        self.redirect.store(redirect, Relaxed);
    }

    /// What others have to say to it, if anybody ever had.
    pub fn outbox(&self) -> Option<&Outbox> {
        self.outbox.get().map(Box::as_ref)
    }

    /// Something waits to be written to it.
    pub fn has_messages(&self) -> bool {
        self.outbox().is_some_and(|outbox| !outbox.is_empty())
    }

    /// Hands a message to its connection. True if it is closed instead, since too much waits.
    pub fn push(&self, frame: Frame, limits: &Limits, now: Tick) -> bool {
        match self.outbox.get_or_init(Box::default).append(frame, limits, now) {
            Appended::First => self.wake(),
            Appended::Behind | Appended::Closed => {}
            Appended::Overrun => {
                self.kill();
                return true;
            }
        }
        false
    }

    /// Closes it if more than the soft limit has waited for too long. True if so.
    pub fn close_overrun(&self, limits: &Limits, now: Tick) -> bool {
        let is_over = self.outbox().is_some_and(|outbox| outbox.overruns(limits, now));
        if is_over {
            self.kill();
        }
        is_over
    }

    /// Its name; empty when it has none.
    pub fn name(&self) -> String {
        self.labels().name.clone()
    }

    /// Gives it a name that was found valid.
    pub fn set_name(&self, name: &str) {
        name.clone_into(&mut self.labels().name);
    }

    /// Tells its library's name, found valid.
    pub fn set_library(&self, name: &str) {
        name.clone_into(&mut self.labels().library);
    }

    /// Tells its library's version, found valid.
    pub fn set_library_version(&self, version: &str) {
        version.clone_into(&mut self.labels().library_version);
    }

    /// Asks its task to close it.
    pub fn kill(&self) {
        self.killed.store(true, Relaxed);
        self.wake();
    }

    /// It has to close now.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Relaxed)
    }

    /// Returns when it has been killed. May be dropped at any time.
    pub async fn killed(&self) {
        while !self.is_killed() {
            self.woken().await;
        }
    }

    /// Lets its task look at its state anew, in whatever places it waits; or when it looks next.
    pub fn wake(&self) {
        self.wake.notify_waiters();
        self.wake.notify_one();
    }

    /// Returns when it has been killed, unblocked or woken, or at once if that happened since the last call;
    /// its task then looks which. May be dropped at any time.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Wakes it from a blocking command; false if it is not in one.
    pub fn unblock(&self, why: Unblock) -> bool {
        let blocked = self.has_flag(Flag::Blocked);
        if blocked {
            self.unblock.store(why as u8, Relaxed);
            self.wake();
        }
        blocked
    }

    /// Takes the reason to wake up, if one was given.
    pub fn take_unblock(&self) -> Option<Unblock> {
        match self.unblock.swap(0, Relaxed) {
            0 => None,
            1 => Some(Unblock::Timeout),
            _ => Some(Unblock::Error),
        }
    }

    /// Its line in `CLIENT LIST`, without the line end, in the format of Redis 7.2.
    pub fn line(&self, now: Tick) -> String {
        let labels = self.labels().clone();
        let mut flags: String =
            FLAG_LETTERS.iter().filter(|(flag, _)| self.has_flag(*flag)).map(|(_, letter)| letter).collect();
        if flags.is_empty() {
            flags.push('N');
        }
        let (multi, watch) = (self.queued.load(Relaxed), self.watched.load(Relaxed));
        let transaction = self.transaction_bytes.load(Relaxed);
        let (query, output) = (self.query_bytes.load(Relaxed), self.output_bytes.load(Relaxed));
        let (waiting, messages) =
            self.outbox().map_or((0, 0), |outbox| (outbox.bytes() as u64, outbox.count()));
        let [channels, patterns, shard] = [0, 1, 2].map(|kind: usize| self.subscriptions[kind].load(Relaxed));
        let mut line = String::with_capacity(384);
        let _ = write!(
            line,
            "id={} addr={} laddr={} fd=0 name={} age={} idle={} flags={flags} db={} sub={channels} psub={patterns} ssub={shard} \
             multi={multi} watch={watch} qbuf={query} qbuf-free=0 argv-mem=0 multi-mem={transaction} rbs=0 rbp=0 obl={output} \
             oll={messages} omem={} \
             tot-mem={} events=r cmd={} user=default redir={} resp={} lib-name={} lib-ver={}",
            self.id,
            self.address,
            self.local,
            labels.name,
            now.since(self.created).as_secs(),
            now.since(self.last_used()).as_secs(),
            self.database(),
            output + waiting,
            size_of::<Self>() as u64 + query + output + waiting + transaction,
            if labels.command.is_empty() { "NULL" } else { labels.command },
            self.redirect.load(Relaxed),
            self.resp.load(Relaxed),
            labels.library,
            labels.library_version,
        );
        line
    }
}

/// Whether a name may be shown in a list: visible ASCII without blanks.
#[must_use]
pub fn is_valid_name(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}
