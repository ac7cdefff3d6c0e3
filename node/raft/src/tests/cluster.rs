//! One node, three nodes, and what goes wrong between them.

use super::super::message::{Reply, Request, decode, encode};
use super::*;

/// A cluster of three voters; the first leads.
pub(super) async fn three(net: &Arc<Net>, home: &Path) -> [Arc<Consensus>; 3] {
    let nodes = [start(net, home, 1).await, start(net, home, 2).await, start(net, home, 3).await];
    nodes[0].create(address_of(NodeId(1)), creation(1)).await.expect("is created");
    for id in [2, 3] {
        nodes[0].add_learner(NodeId(id), address_of(NodeId(id))).await.expect("is added");
    }
    nodes[0].set_voters(ids([1, 2, 3])).await.expect("are voters");
    for node in &nodes {
        until_view(node, "the first map", |view| view.map.epoch == Epoch(1)).await;
    }
    nodes
}

fn ids<const N: usize>(ids: [u64; N]) -> BTreeSet<NodeId> {
    ids.map(NodeId).into()
}

async fn until_leader(node: &Consensus, wanted: impl Fn(NodeId) -> bool) -> NodeId {
    let mut leader = node.leader();
    let found = timeout(SOON, leader.wait_for(|leader| leader.is_some_and(&wanted))).await;
    found.expect("a leader in time").expect("Raft runs").expect("there is one")
}

#[tokio::test]
async fn one_node_creates_proposes_and_finds_all_again() {
    let home = TempDir::new().unwrap();
    let net = Arc::default();
    let node = start(&net, home.path(), 1).await;
    assert!(node.is_pristine());
    assert!(matches!(node.propose(setting("a", "1")).await, Err(ProposeError::NotLeader { leader: None })));

    assert_eq!(node.create(address_of(NodeId(1)), creation(1)).await.unwrap(), Epoch(1));
    assert!(!node.is_pristine());
    assert_eq!(node.propose(setting("a", "1")).await.unwrap(), Epoch(2));
    assert_eq!(node.leader().borrow().unwrap(), NodeId(1));
    assert!(node.term() >= 1);
    node.confirm_leadership().await.unwrap();
    node.shutdown().await;
    assert!(matches!(node.propose(setting("a", "2")).await, Err(ProposeError::NotLeader { .. })));

    // What was agreed is known as soon as the node runs again, before any election.
    let node = start(&net, home.path(), 1).await;
    assert!(!node.is_pristine());
    assert_eq!(node.views().borrow().as_ref().unwrap().map.settings["a"], "1");
    until_leader(&node, |leader| leader == NodeId(1)).await;
    assert_eq!(node.propose(setting("b", "1")).await.unwrap(), Epoch(3));
}

#[tokio::test]
async fn refused_changes_answer_why_and_change_nothing() {
    let home = TempDir::new().unwrap();
    let net = Arc::default();
    let node = start(&net, home.path(), 1).await;
    assert!(matches!(
        node.create(address_of(NodeId(1)), MapChange::Compact).await,
        Err(ProposeError::Refused(Refusal::Forbidden(_)))
    ));
    // As after a crash between the two steps of a creation: Raft is there, the map is not.
    node.shutdown().await;
    let node = start(&net, home.path(), 1).await;
    assert!(!node.is_pristine());
    node.create(address_of(NodeId(1)), creation(1)).await.unwrap();
    assert!(matches!(
        node.propose(MapChange::Compact).await,
        Err(ProposeError::Refused(Refusal::Outdated { .. }))
    ));
    assert!(matches!(node.propose(creation(2)).await, Err(ProposeError::Refused(_))));
    let huge = setting("a", &"x".repeat(2 << 20));
    assert!(matches!(node.propose(huge).await, Err(ProposeError::Refused(Refusal::Forbidden(_)))));
    assert_eq!(node.views().borrow().as_ref().unwrap().map.epoch, Epoch(1));
    // The map stays small enough for a snapshot, whatever is set.
    let large = "x".repeat(400 << 10);
    node.propose(setting("a", &large)).await.unwrap();
    node.propose(setting("b", &large)).await.unwrap();
    assert!(matches!(
        node.propose(setting("c", &large)).await,
        Err(ProposeError::Refused(Refusal::Forbidden(_)))
    ));
}

#[tokio::test]
async fn creating_again_does_nothing_and_another_cluster_is_refused() {
    let home = TempDir::new().unwrap();
    let node = start(&Arc::default(), home.path(), 1).await;
    node.create(address_of(NodeId(1)), creation(1)).await.unwrap();
    node.propose(setting("a", "1")).await.unwrap();
    assert_eq!(node.create(address_of(NodeId(1)), creation(1)).await.unwrap(), Epoch(2));
    assert!(matches!(node.create(address_of(NodeId(1)), creation(2)).await, Err(ProposeError::Refused(_))));
}

