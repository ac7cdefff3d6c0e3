//! The present links of this node to its peers.
//!
//! For: telling every partition of which this node is primary that a link opened or closed.
//! Not here: the connections themselves (`session`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use korum_protocol::id::{Incarnation, NodeId};

use super::link::Link;
use super::transition::LinkBook;
use crate::node::Node;
use crate::store::{Partition, Role};

/// Links by peer.
#[derive(Default)]
pub struct Links {
    by_peer: RwLock<HashMap<NodeId, Arc<Link>>>,
    opened: AtomicU64,
}

impl LinkBook for Links {
    fn link(&self, node: NodeId, incarnation: Incarnation) -> Option<Arc<Link>> {
        let links = self.by_peer.read().unwrap_or_else(PoisonError::into_inner);
        links.get(&node).filter(|link| link.incarnation == incarnation && !link.is_broken()).cloned()
    }
}

impl Links {
    /// All present links.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Link>> {
        self.by_peer.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The number of the next link.
    pub fn next_number(&self) -> u64 {
        self.opened.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A connection is there: asks the peer about every partition whose copy it has or shall have.
    pub fn open(&self, node: &Node, link: &Arc<Link>) {
        let previous =
            self.by_peer.write().unwrap_or_else(PoisonError::into_inner).insert(link.peer, Arc::clone(link));
        if let Some(previous) = previous {
            previous.break_off();
        }
        node.store().for_each(|id, partition| {
            let Partition { role: Role::Primary(primary), history, .. } = partition else { return };
            let era = primary.era;
            for copy in &mut primary.copies {
                // A copy made since the link was listed has asked already.
                let has_asked = copy.link().is_some_and(|present| Arc::ptr_eq(present, link));
                if copy.node == link.peer && copy.incarnation == link.incarnation && !has_asked {
                    copy.connect(id, era, history, link);
                }
            }
        });
        node.notify_changed();
    }

    /// A connection is gone.
    pub fn close(&self, node: &Node, link: &Arc<Link>) {
        {
            let mut links = self.by_peer.write().unwrap_or_else(PoisonError::into_inner);
            if links.get(&link.peer).is_some_and(|present| Arc::ptr_eq(present, link)) {
                links.remove(&link.peer);
            }
        }
        node.store().for_each(|_, partition| {
            let Some(primary) = partition.as_primary_mut() else { return };
            for copy in &mut primary.copies {
                if copy.link().is_some_and(|present| Arc::ptr_eq(present, link)) {
                    copy.unlink();
                }
            }
        });
        node.notify_changed();
    }
}
