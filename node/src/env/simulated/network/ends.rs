//! What the ends of connections do.
//!
//! For: listening, dialing, reading, writing and closing, each without waiting.
//! Not here: what happens on the way (`network`), the types that nodes see (`stream`).
//!
//! A connection is the dial's number; the dialer writes to pipe `2n` and reads from pipe `2n + 1`.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::Waker;

use rand::RngExt;

use super::{Backlog, Dial, Event, Network, Pipe};

/// Bytes that one direction of a connection holds on their way, as a kernel's buffers do: then the writer waits.
const WINDOW_BYTES: usize = 256 << 10;

impl Network {
    pub(in super::super) fn listen(&mut self, address: SocketAddr) -> io::Result<()> {
        if self.listeners.contains_key(&address) {
            return Err(ErrorKind::AddrInUse.into());
        }
        self.listeners.insert(address, Backlog::default());
        Ok(())
    }

    pub(in super::super) fn stop_listening(&mut self, address: SocketAddr) {
        if let Some(backlog) = self.listeners.remove(&address) {
            for (dial, _) in backlog.waiting {
                self.close(dial * 2 + 1, dial * 2);
            }
        }
    }

    pub(in super::super) fn take_waiting(
        &mut self,
        address: SocketAddr,
        waker: &Waker,
    ) -> Option<(u64, SocketAddr)> {
        let backlog = self.listeners.get_mut(&address)?;
        let first = backlog.waiting.pop_front();
        if first.is_none() {
            backlog.waker = Some(waker.clone());
        }
        first
    }

    pub(in super::super) fn free_port(&mut self, ip: Ipv4Addr) -> u16 {
        let port = self.ports.entry(ip).or_insert(30_000);
        *port = if *port == u16::MAX { 30_000 } else { *port + 1 };
        *port
    }

    pub(in super::super) fn dial(&mut self, from: SocketAddr, to: SocketAddr) -> u64 {
        self.made += 1;
        let dial = self.made;
        self.dials.insert(dial, Dial::default());
        self.send(v4(from), v4(to), Event::Syn(dial, from, to));
        dial
    }

    pub(in super::super) fn poll_dial(&mut self, dial: u64, waker: &Waker) -> Option<bool> {
        let waiting = self.dials.get_mut(&dial)?;
        if waiting.answer.is_none() {
            waiting.waker = Some(waker.clone());
        }
        waiting.answer
    }

    pub(in super::super) fn end_dial(&mut self, dial: u64, used: bool) {
        let answered = self.dials.remove(&dial).and_then(|waiting| waiting.answer);
        if !used && answered == Some(true) {
            self.close(dial * 2, dial * 2 + 1);
        }
    }

    /// Bytes that have arrived: `None` when one has to wait, an empty list at the end.
    pub(in super::super) fn read(
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
    pub(in super::super) fn write(
        &mut self,
        id: u64,
        bytes: &[u8],
        waker: &Waker,
    ) -> Option<io::Result<usize>> {
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
    pub(in super::super) fn end(&mut self, id: u64) {
        if let Some(pipe) = self.pipes.get_mut(&id)
            && !std::mem::replace(&mut pipe.end_sent, true)
        {
            let (from, to) = (pipe.from, pipe.to);
            self.send(from, to, Event::End(id));
        }
    }

    /// Both directions of one end are closed.
    pub(in super::super) fn close(&mut self, outgoing: u64, incoming: u64) {
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

    pub(super) fn forget_if_done(&mut self, id: u64) {
        let is_done = |pipe: &Pipe| pipe.reader_gone && (pipe.ended || pipe.reset);
        let Some(pipe) = self.pipes.get(&id) else { return };
        let twin = pipe.twin;
        if is_done(pipe) && self.pipes.get(&twin).is_none_or(is_done) {
            self.pipes.remove(&id);
            self.pipes.remove(&twin);
        }
    }
}

fn v4(address: SocketAddr) -> Ipv4Addr {
    match address.ip() {
        IpAddr::V4(ip) => ip,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}
