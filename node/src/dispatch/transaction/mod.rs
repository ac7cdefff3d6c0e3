//! Transactions where they come in: `MULTI`, queueing, `EXEC`, `DISCARD`, `UNWATCH`.
//!
//! For: queueing commands with the errors that Redis gives while it does, and sending the whole to its partition as
//! one request (`KORUM EXEC`), which is executed there under one lock and replicated as one message.
//! Not here: what is queued (`queue`), the request (`command::unit`), its execution (`command::transaction`);
//! `WATCH`, and transactions with commands that are not about keys, which wait (`apart`); keys of several slots
//! (`several`).

use korum_protocol::command::{CommandId, CommandSpec, Flags, key_positions};
use korum_protocol::limits::KEY_BYTES_MAX;
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::Args;

use super::batch::{Batch, KEY_TOO_LONG};
use super::caller::Caller;
use super::everywhere::submit;
use super::keyless::Asker;
use super::route::{NOT_SERVED, Port, Route, route};
use super::scripts;
use crate::node::Node;
use queue::Taken;

pub mod apart;
mod queue;
mod several;

pub use queue::Transaction;

const NESTED: &str = "ERR MULTI calls can not be nested";
const NO_MULTI: &str = "ERR Command not allowed inside a transaction";
const EXEC_ALONE: &str = "ERR EXEC without MULTI";
const DISCARD_ALONE: &str = "ERR DISCARD without MULTI";
const WATCH_INSIDE: &str = "ERR WATCH inside MULTI is not allowed";
const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";
const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

impl Asker<'_> {
    /// Shows others what the connection has queued and watches.
    fn show_transaction(&self) {
        let (queued, watched, bytes) = self.session.transaction.sizes();
        self.client.set_transaction(queued, watched, bytes);
    }
}

/// The error reply to a request that was refused before anything else; inside `MULTI` it also spoils the transaction,
/// and a refused `EXEC` ends it.
pub fn refuse(args: &Args<'_>, text: Vec<u8>, asker: &mut Asker<'_>) -> Vec<u8> {
    if !args.get(0).is_some_and(|name| name.eq_ignore_ascii_case(b"exec")) {
        asker.session.transaction.fail();
        return text;
    }
    let _ = asker.session.transaction.take();
    asker.show_transaction();
    let reason = text.strip_prefix(b"ERR ").unwrap_or(&text);
    [b"EXECABORT Transaction discarded because of: ", reason].concat()
}

/// Whether running this command changes keys, so that a pause of writers holds it back.
#[must_use]
pub fn writes(spec: &CommandSpec, transaction: &Transaction) -> bool {
    queue::may_write(spec) || spec.id == CommandId::Exec && transaction.may_write()
}

/// Queues the command that was opened last in `batch`.
pub fn queue(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
) {
    if spec.id == CommandId::Watch {
        return batch.reply(caller.version).error(WATCH_INSIDE);
    }
    let slot = check(node, view, spec, args, caller);
    match slot.and_then(|place| push(node, spec, args, place, asker).map_err(Into::into)) {
        Ok(()) => batch.reply(caller.version).simple("QUEUED"),
        Err(text) => {
            asker.session.transaction.fail();
            batch.reply(caller.version).error(&text);
        }
    }
    asker.show_transaction();
}

/// A script that is named by its digest is queued as itself: the node that will run it may not know it.
fn push(
    node: &Node,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    (slot, is_split): (Option<u16>, bool),
    asker: &mut Asker<'_>,
) -> Result<(), &'static str> {
    let transaction = &mut asker.session.transaction;
    match scripts::with_source(node, spec.id, args) {
        None => transaction.push(spec, args, slot, is_split),
        Some((spec, name, source)) => {
            let rest = args.tail(2);
            let words = [name, &source].into_iter().chain(rest.iter());
            let (mut buffer, mut ranges) = (Vec::new(), Vec::with_capacity(args.len()));
            for word in words {
                ranges.push(buffer.len()..buffer.len() + word.len());
                buffer.extend_from_slice(word);
            }
            transaction.push(spec, &Args::new(&buffer, &ranges), slot, false)
        }
    }
}

