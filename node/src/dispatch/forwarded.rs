//! What other nodes send.
//!
//! For: running a forwarded request, and telling which commands of Korum's own name their partition themselves.
//! Not here: the connection that they come on (`net::forward`), who listens at this node (`publish`).

use korum_protocol::command::{CommandId, CommandSpec, Flags, resolve};
use korum_protocol::map::{PartitionId, View};
use korum_protocol::placement::slot::SLOTS;
use korum_protocol::resp::Args;

use super::batch::Batch;
use super::caller::Caller;
use super::parts::Into;
use crate::command::script::answer_peer;
use crate::node::Node;

impl Batch {
    /// Runs a request that another node forwards: nothing but keys and parts of whole-cluster commands.
    pub fn run_forwarded(&mut self, node: &Node, view: &View, args: &Args<'_>, caller: Caller) {
        let spec = match resolve(args) {
            Ok(spec) => spec,
            Err(error) => return self.reply(caller.version).error_bytes(&error.reply()),
        };
        if spec.id == CommandId::KorumScript {
            return answer_peer(args, &node.scripts, &mut self.reply(caller.version));
        }
        if let Some(id) = internal_partition(view, spec, args) {
            let Some(id) = id else { return self.reply(caller.version).error("ERR no such partition") };
            if !self.execute(node, id, spec, args, caller, Into::Out) {
                self.hand_back();
            }
        } else if spec.flags.contains(Flags::PUBSUB) {
            self.run_told(node, view, spec, args, caller);
        } else if !self.run(node, view, spec, args, caller) {
            self.reply(caller.version).error("ERR only commands with keys are forwarded");
        }
    }
}

/// Commands of Korum's own whose argument 2 is a slot, and whose reply is that of a whole command.
pub(super) fn is_unit(id: CommandId) -> bool {
    matches!(
        id,
        CommandId::KorumExec
            | CommandId::KorumExecRo
            | CommandId::KorumWatch
            | CommandId::KorumReady
            | CommandId::KorumEval
            | CommandId::KorumEvalRo
            | CommandId::KorumFCall
            | CommandId::KorumFCallRo
            | CommandId::KorumLibraries
            | CommandId::KorumChangeLibraries
    )
}

/// The partition that a command of Korum's own names; `None` for any other command, `Some(None)` if there is none such.
fn internal_partition(view: &View, spec: &CommandSpec, args: &Args<'_>) -> Option<Option<PartitionId>> {
    let number = || std::str::from_utf8(args.get(2)?).ok()?.parse::<u16>().ok();
    match spec.id {
        CommandId::KorumPart | CommandId::KorumClear => {
            Some(number().filter(|&id| u32::from(id) < view.map.partitions))
        }
        id if is_unit(id) => {
            Some(number().filter(|&slot| slot < SLOTS).map(|slot| view.partition_of_slot(slot)))
        }
        _ => None,
    }
}
