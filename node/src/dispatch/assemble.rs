//! Puts a batch's replies together, in request order.
//!
//! For: bytes for the socket, once nothing is open any more.
//! Not here: waiting for them (`finish`).

use korum_protocol::resp::ReplyWriter;
use korum_protocol::rope::{Mark, Rope};

use super::batch::Batch;
use super::everywhere::scan_cursor;
use super::parts::{Combine, CommandReply, Failure, Task, TaskState};
use crate::net::forward::Answer;

pub(super) const UNKNOWN: &str = "UNKNOWN the outcome is unknown: the write may or may not have been done; read the key before repeating it";
pub(super) const DOWN: &str =
    "CLUSTERDOWN no node could serve the key in time; try again, and see KORUM STATUS";

impl Batch {
    /// Every reply is in `out` as it stands.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.tasks.is_empty()
            && self
                .commands
                .iter()
                .all(|it| it.failure.is_none() && it.combine == Combine::InPlace && !it.is_muted)
    }

    /// The replies of a plain batch.
    pub fn plain_mut(&mut self) -> &mut Rope {
        &mut self.out
    }

    /// The error replies of a plain batch, from the minus sign on, and whose they are.
    pub fn plain_errors(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let starts = self.commands.iter().map(|command| self.out.copied_since(command.start));
        starts.enumerate().filter(|(_, reply)| reply.first() == Some(&b'-'))
    }

    /// Commands that only read, on a node that lost its lease or its role meanwhile: to be run again.
    pub(super) fn to_repeat(&self) -> impl Iterator<Item = usize> + '_ {
        let commands = self.commands.iter().enumerate();
        commands.filter(|(_, command)| command.failure == Some(Failure::Again)).map(|(at, _)| at)
    }

    /// Where a command's request stands in the batch's input, and the protocol its reply is to speak.
    #[must_use]
    pub(super) fn request(&self, command: usize) -> (std::ops::Range<usize>, super::caller::Caller) {
        (self.commands[command].request.clone(), self.commands[command].caller)
    }

    /// Appends all replies to `to`; `repeated` gives the replies of `to_repeat`.
    pub fn assemble(&self, to: &mut Rope, repeated: impl FnMut(usize) -> Option<Rope>) {
        self.assemble_telling(to, repeated, |_, _| {});
    }

    /// As [`Self::assemble`], telling whose reply is an error, and the reply from the minus sign on.
    pub fn assemble_telling(
        &self,
        to: &mut Rope,
        mut repeated: impl FnMut(usize) -> Option<Rope>,
        mut tell_error: impl FnMut(usize, &[u8]),
    ) {
        let mut tasks = self.tasks.as_slice();
        for (at, command) in self.commands.iter().enumerate() {
            let count = tasks.iter().take_while(|task| task.command == at).count();
            let (mine, rest) = tasks.split_at(count);
            tasks = rest;
            let from = to.mark();
            match repeated(at).filter(|_| command.failure == Some(Failure::Again)) {
                Some(reply) => to.append(&reply),
                None => self.reply_of(at, command, mine, to),
            }
            if let reply @ [b'-', ..] = to.copied_since(from) {
                tell_error(at, reply);
            }
            if command.is_muted {
                to.truncate(from);
            }
        }
    }

    /// The answers of a forwarded batch, one for each command.
    #[must_use]
    pub fn answers(&self) -> Vec<Answer> {
        let mut tasks = self.tasks.as_slice();
        let mut answers = Vec::with_capacity(self.commands.len());
        for (at, command) in self.commands.iter().enumerate() {
            let count = tasks.iter().take_while(|task| task.command == at).count();
            let (mine, rest) = tasks.split_at(count);
            tasks = rest;
            answers.push(match command.failure {
                Some(Failure::Unknown) => Answer::Unknown,
                Some(Failure::Again | Failure::Down) => Answer::NotExecuted,
                None if mine.iter().any(|task| !matches!(task.state, TaskState::Done(_))) => {
                    Answer::NotExecuted
                }
                None => {
                    let mut reply = Rope::new();
                    self.reply_of(at, command, mine, &mut reply);
                    Answer::Reply(reply)
                }
            });
        }
        answers
    }

    fn reply_of(&self, at: usize, command: &CommandReply, tasks: &[Task], to: &mut Rope) {
        let mut writer = ReplyWriter::holding(to, command.caller.version);
        match command.failure {
            Some(Failure::Unknown) => return writer.error(UNKNOWN),
            Some(Failure::Down | Failure::Again) => return writer.error(DOWN),
            None => {}
        }
        let mut replies = tasks.iter().filter_map(|task| match &task.state {
            TaskState::Done(reply) => Some((task, reply)),
            TaskState::Pending | TaskState::Sent | TaskState::Failed => None,
        });
        match command.combine {
            Combine::InPlace => {
                let end = self.commands.get(at + 1).map_or(self.out.mark(), |next| next.start);
                let mut from = command.start;
                for (task, reply) in replies {
                    to.append_part(&self.out, from, task.at);
                    let start = if task.is_element { element(reply) } else { Mark::default() };
                    to.append_part(reply, start, reply.mark());
                    from = task.at;
                }
                to.append_part(&self.out, from, end);
            }
            Combine::Sum(here) => {
                let mut sum = here;
                for (_, reply) in replies {
                    match integer(reply.copied()) {
                        Some(number) => sum += number,
                        None => return writer.raw(reply.copied()),
                    }
                }
                writer.integer(sum);
            }
            Combine::Concat => {
                let flat: Vec<_> = replies.map(|(_, reply)| reply.flat()).collect();
                concat(&mut writer, flat.iter().map(|reply| &reply[..]));
            }
            Combine::Scan { is_last } => {
                let flat: Vec<_> = replies.map(|(task, reply)| (task.partition, reply.flat())).collect();
                scan(&mut writer, is_last, flat.iter().map(|(partition, reply)| (*partition, &reply[..])));
            }
            Combine::Any(first) => {
                let all: Vec<_> = replies.map(|(_, reply)| reply.flat()).collect();
                let found = all.iter().cycle().skip(first).take(all.len()).find(|reply| !is_null(reply));
                match found {
                    Some(reply) => writer.raw(reply),
                    None => writer.null(),
                }
            }
            Combine::AllOk => match replies.find(|(_, reply)| reply.copied().first() == Some(&b'-')) {
                Some((_, error)) => writer.raw(error.copied()),
                None => writer.ok(),
            },
        }
    }
}

