//! What a transaction has to wait for between batches: `WATCH`, and `EXEC` with commands that are not about keys.
//!
//! For: asking a partition for its position; running the commands with keys first, as one unit, and then, only if it
//! was executed, the others here, each in its place of the reply.
//! Not here: transactions whose commands are all about keys (`transaction`); keys of several slots (`several`).
//!
//! Commands without keys are not a part of the atomic step: they see what the unit did, and what came after it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec};
use korum_protocol::id::{Epoch, Position};
use korum_protocol::limits::KEY_BYTES_MAX;
use korum_protocol::map::PartitionId;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::request::{Parsed, RequestLimits, RequestParser};
use korum_protocol::resp::{Args, ReplyWriter, integer, reply_length};
use korum_protocol::rope::Rope;

use super::super::batch::{Batch, KEY_TOO_LONG};
use super::super::caller::Caller;
use super::super::keyless::{self, Asker};
use super::super::route::{NOT_SERVED, Route, route};
use super::super::{alone, everywhere, functions};
use super::queue::{Queued, Taken};
use super::{CROSS_SLOT, Transaction, begin, several};
use crate::command::unit::watch_request;
use crate::env::random::random;
use crate::node::Node;
use crate::store::database::stored;

/// Must the command be run between batches, given what was queued?
#[must_use]
pub fn runs_alone(spec: &CommandSpec, transaction: &Transaction) -> bool {
    match spec.id {
        CommandId::Watch => !transaction.is_open(),
        CommandId::Exec => transaction.is_mixed() || transaction.is_crossing(),
        _ => false,
    }
}

/// Runs `WATCH` or `EXEC`; the reply is appended to `out`.
///
/// Dropping it loses the reply, and of `EXEC` the commands without keys that have not run yet.
pub async fn run(
    node: &Arc<Node>,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
    out: &mut BytesMut,
) {
    if spec.id == CommandId::Watch {
        if let Err(text) = watch(node, args, caller, asker).await {
            ReplyWriter::new(out, caller.version).error_bytes(&text);
        } else {
            ReplyWriter::new(out, caller.version).ok();
        }
        asker.show_transaction();
        return;
    }
    if asker.session.transaction.is_crossing() && several::is_wanted(node, caller) {
        return several::run(node, caller, asker, out).await;
    }
    let begun = begin(node, &node.view(), caller, asker);
    match begun {
        Err(text) => ReplyWriter::new(out, caller.version).error(&text),
        Ok((taken, slot)) => exec(node, &taken, slot, caller, asker, out).await,
    }
}

async fn watch(
    node: &Arc<Node>,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
) -> Result<(), Vec<u8>> {
    let keys = args.tail(1);
    if keys.iter().any(|key| key.len() > KEY_BYTES_MAX) {
        return Err(KEY_TOO_LONG.into());
    }
    let view = node.view();
    let mut slots: Vec<u16> = keys.iter().map(slot_of).collect();
    let is_allowed = several::is_wanted(node, caller);
    let asked = if is_allowed { &slots[..1] } else { &slots[..] };
    match route(&view, node.id(), caller.port, asked.iter().copied()) {
        Route::CrossSlot => return Err(CROSS_SLOT.into()),
        Route::Down(_) => return Err(NOT_SERVED.into()),
        Route::Moved(slot, primary) => return Err(node.moved(&view, slot, primary).into()),
        Route::Here(_) | Route::Forward(..) | Route::Elsewhere => {}
    }
    slots.sort_unstable();
    slots.dedup();
    for slot in slots {
        let mine = || keys.iter().filter(|key| slot_of(key) == slot);
        let request = watch_request(slot, mine());
        let reply = ask(node, view.partition_of_slot(slot), request, caller, asker).await;
        let reply = reply.flat();
        let (since, swaps) = position(&reply).ok_or_else(|| error_text(&reply))?;
        for key in mine() {
            asker.session.transaction.watch(&stored(caller.database, key), slot, since, swaps)?;
        }
    }
    Ok(())
}

/// The position and the number of swaps in `[era, sequence, swaps]`.
fn position(reply: &[u8]) -> Option<(Position, u64)> {
    let mut lines = reply.strip_prefix(b"*3\r\n:")?.split(|&byte| byte == b'\r');
    let era = integer(lines.next()?)?;
    let mut next = || Some(integer(lines.next()?.strip_prefix(b"\n:")?)?.cast_unsigned());
    let (sequence, swaps) = (next()?, next()?);
    Some((Position { era: Epoch(era.cast_unsigned()), sequence }, swaps))
}

fn error_text(reply: &[u8]) -> Vec<u8> {
    let text = reply.strip_prefix(b"-").and_then(|text| text.strip_suffix(b"\r\n"));
    text.unwrap_or(b"ERR no position").to_vec()
}

