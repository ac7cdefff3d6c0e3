//! Functions where they come in: `FCALL` and its kin, and `FUNCTION`.
//!
//! For: sending a call to the partition of its keys (`KORUM FCALL`); changing the libraries at the node that keeps them,
//! and telling all others before the change is answered; keeping what this node knows of them valid.
//! Not here: running a function (`script`), what the libraries are (`script::library`), until when what is known of them
//! is valid (`script::functions`).
//!
//! The libraries stand under a key of Korum's own, in one partition, whose primary is *the keeper*. A change is a write
//! there like any other. It is answered when every node that is up has been told, or cannot run any more what it knew
//! before: so no node runs the old functions after the answer.
//!
//! | a node | may run the old ones after the answer? |
//! |---|---|
//! | has been told | no: nothing that it asked for before counts any more |
//! | is up and does not answer | no: the answer waits until its copy is not valid any more |
//! | is marked down | no: it has no lease, and its next run has to ask |
//! | came after the map of whoever tells | no: it asked a keeper that knew its map, which whoever tells waits for; or after the change |

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec};
use korum_protocol::id::{Epoch, Incarnation, NodeId};
use korum_protocol::limits::KEY_BYTES_MAX;
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::{Args, Reply, ReplyDecoder, ReplyWriter, encode_request};
use korum_protocol::rope::Rope;

use super::batch::{Batch, KEY_TOO_LONG};
use super::caller::Caller;
use super::everywhere::submit;
use super::keyless::Asker;
use super::repeat::repeat_internal;
use super::route::Port;
use super::scripts::{self, NOT_BUSY};
use crate::command::key::rdb;
use crate::command::unit::Unit;
use crate::command::{function, subcommand};
use crate::env::Tick;
use crate::net::forward::Answer;
use crate::node::Node;
use crate::script::cache::Kind;
use crate::script::functions::{MARGIN, VALID};
use crate::script::library::{Change, Libraries, Policy, Shelf};
use crate::script::vm;
use crate::store::reserved::FUNCTIONS_SLOT;

/// How long another node may take to confirm that it has heard of a change, before it is told once more.
const TELL_WAIT: Duration = Duration::from_millis(500);
/// Pause before a node that did not confirm is told again, and before the keeper is asked again.
const AGAIN: Duration = Duration::from_millis(20);
const UNKNOWN: &str = "CLUSTERDOWN the functions cannot be read now: this node has no lease, or the node that keeps them does not answer";

/// What nodes ask each other on their own behalf.
const ITSELF: Caller = Caller { marks_access: false, ..Caller::plain(Port::Client) };

/// Runs the command that was opened last in `batch`, if it is one of these. False if it is not.
pub fn run(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    spec: &CommandSpec,
    args: &Args<'_>,
    caller: Caller,
) -> bool {
    match spec.id {
        CommandId::FCall | CommandId::FCallRo => {
            if let Err(text) = fcall(batch, node, view, spec.id == CommandId::FCallRo, args, caller) {
                batch.reply(caller.version).error(&text);
            }
        }
        CommandId::FunctionKill if node.scripts.kill(Kind::Function) => batch.reply(caller.version).ok(),
        CommandId::FunctionKill => batch.reply(caller.version).error(NOT_BUSY),
        CommandId::FunctionHelp => {
            subcommand::help("FUNCTION", function::HELP, &mut batch.reply(caller.version));
        }
        _ => return false,
    }
    true
}

fn fcall(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    reads_only: bool,
    args: &Args<'_>,
    caller: Caller,
) -> Result<(), String> {
    let Ok(count @ 1..) = function::count_keys(args) else {
        if !are_valid(node) {
            return Err(UNKNOWN.into());
        }
        batch.run_apart(node, args, caller, |call| function::nested(call, reads_only));
        return Ok(());
    };
    let keys = args.part(3, 3 + count);
    if keys.iter().any(|key| key.len() > KEY_BYTES_MAX) {
        return Err(KEY_TOO_LONG.into());
    }
    let partition = scripts::partition_of(node, view, caller, &keys)?;
    let request = function::call_request(slot_of(&args[3]), args, reads_only);
    submit(batch, node, view, partition, request, caller);
    Ok(())
}

/// Is what this node knows of functions what the cluster has?
fn are_valid(node: &Node) -> bool {
    node.scripts.functions.is_valid(node.clock().now(), node.leased_run())
}

/// Must a command wait until this node knows the functions, since it calls one?
pub(super) fn must_wait(node: &Node, spec: &CommandSpec, args: &Args<'_>) -> bool {
    let is_call = |name: &[u8]| name.eq_ignore_ascii_case(b"fcall") || name.eq_ignore_ascii_case(b"fcall_ro");
    let calls = match spec.id {
        CommandId::KorumFCall | CommandId::KorumFCallRo => true,
        CommandId::KorumExec | CommandId::KorumExecRo => Unit::read(*args)
            .is_some_and(|unit| unit.commands().any(|command| command.get(0).is_some_and(is_call))),
        _ => false,
    };
    calls && !are_valid(node)
}

