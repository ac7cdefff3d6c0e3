//! May what was executed here be answered?
//!
//! For: waiting until it is on every holder, and until the lease under which it was executed is known to hold.
//! Not here: what waits (`replication::waits`), what runs elsewhere (`remote`).

use super::batch::Batch;
use super::finish::LOOK_AGAIN;
use super::parts::{Failure, Operation};
use crate::env::Tick;
use crate::env::mistake::{Mistake, makes};
use crate::env::witness::{self, Answered};
use crate::node::Node;
use crate::replication::primary::{Settlement, Waits};
use crate::store::partition::Role;

impl Batch {
    /// Nothing to wait for: what was executed is on every holder, and the lease still holds.
    #[must_use]
    pub fn is_settled(&self, node: &Node) -> bool {
        let is_settled = self.waits.are_acknowledged() && self.run.is_some() && self.is_leased(node);
        if is_settled {
            self.tell(node);
        }
        is_settled
    }

    /// Waits for the acknowledgements of a batch that another node forwarded; what could not run here
    /// stays undone.
    pub async fn settle_forwarded(&mut self, node: &Node, deadline: Tick) {
        self.confirm(node);
        self.settle(node, deadline).await;
        self.hold_lease(node, deadline).await;
        self.tell(node);
    }

    /// Waits until what was executed here is on every holder.
    pub(super) async fn settle(&mut self, node: &Node, deadline: Tick) {
        if self.waits.is_empty() {
            return;
        }
        let left = deadline.since(node.clock().now());
        let waits = std::mem::take(&mut self.waits);
        if tokio::time::timeout(left, waits.all()).await == Ok(true) {
            return;
        }
        // A link broke or a copy is no longer asked for: what is missing now, partition by partition.
        for at in 0..self.operations.len() {
            self.settle_operation(node, at, &waits, deadline).await;
        }
    }

    /// `asked`: what the whole batch waited for when it was executed.
    async fn settle_operation(&mut self, node: &Node, at: usize, asked: &Waits, deadline: Tick) {
        loop {
            let operation = &self.operations[at];
            if !self.commands[operation.command].caller.is_strong {
                return;
            }
            let mut waits = Waits::default();
            let settlement = match &node.store().lock(operation.partition).role {
                Role::Primary(primary) if primary.era == operation.position.era => {
                    Some(primary.settlement(&mut waits))
                }
                Role::Primary(_) | Role::Replica { .. } | Role::Target { .. } | Role::Absent => None,
            };
            let left = deadline.since(node.clock().now());
            let Some(settlement) = settlement else {
                // Handed over, most likely: what all copies have that had to then, whoever is primary now has too.
                if tokio::time::timeout(left, asked.acknowledged()).await != Ok(true) {
                    self.fail_operation(at);
                }
                return;
            };
            if settlement == Settlement::Done {
                return;
            }
            if left.is_zero() {
                return self.fail_operation(at);
            }
            if settlement == Settlement::Acknowledgements {
                let _ = tokio::time::timeout(left, waits.all()).await;
            } else {
                node.changed_within(LOOK_AGAIN.min(left)).await;
            }
        }
    }

    /// To be called without a pause after operations were executed: was the lease still valid then?
    pub(super) fn confirm(&mut self, node: &Node) {
        self.is_confirmed |= self.is_leased(node);
    }

    /// The run that executed the batch may serve at this moment.
    fn is_leased(&self, node: &Node) -> bool {
        self.operations.is_empty() || node.leased_run() == self.executed_by
    }

    /// Waits until the lease under which the batch was executed is valid, as it nearly always is. A process that
    /// was stopped in between, perhaps for long, must not hand out what it read, and a write to an only copy may
    /// be on no copy any more.
    ///
    /// A lease that ran out and was granted again to the same run vouches for everything in between: nobody else
    /// can have served what this run is primary of without the run having been marked down. A lease of a later
    /// run says nothing about what an earlier one has executed.
    ///
    /// A node that leaves gave its lease back itself. What it had executed by then, under a lease that was valid
    /// afterwards, stands in front of whatever its successors execute, and is answered.
    pub(super) async fn hold_lease(&mut self, node: &Node, deadline: Tick) {
        while !self.is_leased(node) && !makes(Mistake::LeaseNotRechecked) {
            if node.is_leaving() && self.is_confirmed {
                return;
            }
            let may_return = self.executed_by.is_some_and(|run| node.may_be_leased_again(run));
            if !may_return || node.clock().now() >= deadline {
                return self.fail_operations();
            }
            node.changed_within(LOOK_AGAIN).await;
        }
    }

    pub(super) fn fail_operations(&mut self) {
        (0..self.operations.len()).for_each(|at| self.fail_operation(at));
    }

    fn fail_operation(&mut self, at: usize) {
        let operation = &self.operations[at];
        let failure = if operation.is_write { Failure::Unknown } else { Failure::Again };
        self.commands[operation.command].fail(failure);
    }

    /// Tells a simulation what is answered.
    pub(super) fn tell(&self, node: &Node) {
        witness::answers(|| {
            let is_leased = self.is_leased(node) || node.is_leaving() && self.is_confirmed;
            let is_answered = |it: &&Operation| {
                let command = &self.commands[it.command];
                command.failure.is_none() && command.caller.is_strong
            };
            self.operations.iter().filter(is_answered).map(move |it| Answered {
                node: node.id(),
                partition: it.partition,
                position: it.position,
                is_leased,
            })
        });
    }
}
