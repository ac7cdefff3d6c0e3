//! The network between the nodes of a test, which can fail: a proxy before each node's peer port.
//!
//! For: holding, resetting or delaying what one node sends to another, per direction, without a privilege.
//! Not here: clients' connections, which never fail by themselves; what a fault is (`chaos::fault`).
//!
//! A node announces its proxy's port instead of its own (`--announce-peer-port`), so all peers come through it. Who
//! dials is read from the first frame of the peer handshake. What is held arrives when the way is open again, as it
//! does when a real network drops packets and TCP sends them again; a connection that its dialer gave up before
//! anything of it could arrive never arrives.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use korum_protocol::peer::frame::{HEADER_BYTES, parse_header};
use korum_protocol::peer::message::{HANDSHAKE_BYTES_MAX, Hello, kind};
use korum_protocol::peer::wire::decode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::ports;

/// Most bytes that one direction of one connection holds; what is more stays in the sockets.
const PIECE_BYTES: usize = 64 << 10;

/// What happens to the bytes from one node to another.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Way {
    /// They arrive.
    #[default]
    Open,
    /// They are held; nobody is told.
    Stalled,
    /// Connections are reset, and so are new ones.
    Cut,
    /// Each piece arrives so much later.
    Slow(Duration),
}

/// The network. Its proxies end with it.
pub struct Network {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// From, to; open when absent.
    ways: HashMap<(usize, usize), Way>,
    /// Announced peer address to node.
    nodes: HashMap<String, usize>,
    /// Connections that were dialed, by who dialed whom.
    dials: HashMap<(usize, usize), u64>,
}

impl Network {
    /// A network without nodes.
    ///
    /// # Panics
    /// When the system gives no thread.
    #[must_use]
    pub fn new() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        Self { shared: Arc::default(), runtime: Some(runtime) }
    }

    /// Puts a proxy before the peer port of a node; the port that the node has to announce.
    ///
    /// # Panics
    /// When there is no port.
    pub fn door(&self, node: usize, peer_port: u16) -> u16 {
        let port = ports::free();
        lock(&self.shared.state).nodes.insert(format!("127.0.0.1:{port}"), node);
        let runtime = self.runtime.as_ref().expect("runs until it is dropped");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, port))).expect("a free port");
        let shared = Arc::clone(&self.shared);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { drop(carry(&shared, stream, node, peer_port).await) });
            }
        });
        port
    }

    /// What happens to bytes from one node to another, from now on.
    pub fn set(&self, from: usize, to: usize, way: Way) {
        lock(&self.shared.state).ways.insert((from, to), way);
        self.shared.changed.send_modify(|version| *version += 1);
    }

    /// Both directions between each of these and each of those.
    pub fn set_between(&self, these: &[usize], those: &[usize], way: Way) {
        for &this in these {
            for &that in those {
                self.set(this, that, way);
                self.set(that, this, way);
            }
        }
    }

    /// How often one node has dialed another.
    #[must_use]
    pub fn dials(&self, from: usize, to: usize) -> u64 {
        lock(&self.shared.state).dials.get(&(from, to)).copied().unwrap_or_default()
    }

    /// Everything arrives again.
    pub fn heal(&self) {
        lock(&self.shared.state).ways.clear();
        self.shared.changed.send_modify(|version| *version += 1);
    }
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    fn way(&self, from: usize, to: usize) -> Way {
        lock(&self.state).ways.get(&(from, to)).copied().unwrap_or_default()
    }

    /// Returns when bytes may pass; an error when the way is cut.
    async fn pass(&self, from: usize, to: usize) -> io::Result<()> {
        let mut changed = self.changed.subscribe();
        loop {
            match self.way(from, to) {
                Way::Open => return Ok(()),
                Way::Slow(delay) => {
                    tokio::time::sleep(delay).await;
                    return Ok(());
                }
                Way::Cut => return Err(io::ErrorKind::ConnectionReset.into()),
                Way::Stalled => {}
            }
            changed.changed().await.map_err(io::Error::other)?;
        }
    }

    /// Returns when the way is cut.
    async fn cut(&self, from: usize, to: usize) {
        let mut changed = self.changed.subscribe();
        while self.way(from, to) != Way::Cut {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

/// One connection, from its dialer to the node behind this proxy, until it ends. Ways are those of now, always.
async fn carry(shared: &Shared, mut dialer: TcpStream, to: usize, port: u16) -> io::Result<()> {
    let first = first_frame(&mut dialer).await?;
    // Who asks a peer port as if it were a client port is no peer, and sees no fault.
    let from = sender(&first).and_then(|address| lock(&shared.state).nodes.get(&address).copied());
    if let Some(from) = from {
        *lock(&shared.state).dials.entry((from, to)).or_default() += 1;
        let both = async {
            shared.pass(from, to).await?;
            shared.pass(to, from).await
        };
        let mut byte = [0];
        tokio::select! {
            passed = both => if passed.is_err() { return reset(dialer) },
            _ = dialer.peek(&mut byte) => return Ok(()), // it gave up: a dialer says nothing before it is answered
        }
    }
    let mut target = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    target.write_all(&first).await?;
    dialer.set_nodelay(true)?;
    target.set_nodelay(true)?;
    let (dialer_read, dialer_write) = dialer.into_split();
    let (target_read, target_write) = target.into_split();
    let ways = from.map(|from| ((from, to), (to, from)));
    let there = pump(shared, dialer_read, target_write, ways.map(|ways| ways.0));
    let back = pump(shared, target_read, dialer_write, ways.map(|ways| ways.1));
    let ends = async { tokio::try_join!(there, back).map(drop) };
    let Some((there, back)) = ways else { return ends.await };
    tokio::select! {
        ended = ends => ended,
        () = shared.cut(there.0, there.1) => Ok(()),
        () = shared.cut(back.0, back.1) => Ok(()),
    }
}

async fn pump(
    shared: &Shared,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    way: Option<(usize, usize)>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = from.read(&mut piece).await?;
        if let Some((from, to)) = way {
            shared.pass(from, to).await?;
        }
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..read]).await?;
    }
}

/// The first frame, or whatever came instead of one.
async fn first_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < HEADER_BYTES {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(bytes);
        }
    }
    let Ok(Some(header)) = parse_header(&bytes, HANDSHAKE_BYTES_MAX) else { return Ok(bytes) };
    while bytes.len() < HEADER_BYTES + header.length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(bytes);
        }
    }
    Ok(bytes)
}

/// The announced peer address of who sent this first frame.
fn sender(first: &[u8]) -> Option<String> {
    let header = parse_header(first, HANDSHAKE_BYTES_MAX).ok()??;
    let body = first.get(HEADER_BYTES..HEADER_BYTES + header.length)?;
    (header.kind == kind::HELLO).then(|| decode::<Hello>(body).ok())?.map(|hello| hello.address)
}

fn reset(stream: TcpStream) -> io::Result<()> {
    stream.set_zero_linger()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
