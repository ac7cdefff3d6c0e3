//! Nodes that follow a script: real sockets and real RESP, no store.
//!
//! For: making a node redirect, stall or close at will, and counting what it was asked.

#![allow(dead_code, missing_docs, reason = "each test binary uses a part of it")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use korum_protocol::id::{ClusterId, Epoch, Incarnation, NodeId};
use korum_protocol::map::{Addresses, ClusterMap, Liveness, LossPolicy, Membership, NodeRecord, View};
use korum_protocol::peer::wire;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::{Reply, ReplyDecoder};
use korum_protocol::resp::{ProtocolVersion, ReplyWriter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What a node does with a command on keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    /// Answers like a node; redirects what the cluster's present map gives to others.
    Serve,
    /// Reads and never answers.
    Stall,
    /// Closes the connection when it meets a command on keys.
    Close,
    /// Lets nobody in.
    Guard,
    /// Answers with this error.
    Refuse(&'static str),
}

/// A node's switches and counters.
pub struct Node {
    pub id: NodeId,
    pub port: u16,
    mood: Mutex<Mood>,
    /// `KORUM MAP` requests.
    maps: AtomicUsize,
    /// Other commands, by name.
    commands: Mutex<HashMap<String, usize>>,
    connections: AtomicUsize,
    data: Mutex<HashMap<Bytes, Bytes>>,
}

impl Node {
    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub fn count(&self, command: &str) -> usize {
        self.commands.lock().unwrap().get(command).copied().unwrap_or_default()
    }

    pub fn maps(&self) -> usize {
        self.maps.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Some nodes and the map they agree on.
pub struct Cluster {
    pub nodes: Vec<Arc<Node>>,
    view: Arc<Mutex<View>>,
}

impl Cluster {
    /// `count` nodes on free ports of loopback, at epoch 1; ids from 1.
    pub async fn start(count: u64) -> Self {
        let mut listeners = Vec::new();
        let mut nodes = Vec::new();
        for id in 1..=count {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            nodes.push(Arc::new(Node {
                id: NodeId(id),
                port: listener.local_addr().unwrap().port(),
                mood: Mutex::new(Mood::Serve),
                maps: AtomicUsize::new(0),
                commands: Mutex::default(),
                connections: AtomicUsize::new(0),
                data: Mutex::default(),
            }));
            listeners.push(listener);
        }
        let view = Arc::new(Mutex::new(View::checked(map_of(&nodes)).unwrap()));
        for (listener, node) in listeners.into_iter().zip(&nodes) {
            tokio::spawn(accept(listener, node.clone(), view.clone()));
        }
        Self { nodes, view }
    }

    pub fn seeds(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.address()).collect()
    }

    /// The next epoch, with this change to the map.
    pub fn change(&self, change: impl FnOnce(&mut ClusterMap)) {
        let mut view = self.view.lock().unwrap();
        let mut map = view.map.clone();
        map.epoch = map.epoch.next();
        change(&mut map);
        *view = View::checked(map).expect("the test makes valid maps");
    }

    /// Other rankings: most partitions change their primary.
    pub fn shuffle(&self) {
        self.change(|map| map.placement_seed += 1);
    }

    /// A node goes down: others serve its partitions.
    pub fn mark_down(&self, id: NodeId) {
        self.change(|map| map.nodes.get_mut(&id).unwrap().liveness = Liveness::Down { excluded: true });
    }

    pub fn primary_of(&self, key: &str) -> NodeId {
        primary(&self.view.lock().unwrap(), key.as_bytes()).unwrap()
    }

    /// A key of this node.
    pub fn key_of(&self, id: NodeId) -> String {
        (0..).map(|number| format!("k{number}")).find(|key| self.primary_of(key) == id).unwrap()
    }

    /// `KORUM MAP` requests, at all nodes.
    pub fn maps(&self) -> usize {
        self.nodes.iter().map(|node| node.maps()).sum()
    }
}

fn map_of(nodes: &[Arc<Node>]) -> ClusterMap {
    let record = |node: &Arc<Node>| NodeRecord {
        addresses: Addresses { host: "127.0.0.1".into(), client: node.port, cluster: node.port, peer: 1 },
        zone: String::new(),
        weight: 1,
        incarnation: Incarnation(1),
        liveness: Liveness::Up,
        membership: Membership::Member,
    };
    ClusterMap {
        cluster_id: ClusterId(1),
        epoch: Epoch(1),
        membership_epoch: Epoch(1),
        partitions: 64,
        replication: 1,
        placement_seed: 7,
        balance_permille: 0,
        loss_policy: LossPolicy::Empty,
        nodes: nodes.iter().map(|node| (node.id, record(node))).collect(),
        indices: nodes.iter().map(|node| Some(node.id)).collect(),
        holders: Default::default(),
        primary_since: vec![Epoch(1); 64],
        emptied: Default::default(),
        lost_total: 0,
        settings: Default::default(),
    }
}

fn primary(view: &View, key: &[u8]) -> Option<NodeId> {
    view.row(view.partition_of_slot(slot_of(key))).primary
}

async fn accept(listener: TcpListener, node: Arc<Node>, view: Arc<Mutex<View>>) {
    while let Ok((stream, _)) = listener.accept().await {
        node.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(serve(stream, node.clone(), view.clone()));
    }
}

async fn serve(mut stream: TcpStream, node: Arc<Node>, view: Arc<Mutex<View>>) {
    let (mut input, mut output, mut decoder) = (BytesMut::new(), BytesMut::new(), ReplyDecoder::new());
    loop {
        // A request is an array of bulk strings, so the decoder of replies reads it.
        while let Some(request) = decoder.decode(&mut input).unwrap() {
            let Reply::Array(args) = request else { panic!("no request: {request:?}") };
            let args: Vec<Bytes> = args.iter().map(|arg| arg.as_bytes().unwrap().clone()).collect();
            match answer(&args, &node, &view, &mut output) {
                Next::GoOn => {}
                Next::Close => return,
                Next::Hang => {
                    // What came before is answered; nothing is after, until the client closes.
                    stream.write_all(&output).await.ok();
                    while matches!(stream.read_buf(&mut input).await, Ok(1..)) {}
                    return;
                }
            }
        }
        if stream.write_all(&output).await.is_err() {
            return;
        }
        output.clear();
        if !matches!(stream.read_buf(&mut input).await, Ok(1..)) {
            return;
        }
    }
}

enum Next {
    GoOn,
    Close,
    Hang,
}

fn answer(args: &[Bytes], node: &Node, view: &Mutex<View>, output: &mut BytesMut) -> Next {
    let mut out = ReplyWriter::new(output, ProtocolVersion::Resp3);
    let name = String::from_utf8_lossy(&args[0]).to_ascii_uppercase();
    let mood = *node.mood.lock().unwrap();
    match name.as_str() {
        "HELLO" if mood == Mood::Guard => {
            out.error("NOAUTH HELLO must be called with the client already authenticated");
            return Next::GoOn;
        }
        "HELLO" => {
            // A message that nobody asked for may come at any time.
            out.push(2);
            out.bulk(b"korum");
            out.integer(1);
            out.map(1);
            out.bulk(b"proto");
            out.integer(3);
            return Next::GoOn;
        }
        "CLIENT" => {
            out.ok();
            return Next::GoOn;
        }
        "PING" => {
            out.push(1);
            out.bulk(b"korum");
        }
        "KORUM" if mood != Mood::Stall => {
            node.maps.fetch_add(1, Ordering::SeqCst);
            let known: u64 = args.get(2).map_or(0, |epoch| String::from_utf8_lossy(epoch).parse().unwrap());
            let view = view.lock().unwrap();
            if view.map.epoch <= Epoch(known) {
                out.null();
            } else {
                let mut bytes = BytesMut::new();
                bytes.put_u8(1);
                bytes.extend_from_slice(&wire::encode(&view.map));
                out.bulk(&bytes);
            }
            return Next::GoOn;
        }
        _ => {}
    }
    *node.commands.lock().unwrap().entry(name.clone()).or_default() += 1;
    match mood {
        Mood::Stall => return Next::Hang,
        Mood::Close => return Next::Close,
        Mood::Refuse(error) => {
            out.error(error);
            return Next::GoOn;
        }
        Mood::Serve | Mood::Guard => {}
    }
    if let Some(key) = args.get(1) {
        let view = view.lock().unwrap();
        let owner = primary(&view, key).unwrap();
        if owner != node.id {
            let addresses = &view.map.nodes[&owner].addresses;
            out.error(&format!("MOVED {} {}:{}", slot_of(key), addresses.host, addresses.cluster));
            return Next::GoOn;
        }
    }
    execute(&name, args, &mut node.data.lock().unwrap(), &mut out);
    Next::GoOn
}

fn execute(name: &str, args: &[Bytes], data: &mut HashMap<Bytes, Bytes>, out: &mut ReplyWriter<'_>) {
    let number = |bytes: &Bytes| String::from_utf8_lossy(bytes).parse::<i64>().unwrap();
    match name {
        "PING" => out.simple("PONG"),
        "GET" => match data.get(&args[1]) {
            Some(value) => out.bulk(value),
            None => out.null(),
        },
        "SET" => {
            data.insert(args[1].clone(), args[2].clone());
            out.ok();
        }
        "MGET" => {
            assert_one_slot(args[1..].iter());
            out.array(args.len() - 1);
            for key in &args[1..] {
                match data.get(key) {
                    Some(value) => out.bulk(value),
                    None => out.null(),
                }
            }
        }
        "MSET" => {
            assert_one_slot(args[1..].iter().step_by(2));
            for pair in args[1..].chunks(2) {
                data.insert(pair[0].clone(), pair[1].clone());
            }
            out.ok();
        }
        "DEL" => {
            assert_one_slot(args[1..].iter());
            out.integer(args[1..].iter().filter(|key| data.remove(*key).is_some()).count() as i64);
        }
        "EXISTS" => out.integer(args[1..].iter().filter(|key| data.contains_key(*key)).count() as i64),
        "INCRBY" => {
            let sum = data.get(&args[1]).map_or(0, number) + number(&args[2]);
            data.insert(args[1].clone(), sum.to_string().into());
            out.integer(sum);
        }
        "PEXPIRE" => out.integer(i64::from(data.contains_key(&args[1]))),
        "PTTL" => out.integer(if data.contains_key(&args[1]) { -1 } else { -2 }),
        _ => out.error(&format!("ERR unknown command '{name}'")),
    }
}

/// The cluster port takes keys of one slot only.
fn assert_one_slot<'a>(keys: impl Iterator<Item = &'a Bytes>) {
    let mut slots = keys.map(|key| slot_of(key));
    let first = slots.next();
    assert!(slots.all(|slot| Some(slot) == first), "CROSSSLOT");
}

/// Waits for a state, at most five seconds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = tokio::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(5), "still not: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
