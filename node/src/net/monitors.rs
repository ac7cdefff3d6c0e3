//! Who watches what comes in.
//!
//! For: `MONITOR`: the commands of all clients of this node, as lines.
//! Not here: the queue of a client that watches (`outbox`).

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use korum_protocol::command::{CommandId, CommandSpec, Flags, Group};
use korum_protocol::resp::{Args, ProtocolVersion};

use super::clients::{Client, Flag};
use super::outbox::{Frame, Limits};
use crate::env::Tick;

/// Bytes of a command that are shown; more than a line is worth reading.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The clients that watch.
#[derive(Default)]
pub struct Monitors {
    clients: RwLock<Vec<Arc<Client>>>,
    count: AtomicUsize,
}

impl Monitors {
    /// Somebody watches: looked at for every command.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// A client watches from now on.
    pub fn enter(&self, client: &Arc<Client>) {
        let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
        if !client.has_flag(Flag::Monitor) {
            clients.push(Arc::clone(client));
            client.set_flag(Flag::Monitor, true);
        }
        self.count.store(clients.len(), Relaxed);
    }

    /// A client watches no more.
    pub fn leave(&self, client: &Client) {
        if client.has_flag(Flag::Monitor) {
            let mut clients = self.clients.write().unwrap_or_else(PoisonError::into_inner);
            clients.retain(|other| other.id != client.id);
            client.set_flag(Flag::Monitor, false);
            self.count.store(clients.len(), Relaxed);
        }
    }

    /// Shows a command of a client to those who watch; `wall_us` is Unix time.
    #[cold]
    pub fn show(
        &self,
        spec: &CommandSpec,
        args: &Args<'_>,
        who: &Client,
        wall_us: u64,
        limits: &Limits,
        now: Tick,
    ) {
        // Scripts skip it in Redis' table, and are shown all the same; what they call is not.
        let skips = spec.flags.contains(Flags::SKIP_MONITOR) && spec.group != Group::Scripting;
        if skips || spec.flags.contains(Flags::ADMIN) {
            return;
        }
        let line = line(args, who.database(), &who.address.to_string(), wall_us);
        let frame = Frame::write(ProtocolVersion::Resp2, |reply| reply.simple(&line));
        for client in self.clients.read().unwrap_or_else(PoisonError::into_inner).iter() {
            // Who stops watching does not see that.
            if spec.id != CommandId::Reset || client.id != who.id {
                client.push(frame.clone(), limits, now);
            }
        }
    }
}

fn line(args: &Args<'_>, database: u8, address: &str, wall_us: u64) -> String {
    let (seconds, micros) = (wall_us / 1_000_000, wall_us % 1_000_000);
    let mut line = format!("{seconds}.{micros:06} [{database} {address}]");
    for arg in args.iter() {
        line.push_str(" \"");
        for &byte in arg {
            if line.len() > LINE_BYTES_MAX {
                break;
            }
            match byte {
                b'\\' | b'"' => line.extend(['\\', char::from(byte)]),
                b'\n' => line.push_str("\\n"),
                b'\r' => line.push_str("\\r"),
                b'\t' => line.push_str("\\t"),
                7 => line.push_str("\\a"),
                8 => line.push_str("\\b"),
                b' '..=b'~' => line.push(char::from(byte)),
                _ => drop(write!(line, "\\x{byte:02x}")),
            }
        }
        line.push('"');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_redis() {
        let text = b"set\"\\\n\xff ~";
        let ranges = [0..3, 3..text.len()];
        let args = Args::new(text, &ranges);
        assert_eq!(
            line(&args, 7, "127.0.0.1:5", 1_795_992_315_000_376),
            "1795992315.000376 [7 127.0.0.1:5] \"set\" \"\\\"\\\\\\n\\xff ~\""
        );
    }
}
