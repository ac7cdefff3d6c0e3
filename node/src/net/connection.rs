//! One client connection.
//!
//! For: read, execute a batch, wait once, write; and again.
//! Not here: what a command does (`dispatch`), what the connection remembers (`session`).
//!
//! An idle connection holds no buffers. A client that does not read its replies holds at most one
//! batch of them: nothing more is read from it before they are written.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, BytesMut};
use korum_protocol::command::resolve::find;
use korum_protocol::command::{CommandId, CommandSpec, Flags, ResolveError, resolve};
use korum_protocol::map::View;
use korum_protocol::resp::Args;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::rope::Rope;
use tokio::io::AsyncWriteExt;

use super::clients::{Client, Flag, Place};
use super::large::write_all;
use super::measure::Measure;
use super::session::{PortKind, Session};
use crate::admin::stats::Counter;
use crate::command::pubsub;
use crate::dispatch::blocking;
use crate::dispatch::keyless::{self, Asker};
use crate::dispatch::transaction::{self, apart};
use crate::dispatch::{Batch, Caller, admit, alone, track};
use crate::dispatch::{functions, scripts, slices};
use crate::env::random::random;
use crate::env::transport::TcpStream;
use crate::executor::worker_number;
use crate::node::Node;

/// Bytes asked from the socket at once.
pub(super) const READ_BYTES: usize = 32 << 10;
/// A request of so many bytes is a batch of its own, and its buffer may be kept as the value in it.
const LARGE_REQUEST_BYTES: usize = 1 << 20;
/// Commands of one batch: enough that the cost of waiting and writing once is spread thin, few enough
/// that other connections of the thread get their turn.
const BATCH_COMMANDS: usize = 1024;
/// Commands of a connection's first batch: how large its replies are is not known yet.
const FIRST_BATCH_COMMANDS: usize = 64;
/// Tasks after which a batch takes no more commands: one command that asks every partition makes thousands.
const BATCH_TASKS: usize = 2048;
/// What the replies of one batch may take, wherever they come from, as far as the batch before tells.
const BATCH_OUTPUT_BYTES: usize = 16 << 20;
/// Reply bytes after which a batch takes no more commands.
const BATCH_REPLY_BYTES: usize = 1 << 20;
/// Request bytes after which a batch takes no more commands: what is forwarded fits in a frame.
const BATCH_REQUEST_BYTES: usize = 16 << 20;
/// A connection that is silent for so long gives its buffers back.
const BUFFERS_KEPT: Duration = Duration::from_secs(1);
/// A buffer that has grown beyond this is given back when it is empty.
const KEPT_BUFFER_BYTES: usize = 64 << 10;

/// Pause between looks whether a client that waits and has sent more is still there.
const PEEK_PAUSE: Duration = Duration::from_millis(100);

/// A connection and its buffers.
pub struct Connection {
    pub(super) node: Arc<Node>,
    pub(super) stream: TcpStream,
    pub(super) place: Place,
    pub(super) session: Session,
    pub(super) parser: RequestParser,
    pub(super) input: BytesMut,
    pub(super) output: Rope,
    pub(super) batch: Batch,
    pub(super) commands_max: usize,
}