fn is_null(reply: &[u8]) -> bool {
    reply == b"$-1\r\n" || reply == b"_\r\n"
}

/// The number of elements of an array reply, and the elements.
fn array(reply: &[u8]) -> Option<(usize, &[u8])> {
    let end = memchr::memchr(b'\n', reply)?;
    let digits = reply[..end].strip_prefix(b"*")?.strip_suffix(b"\r")?;
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, &reply[end + 1..]))
}

/// One array of the elements of all; the first error instead, if there is one.
fn concat<'r>(writer: &mut ReplyWriter<'_>, replies: impl Iterator<Item = &'r [u8]> + Clone) {
    if let Some(error) = replies.clone().find(|reply| array(reply).is_none()) {
        return writer.raw(error);
    }
    writer.array(replies.clone().filter_map(array).map(|(count, _)| count).sum());
    replies.filter_map(array).for_each(|(_, elements)| writer.raw(elements));
}

/// Every part is `[next, [keys]]`; `next` is null when the partition has no more.
fn scan<'r>(writer: &mut ReplyWriter<'_>, is_last: bool, replies: impl Iterator<Item = (u16, &'r [u8])>) {
    let mut last = None;
    let mut parts = Vec::new();
    for (partition, reply) in replies {
        let Some(part) = scan_part(reply) else { return writer.raw(reply) };
        last = Some((partition, part.0));
        parts.push(part.1);
        if part.0.is_some() {
            break;
        }
    }
    let cursor = match last {
        Some((partition, Some(next))) => scan_cursor::join(partition, next),
        Some((partition, None)) if !is_last => scan_cursor::after(partition),
        Some((_, None)) | None => 0,
    };
    writer.array(2);
    writer.bulk(cursor.to_string().as_bytes());
    concat(writer, parts.into_iter());
}

/// Where a partition's scan goes on, and the array of keys.
fn scan_part(reply: &[u8]) -> Option<(Option<u64>, &[u8])> {
    let (_, rest) = array(reply)?;
    let end = memchr::memchr(b'\n', rest)?;
    let next = integer(&rest[..=end])?;
    Some((u64::try_from(next).ok(), &rest[end + 1..]))
}

/// Where the element of an array of one begins; an error stays as it is.
pub(super) fn element(reply: &Rope) -> Mark {
    reply.after_prefix(b"*1\r\n").unwrap_or_default()
}

