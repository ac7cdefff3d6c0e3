//! A node of the cluster, as long as its machine exists.
//!
//! For: starting, killing and restarting a whole `korum-node`, with or without its data directory.
//! Not here: when (`faults`).

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use korum_node::config::{Action, Config};
use korum_node::env::Clock;
use korum_node::env::simulated::network;
use korum_node::node::Node;
use korum_node::server;

use super::host::Host;

/// Client port of every node.
pub const CLIENT_PORT: u16 = 6379;
/// Cluster port of every node.
pub const CLUSTER_PORT: u16 = 16379;

/// Peer port of every node.
pub const PEER_PORT: u16 = 26379;

/// What a process hands out.
#[derive(Default)]
struct Shown {
    node: Option<Arc<Node>>,
    end: Option<Result<(), String>>,
}

/// A node's machine, directory and, while it runs, its process.
pub struct Member {
    pub host: Host,
    flags: Vec<String>,
    /// Bytes of a chunk of a stream, if they are other ones than ever.
    chunk_bytes: Option<usize>,
    directory: PathBuf,
    shown: Arc<Mutex<Shown>>,
    /// Directories used so far.
    disks: u32,
    /// Processes started so far.
    pub runs: u32,
    /// Was asked to leave, and is not to be started again.
    pub leaves: bool,
    /// Why it ended, if it did so by itself.
    pub ended: Option<Result<(), String>>,
}

impl Member {
    pub fn new(host: Host, base: &Path, flags: Vec<String>, chunk_bytes: Option<usize>) -> Self {
        Self {
            directory: base.join(&host.name),
            host,
            flags,
            chunk_bytes,
            shown: Arc::default(),
            disks: 0,
            runs: 0,
            leaves: false,
            ended: None,
        }
    }

    pub fn ip(&self) -> Ipv4Addr {
        self.host.ip
    }

    /// Starts the process; it joins the cluster of one of `seeds` unless it belongs to one.
    pub fn start(&mut self, seeds: &[Ipv4Addr]) {
        let mut args = vec!["korum-node".to_owned()];
        let directory = self.directory.join(self.disks.to_string());
        args.extend(["--bind".into(), self.ip().to_string()]);
        args.extend(["--dir".into(), directory.display().to_string(), "--threads".into(), "1".into()]);
        args.extend(seeds.iter().flat_map(|seed| ["--join".to_owned(), format!("{seed}:{CLIENT_PORT}")]));
        args.extend(self.flags.iter().cloned());
        let mut config = match Config::load(args, &|_| None) {
            Ok(Action::Run(config)) => *config,
            Ok(Action::Print(text)) => panic!("{text}"),
            Err(error) => panic!("{error}"),
        };
        if let Some(chunk_bytes) = self.chunk_bytes {
            config.rebalance.chunk_bytes = chunk_bytes;
        }
        // What ran here before may still hold the lock of a directory that it was killed in.
        let _ = std::fs::remove_file(directory.join("lock"));
        let shown = Arc::new(Mutex::new(Shown::default()));
        self.shown = Arc::clone(&shown);
        self.ended = None;
        self.runs += 1;
        network(|network| network.power_on(self.host.ip));
        self.host.boot(async move {
            let ready = Arc::clone(&shown);
            let end = server::run(config, Clock::system(), move |node| {
                ready.lock().expect("one thread").node = Some(Arc::clone(node));
            })
            .await;
            let mut shown = shown.lock().expect("one thread");
            shown.end = Some(end.map_err(|error| error.to_string()));
        });
    }

    /// `kill -9`, or the machine's power is cut.
    pub fn kill(&mut self, now_us: u64, power: bool) {
        if power {
            network(|network| network.power_off(self.host.ip));
        } else {
            self.host.disk.kept_permille = None;
        }
        let node = std::mem::take(&mut *self.shown.lock().expect("one thread"));
        self.host.within(now_us, |_| drop(node));
        self.host.kill(now_us);
    }

    /// The next start finds an empty directory.
    pub fn lose_disk(&mut self) {
        self.disks += 1;
    }

    /// One millisecond.
    pub fn step(&mut self, now_us: u64) {
        self.host.step(now_us);
        let end = self.shown.lock().expect("one thread").end.take();
        if let Some(end) = end {
            self.kill(now_us, false);
            self.ended = Some(end);
        }
    }

    /// The node, once it accepts connections.
    pub fn node(&self) -> Option<Arc<Node>> {
        self.shown.lock().expect("one thread").node.clone()
    }

    /// Looks at the node as if it were its turn.
    pub fn look<T>(&self, now_us: u64, look: impl FnOnce(&Arc<Node>) -> T) -> Option<T> {
        let node = self.node()?;
        self.host.within(now_us, |_| look(&node))
    }

    /// `SIGTERM`
    pub fn terminate(&self, now_us: u64) {
        self.look(now_us, |node| node.shutdown.send_replace(true));
    }
}

/// The options of all nodes of a run.
pub fn flags(replication: u8, partitions: u32, stream_bytes: u64) -> Vec<String> {
    let settings: [(&str, String); 6] = [
        ("--replication", replication.to_string()),
        ("--partitions", partitions.to_string()),
        ("--rereplicate-after", "3000ms".into()),
        ("--rebalance-bytes-per-second", stream_bytes.to_string()),
        ("--replica-timeout", "1000ms".into()),
        ("--request-timeout", "3000ms".into()),
    ];
    settings.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}
