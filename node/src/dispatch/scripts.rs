//! Scripts where they come in: `EVAL` and its kin, and `SCRIPT`.
//!
//! For: finding a script's source, sending it with its keys to their partition as one request (`KORUM EVAL`), and
//! making what is known of scripts the cluster's: a node that does not know a digest asks the others.
//! Not here: running a script (`script`), reading the request (`command::script`).
//!
//! A script with keys runs under their partition's lock at its primary, like any command. One without keys runs here,
//! and may not touch any.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandId, CommandSpec, lookup};
use korum_protocol::limits::KEY_BYTES_MAX;
use korum_protocol::map::{PartitionId, View};
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::{Args, Reply, ReplyDecoder, ReplyWriter, encode_request};
use korum_protocol::rope::Rope;

use super::batch::{Batch, KEY_TOO_LONG};
use super::caller::Caller;
use super::everywhere::submit;
use super::keyless::{self, Asker};
use super::route::{NOT_SERVED, Route, route};
use super::transaction;
use crate::command::script::{NO_SCRIPT, count_keys, eval_request, nested};
use crate::command::subcommand;
use crate::env::random::random;
use crate::net::forward::Answer;
use crate::node::Node;
use crate::script::cache::{Kind, SCRIPT_BYTES_MAX, hex, parse_hex};
use crate::script::{Digest, digest, vm};

/// How long another node may take to say what it knows.
const ASK_WAIT: Duration = Duration::from_secs(1);

const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";
const TOO_LONG: &str = "ERR the script is too long; scripts have at most 4 MB";
/// The answer to who wants to end what does not run.
pub(super) const NOT_BUSY: &str = "NOTBUSY No scripts in execution right now.";
const HELP: &[&str] = &[
    "DEBUG NO",
    "    There is no debugger: scripts run as they are.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return which scripts the cluster knows.",
    "FLUSH [ASYNC|SYNC]",
    "    Forget all scripts, on all nodes.",
    "KILL",
    "    End the scripts that run on this node.",
    "LOAD <script>",
    "    Make a script known on all nodes, without running it.",
];

/// Runs the command that was opened last in `batch`, if it is one of these. False if it is not.
pub fn run(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    spec: &CommandSpec,
    args: &Args<'_>,
    caller: Caller,
) -> bool {
    let reply = match spec.id {
        CommandId::Eval | CommandId::EvalRo | CommandId::EvalSha | CommandId::EvalShaRo => {
            if let Err(text) = eval(batch, node, view, spec.id, args, caller) {
                batch.reply(caller.version).error(&text);
            }
            return true;
        }
        CommandId::ScriptKill | CommandId::ScriptDebug | CommandId::ScriptHelp => {
            &mut batch.reply(caller.version)
        }
        _ => return false,
    };
    match spec.id {
        CommandId::ScriptKill if node.scripts.kill(Kind::Script) => reply.ok(),
        CommandId::ScriptKill => reply.error(NOT_BUSY),
        CommandId::ScriptDebug if args[2].eq_ignore_ascii_case(b"no") => reply.ok(),
        CommandId::ScriptDebug => reply.error("ERR there is no debugger for scripts"),
        _ => subcommand::help("SCRIPT", HELP, reply),
    }
    true
}

fn eval(
    batch: &mut Batch,
    node: &Node,
    view: &View,
    id: CommandId,
    args: &Args<'_>,
    caller: Caller,
) -> Result<(), String> {
    let count = count_keys(args)?;
    if count == 0 {
        // Known to the others from now on, as one that is run on a partition.
        if let Some((digest, source)) = new_source(id, args)? {
            node.scripts.keep(digest, source);
        }
        batch.run_apart(node, args, caller, |call| nested(call, id));
        return Ok(());
    }
    let keys = args.part(3, 3 + count);
    if keys.iter().any(|key| key.len() > KEY_BYTES_MAX) {
        return Err(KEY_TOO_LONG.into());
    }
    let slot = slot_of(&args[3]);
    let partition = partition_of(node, view, caller, &keys)?;
    let reads_only = matches!(id, CommandId::EvalRo | CommandId::EvalShaRo);
    let request = match new_source(id, args)? {
        Some((digest, source)) => {
            node.scripts.keep(digest, source);
            eval_request(slot, &digest, source, args, reads_only)
        }
        None => {
            let found = parse_hex(&args[1]).and_then(|digest| Some((digest, node.scripts.get(&digest)?)));
            let (digest, source) = found.ok_or(NO_SCRIPT)?;
            eval_request(slot, &digest, &source, args, reads_only)
        }
    };
    submit(batch, node, view, partition, request, caller);
    Ok(())
}

