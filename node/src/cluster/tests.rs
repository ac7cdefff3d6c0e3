//! Whole clusters in one process, on loopback ports and real disks.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use korum_protocol::map::NodeRecord;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::env::transport::TcpListener;

/// A loaded machine may take so long; what is expected to be fast is measured on its own.
const LONG: Duration = Duration::from_secs(20);

struct Node {
    cluster: Arc<Cluster>,
    dir: TempDir,
    address: String,
}

fn options(dir: &Path, listen: &str, join: &[String]) -> ClusterOptions {
    ClusterOptions {
        dir: dir.to_owned(),
        listen: listen.to_owned(),
        addresses: Addresses { host: "127.0.0.1".into(), client: 6379, cluster: 0, peer: 0 },
        join: join.to_vec(),
        join_timeout: LONG,
        zone: String::new(),
        weight: 1,
        partitions: 64,
        replication: 2,
        loss_policy: LossPolicy::Empty,
        timing: Timing::default(),
        secret: Some(Bytes::from_static(b"a secret")),
    }
}

fn callbacks() -> Callbacks {
    Callbacks { on_connection: Arc::new(|_, _| ()), on_reincarnation: Arc::new(|_| ()) }
}

async fn start_in(dir: TempDir, listen: &str, join: &[String]) -> Node {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    let _ = tracing_subscriber::fmt().with_test_writer().with_env_filter(filter).try_init();
    let options = options(dir.path(), listen, join);
    let cluster = Cluster::start(options, Clock::system(), callbacks()).await.unwrap();
    let address = cluster.local_peer().address.clone();
    Node { cluster, dir, address }
}

async fn start_new(join: &[String]) -> Node {
    start_in(tempfile::tempdir().unwrap(), "127.0.0.1:0", join).await
}

impl Node {
    /// As a crash: its sockets close before anything else.
    async fn kill(self) -> (TempDir, String) {
        self.cluster.shutdown().await;
        (self.dir, self.address)
    }

    /// Waits until its map says so; how long that took.
    async fn sees(&self, what: &str, is: impl Fn(&View) -> bool) -> Duration {
        let began = Instant::now();
        let mut views = self.cluster.views();
        let wait = views.wait_for(|view| view.as_ref().is_some_and(|view| is(view)));
        let seen = tokio::time::timeout(LONG, wait).await.is_ok_and(|seen| seen.is_ok());
        assert!(
            seen,
            "never saw {what}: {:?}",
            self.cluster.views().borrow().as_ref().map(|view| &view.map.nodes)
        );
        began.elapsed()
    }

    async fn sees_down(&self, node: NodeId) -> Duration {
        self.sees("a node down", |view| !record(view, node).is_up()).await
    }

    fn is_serving(&self) -> bool {
        self.cluster.lease().is_valid(Clock::system().now())
    }
}

fn record(view: &View, node: NodeId) -> &NodeRecord {
    &view.map.nodes[&node]
}

async fn until(what: &str, mut is: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < LONG, "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    began.elapsed()
}

fn members(view: &View) -> usize {
    let is_member = |record: &&NodeRecord| record.membership == korum_protocol::map::Membership::Member;
    view.map.nodes.values().filter(is_member).count()
}

/// Three members that vote, and hold leases; the first one leads.
async fn three() -> Vec<Node> {
    let first = start_new(&[]).await;
    let join = [first.address.clone()];
    let nodes = vec![first, start_new(&join).await, start_new(&join).await];
    for node in &nodes {
        node.sees("three members", |view| members(view) == 3).await;
    }
    until("three voters", || nodes.iter().all(|node| node.cluster.consensus().voters().voters.len() == 3))
        .await;
    // Only a finished change of voters survives the loss of one of them.
    until("the change of voters is over", || {
        nodes.iter().all(|node| !lock(&node.cluster.shared.leading).stepping)
    })
    .await;
    until("leases", || nodes.iter().all(Node::is_serving)).await;
    nodes
}

fn leader_of(nodes: &[Node]) -> usize {
    nodes.iter().position(|node| node.cluster.leader() == Some(node.cluster.id())).expect("someone leads")
}

