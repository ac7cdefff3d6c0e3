//! Two nodes find out who the other one is, and prove that they know the cluster secret.
//!
//! ```text
//! dialer                                  acceptor
//! Hello{who, cluster, purpose, nonce} -->
//!                                     <-- Welcome{who, cluster, nonce, why not}, proof
//! with a secret only: proof           -->
//!                                     <-- ready
//! ```
//! A proof is an HMAC-SHA256 with the secret over role, `Hello` and `Welcome`, so that neither side's can be
//! replayed or mirrored. What follows on the connection is not encrypted.
//! Not here: sockets being opened (`dial`, `server`).

use std::time::Duration;

use hmac::{Hmac, Mac};
use korum_protocol::peer::frame::FrameError;
use korum_protocol::peer::message::{
    ADDRESS_BYTES_MAX, HANDSHAKE_BYTES_MAX, Hello, Nonce, Proof, ProvenWelcome, Purpose, Rejection, Welcome,
    kind,
};
use korum_protocol::peer::wire::{decode, encode};
use rand::RngExt;
use serde::de::DeserializeOwned;
use sha2::Sha256;
use tokio::time::timeout;

use super::connection::{FrameReader, split};
use super::{DialError, LocalPeer, PeerConnection, PeerError, PeerIdentity};
use crate::env::random;
use crate::env::transport::{TcpStream, tune};

/// How long a stranger may take to say who it is.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);

const DIALER: &[u8] = b"korum dialer";
const ACCEPTOR: &[u8] = b"korum acceptor";

/// Answers a connection: who is it, and what is it for?
///
/// # Errors
/// When the other side is no peer of this node, or says nothing for three seconds.
pub async fn accept(local: &LocalPeer, stream: TcpStream) -> Result<(PeerConnection, Purpose), PeerError> {
    timeout(HANDSHAKE_TIMEOUT, answer(local, stream)).await.unwrap_or(Err(PeerError::Timeout))
}

