//! Commands with very many keys, a slice at a time.
//!
//! For: cutting `MGET`, `MSET`, `DEL` and kin into commands of the same name with fewer keys, and putting their
//! replies together, so that other connections of the thread get their turn between the slices. Only where the keys
//! are in different slots: such a command is not atomic anyway.
//! Not here: running the slices (`net::connection`), splitting by partition (`split`).

use bytes::{BufMut, Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec, Flags};
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::encode_header;
use korum_protocol::resp::{Args, ReplyWriter};
use korum_protocol::rope::Rope;

use super::assemble::{UNKNOWN, integer};
use super::caller::Caller;
use super::route::Port;
use crate::command::string::REPLY_TOO_LARGE;

/// Arguments of a slice, and those above which a command is cut: some milliseconds of work.
pub const ARGUMENTS_MAX: usize = 4096;
/// Bytes after which a slice ends, unless it is one key and its value.
const SLICE_BYTES: usize = 1 << 20;
/// Bytes copied into a slice before other tasks of the thread get their turn.
const COPY_BYTES: usize = 1 << 20;

/// How far a command is.
pub struct Slices {
    spec: &'static CommandSpec,
    width: usize,
    next: usize,
    /// Keys of the slice that runs.
    keys: usize,
    total: usize,
    sum: i64,
    has_run: bool,
    /// The reply is an error, and nothing more runs.
    has_failed: bool,
}

impl Slices {
    /// A command that is to be run in slices; `None` if it has to run as a whole.
    #[must_use]
    pub fn of(spec: &'static CommandSpec, args: &Args<'_>, caller: Caller, view: &View) -> Option<Self> {
        let width = if spec.id == CommandId::MSet { 2 } else { 1 };
        let is_cut = args.len() > ARGUMENTS_MAX
            && caller.port == Port::Client
            && spec.flags.contains(Flags::SPLIT)
            && (args.len() - 1).is_multiple_of(width);
        if !is_cut {
            return None;
        }
        let partition = |at: usize| view.partition_of_slot(slot_of(&args[at]));
        let first = partition(1);
        (1..args.len()).step_by(width).any(|at| partition(at) != first).then_some(Self {
            spec,
            width,
            next: 1,
            keys: 0,
            total: (args.len() - 1) / width,
            sum: 0,
            has_run: false,
            has_failed: false,
        })
    }

    /// The next slice, as a request; `None` at the end.
    pub async fn next(&mut self, args: &Args<'_>) -> Option<Bytes> {
        if self.has_failed || self.next >= args.len() {
            return None;
        }
        tokio::task::yield_now().await;
        let (start, mut end, mut bytes) = (self.next, self.next, 0);
        while end < args.len() && end - start < ARGUMENTS_MAX && bytes < SLICE_BYTES {
            bytes += (end..end + self.width).map(|at| args[at].len() + 16).sum::<usize>();
            end += self.width;
        }
        (self.next, self.keys) = (end, (end - start) / self.width);
        let mut slice = BytesMut::with_capacity(bytes + args[0].len() + 32);
        encode_header(b'*', 1 + end - start, &mut slice);
        for at in std::iter::once(0).chain(start..end) {
            encode_header(b'$', args[at].len(), &mut slice);
            for piece in args[at].chunks(COPY_BYTES) {
                slice.put_slice(piece);
                if piece.len() == COPY_BYTES {
                    tokio::task::yield_now().await;
                }
            }
            slice.put_slice(b"\r\n");
        }
        Some(slice.freeze())
    }

    /// Takes the reply of the slice that ran; `reply` becomes that of the whole.
    pub fn take_reply(&mut self, slice: &Rope, reply: &mut Rope) {
        let header = format!("*{}\r\n", self.keys);
        let is_taken = match self.spec.id {
            CommandId::MGet => slice.after_prefix(header.as_bytes()).is_some_and(|start| {
                reply.append_part(slice, start, slice.mark());
                true
            }),
            CommandId::MSet => slice.copied().starts_with(b"+"),
            _ => integer(slice.copied()).map(|number| self.sum += number).is_some(),
        };
        if is_taken && reply.len() <= BULK_BYTES_MAX {
            self.has_run = true;
            return;
        }
        self.has_failed = true;
        reply.clear();
        let may_have_written = self.has_run && self.spec.flags.contains(Flags::WRITE);
        let text = if is_taken { format!("-{REPLY_TOO_LARGE}\r\n") } else { format!("-{UNKNOWN}\r\n") };
        if is_taken || may_have_written {
            reply.extend_from_slice(text.as_bytes());
        } else {
            reply.append(slice);
        }
    }

