//! What a connection does with large requests and replies, so that nobody else on its thread waits for them.
//!
//! For: room for a large request, running it in a batch of its own or in slices, and writing a little at a time.
//! Not here: everything else about a connection (`connection`), how a command is cut (`dispatch::slices`).

use std::io;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::CommandSpec;
use korum_protocol::resp::Args;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::rope::Rope;
use tokio::io::AsyncWriteExt;

use super::clients::Client;
use super::connection::{Connection, READ_BYTES};
use crate::admin::stats::Counter;
use crate::dispatch::slices::Slices;
use crate::env::transport::TcpStream;
use crate::executor::worker_number;
use crate::store::Source;

/// Bytes read at once of a large request, a few hundred microseconds.
const READ_BYTES_MAX: usize = 1 << 20;
/// Bytes that have come of a request after which it gets the room for its present string at once.
const GROWN_BYTES: usize = 4 << 20;
/// Bytes of messages of others that are copied and written before the client's own commands have their turn.
const MESSAGES_BYTES: usize = 256 << 10;
/// Bytes written before other tasks of the thread get their turn.
const WRITE_BYTES: usize = 512 << 10;

impl Connection {
    /// Runs a request that has a batch of its own: its long strings are kept without copying them, or copied
    /// beforehand while other tasks get their turn, and one with very many keys is run in slices.
    pub(super) async fn run_large(&mut self, spec: &'static CommandSpec, request: Bytes) {
        self.node.stats.of(worker_number()).add(Counter::Commands, 1);
        self.place.client.touch(self.node.clock().now(), spec.full_name);
        let caller = self.session.caller(self.node.config().cluster.consistency);
        let parser = std::mem::take(&mut self.parser);
        let args = parser.args(&request);
        if let Some(mut slices) = Slices::of(spec, &args, caller, &self.node.view()) {
            self.node.stats.of(worker_number()).commands.called(spec.id, 1);
            let mut reply = Rope::new();
            while let Some(slice) = slices.next(&args).await {
                self.run_slice(spec, slice).await;
                slices.take_reply(&self.output, &mut reply);
                self.output.clear();
            }
            slices.finish(caller, reply, &mut self.output);
            if self.session.end_command() {
                self.output.clear();
            }
        } else {
            let mut source = Source::of(request.clone());
            source.copy_out(args.ranges().iter().cloned()).await;
            self.run_batch_of_one(spec, &request, &args, source, true).await;
        }
        self.parser = parser;
        self.node.discard([request].into_iter().collect());
    }

    /// Runs a part of a command as a command of its own.
    async fn run_slice(&mut self, spec: &'static CommandSpec, slice: Bytes) {
        let mut parser = RequestParser::new(RequestLimits::unlimited());
        let Ok(Parsed::Request { .. }) = parser.parse(&slice) else {
            unreachable!("a request that was just encoded")
        };
        let args = parser.args(&slice);
        let mut source = Source::of(slice.clone());
        source.copy_out(args.ranges().iter().cloned()).await;
        self.run_batch_of_one(spec, &slice, &args, source, false).await;
    }

    async fn run_batch_of_one(
        &mut self,
        spec: &'static CommandSpec,
        request: &[u8],
        args: &Args<'_>,
        source: Source,
        is_whole: bool,
    ) {
        let view = self.node.view();
        let began = self.node.clock().now();
        self.batch.begin(&self.node);
        self.batch.set_source(source);
        let caller = self.session.caller(self.node.config().cluster.consistency);
        self.run_command(&view, spec, 0..request.len(), args, caller);
        if is_whole {
            self.end_command();
            self.count_calls(self.node.clock().now().since(began));
        }
        self.answer_batch(request).await;
        self.batch.set_source(Source::none());
    }

    /// Writes what others have to say to the client, a part of it: its own commands have their turn too.
    pub(super) async fn write_messages(&mut self) -> io::Result<()> {
        if let Some(outbox) = self.place.client.outbox() {
            outbox.take(MESSAGES_BYTES, &mut self.output);
        }
        self.write().await?;
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Makes room for more input; returns how much of it may be read at once.
    pub(super) async fn make_room(&mut self) -> usize {
        let (wanted, spare) = (self.parser.wanted(), self.input.capacity() - self.input.len());
        if wanted <= READ_BYTES {
            if spare < READ_BYTES / 8 {
                self.grow(READ_BYTES).await;
            }
            return READ_BYTES_MAX;
        }
        if spare < wanted.min(READ_BYTES) {
            // Doubled while it is small, as what a client promises may never come; then the whole string at once, so
            // that what is there is not copied again.
            let grown = self.input.len().max(READ_BYTES_MAX);
            self.grow(if grown >= GROWN_BYTES { wanted.max(grown) } else { wanted.min(grown) }).await;
        }
        // Nothing of the next request: the buffer may be kept as the value.
        wanted.min(READ_BYTES_MAX)
    }

    /// Makes room for `more` bytes. What is there is moved a little at a time.
    async fn grow(&mut self, more: usize) {
        if self.input.len() < GROWN_BYTES {
            return self.input.reserve(more);
        }
        let larger = BytesMut::with_capacity(self.input.len() + more.max(self.input.len()));
        let old = std::mem::replace(&mut self.input, larger);
        for chunk in old.chunks(READ_BYTES_MAX) {
            self.input.extend_from_slice(chunk);
            tokio::task::yield_now().await;
        }
        self.node.discard([old.freeze()].into_iter().collect());
    }
}

/// Writes a little at a time: a reader on the same machine takes as much as it is given, while other tasks wait.
pub(super) async fn write_all(stream: &mut TcpStream, client: &Client, bytes: &[u8]) -> io::Result<()> {
    let mut chunks = bytes.chunks(WRITE_BYTES).peekable();
    while let Some(chunk) = chunks.next() {
        tokio::select! {
            biased;
            written = stream.write_all(chunk) => written?,
            () = client.killed() => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        if chunks.peek().is_some() {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