#[tokio::test]
async fn one_node_creates_its_cluster_and_comes_back_as_a_newer_incarnation() {
    let node = start_new(&[]).await;
    until("a lease", || node.is_serving()).await;
    let (id, cluster_id) = (node.cluster.id(), node.cluster.cluster_id());
    let again =
        Cluster::start(options(node.dir.path(), "127.0.0.1:0", &[]), Clock::system(), callbacks()).await;
    assert!(matches!(again, Err(StartError::Identity(_))), "two processes in one directory");
    let (dir, address) = node.kill().await;
    let node = start_in(dir, &address, &[]).await;
    assert_eq!((node.cluster.id(), node.cluster.cluster_id()), (id, cluster_id));
    assert_eq!(node.cluster.incarnation(), Incarnation(2));
    node.sees("the new run", |view| {
        record(view, id).incarnation == Incarnation(2) && record(view, id).is_up()
    })
    .await;
    until("a lease", || node.is_serving()).await;
}

#[tokio::test]
async fn a_node_gives_its_cluster_up_only_if_it_is_empty_when_it_serves_no_more() {
    let (node, other) = (start_new(&[]).await, start_new(&[]).await);
    until("leases", || node.is_serving() && other.is_serving()).await;
    let why = node.cluster.meet(other.address.clone(), true).await.unwrap_err();
    assert!(matches!(why, MeetError::Passing(_)), "nobody knows yet whether it holds keys: {why}");

    // A write slips in between the first look and the end of the lease.
    let looks = Arc::new(AtomicUsize::new(0));
    let (seen, lease) = (Arc::clone(&looks), Arc::clone(other.cluster.lease()));
    other.cluster.tell_holds_keys(move || {
        let look = seen.fetch_add(1, Ordering::Relaxed);
        assert_eq!(lease.is_valid(Clock::system().now()), look.is_multiple_of(2), "look {look}");
        look == 1
    });
    let why = node.cluster.meet(other.address.clone(), true).await.unwrap_err();
    assert!(why.to_string().contains("holds keys"), "{why}");
    until("it serves again", || other.is_serving()).await;
    assert!(Cluster::seeds_in(other.dir.path()).unwrap().is_empty());

    node.cluster.meet(other.address.clone(), true).await.unwrap();
    assert_eq!(looks.load(Ordering::Relaxed), 4);
    assert!(!other.is_serving());
    let mut standing = other.cluster.standing();
    standing.wait_for(|standing| *standing == Standing::GivenUp).await.unwrap();
    let given_up = other.cluster.id();
    let (dir, address) = other.kill().await;
    let seeds = Cluster::seeds_in(dir.path()).unwrap();
    assert_eq!(seeds, std::slice::from_ref(&node.address));
    let other = start_in(dir, &address, &seeds).await;
    assert_ne!(other.cluster.id(), given_up);
    node.sees("two members", |view| members(view) == 2).await;
    assert_eq!(node.cluster.cluster_id(), other.cluster.cluster_id());
}

#[tokio::test]
async fn a_killed_node_is_down_in_well_under_a_second_and_comes_back() {
    let mut nodes = three().await;
    let leader = leader_of(&nodes);
    let victim = nodes.remove((leader + 1) % 3);
    let id = victim.cluster.id();
    let stopping = tokio::spawn(victim.kill());
    let took = nodes[0].sees_down(id).await;
    println!("killed follower: down after {took:?}");
    assert!(took < Duration::from_millis(700), "{took:?}");
    let (dir, address) = stopping.await.unwrap();
    let back = start_in(dir, &address, &[]).await;
    assert_eq!(back.cluster.id(), id);
    nodes[0]
        .sees("it come back", |view| {
            record(view, id).is_up() && record(view, id).incarnation == Incarnation(2)
        })
        .await;
    until("a lease", || back.is_serving()).await;
}

