//! Sockets without a system: the same calls as tokio's.
//!
//! For: `env::transport` under feature `sim`.
//! Not here: what happens between two sockets (`network`).

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{current, network};

/// What an address can be given as.
pub trait Address {
    /// The address, if it is one: there are no names here.
    ///
    /// # Errors
    /// When it is none.
    fn resolve(self) -> io::Result<SocketAddr>;
}

impl Address for SocketAddr {
    fn resolve(self) -> io::Result<SocketAddr> {
        Ok(self)
    }
}

impl Address for &str {
    fn resolve(self) -> io::Result<SocketAddr> {
        self.parse().map_err(|_| io::ErrorKind::InvalidInput.into())
    }
}

impl Address for &String {
    fn resolve(self) -> io::Result<SocketAddr> {
        self.as_str().resolve()
    }
}

/// As [`tokio::net::TcpListener`].
#[derive(Debug)]
pub struct TcpListener {
    address: SocketAddr,
}

impl TcpListener {
    /// Listens.
    ///
    /// # Errors
    /// When somebody does already.
    pub async fn bind(address: impl Address) -> io::Result<Self> {
        let mut address = address.resolve()?;
        network(|network| {
            if address.port() == 0 {
                address.set_port(network.free_port(current().ip));
            }
            network.listen(address)
        })?;
        Ok(Self { address })
    }

    /// The next connection.
    ///
    /// # Errors
    /// Never, here.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (dial, peer) =
            poll_fn(|context| match network(|network| network.take_waiting(self.address, context.waker())) {
                Some(waiting) => Poll::Ready(waiting),
                None => Poll::Pending,
            })
            .await;
        Ok((TcpStream::new(dial * 2 + 1, dial * 2, self.address, peer), peer))
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Never, here.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        network(|network| network.stop_listening(self.address));
    }
}

/// One end of a connection; closed when it is dropped.
#[derive(Debug)]
struct Socket {
    outgoing: u64,
    incoming: u64,
    local: SocketAddr,
    peer: SocketAddr,
}

impl Socket {
    fn try_read(&self, room: usize) -> io::Result<Vec<u8>> {
        network(|network| network.read(self.incoming, room, None, true))
            .unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    fn poll_read(&self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match network(|network| network.read(self.incoming, buffer.remaining(), Some(context.waker()), true))
        {
            Some(Ok(bytes)) => {
                buffer.put_slice(&bytes);
                Poll::Ready(Ok(()))
            }
            Some(Err(error)) => Poll::Ready(Err(error)),
            None => Poll::Pending,
        }
    }

    fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match network(|network| network.write(self.outgoing, bytes, context.waker())) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }

    async fn look(&self, room: usize) -> io::Result<Vec<u8>> {
        poll_fn(|context| {
            match network(|network| network.read(self.incoming, room, Some(context.waker()), false)) {
                Some(result) => Poll::Ready(result),
                None => Poll::Pending,
            }
        })
        .await
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        network(|network| network.close(self.outgoing, self.incoming));
    }
}

/// As [`tokio::net::TcpStream`].
#[derive(Debug)]
pub struct TcpStream {
    socket: Arc<Socket>,
}

/// A dial that nobody waits for any more is given up.
struct Dialing(u64, bool);

impl Drop for Dialing {
    fn drop(&mut self) {
        network(|network| network.end_dial(self.0, self.1));
    }
}

impl TcpStream {
    fn new(outgoing: u64, incoming: u64, local: SocketAddr, peer: SocketAddr) -> Self {
        Self { socket: Arc::new(Socket { outgoing, incoming, local, peer }) }
    }

    /// Connects from the host whose turn it is.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn connect(address: impl Address) -> io::Result<Self> {
        let peer = address.resolve()?;
        let ip: Ipv4Addr = current().ip;
        let (dial, local) = network(|network| {
            let local = SocketAddr::new(IpAddr::V4(ip), network.free_port(ip));
            (network.dial(local, peer), local)
        });
        let mut dialing = Dialing(dial, false);
        let opened = poll_fn(|context| match network(|network| network.poll_dial(dial, context.waker())) {
            Some(opened) => Poll::Ready(opened),
            None => Poll::Pending,
        })
        .await;
        if !opened {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        dialing.1 = true;
        Ok(Self::new(dial * 2, dial * 2 + 1, local, peer))
    }

    /// Waits until there is something to read, or the end.
    ///
    /// # Errors
    /// Never: a failure shows when one reads.
    pub async fn readable(&self) -> io::Result<()> {
        let _ = self.socket.look(1).await;
        Ok(())
    }

    /// Waits for bytes and leaves them there.
    ///
    /// # Errors
    /// When the connection is broken.
    pub async fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let seen = self.socket.look(bytes.len()).await?;
        bytes[..seen.len()].copy_from_slice(&seen);
        Ok(seen.len())
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing; when the connection is broken.
    pub fn try_read_buf(&self, buffer: &mut impl BufMut) -> io::Result<usize> {
        let bytes = self.socket.try_read(buffer.chunk_mut().len())?;
        buffer.put_slice(&bytes);
        Ok(bytes.len())
    }

    /// Does nothing.
    ///
    /// # Errors
    /// Never.
    pub fn set_nodelay(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    /// The other end.
    ///
    /// # Errors
    /// Never.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.peer)
    }

    /// This end.
    ///
    /// # Errors
    /// Never.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.local)
    }

    /// Off its runtime: here, itself.
    ///
    /// # Errors
    /// Never.
    pub fn into_std(self) -> io::Result<Self> {
        Ok(self)
    }

    /// Onto a runtime: here, itself.
    ///
    /// # Errors
    /// Never.
    pub fn from_std(stream: Self) -> io::Result<Self> {
        Ok(stream)
    }

    /// Both directions.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let reading = OwnedReadHalf { socket: Arc::clone(&self.socket) };
        (reading, OwnedWriteHalf { socket: self.socket, ends: true })
    }
}

/// As [`tokio::net::tcp::OwnedReadHalf`].
#[derive(Debug)]
pub struct OwnedReadHalf {
    socket: Arc<Socket>,
}

impl OwnedReadHalf {
    /// Reads what is there.
    ///
    /// # Errors
    /// `WouldBlock` when there is nothing; when the connection is broken.
    pub fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.socket.try_read(bytes.len())?;
        bytes[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    /// The stream again.
    ///
    /// # Errors
    /// When the halves are of different streams.
    pub fn reunite(self, mut writing: OwnedWriteHalf) -> Result<TcpStream, io::Error> {
        if !Arc::ptr_eq(&self.socket, &writing.socket) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        writing.ends = false;
        Ok(TcpStream { socket: self.socket })
    }
}

/// As [`tokio::net::tcp::OwnedWriteHalf`]: dropping it ends the direction.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    socket: Arc<Socket>,
    ends: bool,
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.ends {
            network(|network| network.end(self.socket.outgoing));
        }
    }
}

macro_rules! reads {
    ($type:ty) => {
        impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.socket.poll_read(context, buffer)
            }
        }
    };
}

macro_rules! writes {
    ($type:ty) => {
        impl AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.socket.poll_write(context, bytes)
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                network(|network| network.end(self.socket.outgoing));
                Poll::Ready(Ok(()))
            }
        }
    };
}

reads!(TcpStream);
reads!(OwnedReadHalf);
writes!(TcpStream);
writes!(OwnedWriteHalf);
