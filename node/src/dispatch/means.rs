//! What a batch lends to the commands that it runs.
//!
//! For: the one place where a [`Call`] of a client's command is made.
//! Not here: the partition and its effects, which are lent for one command.

use korum_protocol::resp::{Args, ReplyWriter};

use crate::command::{Call, Looks, Names};
use crate::env::random::Random;
use crate::node::Node;
use crate::replication::effect::Effects;
use crate::store::{Keyspace, Source};

/// What is the same for all commands of a batch.
pub(super) struct Means {
    /// Unix ms, at the last look at the clock.
    pub now_ms: u64,
    pub random: Random,
    /// What was looked up so far.
    pub looks: Looks,
    /// What the requests are parts of, where long strings of them may be kept.
    pub source: Source,
}

impl Means {
    /// A command on these keys.
    pub fn call<'a>(
        &'a mut self,
        node: &'a Node,
        args: Args<'a>,
        names: &'a Names,
        keyspace: &'a mut Keyspace,
        effects: &'a mut Effects,
        reply: ReplyWriter<'a>,
    ) -> Call<'a> {
        let Self { now_ms, random, looks, source } = self;
        Call {
            args,
            names,
            keyspace,
            now_ms: *now_ms,
            random,
            effects,
            looks,
            source,
            scripts: &node.scripts,
            reply,
        }
    }
}
