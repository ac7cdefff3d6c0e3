//! Multi-key commands whose keys live apart, on the client port.
//!
//! For: running `MGET`, `DEL`, `EXISTS`, `TOUCH`, `UNLINK` and `MSET` key by key, each where it lives.
//! Each part is atomic; the whole is not, as with any Redis Cluster client.
//! Not here: what the parts answer together (`assemble`).

use std::ops::Range;

use bytes::BytesMut;
use korum_protocol::command::{CommandId, CommandSpec};
use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::Args;
use korum_protocol::resp::decode::encode_request;

use smallvec::SmallVec;

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
        let ranges = [0, first, first + width - 1].map(|at| args.ranges()[at].clone());
        let part = args.pick(&ranges[..=width]);
        let partition = view.partition_of_slot(slot);
        let is_here = view.row(partition).primary == Some(node.id());
        batch.scratch.clear();
        if is_here && batch.execute(node, partition, spec, &part, caller, Into::Scratch) {
            if is_mget {
                let (from, until) = (element(&batch.scratch), batch.scratch.mark());
                batch.out.append_part(&batch.scratch, from, until);
                let start = batch.last().start;
                if batch.out.len_since(start) > BULK_BYTES_MAX {
                    return give_up(batch, caller);
                }
            } else {
                sum += integer(batch.scratch.copied()).unwrap_or(0);
            }
        } else {
            let request = match part.get(width) {
                Some(value) if is_mset && batch.means.source.position(value).is_some() => {
                    let start = batch.last().request.start;
                    let in_input = |range: &Range<usize>| start + range.start..start + range.end;
                    TaskRequest::Words(ranges[..=width].iter().map(in_input).collect())
                }
                _ => {
                    let words: SmallVec<[&[u8]; 3]> = part.iter().collect();
                    let mut request = BytesMut::new();
                    encode_request(&words, &mut request);
                    TaskRequest::Part(request.freeze())
                }
            };
            batch.postpone(spec, partition, request, is_mget);
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