/// May the command be queued? The slot of its keys, if it has any, and whether there are others, by which it is split.
fn check(
    node: &Node,
    view: &View,
    spec: &CommandSpec,
    args: &Args<'_>,
    caller: Caller,
) -> Result<(Option<u16>, bool), String> {
    if spec.flags.contains(Flags::NO_MULTI) {
        return Err(NO_MULTI.into());
    }
    // Shard channels are no keys: who listens to them is asked when it is executed.
    if spec.flags.contains(Flags::PUBSUB) {
        return Ok((None, false));
    }
    // Where the keys cannot be found, the command itself will say so.
    let Ok(keys) = key_positions(spec, args) else { return Ok((None, false)) };
    if keys.clone().any(|at| args[at].len() > KEY_BYTES_MAX) {
        return Err(KEY_TOO_LONG.into());
    }
    let slots = keys.map(|at| slot_of(&args[at]));
    let Some(slot) = slots.clone().next() else { return Ok((None, false)) };
    match route(view, node.id(), caller.port, slots) {
        Route::CrossSlot if spec.flags.contains(Flags::SPLIT) && several::is_wanted(node, caller) => {
            Ok((Some(slot), true))
        }
        Route::CrossSlot => Err(CROSS_SLOT.into()),
        Route::Moved(slot, primary) => Err(node.moved(view, slot, primary)),
        // On the client port it may be served by the time of EXEC.
        Route::Down(_) if caller.port == Port::Cluster => Err(NOT_SERVED.into()),
        Route::Here(_) | Route::Forward(..) | Route::Down(_) | Route::Elsewhere => Ok((Some(slot), false)),
    }
}

/// Runs the command that was opened last in `batch`, if it is one of these. False if it is not.
pub fn run(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    spec: &CommandSpec,
    caller: Caller,
    asker: &mut Asker<'_>,
) -> bool {
    let transaction = &mut asker.session.transaction;
    match spec.id {
        CommandId::Multi if transaction.open() => batch.reply(caller.version).ok(),
        CommandId::Multi => batch.reply(caller.version).error(NESTED),
        CommandId::Unwatch => {
            transaction.unwatch();
            batch.reply(caller.version).ok();
        }
        CommandId::Discard => match transaction.take() {
            Some(_) => batch.reply(caller.version).ok(),
            None => batch.reply(caller.version).error(DISCARD_ALONE),
        },
        CommandId::Exec => exec(batch, node, view, caller, asker),
        _ => return false,
    }
    asker.show_transaction();
    true
}

/// `EXEC` of commands that are all about keys.
fn exec(batch: &mut Batch, node: &Node, view: &View, caller: Caller, asker: &mut Asker<'_>) {
    match begin(node, view, caller, asker) {
        Err(text) => batch.reply(caller.version).error(&text),
        Ok((_, None)) => batch.reply(caller.version).array(0),
        Ok((taken, Some(slot))) => {
            let partition = view.partition_of_slot(slot);
            submit(batch, node, view, partition, taken.unit(slot, partition), caller);
        }
    }
}

/// Takes what was queued, if it can be executed as it is, and the slot of its keys.
fn begin(
    node: &Node,
    view: &View,
    caller: Caller,
    asker: &mut Asker<'_>,
) -> Result<(Taken, Option<u16>), String> {
    let taken = take(asker)?;
    let slot = taken.slot().map_err(|_| CROSS_SLOT)?;
    match slot.map(|slot| route(view, node.id(), caller.port, [slot])) {
        Some(Route::Moved(slot, primary)) => Err(node.moved(view, slot, primary)),
        Some(Route::Down(_)) => Err(NOT_SERVED.into()),
        Some(Route::CrossSlot | Route::Here(_) | Route::Forward(..) | Route::Elsewhere) | None => {
            Ok((taken, slot))
        }
    }
}

/// Takes what was queued, if all of it could be.
fn take(asker: &mut Asker<'_>) -> Result<Taken, String> {
    let taken = asker.session.transaction.take().ok_or(EXEC_ALONE)?;
    asker.show_transaction();
    if taken.has_failed() { Err(ABORTED.into()) } else { Ok(taken) }
}
