//! Multi-key commands whose keys live apart, on the client port.
//!
//! For: running `MGET`, `DEL`, `EXISTS`, `TOUCH`, `UNLINK` and `MSET` key by key, each where it lives.
//! Each part is atomic; the whole is not, as with any Redis Cluster client.
//! Not here: what the parts answer together (`assemble`).

use bytes::BytesMut;
use korum_protocol::command::{CommandId, CommandSpec};
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::Args;
use korum_protocol::resp::decode::encode_request;

use super::assemble::{element, integer};
use super::batch::Batch;
use super::caller::Caller;
use super::parts::{Combine, Into, TaskRequest};
use super::route::NOT_SERVED;
use crate::command::string::REPLY_TOO_LARGE;
use crate::node::Node;

/// Splits the opened command, whose keys are in different slots.
pub(super) fn split(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
) {
    let is_mset = spec.id == CommandId::MSet;
    let width = if is_mset { 2 } else { 1 };
    let is_mget = spec.id == CommandId::MGet;
    if is_mset && args.len().is_multiple_of(2) {
        batch.reply(caller.version).error("ERR wrong number of arguments for 'mset' command");
        return;
    }
    let is_down = |slot| view.row(view.partition_of_slot(slot)).primary.is_none();
    if (1..args.len()).step_by(width).any(|at| is_down(slot_of(&args[at]))) {
        batch.reply(caller.version).error(NOT_SERVED);
        return;
    }
    if is_mget {
        batch.reply(caller.version).array(args.len() - 1);
    }
    let mut sum = 0;
    for first in (1..args.len()).step_by(width) {
        let slot = slot_of(&args[first]);
        let words = [&args[0], &args[first], args.get(first + width - 1).unwrap_or_default()];
        let ranges = part_ranges(&words[..=width]);
        let joined = words[..=width].concat();
        let part = Args::new(&joined, &ranges[..=width]);
        let partition = view.partition_of_slot(slot);
        let is_here = view.row(partition).primary == Some(node.id());
        batch.scratch.clear();
        if is_here && batch.execute(node, partition, spec, &part, caller, Into::Scratch) {
            if is_mget {
                let reply = batch.scratch.split();
                batch.out.extend_from_slice(element(&reply));
                let start = batch.last().start;
                if batch.out.len() - start > BULK_BYTES_MAX {
                    return give_up(batch, caller);
                }
            } else {
                sum += integer(&batch.scratch).unwrap_or(0);
            }
        } else {
            let mut request = BytesMut::new();
            encode_request(&words[..=width], &mut request);
            batch.postpone(spec, partition, TaskRequest::Part(request.freeze()), is_mget);
        }
    }
    batch.scratch.clear();
    batch.last().combine = match spec.id {
        CommandId::MGet => Combine::InPlace,
        CommandId::MSet => Combine::AllOk,
        _ => Combine::Sum(sum),
    };
}

/// The opened command only reads, and its reply grows too large: it is answered with an error instead.
fn give_up(batch: &mut Batch, caller: Caller) {
    let (command, start) = (batch.commands.len() - 1, batch.last().start);
    batch.out.truncate(start);
    batch.tasks.retain(|task| task.command != command);
    batch.reply(caller.version).error(REPLY_TOO_LARGE);
}

fn part_ranges(words: &[&[u8]]) -> [std::ops::Range<usize>; 3] {
    let mut end = 0;
    let mut ranges = [0..0, 0..0, 0..0];
    for (range, word) in ranges.iter_mut().zip(words) {
        *range = end..end + word.len();
        end = range.end;
    }
    ranges
}
