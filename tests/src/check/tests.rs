//! The checker against histories whose verdict is known.

mod generated;
mod kinds;
mod known;
mod oracle;

use std::time::Duration;

use super::{Bytes, Command, Condition, Operation, Outcome, Reply, Rules, Verdict, check};
use super::{hash, list, pair, set, stream};

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(super) fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

pub(super) fn value(text: &str) -> Reply {
    Reply::Value(bytes(text))
}

/// An acknowledged operation; times in ms.
pub(super) fn done(call: u64, at: u64, command: Command, reply: Reply) -> Operation {
    Operation { client: 0, call: ms(call), command, outcome: Outcome::Acknowledged { at: ms(at), reply } }
}

pub(super) fn set(call: u64, at: u64, text: &str) -> Operation {
    done(call, at, Command::set(text.as_bytes()), Reply::Ok)
}

pub(super) fn get(call: u64, at: u64, text: &str) -> Operation {
    done(call, at, Command::Get, if text.is_empty() { Reply::Nil } else { value(text) })
}

pub(super) fn unknown(call: u64, command: Command) -> Operation {
    Operation { client: 1, call: ms(call), command, outcome: Outcome::Unknown }
}

pub(super) fn failed(call: u64, command: Command) -> Operation {
    Operation { client: 1, call: ms(call), command, outcome: Outcome::Failed }
}

pub(super) fn set_if(text: &str, condition: Condition) -> Command {
    Command::Set { value: bytes(text), condition, get: false, expire: None }
}

pub(super) fn set_px(text: &str, after: u64) -> Command {
    Command::Set { value: bytes(text), condition: Condition::Always, get: false, expire: Some(ms(after)) }
}
