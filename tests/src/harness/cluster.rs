//! Real `korum-node` processes on loopback, and the faults that happen to real processes.
//!
//! For: starting, killing, pausing, restarting nodes; waiting until they say that they are ready.
//! Not here: what a test writes and reads (`resp`, `writers`).
//!
//! Every process is ended when the `Cluster` goes; where `setpriv` is there (Debian has it) also when the test process
//! itself is killed. Logs and data are kept when the test fails, and the end of each log is printed.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::network::Network;
use super::resp::{Connection, Reply};
use super::{binary, ports, wait};

/// How long a start, a join or a catch-up may take in a test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One node: its addresses and, while it runs, its process.
pub struct Node {
    /// Client port.
    pub client: u16,
    /// Cluster port.
    pub cluster: u16,
    /// Peer port.
    pub peer: u16,
    /// The peer port that others are told, where it is another.
    announced_peer: Option<u16>,
    directory: PathBuf,
    log: PathBuf,
    /// It is never given `--join`.
    is_alone: bool,
    child: Option<Child>,
}

/// A cluster of real processes.
pub struct Cluster {
    /// The nodes in the order in which they were started.
    pub nodes: Vec<Node>,
    flags: Vec<String>,
    network: Option<Network>,
    directory: Option<tempfile::TempDir>,
}

impl Cluster {
    /// Starts `count` nodes with default settings and waits until they are ready.
    ///
    /// # Panics
    /// When they are not ready in time; all of this harness panics instead of returning errors.
    #[must_use]
    pub fn start(count: usize) -> Self {
        Self::start_with(count, &[])
    }

    /// Starts `count` nodes with more flags, given to every one.
    #[must_use]
    pub fn start_with(count: usize, flags: &[&str]) -> Self {
        Self::start_on(None, count, flags)
    }

    /// The same, with a network between the nodes that can fail ([`Cluster::network`]). A proxy answers for a node whose
    /// process is gone, so this is not for faults of processes.
    #[must_use]
    pub fn start_networked(count: usize, flags: &[&str]) -> Self {
        Self::start_on(Some(Network::new()), count, flags)
    }

    fn start_on(network: Option<Network>, count: usize, flags: &[&str]) -> Self {
        let mut cluster = Self::empty(flags);
        cluster.network = network;
        for index in 0..count {
            cluster.add();
            if index == 0 {
                cluster.wait_answering(0);
            }
        }
        cluster.wait_ready(PATIENCE);
        cluster
    }

    /// Starts `count` nodes, each a cluster of its own, and waits until they answer.
    #[must_use]
    pub fn start_apart(count: usize) -> Self {
        let mut cluster = Self::empty(&[]);
        for _ in 0..count {
            cluster.add_apart(&[]);
        }
        (0..count).for_each(|index| cluster.wait_answering(index));
        cluster
    }

    fn empty(flags: &[&str]) -> Self {
        let directory =
            tempfile::Builder::new().prefix("korum-test-").tempdir().expect("a temporary directory");
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        Self { nodes: Vec::new(), flags, network: None, directory: Some(directory) }
    }

    /// Starts one more node, which joins through the first that runs; does not wait. Returns its place in `nodes`.
    pub fn add(&mut self) -> usize {
        let index = self.place(false);
        self.launch(index, &[]);
        index
    }

    /// Starts one more node, which is a cluster of its own, now and after every start; does not wait. Returns its place
    /// in `nodes`. The flags are of this start only.
    pub fn add_apart(&mut self, flags: &[&str]) -> usize {
        let index = self.place(true);
        self.launch(index, flags);
        index
    }

    fn place(&mut self, is_alone: bool) -> usize {
        let index = self.nodes.len();
        let root = self.directory.as_ref().expect("kept until the cluster goes").path();
        let peer = ports::free();
        self.nodes.push(Node {
            client: ports::free(),
            cluster: ports::free(),
            peer,
            announced_peer: self.network.as_ref().map(|network| network.door(index, peer)),
            directory: root.join(format!("node-{index}")),
            log: root.join(format!("node-{index}.log")),
            is_alone,
            child: None,
        });
        index
    }

    /// Starts a node's process again; `empty`: without its data directory, so as a new node. Does not wait.
    pub fn launch_again(&mut self, index: usize, empty: bool) {
        self.kill(index);
        if empty {
            fs::remove_dir_all(&self.nodes[index].directory).expect("the directory of a dead node");
        }
        self.launch(index, &[]);
    }

    fn launch(&mut self, index: usize, flags: &[&str]) {
        let mut others = self.running().into_iter().filter(|&other| other != index);
        let seed = others.next().map(|other| self.nodes[other].client);
        let seed = seed.filter(|_| !self.nodes[index].is_alone);
        let node = &mut self.nodes[index];
        fs::create_dir_all(&node.directory).expect("a data directory");
        let log = OpenOptions::new().create(true).append(true).open(&node.log).expect("a log file");
        let mut command = command_that_dies_with_us(binary::node());
        command.args(["--bind", "127.0.0.1", "--port", &node.client.to_string()]);
        command.args(["--cluster-port", &node.cluster.to_string(), "--peer-port", &node.peer.to_string()]);
        command.arg("--dir").arg(&node.directory).args(&self.flags).args(flags);
        if let Some(port) = node.announced_peer {
            command.args(["--announce-peer-port", &port.to_string()]);
        }
        if let Some(seed) = seed {
            command.args(["--join", &format!("127.0.0.1:{seed}")]);
        }
        command.stdin(Stdio::null()).stdout(clone(&log)).stderr(log);
        node.child = Some(command.spawn().expect("korum-node starts"));
    }