/// Is it a call without keys, which runs here, while this node has to ask for the functions first?
#[must_use]
pub fn must_ask(node: &Node, spec: &CommandSpec, args: &Args<'_>) -> bool {
    matches!(spec.id, CommandId::FCall | CommandId::FCallRo)
        && !matches!(function::count_keys(args), Ok(1..))
        && !are_valid(node)
}

/// Must it be run between batches?
#[must_use]
pub fn runs_alone(id: CommandId) -> bool {
    matches!(
        id,
        CommandId::FunctionLoad
            | CommandId::FunctionDelete
            | CommandId::FunctionFlush
            | CommandId::FunctionRestore
            | CommandId::FunctionList
            | CommandId::FunctionDump
            | CommandId::FunctionStats
    )
}

/// Runs a command that asks or tells other nodes; the reply is appended to `out`.
///
/// Dropping it loses the reply. A change that was made is then known everywhere after [`VALID`].
pub(super) async fn run_alone(
    node: &Arc<Node>,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
    out: &mut BytesMut,
) {
    if let CommandId::FCall | CommandId::FCallRo = spec.id {
        let _ = refresh(node, node.request_deadline()).await;
        return scripts::run_now(node, spec, args, caller, asker).await.copy_to(out);
    }
    let mut reply = ReplyWriter::new(out, caller.version);
    if let CommandId::FunctionList | CommandId::FunctionDump | CommandId::FunctionStats = spec.id {
        if !are_valid(node) && !refresh(node, node.request_deadline()).await {
            return reply.error(UNKNOWN);
        }
        let known = node.scripts.functions.latest();
        return match spec.id {
            CommandId::FunctionList => function::list(args, &known, &mut reply),
            CommandId::FunctionDump => function::dump(&known, &mut reply),
            _ => function::stats(&known, &node.scripts, node.clock().now(), &mut reply),
        };
    }
    let outcome = match change_of(node, spec.id, args).await {
        Ok((change, name)) => change_libraries(node, &change).await.map(|()| name),
        Err(text) => Err(text),
    };
    match outcome {
        Ok(Some(name)) => reply.bulk(&name),
        Ok(None) => reply.ok(),
        Err(text) => reply.error(&text),
    }
}

/// The change that a command asks for, and the name that it answers.
async fn change_of(node: &Node, id: CommandId, args: &Args<'_>) -> Result<(Change, Option<Bytes>), String> {
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let misused = |name: &str| {
        format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP.")
    };
    let given = || String::from_utf8_lossy(&args[1]).into_owned();
    match id {
        CommandId::FunctionDelete => Ok((Change::Delete(Bytes::copy_from_slice(&args[2])), None)),
        CommandId::FunctionFlush => match args.get(2) {
            _ if args.len() > 3 => Err(misused(&given())),
            Some(word) if !is(word, "sync") && !is(word, "async") => {
                Err("ERR FUNCTION FLUSH only supports SYNC|ASYNC option".into())
            }
            _ => Ok((Change::Flush, None)),
        },
        CommandId::FunctionRestore => {
            if args.len() > 4 {
                return Err(misused(&given()));
            }
            let policy = match args.get(3) {
                None => Policy::Append,
                Some(word) if is(word, "append") => Policy::Append,
                Some(word) if is(word, "replace") => Policy::Replace,
                Some(word) if is(word, "flush") => Policy::Flush,
                Some(_) => {
                    return Err(
                        "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."
                            .into(),
                    );
                }
            };
            let mut restored = Shelf::default();
            for code in rdb::functions::restore(&args[2])? {
                restored.add(vm::register(&code, &node.scripts)?)?;
                // Each may take as long as one that is loaded; others are served in between.
                tokio::task::yield_now().await;
            }
            Ok((Change::Restore { libraries: restored.into_list(), policy }, None))
        }
        _ => {
            let last = args.len() - 1;
            let mut replaces = false;
            for word in args.part(2, last).iter() {
                if !is(word, "replace") {
                    return Err(format!("ERR Unknown option given: {}", String::from_utf8_lossy(word)));
                }
                replaces = true;
            }
            let library = vm::register(&args[last], &node.scripts)?;
            let name = library.name.clone();
            Ok((Change::Load { library, replaces }, Some(name)))
        }
    }
}

