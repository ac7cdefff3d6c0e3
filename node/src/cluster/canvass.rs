//! Who calls the election when the process of Raft's leader is gone?
//!
//! For: a new leader after one round of votes, instead of after Raft's timeouts.
//! Not here: the proof that it is gone (`probe`), the votes (Raft).
//!
//! openraft's voters refuse every candidate for the length of a leader's lease, unless they stand themselves; among
//! the candidates of one term the highest id wins; and one whose log is shorter, or who calls while another is being
//! elected, only disturbs. So the voters ask each other first. The one with the longest log, the highest id among
//! several, calls as soon as a quorum would vote for it. The others stand aside: they give up the old leader and ask
//! nobody for a vote. If that elects nobody, Raft's own timeouts do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use korum_protocol::id::{Incarnation, NodeId};
use korum_protocol::peer::message::{Ballot, ControlReply, ControlRequest};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::ask::exchange;
use super::shared::{Shared, lock};
use crate::net::peer::{PeerEvent, Trouble};

/// Longest time to ask one voter. One that is gone refuses at once.
const ASK: Duration = Duration::from_millis(50);
/// Between two rounds of questions while something is missing: what it takes to notice a broken connection, or to
/// write a vote.
const PAUSE: Duration = Duration::from_millis(4);
/// Time for a round of votes, longer after each: to call again undoes the votes of the round before.
const ROUND: Duration = Duration::from_millis(40);
/// Longest time for all of it: Raft has elected somebody long before.
const LIMIT: Duration = Duration::from_secs(3);

/// What a voter does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Nothing: others are still to find out, or to act.
    Wait,
    /// Gives up the old leader, so that it can vote.
    StandAside,
    /// Calls the election.
    Call,
}

/// Decides from what the voters say, `me` among them; `voters` is how many there are, the dead included.
fn decide(me: NodeId, voters: usize, ballots: &BTreeMap<NodeId, Ballot>) -> Step {
    let quorum = voters / 2 + 1;
    let agreeing = || ballots.iter().filter(|(_, ballot)| ballot.is_gone);
    let Some(mine) = ballots.get(&me).filter(|mine| mine.is_gone && agreeing().count() >= quorum) else {
        return Step::Wait;
    };
    let caller = agreeing().max_by_key(|(node, ballot)| (ballot.last, **node)).map(|(node, _)| *node);
    if caller != Some(me) {
        return if mine.is_free { Step::Wait } else { Step::StandAside };
    }
    let free = agreeing().filter(|(node, ballot)| **node != me && ballot.is_free).count();
    if free + 1 >= quorum { Step::Call } else { Step::Wait }
}

/// What this voter says about this run of the leader. One that has not noticed yet looks at once.
pub(super) fn answer(shared: &Shared, leader: NodeId, incarnation: Incarnation) -> Ballot {
    let is_linked = lock(&shared.leading).watch.is_linked(leader, incarnation);
    let is_proven = lock(&shared.evidence).holds(leader, incarnation, shared.clock.now());
    if !is_proven {
        shared.report(PeerEvent { node: leader, incarnation: Some(incarnation), trouble: Trouble::Refused });
    }
    Ballot {
        is_gone: is_proven && !is_linked,
        is_free: shared.consensus.is_free_of(leader),
        last: shared.consensus.last_entry(),
    }
}

/// This run of Raft's leader is gone: takes part in finding another, until there is one.
pub(super) async fn elect_instead_of(shared: Arc<Shared>, dead: NodeId, incarnation: Incarnation) {
    let mut leader = shared.consensus.leader();
    let end = shared.clock.now() + LIMIT;
    let (mut is_aside, mut calls) = (false, 0);
    while shared.clock.now() < end && lock(&shared.evidence).holds(dead, incarnation, shared.clock.now()) {
        let voters = shared.consensus.voters().voters;
        if !voters.contains(&shared.me()) {
            return;
        }
        let mut ballots =
            ask(&shared, voters.iter().copied().filter(|node| *node != dead), dead, incarnation).await;
        ballots.insert(shared.me(), answer(&shared, dead, incarnation));
        let is_settled = |leader: &Option<NodeId>| leader.is_some_and(|leader| leader != dead);
        if is_settled(&leader.borrow()) {
            return;
        }
        let pause = match decide(shared.me(), voters.len(), &ballots) {
            Step::StandAside if !is_aside => {
                shared.consensus.stand_aside();
                is_aside = true;
                PAUSE
            }
            Step::Wait | Step::StandAside => PAUSE,
            Step::Call => {
                shared.consensus.call_election();
                calls += 1;
                ROUND * calls
            }
        };
        // An error of the inside: Raft has ended.
        if timeout(pause, leader.wait_for(is_settled)).await.is_ok() {
            return;
        }
    }
}

/// The ballots of those who answer in time.
async fn ask(
    shared: &Arc<Shared>,
    voters: impl Iterator<Item = NodeId>,
    leader: NodeId,
    incarnation: Incarnation,
) -> BTreeMap<NodeId, Ballot> {
    let mut questions = JoinSet::new();
    for voter in voters.filter(|voter| *voter != shared.me()) {
        let Some(address) = shared.rpc.address_of(voter) else { continue };
        let shared = Arc::clone(shared);
        questions.spawn(async move {
            let request = ControlRequest::Canvass { leader, incarnation };
            match exchange(&shared, voter, &address, request, ASK).await {
                Ok(ControlReply::Ballot(ballot)) => Some((voter, ballot)),
                _ => None,
            }
        });
    }
    let mut ballots = BTreeMap::new();
    while let Some(answered) = questions.join_next().await {
        ballots.extend(answered.ok().flatten());
    }
    ballots
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ballots() -> impl Strategy<Value = BTreeMap<NodeId, Ballot>> {
        let ballot = (any::<bool>(), any::<bool>(), proptest::option::of((1u64..3, 0u64..3)))
            .prop_map(|(is_gone, is_free, last)| Ballot { is_gone, is_free, last });
        proptest::collection::btree_map((1u64..8).prop_map(NodeId), ballot, 1..8)
    }

    proptest! {
        #[test]
        fn who_sees_the_same_agrees_who_calls(ballots in ballots(), dead in 0usize..4) {
            let voters = ballots.len() + dead;
            let calling = ballots.keys().filter(|me| decide(**me, voters, &ballots) == Step::Call).count();
            prop_assert!(calling <= 1);
            let gone = ballots.values().filter(|ballot| ballot.is_gone).count();
            if 2 * gone <= voters {
                prop_assert!(ballots.keys().all(|me| decide(*me, voters, &ballots) == Step::Wait));
            }
        }

        #[test]
        fn a_quorum_that_agrees_comes_to_a_call(mut ballots in ballots(), dead in 0usize..4) {
            let voters = ballots.len() + dead;
            prop_assume!(2 * ballots.len() > voters);
            ballots.values_mut().for_each(|ballot| ballot.is_gone = true);
            let nodes: Vec<NodeId> = ballots.keys().copied().collect();
            for node in &nodes {
                if decide(*node, voters, &ballots) == Step::StandAside {
                    ballots.get_mut(node).unwrap().is_free = true;
                }
            }
            let longest = ballots.values().map(|ballot| ballot.last).max().unwrap();
            let calling: Vec<&NodeId> =
                nodes.iter().filter(|node| decide(**node, voters, &ballots) == Step::Call).collect();
            prop_assert_eq!(calling.len(), 1);
            prop_assert_eq!(ballots[calling[0]].last, longest);
        }
    }
}
