//! Nodes are cut off and restarted at random while changes are proposed. Then everything heals.

use std::collections::BTreeMap;

use korum_protocol::map::ClusterMap;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::cluster::three;
use super::*;

/// What was seen: equal epochs must mean equal maps, on every node, for ever.
#[derive(Default)]
struct Seen(Mutex<BTreeMap<Epoch, ClusterMap>>);

impl Seen {
    fn note(&self, map: &ClusterMap) {
        let mut seen = self.0.lock().unwrap();
        let known = seen.entry(map.epoch).or_insert_with(|| map.clone());
        assert_eq!(known, map, "two maps of one epoch");
    }
}

/// Notes every map that a node publishes, until it ends. Its epochs never go back.
fn watch_views(node: &Consensus, seen: Arc<Seen>) -> tokio::task::JoinHandle<()> {
    let mut views = node.views();
    tokio::spawn(async move {
        let mut last = Epoch(0);
        loop {
            if let Some(view) = views.borrow_and_update().clone() {
                assert!(view.map.epoch >= last, "epoch {} after {last}", view.map.epoch);
                last = view.map.epoch;
                seen.note(&view.map);
            }
            if views.changed().await.is_err() {
                return;
            }
        }
    })
}

#[tokio::test]
async fn acknowledged_changes_survive_partitions_and_restarts() {
    const ROUNDS: usize = 25;
    // The seed chooses the faults, not the timing: a failure may need several tries to come back.
    let seed = std::env::var("KORUM_RAFT_SEED").map_or(20_261_129, |seed| seed.parse().expect("a number"));
    eprintln!("KORUM_RAFT_SEED={seed} cargo test -p korum-raft acknowledged_changes_survive");
    let mut random = SmallRng::seed_from_u64(seed);
    let home = TempDir::new().unwrap();
    let net: Arc<Net> = Arc::default();
    let seen = Arc::new(Seen::default());
    let mut nodes: Vec<Arc<Consensus>> = three(&net, home.path()).await.into();
    let mut watchers: Vec<_> = nodes.iter().map(|node| watch_views(node, seen.clone())).collect();
    let mut acknowledged = vec![];

    // Phase one: faults.
    for round in 0..ROUNDS {
        let victim = random.random_range(0..3);
        match random.random_range(0..4) {
            0 => net.isolate(NodeId(victim + 1)),
            1 => net.cut(NodeId(victim + 1), NodeId((victim + 1) % 3 + 1)),
            2 => {
                let place = victim as usize;
                nodes[place].shutdown().await;
                nodes[place] = start(&net, home.path(), victim + 1).await;
                watchers.push(watch_views(&nodes[place], seen.clone()));
            }
            _ => net.heal(),
        }
        for attempt in 0..8 {
            let name = format!("{round}-{attempt}");
            let asked = &nodes[random.random_range(0..3)];
            match timeout(Duration::from_millis(150), asked.propose(setting(&name, "1"))).await {
                Ok(Ok(epoch)) => acknowledged.push((epoch, name)),
                Ok(Err(ProposeError::Refused(refusal))) => panic!("{refusal}"),
                Ok(Err(ProposeError::NotLeader { .. })) => sleep(Duration::from_millis(10)).await,
                Ok(Err(ProposeError::Busy(_) | ProposeError::Unknown(_))) | Err(_) => {}
            }
        }
    }
    assert!(acknowledged.len() > ROUNDS, "only {} changes were agreed", acknowledged.len());

    // Phase two: all heals, and all agree.
    net.heal();
    let all: Vec<&Arc<Consensus>> = nodes.iter().collect();
    let last = propose_somewhere(&all, setting("last", "1"), SOON).await;
    for node in &nodes {
        let view = until_view(node, "the last epoch", |view| view.map.epoch >= last).await;
        for (epoch, name) in &acknowledged {
            assert!(view.map.settings.contains_key(name), "{name} of epoch {epoch} is lost");
        }
    }
    for node in &nodes {
        node.shutdown().await;
    }
    for watcher in watchers {
        timeout(SOON, watcher).await.expect("ends with its node").expect("no two maps of one epoch");
    }
}
