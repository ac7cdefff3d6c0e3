//! How a command reaches a node, and what the answer promises.
//!
//! For: client ports, cluster ports (following `MOVED`) and the Rust client, behind one face.
//! Not here: which command, when.
//!
//! | answer | promise |
//! |---|---|
//! | a reply | done |
//! | `CLUSTERDOWN`, `MOVED`, a refused connection | not done: the node says so only of what it did not execute |
//! | `UNKNOWN`, a connection that broke or waited too long after sending | unknown |
//! | `korum_client::Error::UnknownOutcome` | unknown; its other errors: not done |
//! | any other error reply | unknown, and reported: no client expects it |

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use korum_client::{Client, Error, Reply as Found};
use tokio::runtime::Runtime;

use super::super::resp::{Connection, Reply};
use crate::check::{self, Command, Condition};

/// Longest wait for one reply, unless a door has less patience.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// Longest wait for a connection: a stopped process takes some and answers none.
const CONNECT: Duration = Duration::from_millis(500);
/// Times that one command follows `MOVED`.
const HOPS_MAX: usize = 6;

/// What came of a command.
pub enum Answer {
    /// Done, with this reply.
    Done(check::Reply),
    /// Certainly not done.
    NotDone,
    /// Perhaps done, now or later.
    Unknown,
    /// Unknown, because of an error reply that no client expects.
    Strange(String),
}

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

    /// Calls a command; ends in bounded time.
    pub fn call(&mut self, key: &str, command: &Command) -> Answer {
        let words = words(key, command);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        match self {
            Door::Client { connection, .. } => {
                let Some(open) = connection else { return Answer::NotDone };
                match open.call_bytes(&words) {
                    Ok(reply) => judge(reply),
                    Err(_) => {
                        *connection = None;
                        Answer::Unknown
                    }
                }
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
                    let Ok(reply) = open.call_bytes(&words) else {
                        *turn += 1;
                        places.remove(key);
                        return Answer::Unknown;
                    };
                    connections.insert(port, open);
                    match moved_to(&reply) {
                        Some(port) => places.insert(key.to_owned(), port),
                        None => return judge(reply),
                    };
                }
                Answer::NotDone
            }
            Door::Library { runtime, client } => match runtime.block_on(client.command(&words)) {
                Ok(reply) => judge(from_library(reply)),
                Err(Error::Server(error)) => judge(Reply::Error(error.text().to_owned())),
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

fn moved_to(reply: &Reply) -> Option<u16> {
    let text = reply.error()?.strip_prefix("MOVED ")?;
    text.rsplit_once(':')?.1.parse().ok()
}

fn from_library(reply: Found) -> Reply {
    match reply {
        Found::Simple(text) => Reply::Simple(String::from_utf8_lossy(&text).into_owned()),
        Found::Bulk(bytes) => Reply::Bulk(bytes.to_vec()),
        Found::Integer(number) => Reply::Integer(number),
        Found::Null => Reply::Null,
        other => Reply::Error(format!("a reply of another kind: {other:?}")),
    }
}

fn judge(reply: Reply) -> Answer {
    match reply {
        Reply::Simple(text) if text == "OK" => Answer::Done(check::Reply::Ok),
        Reply::Null => Answer::Done(check::Reply::Nil),
        Reply::Bulk(bytes) => Answer::Done(check::Reply::Value(bytes.into())),
        Reply::Integer(number) => Answer::Done(check::Reply::Integer(number)),
        Reply::Error(text) => match text.split(' ').next().unwrap_or_default() {
            "CLUSTERDOWN" | "MOVED" => Answer::NotDone,
            "UNKNOWN" => Answer::Unknown,
            _ if text.contains("not an integer") || text.contains("overflow") => {
                Answer::Done(check::Reply::NotInteger)
            }
            _ => Answer::Strange(text),
        },
        other => Answer::Strange(format!("{other:?}")),
    }
}

/// The command as a client sends it.
fn words(key: &str, command: &Command) -> Vec<Vec<u8>> {
    let key = key.as_bytes().to_vec();
    let ms = |time: &Duration| time.as_millis().to_string().into_bytes();
    let word = |text: &str| text.as_bytes().to_vec();
    match command {
        Command::Get => vec![word("GET"), key],
        Command::Set { value, condition: Condition::Always, get: true, expire: None } => {
            vec![word("GETSET"), key, value.to_vec()]
        }
        Command::Set { value, condition, get, expire } => {
            let mut words = vec![word("SET"), key, value.to_vec()];
            match condition {
                Condition::Always => {}
                Condition::Missing => words.push(word("NX")),
                Condition::Existing => words.push(word("XX")),
            }
            words.extend(get.then(|| word("GET")));
            words.extend(expire.iter().flat_map(|time| [word("PX"), ms(time)]));
            words
        }
        Command::Incr => vec![word("INCR"), key],
        Command::Append(value) => vec![word("APPEND"), key, value.to_vec()],
        Command::Del => vec![word("DEL"), key],
        Command::GetDel => vec![word("GETDEL"), key],
        Command::Expire(time) => vec![word("PEXPIRE"), key, ms(time)],
    }
}
