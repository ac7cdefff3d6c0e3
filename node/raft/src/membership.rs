//! Who votes and who follows.
//!
//! For: changing it one node at a time, in an order that is safe at each step.
//! Not here: who should vote (`cluster::membership` decides).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use korum_protocol::id::NodeId;
use korum_protocol::map::Refusal;
use openraft::error::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::{BasicNode, ChangeMembers, LogIdOptionExt};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, timeout_at};

use super::consensus::Consensus;
use super::types::{Metrics, Raft};
use super::{ProposeError, Voters};

/// Longest time for one step (two entries to agree on), or for a learner to catch up.
const STEP_WAIT: Duration = Duration::from_secs(5);
/// A learner this many entries behind is as good as caught up: one message brings the rest.
const NEAR_ENTRIES: u64 = 16;

type Change = ChangeMembers<u64, BasicNode>;

impl Consensus {
    /// Who votes and who follows, as known here.
    #[must_use]
    pub fn voters(&self) -> Voters {
        voters(&self.metrics.borrow())
    }

    /// Makes a node a learner, known under this address; does not wait until it has caught up.
    /// A node that is known already keeps its role.
    ///
    /// # Errors
    /// See [`ProposeError`]; may be repeated after each of them.
    pub async fn add_learner(&self, node: NodeId, address: String) -> Result<(), ProposeError> {
        let turn = self.turn().await?;
        let (raft, metrics) = (self.raft.clone(), self.metrics.clone());
        self.run(async move {
            let _turn = turn;
            let known = metrics.borrow().membership_config.membership().get_node(&node.0).cloned();
            let node_at = BTreeMap::from([(node.0, BasicNode { addr: address.clone() })]);
            match known {
                None => change(&raft, ChangeMembers::AddNodes(node_at)).await,
                Some(known) if known.addr != address => change(&raft, ChangeMembers::SetNodes(node_at)).await,
                Some(_) => Ok(()),
            }
        })
        .await
    }

    /// Makes exactly these nodes the voters: adds one after the other, each after it has caught up,
    /// then takes away one after the other, this node last. They remain learners.
    ///
    /// # Errors
    /// See [`ProposeError`]. Steps before the one that failed stay done; the call may be repeated.
    pub async fn set_voters(&self, goal: BTreeSet<NodeId>) -> Result<(), ProposeError> {
        if goal.is_empty() {
            return Err(Refusal::Forbidden("a cluster needs a voter".into()).into());
        }
        let turn = self.turn().await?;
        let (raft, me) = (self.raft.clone(), self.me);
        self.run(async move {
            let _turn = turn;
            let goal = goal.into_iter().map(|node| node.0).collect();
            set_voters(&raft, me.0, &goal).await
        })
        .await
    }

    /// Takes a node out: a voter stops being one first.
    ///
    /// # Errors
    /// See [`ProposeError`]; may be repeated after each of them. The last voter is refused.
    pub async fn remove(&self, node: NodeId) -> Result<(), ProposeError> {
        let turn = self.turn().await?;
        let (raft, metrics) = (self.raft.clone(), self.metrics.clone());
        self.run(async move {
            let _turn = turn;
            let found = voters(&metrics.borrow());
            if found.voters.contains(&node) {
                settle(&raft).await?;
                change(&raft, ChangeMembers::RemoveVoters(BTreeSet::from([node.0]))).await?;
            }
            if found.voters.contains(&node) || found.learners.contains(&node) {
                change(&raft, ChangeMembers::RemoveNodes(BTreeSet::from([node.0]))).await?;
            }
            Ok(())
        })
        .await
    }

    /// The right to change members, for one at a time; openraft cannot take two.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, ProposeError> {
        self.must_lead()?;
        let permits = self.membership_change.clone();
        self.run(async move {
            match timeout_at(Instant::now() + STEP_WAIT, permits.acquire_owned()).await {
                Ok(Ok(turn)) => Ok(turn),
                _ => Err(ProposeError::Busy("another change of voters is in progress".into())),
            }
        })
        .await
    }
}

