//! A peer that is dead, or there and of no use, is not dialed all the time.

use std::time::Duration;

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::network::Way;

/// Until then attempts may be quick.
const SETTLES: Duration = Duration::from_secs(4);
const COUNTED: Duration = Duration::from_secs(6);
/// Dials of one purpose while they are counted: about one a second, a pause may be a quarter shorter.
const DIALS_MAX: u64 = COUNTED.as_secs() * 4 / 3 + 1;

/// How often each of these nodes dialed another.
fn dials(cluster: &Cluster, ways: [(usize, usize); 2]) -> [u64; 2] {
    std::thread::sleep(SETTLES);
    let before = ways.map(|(from, to)| cluster.network().dials(from, to));
    std::thread::sleep(COUNTED);
    let after = ways.map(|(from, to)| cluster.network().dials(from, to));
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn a_dead_peer_is_dialed_once_a_second() {
    let _alone = alone();
    let mut cluster = Cluster::start_networked(3, &[]);
    cluster.kill(2);
    let dials = dials(&cluster, [(0, 2), (1, 2)]);
    println!("{dials:?} dials in {COUNTED:?}");
    // Raft's leader tries; data, forwards and control end when the map shows the node down.
    assert!(dials.iter().all(|&dials| dials <= DIALS_MAX), "{dials:?} dials");
    assert!(dials.iter().sum::<u64>() > 0, "nobody looks whether it is back");
}

#[test]
fn a_peer_that_accepts_and_closes_at_once_is_hardly_dialed_more() {
    let _alone = alone();
    let cluster = Cluster::start_networked(3, &[]);
    cluster.network().set_between(&[0], &[1], Way::Cut);
    let dials = dials(&cluster, [(0, 1), (1, 0)]);
    println!("{dials:?} dials in {COUNTED:?}");
    // Four purposes, and after each attempt a look whether the process is gone.
    assert!(dials.iter().all(|&dials| dials <= 2 * 4 * DIALS_MAX), "{dials:?} dials");
    assert!(dials.iter().sum::<u64>() > 0, "nobody tried");
    cluster.network().heal();
    cluster.wait_ready(PATIENCE);
}
