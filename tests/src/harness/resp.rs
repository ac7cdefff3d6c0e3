//! A tiny blocking RESP client for tests.
//!
//! For: seeing exactly what a node sends. Not here: pools, retries, redirects.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One reply; RESP3's kinds are kept apart so that tests can ask for them.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// `+`
    Simple(String),
    /// `-`, with its prefix
    Error(String),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1`, `*-1` or `_`
    Null,
    /// `*`
    Array(Vec<Reply>),
    /// `%`
    Map(Vec<(Reply, Reply)>),
    /// `~`
    Set(Vec<Reply>),
    /// `>`
    Push(Vec<Reply>),
    /// `,` as its text
    Double(String),
    /// `#`
    Boolean(bool),
    /// `=`, with its three letters
    Verbatim(Vec<u8>),
    /// `(`
    BigNumber(String),
}

impl Reply {
    /// Is it `+OK`?
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Reply::Simple(text) if text == "OK")
    }

    /// The text of a bulk, a simple string, a verbatim text or an error; empty for everything else.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Reply::Simple(text) | Reply::Error(text) | Reply::Double(text) | Reply::BigNumber(text) => {
                text.clone()
            }
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Verbatim(bytes) => {
                String::from_utf8_lossy(bytes.get(4..).unwrap_or_default()).into_owned()
            }
            Reply::Integer(number) => number.to_string(),
            _ => String::new(),
        }
    }

    /// The error text, if it is one.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        if let Reply::Error(text) = self { Some(text) } else { None }
    }

    /// The elements of an array, a set or a push; empty for everything else.
    #[must_use]
    pub fn items(&self) -> &[Reply] {
        match self {
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => items,
            _ => &[],
        }
    }

    /// The integer, if it is one.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        if let Reply::Integer(number) = self { Some(*number) } else { None }
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Reply::Bulk(text.as_bytes().to_vec())
    }
}

/// A connection whose waits all end.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    used: usize,
}

impl Connection {
    /// Connects; reads and writes end after `timeout`.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn open(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self { stream, buffer: Vec::new(), used: 0 })
    }

    /// Connects to a port of loopback with the usual timeout, 5 s.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn to(port: u16) -> io::Result<Self> {
        Self::open(SocketAddr::from(([127, 0, 0, 1], port)), Duration::from_secs(5))
    }

    /// Changes how long a read may wait.
    ///
    /// # Errors
    /// When the socket refuses.
    pub fn patience(&self, timeout: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(timeout))
    }

    /// One command given as words.
    ///
    /// # Errors
    /// When the connection ends or a wait is over: the outcome is unknown.
    pub fn call(&mut self, words: &str) -> io::Result<Reply> {
        let arguments: Vec<&[u8]> = words.split_whitespace().map(str::as_bytes).collect();
        self.call_bytes(&arguments)
    }

    /// One command given as byte strings.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub fn call_bytes(&mut self, arguments: &[&[u8]]) -> io::Result<Reply> {
        self.send(&encode(arguments))?;
        self.reply()
    }

    /// All commands at once; the replies in order.
    ///
    /// # Errors
    /// As [`Connection::call`].
    pub fn pipeline(&mut self, commands: &[Vec<Vec<u8>>]) -> io::Result<Vec<Reply>> {
        let mut bytes = Vec::new();
        for command in commands {
            let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            bytes.extend_from_slice(&encode(&arguments));
        }
        self.send(&bytes)?;
        commands.iter().map(|_| self.reply()).collect()
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the connection ends or the wait is over.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// When the socket refuses.
    pub fn finish(&self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)
    }

    /// Everything until the peer closes or the wait is over; true when it closed.
    ///
    /// # Errors
    /// Never for a reset, which is a way of closing.
    pub fn rest(&mut self) -> io::Result<(Vec<u8>, bool)> {
        loop {
            match self.fill() {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok((self.buffer.split_off(self.used), false));
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) =>
                {
                    return Ok((self.buffer.split_off(self.used), true));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Exactly `count` bytes as they came.
    ///
    /// # Errors
    /// When they do not come.
    pub fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() - self.used < count {
            self.fill()?;
        }
        let bytes = self.buffer[self.used..self.used + count].to_vec();
        self.used += count;
        Ok(bytes)
    }

    /// One reply.
    ///
    /// # Errors
    /// When it does not come, or is not RESP.
    pub fn reply(&mut self) -> io::Result<Reply> {
        if self.used > 1 << 16 {
            self.buffer.drain(..self.used);
            self.used = 0;
        }
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(|| bad("an empty line"))?;
        let count = || rest.parse::<i64>().map_err(|_| bad(&line));
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(count()?),
            "," => Reply::Double(rest.to_owned()),
            "(" => Reply::BigNumber(rest.to_owned()),
            "#" => Reply::Boolean(rest == "t"),
            "_" => Reply::Null,
            "$" | "=" | "!" => match usize::try_from(count()?) {
                Err(_) => Reply::Null,
                Ok(size) => {
                    let mut bytes = self.exactly(size + 2)?;
                    bytes.truncate(size);
                    match kind {
                        "$" => Reply::Bulk(bytes),
                        "=" => Reply::Verbatim(bytes),
                        _ => Reply::Error(String::from_utf8_lossy(&bytes).into_owned()),
                    }
                }
            },
            "*" | "~" | ">" => match usize::try_from(count()?) {
                Err(_) => Reply::Null,
                Ok(size) => {
                    let items = (0..size).map(|_| self.reply()).collect::<io::Result<_>>()?;
                    match kind {
                        "*" => Reply::Array(items),
                        "~" => Reply::Set(items),
                        _ => Reply::Push(items),
                    }
                }
            },
            "%" => {
                let mut pairs = Vec::new();
                for _ in 0..count()? {
                    pairs.push((self.reply()?, self.reply()?));
                }
                Reply::Map(pairs)
            }
            _ => return Err(bad(&line)),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut from = self.used;
        loop {
            if let Some(at) = self.buffer[from..].windows(2).position(|two| two == b"\r\n") {
                let end = from + at;
                let line = String::from_utf8_lossy(&self.buffer[self.used..end]).into_owned();
                self.used = end + 2;
                return Ok(line);
            }
            from = self.buffer.len().saturating_sub(1).max(self.used);
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut part = [0; 16 << 10];
        match self.stream.read(&mut part)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            size => {
                self.buffer.extend_from_slice(&part[..size]);
                Ok(())
            }
        }
    }
}

/// One request as bytes.
#[must_use]
pub fn encode(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn bad(line: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("not a RESP reply: {line:?}"))
}
