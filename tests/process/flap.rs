//! A node that dies and starts again many times a minute, never long enough to catch up: its copies count for nothing
//! until they are whole, so nothing is lost.

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::writers::{Load, Writers, assert_nothing_lost};

use crate::size;

/// Writes per second meanwhile.
const RATE: u64 = 500;

#[test]
fn a_node_that_restarts_every_half_second_loses_nothing_of_others() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    // filled once and left alone: copies without a write since the last change of primary look most alike
    let filled = Writers::start(&cluster.ports_without(1), &Load { name: "still", ..Load::default() });
    filled.wait_each(u64::from(Load::default().keys), PATIENCE);
    let filled = filled.stop();
    let writers = Writers::start(
        &cluster.ports_without(1),
        &Load { name: "moving", writers: 4, rate: Some(RATE), ..Load::default() },
    );
    for _ in 0..size(8, 30) {
        // half a second's worth
        writers.wait_each(RATE / 2 / 4, PATIENCE);
        cluster.launch_again(1, false);
    }
    cluster.wait_ready(PATIENCE);
    let histories = writers.stop();
    for port in [0, 1, 2].map(|node| cluster.nodes[node].client) {
        let _ = assert_nothing_lost(&filled, port);
        let _ = assert_nothing_lost(&histories, port);
    }
}
