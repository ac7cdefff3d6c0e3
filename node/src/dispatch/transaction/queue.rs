//! What a connection has queued since `MULTI`, and what it watches.
//!
//! For: the state of a transaction before it is executed, within bounds; what it makes of it in the end.
//! Not here: replies and routing (`transaction`), execution (`command::transaction`).

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec, Flags};
use korum_protocol::id::Position;
use korum_protocol::resp::Args;
use korum_protocol::resp::decode::encode_header;

use crate::command::unit::{UnitWriter, Watched, put_bulks};

/// Commands of one transaction: some ten milliseconds under its partition's lock.
pub const COMMANDS_MAX: usize = 65_536;
/// Bytes of the queued commands, with what each argument costs beside its own: some milliseconds to copy, and a unit
/// that writes them fits into one message to replicas with what the last command may add.
pub const BYTES_MAX: usize = 32 << 20;
/// Watched keys of one connection: each is compared with the whole backlog of its partition.
pub const WATCHED_MAX: usize = 1024;
/// Bytes of the watched keys: one of the longest fits.
pub const WATCHED_BYTES_MAX: usize = 17 << 20;
/// Bytes that are counted for each argument, and each command, beside what it says.
const OVERHEAD_BYTES: usize = 16;

const TOO_LARGE: &str = "ERR the transaction is too large; split it into smaller ones";
const TOO_MANY_WATCHED: &str = "ERR too many watched keys; see UNWATCH";

/// One connection's transaction. Owned by its session.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    queue: Option<Queue>,
    watched: Vec<(Watched, u16)>,
    watched_bytes: usize,
}

/// What was queued.
#[derive(Clone, Debug, Default)]
struct Queue {
    commands: Vec<Queued>,
    /// The arguments of all commands, as bulk strings.
    bulks: BytesMut,
    bytes: usize,
    has_failed: bool,
}

/// The command writes, or runs a script, which may.
#[must_use]
pub fn may_write(spec: &CommandSpec) -> bool {
    spec.flags.contains(Flags::WRITE)
        || matches!(spec.id, CommandId::Eval | CommandId::EvalSha | CommandId::FCall)
}

/// One queued command.
#[derive(Clone, Debug)]
pub struct Queued {
    /// Which.
    pub spec: &'static CommandSpec,
    /// Number of its arguments.
    pub arguments: usize,
    bulks: Range<usize>,
    /// The slot of its keys, the first one's if they are in several; `None` if it has none.
    pub slot: Option<u16>,
    /// Its keys are in several slots, and it is split by them.
    pub is_split: bool,
}

impl Queued {
    /// It removes all keys, those of the transaction's partition included.
    #[must_use]
    pub fn flushes(&self) -> bool {
        matches!(self.spec.id, CommandId::FlushAll | CommandId::FlushDb)
    }

    /// It is executed on the partition, and here too.
    #[must_use]
    pub fn is_in_both(&self) -> bool {
        self.flushes() || self.spec.id == CommandId::Select
    }
}

/// Keys are in several slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crossing;

impl Transaction {
    /// `MULTI` was said.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.queue.is_some()
    }

    /// `MULTI`. False if it was said before.
    pub fn open(&mut self) -> bool {
        let was_open = self.is_open();
        self.queue.get_or_insert_default();
        !was_open
    }

    /// A command was refused while others are queued: `EXEC` will refuse them all.
    pub fn fail(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.has_failed = true;
        }
    }

    /// Whether this command is queued, or refused, instead of being run.
    #[must_use]
    pub fn queues(&self, spec: &CommandSpec) -> bool {
        self.is_open()
            && !matches!(
                spec.id,
                CommandId::Exec | CommandId::Discard | CommandId::Multi | CommandId::Quit | CommandId::Reset
            )
    }

    /// Queues a command, whose keys have this slot; `is_split`: and others.
    ///
    /// # Errors
    /// With the text of the error reply when it does not fit any more.
    pub fn push(
        &mut self,
        spec: &'static CommandSpec,
        args: &Args<'_>,
        slot: Option<u16>,
        is_split: bool,
    ) -> Result<(), &'static str> {
        let queue = self.queue.get_or_insert_default();
        let bytes = args.bytes() + OVERHEAD_BYTES * (args.len() + 1);
        if queue.commands.len() >= COMMANDS_MAX || queue.bytes + bytes > BYTES_MAX {
            return Err(TOO_LARGE);
        }
        queue.bytes += bytes;
        let start = queue.bulks.len();
        put_bulks(args.iter(), &mut queue.bulks);
        let bulks = start..queue.bulks.len();
        queue.commands.push(Queued { spec, arguments: args.len(), bulks, slot, is_split });
        Ok(())
    }

    /// Watches a key of this slot, given as [`Watched::key`]; one that is watched already stays watched since then.
    ///
    /// # Errors
    /// With the text of the error reply when there are too many.
    pub fn watch(&mut self, key: &[u8], slot: u16, since: Position, swaps: u64) -> Result<(), &'static str> {
        if self.watched.iter().any(|(watched, _)| watched.key == key) {
            return Ok(());
        }
        if self.watched.len() >= WATCHED_MAX || self.watched_bytes + key.len() > WATCHED_BYTES_MAX {
            return Err(TOO_MANY_WATCHED);
        }
        self.watched_bytes += key.len();
        self.watched.push((Watched { key: Bytes::copy_from_slice(key), since, swaps }, slot));
        Ok(())
    }

    /// `UNWATCH`.
    pub fn unwatch(&mut self) {
        (self.watched, self.watched_bytes) = (Vec::new(), 0);
    }

    /// Commands queued, keys watched and bytes held, as `CLIENT LIST` shows them.
    #[must_use]
    pub fn sizes(&self) -> (Option<usize>, usize, usize) {
        let queue = self.queue.as_ref();
        let bytes = queue.map_or(0, |queue| queue.bytes) + self.watched_bytes;
        (queue.map(|queue| queue.commands.len()), self.watched.len(), bytes)
    }

    /// A queued command writes, or may.
    #[must_use]
    pub fn may_write(&self) -> bool {
        let mut commands = self.queue.iter().flat_map(|queue| &queue.commands);
        commands.any(|command| may_write(command.spec))
    }

    /// A queued command is not about keys: its reply is made here.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        self.queue.iter().flat_map(|queue| &queue.commands).any(|command| command.slot.is_none())
    }

    /// The keys, watched ones included, are in several slots.
    #[must_use]
    pub fn is_crossing(&self) -> bool {
        let queue = self.queue.as_ref();
        queue.is_some_and(|queue| only_slot(&queue.commands, &self.watched).is_err())
    }

    /// Ends the transaction and hands out what was queued; `None` without `MULTI`.
    pub fn take(&mut self) -> Option<Taken> {
        let queue = self.queue.take()?;
        let watched = std::mem::take(&mut self.watched);
        self.unwatch();
        Some(Taken { queue, watched })
    }
}