    /// Appends the reply of the whole to `out`; `reply` is what [`Self::take_reply`] has made.
    pub fn finish(self, caller: Caller, reply: Rope, out: &mut Rope) {
        if !self.has_failed {
            let mut writer = ReplyWriter::holding(out, caller.version);
            match self.spec.id {
                CommandId::MGet => writer.array(self.total),
                CommandId::MSet => writer.ok(),
                _ => writer.integer(self.sum),
            }
        }
        out.append(&reply);
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::command::lookup;
    use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};

    use super::*;
    use crate::command::test_maps;

    fn caller(port: Port) -> Caller {
        Caller::plain(port)
    }

    /// The reply of a command of so many keys, whose slices `answer` answers, by their number and keys.
    async fn run(
        name: &str,
        keys: usize,
        mut answer: impl FnMut(usize, Vec<String>) -> String,
    ) -> Option<String> {
        let spec = lookup(name.as_bytes()).unwrap();
        let words: Vec<String> =
            std::iter::once(name.to_owned()).chain((0..keys).map(|number| format!("key:{number}"))).collect();
        let mut request = BytesMut::new();
        korum_protocol::resp::encode_request(&words, &mut request);
        let mut parser = RequestParser::new(RequestLimits::unlimited());
        parser.parse(&request).unwrap();
        let args = parser.args(&request);
        let mut slices = Slices::of(spec, &args, caller(Port::Client), &test_maps::single(64))?;
        let (mut reply, mut out, mut number, mut seen) = (Rope::new(), Rope::new(), 0, Vec::new());
        while let Some(slice) = slices.next(&args).await {
            let mut parser = RequestParser::new(RequestLimits::unlimited());
            assert_eq!(parser.parse(&slice), Ok(Parsed::Request { consumed: slice.len() }));
            let args = parser.args(&slice);
            assert_eq!(&args[0], name.as_bytes());
            let keys: Vec<String> =
                args.tail(1).iter().map(|key| String::from_utf8(key.to_vec()).unwrap()).collect();
            seen.extend(keys.clone());
            slices.take_reply(&answer(number, keys).as_bytes().into(), &mut reply);
            number += 1;
        }
        if !slices.has_failed {
            assert_eq!(seen, words[1..]);
        }
        slices.finish(caller(Port::Client), reply, &mut out);
        Some(String::from_utf8(out.into_bytes().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn replies_of_slices_make_the_reply_of_the_whole() {
        const KEYS: usize = 2 * ARGUMENTS_MAX + 2;
        let counted = |_: usize, keys: Vec<String>| format!(":{}\r\n", keys.len());
        assert_eq!(run("exists", KEYS, counted).await, Some(format!(":{KEYS}\r\n")));
        let listed =
            |_: usize, keys: Vec<String>| format!("*{}\r\n{}", keys.len(), "$1\r\nx\r\n".repeat(keys.len()));
        let all = format!("*{KEYS}\r\n{}", "$1\r\nx\r\n".repeat(KEYS));
        assert_eq!(run("mget", KEYS, listed).await, Some(all));
        assert_eq!(run("mset", KEYS, |_, _| "+OK\r\n".into()).await.as_deref(), Some("+OK\r\n"));
        assert_eq!(run("mget", ARGUMENTS_MAX - 1, listed).await, None, "short enough as it is");
        assert_eq!(run("mset", KEYS + 1, |_, _| "+OK\r\n".into()).await, None, "a value is missing");
    }

    #[tokio::test]
    async fn what_was_written_before_an_error_is_not_said_to_be_undone() {
        const KEYS: usize = 2 * ARGUMENTS_MAX;
        let fails_at = |failing: usize| {
            move |number, _| {
                if number == failing { "-CLUSTERDOWN x\r\n".into() } else { ":1\r\n".to_owned() }
            }
        };
        assert_eq!(run("del", KEYS, fails_at(0)).await.as_deref(), Some("-CLUSTERDOWN x\r\n"));
        assert!(run("del", KEYS, fails_at(1)).await.unwrap().starts_with("-UNKNOWN "));
        assert_eq!(run("touch", KEYS, fails_at(1)).await.as_deref(), Some("-CLUSTERDOWN x\r\n"));
    }
}
