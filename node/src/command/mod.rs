//! Commands, one family a file.
//!
//! For: what each command does to the keys of one partition, and what it answers.
//! Not here: names, arity and where keys stand (`protocol::command`), routing (`dispatch`), the
//! structure of the data (`store`).
//!
//! A command changes keys only through the methods of [`Call`], which record an effect for each change.

use std::sync::Arc;

use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::resp::{Args, ReplyWriter};
use korum_protocol::rope::HELD_BYTES_MIN;

use crate::env::random::Random;
use crate::replication::effect::Effects;
use crate::script::Scripts;
use crate::store::keyspace::{Keyspace, Place, seconds};
use crate::store::{Change, Classes, Collection, Entry, Source, StringRef, StringValue, Value, ValueRef};

pub mod args;
pub mod looks;
pub mod names;
// About keys, under a partition's lock.
pub mod bitmap;
pub mod blocking;
pub mod function;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod key;
pub mod list;
pub mod partition;
pub mod sample;
pub mod scan;
pub mod script;
pub mod stream;
pub mod set;
pub mod sorted_set;
pub mod string;
pub mod transaction;
pub mod unit;
// About the connection and the server.
pub mod acl;
pub mod client;
pub mod cluster;
pub mod connection;
pub mod debug;
pub mod korum;
pub mod latency;
pub mod memory;
pub mod outcome;
pub mod pubsub;
pub mod server;
pub mod subcommand;
pub mod topology;
pub mod tracking;

#[cfg(test)]
mod databases_tests;
#[cfg(test)]
mod events_tests;
#[cfg(test)]
mod no_divergence;
#[cfg(test)]
mod no_panic;
#[cfg(test)]
pub mod test_maps;
#[cfg(test)]
mod testing;

pub use looks::Looks;
pub use names::Names;

/// One command on one partition, under its lock. All its keys are in this partition.
pub struct Call<'a> {
    /// The arguments; 0 is the command's name. Their number was checked against the command's arity.
    pub args: Args<'a>,
    /// What its keys mean: the database.
    pub names: &'a Names,
    /// The partition's keys.
    pub keyspace: &'a mut Keyspace,
    /// Unix ms; the same for the whole command.
    pub now_ms: u64,
    /// The worker's source of chance.
    pub random: &'a mut Random,
    /// Where what was changed is recorded.
    pub effects: &'a mut Effects,
    /// Where what was looked up is counted.
    pub looks: &'a mut Looks,
    /// What the arguments are parts of.
    pub source: &'a Source,
    /// What the node knows of scripts.
    pub scripts: &'a Arc<Scripts>,
    /// Where the answer goes.
    pub reply: ReplyWriter<'a>,
}

/// Most bytes of a collection that a command makes or moves as a whole, as its copies get it: a message holds it, with
/// its key and what was done before in the same step.
const WHOLE_BYTES_MAX: usize = BULK_BYTES_MAX;
const TOO_LARGE: &str = "ERR the collection would be too large to be copied to other nodes in one step";

/// What a command that stops early answers: an error, by its text.
pub type Stop = std::borrow::Cow<'static, str>;

/// The answer to a command on a key of another type.
pub const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
/// The answer to options that do not belong there.
pub const SYNTAX_ERROR: &str = "ERR syntax error";

