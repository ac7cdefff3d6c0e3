//! Becoming part of a cluster that exists.
//!
//! For: from a list of addresses, of peer or client ports, to a join that the leader agreed to.
//! Not here: the leader's side (`control`).

use std::time::Duration;

use korum_protocol::id::Epoch;
use korum_protocol::map::Registration;
use korum_protocol::peer::message::{ControlReply, ControlRequest, Purpose, kind};
use korum_protocol::peer::wire::{decode, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::env::Clock;
use crate::env::transport::TcpStream;
use crate::net::peer::{LocalPeer, PeerConnection, dial};

/// Longest time for one address to tell what it is.
const SEED: Duration = Duration::from_secs(1);
/// Longest time for a leader to agree: it dials back and waits for a commit.
const JOIN: Duration = Duration::from_secs(5);
/// Pause between two rounds over all addresses.
const PAUSE: Duration = Duration::from_millis(200);
/// Times that one node may point to another before the next address is tried.
const HOPS_MAX: usize = 4;
/// Longest answer of a client port to the question for its peer port, bytes.
const ANSWER_BYTES_MAX: usize = 512;

/// Why a node did not join.
pub(super) enum JoinError {
    /// The last reason until the time was over.
    Failed(String),
    /// The cluster that it had begun to join is another one now, at the same addresses, and has left no trace here.
    ClusterGone,
}

/// Asks the nodes at `seeds` in turn until one agrees; gives the epoch of the map that knows this node.
/// `is_pristine` tells that no log was ever taken from any cluster.
pub(super) async fn join(
    local: &LocalPeer,
    seeds: &[String],
    registration: &Registration,
    clock: &Clock,
    limit: Duration,
    is_pristine: impl Fn() -> bool,
) -> Result<Epoch, JoinError> {
    let end = clock.now() + limit;
    let mut told = String::new();
    loop {
        let mut last = String::from("no address was given");
        for seed in seeds {
            match try_seed(local, seed, registration).await {
                Ok(epoch) => return Ok(epoch),
                Err(Trouble::OtherCluster) if is_pristine() => {
                    sleep(PAUSE).await;
                    return Err(JoinError::ClusterGone);
                }
                Err(Trouble::OtherCluster) => {
                    last = format!(
                        "{seed}: it belongs to another cluster than the one that this node began to join"
                    );
                }
                Err(Trouble::Other(error)) => last = format!("{seed}: {error}"),
            }
        }
        if clock.now() >= end {
            return Err(JoinError::Failed(last));
        }
        if told != last {
            tracing::info!(error = %last, "cannot join yet");
            told = last;
        }
        sleep(PAUSE).await;
    }
}

enum Trouble {
    OtherCluster,
    Other(String),
}

impl From<String> for Trouble {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for Trouble {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

async fn try_seed(local: &LocalPeer, seed: &str, registration: &Registration) -> Result<Epoch, Trouble> {
    let mut address = peer_port(seed).await?;
    for _ in 0..HOPS_MAX {
        let dialed = dial(&local.as_stranger(), &address, None, Purpose::Control, SEED).await;
        let mut connection = dialed.map_err(|error| error.to_string())?;
        // From here on this node answers members of that cluster, as the leader's dial back and Raft need.
        let cluster_id = connection.peer.cluster_id.ok_or("it is in no cluster yet")?;
        if local.cluster_id().is_some_and(|begun| begun != cluster_id) {
            return Err(Trouble::OtherCluster);
        }
        local.set_cluster_id(cluster_id);
        let request = ControlRequest::Join { node: local.node, registration: registration.clone() };
        match exchange(&mut connection, &request, JOIN).await? {
            ControlReply::Joined { epoch, .. } => return Ok(epoch),
            ControlReply::NotLeader(hint) => {
                address = hint.address.ok_or("the cluster has no leader at the moment")?
            }
            ControlReply::Refused(refusal) => return Err(refusal.to_string().into()),
            ControlReply::Unknown(reason) => {
                return Err(format!("the outcome is not known yet: {reason}").into());
            }
            other => return Err(format!("an answer that does not belong there: {other:?}").into()),
        }
    }
    Err("the nodes point to each other".into())
}

/// One request and its reply on a connection that was dialed for it.
pub(super) async fn exchange(
    connection: &mut PeerConnection,
    request: &ControlRequest,
    limit: Duration,
) -> Result<ControlReply, String> {
    let exchange = async {
        let sent = connection.writer.send(kind::REQUEST, &encode(request)).await;
        sent.map_err(|error| error.to_string())?;
        let frame = connection.reader.read().await.map_err(|error| error.to_string())?;
        let frame = frame.ok_or("it closed the connection")?;
        decode::<ControlReply>(&frame.body).map_err(|error| error.to_string())
    };
    timeout(limit, exchange).await.map_err(|_| "no answer in time")?
}

/// The peer port of the node at `seed`, which may be the address of its client port. Every client port answers a
/// RESP command; a peer port takes it for a frame that is too long and closes the connection at once.
pub(super) async fn peer_port(seed: &str) -> Result<String, String> {
    let question = async {
        let mut stream = TcpStream::connect(seed).await.map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        if stream.write_all(b"*2\r\n$5\r\nKORUM\r\n$4\r\nPEER\r\n").await.is_ok() {
            let mut bytes = [0; ANSWER_BYTES_MAX];
            while answer.len() < ANSWER_BYTES_MAX && !is_whole(&answer) {
                match stream.read(&mut bytes).await {
                    Ok(read) if read > 0 => answer.extend_from_slice(&bytes[..read]),
                    _ => break,
                }
            }
        }
        Ok::<_, String>(answer)
    };
    let answer = timeout(SEED, question).await.map_err(|_| "no answer in time")??;
    interpret(seed, &answer)
}

fn is_whole(answer: &[u8]) -> bool {
    let lines = if answer.starts_with(b"$") && !answer.starts_with(b"$-") { 2 } else { 1 };
    answer.windows(2).filter(|pair| pair == b"\r\n").count() >= lines
}

fn interpret(seed: &str, answer: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(answer);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match first.as_bytes().first() {
        None => Ok(seed.to_owned()),
        Some(b'-') => Err(format!("its client port answers \"{}\": give a peer address", &first[1..])),
        Some(b'$' | b'+') => {
            let line = first.strip_prefix('+').or_else(|| lines.next()).unwrap_or_default();
            let (host, port) = line.rsplit_once(':').ok_or("its client port does not know its peer port")?;
            let host =
                if host.is_empty() { seed.rsplit_once(':').map_or(seed, |(host, _)| host) } else { host };
            Ok(format!("{host}:{port}"))
        }
        Some(_) => Err("something else than a node of this cluster answers".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_client_ports_lead_to_peer_ports() {
        assert_eq!(interpret("a:1", b"$6\r\nb:1000\r\n"), Ok("b:1000".into()));
        assert_eq!(interpret("a:1", b"$5\r\n:1000\r\n"), Ok("a:1000".into()));
        assert_eq!(interpret("a:1", b""), Ok("a:1".into()));
        assert!(interpret("a:1", b"-NOAUTH Authentication required.\r\n").unwrap_err().contains("NOAUTH"));
        assert!(interpret("a:1", b"HTTP/1.1 400 Bad Request\r\n").is_err());
        assert!(interpret("a:1", b"$-1\r\n").is_err());
        assert!(interpret("a:1", &[0xff; 20]).is_err());
        assert!(!is_whole(b"$6\r\nb:1000") && is_whole(b"$6\r\nb:1000\r\n") && is_whole(b"-ERR\r\n"));
    }
}