async fn exec(
    node: &Arc<Node>,
    taken: &Taken,
    slot: Option<u16>,
    caller: Caller,
    asker: &mut Asker<'_>,
    out: &mut BytesMut,
) {
    let mut unit = None;
    if let Some(slot) = slot {
        let partition = node.view().partition_of_slot(slot);
        let reply = ask(node, partition, taken.unit(slot, partition), caller, asker).await.into_bytes();
        match array(&reply) {
            Some(elements) => unit = Some((partition, elements)),
            // An error, or nothing because a watched key has changed.
            None => return out.extend_from_slice(&reply),
        }
    }
    ReplyWriter::new(out, caller.version).array(taken.commands().len());
    let partition = unit.as_ref().map(|(partition, _)| *partition);
    let mut elements = unit.map_or(Bytes::new(), |(_, elements)| elements);
    for command in taken.commands() {
        if command.slot.is_some() || command.is_in_both() && partition.is_some() {
            let length = reply_length(&elements).unwrap_or(elements.len());
            let element = elements.split_to(length);
            if command.slot.is_some() {
                out.extend_from_slice(&element);
                continue;
            }
        }
        run_here(node, command, taken.request(command), partition, asker, out).await;
    }
}

/// The elements of an array reply, one after the other.
pub(super) fn array(reply: &Bytes) -> Option<Bytes> {
    let end = memchr::memchr(b'\n', reply)? + 1;
    let count = reply.strip_prefix(b"*")?[..end - 1].strip_suffix(b"\r\n")?;
    integer(count).filter(|&count| count >= 0)?;
    Some(reply.slice(end..))
}

/// Asks the primary of a partition, wherever it is by now.
pub(super) async fn ask(
    node: &Arc<Node>,
    partition: PartitionId,
    request: Bytes,
    caller: Caller,
    asker: &mut Asker<'_>,
) -> Rope {
    let mut batch = Batch::new(random());
    batch.begin(node);
    batch.open(0..0, caller);
    everywhere::submit(&mut batch, node, &node.view(), partition, request, caller);
    reply_of(node, &mut batch, &[], asker).await
}

/// Waits for the only command of a batch.
pub(in crate::dispatch) async fn reply_of(
    node: &Arc<Node>,
    batch: &mut Batch,
    input: &[u8],
    asker: &mut Asker<'_>,
) -> Rope {
    let deadline = node.request_deadline();
    batch.finish(node, input, deadline).await;
    batch.count_looks(node);
    asker.session.written.extend(batch.written_async());
    let mut repeated = batch.repeat(node, input, deadline).await;
    let mut reply = Rope::new();
    batch.assemble(&mut reply, |command| repeated.remove(&command));
    reply
}

/// Runs a queued command that is not about keys.
pub(super) async fn run_here(
    node: &Arc<Node>,
    command: &Queued,
    request: Bytes,
    partition: Option<PartitionId>,
    asker: &mut Asker<'_>,
    out: &mut BytesMut,
) {
    let mut parser = RequestParser::new(RequestLimits::unlimited());
    let Ok(Parsed::Request { .. }) = parser.parse(&request) else {
        unreachable!("a request that was parsed before it was queued")
    };
    let args = parser.args(&request);
    let caller = asker.session.caller(node.config().cluster.consistency);
    if alone::runs_alone(command.spec, &args) || functions::must_ask(node, command.spec, &args) {
        return Box::pin(alone::run(node, command.spec, &args, caller, asker, out)).await;
    }
    let mut batch = Batch::new(random());
    batch.begin(node);
    batch.open(0..request.len(), caller);
    let view = node.view();
    match partition.filter(|_| command.flushes()) {
        Some(partition) => everywhere::flush_others(&mut batch, node, &view, &args, caller, partition),
        None => {
            asker.session.is_executing = true;
            keyless::run(&mut batch, node, &view, command.spec, &args, caller, asker);
            asker.session.is_executing = false;
        }
    }
    batch.means.looks.ran(command.spec.id, batch.ends_with_error());
    reply_of(node, &mut batch, &request, asker).await.copy_to(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_the_partition_are_read() {
        let at = |era, sequence, swaps| Some((Position { era: Epoch(era), sequence }, swaps));
        assert_eq!(position(b"*3\r\n:7\r\n:19\r\n:2\r\n"), at(7, 19, 2));
        assert_eq!(position(b"-CLUSTERDOWN x\r\n"), None);
        assert_eq!(error_text(b"-CLUSTERDOWN x\r\n"), b"CLUSTERDOWN x");
        assert_eq!(array(&Bytes::from_static(b"*2\r\n:7\r\n+OK\r\n")).unwrap(), ":7\r\n+OK\r\n");
        assert_eq!(array(&Bytes::from_static(b"*0\r\n")).unwrap(), "");
        for other in [&b"*-1\r\n"[..], b"_\r\n", b"-ERR x\r\n", b""] {
            assert!(array(&Bytes::from_static(other)).is_none());
        }
    }
}
