//! The facade: what the rest of the node may ask of Raft.
//!
//! For: proposing, hearing, proving leadership, answering other nodes. Callable from any runtime.
//! Not here: how Raft is put together (`start`), who votes (`membership`).
//! Rule: being leader is a hint; an applied change, or [`Consensus::confirm_leadership`], is authority.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::id::{Epoch, NodeId};
use korum_protocol::map::{MapChange, Refusal, View};
use korum_protocol::peer::wire;
use openraft::error::{CheckIsLeaderError, RaftError};
use openraft::{BasicNode, LogIdOptionExt};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::log_store::LogReader;
use super::message::{Reply, Request, decode, encode};
use super::network::{SilentTerm, StandIns};
use super::start::{Running, start};
use super::types::{Metrics, Raft};
use super::{Options, ProposeError, RaftTransport};

/// Longest time a proposal waits for its outcome.
const PROPOSAL_WAIT: Duration = Duration::from_secs(2);
/// Longest time of that until it is in Raft's hands; one that gets no turn by then is not done.
const TURN_WAIT: Duration = Duration::from_secs(1);
/// Proposals inside Raft at once. openraft 0.9 takes one message at a time; floods make it lose elections.
const IN_FLIGHT_MAX: usize = 32;
/// Proposals in flight or waiting for their turn.
const PROPOSALS_MAX: usize = 1024;
/// Entries that a leader may hold without agreement: one that lost its quorum must not fill its log.
const UNAGREED_MAX: u64 = 512;
/// Largest change, bytes: an entry must fit in a message and a record with room to spare.
const CHANGE_BYTES_MAX: usize = 1 << 20;
/// Longest time a proof of leadership may take. One try takes a round trip, at most a heartbeat interval.
const CONFIRM_WAIT: Duration = Duration::from_millis(500);
/// Pause between two tries of a proof.
const CONFIRM_PAUSE: Duration = Duration::from_millis(5);
/// Longest time for creating a cluster of one node.
const CREATE_WAIT: Duration = Duration::from_secs(10);
/// Requests of other nodes that are worked on at once.
const REQUESTS_MAX: usize = 256;
/// Longest time for one of them: a snapshot's `fsync` included.
const REQUEST_WAIT: Duration = Duration::from_secs(5);

/// This node's part of the agreement. Lives on its own thread; dropping it ends that thread.
pub struct Consensus {
    pub(super) me: NodeId,
    pub(super) raft: Raft,
    runtime: tokio::runtime::Handle,
    views: watch::Receiver<Option<Arc<View>>>,
    leader: watch::Receiver<Option<NodeId>>,
    pub(super) metrics: watch::Receiver<Metrics>,
    stand_ins: StandIns,
    silent: SilentTerm,
    log: LogReader,
    pristine: bool,
    proposals: Arc<Semaphore>,
    in_flight: Arc<Semaphore>,
    requests: Arc<Semaphore>,
    /// One change of voters or learners at a time.
    pub(super) membership_change: Arc<Semaphore>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
    stopped: watch::Receiver<bool>,
}

impl Consensus {
    /// Opens what an earlier run left in the directory, or starts with nothing, and runs Raft.
    ///
    /// # Errors
    /// When the directory cannot be read or written, or holds what this build cannot use safely.
    pub async fn open(options: Options, transport: Arc<dyn RaftTransport>) -> io::Result<Arc<Self>> {
        let me = options.me;
        let Running { raft, runtime, views, leader, stand_ins, silent, log, pristine, stop, stopped } =
            start(options, transport).await?;
        Ok(Arc::new(Self {
            me,
            metrics: raft.metrics(),
            raft,
            runtime,
            views,
            leader,
            stand_ins,
            silent,
            log,
            pristine,
            proposals: Arc::new(Semaphore::new(PROPOSALS_MAX)),
            in_flight: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
            membership_change: Arc::new(Semaphore::new(1)),
            stop: Mutex::new(Some(stop)),
            stopped,
        }))
    }

    /// Never had a log: neither created nor joined, and no other node ever asked it to vote or follow.
    #[must_use]
    pub fn is_pristine(&self) -> bool {
        let metrics = self.metrics.borrow();
        self.pristine && metrics.last_log_index.is_none() && metrics.vote == openraft::Vote::default()
    }

    /// Starts a cluster of this node alone with `first` as its first change, and gives the epoch after it.
    /// May be called again, also after a crash in between: what is done already is not done twice.
    ///
    /// # Errors
    /// [`ProposeError::Refused`] when this node belongs to another cluster, or `first` does not create one.
    pub async fn create(&self, address: String, first: MapChange) -> Result<Epoch, ProposeError> {
        let deadline = Instant::now() + CREATE_WAIT;
        let (raft, me) = (self.raft.clone(), self.me);
        self.run(async move {
            match timeout_at(deadline, elect_alone(&raft, me, address)).await {
                Ok(result) => result,
                Err(_) => Err(ProposeError::Unknown("this node did not elect itself in time".into())),
            }
        })
        .await?;
        self.confirm_leadership().await?;
        let view = self.views.borrow().clone();
        match (view, &first) {
            (None, _) => self.propose(first).await,
            (Some(view), MapChange::Create { cluster_id, .. }) if view.map.cluster_id == *cluster_id => {
                Ok(view.map.epoch)
            }
            (Some(_), _) => Err(belongs()),
        }
    }

