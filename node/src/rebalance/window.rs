//! How much of a stream may be under way.
//!
//! For: bytes of chunks, per target, that were sent and are not acknowledged. Live effects go the same way behind
//! them, and clients wait for those: so a target that is slow to apply is sent little at a time.
//! Not here: bytes per second (`throttle`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use korum_protocol::id::NodeId;

use crate::replication::link::{Link, Place};

/// Bytes of chunks to one target that may be under way, bytes: a millisecond of a target's work, and what a network
/// of 1 Gbit/s holds whose round trip takes a millisecond. Every primary has a window to every target.
const WINDOW_BYTES: usize = 128 << 10;

/// What is under way to each target.
#[derive(Default)]
pub struct Window {
    by_target: RefCell<HashMap<NodeId, UnderWay>>,
}

struct UnderWay {
    link: Arc<Link>,
    chunks: Vec<(Place, usize)>,
}

impl Window {
    /// May another chunk be sent on this link? One that is sent then may go over.
    pub fn has_room(&self, link: &Arc<Link>) -> bool {
        self.with(link, |chunks| {
            chunks.retain(|(place, _)| !link.has_acknowledged(*place));
            chunks.iter().map(|(_, bytes)| bytes).sum::<usize>() < WINDOW_BYTES
        })
    }

    /// A chunk of so many bytes was sent.
    pub fn add(&self, link: &Arc<Link>, place: Place, bytes: usize) {
        self.with(link, |chunks| chunks.push((place, bytes)));
    }

    /// Lets go of links that are broken.
    pub fn forget_broken(&self) {
        self.by_target.borrow_mut().retain(|_, under_way| !under_way.link.is_broken());
    }

    /// What is under way on this link; whatever was on an earlier one to the same node is not any more.
    fn with<T>(&self, link: &Arc<Link>, work: impl FnOnce(&mut Vec<(Place, usize)>) -> T) -> T {
        let fresh = || UnderWay { link: Arc::clone(link), chunks: Vec::new() };
        let mut by_target = self.by_target.borrow_mut();
        let under_way = by_target.entry(link.peer).or_insert_with(fresh);
        if !Arc::ptr_eq(&under_way.link, link) {
            *under_way = fresh();
        }
        work(&mut under_way.chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::history::Path;
    use crate::replication::link::Lane;
    use crate::replication::message::{Acknowledged, Body, Message};
    use korum_protocol::id::{Epoch, Incarnation};
    use korum_protocol::rope::Rope;

    fn sent(link: &Link) -> Place {
        let place = link.append(&Message::<&Rope> {
            partition: 0,
            era: Epoch(1),
            body: Body::Compare { question: 0, path: Path::new() },
        });
        while link.try_take().is_some() {}
        place
    }

    fn acknowledge(link: &Link, place: Place) {
        assert_eq!(place.lane, Lane::Small);
        link.acknowledge(Acknowledged { small: place.position, large: 0 }).unwrap();
    }

    #[test]
    fn a_window_opens_with_acknowledgements_and_with_a_new_link() {
        let link = || Arc::new(Link::new(NodeId(7), Incarnation(1)));
        let (first, window) = (link(), Window::default());
        let (one, two) = (sent(&first), sent(&first));
        window.add(&first, one, WINDOW_BYTES - 1);
        assert!(window.has_room(&first), "a byte is left");
        window.add(&first, two, WINDOW_BYTES);
        assert!(!window.has_room(&first));
        acknowledge(&first, one);
        assert!(!window.has_room(&first));
        acknowledge(&first, two);
        assert!(window.has_room(&first));
        window.add(&first, sent(&first), WINDOW_BYTES);
        assert!(!window.has_room(&first));
        assert!(window.has_room(&link()), "what an earlier link carried is gone");
    }
}
