//! One server for the tests of the wire.
//!
//! `KORUM_TEST_ADDR=127.0.0.1:6379` points them at a server that runs already (any Redis, to check the tests
//! themselves); otherwise each test starts a node of its own.

use std::net::SocketAddr;
use std::time::Duration;

use super::cluster::Cluster;
use super::resp::{Connection, Reply};

/// A running server.
pub struct Server {
    own: Option<Cluster>,
    address: SocketAddr,
}

impl Server {
    /// The given one, or a fresh one-node cluster.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The given one, or a fresh one with more flags.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start_with(flags: &[&str]) -> Self {
        if let Ok(text) = std::env::var("KORUM_TEST_ADDR") {
            let address = text.parse().expect("KORUM_TEST_ADDR is HOST:PORT");
            return Self { own: None, address };
        }
        let cluster = Cluster::start_with(1, flags);
        let address = SocketAddr::from(([127, 0, 0, 1], cluster.nodes[0].client));
        Self { own: Some(cluster), address }
    }

    /// A new connection.
    ///
    /// # Panics
    /// When the server does not answer.
    #[must_use]
    pub fn connect(&self) -> Connection {
        Connection::open(self.address, Duration::from_secs(10)).expect("the server answers")
    }

    /// The process, when it is our own.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.own.as_ref().map(|cluster| cluster.pid(0))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Panics unless it answers a new connection.
    ///
    /// # Panics
    /// That is what it is for.
    pub fn assert_answers(&self) {
        let reply = self.connect().call("PING").expect("PING is answered");
        assert_eq!(reply, Reply::Simple("PONG".into()));
    }

    /// Sends bytes on a new connection and returns everything that comes back, and whether the server closed.
    ///
    /// # Panics
    /// When the socket fails in an unusual way.
    #[must_use]
    pub fn exchange(&self, request: &[u8]) -> (String, bool) {
        let mut connection = self.connect();
        connection.patience(Duration::from_millis(300)).expect("a timeout");
        let _ = connection.send(request); // a server that closes early resets; what it said still counts
        let (bytes, closed) = connection.rest().expect("an answer or an end");
        (String::from_utf8_lossy(&bytes).into_owned(), closed)
    }
}