/// Has the keeper make a change, and returns when no node runs any more what was there before.
async fn change_libraries(node: &Arc<Node>, change: &Change) -> Result<(), String> {
    let encoded = change.encode();
    let slot = FUNCTIONS_SLOT.to_string();
    let words: [&[u8]; 4] = [b"KORUM", b"CHANGE-LIBRARIES", slot.as_bytes(), &encoded];
    match ask_keeper(node, &words, node.request_deadline()).await {
        Some(Reply::Integer(epoch)) => {
            tell(node, Some(Epoch(epoch.cast_unsigned()))).await;
            Ok(())
        }
        Some(Reply::Error(text)) => {
            // It may have been changed all the same.
            if text.starts_with(b"UNKNOWN") {
                tell(node, None).await;
            }
            Err(String::from_utf8_lossy(&text).into_owned())
        }
        _ => Err(UNKNOWN.into()),
    }
}

/// The answer of the primary of the partition that keeps the libraries.
async fn ask_keeper(node: &Arc<Node>, words: &[&[u8]], deadline: Tick) -> Option<Reply> {
    let mut request = BytesMut::new();
    encode_request(words, &mut request);
    let partition = node.view().partition_of_slot(FUNCTIONS_SLOT);
    let reply = repeat_internal(node, partition, request.freeze(), ITSELF, deadline).await?;
    let mut bytes = BytesMut::from(&reply.flat()[..]);
    ReplyDecoder::new().decode(&mut bytes).ok().flatten()
}

/// Tells all nodes that the libraries have changed, at the latest in the map of this epoch; returns when none can run
/// any more what was there before.
async fn tell(node: &Arc<Node>, epoch: Option<Epoch>) {
    node.scripts.functions.doubt();
    let until = node.clock().now() + VALID + MARGIN;
    let is_reached = match epoch {
        // Who asked the keeper before the change stands in this map.
        Some(epoch) => node.reached(epoch, VALID).await.is_some(),
        None => false,
    };
    let mut missing: Vec<(NodeId, Incarnation)> = others(node).collect();
    loop {
        let confirmed = tell_once(node, &missing).await;
        let present: Vec<_> = others(node).collect();
        missing.retain(|other| !confirmed.contains(other) && present.contains(other));
        if is_reached && missing.is_empty() || node.clock().now() >= until {
            return;
        }
        node.changed_within(AGAIN).await;
    }
}

/// The other nodes that are up.
fn others(node: &Node) -> impl Iterator<Item = (NodeId, Incarnation)> + use<> {
    let (view, me) = (node.view(), node.id());
    let others: Vec<_> = view
        .map
        .nodes
        .iter()
        .filter(|(id, record)| **id != me && record.is_up())
        .map(|(id, record)| (*id, record.incarnation))
        .collect();
    others.into_iter()
}

/// Those of these nodes that confirm that they have heard of a change.
async fn tell_once(node: &Arc<Node>, others: &[(NodeId, Incarnation)]) -> Vec<(NodeId, Incarnation)> {
    let mut request = BytesMut::new();
    let words: [&[u8]; 3] = [b"KORUM", b"SCRIPT", b"DOUBT"];
    encode_request(&words, &mut request);
    let request: Rope = request[..].into();
    let asked: Vec<_> = others
        .iter()
        .map(|other| (*other, node.forwards().send(other.0, ITSELF.to_bytes(), &request, 1)))
        .collect();
    let mut confirmed = Vec::new();
    for (other, pending) in asked {
        if let Ok(Ok(answers)) = tokio::time::timeout(TELL_WAIT, pending.wait()).await
            && matches!(&answers[..], [Answer::Reply(reply)] if reply.copied() == b"+OK\r\n")
        {
            confirmed.push(other);
        }
    }
    confirmed
}

/// Asks the keeper for the functions until they are known; false if they are not in time.
pub(super) async fn refresh(node: &Arc<Node>, deadline: Tick) -> bool {
    let functions = &node.scripts.functions;
    loop {
        if let Some(run) = node.leased_run() {
            let asked = functions.ask(node.clock().now(), run);
            let epoch = node.view().map.epoch.0.to_string();
            let (slot, version) = (FUNCTIONS_SLOT.to_string(), asked.version.to_string());
            let words: [&[u8]; 5] =
                [b"KORUM", b"LIBRARIES", slot.as_bytes(), version.as_bytes(), epoch.as_bytes()];
            match ask_keeper(node, &words, deadline).await {
                Some(Reply::Null) => functions.answer(asked, None),
                Some(Reply::Bulk(bytes)) => {
                    if let Some(libraries) = Libraries::decode(&bytes) {
                        functions.answer(asked, Some(libraries));
                    }
                }
                _ => {}
            }
            if are_valid(node) {
                // For the batches that wait for it.
                node.notify_changed();
                return true;
            }
        }
        if node.clock().now() >= deadline {
            return false;
        }
        node.changed_within(AGAIN).await;
    }
}

/// Asks for the functions whenever somebody wants them; does not return.
pub async fn keep(node: Arc<Node>) {
    loop {
        node.scripts.functions.wanted.notified().await;
        let _ = refresh(&node, node.request_deadline()).await;
    }
}
