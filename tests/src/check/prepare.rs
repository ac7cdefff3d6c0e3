//! A history made ready for the search, and smaller without a change of the answer.
//!
//! Unknown operations are what makes a search long: each may be anywhere or nowhere. So those that are interchangeable
//! are put into one class, of which only the earliest unused is ever tried:
//! they have the same command, no end, and differ in their call only.
//! A `PEXPIRE` of unknown outcome counts as a `DEL` that comes at least so much later, and as one that moves a deadline
//! that is there: a little more than it could do, since a `SET` in between would have kept the key.
//! Values that nobody ever saw are made equal first, because only their length can have mattered; of acknowledged
//! operations too.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::model::{Bytes, Command, Condition, Reply, UNSEEN};
use super::{Operation, Outcome};

/// A history in the form that the search walks over.
pub(super) struct Prepared {
    /// Acknowledged operations by their call; without those that were refused, which say nothing.
    pub(super) done: Vec<Done>,
    /// The earliest reply of `done[index..]`, with one more entry at the end.
    pub(super) first_reply: Vec<Duration>,
    /// Operations of unknown outcome that may have changed something: classes, each by call.
    pub(super) unknown: Vec<Class>,
    /// Does any command give the key a deadline?
    pub(super) expires: bool,
    /// Is the outcome of any `SET XX` unknown? It puts another value in the place of one that must be there.
    pub(super) replaces: bool,
    /// Is it only a guess which operation of unknown outcome may have been seen?
    pub(super) guesses: bool,
    /// The operations of `done` as they were given, for people.
    pub(super) original: Vec<Operation>,
}

/// An acknowledged operation.
pub(super) struct Done {
    pub(super) call: Duration,
    pub(super) at: Duration,
    pub(super) command: Command,
    pub(super) reply: Reply,
}

/// Interchangeable operations of unknown outcome.
pub(super) struct Class {
    pub(super) command: Command,
    /// Their calls, the earliest first.
    pub(super) calls: Vec<Duration>,
}

/// Sorts a history and leaves out what cannot matter.
pub(super) fn prepare(history: &[Operation], margin: Duration) -> Prepared {
    let mut original: Vec<Operation> = history
        .iter()
        .filter(|operation| match &operation.outcome {
            Outcome::Acknowledged { reply, .. } => !operation.command.is_refused(reply),
            Outcome::Failed | Outcome::Unknown => false,
        })
        .cloned()
        .collect();
    original.sort_by_key(|operation| operation.call);
    let seen = Seen::of(history);
    let done: Vec<Done> = original
        .iter()
        .filter_map(|Operation { call, command, outcome, .. }| {
            let Outcome::Acknowledged { at, reply } = outcome else { return None };
            Some(Done {
                call: *call,
                at: (*at).max(*call),
                command: seen.dull(command),
                reply: reply.clone(),
            })
        })
        .collect();
    let mut first_reply = vec![Duration::MAX; done.len() + 1];
    for (index, operation) in done.iter().enumerate().rev() {
        first_reply[index] = first_reply[index + 1].min(operation.at);
    }
    let unknown = classes(history, &seen, margin);
    let expires = history.iter().any(|operation| operation.command.expires());
    let replaces = unknown
        .iter()
        .any(|class| matches!(class.command, Command::Set { condition: Condition::Existing, .. }));
    let guesses = done.iter().any(|operation| operation.command.guesses());
    Prepared { done, first_reply, unknown, expires, replaces, guesses, original }
}

fn classes(history: &[Operation], seen: &Seen, margin: Duration) -> Vec<Class> {
    let mut open: Vec<(Duration, Command)> = Vec::new();
    for operation in history.iter().filter(|operation| operation.outcome == Outcome::Unknown) {
        if let Command::Expire(after) = operation.command {
            open.push(((operation.call + after).saturating_sub(margin), Command::Del));
        }
        if !operation.command.is_read() {
            open.push((operation.call, seen.dull(&operation.command).without_reply()));
        }
    }
    open.sort_by_key(|&(call, _)| call);
    let mut places: HashMap<Command, usize> = HashMap::new();
    let mut classes: Vec<Class> = Vec::new();
    for (call, command) in open {
        let place = *places.entry(command.clone()).or_insert_with(|| {
            classes.push(Class { command, calls: Vec::new() });
            classes.len() - 1
        });
        classes[place].calls.push(call);
    }
    classes
}

/// The values of replies, and those that were expected because a reply had shown them.
struct Seen<'a> {
    values: HashSet<&'a Bytes>,
    /// A value may be seen as a part of another.
    has_parts: bool,
}

impl<'a> Seen<'a> {
    fn of(history: &'a [Operation]) -> Self {
        let values = history.iter().flat_map(|operation| {
            let found = match &operation.outcome {
                Outcome::Acknowledged { reply: Reply::Value(value), .. } => Some(value),
                _ => None,
            };
            let expected = match &operation.command {
                Command::Swap { expected, .. } => expected.as_ref(),
                _ => None,
            };
            found.into_iter().chain(expected)
        });
        let has_parts = history.iter().any(|operation| matches!(operation.command, Command::Append(_)));
        Self { values: values.collect(), has_parts }
    }

    fn contains(&self, value: &Bytes) -> bool {
        let is_part = |found: &&Bytes| found.windows(value.len()).any(|part| part == &value[..]);
        self.values.contains(value) || (self.has_parts && self.values.iter().any(is_part))
    }

    /// The command with a value that no reply contains replaced by one that is the same for all of its length.
    /// `INCR` sees whether a value is a number, so what could be a part of one stays.
    fn dull(&self, command: &Command) -> Command {
        let mut command = command.clone();
        if let Command::Set { value, .. } | Command::Append(value) = &mut command
            && value.iter().any(u8::is_ascii_alphabetic)
            && !self.contains(value)
        {
            *value = vec![UNSEEN; value.len()].into();
        }
        command
    }
}
