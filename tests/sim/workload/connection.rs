//! A connection whose waits all end.

use std::time::Duration;

use bytes::BytesMut;
use korum_node::env::transport::TcpStream;
use korum_protocol::resp::{Reply, ReplyDecoder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::orders::orders;

/// Longest wait for an answer; longer than the nodes' own, so that some outcomes are told as unknown.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for a connection.
const CONNECT_WAIT: Duration = Duration::from_millis(600);

/// A connection to a node.
pub struct Connection {
    stream: TcpStream,
    input: BytesMut,
    decoder: ReplyDecoder,
}

impl Connection {
    pub async fn open(address: &str) -> Option<Self> {
        let stream = timeout(CONNECT_WAIT, TcpStream::connect(address)).await.ok()?.ok()?;
        Some(Self { stream, input: BytesMut::new(), decoder: ReplyDecoder::new() })
    }

    /// False if it was not sent, or not all of it.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// The next reply; `None` if it does not come.
    pub async fn reply(&mut self) -> Option<Reply> {
        let reply = async {
            loop {
                match self.decoder.decode(&mut self.input) {
                    Ok(Some(reply)) => return Some(reply),
                    Ok(None) => {}
                    Err(error) => {
                        orders(|orders| orders.nonsense.push(error.to_string()));
                        return None;
                    }
                }
                if self.stream.read_buf(&mut self.input).await.ok()? == 0 {
                    return None;
                }
            }
        };
        timeout(ANSWER_WAIT, reply).await.ok().flatten()
    }

    /// The next replies; `None` if one does not come.
    pub async fn replies(&mut self, count: usize) -> Option<Vec<Reply>> {
        let mut replies = Vec::with_capacity(count);
        while replies.len() < count {
            replies.push(self.reply().await?);
        }
        Some(replies)
    }
}
