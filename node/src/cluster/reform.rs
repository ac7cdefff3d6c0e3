//! A quorum that is lost for good is re-formed from the survivors, because an operator says so.
//!
//! For: the survivor that is asked by its operator, and the survivors that follow it.
//! Not here: marking nodes down and choosing voters, which go on as ever (`liveness`, `membership`).
//!
//! ```text
//! who answers, and how far has each come?    only the survivor with the longest log may go on
//! all survivors take a new cluster id        from here on nobody of the old cluster is talked to
//! this node stands in for the lost voters    so it is elected, and what it proposes is agreed
//! the map names the new id                   who joins later takes it from there
//! the lost nodes are marked down, forgotten, and taken out of Raft, by the rules for any node
//! this node stands in for nobody
//! ```
//! Rules: no step is taken while this node has a lease or a majority of the voters answers. Leases that the lost nodes
//! may hold are waited for as after any election. What the lost nodes agreed and no survivor knows is lost.
//! Two survivors never do this at a time, since both would stand in for the same voters: each has its own turn before it asks
//! the others, and none that has its turn answers or follows another.
//! A step that fails leaves a cluster without a quorum, of which some survivors may have taken the new name: ask again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::{ClusterId, Epoch, NodeId};
use korum_protocol::map::apply::SETTING_FORMATION;
use korum_protocol::map::{MapChange, PartitionId, Refusal, Row, View};
use korum_protocol::peer::message::{ControlReply, ControlRequest};
use tokio::time::sleep;

use super::ask::exchange;
use super::identity::mint;
use super::meet::Turn;
use super::shared::{Shared, lock, peer_address};
use crate::executor::blocking;
use crate::net::peer::{DialError, RpcError};
use korum_raft::ProposeError;

/// Longest time for one node to answer.
const ASK: Duration = Duration::from_secs(1);
/// Longest time for all of it, from the first election on.
const LIMIT: Duration = Duration::from_secs(20);
/// Pause before the next step is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a node waits until another thing is over.
const BUSY: &str = "is busy with CLUSTER MEET or a re-forming of its own";

/// What became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reformed {
    /// Nodes that are not in the cluster any more.
    pub lost: Vec<NodeId>,
    /// Partitions that no survivor held: they begin empty, or are refused.
    pub emptied: usize,
    /// The epoch of the map without the lost nodes.
    pub epoch: Epoch,
}

/// Why it is not done. The texts say what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReformError {
    /// Nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// Begun and not ended: the cluster still has no quorum.
    #[error("{0}; ask again at this node")]
    Unfinished(String),
}

/// Who is there.
struct Survey {
    /// Survivors beside this node, and where they are reached.
    survivors: Vec<(NodeId, String)>,
    /// Nodes that do not answer.
    lost: BTreeSet<NodeId>,
}

/// This node stands in for others until this goes.
struct StandIn<'a>(&'a Shared);

impl Drop for StandIn<'_> {
    fn drop(&mut self) {
        self.0.consensus.stand_in_for(BTreeSet::new());
    }
}

/// Re-forms the quorum from this node and those that answer it.
pub(super) async fn reform(shared: Arc<Shared>) -> Result<Reformed, ReformError> {
    let busy = || ReformError::Refused(format!("this node {BUSY}"));
    let _turn = Turn::take(&shared).ok_or_else(busy)?;
    let view = shared.view().ok_or_else(|| ReformError::Refused("this node knows no map yet".into()))?;
    let Survey { survivors, lost } = survey(&shared, &view).await?;
    let begun = view.map.epoch;
    let formation = ClusterId(mint());
    tracing::warn!(?lost, formation = %format_args!("{:016x}", formation.0), "an operator re-forms the quorum");
    for (node, address) in &survivors {
        let request = ControlRequest::ReformFollow { formation };
        match exchange(&shared, *node, address, request, ASK).await {
            Ok(ControlReply::Noted) => {}
            Ok(other) => {
                return Err(ReformError::Unfinished(format!("node {node} does not follow: {other:?}")));
            }
            Err(error) => {
                return Err(ReformError::Unfinished(format!("node {node} does not follow: {error}")));
            }
        }
    }
    take_formation(&shared, formation).await.map_err(ReformError::Unfinished)?;
    shared.consensus.stand_in_for(lost.clone());
    let _stand_in = StandIn(&shared);
    let end = shared.clock.now() + LIMIT;
    let mut last = "no election was won".to_owned();
    while shared.clock.now() < end {
        match step(&shared, formation, &lost).await {
            Ok(Some(view)) => {
                let is_empty = |(partition, row): &(usize, &Row)| {
                    let emptied = view.map.emptied.get(&(*partition as PartitionId));
                    row.primary.is_none() || emptied.is_some_and(|epoch| *epoch > begun)
                };
                let emptied = view.table.rows.iter().enumerate().filter(is_empty).count();
                let lost = lost.into_iter().collect();
                return Ok(Reformed { lost, emptied, epoch: view.map.epoch });
            }
            Ok(None) => {}
            Err(error) => last = error.to_string(),
        }
        sleep(PAUSE).await;
    }
    Err(ReformError::Unfinished(format!("not done within {LIMIT:?}: {last}")))
}

