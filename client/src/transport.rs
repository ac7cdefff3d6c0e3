//! The socket under a connection.
//!
//! For: the one door to the network, so that a simulation can stand there (feature `sim`, for this workspace's own
//! tests; never turn it on).
//! Not here: what is said on it (`connection`).

#[cfg(not(feature = "sim"))]
pub use tokio::net::TcpStream;

#[cfg(feature = "sim")]
pub use simulated::TcpStream;

/// Sockets that a simulation provides.
#[cfg(feature = "sim")]
pub mod simulated {
    use std::cell::RefCell;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf, split};

    /// What a simulation must provide.
    pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

    impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

    /// A socket, or why there is none.
    pub type Dialing = Pin<Box<dyn Future<Output = io::Result<Socket>> + Send>>;

    /// Connects to `host:port`.
    pub type Dial = fn(String) -> Dialing;

    type Socket = Box<dyn Stream>;

    thread_local! {
        static DIAL: RefCell<Option<Dial>> = const { RefCell::new(None) };
    }

    /// From now on, on this thread, this connects.
    pub fn dial_by(dial: Dial) {
        DIAL.set(Some(dial));
    }

    /// What stands in the place of tokio's.
    pub struct TcpStream(Socket);

    impl TcpStream {
        pub(crate) async fn connect(address: &str) -> io::Result<Self> {
            let dial = DIAL.with_borrow(|dial| *dial).ok_or(io::ErrorKind::NotConnected)?;
            Ok(Self(dial(address.to_owned()).await?))
        }

        pub(crate) fn set_nodelay(&self, _: bool) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn split(&mut self) -> (ReadHalf<&mut Socket>, WriteHalf<&mut Socket>) {
            split(&mut self.0)
        }
    }

    impl AsyncRead for TcpStream {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for TcpStream {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }
}
