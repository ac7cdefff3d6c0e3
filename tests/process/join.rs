//! A node joins under load: only its share moves, no client sees an error, nothing is lost, and it ends by itself.

use std::time::{Duration, Instant};

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::writers::{Writers, assert_no_errors, assert_nothing_lost};

use crate::copies::{assert_loaded, holders, load_keys};
use crate::{report, size, steady};

/// How far the number of moved copies may be from R/(n+1) of all: 4096 partitions fall by chance, so a few percent.
const SPREAD: f64 = 0.12;

#[test]
fn a_join_under_load_moves_only_the_new_nodes_share() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let count = size(20_000, 1_000_000) as usize;
    load_keys(&cluster, count);
    let before = holders(&cluster, count);
    let ports = cluster.ports_without(usize::MAX);
    let writers = Writers::start(&ports, &steady("join"));
    writers.wait_each(200, PATIENCE);

    let begin = Instant::now();
    let joiner = cluster.add();
    cluster.wait_answering(joiner);
    cluster.wait_ready(Duration::from_secs(size(90, 600)));
    let end = Instant::now();
    writers.wait_each(200, PATIENCE);
    let histories = writers.stop();
    println!("{}", report("join", &histories, begin, end));

    assert_no_errors(&histories);
    for index in 0..4 {
        let _ = assert_nothing_lost(&histories, cluster.nodes[index].client);
    }
    assert_loaded(&cluster, joiner, count);

    let after = holders(&cluster, count);
    let moved: usize =
        before.iter().zip(&after).map(|(before, after)| after.difference(before).count()).sum();
    let copies: usize = before.iter().map(|holders| holders.len()).sum();
    let share = copies as f64 / 4.0;
    let strange =
        before.iter().zip(&after).filter(|(b, a)| a.difference(b).any(|&node| node != joiner)).count();
    println!("join: {moved} of {copies} copies moved, the new node's share is {share:.0}");
    assert_eq!(strange, 0, "keys that moved to a node that was there before");
    assert!((moved as f64 / share - 1.0).abs() < SPREAD, "{moved} copies moved, the share is {share:.0}");
}