async fn answer(local: &LocalPeer, stream: TcpStream) -> Result<(PeerConnection, Purpose), PeerError> {
    tune(&stream)?;
    let (mut reader, mut writer) = split(stream, HANDSHAKE_BYTES_MAX);
    let hello = match receive::<Hello>(&mut reader, kind::HELLO).await {
        Ok(hello) => hello,
        Err(error @ PeerError::Frame(FrameError::Version { .. })) => {
            // An answer in this node's version lets the other side say what is wrong.
            writer.send(kind::WELCOME, &[]).await?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    if hello.address.len() > ADDRESS_BYTES_MAX {
        return Err(PeerError::Protocol(format!("a peer address of {} bytes", hello.address.len())));
    }
    let why = reject(local, &hello);
    let welcome = Welcome {
        node: local.node,
        incarnation: local.incarnation(),
        // A member is answered by the name that it knows.
        cluster_id: hello.cluster_id.filter(|_| why.is_none()).or(local.cluster_id()),
        secret: local.secret.is_some(),
        nonce: nonce(),
        rejection: why,
    };
    let secret = local.secret.as_deref().filter(|_| hello.secret);
    let proof = secret.map(|secret| prove(secret, ACCEPTOR, &hello, &welcome));
    let answer = ProvenWelcome { welcome, proof };
    writer.send(kind::WELCOME, &encode(&answer)).await?;
    if let Some(why) = why {
        return Err(PeerError::Rejected { node: hello.node, why });
    }
    if let Some(secret) = secret {
        let proof = receive_bytes(&mut reader, kind::PROOF).await?;
        if !is_proof(secret, DIALER, &hello, &answer.welcome, &proof) {
            return Err(PeerError::Unauthorized);
        }
        writer.send(kind::READY, &[]).await?;
    }
    reader.set_limit(hello.purpose.frame_bytes_max());
    let peer = PeerIdentity {
        node: hello.node,
        incarnation: hello.incarnation,
        cluster_id: hello.cluster_id,
        address: hello.address,
    };
    Ok((PeerConnection { peer, reader, writer }, hello.purpose))
}

fn reject(local: &LocalPeer, hello: &Hello) -> Option<Rejection> {
    if hello.secret != local.secret.is_some() {
        Some(Rejection::Secret)
    } else if hello.node == local.node {
        Some(Rejection::SameNode)
    } else if local.cluster_id().is_none() {
        Some(Rejection::NotInCluster)
    } else if let Some(cluster_id) = hello.cluster_id {
        (!local.talks_to(cluster_id, hello.purpose)).then_some(Rejection::WrongCluster)
    } else {
        // A stranger may ask to join, nothing else.
        (hello.purpose != Purpose::Control).then_some(Rejection::MembersOnly)
    }
}

/// The dialer's side, on a connected socket. The caller holds the deadline.
pub(super) async fn greet(
    local: &LocalPeer,
    stream: TcpStream,
    purpose: Purpose,
    expect: Option<korum_protocol::id::NodeId>,
) -> Result<PeerConnection, DialError> {
    tune(&stream).map_err(DialError::Unreachable)?;
    let (mut reader, mut writer) = split(stream, HANDSHAKE_BYTES_MAX);
    let hello = Hello {
        node: local.node,
        incarnation: local.incarnation(),
        cluster_id: local.cluster_id(),
        address: local.address.clone(),
        purpose,
        secret: local.secret.is_some(),
        nonce: nonce(),
    };
    writer.send(kind::HELLO, &encode(&hello)).await?;
    let ProvenWelcome { welcome, proof } = receive(&mut reader, kind::WELCOME).await?;
    if welcome.secret != local.secret.is_some() {
        return Err(DialError::Unauthorized);
    }
    if let Some(secret) = local.secret.as_deref() {
        let proof = proof.ok_or(DialError::Unauthorized)?;
        if !is_proof(secret, ACCEPTOR, &hello, &welcome, &proof) {
            return Err(DialError::Unauthorized);
        }
    }
    // From here on it is certain who answered, also when the answer was no.
    if expect.is_some_and(|expected| expected != welcome.node) {
        return Err(DialError::WrongPeer { found: welcome.node, incarnation: welcome.incarnation });
    }
    match welcome.rejection {
        None => {}
        Some(Rejection::WrongCluster) => return Err(DialError::WrongCluster),
        Some(why) => return Err(DialError::Rejected(why)),
    }
    if hello.cluster_id.is_some() && hello.cluster_id != welcome.cluster_id {
        return Err(DialError::WrongCluster);
    }
    if let Some(secret) = local.secret.as_deref() {
        writer.send(kind::PROOF, &prove(secret, DIALER, &hello, &welcome)).await?;
        receive_bytes(&mut reader, kind::READY).await.map_err(|error| match error {
            PeerError::Truncated | PeerError::Io(_) => DialError::Unauthorized,
            other => other.into(),
        })?;
    }
    reader.set_limit(purpose.frame_bytes_max());
    let peer = PeerIdentity {
        node: welcome.node,
        incarnation: welcome.incarnation,
        cluster_id: welcome.cluster_id,
        address: String::new(),
    };
    Ok(PeerConnection { peer, reader, writer })
}

async fn receive<T: DeserializeOwned>(reader: &mut FrameReader, kind: u8) -> Result<T, PeerError> {
    let body = receive_bytes(reader, kind).await?;
    decode(&body).map_err(|error| PeerError::Protocol(error.to_string()))
}

async fn receive_bytes(reader: &mut FrameReader, kind: u8) -> Result<bytes::Bytes, PeerError> {
    let frame = reader.read().await?.ok_or(PeerError::Truncated)?;
    if frame.kind == kind {
        Ok(frame.body)
    } else {
        Err(PeerError::Protocol(format!("a frame of kind {} in the handshake, expected {kind}", frame.kind)))
    }
}

fn nonce() -> Nonce {
    random::random().random()
}

fn mac(secret: &[u8], role: &[u8], hello: &Hello, welcome: &Welcome) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(role);
    mac.update(&encode(hello));
    mac.update(&encode(welcome));
    mac
}

fn prove(secret: &[u8], role: &[u8], hello: &Hello, welcome: &Welcome) -> Proof {
    mac(secret, role, hello, welcome).finalize().into_bytes().into()
}

/// Compares in constant time.
fn is_proof(secret: &[u8], role: &[u8], hello: &Hello, welcome: &Welcome, proof: &[u8]) -> bool {
    mac(secret, role, hello, welcome).verify_slice(proof).is_ok()
}