#[tokio::test]
async fn a_killed_leader_is_replaced_and_down_in_well_under_a_second() {
    let mut nodes = three().await;
    let victim = nodes.remove(leader_of(&nodes));
    let id = victim.cluster.id();
    let stopping = tokio::spawn(victim.kill());
    let took = nodes[0].sees_down(id).await;
    println!("killed leader: down after {took:?}");
    assert!(took < Duration::from_millis(700), "{took:?}");
    until("leases", || nodes.iter().all(Node::is_serving)).await;
    let (dir, address) = stopping.await.unwrap();
    let back = start_in(dir, &address, &[]).await;
    nodes[0].sees("it come back", |view| record(view, id).is_up()).await;
    until("a lease", || back.is_serving()).await;
}

#[tokio::test]
async fn a_cluster_whose_addresses_all_changed_finds_itself_by_its_seeds() {
    let mut stopped = Vec::new();
    for node in three().await {
        stopped.push((node.cluster.id(), node.kill().await.0));
    }
    let mut nodes: Vec<Node> = Vec::new();
    for (id, dir) in stopped {
        let seeds: Vec<String> = nodes.iter().map(|node| node.address.clone()).collect();
        nodes.push(start_in(dir, "127.0.0.1:0", &seeds).await);
        assert_eq!(nodes[nodes.len() - 1].cluster.id(), id);
    }
    until("leases", || nodes.iter().all(Node::is_serving)).await;
}

#[tokio::test]
async fn a_node_that_lost_its_disk_is_a_new_node_and_the_old_one_is_down() {
    let mut nodes = three().await;
    let victim = nodes.remove((leader_of(&nodes) + 1) % 3);
    let old = victim.cluster.id();
    let (_old_dir, address) = victim.kill().await;
    let seeds: Vec<String> = nodes.iter().map(|node| node.address.clone()).collect();
    let back = start_in(tempfile::tempdir().unwrap(), &address, &seeds).await;
    assert_ne!(back.cluster.id(), old);
    for node in nodes.iter().chain([&back]) {
        // The old one may have been forgotten by the time it is looked for.
        let is_up = |view: &View, id| view.map.nodes.get(&id).is_some_and(NodeRecord::is_up);
        node.sees("both", |view| !is_up(view, old) && is_up(view, back.cluster.id())).await;
    }
    until("a lease", || back.is_serving()).await;
}

#[tokio::test]
async fn a_silent_node_keeps_its_place_until_its_lease_has_run_out() {
    let nodes = three().await;
    let silent = (leader_of(&nodes) + 1) % 3;
    let (id, watcher) = (nodes[silent].cluster.id(), (silent + 1) % 3);
    let clock = Clock::system();
    // It stops heartbeating; its sockets stay open, as those of a stopped process do.
    nodes[silent].cluster.shared.standing.send_replace(Standing::Left);
    let took = nodes[watcher].sees_down(id).await;
    let (now, lease) = (clock.now(), nodes[silent].cluster.lease());
    println!("silent node: down after {took:?}, {:?} after its lease", now.since(lease.until()));
    assert!(!lease.is_valid(now) && took > Duration::from_millis(500));
    assert!(took < Duration::from_millis(2500), "{took:?}");
    // It wakes up, finds that it was marked down, and comes back as another run.
    nodes[silent].cluster.shared.standing.send_replace(Standing::Starting);
    let shared = Arc::clone(&nodes[silent].cluster.shared);
    nodes[silent].cluster.runtime.spawn(heartbeat::run(shared));
    nodes[watcher].sees("it come back", |view| record(view, id).is_up()).await;
    until("a lease", || nodes[silent].is_serving()).await;
    assert_eq!(nodes[silent].cluster.incarnation(), Incarnation(2));
}

#[tokio::test]
async fn a_node_that_leaves_is_down_when_it_has_left() {
    let mut nodes = three().await;
    // A follower first, then the leader.
    for leads in [false, true] {
        let leaving = nodes.remove((leader_of(&nodes) + usize::from(!leads)) % 3);
        let id = leaving.cluster.id();
        assert!(leaving.cluster.leave().await, "there are others");
        leaving.cluster.shutdown().await;
        assert!(!leaving.is_serving());
        let took = nodes[0].sees_down(id).await;
        println!("a node that left (leader: {leads}): down {took:?} later");
        // It was told: less than an election (375 ms at least) or the end of a lease (700 ms) would take.
        assert!(took < Duration::from_millis(300), "{took:?}");
        until("leases", || nodes.iter().all(Node::is_serving)).await;
        let (dir, address) = (leaving.dir, leaving.address);
        nodes.push(start_in(dir, &address, &[]).await);
        for node in &nodes {
            node.sees("all up", |view| view.map.nodes.values().all(NodeRecord::is_up)).await;
        }
        until("leases", || nodes.iter().all(Node::is_serving)).await;
    }
}

