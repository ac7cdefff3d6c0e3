//! Maps on their way to the nodes, and connections that come and go with them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::world::{Book, LARGE, PARTITION, Sim, Wire, id};
use crate::replication::link::Link;
use crate::replication::message::Acknowledged;
use crate::replication::primary::PeerCopy;
use crate::replication::transition::{Me, transition};
use crate::store::{Partition, Role};

impl Sim {
    /// Takes the roles of a newer map; routing follows in a later step.
    pub(super) fn adopt(&mut self, at: usize) {
        let node = &self.nodes[at];
        if !node.is_alive || node.adopted != node.routed || node.adopted + 1 == self.views.len() {
            return;
        }
        let newest = self.views.len() - 1;
        let next = if self.chance(2) { self.nodes[at].adopted + 1 } else { newest };
        let node = &mut self.nodes[at];
        let (old, view) = (Arc::clone(&self.views[node.routed]), Arc::clone(&self.views[next]));
        node.adopted = next;
        let is_membership = view.map.membership_epoch != old.map.membership_epoch;
        let has_gap = is_membership && view.map.epoch != old.map.epoch.next();
        if is_membership || view.row(PARTITION) != old.row(PARTITION) {
            let me = Me { node: id(at), run: node.run };
            let _ = transition(&mut node.partition, PARTITION, me, &view, has_gap, &Book(&self.wires, at));
        }
    }

    pub(super) fn route(&mut self, at: usize) {
        self.nodes[at].routed = self.nodes[at].adopted;
        let view = Arc::clone(&self.views[self.nodes[at].routed]);
        let is_gone = |wire: &Wire| {
            let record = &view.map.nodes[&wire.link.peer];
            wire.from == at && (!record.is_up() || record.incarnation != wire.link.incarnation)
        };
        let gone: Vec<_> =
            self.wires.iter().filter(|wire| is_gone(wire)).map(|it| Arc::clone(&it.link)).collect();
        gone.iter().for_each(|link| self.close(link));
    }

    /// The dialing end gives a connection up. What it sent may still lie at the other end.
    pub(super) fn close(&mut self, link: &Arc<Link>) {
        link.break_off();
        for wire in self.wires.iter_mut().filter(|wire| Arc::ptr_eq(&wire.link, link)) {
            wire.answers.clear();
            if let Some(primary) = self.nodes[wire.from].partition.as_primary_mut() {
                let is_on =
                    |copy: &&mut PeerCopy| copy.link().is_some_and(|present| Arc::ptr_eq(present, link));
                primary.copies.iter_mut().filter(is_on).for_each(PeerCopy::unlink);
            }
        }
    }

    pub(super) fn open(&mut self, from: usize, to: usize) {
        let view = &self.views[self.nodes[from].routed];
        let record = &view.map.nodes[&id(to)];
        let is_present = self.wires.iter().any(|it| it.from == from && it.to == to && !it.link.is_broken());
        let fits = self.nodes[to].is_alive && self.nodes[to].run == record.incarnation && record.is_up();
        if from == to || !self.nodes[from].is_alive || is_present || !fits {
            return;
        }
        let link = Arc::new(Link::with_large_bytes(id(to), record.incarnation, LARGE));
        for wire in self.wires.iter_mut().filter(|wire| wire.from == from && wire.to == to) {
            wire.is_superseded = true;
        }
        self.wires.retain(|wire| !wire.is_superseded || !wire.link.is_broken());
        self.wires.push(Wire {
            from,
            to,
            link: Arc::clone(&link),
            frames: VecDeque::new(),
            cut: None,
            applied: Acknowledged::default(),
            answers: VecDeque::new(),
            is_superseded: false,
        });
        let partition = &mut self.nodes[from].partition;
        if let Partition { role: Role::Primary(primary), history, .. } = partition {
            let era = primary.era;
            for copy in &mut primary.copies {
                if copy.node == link.peer && copy.incarnation == link.incarnation {
                    copy.connect(PARTITION, era, history, &link);
                }
            }
        }
    }
}
