//! All wires of the world.
//!
//! For: connections as ordered queues of bytes, and what the world does to them: it delivers, holds, resets, refuses.
//! Not here: what the ends of connections do (`ends`), the types that nodes see (`stream`).
//!
//! TCP hides loss, copies and disorder behind delay; so a wire here delays, holds back, or breaks, and never
//! loses a byte in the middle. Everything is done by events in the order of their moment, then of their making.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::task::Waker;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

mod ends;
mod wire;

pub use wire::Wire;

/// Connections that wait to be accepted.
const BACKLOG_MAX: usize = 128;

thread_local! {
    static NETWORK: RefCell<Network> = RefCell::new(Network::new(0));
}

/// Works on the network of this thread's world; what is to be woken is woken afterwards.
pub fn network<T>(work: impl FnOnce(&mut Network) -> T) -> T {
    let (value, wakers) = NETWORK.with(|network| {
        let mut network = network.borrow_mut();
        let value = work(&mut network);
        (value, std::mem::take(&mut network.woken))
    });
    wakers.into_iter().for_each(Waker::wake);
    value
}

#[derive(Debug)]
enum Event {
    Bytes(u64, Vec<u8>),
    End(u64),
    Reset(u64),
    Syn(u64, SocketAddr, SocketAddr),
    Answer(u64, bool),
}

impl Event {
    /// The connection that it belongs to.
    fn connection(&self) -> u64 {
        match self {
            Self::Bytes(pipe, _) | Self::End(pipe) | Self::Reset(pipe) => pipe / 2,
            Self::Syn(dial, ..) | Self::Answer(dial, _) => *dial,
        }
    }
}

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Pipe {
    from: Ipv4Addr,
    to: Ipv4Addr,
    /// The other direction.
    twin: u64,
    arrived: VecDeque<u8>,
    /// Written and not read yet.
    held_bytes: usize,
    /// Nothing is delivered before this.
    last_due: u64,
    ended: bool,
    pub(super) end_sent: bool,
    reset: bool,
    reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Debug, Default)]
struct Dial {
    answer: Option<bool>,
    waker: Option<Waker>,
}

#[derive(Debug, Default)]
struct Backlog {
    waiting: VecDeque<(u64, SocketAddr)>,
    waker: Option<Waker>,
}

/// The network of a world.
#[derive(Debug)]
pub struct Network {
    now_us: u64,
    chance: SmallRng,
    made: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    contents: BTreeMap<u64, (Ipv4Addr, Ipv4Addr, Event)>,
    held: BTreeMap<(Ipv4Addr, Ipv4Addr), VecDeque<Event>>,
    wires: BTreeMap<(Ipv4Addr, Ipv4Addr), Wire>,
    /// Connections of which nothing arrives, and what would have.
    stalled: BTreeMap<u64, VecDeque<(Ipv4Addr, Ipv4Addr, Event)>>,
    off: BTreeSet<Ipv4Addr>,
    pipes: BTreeMap<u64, Pipe>,
    dials: BTreeMap<u64, Dial>,
    listeners: BTreeMap<SocketAddr, Backlog>,
    ports: BTreeMap<Ipv4Addr, u16>,
    woken: Vec<Waker>,
    /// A hash of everything that was delivered so far, in order.
    pub trace: u64,
    /// Messages delivered so far.
    pub delivered: u64,
}

