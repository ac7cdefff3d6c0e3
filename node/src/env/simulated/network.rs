//! All wires of the world.
//!
//! For: connections as ordered queues of bytes, delays, and wires that hold, reset or refuse.
//! Not here: the types that nodes see (`stream`).
//!
//! TCP hides loss, copies and disorder behind delay; so a wire here delays, holds back, or breaks, and never
//! loses a byte in the middle. Everything is done by events in the order of their moment, then of their making.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::Waker;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Bytes that one direction of a connection holds on their way, as a kernel's buffers do: then the writer waits.
pub const WINDOW_BYTES: usize = 256 << 10;
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

/// One direction between two machines.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Shortest delay, microseconds.
    pub delay_us: u64,
    /// Added to it at random, microseconds.
    pub jitter_us: u64,
    /// Of a thousand messages so many are late, as if packets were lost and had to be sent again,
    pub late_permille: u32,
    /// by up to so much, microseconds.
    pub late_us: u64,
    /// Nothing arrives until this ends; nothing is lost.
    pub held: bool,
}

impl Default for Wire {
    fn default() -> Self {
        Self { delay_us: 50, jitter_us: 500, late_permille: 3, late_us: 40_000, held: false }
    }
}

impl Wire {
    /// What is wrong with either is wrong with this.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            delay_us: self.delay_us.max(other.delay_us),
            jitter_us: self.jitter_us.max(other.jitter_us),
            late_permille: self.late_permille.max(other.late_permille),
            late_us: self.late_us.max(other.late_us),
            held: self.held || other.held,
        }
    }
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

fn v4(address: SocketAddr) -> Ipv4Addr {
    match address.ip() {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
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

    // What the ends of connections do. A connection is the dial's number; the dialer writes to pipe `2n` and
    // reads from pipe `2n + 1`.

    pub(super) fn listen(&mut self, address: SocketAddr) -> io::Result<()> {
        if self.listeners.contains_key(&address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        self.listeners.insert(address, Backlog::default());
        Ok(())
    }

    pub(super) fn stop_listening(&mut self, address: SocketAddr) {
        if let Some(backlog) = self.listeners.remove(&address) {
            for (dial, _) in backlog.waiting {
                self.close(dial * 2 + 1, dial * 2);
            }
        }
    }

    pub(super) fn take_waiting(&mut self, address: SocketAddr, waker: &Waker) -> Option<(u64, SocketAddr)> {
        let backlog = self.listeners.get_mut(&address)?;
        let first = backlog.waiting.pop_front();
        if first.is_none() {
            backlog.waker = Some(waker.clone());
        }
        first
    }

    pub(super) fn free_port(&mut self, ip: Ipv4Addr) -> u16 {
        let port = self.ports.entry(ip).or_insert(30_000);
        *port = if *port == u16::MAX { 30_000 } else { *port + 1 };
        *port
    }

    pub(super) fn dial(&mut self, from: SocketAddr, to: SocketAddr) -> u64 {
        self.made += 1;
        let dial = self.made;
        self.dials.insert(dial, Dial::default());
        self.send(v4(from), v4(to), Event::Syn(dial, from, to));
        dial
    }

    pub(super) fn poll_dial(&mut self, dial: u64, waker: &Waker) -> Option<bool> {
        let waiting = self.dials.get_mut(&dial)?;
        if waiting.answer.is_none() {
            waiting.waker = Some(waker.clone());
        }
        waiting.answer
    }

    pub(super) fn end_dial(&mut self, dial: u64, used: bool) {
        let answered = self.dials.remove(&dial).and_then(|waiting| waiting.answer);
        if !used && answered == Some(true) {
            self.close(dial * 2, dial * 2 + 1);
        }
    }

    /// Bytes that have arrived: `None` when one has to wait, an empty list at the end.
    pub(super) fn read(
        &mut self,
        id: u64,
        room: usize,
        waker: Option<&Waker>,
        take: bool,
    ) -> Option<io::Result<Vec<u8>>> {
        let Some(pipe) = self.pipes.get_mut(&id) else { return Some(Ok(Vec::new())) };
        if !pipe.arrived.is_empty() && room > 0 {
            let mut count = room.min(pipe.arrived.len());
            if take && count > 1 && self.chance.random_range(0..100) < 3 {
                count = self.chance.random_range(1..count);
            }
            if !take {
                return Some(Ok(pipe.arrived.range(..count).copied().collect()));
            }
            let bytes = pipe.arrived.drain(..count).collect();
            pipe.held_bytes = pipe.held_bytes.saturating_sub(count);
            self.woken.extend(pipe.writer.take());
            return Some(Ok(bytes));
        }
        if pipe.reset {
            return Some(Err(ErrorKind::ConnectionReset.into()));
        }
        if pipe.ended || room == 0 {
            return Some(Ok(Vec::new()));
        }
        if let Some(waker) = waker {
            pipe.reader = Some(waker.clone());
        }
        None
    }

    /// How many of the bytes were taken; `None` when one has to wait.
    pub(super) fn write(&mut self, id: u64, bytes: &[u8], waker: &Waker) -> Option<io::Result<usize>> {
        let Some(pipe) = self.pipes.get_mut(&id) else { return Some(Err(ErrorKind::BrokenPipe.into())) };
        if pipe.reset {
            return Some(Err(ErrorKind::ConnectionReset.into()));
        }
        if pipe.end_sent {
            return Some(Err(ErrorKind::BrokenPipe.into()));
        }
        let mut count = bytes.len().min(WINDOW_BYTES - pipe.held_bytes.min(WINDOW_BYTES));
        if count == 0 && !bytes.is_empty() {
            pipe.writer = Some(waker.clone());
            return None;
        }
        if count > 1 && self.chance.random_range(0..100) < 3 {
            count = self.chance.random_range(1..count);
        }
        pipe.held_bytes += count;
        let (from, to) = (pipe.from, pipe.to);
        self.send(from, to, Event::Bytes(id, bytes[..count].to_vec()));
        Some(Ok(count))
    }

    /// Says that nothing more will be written.
    pub(super) fn end(&mut self, id: u64) {
        if let Some(pipe) = self.pipes.get_mut(&id)
            && !std::mem::replace(&mut pipe.end_sent, true)
        {
            let (from, to) = (pipe.from, pipe.to);
            self.send(from, to, Event::End(id));
        }
    }

    /// Both directions of one end are closed.
    pub(super) fn close(&mut self, outgoing: u64, incoming: u64) {
        self.end(outgoing);
        if let Some(pipe) = self.pipes.get_mut(&incoming) {
            pipe.reader_gone = true;
            pipe.reader = None;
            pipe.arrived.clear();
            pipe.held_bytes = 0;
            let from = pipe.writer.take();
            self.woken.extend(from);
        }
        self.forget_if_done(incoming);
    }

    fn forget_if_done(&mut self, id: u64) {
        let is_done = |pipe: &Pipe| pipe.reader_gone && (pipe.ended || pipe.reset);
        let Some(pipe) = self.pipes.get(&id) else { return };
        let twin = pipe.twin;
        if is_done(pipe) && self.pipes.get(&twin).is_none_or(is_done) {
            self.pipes.remove(&id);
            self.pipes.remove(&twin);
        }
    }
}