    /// Proposes a change and waits until it is applied here; gives the epoch after it.
    /// Safe to drop, but the change may be agreed all the same.
    ///
    /// # Errors
    /// See [`ProposeError`]. Only [`ProposeError::Unknown`] leaves it open whether the change happens.
    pub async fn propose(&self, change: MapChange) -> Result<Epoch, ProposeError> {
        if wire::encode(&change).len() > CHANGE_BYTES_MAX {
            let text = format!("a change of more than {CHANGE_BYTES_MAX} bytes: split it");
            return Err(Refusal::Forbidden(text).into());
        }
        self.must_lead()?;
        let Ok(place) = self.proposals.clone().try_acquire_owned() else {
            return Err(ProposeError::Busy("too many proposals wait".into()));
        };
        let (turn_by, deadline) = (Instant::now() + TURN_WAIT, Instant::now() + PROPOSAL_WAIT);
        let (raft, in_flight, metrics) = (self.raft.clone(), self.in_flight.clone(), self.metrics.clone());
        self.run(async move {
            let _place = place;
            let Ok(Ok(_turn)) = timeout_at(turn_by, in_flight.acquire_owned()).await else {
                return Err(ProposeError::Busy("too many proposals are in flight".into()));
            };
            if unagreed(&metrics.borrow()) > UNAGREED_MAX {
                return Err(ProposeError::Busy("no quorum answers".into()));
            }
            match timeout_at(deadline, raft.client_write(change)).await {
                Ok(Ok(response)) => Ok(response.data?),
                // Also when Raft says that another node leads: the entry may stand in logs already,
                // and can be agreed under a later leader although it was removed from ours.
                Ok(Err(error)) => Err(ProposeError::Unknown(error.to_string())),
                Err(_) => Err(ProposeError::Unknown(format!("no agreement within {PROPOSAL_WAIT:?}"))),
            }
        })
        .await
    }

    /// The latest agreed map that this node applied, and each one after it. `None` before there is one.
    #[must_use]
    pub fn views(&self) -> watch::Receiver<Option<Arc<View>>> {
        self.views.clone()
    }

    /// Who leads, as known here: a hint.
    #[must_use]
    pub fn leader(&self) -> watch::Receiver<Option<NodeId>> {
        self.leader.clone()
    }