impl Network {
    /// An empty network.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            now_us: 0,
            chance: SmallRng::seed_from_u64(seed),
            made: 0,
            events: BinaryHeap::new(),
            contents: BTreeMap::new(),
            held: BTreeMap::new(),
            wires: BTreeMap::new(),
            stalled: BTreeMap::new(),
            off: BTreeSet::new(),
            pipes: BTreeMap::new(),
            dials: BTreeMap::new(),
            listeners: BTreeMap::new(),
            ports: BTreeMap::new(),
            woken: Vec::new(),
            trace: 0xcbf2_9ce4_8422_2325,
            delivered: 0,
        }
    }

    /// Puts a new network in this one's place.
    pub fn renew(&mut self, seed: u64) {
        *self = Self::new(seed);
    }

    // What the world does.

    /// Mixes a decision of the world into the trace.
    pub fn note(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.trace = (self.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Delivers everything that is due at `now_us`.
    pub fn deliver(&mut self, now_us: u64) {
        self.now_us = now_us;
        while let Some(&Reverse((due, id))) = self.events.peek() {
            if due > now_us {
                return;
            }
            self.events.pop();
            if let Some((from, to, event)) = self.contents.remove(&id) {
                if let Some(waiting) = self.stalled.get_mut(&event.connection()) {
                    waiting.push_back((from, to, event));
                } else if self.wire(from, to).held {
                    self.held.entry((from, to)).or_default().push_back(event);
                } else {
                    self.arrive(from, to, event);
                }
            }
        }
    }

    /// How one direction between two machines is.
    #[must_use]
    pub fn wire(&self, from: Ipv4Addr, to: Ipv4Addr) -> Wire {
        self.wires.get(&(from, to)).copied().unwrap_or_default()
    }

    /// Changes one direction. What was held is on its way again when it is held no more.
    pub fn set_wire(&mut self, from: Ipv4Addr, to: Ipv4Addr, wire: Wire) {
        self.wires.insert((from, to), wire);
        if !wire.held {
            for event in self.held.remove(&(from, to)).unwrap_or_default() {
                self.send(from, to, event);
            }
        }
    }

    /// Breaks all connections between two machines; both ends see a reset.
    pub fn cut(&mut self, one: Ipv4Addr, other: Ipv4Addr) {
        let between: Vec<u64> = self
            .pipes
            .iter()
            .filter(|(_, pipe)| (pipe.from, pipe.to) == (one, other) || (pipe.from, pipe.to) == (other, one))
            .map(|(&id, _)| id)
            .collect();
        between.into_iter().for_each(|id| self.reset(id));
    }

    /// From now on nothing arrives on one of the connections between two machines, while the others go on. Gives its
    /// number, for [`Network::go_on`].
    pub fn stall(&mut self, one: Ipv4Addr, other: Ipv4Addr) -> Option<u64> {
        let between: Vec<u64> = self
            .pipes
            .iter()
            .filter(|(id, _)| id.is_multiple_of(2) && !self.stalled.contains_key(&(*id / 2)))
            .filter(|(_, pipe)| (pipe.from, pipe.to) == (one, other) || (pipe.from, pipe.to) == (other, one))
            .map(|(&id, _)| id / 2)
            .collect();
        if between.is_empty() {
            return None;
        }
        let connection = between[self.chance.random_range(0..between.len())];
        self.stalled.insert(connection, VecDeque::new());
        Some(connection)
    }

    /// What was sent on a stalled connection arrives.
    pub fn go_on(&mut self, connection: u64) {
        for (from, to, event) in self.stalled.remove(&connection).unwrap_or_default() {
            self.send(from, to, event);
        }
    }

    /// The machine loses power: nothing that it sent and has not arrived ever will, and it answers nothing.
    pub fn power_off(&mut self, ip: Ipv4Addr) {
        self.off.insert(ip);
        self.contents.retain(|_, (from, to, _)| *from != ip && *to != ip);
        self.held.retain(|(from, to), _| *from != ip && *to != ip);
        for waiting in self.stalled.values_mut() {
            waiting.retain(|(from, to, _)| *from != ip && *to != ip);
        }
    }

    /// The machine is back; it knows nothing of its old connections, and says so to whoever has one.
    pub fn power_on(&mut self, ip: Ipv4Addr) {
        if self.off.remove(&ip) {
            let old: Vec<u64> = self
                .pipes
                .iter()
                .filter(|(_, pipe)| pipe.from == ip || pipe.to == ip)
                .map(|(&id, _)| id)
                .collect();
            old.into_iter().for_each(|id| self.reset(id));
        }
    }

    /// Connections that are open, in whole or in part.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.pipes.len() / 2
    }

    fn reset(&mut self, id: u64) {
        if let Some(pipe) = self.pipes.get_mut(&id) {
            pipe.reset = true;
            pipe.arrived.clear();
            self.woken.extend(pipe.reader.take());
            self.woken.extend(pipe.writer.take());
        }
    }

    fn send(&mut self, from: Ipv4Addr, to: Ipv4Addr, event: Event) {
        if self.off.contains(&from) || self.off.contains(&to) {
            return;
        }
        let wire = self.wire(from, to);
        if wire.held {
            self.held.entry((from, to)).or_default().push_back(event);
            return;
        }
        let mut delay = wire.delay_us + self.chance.random_range(0..=wire.jitter_us);
        if self.chance.random_range(0..1000) < wire.late_permille {
            delay += self.chance.random_range(0..wire.late_us);
        }
        let mut due = self.now_us + delay;
        if let Event::Bytes(id, _) | Event::End(id) | Event::Reset(id) = event
            && let Some(pipe) = self.pipes.get_mut(&id)
        {
            due = due.max(pipe.last_due);
            pipe.last_due = due;
        }
        self.made += 1;
        self.events.push(Reverse((due, self.made)));
        self.contents.insert(self.made, (from, to, event));
    }

    fn arrive(&mut self, from: Ipv4Addr, to: Ipv4Addr, event: Event) {
        self.delivered += 1;
        let now = self.now_us;
        self.note(&now.to_le_bytes());
        self.note(&from.octets());
        self.note(&to.octets());
        tracing::trace!(target: "korum_sim::wire", trace = format_args!("{:016x}", self.trace), "{from} -> {to} {event:?}");
        match event {
            Event::Bytes(id, bytes) => {
                self.note(&bytes);
                let Some(pipe) = self.pipes.get_mut(&id) else { return };
                if pipe.reader_gone {
                    let twin = pipe.twin;
                    pipe.held_bytes = 0;
                    self.send(to, from, Event::Reset(twin));
                } else if !pipe.reset {
                    pipe.arrived.extend(bytes);
                    self.woken.extend(pipe.reader.take());
                }
            }
            Event::End(id) => {
                self.note(b"end");
                let Some(pipe) = self.pipes.get_mut(&id) else { return };
                pipe.ended = true;
                self.woken.extend(pipe.reader.take());
                self.forget_if_done(id);
            }
            Event::Reset(id) => {
                self.note(b"reset");
                let twin = self.pipes.get(&id).map(|pipe| pipe.twin);
                self.reset(id);
                twin.into_iter().for_each(|twin| self.reset(twin));
            }
            Event::Syn(dial, source, target) => {
                self.note(b"dial");
                let room =
                    self.listeners.get(&target).is_some_and(|backlog| backlog.waiting.len() < BACKLOG_MAX);
                if room {
                    self.open(dial, from, to);
                    let backlog = self.listeners.get_mut(&target).expect("looked it up just now");
                    backlog.waiting.push_back((dial, source));
                    self.woken.extend(backlog.waker.take());
                }
                self.send(to, from, Event::Answer(dial, room));
            }
            Event::Answer(dial, room) => {
                self.note(if room { b"open" } else { b"none" });
                match self.dials.get_mut(&dial) {
                    Some(waiting) => {
                        waiting.answer = Some(room);
                        self.woken.extend(waiting.waker.take());
                    }
                    // Whoever dialed has given up.
                    None if room => self.close(dial * 2, dial * 2 + 1),
                    None => {}
                }
            }
        }
    }

    fn open(&mut self, dial: u64, from: Ipv4Addr, to: Ipv4Addr) {
        let (there, back) = (dial * 2, dial * 2 + 1);
        let pipe = |from, to, twin| Pipe {
            from,
            to,
            twin,
            arrived: VecDeque::new(),
            held_bytes: 0,
            last_due: 0,
            ended: false,
            end_sent: false,
            reset: false,
            reader_gone: false,
            reader: None,
            writer: None,
        };
        self.pipes.insert(there, pipe(from, to, back));
        self.pipes.insert(back, pipe(to, from, there));
    }
}