/// The partition of the keys of a script or function, one at least.
pub(super) fn partition_of(
    node: &Node,
    view: &View,
    caller: Caller,
    keys: &Args<'_>,
) -> Result<PartitionId, String> {
    match route(view, node.id(), caller.port, keys.iter().map(slot_of)) {
        Route::Here(partition) | Route::Forward(_, partition) => Ok(partition),
        Route::Elsewhere => Ok(view.partition_of_slot(slot_of(&keys[0]))),
        Route::CrossSlot => Err(CROSS_SLOT.into()),
        Route::Down(_) => Err(NOT_SERVED.into()),
        Route::Moved(slot, primary) => Err(node.moved(view, slot, primary)),
    }
}

/// The script that a command brings along; `None` if it only names one.
fn new_source<'a>(id: CommandId, args: &Args<'a>) -> Result<Option<(Digest, &'a [u8])>, String> {
    if matches!(id, CommandId::EvalSha | CommandId::EvalShaRo) {
        return Ok(None);
    }
    let source = args.get(1).unwrap_or_default();
    if source.len() > SCRIPT_BYTES_MAX { Err(TOO_LONG.into()) } else { Ok(Some((digest(source), source))) }
}

/// A command that names a script by its digest, as one that brings it along: what it is then, its name and the script.
pub(super) fn with_source(
    node: &Node,
    id: CommandId,
    args: &Args<'_>,
) -> Option<(&'static CommandSpec, &'static [u8], Bytes)> {
    let name: &[u8] = match id {
        CommandId::EvalSha => b"eval",
        CommandId::EvalShaRo => b"eval_ro",
        _ => return None,
    };
    Some((lookup(name)?, name, node.scripts.get(&parse_hex(args.get(1)?)?)?))
}

/// Is it about a script that this node does not know, so that the others have to be asked first?
#[must_use]
pub fn must_ask(node: &Node, spec: &CommandSpec, args: &Args<'_>) -> bool {
    matches!(spec.id, CommandId::EvalSha | CommandId::EvalShaRo)
        && parse_hex(&args[1]).is_some_and(|digest| !node.scripts.knows(&digest))
}

/// Runs a command that asks the other nodes; the reply is appended to `out`.
pub(super) async fn run_alone(
    node: &Arc<Node>,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
    out: &mut BytesMut,
) {
    let mut reply = ReplyWriter::new(out, caller.version);
    match spec.id {
        CommandId::ScriptLoad => load(node, &args[2], caller, &mut reply).await,
        CommandId::ScriptExists => exists(node, args, caller, &mut reply).await,
        CommandId::ScriptFlush => flush(node, args, caller, &mut reply).await,
        _ => {
            fetch(node, &args[1], caller).await;
            run_now(node, spec, args, caller, asker).await.copy_to(out);
        }
    }
}

/// Runs, or queues, a command in a batch of its own.
pub(super) async fn run_now(
    node: &Arc<Node>,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
) -> Rope {
    let mut batch = Batch::new(random());
    batch.begin(node);
    batch.open(0..0, caller);
    let view = node.view();
    if asker.session.transaction.queues(spec) {
        transaction::queue(&mut batch, node, &view, spec, args, caller, asker);
    } else {
        keyless::run(&mut batch, node, &view, spec, args, caller, asker);
    }
    transaction::apart::reply_of(node, &mut batch, &[], asker).await
}

