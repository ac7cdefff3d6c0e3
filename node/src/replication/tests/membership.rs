//! Nodes that die, are marked down, come back and get leases.

use std::sync::Arc;

use korum_protocol::id::NodeId;
use korum_protocol::map::{MapChange, View};
use rand::RngExt;

use super::world::{Book, NODES, PARTITION, Sim, empty_partition, id};
use crate::command::test_maps;
use crate::replication::transition::{Me, transition};

impl Sim {
    pub(super) fn would_end_the_last(&self, change: &MapChange) -> bool {
        self.latest().apply(change).is_ok_and(|next| self.living_holders(&next, NODES) == 0)
    }

    pub(super) fn living_holders_beside(&self, at: usize) -> usize {
        self.living_holders(self.latest(), at)
    }

    pub(super) fn living_holders(&self, view: &View, at: usize) -> usize {
        let lives = |holder: &&NodeId| {
            let node = &self.nodes[holder.0 as usize - 1];
            **holder != id(at) && node.is_alive && node.run == view.map.nodes[*holder].incarnation
        };
        view.row(PARTITION).holders.iter().filter(lives).count()
    }

    /// The membership changes: a node is marked down (if its data is elsewhere too), comes back, is excluded,
    /// or gets another weight.
    pub(super) fn change_membership(&mut self) {
        let at = self.any_node();
        let record = self.latest().map.nodes[&id(at)].clone();
        let others = self.living_holders_beside(at);
        let change = match self.random.random_range(0..5) {
            0 | 1 if record.is_up() && others > 0 => {
                // Not before its lease has run out.
                self.nodes[at].leased = None;
                if self.chance(2) {
                    self.die(at);
                    if self.chance(2) {
                        return; // it may be back before anyone has missed it
                    }
                }
                MapChange::MarkDown { node: id(at), incarnation: record.incarnation }
            }
            2 if !record.is_up() => MapChange::Exclude { node: id(at), incarnation: record.incarnation },
            3 => MapChange::SetWeight { node: id(at), weight: self.random.random_range(1..4) },
            _ => return self.come_back(at),
        };
        let _ = self.commit(&change);
    }

    pub(super) fn die(&mut self, at: usize) {
        self.registering[at] = false;
        let node = &mut self.nodes[at];
        node.is_alive = false;
        node.proposing = None;
        node.leased = None;
        self.operations.retain(|operation| operation.node != at);
        for (waiting, _) in self.in_flight.values_mut() {
            *waiting = waiting.filter(|&waiting| waiting != at);
        }
        let lost: Vec<_> = self
            .wires
            .iter()
            .filter(|it| it.from == at || it.to == at)
            .map(|it| Arc::clone(&it.link))
            .collect();
        lost.iter().for_each(|link| self.close(link));
        // What a dead node sent may still arrive; what was sent to it may not.
        self.wires.retain(|wire| wire.to != at);
    }

    /// A run that was marked down begins a new one; a dead process starts again, with nothing but the map that it
    /// knew, and registers at once if nobody has missed it.
    pub(super) fn come_back(&mut self, at: usize) {
        let record = self.latest().map.nodes[&id(at)].clone();
        let others = self.living_holders_beside(at);
        if record.is_up() && (self.nodes[at].is_alive || others == 0) {
            return;
        }
        let node = &mut self.nodes[at];
        if !node.is_alive {
            node.run = node.run.max(record.incarnation).next();
            node.leased = None;
            node.partition = empty_partition(self.backlog_max);
            (node.adopted, node.is_alive) = (node.routed, true);
            let view = Arc::clone(&self.views[node.routed]);
            let me = Me { node: id(at), run: node.run };
            let book = Book(&self.wires, at);
            let _ = transition(&mut self.nodes[at].partition, PARTITION, me, &view, false, &book);
            self.registering[at] = true;
            return;
        }
        if !self.registering[at] {
            node.run = record.incarnation.next();
            node.leased = None;
            self.registering[at] = true;
        }
    }

    pub(super) fn register(&mut self, at: usize) {
        if !std::mem::take(&mut self.registering[at]) || !self.nodes[at].is_alive {
            return;
        }
        let record = self.latest().map.nodes[&id(at)].clone();
        let others = self.living_holders_beside(at);
        if others == 0 {
            self.registering[at] = true;
            return;
        }
        let registration = korum_protocol::map::Registration {
            incarnation: self.nodes[at].run,
            weight: record.weight,
            ..test_maps::registration(at as u16 + 1)
        };
        self.commit(&MapChange::Register { node: id(at), registration }).unwrap();
    }

    /// Heartbeats: every run that the log shows up gets a lease, whatever its own map shows.
    pub(super) fn grant(&mut self, at: usize) {
        let record = &self.latest().map.nodes[&id(at)];
        let granted = record.is_up().then_some(record.incarnation);
        let node = &mut self.nodes[at];
        if node.is_alive && granted == Some(node.run) {
            node.leased = Some(node.run);
        }
    }
}
