//! All nodes are restarted in turn, each when the cluster says that it may be stopped: nobody sees an error.

use std::time::{Duration, Instant};

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::writers::{Load, Writers, assert_no_errors, assert_nothing_lost};
use korum_tests::harness::{alone, wait};

#[test]
fn a_rolling_restart_that_asks_first_shows_no_error_and_loses_nothing() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    for index in 0..3 {
        wait_safe_to_stop(&cluster, index);
        let writers = Writers::start(&cluster.ports_without(index), &load(["r0-", "r1-", "r2-"][index]));
        writers.wait_each(200, PATIENCE);
        let begin = Instant::now();
        assert!(cluster.terminate(index), "SIGTERM is a clean end: exit code 0");
        let ended = begin.elapsed();
        writers.wait_each(1_000, PATIENCE);
        cluster.launch_again(index, false);
        cluster.wait_ready(PATIENCE);
        let histories = writers.stop();
        assert_no_errors(&histories);
        let gap = histories.iter().map(|history| history.gap(begin)).max().expect("writers");
        let writes: usize = histories.iter().map(|history| history.times.len()).sum();
        println!("node {index} ended after {ended:?}; longest gap {gap:?} of {writes} writes");
        assert!(gap < Duration::from_secs(1), "a planned stop held writes up for {gap:?}");
        for port in cluster.ports_without(usize::MAX) {
            let _ = assert_nothing_lost(&histories, port);
        }
    }
}

#[test]
fn a_cluster_that_misses_a_copy_says_no() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    wait_safe_to_stop(&cluster, 0);
    cluster.kill(2);
    wait::until("the other two may not be stopped", PATIENCE, || {
        for index in 0..2 {
            let answer = safe_to_stop(&cluster, 1 - index, &cluster.id(index))?;
            if !answer.starts_with("no: ") || !answer.contains("voters would be left") {
                return Err(answer);
            }
        }
        Ok(())
    });
    cluster.launch_again(2, false);
    wait_safe_to_stop(&cluster, 0);
}

fn load(name: &'static str) -> Load {
    Load { keys: 1_000, name, ..Load::default() }
}

fn wait_safe_to_stop(cluster: &Cluster, index: usize) {
    let id = cluster.id(index);
    wait::until(&format!("node {index} may be stopped"), PATIENCE, || {
        let answer = safe_to_stop(cluster, (index + 1) % 2, &id)?;
        if answer.starts_with("yes: ") { Ok(()) } else { Err(answer) }
    });
}

fn safe_to_stop(cluster: &Cluster, asked: usize, id: &str) -> Result<String, String> {
    let reply = cluster.client(asked).call(&format!("KORUM SAFE-TO-STOP {id}"));
    reply.map(|reply| reply.text()).map_err(|error| error.to_string())
}
