//! Removes expired keys in the background.
//!
//! For: freeing what nobody reads any more. Only primaries do; their copies are told by effects.
//! Not here: hiding expired keys from readers, which commands do themselves.

use std::sync::Arc;
use std::time::Duration;

use korum_protocol::map::PartitionId;

use super::Garbage;
use super::partition::{Partition, Role};
use crate::admin::stats::Counter;
use crate::dispatch::{publish, track};
use crate::executor::worker_number;
use crate::node::Node;
use crate::replication::effect::Effects;
use crate::replication::primary::Admission;

/// Distance of two rounds.
const ROUND: Duration = Duration::from_millis(100);
/// Rounds in which every partition is visited once: an expired key that nobody asks for stays a second at most,
/// if few expire at once, and an idle node hardly works.
const ROUNDS: usize = 10;
/// Keys removed under one lock: some ten microseconds.
const KEYS_AT_ONCE: usize = 64;
/// Keys removed before other tasks of the thread get their turn.
const KEYS_BEFORE_PAUSE: usize = 2048;

/// Runs until the task is dropped.
pub async fn run(node: Arc<Node>) {
    let mut effects = Effects::new(true);
    for round in (0..ROUNDS).cycle() {
        tokio::time::sleep(ROUND).await;
        if !node.live.expires_actively() {
            continue;
        }
        let mut left = KEYS_BEFORE_PAUSE;
        for id in (round..node.store().len()).step_by(ROUNDS) {
            let id = id as PartitionId;
            loop {
                let removed = sweep(&node, id, &mut effects);
                left = left.saturating_sub(removed);
                if left == 0 {
                    left = KEYS_BEFORE_PAUSE;
                    tokio::task::yield_now().await;
                }
                if removed < KEYS_AT_ONCE {
                    break;
                }
            }
        }
    }
}

fn sweep(node: &Node, id: PartitionId, effects: &mut Effects) -> usize {
    let now_ms = node.clock().wall_ms();
    let mut guard = node.store().lock(id);
    let partition = &mut *guard;
    partition.keyspace.tick((now_ms / 1000) as u32);
    let Partition { role: Role::Primary(primary), history, keyspace, .. } = partition else { return 0 };
    let is_due = keyspace.next_deadline().is_some_and(|deadline| deadline < now_ms);
    if !is_due || !node.is_leased() || primary.admits(true) != Admission::Ready {
        return 0;
    }
    effects.clear();
    effects.set_recording(primary.is_followed());
    effects.notices.want(node.live.notify_classes());
    effects.notices.track(node.clients.tracker.is_wanted());
    let removed = keyspace.sweep(now_ms, KEYS_AT_ONCE, effects);
    if effects.count() > 0 {
        primary.replicate(id, history, keyspace, effects);
    }
    publish::announce(node, effects, &keyspace.databases);
    track::announce(node, effects);
    drop(guard);
    let garbage: Garbage = effects.take_garbage();
    node.discard(garbage);
    node.stats.of(worker_number()).add(Counter::Expired, removed as u64);
    removed
}
