//! Transactions on the partition of their keys: `KORUM EXEC` and `KORUM WATCH`, which nodes tell each other.
//!
//! For: running the commands of a unit one after the other under one lock, into one set of effects and one reply;
//! deciding whether a watched key may have changed.
//! Not here: the form of the request (`unit`), queueing and routing (`dispatch::transaction`).
//!
//! Nobody keeps a list of who watches what. `WATCH` takes the position at which the partition stands, and `EXEC`
//! shows it again: the partition's history tells whether an effect since then took place where the key stands.

use korum_protocol::command::{CommandId, CommandSpec, Flags, resolve};
use korum_protocol::id::Position;
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::resp::Args;

use super::string::REPLY_TOO_LARGE;
use super::unit::Unit;
use super::{Call, Names, SYNTAX_ERROR};
use crate::dispatch::execute;
use crate::replication::history::History;
use crate::store::database::{split, stored};

/// Bytes of effects after which the commands of a unit that write are refused: with what one more command can make of
/// its values, they still fit into one message. A unit of plain writes stays under it, since its request does.
pub const EFFECT_BYTES_MAX: usize = 48 << 20;
const TOO_MUCH: &str = "ERR the transaction changes too much at once; split it into smaller ones";

/// `KORUM WATCH slot key …`: where the partition stands, and how often databases were swapped, as
/// `[era, sequence, swaps]`.
pub fn watch(call: &mut Call<'_>, history: &mut History) {
    history.watch();
    // What is expired goes now: it is gone already for whoever watches it.
    for at in 3..call.args.len() {
        let place = call.place(at);
        call.keyspace.look(place, call.now_ms, call.effects);
    }
    let Some(position) = history.position() else { return call.reply.error(SYNTAX_ERROR) };
    call.reply.array(3);
    call.reply.integer(position.era.0.cast_signed());
    // Numbered when this command is over.
    call.reply.integer((position.sequence + call.effects.count() as u64).cast_signed());
    call.reply.integer(call.names.databases().swaps().cast_signed());
}

/// `KORUM EXEC slot head key … argument …`: the replies of the commands as one array; a null one, with nothing done,
/// if a watched key may have changed.
pub fn exec(call: &mut Call<'_>, history: &History) {
    let Some(unit) = Unit::read(call.args) else { return call.reply.error(SYNTAX_ERROR) };
    let is_changed = |(key, since, swaps)| has_changed(call, history, key, since, swaps);
    if unit.watched().any(is_changed) {
        return call.reply.null_array();
    }
    call.reply.array(unit.count());
    let start = call.reply.mark();
    let (marks_access, mut database) = (call.looks.marks_access, call.names.database());
    for args in unit.commands() {
        let before = call.reply.mark();
        let names = call.names.with(database);
        match resolve(&args) {
            Ok(spec) if spec.id == CommandId::Select => match names.select(&args[1]) {
                Ok(chosen) => {
                    database = chosen;
                    call.reply.ok();
                }
                Err(text) => call.reply.error(&text),
            },
            Err(error) => call.reply.error_bytes(&error.reply()),
            Ok(spec) if is_too_much(call, spec) => call.reply.error(TOO_MUCH),
            Ok(spec) => {
                run(call, spec, args, &names, marks_access);
                let has_failed = call.reply.is_error_since(before);
                call.looks.ran(spec.id, has_failed);
            }
        }
        if call.reply.written_since(start) > BULK_BYTES_MAX {
            call.reply.take_back(before);
            call.reply.error(REPLY_TOO_LARGE);
        }
    }
}

/// Runs a command that is a part of the call's.
fn run(call: &mut Call<'_>, spec: &CommandSpec, args: Args<'_>, names: &Names, marks_access: bool) {
    let mut nested = call.nested(args, names);
    nested.looks.prepare(spec, marks_access);
    execute::run(spec.id, &mut nested);
}

fn is_too_much(call: &Call<'_>, spec: &CommandSpec) -> bool {
    call.effects.rope().len() > EFFECT_BYTES_MAX && !spec.flags.contains(Flags::READONLY)
}

/// May the key have changed since the position, or its database since so many swaps? One that is expired has, even if it
/// is still there.
fn has_changed(call: &Call<'_>, history: &History, key: &[u8], since: Position, swaps: u64) -> bool {
    let (databases, keyspace) = (call.names.databases(), &*call.keyspace);
    let (database, name) = split(key);
    let key = stored(databases.room(database), name);
    let is_expired = || keyspace.contains(&key) && keyspace.peek(&key, call.now_ms).is_none();
    let is_untouched = history.is_untouched_since(since, keyspace.hash_position(&key));
    databases.swaps() != swaps || !is_untouched || is_expired()
}

#[cfg(test)]
#[path = "transaction_tests.rs"]
mod tests;