/// A transaction that is to be executed.
pub struct Taken {
    queue: Queue,
    watched: Vec<(Watched, u16)>,
}

impl Taken {
    /// A command was refused while it was queued.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.queue.has_failed
    }

    /// The commands, in order.
    #[must_use]
    pub fn commands(&self) -> &[Queued] {
        &self.queue.commands
    }

    /// The slot of all keys, watched ones included; `None` if there are no keys.
    ///
    /// # Errors
    /// When they are in several.
    pub fn slot(&self) -> Result<Option<u16>, Crossing> {
        only_slot(&self.queue.commands, &self.watched)
    }

    /// The watched keys, each with its slot.
    #[must_use]
    pub fn watched(&self) -> &[(Watched, u16)] {
        &self.watched
    }

    /// The request that executes the commands with keys on their partition. What is to be removed everywhere is
    /// removed there in its place, so that it is not removed after what came behind it.
    #[must_use]
    pub fn unit(&self, slot: u16, partition: u16) -> Bytes {
        let mut writer = UnitWriter::default();
        let mut reads_only = true;
        let number = partition.to_string();
        for command in self.commands() {
            if command.flushes() {
                let words: [&[u8]; 4] = [b"KORUM", b"CLEAR", number.as_bytes(), b"DB"];
                writer.push_words(&words[..if command.spec.id == CommandId::FlushDb { 4 } else { 3 }]);
                reads_only = false;
            } else if command.spec.id == CommandId::Select {
                writer.push(command.arguments, self.bulks(command));
            } else if command.slot.is_some() {
                writer.push(command.arguments, self.bulks(command));
                reads_only &= command.spec.flags.contains(Flags::READONLY);
            }
        }
        let watched: Vec<Watched> = self.watched.iter().map(|(watched, _)| watched.clone()).collect();
        writer.finish(slot, &watched, reads_only)
    }

    /// One of the commands as a request of its own.
    #[must_use]
    pub fn request(&self, command: &Queued) -> Bytes {
        let bulks = self.bulks(command);
        let mut request = BytesMut::with_capacity(bulks.len() + 16);
        encode_header(b'*', command.arguments, &mut request);
        request.extend_from_slice(bulks);
        request.freeze()
    }

    /// The arguments of one of the commands, as bulk strings.
    pub(super) fn bulks(&self, command: &Queued) -> &[u8] {
        &self.queue.bulks[command.bulks.clone()]
    }
}

fn only_slot(commands: &[Queued], watched: &[(Watched, u16)]) -> Result<Option<u16>, Crossing> {
    let queued = commands.iter().filter_map(|command| command.slot);
    let mut slots = queued.chain(watched.iter().map(|(_, slot)| *slot));
    let Some(first) = slots.next() else { return Ok(None) };
    let is_one = slots.all(|slot| slot == first) && !commands.iter().any(|command| command.is_split);
    if is_one { Ok(Some(first)) } else { Err(Crossing) }
}

#[cfg(test)]
mod tests {
    use korum_protocol::command::lookup;
    use korum_protocol::id::Epoch;

    use super::*;

