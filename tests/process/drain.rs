//! A node is drained under load: it hands over everything, nothing else moves, and it ends by itself.

use std::time::{Duration, Instant};

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::writers::{Load, Writers, assert_no_errors, assert_nothing_lost};
use korum_tests::harness::{alone, wait};

use crate::copies::{assert_loaded, holders, load_keys};
use crate::{report, size, steady};

#[test]
fn a_drain_under_load_moves_only_what_the_node_held() {
    let _alone = alone();
    let mut cluster = Cluster::start(4);
    let count = size(20_000, 1_000_000) as usize;
    load_keys(&cluster, count);
    let before = holders(&cluster, count);
    let leaver = 3;
    let load = steady("drain");
    let writers = Writers::start(&cluster.ports_without(leaver), &load);
    // clients of the leaver itself: they are served until it ends, then they go to another node
    let mut ports = cluster.ports_without(leaver);
    ports.insert(0, cluster.nodes[leaver].client);
    let guests =
        Writers::start(&ports, &Load { writers: 1, rate: Some(200), pipeline: 1, name: "guest", ..load });
    writers.wait_each(200, PATIENCE);
    guests.wait_each(20, PATIENCE);

    let begin = Instant::now();
    let id = cluster.id(leaver);
    let reply = cluster.client(0).call(&format!("KORUM DRAIN {id}")).expect("DRAIN");
    assert!(reply.error().is_none(), "{reply:?}");
    let patience = Duration::from_secs(size(90, 600));
    wait::until("the node is forgotten", patience, || {
        let status = cluster.status(0)?;
        let nodes = status["nodes"].as_array().map_or(0, Vec::len);
        if nodes == 3 { Ok(()) } else { Err(format!("{nodes} nodes are known, {} move", status["moving"])) }
    });
    assert!(cluster.wait_ended(leaver, Duration::from_secs(15)), "it ends by itself, with exit code 0");
    cluster.wait_ready(patience);
    let end = Instant::now();
    writers.wait_each(200, PATIENCE);
    guests.wait_each(20, PATIENCE);
    let (histories, guests) = (writers.stop(), guests.stop());
    println!("{}", report("drain", &histories, begin, end));

    assert_no_errors(&histories);
    let errors: Vec<&String> = guests.iter().flat_map(|history| &history.errors).collect();
    assert!(errors.is_empty(), "{} error replies at the leaver, the first: {}", errors.len(), errors[0]);
    for index in 0..3 {
        let _ = assert_nothing_lost(&histories, cluster.nodes[index].client);
        let _ = assert_nothing_lost(&guests, cluster.nodes[index].client);
    }
    assert_loaded(&cluster, 0, count);

    let after = holders(&cluster, count);
    let held = before.iter().filter(|holders| holders.contains(&leaver)).count();
    let moved: usize =
        before.iter().zip(&after).map(|(before, after)| after.difference(before).count()).sum();
    println!("drain: {moved} copies moved, the node had held {held}");
    assert!(after.iter().all(|holders| !holders.contains(&leaver)), "it still holds something");
    assert_eq!(moved, held, "exactly what it held moves");
}