#[tokio::test]
async fn any_node_may_propose_and_forgotten_nodes_leave_raft() {
    let mut nodes = three().await;
    for (n, node) in nodes.iter().enumerate() {
        let change = MapChange::Set { name: format!("setting-{n}"), value: Some("1".into()) };
        let epoch = node.cluster.propose(change, LONG).await.unwrap();
        node.sees("the epoch", |view| {
            view.map.epoch >= epoch && view.map.settings.contains_key(&format!("setting-{n}"))
        })
        .await;
    }
    let victim = nodes.remove((leader_of(&nodes) + 1) % 3);
    let id = victim.cluster.id();
    let down = MapChange::MarkDown { node: id, incarnation: victim.cluster.incarnation() };
    let refused = nodes[0].cluster.propose(down, LONG).await;
    assert!(matches!(refused, Err(ProposeError::Refused(_))), "only the leader judges");
    victim.kill().await;
    nodes[0].sees_down(id).await;
    nodes[1].cluster.propose(MapChange::Forget { node: id }, LONG).await.unwrap();
    until("one voter of two", || {
        let raft = nodes[0].cluster.consensus().voters();
        raft.voters.len() == 1 && raft.learners.len() == 1
    })
    .await;
    until("leases", || nodes.iter().all(Node::is_serving)).await;
}

#[tokio::test]
async fn a_leader_that_was_forgotten_hears_of_it_when_it_comes_back() {
    let mut nodes = three().await;
    let leader = nodes.remove(leader_of(&nodes));
    let id = leader.cluster.id();
    let (dir, address) = leader.kill().await;
    nodes[0].sees_down(id).await;
    nodes[0].cluster.propose(MapChange::Forget { node: id }, LONG).await.unwrap();
    until("Raft without it", || {
        nodes.iter().all(|node| {
            let raft = node.cluster.consensus().voters();
            !raft.voters.contains(&id) && !raft.learners.contains(&id)
        })
    })
    .await;
    // Its own log says that it leads.
    let back = start_in(dir, &address, &[]).await;
    let mut standing = back.cluster.standing();
    let told = standing.wait_for(|standing| *standing == Standing::Forgotten);
    assert!(tokio::time::timeout(LONG, told).await.is_ok(), "it never heard that it was forgotten");
    assert!(!back.is_serving());
}

#[tokio::test]
async fn a_stranger_is_told_why_it_cannot_join() {
    let node = start_new(&[]).await;
    let dir = tempfile::tempdir().unwrap();
    let short = ClusterOptions {
        secret: Some(Bytes::from_static(b"another")),
        join_timeout: Duration::ZERO,
        ..options(dir.path(), "127.0.0.1:0", std::slice::from_ref(&node.address))
    };
    let Err(error) = Cluster::start(short.clone(), Clock::system(), callbacks()).await else { panic!() };
    assert!(error.to_string().contains("secret"), "{error}");
    // An address at which the leader does not find it.
    let addresses = Addresses { peer: 1, ..short.addresses.clone() };
    let wrong = ClusterOptions { addresses, secret: options(dir.path(), "", &[]).secret, ..short };
    let Err(error) = Cluster::start(wrong, Clock::system(), callbacks()).await else { panic!() };
    assert!(error.to_string().contains("cannot reach this node"), "{error}");
}

#[tokio::test]
async fn a_client_port_leads_to_the_peer_port() {
    let node = start_new(&[]).await;
    let client_port = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let seed = client_port.local_addr().unwrap().to_string();
    let answer = format!("${}\r\n{}\r\n", node.address.len(), node.address);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = client_port.accept().await.unwrap();
            let _ = stream.read(&mut [0; 64]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let second = start_new(&[seed]).await;
    node.sees("two members", |view| members(view) == 2).await;
    drop(second);
}