    const SINCE: Position = Position { era: Epoch(1), sequence: 2 };

    fn push(transaction: &mut Transaction, words: &[&[u8]], slot: Option<u16>) -> Result<(), &'static str> {
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        for word in words {
            ranges.push(buffer.len()..buffer.len() + word.len());
            buffer.extend_from_slice(word);
        }
        transaction.push(lookup(words[0]).unwrap(), &Args::new(&buffer, &ranges), slot, false)
    }

    #[test]
    fn a_transaction_is_what_was_queued_between_multi_and_exec() {
        let mut transaction = Transaction::default();
        let get = lookup(b"get").unwrap();
        assert!(!transaction.queues(get) && transaction.open() && !transaction.open());
        assert!(transaction.queues(get) && !transaction.queues(lookup(b"exec").unwrap()));
        push(&mut transaction, &[b"get", b"a"], Some(7)).unwrap();
        assert!(!transaction.may_write() && !transaction.is_mixed());
        push(&mut transaction, &[b"ping"], None).unwrap();
        push(&mut transaction, &[b"set", b"a", b"1"], Some(7)).unwrap();
        assert!(transaction.may_write() && transaction.is_mixed());
        transaction.watch(b"b", 7, SINCE, 0).unwrap();
        assert_eq!(transaction.sizes().0, Some(3));
        let taken = transaction.take().unwrap();
        assert_eq!(
            (taken.slot(), taken.has_failed(), transaction.sizes()),
            (Ok(Some(7)), false, (None, 0, 0))
        );
        let requests: Vec<Bytes> = taken.commands().iter().map(|command| taken.request(command)).collect();
        assert_eq!(
            requests[1..],
            [&b"*1\r\n$4\r\nping\r\n"[..], b"*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\n1\r\n"]
        );
        assert!(taken.unit(7, 1).starts_with(b"*10\r\n$5\r\nKORUM\r\n$4\r\nEXEC\r\n$1\r\n7\r\n"));
        assert!(transaction.take().is_none());
    }

    #[test]
    fn what_only_reads_is_sent_as_such_and_what_flushes_is_not() {
        let unit = |words: &[&[&[u8]]]| {
            let mut transaction = Transaction::default();
            for words in words {
                push(&mut transaction, words, (words.len() > 1).then_some(7)).unwrap();
            }
            transaction.take().unwrap().unit(7, 3)
        };
        let contains = |request: &Bytes, text: &str| String::from_utf8_lossy(request).contains(text);
        let reads = unit(&[&[b"get", b"a"], &[b"dbsize"]]);
        assert!(contains(&reads, "EXEC-RO") && !contains(&reads, "dbsize"));
        let flushes = unit(&[&[b"get", b"a"], &[b"flushall"]]);
        assert!(contains(&flushes, "EXEC\r\n") && contains(&flushes, "$5\r\nCLEAR\r\n$1\r\n3\r\n"));
        assert!(
            !contains(&flushes, "DB") && contains(&unit(&[&[b"get", b"a"], &[b"flushdb"]]), "$2\r\nDB\r\n")
        );
    }

    #[test]
    fn keys_of_two_slots_cross_watched_or_not() {
        for (queued, watched, expected) in
            [(Some(1), Some(1), Ok(Some(1))), (Some(1), Some(2), Err(Crossing)), (None, None, Ok(None))]
        {
            let mut transaction = Transaction::default();
            push(&mut transaction, &[b"ping"], queued).unwrap();
            if let Some(slot) = watched {
                transaction.watch(b"k", slot, SINCE, 0).unwrap();
            }
            assert_eq!(transaction.take().unwrap().slot(), expected);
        }
    }

    #[test]
    fn sizes_are_bounded_and_a_key_is_watched_since_the_first_time() {
        let mut transaction = Transaction::default();
        transaction.open();
        let half = vec![b'x'; BYTES_MAX / 2];
        push(&mut transaction, &[b"echo", &half], None).unwrap();
        assert_eq!(push(&mut transaction, &[b"echo", &half], None), Err(TOO_LARGE));
        let mut transaction = Transaction::default();
        (0..COMMANDS_MAX).for_each(|_| push(&mut transaction, &[b"ping"], None).unwrap());
        assert_eq!(push(&mut transaction, &[b"ping"], None), Err(TOO_LARGE));
        let mut transaction = Transaction::default();
        for number in 0..WATCHED_MAX as u64 {
            let since = Position { era: Epoch(1), sequence: number };
            transaction.watch(&number.to_be_bytes(), 1, since, 0).unwrap();
        }
        assert_eq!(transaction.watch(&0_u64.to_be_bytes(), 1, SINCE, 0), Ok(()));
        assert_eq!(transaction.watched[0].0.since.sequence, 0);
        assert_eq!(transaction.watch(b"more", 1, SINCE, 0), Err(TOO_MANY_WATCHED));
        transaction.unwatch();
        assert_eq!((transaction.watch(b"more", 1, SINCE, 0), transaction.sizes()), (Ok(()), (None, 1, 4)));
    }
}
