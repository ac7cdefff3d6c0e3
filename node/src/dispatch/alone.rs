//! Commands that wait for the cluster, and so are run between batches.
//!
//! For: proposals of operators, `SHUTDOWN`, `SWAPDB`, `INFO`, which counts keys everywhere, `PUBSUB`, which asks all
//! nodes, `DEBUG SLEEP`; changes of scripts and functions.
//! Not here: parsing them (`command`).

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use korum_protocol::command::{CommandId, CommandSpec, Flags};
use korum_protocol::map::MapChange;
use korum_protocol::resp::{Args, ReplyWriter};

use super::caller::Caller;
use super::keyless::{Asker, ask_cluster};
use super::{blocking, databases, functions, publish, scripts, transaction, wait};
use crate::admin::snapshot;
use crate::cluster::{MeetError, ReformError};
use crate::command::outcome::Outcome;
use crate::command::server;
use crate::command::{debug, korum};
use crate::node::Node;
use korum_raft::ProposeError;

/// How long a proposal of an operator may take.
const PROPOSE_WAIT: Duration = Duration::from_secs(5);

/// Must it be run between batches?
#[must_use]
pub fn runs_alone(spec: &CommandSpec, args: &Args<'_>) -> bool {
    debug::sleep(spec, args).is_some() || is_for_the_cluster(spec.id) || functions::runs_alone(spec.id)
}

fn is_for_the_cluster(id: CommandId) -> bool {
    matches!(
        id,
        CommandId::Info
            | CommandId::Shutdown
            | CommandId::Wait
            | CommandId::SwapDb
            | CommandId::PubSubChannels
            | CommandId::PubSubNumsub
            | CommandId::PubSubNumpat
            | CommandId::PubSubShardchannels
            | CommandId::PubSubShardnumsub
            | CommandId::ScriptLoad
            | CommandId::ScriptExists
            | CommandId::ScriptFlush
            | CommandId::ClusterMeet
            | CommandId::ClusterForget
            | CommandId::KorumDrain
            | CommandId::KorumForget
            | CommandId::KorumReplication
            | CommandId::KorumWeight
            | CommandId::KorumReformQuorum
    )
}

/// Runs the command; its reply is appended to `out`.
pub async fn run(
    node: &Arc<Node>,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
    out: &mut BytesMut,
) {
    if let Some(wait) = debug::sleep(spec, args) {
        tokio::time::sleep(wait).await;
        return ReplyWriter::new(out, caller.version).ok();
    }
    let view = node.view();
    let mut reply = ReplyWriter::new(out, caller.version);
    let outcome = match spec.id {
        CommandId::Info => return info(node, args, caller, out).await,
        CommandId::Shutdown => {
            match server::shutdown(*args) {
                Ok(_) => {
                    asker.session.closing = true;
                    node.shutdown.send_replace(true);
                }
                Err(text) => reply.error(text),
            }
            return;
        }
        _ if blocking::runs_alone(spec, args, caller) => {
            return blocking::run(node, spec, args, caller, asker, out).await;
        }
        CommandId::SwapDb => return databases::swap(node, args, caller, &mut reply).await,
        CommandId::Wait => return wait::run(node, args, caller, asker, &mut reply).await,
        CommandId::ScriptLoad
        | CommandId::ScriptExists
        | CommandId::ScriptFlush
        | CommandId::EvalSha
        | CommandId::EvalShaRo => return scripts::run_alone(node, spec, args, caller, asker, out).await,
        CommandId::FCall | CommandId::FCallRo => {
            return functions::run_alone(node, spec, args, caller, asker, out).await;
        }
        id if functions::runs_alone(id) => {
            return functions::run_alone(node, spec, args, caller, asker, out).await;
        }
        CommandId::Watch | CommandId::Exec => {
            return transaction::apart::run(node, spec, args, caller, asker, out).await;
        }
        _ if spec.flags.contains(Flags::PUBSUB) => {
            return publish::ask(node, spec, args, caller, &mut reply).await;
        }
        CommandId::ClusterMeet | CommandId::ClusterForget => ask_cluster(node, &view, *args, &mut reply),
        _ => korum::korum(*args, &view, &snapshot::state(node, &view), &mut reply),
    };
    match outcome {
        Outcome::Replied => {}
        Outcome::Propose(change) => propose(node, change, &mut reply).await,
        Outcome::Reform => match node.cluster().reform().await {
            Ok(reformed) => reply.verbatim("txt", korum::reformed(&reformed).as_bytes()),
            Err(error @ ReformError::Refused(_)) => reply.error(&format!("ERR {error}")),
            Err(error @ ReformError::Unfinished(_)) => reply.error(&format!("TRYAGAIN {error}")),
        },
        Outcome::Meet { address, is_peer_port } => {
            match node.cluster().meet(address.to_string(), is_peer_port).await {
                Ok(()) => reply.ok(),
                Err(error @ MeetError::Passing(_)) => reply.error(&format!("TRYAGAIN {error}")),
                Err(error @ MeetError::Refused(_)) => reply.error(&format!("ERR {error}")),
            }
        }
    }
}

async fn propose(node: &Arc<Node>, change: MapChange, reply: &mut ReplyWriter<'_>) {
    match node.cluster().propose(change, PROPOSE_WAIT).await {
        Ok(epoch) => {
            // So that the next command on this connection sees it.
            let _ = node.reached(epoch, PROPOSE_WAIT).await;
            reply.ok();
        }
        Err(ProposeError::Refused(refusal)) => reply.error(&format!("ERR {refusal}")),
        Err(error @ ProposeError::Unknown(_)) => {
            reply.error(&format!("UNKNOWN {error}; see KORUM STATUS before you ask again"));
        }
        Err(error) => reply.error(&format!("TRYAGAIN {error}; ask again")),
    }
}

async fn info(node: &Arc<Node>, args: &Args<'_>, caller: Caller, out: &mut BytesMut) {
    let databases = databases::sizes(node, caller).await;
    let snapshot = snapshot::info(node, caller.port, databases);
    server::info(*args, &snapshot, &mut ReplyWriter::new(out, caller.version));
}
