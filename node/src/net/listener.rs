//! Takes connections in and hands them to the workers in turn.
//!
//! For: one acceptor a port, so that connections spread evenly over the worker threads.
//! Not here: peers (`peer::server`).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::clients::TOO_MANY;
use super::connection::Connection;
use super::session::PortKind;
use crate::admin::stats::Counter;
use crate::env::transport::{DetachedStream, TcpListener, TcpStream};
use crate::executor::worker_number;
use crate::node::Node;

/// Pause after the system refused to accept (out of descriptors): long enough not to spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts until the task is dropped.
pub async fn accept(node: Arc<Node>, listener: Arc<TcpListener>, port: PortKind) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => take_in(&node, stream, port).await,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn take_in(node: &Arc<Node>, mut stream: TcpStream, port: PortKind) {
    let addresses = stream.peer_addr().and_then(|address| Ok((address, stream.local_addr()?)));
    let Ok((address, local)) = addresses else { return };
    let now = node.clock().now();
    node.stats.of(worker_number()).add(Counter::Connections, 1);
    let Some(place) = node.clients.enter(address, local, port, now, node.live.maxclients()) else {
        node.stats.of(worker_number()).add(Counter::RejectedConnections, 1);
        // Whoever does not take one line now finds the connection closed.
        let _ = stream.write_all(format!("-{TOO_MANY}\r\n").as_bytes()).await;
        return;
    };
    let Ok(stream) = detach(stream) else { return };
    let moved = Arc::clone(node);
    node.executor().spawn(async move {
        if let Ok(stream) = TcpStream::from_std(stream) {
            Connection::serve(moved, stream, place, port).await;
        }
    });
}

/// Off this thread's poller, for another thread's.
fn detach(stream: TcpStream) -> io::Result<DetachedStream> {
    stream.set_nodelay(true)?;
    stream.into_std()
}
