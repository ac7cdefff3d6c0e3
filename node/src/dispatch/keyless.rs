//! Commands without keys: about the connection, the server, the cluster.
//!
//! For: handing each to the function that answers it, with what it needs of the node.
//! Not here: the answers (`command`), commands with keys (`execute`), those that wait (`alone`).

use std::sync::Arc;

use bytes::Bytes;
use korum_protocol::command::{CommandId, CommandSpec, Flags, introspect};
use korum_protocol::map::View;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};

use super::batch::Batch;
use super::caller::Caller;
use super::{everywhere, functions, publish, scripts, track, transaction};
use crate::admin::snapshot;
use crate::command::cluster::{ClusterContext, SlotKeys, cluster};
use crate::command::korum::korum;
use crate::command::latency::{LatencyFigures, latency};
use crate::command::outcome::Outcome;
use crate::command::server::{self, ConfigOutcome};
use crate::command::{acl, client, connection, debug, key, memory, pubsub, stream, subcommand, tracking};
use crate::env::random::random;
use crate::net::clients::{Client, Flag};
use crate::net::session::{PortKind, Session};
use crate::node::Node;
use crate::store::HashPosition;
use crate::store::database::split;

/// The connection that asks.
pub struct Asker<'a> {
    /// What it remembers.
    pub session: &'a mut Session,
    /// How others see it.
    pub client: &'a Arc<Client>,
}

/// Runs the command that was opened last in `batch`, with or without keys.
pub fn run(
    batch: &mut Batch,
    node: &Arc<Node>,
    view: &View,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    caller: Caller,
    asker: &mut Asker<'_>,
) {
    if spec.flags.contains(Flags::PUBSUB) {
        return publish::run(batch, node, view, spec, args, caller, asker);
    }
    if scripts::run(batch, node, view, spec, args, caller)
        || functions::run(batch, node, view, spec, args, caller)
        || batch.run(node, view, spec, args, caller)
        || everywhere::run(batch, node, view, spec, args, caller)
        || transaction::run(batch, node, view, spec, caller, asker)
    {
        return;
    }
    if let CommandId::Hello | CommandId::Reset = spec.id {
        if spec.id == CommandId::Reset {
            node.clients.hub.leave(asker.client);
            node.clients.monitors.leave(asker.client);
            if node.clients.tracker.end(asker.client) {
                track::ask(node, tracking::Outcome::End);
            }
        }
        // What has come before stands before the reply, in the protocol that may end here.
        batch.take_messages(asker);
    }
    let mut reply = batch.reply(caller.version);
    answer(node, view, spec, args, asker, &mut reply);
}

fn answer(
    node: &Arc<Node>,
    view: &View,
    spec: &'static CommandSpec,
    args: &Args<'_>,
    asker: &mut Asker<'_>,
    reply: &mut ReplyWriter<'_>,
) {
    let password = || node.live.text("requirepass");
    let (args, session, me) = (*args, &mut *asker.session, asker.client);
    match spec.id {
        CommandId::Ping if session.version == ProtocolVersion::Resp2 && me.has_flag(Flag::Subscribed) => {
            pubsub::ping(args, reply);
        }
        CommandId::Ping => connection::ping(args, reply),
        CommandId::Echo => connection::echo(args, reply),
        CommandId::Hello => connection::hello(args, session, me, &password(), reply),
        CommandId::Auth => connection::auth(args, session, &password(), reply),
        CommandId::Select => connection::select(args, session, me, &node.databases(), reply),
        CommandId::Quit => connection::quit(session, reply),
        CommandId::Reset => connection::reset(session, me, &password(), reply),
        CommandId::ReadOnly => connection::read_only(args, session, me, true, reply),
        CommandId::ReadWrite => connection::read_only(args, session, me, false, reply),
        CommandId::Asking => connection::asking(args, session, reply),
        CommandId::Time => server::time(args, node.clock().wall_us(), reply),
        CommandId::Lolwut => server::lolwut(args, node.clock().wall_us(), reply),
        CommandId::Role => server::role(reply),
        CommandId::ModuleList => reply.array(0),
        CommandId::ModuleHelp => subcommand::help("MODULE", server::MODULE_HELP, reply),
        CommandId::PfSelfTest => reply.ok(),
        CommandId::Debug => debug::debug(args, &node.live, reply),
        CommandId::Monitor => {
            node.clients.monitors.enter(me);
            reply.ok();
        }
        CommandId::ObjectHelp => subcommand::help("OBJECT", key::OBJECT_HELP, reply),
        CommandId::XGroupHelp => subcommand::help("XGROUP", stream::GROUP_HELP, reply),
        CommandId::XInfoHelp => subcommand::help("XINFO", stream::INFO_HELP, reply),
        CommandId::KorumConsistency => {
            connection::consistency(args, session, node.config().cluster.consistency, reply);
        }
        id if introspect::reply(id, &args, reply) => {}
        _ => answer_container(node, view, spec, args, asker, reply),
    }
}

