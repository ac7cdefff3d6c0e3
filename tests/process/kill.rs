//! `kill -9` of any node under writers at full speed: every acknowledged write stays, writes go on at once.

use std::time::{Duration, Instant};

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::wait;
use korum_tests::harness::writers::{Load, Writers, assert_nothing_lost};

use crate::size;

/// Longest time without an acknowledgement that passes here; the median aimed at is 500 ms on a quiet machine.
const GAP_MAX: Duration = Duration::from_secs(3);

#[test]
fn acknowledged_writes_survive_the_kill_of_any_node() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let mut gaps = Vec::new();
    for round in 0..size(3, 10) as usize {
        let victim = round % 3;
        // writers talk to the survivors, so that the gap is the cluster's and not a reconnection's
        let writers = Writers::start(&cluster.ports_without(victim), &Load::default());
        writers.wait_each(500, PATIENCE);
        let killed = Instant::now();
        cluster.kill(victim);
        writers.wait_each(2_000, PATIENCE);
        let histories = writers.stop();

        let survivor = (victim + 1) % 3;
        let keys = assert_nothing_lost(&histories, cluster.nodes[survivor].client);
        let gap = histories.iter().map(|history| history.gap(killed)).max().expect("writers");
        let writes: usize = histories.iter().map(|history| history.times.len()).sum();
        let errors: usize = histories.iter().map(|history| history.errors.len()).sum();
        println!("killed node {victim}: gap {gap:?}, {writes} writes, {errors} errors, {keys} keys checked");
        assert!(gap < GAP_MAX, "after the kill of node {victim} a writer waited {gap:?}");
        gaps.push(gap);

        // back with its directory, and whole again before the next one dies
        cluster.launch_again(victim, false);
        cluster.wait_ready(PATIENCE);
        let _ = assert_nothing_lost(&histories, cluster.nodes[victim].client);
    }
    gaps.sort_unstable();
    println!("median gap: {:?} of {gaps:?}", gaps[gaps.len() / 2]);
}

#[test]
fn a_node_that_leaves_on_sigterm_takes_nothing_with_it() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let writers = Writers::start(&cluster.ports_without(1), &Load::default());
    writers.wait_each(300, PATIENCE);
    assert!(cluster.terminate(1), "SIGTERM is a clean end: exit code 0");
    writers.wait_each(1_000, PATIENCE);
    let histories = writers.stop();
    let _ = assert_nothing_lost(&histories, cluster.nodes[2].client);
}

#[test]
fn a_whole_cluster_that_was_killed_comes_back_and_takes_writes() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    assert!(cluster.client(0).call("SET before 1").expect("SET").is_ok());
    for index in 0..3 {
        cluster.kill(index);
    }
    for index in 0..3 {
        cluster.launch_again(index, false);
    }
    // memory is gone with all its holders, which is a cache's right; the cluster is the same and serves
    cluster.wait_ready(PATIENCE);
    wait::until("writes are taken on every node", PATIENCE, || {
        for index in 0..3 {
            for key in 0..50 {
                let reply = cluster
                    .client(index)
                    .call(&format!("SET after:{key} {index}"))
                    .map_err(|e| e.to_string())?;
                if !reply.is_ok() {
                    return Err(format!("{reply:?}"));
                }
            }
        }
        Ok(())
    });
}