    /// The network between the nodes.
    ///
    /// # Panics
    /// When the cluster was started without one.
    #[must_use]
    pub fn network(&self) -> &Network {
        self.network.as_ref().expect("started with start_networked")
    }

    /// The node that leads Raft, as most nodes say that answer.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        let told: Vec<Value> =
            self.running().into_iter().filter_map(|index| self.status(index).ok()).collect();
        let votes = |index: usize| {
            let port = u64::from(self.nodes[index].client);
            let id = |status: &Value| {
                let nodes = status["nodes"].as_array()?;
                Some(nodes.iter().find(|node| node["client_port"] == port)?["id"].clone())
            };
            told.iter().filter(|status| id(status).is_some_and(|id| status["leader"] == id)).count()
        };
        (0..self.nodes.len()).max_by_key(|&index| votes(index)).filter(|&index| votes(index) > 0)
    }

    /// Keeps logs and data when the cluster goes, and tells where.
    pub fn keep_files(&mut self) -> Option<PathBuf> {
        self.directory.take().map(tempfile::TempDir::keep)
    }

    /// `SIGKILL`, and waits until the process is gone.
    pub fn kill(&mut self, index: usize) {
        if let Some(mut child) = self.nodes[index].child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// `SIGSTOP`: the process does nothing until [`Cluster::resume`]. Waits until every thread has stopped: on a busy
    /// machine the others go on until the one that takes the signal gets a core.
    pub fn pause(&self, index: usize) {
        self.signal(index, Signal::STOP);
        let tasks = format!("/proc/{}/task", self.pid(index));
        wait::until("all threads stop", Duration::from_secs(10), || {
            let threads = fs::read_dir(&tasks).map_err(|error| error.to_string())?;
            let stopped = threads.flatten().all(|thread| {
                fs::read_to_string(thread.path().join("stat")).is_ok_and(|stat| stat.contains(") T "))
            });
            if stopped { Ok(()) } else { Err("a thread still runs".to_owned()) }
        });
    }

    /// `SIGCONT`.
    pub fn resume(&self, index: usize) {
        self.signal(index, Signal::CONT);
    }

    /// `SIGTERM`, and waits until the process is gone; returns whether it left with exit code 0.
    pub fn terminate(&mut self, index: usize) -> bool {
        self.signal(index, Signal::TERM);
        let mut child = self.nodes[index].child.take().expect("a running node");
        let status = wait::until("the node leaves after SIGTERM", Duration::from_secs(15), || {
            child.try_wait().expect("our own child").ok_or_else(|| "it still runs".to_owned())
        });
        status.success()
    }

    /// Waits until a node that was told to leave ends by itself; returns whether it did so with exit code 0.
    pub fn wait_ended(&mut self, index: usize, limit: Duration) -> bool {
        let child = self.nodes[index].child.as_mut().expect("a running node");
        let status = wait::until(&format!("node {index} ends by itself"), limit, || {
            child.try_wait().expect("our own child").ok_or_else(|| "it still runs".to_owned())
        });
        self.nodes[index].child = None;
        status.success()
    }

    fn signal(&self, index: usize, signal: Signal) {
        let child = self.nodes[index].child.as_ref().expect("a running node");
        let pid = Pid::from_child(child);
        kill_process(pid, signal).expect("a child that we did not wait for yet still has its pid");
    }

    /// Places of the nodes whose process was started and not killed.
    #[must_use]
    pub fn running(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&index| self.nodes[index].child.is_some()).collect()
    }

    /// Client ports of the running nodes, without one of them.
    #[must_use]
    pub fn ports_without(&self, index: usize) -> Vec<u16> {
        self.running()
            .into_iter()
            .filter(|&other| other != index)
            .map(|other| self.nodes[other].client)
            .collect()
    }

    /// A connection to a node's client port.
    #[must_use]
    pub fn client(&self, index: usize) -> Connection {
        Connection::to(self.nodes[index].client).expect("the client port answers")
    }

    /// A connection to a node's cluster port.
    #[must_use]
    pub fn cluster_port(&self, index: usize) -> Connection {
        Connection::to(self.nodes[index].cluster).expect("the cluster port answers")
    }

    /// The place of the node that serves a key, as `CLUSTER SLOTS` says.
    #[must_use]
    pub fn primary_of(&self, key: &str) -> usize {
        let mut connection = self.client(self.running()[0]);
        let slot =
            connection.call(&format!("CLUSTER KEYSLOT {key}")).expect("a slot").integer().expect("a number");
        let slots = connection.call("CLUSTER SLOTS").expect("the slots");
        let port = slots.items().iter().find_map(|range| match range.items() {
            [Reply::Integer(first), Reply::Integer(last), primary, ..]
                if (*first..=*last).contains(&slot) =>
            {
                primary.items()[1].integer()
            }
            _ => None,
        });
        self.nodes
            .iter()
            .position(|node| Some(i64::from(node.cluster)) == port)
            .expect("a primary of the slot")
    }

    /// The node's id, 40 hex digits.
    #[must_use]
    pub fn id(&self, index: usize) -> String {
        self.client(index).call("CLUSTER MYID").expect("an id").text()
    }

    /// The node's process id.
    #[must_use]
    pub fn pid(&self, index: usize) -> u32 {
        self.nodes[index].child.as_ref().expect("a running node").id()
    }

    /// Waits until the node answers PING.
    pub fn wait_answering(&self, index: usize) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.nodes[index].client));
        wait::until(&format!("node {index} answers"), PATIENCE, || {
            self.assert_alive(index);
            TcpStream::connect(address).map_err(|error| error.to_string())?;
            let mut connection =
                Connection::open(address, Duration::from_secs(1)).map_err(|e| e.to_string())?;
            let reply = connection.call("PING").map_err(|error| error.to_string())?;
            if reply.text() == "PONG" { Ok(()) } else { Err(format!("{reply:?}")) }
        });
    }

    /// Waits until every running node says: all running nodes up, one epoch, every slot served, nothing moving.
    pub fn wait_ready(&self, limit: Duration) {
        wait::until("the cluster is ready", limit, || {
            self.running().into_iter().for_each(|index| self.assert_alive(index));
            self.ready()
        });
    }

    /// Panics when a node that should run has ended by itself.
    fn assert_alive(&self, index: usize) {
        // our own child that has ended is a zombie until we wait for it
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid(index))).unwrap_or_default();
        assert!(!stat.is_empty() && !stat.contains(") Z "), "node {index} ended by itself");
    }

    /// Is it ready, or why not?
    ///
    /// # Errors
    /// The first thing that is not as it will be.
    pub fn ready(&self) -> Result<(), String> {
        let running = self.running();
        let mut epochs = BTreeSet::new();
        for &index in &running {
            let status = self.status(index).map_err(|error| format!("node {index}: {error}"))?;
            let up = status["nodes"].as_array().into_iter().flatten().filter(|node| is_up(node)).count();
            if up != running.len() {
                return Err(format!("node {index} sees {up} nodes up of {}", running.len()));
            }
            let moving = moving(&status);
            if moving != 0 {
                return Err(format!("node {index} sees {moving} partitions moving"));
            }
            epochs.insert(status["epoch"].as_u64());
        }
        if epochs.len() == 1 { Ok(()) } else { Err(format!("epochs {epochs:?}")) }
    }

    /// `KORUM STATUS JSON` of one node, after `CLUSTER INFO` said ok.
    ///
    /// # Errors
    /// When the node does not answer, or its state is not ok.
    pub fn status(&self, index: usize) -> Result<Value, String> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.nodes[index].client));
        let mut connection = Connection::open(address, Duration::from_secs(1)).map_err(|e| e.to_string())?;
        let info = connection.call("CLUSTER INFO").map_err(|error| error.to_string())?.text();
        if !info.contains("cluster_state:ok") {
            return Err(info.lines().next().unwrap_or("no CLUSTER INFO").to_owned());
        }
        let text = connection.call("KORUM STATUS JSON").map_err(|error| error.to_string())?.text();
        serde_json::from_str(&text).map_err(|error| format!("KORUM STATUS JSON: {error}: {text}"))
    }

    fn print_logs(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            let text = fs::read_to_string(&node.log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            eprintln!("--- node {index} (client port {}), end of {}:", node.client, node.log.display());
            for line in &lines[lines.len().saturating_sub(30)..] {
                eprintln!("    {line}");
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for index in 0..self.nodes.len() {
            self.kill(index);
        }
        if std::thread::panicking() {
            self.print_logs();
            if let Some(directory) = self.directory.take() {
                eprintln!("--- kept: {}", directory.keep().display());
            }
        }
    }
}

/// Resident memory of a process, bytes.
///
/// # Panics
/// When the process is gone.
#[must_use]
pub fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a process has memory");
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kilobytes.expect("VmRSS is a number") << 10
}

/// Up, and a member.
fn is_up(node: &Value) -> bool {
    node["state"] == "up" || node["state"] == "leaving"
}

/// How many partitions have holders that differ from their replica set.
fn moving(status: &Value) -> u64 {
    status["moving"].as_u64().unwrap_or(0)
}

fn clone(file: &File) -> File {
    file.try_clone().expect("a second handle of the log")
}

/// The kernel ends the process when the thread that started it is gone, however that happened.
fn command_that_dies_with_us(binary: &Path) -> Command {
    if Path::new("/usr/bin/setpriv").exists() {
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(binary);
        command
    } else {
        Command::new(binary)
    }
}