/// Asks every node that may belong to the quorum, and refuses what must not or need not be.
async fn survey(shared: &Shared, view: &View) -> Result<Survey, ReformError> {
    let refuse = |why: String| Err(ReformError::Refused(why));
    if shared.lease.is_valid(shared.clock.now()) {
        return refuse("the cluster has a quorum: there is nothing to re-form".into());
    }
    let raft = shared.consensus.voters();
    if !raft.voters.contains(&shared.me()) {
        let voters: Vec<String> = raft.voters.iter().map(ToString::to_string).collect();
        return refuse(format!("this node does not vote; ask at one of {}", voters.join(", ")));
    }
    let mine = shared.consensus.last_entry();
    let mut survey = Survey { survivors: Vec::new(), lost: BTreeSet::new() };
    let nodes: BTreeSet<NodeId> =
        raft.voters.union(&raft.learners).chain(view.map.nodes.keys()).copied().collect();
    for node in nodes.into_iter().filter(|node| *node != shared.me()) {
        let known = view.map.nodes.get(&node).map(|record| peer_address(&record.addresses));
        let Some(address) = shared.rpc.address_of(node).or(known) else {
            survey.lost.insert(node);
            continue;
        };
        shared.rpc.revive(node);
        match exchange(shared, node, &address, ControlRequest::ReformAsk, ASK).await {
            Ok(ControlReply::ReformStanding { is_leased: true, .. }) => {
                return refuse(format!(
                    "node {node} has a lease: the cluster has a quorum, and this node is cut off"
                ));
            }
            Ok(ControlReply::ReformStanding { last, .. }) if last > mine => {
                return refuse(format!("node {node} knows more than this one: ask there"));
            }
            Ok(ControlReply::ReformStanding { .. }) => survey.survivors.push((node, address)),
            Ok(ControlReply::Refused(why)) => {
                return refuse(format!("node {node} does not take part: {why}"));
            }
            Ok(other) => return refuse(format!("node {node} answers what does not belong there: {other:?}")),
            Err(error) if error.is_unknown() => {
                return refuse(format!(
                    "node {node} took the question and did not answer it ({error}): end it first"
                ));
            }
            Err(RpcError::Dial { source, .. }) if !is_gone(&source) => {
                return refuse(format!(
                    "node {node} is there and does not take part ({source}): end it first"
                ));
            }
            Err(_) => drop(survey.lost.insert(node)),
        }
    }
    let there = raft.voters.iter().filter(|voter| !survey.lost.contains(voter)).count();
    if 2 * there > raft.voters.len() {
        let of = raft.voters.len();
        return refuse(format!("{there} of {of} voters are there: they agree without help"));
    }
    Ok(survey)
}

/// Is this what is found where a node is lost? Anything else was said by a living one.
fn is_gone(error: &DialError) -> bool {
    match error {
        DialError::Refused
        | DialError::Timeout
        | DialError::Unreachable(_)
        | DialError::WrongPeer { .. }
        | DialError::Protocol(_) => true,
        DialError::WrongCluster | DialError::Unauthorized | DialError::Rejected(_) => false,
    }
}

/// The next step; the view that it led to when nothing is left to do.
async fn step(
    shared: &Shared,
    formation: ClusterId,
    lost: &BTreeSet<NodeId>,
) -> Result<Option<Arc<View>>, ProposeError> {
    if !shared.leads() {
        shared.consensus.call_election();
        return Ok(None);
    }
    let Some(view) = shared.view() else { return Ok(None) };
    if view.map.formation() != formation {
        let change = MapChange::Set {
            name: SETTING_FORMATION.to_owned(),
            value: Some(format!("{:016x}", formation.0)),
        };
        shared.consensus.propose(change).await?;
        return Ok(None);
    }
    let Some((&node, record)) = view.map.nodes.iter().find(|(node, _)| lost.contains(node)) else {
        let raft = shared.consensus.voters();
        let is_over = raft.voters.union(&raft.learners).all(|node| !lost.contains(node))
            && !lock(&shared.leading).stepping;
        return Ok(is_over.then_some(view));
    };
    // Who is up is marked down as soon as no lease of its can be valid (`liveness`).
    if !record.is_up() {
        match shared.consensus.propose(MapChange::Forget { node }).await {
            Err(ProposeError::Refused(Refusal::Outdated { .. })) | Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Another survivor asks how this node stands.
pub(super) fn standing(shared: &Shared) -> ControlReply {
    if Turn::is_taken(shared) {
        return ControlReply::Refused(Refusal::Forbidden(BUSY.into()));
    }
    let is_leased = shared.lease.is_valid(shared.clock.now());
    ControlReply::ReformStanding { last: shared.consensus.last_entry(), is_leased }
}

/// Another survivor re-forms the quorum, with this node.
pub(super) async fn follow(shared: &Arc<Shared>, from: NodeId, formation: ClusterId) -> ControlReply {
    let refuse = |why: String| ControlReply::Refused(Refusal::Forbidden(why));
    let Some(_turn) = Turn::take(shared) else { return refuse(BUSY.into()) };
    if shared.lease.is_valid(shared.clock.now()) {
        return refuse("the cluster has a quorum".into());
    }
    let is_member = shared.view().is_some_and(|view| view.map.nodes.contains_key(&from));
    if !is_member || formation.0 == 0 {
        return refuse("only a member may re-form the quorum, under a name that is not 0".into());
    }
    tracing::warn!(?from, formation = %format_args!("{:016x}", formation.0), "follows a quorum that is re-formed");
    match take_formation(shared, formation).await {
        Ok(()) => ControlReply::Noted,
        Err(why) => refuse(why),
    }
}

/// From now on this node talks to members of that formation only; durable on return.
async fn take_formation(shared: &Arc<Shared>, formation: ClusterId) -> Result<(), String> {
    let on_disk = Arc::clone(shared);
    let saved = blocking(move || {
        lock(&on_disk.identity).as_mut().map_or(Ok(()), |identity| identity.set_cluster_id(formation))
    });
    match saved.await {
        Ok(Ok(())) => {
            shared.local.take_formation(formation);
            // What is open to nodes of the former name is not used again.
            shared.rpc.close();
        }
        Ok(Err(error)) => return Err(format!("the data directory cannot be written: {error}")),
        Err(error) => return Err(error.to_string()),
    }
    Ok(())
}
