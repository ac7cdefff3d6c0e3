//! A socket becomes a connection: RESP3, credentials, names.
//!
//! For: opening one connection within a deadline.
//! Not here: what runs on it (`task`).

use std::sync::Arc;

use bytes::BytesMut;
use korum_protocol::resp::decode::{Reply, ReplyDecoder, encode_request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::LinkSettings;
use crate::error::{AttemptError, ServerError};
use crate::transport::TcpStream;

/// An open connection and what was read beyond the handshake.
pub(super) struct Opened {
    pub(super) stream: TcpStream,
    pub(super) input: BytesMut,
    pub(super) decoder: ReplyDecoder,
}

/// Connects and shakes hands. The name is resolved each time, so a seed may change its address.
///
/// # Errors
/// `NotSent` if the node cannot be reached, `Refused` if it answers with an error. No request was sent in either case.
pub(super) async fn open(address: &Arc<str>, settings: &LinkSettings) -> Result<Opened, AttemptError> {
    let not_sent = |reason: String| AttemptError::NotSent { node: address.clone(), reason: reason.into() };
    match timeout(settings.connect_deadline, try_open(address, settings)).await {
        Ok(Ok(opened)) => Ok(opened),
        Ok(Err(Problem::Socket(error))) => Err(not_sent(format!("cannot connect: {error}"))),
        Ok(Err(Problem::Answer(error))) => Err(AttemptError::Refused { node: address.clone(), error }),
        Err(_elapsed) => Err(not_sent(format!("no connection within {:?}", settings.connect_deadline))),
    }
}

enum Problem {
    Socket(std::io::Error),
    Answer(ServerError),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::Socket(error)
    }
}

async fn try_open(address: &str, settings: &LinkSettings) -> Result<Opened, Problem> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (request, essential, all) = greeting(settings);
    stream.write_all(&request).await?;

    let mut input = BytesMut::with_capacity(4_096);
    let mut decoder = ReplyDecoder::new();
    let mut answered = 0;
    while answered < all {
        match decoder.decode(&mut input).map_err(std::io::Error::other)? {
            Some(Reply::Push(_)) => {}
            Some(Reply::Error(text)) if answered < essential => {
                return Err(Problem::Answer(ServerError::new(&String::from_utf8_lossy(&text))));
            }
            Some(_) => answered += 1,
            None => {
                if stream.read_buf(&mut input).await? == 0 {
                    return Err(std::io::Error::other("closed during the handshake").into());
                }
            }
        }
    }
    Ok(Opened { stream, input, decoder })
}

/// The bytes of the handshake, how many of its commands must succeed, and how many there are.
fn greeting(settings: &LinkSettings) -> (BytesMut, usize, usize) {
    let mut hello = vec!["HELLO", "3"];
    if let Some((user, password)) = &settings.credentials {
        hello.extend(["AUTH", user, password]);
    }
    if let Some(name) = &settings.name {
        hello.extend(["SETNAME", name]);
    }
    let mut request = BytesMut::new();
    encode_request(&hello, &mut request);
    encode_request(&["CLIENT", "SETINFO", "LIB-NAME", "korum-client"], &mut request);
    encode_request(&["CLIENT", "SETINFO", "LIB-VER", env!("CARGO_PKG_VERSION")], &mut request);
    (request, 1, 3)
}