fn voters(metrics: &Metrics) -> Voters {
    let membership = metrics.membership_config.membership();
    Voters {
        voters: membership.voter_ids().map(NodeId).collect(),
        learners: membership.learner_ids().map(NodeId).collect(),
    }
}

async fn set_voters(raft: &Raft, me: u64, goal: &BTreeSet<u64>) -> Result<(), ProposeError> {
    settle(raft).await?;
    let (present, known): (BTreeSet<u64>, BTreeSet<u64>) = {
        let metrics = raft.metrics();
        let metrics = metrics.borrow();
        let membership = metrics.membership_config.membership();
        (membership.voter_ids().collect(), membership.nodes().map(|(id, _)| *id).collect())
    };
    if let Some(stranger) = goal.difference(&known).next() {
        let text = format!("node {} does not follow yet: add it as a learner first", NodeId(*stranger));
        return Err(Refusal::Forbidden(text).into());
    }
    for node in goal.difference(&present) {
        caught_up(raft.metrics(), *node).await?;
        change(raft, ChangeMembers::AddVoterIds(BTreeSet::from([*node]))).await?;
    }
    let mut leaving: Vec<u64> = present.difference(goal).copied().collect();
    leaving.sort_by_key(|node| *node == me);
    for node in leaving {
        change(raft, ChangeMembers::RemoveVoters(BTreeSet::from([node]))).await?;
    }
    Ok(())
}

/// Ends a change of voters that an earlier leader left half done.
async fn settle(raft: &Raft) -> Result<(), ProposeError> {
    let half_done = raft.metrics().borrow().membership_config.membership().get_joint_config().len() > 1;
    if half_done { change(raft, ChangeMembers::AddVoterIds(BTreeSet::new())).await } else { Ok(()) }
}

/// Waits until a learner has nearly all that the leader has.
async fn caught_up(mut metrics: watch::Receiver<Metrics>, node: u64) -> Result<(), ProposeError> {
    let near = |metrics: &Metrics| {
        let matched = metrics.replication.as_ref().and_then(|all| all.get(&node)).and_then(|at| at.index());
        matched.is_some_and(|matched| matched + NEAR_ENTRIES >= metrics.last_log_index.unwrap_or(0))
    };
    let ready = metrics.wait_for(|metrics| metrics.replication.is_none() || near(metrics));
    match timeout_at(Instant::now() + STEP_WAIT, ready).await {
        Ok(Ok(metrics)) if metrics.replication.is_some() => Ok(()),
        Ok(Ok(metrics)) => Err(ProposeError::NotLeader { leader: metrics.current_leader.map(NodeId) }),
        Ok(Err(_)) => Err(ProposeError::NotLeader { leader: None }),
        Err(_) => Err(ProposeError::Busy(format!("node {} has not caught up", NodeId(node)))),
    }
}

async fn change(raft: &Raft, members: Change) -> Result<(), ProposeError> {
    const KEEP_AS_LEARNERS: bool = true;
    match timeout_at(Instant::now() + STEP_WAIT, raft.change_membership(members, KEEP_AS_LEARNERS)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(RaftError::APIError(ClientWriteError::ChangeMembershipError(error)))) => Err(match error {
            ChangeMembershipError::InProgress(error) => ProposeError::Busy(error.to_string()),
            ChangeMembershipError::EmptyMembership(error) => Refusal::Forbidden(error.to_string()).into(),
            ChangeMembershipError::LearnerNotFound(error) => Refusal::Forbidden(error.to_string()).into(),
        }),
        Ok(Err(error)) => Err(ProposeError::Unknown(error.to_string())),
        Err(_) => Err(ProposeError::Unknown(format!("no agreement on voters within {STEP_WAIT:?}"))),
    }
}
