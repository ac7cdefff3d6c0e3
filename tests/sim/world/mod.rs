//! The world: all machines, the network between them, and the one clock behind theirs.
//!
//! For: one step at a time: deliver what is due, then give every machine its millisecond, in order.
//! Not here: which faults happen (`faults`), what must hold (`invariants`, `ending`).

pub mod host;
pub mod log;
pub mod member;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use korum_node::env::simulated::network;
use korum_node::node::Node;

use host::Host;
use member::Member;

/// Length of a step.
pub const STEP_US: u64 = 1_000;
/// Unix time at which the world begins, microseconds.
pub const WALL_US: u64 = 1_800_000_000_000_000;

/// Everything that there is.
pub struct World {
    pub now_us: u64,
    pub members: Vec<Member>,
    pub clients: Vec<Host>,
    pub directory: PathBuf,
}

impl World {
    /// An empty world whose network takes its chances from `seed`.
    pub fn new(seed: u64) -> Self {
        network(|network| network.renew(seed));
        let base =
            if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
        let directory = base.join(format!("korum-sim-{}", std::process::id()));
        Self { now_us: 0, members: Vec::new(), clients: Vec::new(), directory }
    }

    /// One millisecond.
    pub fn step(&mut self) {
        self.now_us += STEP_US;
        log::tell(self.now_us, "network");
        network(|network| network.deliver(self.now_us));
        for member in &mut self.members {
            member.step(self.now_us);
        }
        for client in &mut self.clients {
            client.step(self.now_us);
        }
        log::tell(self.now_us, "world");
    }

    /// Who leads, as some node believes.
    pub fn leader(&self) -> Option<usize> {
        let leader = self.nodes().find_map(|(_, _, node)| node.cluster().leader())?;
        self.nodes().find(|(_, _, node)| node.id() == leader).map(|(number, ..)| number)
    }

    /// Nodes that accept connections, with their number.
    pub fn nodes(&self) -> impl Iterator<Item = (usize, &Member, Arc<Node>)> {
        self.members.iter().enumerate().filter_map(|(number, member)| Some((number, member, member.node()?)))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for number in 0..self.members.len() {
            self.members[number].kill(self.now_us, true);
        }
        for client in &mut self.clients {
            client.kill(self.now_us);
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The address of node `number`.
pub fn node_ip(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number as u8 + 1)
}

/// The address of client `number`.
pub fn client_ip(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, number as u8 + 1)
}