/// What comes after a batch.
enum After {
    /// More of the same.
    Continue,
    /// A large request, of this length.
    Large(&'static CommandSpec, usize),
    /// A command that has to be run alone, whose request has this length.
    Alone(&'static CommandSpec, usize),
    /// A command that has to wait until a pause of all clients is over.
    Paused,
    /// Nothing: close once everything is written.
    Close,
}

impl Connection {
    /// Serves the connection until either side closes it.
    pub async fn serve(node: Arc<Node>, stream: TcpStream, place: Place, port: PortKind) {
        let needs_password = !node.live.text("requirepass").is_empty();
        let session = Session::new(place.client.id, port, needs_password);
        let limits = RequestLimits { bulk_bytes: node.live.proto_max_bulk_len(), ..RequestLimits::default() };
        let mut connection = Self {
            parser: RequestParser::new(limits),
            input: BytesMut::new(),
            output: Rope::new(),
            commands_max: FIRST_BATCH_COMMANDS,
            batch: Batch::new(random()),
            node,
            stream,
            place,
            session,
        };
        // The client is gone, or the socket failed: either way there is nobody to tell.
        let _ = connection.run().await;
    }

    async fn run(&mut self) -> io::Result<()> {
        loop {
            let (consumed, after) = self.take_batch();
            if !self.batch.is_empty() {
                self.node.stats.of(worker_number()).add(Counter::Commands, self.batch.len() as u64);
                let input = std::mem::take(&mut self.input);
                self.answer_batch(&input).await;
                self.input = input;
            }
            self.input.advance(consumed);
            let mut used = consumed;
            match after {
                After::Alone(spec, length) => {
                    let request = self.input.split_to(length).freeze();
                    self.run_alone(spec, &request).await;
                    used += length;
                }
                After::Large(spec, length) => {
                    let request = self.input.split_to(length).freeze();
                    self.run_large(spec, request).await;
                    used += length;
                }
                After::Continue | After::Paused | After::Close => {}
            }
            self.write().await?;
            if matches!(after, After::Close) || self.session.closing || self.place.client.is_killed() {
                return self.stream.shutdown().await;
            }
            match after {
                After::Paused => tokio::select! {
                    () = self.node.clients.pause_over(self.node.clock()) => {}
                    () = self.place.client.killed() => {}
                },
                After::Continue if used == 0 && !self.read().await? => return Ok(()),
                After::Continue | After::Alone(..) | After::Large(..) | After::Close => {}
            }
        }
    }

    /// Runs what is in the input buffer, as far as it goes at once. Gives the bytes used.
    fn take_batch(&mut self) -> (usize, After) {
        let began = self.node.clock().now();
        self.batch.begin(&self.node);
        self.place.client.set_buffers(self.input.len(), 0);
        let view = self.node.view();
        let (mut parser, input) = (std::mem::take(&mut self.parser), std::mem::take(&mut self.input));
        let (mut start, mut last) = (0, None);
        let mut after = After::Continue;
        while start < BATCH_REQUEST_BYTES
            && self.batch.len() < self.commands_max
            && self.batch.task_count() < BATCH_TASKS
            && self.batch.reply_bytes() < BATCH_REPLY_BYTES
        {
            let caller = self.session.caller(self.node.config().cluster.consistency);
            let consumed = match parser.parse(&input[start..]) {
                Ok(Parsed::Request { consumed }) => consumed,
                Ok(Parsed::Empty { consumed }) => {
                    start += consumed;
                    continue;
                }
                Ok(Parsed::Incomplete) => break,
                Err(error) => {
                    self.batch.open(start..start, caller);
                    self.batch.reply(caller.version).error_bytes(&error.reply());
                    self.end_command();
                    after = After::Close;
                    break;
                }
            };
            let range = start..start + consumed;
            let args = parser.args(&input[range.clone()]);
            let spec = resolve(&args).map_err(ResolveError::reply);
            let spec = spec.and_then(|spec| match admit::admit(spec, &self.session, consumed) {
                Ok(()) => match pubsub::refusal(spec, &self.place.client, self.session.version) {
                    None => Ok(spec),
                    Some(text) => Err(text.into()),
                },
                Err(text) => Err(text.into()),
            });
            match spec {
                Ok(spec) if spec.id != CommandId::ClientUnpause && self.is_held_back(spec) => {
                    after = After::Paused;
                    break;
                }
                Ok(spec)
                    if scripts::must_ask(&self.node, spec, &args)
                        || functions::must_ask(&self.node, spec, &args) =>
                {
                    after = After::Alone(spec, consumed);
                    break;
                }
                Ok(spec) if self.session.transaction.queues(spec) => {
                    self.show(spec, &args);
                    self.batch.open(range, caller);
                    let mut asker = Asker { session: &mut self.session, client: &self.place.client };
                    transaction::queue(&mut self.batch, &self.node, &view, spec, &args, caller, &mut asker);
                    last = Some(spec.full_name);
                }
                Ok(spec) if self.batch.ends_before(spec) => break,
                Ok(spec)
                    if alone::runs_alone(spec, &args)
                        || blocking::runs_alone(spec, &args, caller)
                        || apart::runs_alone(spec, &self.session.transaction) =>
                {
                    after = After::Alone(spec, consumed);
                    break;
                }
                Ok(spec) if consumed >= LARGE_REQUEST_BYTES || args.len() > slices::ARGUMENTS_MAX => {
                    after = After::Large(spec, consumed);
                    break;
                }
                Ok(spec) => {
                    self.run_command(&view, spec, range, &args, caller);
                    last = Some(spec.full_name);
                }
                Err(text) => {
                    self.batch.open(range, caller);
                    let mut asker = Asker { session: &mut self.session, client: &self.place.client };
                    let text = transaction::refuse(&args, text, &mut asker);
                    self.batch.reply(caller.version).error_bytes(&text);
                    self.node.stats.of(worker_number()).add(Counter::Rejected, 1);
                    if let Ok(spec) = find(&args) {
                        self.batch.refused(spec.id);
                    }
                }
            }
            self.end_command();
            start += consumed;
            if self.session.closing {
                after = After::Close;
                break;
            }
        }
        if !self.batch.is_empty() {
            let now = self.node.clock().now();
            if let Some(command) = last {
                self.place.client.touch(now, command);
            }
            self.count_calls(now.since(began));
        }
        (self.parser, self.input) = (parser, input);
        (start, after)
    }

    pub(super) fn run_command(
        &mut self,
        view: &View,
        spec: &'static CommandSpec,
        request: Range<usize>,
        args: &Args<'_>,
        caller: Caller,
    ) {
        if self.session.tracking.is_some() {
            track::before(&self.node, spec, args, caller, &mut self.session, &self.place.client);
        }
        self.show(spec, args);
        let measure = Measure::begin(&self.node, spec.flags.contains(Flags::FAST));
        self.batch.open(request, caller);
        let mut asker = Asker { session: &mut self.session, client: &self.place.client };
        keyless::run(&mut self.batch, &self.node, view, spec, args, caller, &mut asker);
        let client = &self.place.client;
        let whose = || (client.address.to_string(), client.name());
        let took = measure.end(&self.node, args, || Some(spec), whose);
        self.batch.called(spec.id, took);
    }

    /// Counts what the batch has run, which took so long.
    pub(super) fn count_calls(&self, busy: Duration) {
        let stats = &self.node.stats.of(worker_number()).commands;
        self.batch.count_calls(stats, busy, self.node.live.tracks_latency());
    }

    /// Shows a command to those who watch what comes in.
    fn show(&self, spec: &CommandSpec, args: &Args<'_>) {
        let monitors = &self.node.clients.monitors;
        let is_secret = matches!(spec.id, CommandId::Auth | CommandId::Hello);
        if monitors.has_any() && !is_secret {
            let (clock, limits) = (self.node.clock(), self.node.live.pubsub_limits());
            monitors.show(spec, args, &self.place.client, clock.wall_us(), &limits, clock.now());
        }
    }

    fn is_held_back(&self, spec: &CommandSpec) -> bool {
        let is_write = transaction::writes(spec, &self.session.transaction);
        self.node.clients.holds_back(is_write, || self.node.clock().now())
    }

    /// The command that was opened last has run: is its reply wanted?
    pub(super) fn end_command(&mut self) {
        if self.session.end_command() {
            self.batch.mute();
        }
    }

    /// Waits for what the batch depends on, whose requests are in `input`, and moves its replies to the output
    /// buffer.
    pub(super) async fn answer_batch(&mut self, input: &[u8]) {
        let stats = self.node.stats.of(worker_number());
        let deadline = self.node.request_deadline();
        if !self.batch.is_settled(&self.node) || self.batch.has_tasks() || self.batch.has_published() {
            self.batch.finish(&self.node, input, deadline).await;
        }
        self.batch.count_looks(&self.node);
        self.session.written.extend(self.batch.written_async());
        let batch_len = self.batch.len().max(1);
        if self.batch.is_plain() {
            for (command, reply) in self.batch.plain_errors() {
                stats.add_error_reply(reply);
                self.batch.count_error(command, &stats.commands);
            }
            std::mem::swap(&mut self.output, self.batch.plain_mut());
            self.pace(batch_len);
            return;
        }
        let mut repeated = self.batch.repeat(&self.node, input, deadline).await;
        self.batch.assemble_telling(
            &mut self.output,
            |command| repeated.remove(&command),
            |command, reply| {
                stats.add_error_reply(reply);
                self.batch.count_error(command, &stats.commands);
            },
        );
        self.pace(batch_len);
    }

    /// How many commands the next batch may have: twice as many as the last, unless their replies were large.
    fn pace(&mut self, commands: usize) {
        let bytes_each = (self.output.len() / commands).max(1);
        let fitting = BATCH_OUTPUT_BYTES / bytes_each;
        self.commands_max = (self.commands_max * 2).min(fitting).clamp(1, BATCH_COMMANDS);
    }

    async fn run_alone(&mut self, spec: &'static CommandSpec, request: &[u8]) {
        let mut parser = RequestParser::new(RequestLimits::unlimited());
        let Ok(Parsed::Request { .. }) = parser.parse(request) else {
            unreachable!("a request that was parsed before")
        };
        let args = parser.args(request);
        self.show(spec, &args);
        let (caller, start) =
            (self.session.caller(self.node.config().cluster.consistency), self.output.mark());
        let stats = self.node.stats.of(worker_number());
        stats.add(Counter::Commands, 1);
        let client = &self.place.client;
        let began = self.node.clock().now();
        client.touch(began, spec.full_name);
        if self.session.tracking.is_some() {
            track::before(&self.node, spec, &args, caller, &mut self.session, client);
        }
        let mut asker = Asker { session: &mut self.session, client };
        let is_gone = tokio::select! {
            biased;
            () = alone::run(&self.node, spec, &args, caller, &mut asker, self.output.copied_mut()) => false,
            () = until_gone(&self.stream, client) => true,
        };
        stats.commands.called(spec.id, 1);
        let waits = spec.id == CommandId::Wait || blocking::may_wait(spec, &args);
        if !waits && self.node.live.tracks_latency() {
            stats.commands.took(spec.id, 1, self.node.clock().now().since(began).as_nanos() as u64);
        }
        if let reply @ [b'-', ..] = self.output.copied_since(start) {
            stats.add_error_reply(reply);
            stats.commands.failed(spec.id, 1);
        }
        if self.session.end_command() {
            self.output.truncate(start);
        }
        self.session.closing |= is_gone;
    }

    pub(super) async fn write(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            let stats = self.node.stats.of(worker_number());
            stats.add(Counter::Writes, 1);
            stats.add(Counter::BytesOut, self.output.len() as u64);
            self.place.client.set_buffers(self.input.len(), self.output.len());
            if self.output.is_flat() {
                write_all(&mut self.stream, &self.place.client, self.output.copied()).await?;
            } else {
                let pieces = self.output.take_pieces();
                for piece in &pieces {
                    write_all(&mut self.stream, &self.place.client, piece).await?;
                }
                self.node.discard(pieces.into_iter().collect());
            }
            self.place.client.set_buffers(self.input.len(), 0);
            self.output.clear();
        }
        if self.output.capacity() > KEPT_BUFFER_BYTES {
            self.node.discard([std::mem::take(&mut self.output).into_bytes()].into_iter().collect());
        }
        if self.input.is_empty() && self.input.capacity() > KEPT_BUFFER_BYTES {
            self.input = BytesMut::new();
        }
        Ok(())
    }

    /// Waits for more input. False when the client has closed, or is to be closed.
    async fn read(&mut self) -> io::Result<bool> {
        if self.input.len() > self.node.live.client_query_buffer_limit() {
            return Ok(false);
        }
        let client = Arc::clone(&self.place.client);
        let since = self.node.clock().now();
        let mut has_buffers = true;
        loop {
            if client.has_messages() {
                self.write_messages().await?;
                has_buffers = true;
            }
            if client.is_killed() {
                return Ok(false);
            }
            // Those who listen may be silent for as long as they like.
            let timeout = self.node.live.timeout().filter(|_| !client.has_flag(Flag::Subscribed));
            let idle = self.node.clock().now().since(since);
            let left = timeout.map(|longest| longest.saturating_sub(idle));
            let has_messages = client.has_messages();
            let patience = if has_messages {
                Some(Duration::ZERO)
            } else if has_buffers {
                Some(left.map_or(BUFFERS_KEPT, |left| left.min(BUFFERS_KEPT)))
            } else {
                left
            };
            let ready = async {
                match patience {
                    Some(wait) => tokio::time::timeout(wait, self.stream.readable()).await.ok(),
                    None => Some(self.stream.readable().await),
                }
            };
            let ready = tokio::select! {
                biased;
                ready = ready => ready,
                () = client.woken() => continue,
            };
            let Some(ready) = ready else {
                if has_messages {
                    continue;
                }
                let idle = self.node.clock().now().since(since);
                if timeout.is_some_and(|longest| idle >= longest) {
                    return Ok(false);
                }
                if self.input.is_empty() {
                    self.input = BytesMut::new();
                    self.output = Rope::new();
                    self.batch.give_back_buffers();
                }
                has_buffers = false;
                continue;
            };
            ready?;
            if client.is_killed() {
                return Ok(false);
            }
            let most = self.make_room().await;
            match self.stream.try_read_buf(&mut (&mut self.input).limit(most)) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    let stats = self.node.stats.of(worker_number());
                    stats.add(Counter::Reads, 1);
                    stats.add(Counter::BytesIn, count as u64);
                    if count > READ_BYTES {
                        tokio::task::yield_now().await;
                    }
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns when the other side has closed, or somebody wants it closed. What it sends meanwhile stays unread.
async fn until_gone(stream: &TcpStream, client: &Client) {
    let mut byte = [0];
    loop {
        tokio::select! {
            peeked = stream.peek(&mut byte) => match peeked {
                Ok(0) | Err(_) => return,
                Ok(_) => tokio::time::sleep(PEEK_PAUSE).await,
            },
            () = client.killed() => return,
        }
    }
}