impl<'a> Call<'a> {
    /// A call of another command in this one: same partition, same moment, one set of effects and one reply.
    pub fn nested<'n>(&'n mut self, args: Args<'n>, names: &'n Names) -> Call<'n> {
        Call {
            args,
            names,
            keyspace: self.keyspace,
            now_ms: self.now_ms,
            random: self.random,
            effects: self.effects,
            looks: self.looks,
            source: self.source,
            scripts: self.scripts,
            reply: self.reply.reborrow(),
        }
    }

    /// The same, with a reply of its own.
    pub fn nested_apart<'n>(
        &'n mut self,
        args: Args<'n>,
        names: &'n Names,
        reply: ReplyWriter<'n>,
    ) -> Call<'n> {
        Call { reply, ..self.nested(args, names) }
    }

    /// The argument at `index`; the arity check has shown that there is one.
    fn arg(&self, index: usize) -> &'a [u8] {
        self.args.get(index).expect("the arity was checked")
    }

    /// Runs a command that may stop with an error.
    fn answer(&mut self, command: impl FnOnce(&mut Self) -> Result<(), Stop>) {
        if let Err(text) = command(self) {
            // The text may quote arguments; bytes that are not UTF-8 were replaced when it was made.
            self.reply.error(&text);
        }
    }

    /// The living entry of a key, with its access marked.
    fn read(&mut self, place: Place<'_>) -> Option<&Entry> {
        self.looks.read(self.keyspace, place, self.now_ms, self.effects)
    }

    /// The living entry of a key; its access mark stays.
    fn look(&mut self, place: Place<'_>) -> Option<&Entry> {
        self.looks.look(self.keyspace, place, self.now_ms, self.effects)
    }

    /// The living string of a key, with its access marked.
    fn read_string(&mut self, place: Place<'_>) -> Result<Option<StringRef<'_>>, Stop> {
        self.read(place).map(|entry| string_of(entry.value())).transpose()
    }

    /// Sets a key.
    fn put(&mut self, place: Place<'_>, value: ValueRef<'_>, deadline_ms: Option<u64>) {
        if let ValueRef::String(StringRef::Bytes(bytes)) = value
            && bytes.len() >= HELD_BYTES_MIN
        {
            let value = Value::String(StringValue::Bytes(self.source.keep(bytes)));
            return self.put_value(place, value, deadline_ms);
        }
        self.notify_new(place);
        self.keyspace.tick(seconds(self.now_ms));
        self.keyspace.put(place, value, deadline_ms, self.effects.garbage_mut());
        self.effects.set(place, value, deadline_ms);
    }

    /// May a key be set to this collection as a whole? Its copies get it in one message.
    fn fits(&self, value: ValueRef<'_>) -> Result<(), Stop> {
        let bytes = value.state_bytes().saturating_add(self.effects.rope().len());
        let is_collection = !matches!(value, ValueRef::String(_));
        if is_collection && self.effects.is_recording() && bytes > WHOLE_BYTES_MAX {
            return Err(TOO_LARGE.into());
        }
        Ok(())
    }

    /// Sets a key to a value that is handed over.
    fn put_value(&mut self, place: Place<'_>, mut value: Value, deadline_ms: Option<u64>) {
        let shared = match &mut value {
            Value::String(string) if string.as_ref().len() >= HELD_BYTES_MIN => string.share(),
            _ => None,
        };
        match shared {
            Some(string) => self.effects.set_held(place, string, deadline_ms),
            None => self.effects.set(place, value.as_ref(), deadline_ms),
        }
        self.notify_new(place);
        self.keyspace.tick(seconds(self.now_ms));
        self.keyspace.put_value(place, value, deadline_ms, self.effects.garbage_mut());
    }

    /// Removes a key that may be there; whether it was.
    fn delete(&mut self, place: Place<'_>) -> bool {
        // Not a look at the value: it counts neither as hit nor as miss.
        if self.keyspace.look(place, self.now_ms, self.effects).is_none() {
            return false;
        }
        self.keyspace.remove(place, self.effects.garbage_mut());
        self.effects.delete(place);
        true
    }

    /// The living collection of a key, with its access marked, and the writer of the answer beside it.
    fn read_beside<C: Collection>(
        &mut self,
        place: Place<'_>,
    ) -> Result<(Option<&C>, &mut ReplyWriter<'a>), Stop> {
        let entry = self.looks.read(self.keyspace, place, self.now_ms, self.effects);
        let found = entry.map(|entry| C::of(entry.value()).ok_or(WRONG_TYPE)).transpose()?;
        Ok((found, &mut self.reply))
    }

    /// The living collection of a key, with its access marked.
    fn read_collection<C: Collection>(&mut self, place: Place<'_>) -> Result<Option<&C>, Stop> {
        self.read_beside(place).map(|(found, _)| found)
    }

    /// Changes the collection of a key, which the caller has looked at: it is of that kind, or missing. A missing
    /// one is created; one that becomes empty is removed.
    fn change(&mut self, place: Place<'_>, change: Change<'_>) {
        self.notify_new(place);
        self.keyspace.tick(seconds(self.now_ms));
        self.keyspace.change_collection(place, &change, self.effects.garbage_mut());
        self.effects.change(place, change);
    }

    /// To be called before a key is written: tells of one that is not there yet.
    #[inline]
    fn notify_new(&mut self, place: Place<'_>) {
        if self.effects.notices.wants(Classes::NEW) && !self.keyspace.contains(place.key) {
            self.notify(Classes::NEW, "new", place);
        }
    }

    /// Tells those who listen to events of keys, if there are any, what was done to a key.
    #[inline]
    fn notify(&mut self, class: Classes, event: &'static str, place: Place<'_>) {
        self.effects.notices.add(class, event, place.key);
    }

    /// Tells that something was removed from a key, and of the key's end if that was the last.
    fn notify_removal(&mut self, class: Classes, event: &'static str, place: Place<'_>) {
        self.notify(class, event, place);
        if self.effects.notices.wants(Classes::GENERIC) && !self.keyspace.contains(place.key) {
            self.notify(Classes::GENERIC, "del", place);
        }
    }

    /// Removes a key of which a command leaves nothing, and tells of it if it was there.
    fn delete_and_notify(&mut self, place: Place<'_>) {
        if self.delete(place) {
            self.notify(Classes::GENERIC, "del", place);
        }
    }

    /// Sets or takes away the deadline of a key that is there.
    fn set_deadline(&mut self, place: Place<'_>, deadline_ms: Option<u64>) {
        self.keyspace.set_deadline(place, deadline_ms);
        self.effects.deadline(place, deadline_ms);
    }
}

/// The string that a value is.
fn string_of(value: ValueRef<'_>) -> Result<StringRef<'_>, Stop> {
    match value {
        ValueRef::String(string) => Ok(string),
        _ => Err(WRONG_TYPE.into()),
    }
}

/// Writes the long string of a key as a bulk string that is held on to.
fn reply_long_string(call: &mut Call<'_>, place: Place<'_>) {
    match call.keyspace.share(place) {
        Some(string) => call.reply.bulk_held(&string),
        None => unreachable!("a long string was just found there"),
    }
}

/// Writes a string as a bulk string.
fn reply_string(reply: &mut ReplyWriter<'_>, string: StringRef<'_>) {
    match string {
        StringRef::Integer(number) => reply.bulk_integer(number),
        StringRef::Bytes(bytes) | StringRef::Raw(bytes) => reply.bulk(bytes),
    }
}
