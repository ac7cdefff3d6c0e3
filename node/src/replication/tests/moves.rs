//! The rebalancer: copies that catch up, cutovers that are proposed, copies that are dropped.

use std::sync::Arc;

use korum_protocol::id::Epoch;
use korum_protocol::map::{MapChange, Move, Refusal};
use rand::RngExt;

use super::world::{Book, PARTITION, Proposal, Proposing, Sim, count, id};
use crate::rebalance::plan;
use crate::replication::primary::{Offer, Offered, PeerCopy, Settlement, Waits};
use crate::replication::transition::LinkBook;
use crate::store::{Partition, Role};

impl Sim {
    /// The rebalancer's look.
    pub(super) fn look(&mut self, at: usize) {
        if self.leased_run(at).is_none() {
            return;
        }
        let (chunk_bytes, at_once) = (self.chunk_bytes, [1, 4, 16][self.random.random_range(0..3)]);
        let view = Arc::clone(&self.views[self.nodes[at].routed]);
        let tasks: Vec<_> =
            plan::tasks(&view, id(at)).into_iter().filter(|it| it.partition == PARTITION).collect();
        let book = Book(&self.wires, at);
        let node = &mut self.nodes[at];
        let partition = &mut node.partition;
        let Partition { role: Role::Primary(primary), history, keyspace, .. } = partition else { return };
        if view.row(PARTITION).primary != Some(id(at)) || primary.era != view.row(PARTITION).era {
            return;
        }
        for task in &tasks {
            let is_known = primary.copies.iter().any(|copy| copy.node == task.target);
            if !is_known && book.link(task.target, task.incarnation).is_some() {
                primary.copies.push(PeerCopy::new(task.target, task.incarnation, false));
            }
        }
        let (era, mut ready, mut streamed) = (primary.era, Vec::<&plan::Task>::new(), Vec::new());
        for copy in &mut primary.copies {
            if copy.link().is_some_and(|link| link.is_broken()) {
                copy.unlink();
            }
            if copy.link().is_none()
                && let Some(link) = book.link(copy.node, copy.incarnation)
            {
                copy.connect(PARTITION, era, history, &link);
            }
            let is_ready = |task: &&plan::Task| {
                task.target == copy.node
                    && (copy.is_complete()
                        || task.already_holds
                        || copy.proposed == Some(task.membership_epoch))
            };
            ready.extend(tasks.iter().find(is_ready));
            if copy.is_catching_up() {
                streamed.push(copy.node);
            }
        }
        for target in streamed {
            for _ in 0..at_once {
                let sent = primary.catch_up(PARTITION, history, keyspace, target, chunk_bytes);
                count(&mut self.sent, sent);
            }
        }
        if ready.is_empty() || node.proposing.is_some() {
            return;
        }
        let membership_epoch = view.map.membership_epoch;
        let (mut fresh, mut open, mut waits, mut is_settled) =
            (Vec::new(), Vec::new(), Waits::default(), true);
        for task in ready {
            let offer = Offer { already_holds: task.already_holds, ends_my_primacy: task.ends_my_primacy };
            match primary.offer(task.target, membership_epoch, offer) {
                Offered::No => {}
                Offered::First => {
                    is_settled &= primary.settlement(&mut waits) != Settlement::Agreement;
                    fresh.push(task.as_move());
                }
                Offered::Again => open.push(task.as_move()),
            }
        }
        let stage = Proposal::Settling;
        node.proposing = Some(Proposing { membership_epoch, fresh, open, waits, is_settled, stage });
    }

    /// One step of a node's proposal.
    pub(super) fn propose(&mut self, at: usize) {
        let has_timed_out = self.chance(4);
        let node = &mut self.nodes[at];
        let Some(mut proposing) = node.proposing.take() else { return };
        match proposing.stage {
            Proposal::Settling => {
                let is_done = proposing.is_settled && proposing.waits.are_acknowledged();
                if !is_done && proposing.is_settled && !has_timed_out {
                    node.proposing = Some(proposing);
                    return;
                }
                if !is_done {
                    let fresh = std::mem::take(&mut proposing.fresh);
                    self.withdraw(at, &fresh, proposing.membership_epoch);
                }
                proposing.fresh.append(&mut proposing.open);
                if proposing.fresh.is_empty() {
                    return;
                }
                let membership_epoch = proposing.membership_epoch;
                let change = MapChange::Cutover { membership_epoch, moves: proposing.fresh.clone() };
                self.proposals += 1;
                self.in_flight.insert(self.proposals, (Some(at), change));
                proposing.stage = Proposal::Submitted(self.proposals);
                self.nodes[at].proposing = Some(proposing);
            }
            Proposal::Submitted(number) => {
                if has_timed_out {
                    // The outcome stays open; the change may still reach the log.
                    if let Some((waiting, _)) = self.in_flight.get_mut(&number) {
                        *waiting = None;
                    }
                } else {
                    node.proposing = Some(proposing);
                }
            }
            Proposal::Decided(epoch) => {
                if self.views[node.routed].map.epoch >= epoch {
                    let moves = std::mem::take(&mut proposing.fresh);
                    self.withdraw(at, &moves, proposing.membership_epoch);
                } else {
                    node.proposing = Some(proposing);
                }
            }
        }
    }

    pub(super) fn withdraw(&mut self, at: usize, moves: &[Move], membership_epoch: Epoch) {
        for entry in moves {
            let primary = self.nodes[at].partition.as_primary_mut();
            if let Some(primary) = primary.filter(|primary| primary.era == entry.era) {
                primary.withdraw(entry.node, membership_epoch);
            }
        }
    }

    /// A change reaches the log, or is lost on the way.
    pub(super) fn log(&mut self) {
        let Some(nth) = self.in_flight.len().checked_sub(1) else { return };
        let nth = self.random.random_range(0..=nth);
        let number = *self.in_flight.keys().nth(nth).unwrap();
        let (waiting, change) = self.in_flight.remove(&number).unwrap();
        if waiting.is_none() && self.chance(2) {
            return;
        }
        if matches!(change, MapChange::DropHolders { .. }) && self.would_end_the_last(&change) {
            return; // that would be the loss of all copies, after which nothing is promised
        }
        let outcome = match self.commit(&change) {
            Ok(epoch) => {
                self.cutovers += usize::from(matches!(change, MapChange::Cutover { .. }));
                epoch
            }
            Err(Refusal::Outdated { at, .. }) => at,
            Err(other) => panic!("{change:?}: {other}"),
        };
        if let Some(at) = waiting
            && let Some(proposing) = &mut self.nodes[at].proposing
            && matches!(proposing.stage, Proposal::Submitted(mine) if mine == number)
        {
            proposing.stage = Proposal::Decided(outcome);
        }
    }

    pub(super) fn drop_lagging(&mut self, at: usize) {
        if self.leased_run(at).is_none() {
            return;
        }
        let Some(primary) = self.nodes[at].partition.as_primary() else { return };
        let lags = |copy: &&PeerCopy| copy.is_required && copy.proposed.is_none() && !copy.is_acknowledged();
        let Some(copy) = primary.copies.iter().find(lags) else { return };
        let entry =
            Move { partition: PARTITION, era: primary.era, node: copy.node, incarnation: copy.incarnation };
        self.proposals += 1;
        self.in_flight.insert(self.proposals, (None, MapChange::DropHolders { drops: vec![entry] }));
    }
}