async fn load(node: &Arc<Node>, source: &[u8], caller: Caller, reply: &mut ReplyWriter<'_>) {
    if source.len() > SCRIPT_BYTES_MAX {
        return reply.error(TOO_LONG);
    }
    let digest = digest(source);
    if let Err(text) = vm::check(digest, source) {
        return reply.error(&text);
    }
    node.scripts.keep(digest, source);
    // Who does not hear of it will ask.
    let _ = ask_others(node, &[b"LOAD", source], caller).await;
    reply.bulk(hex(&digest).as_bytes());
}

async fn exists(node: &Arc<Node>, args: &Args<'_>, caller: Caller, reply: &mut ReplyWriter<'_>) {
    let names = args.tail(2);
    let mut known: Vec<bool> =
        names.iter().map(|name| parse_hex(name).is_some_and(|digest| node.scripts.knows(&digest))).collect();
    if known.contains(&false) {
        let words: Vec<&[u8]> = std::iter::once(&b"EXISTS"[..]).chain(names.iter()).collect();
        for answer in ask_others(node, &words, caller).await {
            let Reply::Array(values) = answer else { continue };
            known.iter_mut().zip(values).for_each(|(known, value)| *known |= value == Reply::Integer(1));
        }
    }
    reply.array(known.len());
    known.into_iter().for_each(|known| reply.integer(known.into()));
}

async fn flush(node: &Arc<Node>, args: &Args<'_>, caller: Caller, reply: &mut ReplyWriter<'_>) {
    let is_known = |word: &[u8]| word.eq_ignore_ascii_case(b"async") || word.eq_ignore_ascii_case(b"sync");
    if args.len() > 3 || args.get(2).is_some_and(|word| !is_known(word)) {
        return reply.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    }
    node.scripts.flush();
    let _ = ask_others(node, &[b"FLUSH"], caller).await;
    reply.ok();
}

/// Asks the others for a script that is not known here.
async fn fetch(node: &Arc<Node>, name: &[u8], caller: Caller) {
    let Some(wanted) = parse_hex(name) else { return };
    for answer in ask_others(node, &[b"GET", name], caller).await {
        if let Reply::Bulk(source) = answer
            && digest(&source) == wanted
        {
            return node.scripts.keep(wanted, &source);
        }
    }
}

/// What all other nodes that are up answer to `KORUM SCRIPT …`; those that do not are left out.
async fn ask_others(node: &Arc<Node>, words: &[&[u8]], caller: Caller) -> Vec<Reply> {
    let words: Vec<&[u8]> = [b"KORUM", &b"SCRIPT"[..]].into_iter().chain(words.iter().copied()).collect();
    let mut request = BytesMut::new();
    encode_request(&words, &mut request);
    let request: Rope = request[..].into();
    let view = node.view();
    let others = view.map.nodes.iter().filter(|(id, record)| **id != node.id() && record.is_up());
    let asked: Vec<_> =
        others.map(|(id, _)| node.forwards().send(*id, caller.to_bytes(), &request, 1)).collect();
    let mut replies = Vec::new();
    for pending in asked {
        let Ok(Ok(answers)) = tokio::time::timeout(ASK_WAIT, pending.wait()).await else { continue };
        for answer in answers {
            let Answer::Reply(reply) = answer else { continue };
            let mut bytes = BytesMut::from(&reply.flat()[..]);
            replies.extend(ReplyDecoder::new().decode(&mut bytes).ok().flatten());
        }
    }
    replies
}

/// Takes over what `CONFIG SET` has changed.
pub(super) fn take_settings(node: &Node, names: &[&'static str]) {
    let limits = names.iter().filter(|name| matches!(**name, "lua-time-limit" | "busy-reply-threshold"));
    for name in limits {
        if let Ok(limit_ms) = node.live.text(name).parse() {
            node.scripts.set_time_limit(limit_ms);
        }
    }
}