fn answer_container(
    node: &Arc<Node>,
    view: &View,
    spec: &'static CommandSpec,
    args: Args<'_>,
    asker: &mut Asker<'_>,
    reply: &mut ReplyWriter<'_>,
) {
    let container = spec.full_name.split('|').next().unwrap_or_default();
    match container {
        "client" => {
            asker.client.touch(node.clock().now(), spec.full_name);
            if let CommandId::ClientTracking
            | CommandId::ClientCaching
            | CommandId::ClientTrackinginfo
            | CommandId::ClientGetredir = spec.id
            {
                let left = tracking::client(spec.id, args, asker.session, asker.client, &node.clients, reply);
                return track::ask(node, left);
            }
            client::client(args, asker.session, asker.client, &node.clients, node.clock().now(), reply);
        }
        "config" => match server::config(args, &node.live, asker.session.port, reply) {
            ConfigOutcome::ResetStats => node.stats.reset(),
            ConfigOutcome::Changed(names) => {
                if names.contains(&"timeout") {
                    // Idle connections measure their time anew.
                    node.clients.wake_all();
                }
                if names.contains(&publish::EVENTS) && asker.session.port == PortKind::Client {
                    publish::tell_events(node, None);
                }
                scripts::take_settings(node, &names);
            }
            ConfigOutcome::Done => {}
        },
        "acl" => acl::acl(spec.id, args, &node.live.text("requirepass"), &mut random(), reply),
        "slowlog" => server::slowlog(args, &node.slowlog, reply),
        "latency" => {
            let figures = LatencyFigures {
                delays: &node.latency,
                commands: &|| node.stats.commands(),
                threshold_ms: node.live.latency_threshold_ms(),
                now: node.clock().wall_ms() / 1000,
            };
            latency(args, &figures, reply);
        }
        "pubsub" => pubsub::pubsub(spec, args, &node.clients.hub, reply),
        "memory" => memory::memory(spec.id, || snapshot::memory(node), reply),
        "cluster" => replied(ask_cluster(node, view, args, reply), reply),
        "korum" => replied(korum(args, view, &snapshot::state(node, view), reply), reply),
        _ => reply.error("ERR this command is not supported by this version of Korum"),
    }
}

/// Commands that leave something to do run alone; these do not.
fn replied(outcome: Outcome, reply: &mut ReplyWriter<'_>) {
    match outcome {
        Outcome::Replied => {}
        Outcome::Propose(_) | Outcome::Reform | Outcome::Meet { .. } => {
            reply.error("ERR this command has to be sent on its own")
        }
    }
}

/// Runs `CLUSTER …` as far as it only answers.
pub(super) fn ask_cluster(
    node: &Arc<Node>,
    view: &View,
    args: Args<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Outcome {
    let context = ClusterContext {
        view,
        me: node.id(),
        has_lease: node.is_leased(),
        topology: &node.topology,
        keys: &KeysOfSlot { node, view },
        links: &snapshot::links(node),
    };
    cluster(args, &context, reply)
}

struct KeysOfSlot<'a> {
    node: &'a Node,
    view: &'a View,
}

impl KeysOfSlot<'_> {
    fn visit(&self, slot: u16, mut visit: impl FnMut(&[u8]) -> bool) {
        let id = self.view.partition_of_slot(slot);
        if self.view.row(id).primary != Some(self.node.id()) {
            return;
        }
        let now_ms = self.node.clock().wall_ms();
        let partition = self.node.store().lock(id);
        let mut from = Some(HashPosition::START);
        while let Some(position) = from {
            let keyspace = &partition.keyspace;
            // Cluster-aware clients know the first database.
            let first = keyspace.databases.room(0);
            let scanned = keyspace.scan(position, 1024);
            for entry in scanned.entries {
                let (room, key) = split(entry.key());
                let is_of_slot = room == first && slot_of(key) == slot;
                if is_of_slot && !entry.is_expired(now_ms) && !visit(key) {
                    return;
                }
            }
            from = scanned.next;
        }
    }
}

impl SlotKeys for KeysOfSlot<'_> {
    fn count(&self, slot: u16) -> usize {
        let mut count = 0;
        self.visit(slot, |_| {
            count += 1;
            true
        });
        count
    }

    fn keys(&self, slot: u16, count: usize) -> Vec<Bytes> {
        let mut keys = Vec::new();
        if count > 0 {
            self.visit(slot, |key| {
                keys.push(Bytes::copy_from_slice(key));
                keys.len() < count
            });
        }
        keys
    }
}
