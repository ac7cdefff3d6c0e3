//! A command under way, from chance to the record.

use bytes::BytesMut;
use korum_protocol::resp::{Reply as Found, encode_request};
use korum_tests::check::{Answer, Command, Fresh, Kind, Reply, read, requests, stream};
use rand::RngExt;
use rand::rngs::SmallRng;

use super::orders::{key, orders};
use crate::history;
use crate::world::log;

/// A command under way.
pub struct Call {
    pub key: String,
    pub command: Command,
    /// How many requests, and so replies, it takes.
    pub requests: usize,
    /// Its place in the key's history.
    pub place: usize,
}

impl Call {
    /// Begins a call: what is to be sent is added to `bytes`.
    pub fn begin(client: usize, key: &str, command: Command, bytes: &mut BytesMut) -> Self {
        let place = history::call(client, key, command.clone());
        let requests = requests(key, &command);
        requests.iter().for_each(|words| encode_request(words, bytes));
        Self { key: key.to_owned(), command, requests: requests.len(), place }
    }

    /// What is to be sent, once more.
    pub fn bytes(&self) -> BytesMut {
        let mut bytes = BytesMut::new();
        requests(&self.key, &self.command).iter().for_each(|words| encode_request(words, &mut bytes));
        bytes
    }
}

/// A command by chance, for `client`; `written` counts what it writes, so that no two values are the same.
pub fn choose(chance: &mut SmallRng, client: usize, written: &mut u64) -> (String, Command) {
    let number = chance.random_range(0..orders(|orders| orders.kinds.len()));
    let (key, kind) = (key(number), orders(|orders| orders.kinds[number]));
    *written += 1;
    let id = (log::now_us(), *written * 64 + client as u64);
    let command = kind.choose(chance, Fresh { text: format!("{client}-{written}"), id });
    match given(&key) {
        Some(id) if kind == Kind::Stream && chance.random_range(0..3) == 0 => {
            (key, Command::Stream(stream::Command::Acknowledge(id)))
        }
        _ => (key, command),
    }
}

/// The entry of a stream that was given out last.
fn given(key: &str) -> Option<stream::Id> {
    orders(|orders| orders.given.iter().rev().find(|(other, _)| other == key).map(|(_, id)| *id))
}

/// A command that waits; `None` if there is no key to wait for.
pub fn choose_wait(chance: &mut SmallRng) -> Option<(String, Command)> {
    let kinds = orders(|orders| orders.kinds.clone());
    let kinds = kinds.into_iter().enumerate();
    let mut able: Vec<_> =
        kinds.filter_map(|(number, kind)| Some((key(number), kind.wait(chance)?))).collect();
    (!able.is_empty()).then(|| able.swap_remove(chance.random_range(0..able.len())))
}

/// Records what answers say; gives the address if they say that another node is to be asked.
pub fn take_in(call: &Call, answers: &[Found]) -> Option<String> {
    match read(&call.command, answers) {
        Answer::Done(reply) => {
            note_given(call, &reply);
            history::outcome(&call.key, call.place, Some(reply));
        }
        Answer::NotDone => history::outcome(&call.key, call.place, None),
        Answer::Moved(address) => return Some(address),
        Answer::Unknown => {}
        Answer::Strange(text) => {
            orders(|orders| orders.nonsense.push(format!("{} {}: {text}", call.command, call.key)));
        }
    }
    None
}

fn note_given(call: &Call, reply: &Reply) {
    let id = match (&call.command, reply) {
        (Command::Stream(stream::Command::Next { .. }), Reply::Value(id)) => stream::parsed(id),
        _ => None,
    };
    orders(|orders| {
        if let Command::Stream(stream::Command::Acknowledge(id)) = call.command {
            orders.given.retain(|(key, given)| *key != call.key || *given != id);
        }
        orders.given.extend(id.map(|id| (call.key.clone(), id)));
    });
}
