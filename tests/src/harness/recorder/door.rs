//! How a command reaches a node, and what the answer promises.
//!
//! For: client ports, cluster ports (following `MOVED`) and the Rust client, behind one face.
//! Not here: which command, when; what replies promise (`check::read`).
//!
//! | answer | promise |
//! |---|---|
//! | a refused connection | not done |
//! | a connection that broke or waited too long after sending | unknown |
//! | `korum_client::Error::UnknownOutcome` | unknown; its other errors: not done |

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use korum_client::{Client, Error};
use korum_protocol::resp::Reply as Found;
use tokio::runtime::Runtime;

use super::super::resp::{Connection, Reply};
use crate::check::{Answer, Command, read, requests};

/// Longest wait for one reply, unless a door has less patience.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// Longest wait for a connection: a stopped process takes some and answers none.
const CONNECT: Duration = Duration::from_millis(500);
/// Times that one command follows `MOVED`.
const HOPS_MAX: usize = 6;

/// A way into the cluster.
pub enum Door {
    /// One node's client port, always the same.
    Client {
        /// The node.
        node: usize,
        /// Its port.
        port: u16,
        /// Longest wait for one reply.
        patience: Duration,
        /// Open while it works.
        connection: Option<Connection>,
    },
    /// The cluster ports of all nodes, as `MOVED` says.
    Cluster {
        /// Where a key without a known place is asked for.
        ports: Vec<u16>,
        /// Which of them comes next when one does not answer.
        turn: usize,
        /// Where keys were found.
        places: HashMap<String, u16>,
        /// Open while they work.
        connections: HashMap<u16, Connection>,
    },
    /// The Rust client.
    Library {
        /// Runs it.
        runtime: Arc<Runtime>,
        /// The client.
        client: Client,
    },
}

impl Door {
    /// Through a node's client port.
    #[must_use]
    pub fn client(node: usize, port: u16) -> Self {
        Door::Client { node, port, patience: PATIENCE, connection: None }
    }

    /// The same, giving up a command soon: many commands reach a node that cannot answer.
    #[must_use]
    pub fn impatient(node: usize, port: u16, patience: Duration) -> Self {
        Door::Client { node, port, patience, connection: None }
    }

    /// Through cluster ports, beginning with the one at `turn`.
    #[must_use]
    pub fn cluster(ports: Vec<u16>, turn: usize) -> Self {
        Door::Cluster { ports, turn, places: HashMap::new(), connections: HashMap::new() }
    }

    /// Through the Rust client.
    #[must_use]
    pub fn library(runtime: Arc<Runtime>, client: Client) -> Self {
        Door::Library { runtime, client }
    }

    /// The node of a client port.
    #[must_use]
    pub fn node(&self) -> Option<usize> {
        if let Door::Client { node, .. } = self { Some(*node) } else { None }
    }

    /// Can a command be sent? Connects where it must.
    pub fn is_open(&mut self) -> bool {
        match self {
            Door::Client { port, patience, connection, .. } => {
                if connection.is_none() {
                    *connection = connect(*port, *patience);
                }
                connection.is_some()
            }
            Door::Cluster { .. } | Door::Library { .. } => true,
        }
    }

    /// Can it hold a transaction, and wait without holding up others?
    #[must_use]
    pub fn has_own_connection(&self) -> bool {
        !matches!(self, Door::Library { .. })
    }

    /// Calls a command; ends in bounded time.
    pub fn call(&mut self, key: &str, command: &Command) -> Answer {
        let lines = requests(key, command);
        let ask = |open: &mut Connection| {
            let replies = open.pipeline(&lines).ok()?;
            Some(read(command, &replies.into_iter().map(found).collect::<Vec<_>>()))
        };
        match self {
            Door::Client { connection, .. } => {
                let Some(open) = connection else { return Answer::NotDone };
                ask(open).unwrap_or_else(|| {
                    *connection = None;
                    Answer::Unknown
                })
            }
            Door::Cluster { ports, turn, places, connections } => {
                for _ in 0..HOPS_MAX {
                    let port = places.get(key).copied().unwrap_or(ports[*turn % ports.len()]);
                    let open = connections.remove(&port).or_else(|| connect(port, PATIENCE));
                    let Some(mut open) = open else {
                        // Nobody listens: nothing was sent.
                        *turn += 1;
                        places.remove(key);
                        continue;
                    };
                    let Some(answer) = ask(&mut open) else {
                        *turn += 1;
                        places.remove(key);
                        return Answer::Unknown;
                    };
                    connections.insert(port, open);
                    match port_of(&answer) {
                        Some(port) => places.insert(key.to_owned(), port),
                        None => return answer,
                    };
                }
                Answer::NotDone
            }
            Door::Library { runtime, client } => match runtime.block_on(client.command(&lines[0])) {
                Ok(reply) => read(command, &[reply]),
                Err(Error::Server(error)) => read(command, &[Found::Error(error.text().to_owned().into())]),
                Err(error) if error.is_unknown_outcome() => Answer::Unknown,
                Err(_) => Answer::NotDone,
            },
        }
    }
}

fn connect(port: u16, patience: Duration) -> Option<Connection> {
    let connection = Connection::open(SocketAddr::from(([127, 0, 0, 1], port)), CONNECT).ok()?;
    connection.patience(patience).ok()?;
    Some(connection)
}

/// Where the answer says that the key is.
fn port_of(answer: &Answer) -> Option<u16> {
    let Answer::Moved(address) = answer else { return None };
    address.rsplit_once(':')?.1.parse().ok()
}

/// A reply as the Rust client gives it.
fn found(reply: Reply) -> Found {
    let all = |items: Vec<Reply>| items.into_iter().map(found).collect();
    match reply {
        Reply::Simple(text) => Found::Simple(text.into()),
        Reply::Error(text) => Found::Error(text.into()),
        Reply::Integer(number) => Found::Integer(number),
        Reply::Bulk(bytes) => Found::Bulk(bytes.into()),
        Reply::Null => Found::Null,
        Reply::Array(items) => Found::Array(all(items)),
        Reply::Set(items) => Found::Set(all(items)),
        Reply::Push(items) => Found::Push(all(items)),
        Reply::Map(pairs) => {
            Found::Map(pairs.into_iter().map(|(key, value)| (found(key), found(value))).collect())
        }
        Reply::Double(text) => Found::Double(text.parse().unwrap_or(f64::NAN)),
        Reply::Boolean(value) => Found::Boolean(value),
        Reply::Verbatim(bytes) => Found::Bulk(bytes.into()),
        Reply::BigNumber(text) => Found::BigNumber(text.into()),
    }
}