#[tokio::test]
async fn a_restart_goes_on_from_a_snapshot_and_the_log_behind_it() {
    let home = TempDir::new().unwrap();
    let net = Arc::default();
    let node = start(&net, home.path(), 1).await;
    node.create(address_of(NodeId(1)), creation(1)).await.unwrap();
    for round in 0..2_300 {
        node.propose(setting("round", &round.to_string())).await.unwrap();
    }
    node.shutdown().await;
    assert!(home.path().join("1/raft/snapshot").exists());
    let node = start(&net, home.path(), 1).await;
    let view = node.views().borrow().clone().unwrap();
    assert_eq!((view.map.epoch, view.map.settings["round"].as_str()), (Epoch(2_301), "2299"));
}

#[tokio::test]
async fn many_proposals_at_once_are_all_agreed_in_order() {
    let home = TempDir::new().unwrap();
    let node = start(&Arc::default(), home.path(), 1).await;
    node.create(address_of(NodeId(1)), creation(1)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for round in 0..300 {
        let node = node.clone();
        tasks.spawn(async move {
            loop {
                match node.propose(setting(&round.to_string(), "1")).await {
                    // Not done: a slow disk leaves some without a turn.
                    Err(ProposeError::Busy(_)) => sleep(Duration::from_millis(10)).await,
                    outcome => return outcome,
                }
            }
        });
    }
    let epochs: BTreeSet<Epoch> = tasks.join_all().await.into_iter().map(Result::unwrap).collect();
    assert_eq!(epochs, (2..302).map(Epoch).collect());
}

#[tokio::test]
async fn three_nodes_follow_and_survive_the_loss_of_their_leader() {
    let home = TempDir::new().unwrap();
    let net = Arc::default();
    let [first, second, third] = three(&net, home.path()).await;
    assert_eq!(second.voters().voters, ids([1, 2, 3]));
    assert!(matches!(
        second.propose(setting("a", "0")).await,
        Err(ProposeError::NotLeader { leader: Some(NodeId(1)) })
    ));

    first.propose(setting("a", "1")).await.unwrap();
    for node in [&second, &third] {
        until_view(node, "the setting", |view| view.map.settings.contains_key("a")).await;
    }

    first.shutdown().await;
    drop(first);
    let epoch = propose_somewhere(&[&second, &third], setting("b", "1"), Duration::from_secs(2)).await;
    assert!(epoch >= Epoch(3));
    assert_ne!(until_leader(&second, |leader| leader != NodeId(1)).await, NodeId(1));

    // The old leader comes back and follows.
    let first = start(&net, home.path(), 1).await;
    until_view(&first, "the other setting", |view| view.map.settings.contains_key("b")).await;
}

#[tokio::test]
async fn a_leader_cut_off_cannot_confirm_itself_and_agrees_on_nothing() {
    let home = TempDir::new().unwrap();
    let net: Arc<Net> = Arc::default();
    let [first, second, third] = three(&net, home.path()).await;
    first.confirm_leadership().await.unwrap();

    net.isolate(NodeId(1));
    assert!(matches!(
        first.confirm_leadership().await,
        Err(ProposeError::Unknown(_) | ProposeError::NotLeader { .. })
    ));
    let lost = first.propose(setting("lost", "1")).await;
    assert!(matches!(lost, Err(ProposeError::Unknown(_) | ProposeError::NotLeader { .. })), "{lost:?}");
    propose_somewhere(&[&second, &third], setting("kept", "1"), SOON).await;

    net.heal();
    let view = until_view(&first, "the others' setting", |view| view.map.settings.contains_key("kept")).await;
    assert!(!view.map.settings.contains_key("lost"));
    propose_somewhere(&[&first, &second, &third], setting("after", "1"), SOON).await;
}

#[tokio::test]
async fn a_leader_without_quorum_does_not_fill_its_log() {
    let home = TempDir::new().unwrap();
    let net: Arc<Net> = Arc::default();
    let [first, ..] = three(&net, home.path()).await;
    net.isolate(NodeId(1));
    let mut tasks = tokio::task::JoinSet::new();
    for round in 0..900 {
        let first = first.clone();
        tasks.spawn(async move { first.propose(setting(&round.to_string(), "1")).await });
    }
    let results = timeout(SOON, tasks.join_all()).await.expect("every proposal ends");
    assert!(results.iter().all(Result::is_err));
    let unknown = results.iter().filter(|result| matches!(result, Err(ProposeError::Unknown(_)))).count();
    assert!(unknown <= 64, "{unknown} proposals reached the log");
}

#[tokio::test]
async fn a_node_far_behind_gets_a_snapshot() {
    let home = TempDir::new().unwrap();
    let net: Arc<Net> = Arc::default();
    let [first, _second, third] = three(&net, home.path()).await;
    third.shutdown().await;
    drop(third);
    for round in 0..2_500 {
        first.propose(setting("round", &round.to_string())).await.unwrap();
    }
    assert!(!home.path().join("3/raft/snapshot").exists());
    let third = start(&net, home.path(), 3).await;
    until_view(&third, "the last round", |view| {
        view.map.settings.get("round").is_some_and(|last| last == "2499")
    })
    .await;
    assert!(home.path().join("3/raft/snapshot").exists());

    // And one that joins with nothing.
    let fourth = start(&net, home.path(), 4).await;
    first.add_learner(NodeId(4), address_of(NodeId(4))).await.unwrap();
    until_view(&fourth, "the last round", |view| {
        view.map.settings.get("round").is_some_and(|last| last == "2499")
    })
    .await;
    assert_eq!(first.voters().learners, ids([4]));
    first.set_voters(ids([1, 2, 4])).await.unwrap();
    assert_eq!((first.voters().voters, first.voters().learners), (ids([1, 2, 4]), ids([3])));
    first.remove(NodeId(3)).await.unwrap();
    assert_eq!((first.voters().voters, first.voters().learners), (ids([1, 2, 4]), ids([])));
}

#[tokio::test]
async fn voters_are_replaced_only_by_nodes_that_follow() {
    let home = TempDir::new().unwrap();
    let net: Arc<Net> = Arc::default();
    let [first, second, _third] = three(&net, home.path()).await;
    assert!(matches!(first.set_voters(ids([1, 9])).await, Err(ProposeError::Refused(_))));
    assert!(matches!(first.set_voters(ids([])).await, Err(ProposeError::Refused(_))));
    assert!(matches!(second.set_voters(ids([1])).await, Err(ProposeError::NotLeader { .. })));
    // A learner that nobody can reach is not promoted.
    first.add_learner(NodeId(9), address_of(NodeId(9))).await.unwrap();
    assert!(matches!(first.set_voters(ids([1, 2, 9])).await, Err(ProposeError::Busy(_))));
    assert_eq!(first.voters().voters, ids([1, 2, 3]));
    first.remove(NodeId(9)).await.unwrap();
    // A voter is taken out in one go; the last one is not.
    first.remove(NodeId(3)).await.unwrap();
    first.remove(NodeId(2)).await.unwrap();
    assert!(matches!(first.remove(NodeId(1)).await, Err(ProposeError::Refused(_))));
    assert_eq!((first.voters().voters, first.voters().learners), (ids([1]), ids([])));
}

#[tokio::test]
async fn an_election_can_be_called() {
    let home = TempDir::new().unwrap();
    let net: Arc<Net> = Arc::default();
    let [first, second, third] = three(&net, home.path()).await;
    first.shutdown().await;
    drop(first);
    let deadline = Instant::now() + SOON;
    while second.leader().borrow().is_none_or(|leader| leader != NodeId(2)) {
        assert!(Instant::now() < deadline, "the second node leads");
        second.call_election();
        sleep(Duration::from_millis(20)).await;
    }
    propose_somewhere(&[&second, &third], setting("a", "1"), SOON).await;
}

#[tokio::test]
async fn garbage_gets_an_error_as_its_reply() {
    let home = TempDir::new().unwrap();
    let net: Arc<Net> = Arc::default();
    let [first, second, third] = three(&net, home.path()).await;
    for bytes in [&b""[..], b"\x01", b"\x02\x00", b"\x01\xff\xff\xff\xff", &[1; 300]] {
        let reply = first.handle(Bytes::copy_from_slice(bytes)).await;
        assert!(matches!(decode::<Reply>(&reply), Ok(Reply::Failed(_))), "{bytes:?}");
    }
    // Real requests with single bits changed: whatever they say now, the node goes on.
    let vote = openraft::Vote::new_committed(1, 1);
    let entries = (0..3).map(|index| openraft::Entry {
        log_id: openraft::LogId::new(openraft::CommittedLeaderId::new(1, 1), index),
        payload: openraft::EntryPayload::Normal(setting("a", "1")),
    });
    let append = openraft::raft::AppendEntriesRequest {
        vote,
        prev_log_id: None,
        entries: entries.collect(),
        leader_commit: None,
    };
    let snapshot = openraft::raft::InstallSnapshotRequest {
        vote,
        meta: openraft::SnapshotMeta::default(),
        offset: 0,
        data: vec![1, 0, 0, 0, 0, 0],
        done: true,
    };
    let request = openraft::raft::VoteRequest::new(openraft::Vote::new(1, 3), None);
    for bytes in [
        encode(&Request::Vote(request)),
        encode(&Request::Append(append)),
        encode(&Request::Snapshot(snapshot)),
    ] {
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            decode::<Reply>(&second.handle(bytes.into()).await).expect("a reply");
        }
    }
    propose_somewhere(&[&first, &second, &third], setting("alive", "1"), SOON).await;
}

#[tokio::test]
async fn a_restarted_node_is_reached_at_its_new_address() {
    let home = TempDir::new().unwrap();
    let net: Arc<Net> = Arc::default();
    let [first, second, third] = three(&net, home.path()).await;
    third.shutdown().await;
    drop(third);
    net.moved.lock().unwrap().insert(NodeId(3), "elsewhere:7000".into());
    let third = start(&net, home.path(), 3).await;
    first.add_learner(NodeId(3), "elsewhere:7000".into()).await.unwrap();
    assert_eq!(first.voters().voters, ids([1, 2, 3]));
    first.propose(setting("a", "1")).await.unwrap();
    until_view(&third, "the setting", |view| view.map.settings.contains_key("a")).await;
    drop(second);
}
