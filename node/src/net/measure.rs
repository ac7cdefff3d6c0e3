//! How long a command took.
//!
//! For: the slow log and the delays that `LATENCY` shows. A command that is fast by nature is measured only where
//! somebody wants to know of less than a millisecond.
//! Not here: what is kept of it (`admin::slowlog`).

use std::time::Duration;

use korum_protocol::command::{CommandId, CommandSpec, Flags};
use korum_protocol::resp::Args;

use crate::env::Tick;
use crate::node::Node;

/// When a command began that may have to be logged.
#[must_use]
pub struct Measure {
    began: Option<Tick>,
}

impl Measure {
    /// A command begins.
    #[inline]
    pub fn begin(node: &Node, is_fast: bool) -> Self {
        Self { began: node.live.measures(is_fast).then(|| node.clock().now()) }
    }

    /// It has ended: which it was, and whose, is asked only if it was slow. How long it took, if it was measured.
    #[inline]
    pub fn end(
        self,
        node: &Node,
        args: &Args<'_>,
        spec: impl FnOnce() -> Option<&'static CommandSpec>,
        whose: impl FnOnce() -> (String, String),
    ) -> Option<Duration> {
        let took = node.clock().now().since(self.began?);
        let took_us = took.as_micros() as u64;
        let is_slow = node.live.slowlog_slower_than_us().is_some_and(|limit| took_us >= limit);
        let is_delay = node.live.latency_threshold_ms().is_some_and(|limit| took_us / 1000 >= limit);
        if (is_slow || is_delay)
            && let Some(spec) = spec()
        {
            log(node, args, spec, took_us, (is_slow, is_delay), whose);
        }
        Some(took)
    }
}

#[cold]
fn log(
    node: &Node,
    args: &Args<'_>,
    spec: &CommandSpec,
    took_us: u64,
    (is_slow, is_delay): (bool, bool),
    whose: impl FnOnce() -> (String, String),
) {
    let now = node.clock().wall_ms() / 1000;
    if is_delay {
        let kind = if spec.flags.contains(Flags::FAST) { "fast-command" } else { "command" };
        node.latency.add(kind, now, took_us / 1000);
    }
    // Their arguments are nobody's business, or tell nothing.
    let is_secret = matches!(spec.id, CommandId::Auth | CommandId::Hello | CommandId::ConfigSet)
        || spec.full_name.starts_with("korum|")
        || spec.flags.contains(Flags::SKIP_SLOWLOG);
    if is_slow && !is_secret {
        let (address, name) = whose();
        let len_max = node.live.text("slowlog-max-len").parse().unwrap_or(0);
        node.slowlog.add(now, took_us, args, address, name, len_max);
    }
}