    /// Raft's term, as known here.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.metrics.borrow().current_term
    }

    /// Proves that this node led, with a quorum behind it, at some moment after this call began,
    /// and has applied everything that was agreed before that moment.
    ///
    /// # Errors
    /// [`ProposeError::NotLeader`] when another node leads, [`ProposeError::Unknown`] when no quorum answers.
    pub async fn confirm_leadership(&self) -> Result<(), ProposeError> {
        self.must_lead()?;
        let deadline = Instant::now() + CONFIRM_WAIT;
        let raft = self.raft.clone();
        self.run(async move {
            loop {
                match timeout_at(deadline, raft.ensure_linearizable()).await {
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(RaftError::APIError(CheckIsLeaderError::QuorumNotEnough(error)))) => {
                        if Instant::now() + CONFIRM_PAUSE >= deadline {
                            return Err(ProposeError::Unknown(error.to_string()));
                        }
                        sleep(CONFIRM_PAUSE).await;
                    }
                    Ok(Err(RaftError::APIError(CheckIsLeaderError::ForwardToLeader(forward)))) => {
                        return Err(ProposeError::NotLeader { leader: forward.leader_id.map(NodeId) });
                    }
                    Ok(Err(RaftError::Fatal(error))) => return Err(ProposeError::Unknown(error.to_string())),
                    Err(_) => {
                        return Err(ProposeError::Unknown(format!("no quorum within {CONFIRM_WAIT:?}")));
                    }
                }
            }
        })
        .await
    }

    /// Answers a request of another node's Raft. What is not one gets an error as its reply.
    pub async fn handle(&self, request: Bytes) -> Bytes {
        let reply = self.reply(&request).await.unwrap_or_else(Reply::Failed);
        encode(&reply)
    }

    async fn reply(&self, request: &[u8]) -> Result<Reply, String> {
        let request: Request = decode(request)?;
        request.check()?;
        let place = self.requests.clone().try_acquire_owned().map_err(|_| "too many requests".to_owned())?;
        let raft = self.raft.clone();
        let work = self.runtime.spawn(async move {
            let _place = place;
            match timeout(REQUEST_WAIT, answer(&raft, request)).await {
                Ok(reply) => reply,
                Err(_) => Err(format!("no answer within {REQUEST_WAIT:?}")),
            }
        });
        work.await.map_err(|_| "this node is shutting down".to_owned())?
    }

    /// Campaigns now, if this node is a voter and not the leader.
    pub fn call_election(&self) {
        let raft = self.raft.clone();
        self.runtime.spawn(async move { raft.trigger().elect().await });
    }

    /// Gives up the present leader without asking for votes: openraft's voters refuse every candidate for the length of
    /// a leader's lease, unless they stand themselves. If the term changes at this moment, the votes are asked for.
    pub fn stand_aside(&self) {
        self.silent.store(self.term() + 1, Ordering::Relaxed);
        self.call_election();
    }

    /// Would this node vote for another candidate now? Not while it believes in `leader`.
    #[must_use]
    pub fn is_free_of(&self, leader: NodeId) -> bool {
        let vote = self.metrics.borrow().vote;
        !(vote.committed && vote.leader_id.node_id == leader.0)
    }

    /// From now on this node answers itself what it would ask these voters, and agrees: for re-forming a quorum that is
    /// lost for good, and for nothing else, since two nodes that did this would both be elected.
    pub fn stand_in_for(&self, nodes: BTreeSet<NodeId>) {
        *self.stand_ins.lock().unwrap_or_else(PoisonError::into_inner) = nodes;
    }

    /// Term and index of the last entry in the log; `None` if there is none.
    #[must_use]
    pub fn last_entry(&self) -> Option<(u64, u64)> {
        self.log.last().map(|last| (last.leader_id.term, last.index))
    }

    /// Waits until Raft has stopped, and says why. Unasked, it stops when the disk fails; the node
    /// cannot go on then.
    pub async fn ended(&self) -> String {
        let mut metrics = self.metrics.clone();
        match metrics.wait_for(|metrics| metrics.running_state.is_err()).await {
            Ok(metrics) => match &metrics.running_state {
                Err(reason) => reason.to_string(),
                Ok(()) => unreachable!("waited for an error"),
            },
            Err(_) => "raft stopped".into(),
        }
    }

    /// Stops Raft in good order and waits until everything is written and both threads have ended.
    pub async fn shutdown(&self) {
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut stopped = self.stopped.clone();
        // An error means that the thread ended without saying so; there is nothing left to wait for.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// Runs on Raft's runtime, to the end even if the caller goes away.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ProposeError>> + Send + 'static,
    ) -> Result<T, ProposeError> {
        match self.runtime.spawn(work).await {
            Ok(result) => result,
            Err(_) => Err(ProposeError::Unknown("this node is shutting down".into())),
        }
    }

    pub(super) fn must_lead(&self) -> Result<(), ProposeError> {
        let metrics = self.metrics.borrow();
        let leader = metrics.current_leader.map(NodeId).filter(|_| metrics.running_state.is_ok());
        if leader == Some(self.me) { Ok(()) } else { Err(ProposeError::NotLeader { leader }) }
    }
}

/// Entries in the log that are not applied yet.
fn unagreed(metrics: &Metrics) -> u64 {
    let applied = metrics.last_applied.index().map_or(0, |index| index + 1);
    metrics.last_log_index.map_or(0, |last| last + 1).saturating_sub(applied)
}

fn belongs() -> ProposeError {
    Refusal::Forbidden("this node belongs to a cluster already: give it an empty data directory".into())
        .into()
}

/// Makes a pristine node the only voter, and waits until it leads.
async fn elect_alone(raft: &Raft, me: NodeId, address: String) -> Result<(), ProposeError> {
    let unknown = |error: &dyn std::error::Error| ProposeError::Unknown(error.to_string());
    if !raft.is_initialized().await.map_err(|error| unknown(&error))? {
        match raft.initialize(BTreeMap::from([(me.0, BasicNode { addr: address })])).await {
            Ok(()) => {}
            Err(RaftError::APIError(_)) => return Err(belongs()),
            Err(error) => return Err(unknown(&error)),
        }
    }
    let mut metrics = raft.metrics();
    let alone = |metrics: &Metrics| metrics.membership_config.voter_ids().eq([me.0]);
    let settled = metrics
        .wait_for(|metrics| {
            let members = metrics.membership_config.nodes().count() > 0;
            metrics.running_state.is_err()
                || members && (!alone(metrics) || metrics.current_leader == Some(me.0))
        })
        .await
        .map_err(|error| unknown(&error))?;
    match &settled.running_state {
        Err(error) => Err(unknown(error)),
        Ok(()) if alone(&settled) => Ok(()),
        Ok(()) => Err(belongs()),
    }
}

async fn answer(raft: &Raft, request: Request) -> Result<Reply, String> {
    match request {
        Request::Vote(request) => {
            raft.vote(request).await.map(Reply::Vote).map_err(|error| error.to_string())
        }
        Request::Append(request) => {
            raft.append_entries(request).await.map(Reply::Append).map_err(|error| error.to_string())
        }
        Request::Snapshot(request) => match raft.install_snapshot(request).await {
            Ok(reply) => Ok(Reply::Snapshot(Ok(reply))),
            Err(RaftError::APIError(error)) => Ok(Reply::Snapshot(Err(error))),
            Err(RaftError::Fatal(error)) => Err(error.to_string()),
        },
    }
}
