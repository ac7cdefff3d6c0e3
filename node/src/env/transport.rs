//! The network.
//!
//! For: the types that a simulator replaces.

#[cfg(not(feature = "sim"))]
mod system {
    use std::time::Duration;

    pub use std::net::TcpStream as DetachedStream;
    pub use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
    pub use tokio::net::{TcpListener, TcpStream};

    /// Bytes that wait in the system to be sent, beyond which a socket takes no more: a small frame stands behind so much
    /// of a large one.
    const UNSENT_BYTES: u32 = 256 << 10;

    /// Asks for small packets at once, and for probes that find a peer whose machine has vanished.
    ///
    /// # Errors
    /// When the system refuses, which means that the connection is already broken.
    pub fn tune(stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES)?;
        let keepalive = socket2::TcpKeepalive::new()
            .with_time(Duration::from_secs(10))
            .with_interval(Duration::from_secs(5))
            .with_retries(3);
        socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive)
    }
}

#[cfg(feature = "sim")]
mod system {
    pub use crate::env::simulated::stream::{
        OwnedReadHalf, OwnedWriteHalf, TcpListener, TcpStream, TcpStream as DetachedStream,
    };

    /// Does nothing: no packet waits here, and no machine vanishes without the world's doing.
    ///
    /// # Errors
    /// Never.
    pub fn tune(_: &TcpStream) -> std::io::Result<()> {
        Ok(())
    }
}

pub use system::{DetachedStream, OwnedReadHalf, OwnedWriteHalf, TcpListener, TcpStream, tune};
