//! Databases of the whole cluster: `SWAPDB`, and what `INFO keyspace` says of each.
//!
//! For: proposing a swap and waiting until every partition is served by it; asking every partition how large its
//! databases are.
//! Not here: keys of one call (`command::names`), the stored form (`store::database`), the order of the databases in
//! the map (`korum_protocol::map::databases`).
//!
//! A primary takes a swap over with the map that brings it, partition by partition, each under its lock
//! ([`take_over`]): there is one moment at which a partition changes, wherever its commands come in. The reply comes
//! when all have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::map::{MapChange, Refusal};
use korum_protocol::resp::{Args, ReplyDecoder, ReplyWriter};
use korum_protocol::rope::Rope;
use korum_raft::ProposeError;

use super::batch::Batch;
use super::caller::Caller;
use super::route::Port;
use super::{assemble, everywhere};
use crate::command::args::small_integer;
use crate::command::names::NO_SUCH_DATABASE;
use crate::env::Tick;
use crate::env::random::random;
use crate::node::Node;
use crate::store::{Databases, Partition};

/// How long a swap may take.
const SWAP_WAIT: Duration = Duration::from_secs(5);
/// Longest pause before partitions are asked again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const NOT_IN_CLUSTER: &str = "ERR SWAPDB is not allowed in cluster mode";
const HALF_DONE: &str =
    "UNKNOWN the databases are swapped, but some partitions could not be asked whether they serve it already";

/// How large a database is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Size {
    /// Keys.
    pub keys: u64,
    /// Keys with a deadline.
    pub expires: u64,
    /// What is left until their deadlines, all together, ms.
    pub left_ms: u64,
}

/// A partition's databases have these rooms from now on. What waits there waits for keys of the old rooms: it is sent
/// again.
pub fn take_over(partition: &mut Partition, databases: &Databases) {
    partition.keyspace.databases = databases.clone();
    if let Some(primary) = partition.as_primary_mut() {
        primary.waiting.clear();
    }
}

/// `SWAPDB first second`
pub(super) async fn swap(node: &Arc<Node>, args: &Args<'_>, caller: Caller, reply: &mut ReplyWriter<'_>) {
    if caller.port == Port::Cluster {
        return reply.error(NOT_IN_CLUSTER);
    }
    let (Ok(first), Ok(second)) = (small_integer(&args[1]), small_integer(&args[2])) else {
        let which = if small_integer(&args[1]).is_err() { "first" } else { "second" };
        return reply.error(&format!("ERR invalid {which} DB index"));
    };
    let databases = node.databases();
    let (Some(first), Some(second)) = (databases.find(first.into()), databases.find(second.into())) else {
        return reply.error(NO_SUCH_DATABASE);
    };
    if first == second {
        return reply.ok();
    }
    let until = node.clock().now() + SWAP_WAIT;
    loop {
        let swaps = node.databases().swaps();
        match node.cluster().propose(MapChange::SwapDatabases { first, second, swaps }, SWAP_WAIT).await {
            Ok(epoch) => {
                let _ = node.reached(epoch, SWAP_WAIT).await;
                return if is_served(node, caller, swaps + 1, until).await {
                    reply.ok();
                } else {
                    reply.error(HALF_DONE);
                };
            }
            // Somebody else has swapped two: this swap comes after that one.
            Err(ProposeError::Refused(Refusal::Outdated { at, .. })) if node.clock().now() < until => {
                let _ = node.reached(at, LOOK_AGAIN).await;
            }
            Err(ProposeError::Refused(refusal)) => return reply.error(&format!("ERR {refusal}")),
            Err(error @ ProposeError::Unknown(_)) => return reply.error(&format!("UNKNOWN {error}")),
            Err(error) => return reply.error(&format!("TRYAGAIN {error}; ask again")),
        }
    }
}

/// Waits until every partition is served with so many swaps; false if some could not be asked in time.
async fn is_served(node: &Arc<Node>, caller: Caller, swaps: u64, until: Tick) -> bool {
    loop {
        let reply =
            ask(node, caller, |batch| everywhere::ask_swapped(batch, node, &node.view(), caller, swaps));
        let count = assemble::integer(reply.await.copied());
        if count == Some(node.store().len() as i64) {
            return true;
        }
        if node.clock().now() >= until {
            return false;
        }
        node.changed_within(LOOK_AGAIN).await;
    }
}

/// How large the databases are that have keys: of the whole cluster on the client port, of partitions with their
/// primary here on the cluster port. None if that cannot be known now.
pub(super) async fn sizes(node: &Arc<Node>, caller: Caller) -> BTreeMap<u8, Size> {
    let reply = ask(node, caller, |batch| everywhere::ask_sizes(batch, node, &node.view(), caller)).await;
    let mut bytes = bytes::BytesMut::from(&reply.flat()[..]);
    let numbers = match ReplyDecoder::new().decode(&mut bytes) {
        Ok(Some(korum_protocol::resp::Reply::Array(values))) => values,
        _ => Vec::new(),
    };
    let numbers: Vec<u64> = numbers
        .into_iter()
        .filter_map(|value| match value {
            korum_protocol::resp::Reply::Integer(number) => u64::try_from(number).ok(),
            _ => None,
        })
        .collect();
    let mut sizes: BTreeMap<u8, Size> = BTreeMap::new();
    for part in numbers.chunks_exact(4) {
        let size = sizes.entry(part[0] as u8).or_default();
        size.keys += part[1];
        size.expires += part[2];
        size.left_ms = size.left_ms.saturating_add(part[3]);
    }
    if caller.port == Port::Cluster {
        // Cluster-aware clients know the first database.
        sizes.retain(|&database, _| database == 0);
    }
    sizes
}

/// The reply of a command that asks every partition.
async fn ask(node: &Arc<Node>, caller: Caller, open: impl FnOnce(&mut Batch)) -> Rope {
    let mut batch = Batch::new(random());
    batch.begin(node);
    batch.open(0..0, caller);
    open(&mut batch);
    batch.finish(node, &[], node.request_deadline()).await;
    let mut reply = Rope::new();
    batch.assemble(&mut reply, |_| None);
    reply
}
