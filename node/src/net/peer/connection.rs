//! Frames on a socket.
//!
//! For: reading whole, checked frames, those that arrive in pieces too, and writing many with few system calls.
//! Not here: what is in them. The form of a frame is `protocol::peer::frame`.

use bytes::{Bytes, BytesMut};
use korum_protocol::peer::frame::{self, HEADER_BYTES, Header};
use korum_protocol::peer::piece::{Assembly, PIECE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::PeerError;
use crate::env::transport::{OwnedReadHalf, OwnedWriteHalf, TcpStream};

/// Bytes asked from the socket at once: several hundred small effects, and small enough for every link.
const READ_BYTES: usize = 64 << 10;
/// Written at once when the buffer holds so many bytes.
const WRITE_BYTES: usize = 64 << 10;
/// A body of so many bytes goes to the socket without being copied into the buffer.
const DIRECT_BYTES: usize = 16 << 10;

/// A frame that arrived whole and undamaged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// What the body is.
    pub kind: u8,
    /// The body. One that arrived in pieces is an allocation of its own; any other shares the read buffer, so it
    /// should be copied if it is kept for long.
    pub body: Bytes,
}

/// The reading end.
#[derive(Debug)]
pub struct FrameReader {
    socket: OwnedReadHalf,
    buffer: BytesMut,
    limit: usize,
    header: Option<Header>,
    assembly: Assembly,
}

impl FrameReader {
    /// Most bytes of one body from now on.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The next frame; `None` when the peer closed the connection between two frames.
    ///
    /// Safe to cancel: what has arrived is kept for the next call.
    ///
    /// # Errors
    /// When the socket fails or something arrives that is no frame; the connection is then of no more use.
    pub async fn read(&mut self) -> Result<Option<Frame>, PeerError> {
        loop {
            if let Some(frame) = self.buffered()? {
                return Ok(Some(frame));
            }
            let missing = match self.header {
                Some(header) => header.length.saturating_sub(self.buffer.len()),
                None => HEADER_BYTES.saturating_sub(self.buffer.len()),
            };
            // A long body gets its whole room once, so that it is never copied from buffer to buffer.
            if self.buffer.capacity() - self.buffer.len() < missing.max(READ_BYTES / 16) {
                self.buffer.reserve(missing.max(READ_BYTES));
            }
            let count = self.socket.read_buf(&mut self.buffer).await?;
            if count == 0 {
                let between = self.header.is_none() && self.buffer.is_empty() && self.assembly.is_empty();
                return if between { Ok(None) } else { Err(PeerError::Truncated) };
            }
            if count > READ_BYTES {
                // Taking memory for it may cost far more than copying it.
                tokio::task::yield_now().await;
            }
        }
    }

    /// A frame that has already arrived, without waiting.
    ///
    /// # Errors
    /// As [`FrameReader::read`].
    pub fn buffered(&mut self) -> Result<Option<Frame>, PeerError> {
        while let Some(frame) = self.buffered_part()? {
            if frame.kind != PIECE {
                return Ok(Some(frame));
            }
            if let Some((kind, body)) = self.assembly.add(&frame.body, self.limit)? {
                return Ok(Some(Frame { kind, body }));
            }
        }
        Ok(None)
    }

    fn buffered_part(&mut self) -> Result<Option<Frame>, PeerError> {
        if self.header.is_none() {
            self.header = frame::parse_header(&self.buffer, self.limit)?;
            if self.header.is_some() {
                let _ = self.buffer.split_to(HEADER_BYTES);
            }
        }
        let Some(header) = self.header else { return Ok(None) };
        if self.buffer.len() < header.length {
            return Ok(None);
        }
        self.header = None;
        let body = self.buffer.split_to(header.length).freeze();
        header.check(&body)?;
        Ok(Some(Frame { kind: header.kind, body }))
    }

    /// Is the connection open and silent, as an idle one must be?
    pub(super) fn is_idle(&self) -> bool {
        let mut byte = [0];
        self.header.is_none()
            && self.buffer.is_empty()
            && self.assembly.is_empty()
            && matches!(self.socket.try_read(&mut byte), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }
}

/// The writing end. Frames are gathered until [`FrameWriter::flush`].
#[derive(Debug)]
pub struct FrameWriter {
    socket: OwnedWriteHalf,
    buffer: BytesMut,
}

impl FrameWriter {
    /// Adds a frame.
    ///
    /// Not safe to cancel: a frame may be left half written, so the connection must then be dropped.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn write(&mut self, kind: u8, body: &[u8]) -> Result<(), PeerError> {
        self.write_parts(kind, &[body]).await
    }

    /// Adds a frame whose body lies in several pieces. Not safe to cancel.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn write_parts(&mut self, kind: u8, parts: &[&[u8]]) -> Result<(), PeerError> {
        self.buffer.extend_from_slice(&frame::header_of_parts(kind, parts));
        for part in parts {
            self.write_raw(part).await?;
        }
        Ok(())
    }

    /// Adds bytes that are already framed (see `protocol::peer::frame::encode_into`). Not safe to cancel.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn write_raw(&mut self, bytes: &[u8]) -> Result<(), PeerError> {
        if bytes.len() >= DIRECT_BYTES {
            self.flush().await?;
            self.socket.write_all(bytes).await?;
            return Ok(());
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES { self.flush().await } else { Ok(()) }
    }

    /// Hands everything to the socket. Not safe to cancel.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn flush(&mut self) -> Result<(), PeerError> {
        if !self.buffer.is_empty() {
            self.socket.write_all(&self.buffer).await?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes one frame and hands it to the socket. Not safe to cancel.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn send(&mut self, kind: u8, body: &[u8]) -> Result<(), PeerError> {
        self.write(kind, body).await?;
        self.flush().await
    }

    /// Says that nothing more will come; the peer reads a clean end.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn close(&mut self) -> Result<(), PeerError> {
        self.flush().await?;
        Ok(self.socket.shutdown().await?)
    }
}

/// Hands both ends to the runtime that this is called on: a socket is served by the runtime that opened it.
pub(super) fn rebind(
    reader: FrameReader,
    writer: FrameWriter,
) -> std::io::Result<(FrameReader, FrameWriter)> {
    let FrameReader { socket, buffer, limit, header, assembly } = reader;
    let stream = socket.reunite(writer.socket).map_err(std::io::Error::other)?;
    let (reading, writing) = TcpStream::from_std(stream.into_std()?)?.into_split();
    Ok((
        FrameReader { socket: reading, buffer, limit, header, assembly },
        FrameWriter { socket: writing, buffer: writer.buffer },
    ))
}

/// Both ends of a socket, with a limit for frames that arrive.
pub(super) fn split(stream: TcpStream, limit: usize) -> (FrameReader, FrameWriter) {
    let (reader, writer) = stream.into_split();
    (
        FrameReader {
            socket: reader,
            buffer: BytesMut::new(),
            limit,
            header: None,
            assembly: Assembly::default(),
        },
        FrameWriter { socket: writer, buffer: BytesMut::new() },
    )
}