/// The number of an integer reply.
pub(super) fn integer(reply: &[u8]) -> Option<i64> {
    let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use korum_protocol::command::lookup;

    use super::super::caller::Caller;
    use super::super::parts::TaskRequest;
    use super::*;
    use crate::dispatch::Port;
    use crate::env::random::random;
    use korum_protocol::resp::ProtocolVersion;

    fn caller() -> Caller {
        Caller::plain(Port::Client)
    }

    fn assembled(batch: &Batch) -> String {
        let mut out = Rope::new();
        batch.assemble(&mut out, |_| None);
        String::from_utf8(out.into_bytes().to_vec()).unwrap()
    }

    /// Opens a command that is made of tasks with these replies.
    fn gathered(batch: &mut Batch, combine: Combine, replies: &[&'static str]) {
        batch.open(0..0, caller());
        for reply in replies {
            batch.postpone(lookup(b"get").unwrap(), 0, TaskRequest::Whole, false);
            batch.tasks.last_mut().unwrap().state = TaskState::Done(reply.as_bytes().into());
        }
        batch.last().combine = combine;
    }

    #[test]
    fn replies_stand_in_request_order_whenever_they_came() {
        let mut batch = Batch::new(random());
        batch.open(0..0, caller());
        batch.reply(ProtocolVersion::Resp2).ok();
        gathered(&mut batch, Combine::InPlace, &["$1\r\na\r\n"]);
        batch.open(0..0, caller());
        batch.reply(ProtocolVersion::Resp2).integer(7);
        assert_eq!(assembled(&batch), "+OK\r\n$1\r\na\r\n:7\r\n");
    }

    #[test]
    fn elements_from_elsewhere_are_put_in_their_places() {
        let mut batch = Batch::new(random());
        batch.open(0..0, caller());
        batch.reply(ProtocolVersion::Resp2).array(3);
        batch.reply(ProtocolVersion::Resp2).bulk(b"x");
        batch.postpone(lookup(b"mget").unwrap(), 0, TaskRequest::Whole, true);
        batch.tasks[0].state = TaskState::Done(b"*1\r\n$1\r\ny\r\n"[..].into());
        batch.reply(ProtocolVersion::Resp2).null();
        assert_eq!(assembled(&batch), "*3\r\n$1\r\nx\r\n$1\r\ny\r\n$-1\r\n");
    }

    #[test]
    fn sums_and_agreements_are_of_all_parts_or_the_first_error() {
        let mut batch = Batch::new(random());
        gathered(&mut batch, Combine::Sum(2), &[":1\r\n", ":4\r\n"]);
        gathered(&mut batch, Combine::Sum(2), &[":1\r\n", "-OOM no\r\n"]);
        gathered(&mut batch, Combine::AllOk, &["+OK\r\n", "+OK\r\n"]);
        gathered(&mut batch, Combine::AllOk, &["+OK\r\n", "-ERR x\r\n"]);
        gathered(&mut batch, Combine::Concat, &["*0\r\n", "*2\r\n:1\r\n:2\r\n", "*1\r\n:3\r\n"]);
        gathered(&mut batch, Combine::Any(1), &["$1\r\na\r\n", "$-1\r\n", "$1\r\nc\r\n"]);
        assert_eq!(
            assembled(&batch),
            ":7\r\n-OOM no\r\n+OK\r\n-ERR x\r\n*3\r\n:1\r\n:2\r\n:3\r\n$1\r\nc\r\n"
        );
    }

    #[test]
    fn a_scan_ends_at_the_first_partition_that_has_more() {
        let (whole, partial) = ("*2\r\n:-1\r\n*1\r\n$1\r\na\r\n", "*2\r\n:5\r\n*1\r\n$1\r\nb\r\n");
        let mut batch = Batch::new(random());
        gathered(&mut batch, Combine::Scan { is_last: true }, &[whole, partial, whole]);
        let cursor = scan_cursor::join(0, 5);
        let digits = cursor.to_string();
        assert_eq!(
            assembled(&batch),
            format!("*2\r\n${}\r\n{digits}\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", digits.len())
        );
        let mut batch = Batch::new(random());
        gathered(&mut batch, Combine::Scan { is_last: true }, &[whole]);
        assert_eq!(assembled(&batch), "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n");
    }

    #[test]
    fn a_write_of_unknown_outcome_is_never_said_to_be_undone() {
        let mut batch = Batch::new(random());
        batch.open(0..0, caller());
        batch.reply(ProtocolVersion::Resp2).ok();
        batch.last().failure = Some(Failure::Unknown);
        assert!(assembled(&batch).starts_with("-UNKNOWN "));
        assert_eq!(batch.answers(), [Answer::Unknown]);
        batch.last().failure = Some(Failure::Down);
        assert_eq!(batch.answers(), [Answer::NotExecuted]);
    }
}
