//! A node killed and started again at once, faster than anyone can notice: its emptiness must not spread.

use std::time::{Duration, Instant};

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::{alone, wait};

use crate::size;

#[test]
fn a_node_restarted_with_its_directory_serves_nothing_until_it_caught_up() {
    restart_at_once(false);
}

#[test]
fn a_node_restarted_with_an_empty_directory_serves_nothing_until_it_caught_up() {
    restart_at_once(true);
}

fn restart_at_once(empty: bool) {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let count = size(10_000, 100_000) as usize;
    load(&cluster, count);
    let victim = cluster.primary_of(&name(0));
    let other = (victim + 1) % 3;

    cluster.launch_again(victim, empty);
    // from the first moment on: whatever is answered for a key, it is never "there is no such key"
    let begin = Instant::now();
    let mut round = 0;
    wait::until("the node is back and whole", PATIENCE, || {
        for port in [cluster.nodes[other].client, cluster.nodes[victim].client, cluster.nodes[victim].cluster]
        {
            for number in (round % 7..count).step_by(count / 40) {
                let Ok(mut connection) = Connection::to(port) else { break };
                let Ok(reply) = connection.call(&format!("GET {}", name(number))) else { break };
                let good = reply == Reply::from(name(number).as_str()) || reply.error().is_some();
                assert!(
                    good,
                    "port {port}, {:?} after the restart: {} is {reply:?}",
                    begin.elapsed(),
                    name(number)
                );
            }
        }
        round += 1;
        cluster.ready()
    });
    eprintln!("whole again after {:?}", begin.elapsed());

    // and nothing was lost, whoever is asked
    for index in 0..3 {
        let mut connection = cluster.client(index);
        for number in 0..count {
            let reply = connection.call(&format!("GET {}", name(number))).expect("GET");
            assert_eq!(reply, Reply::from(name(number).as_str()), "asked at node {index}");
            if index > 0 && number > count / 10 {
                break;
            }
        }
        assert_eq!(connection.call("DBSIZE").expect("DBSIZE"), Reply::Integer(count as i64));
    }
}

fn name(number: usize) -> String {
    format!("empty:{number}")
}

fn load(cluster: &Cluster, count: usize) {
    let mut connection = cluster.client(0);
    connection.patience(Duration::from_secs(30)).expect("a timeout");
    let numbers: Vec<usize> = (0..count).collect();
    for part in numbers.chunks(1_000) {
        let commands: Vec<_> = part
            .iter()
            .map(|&number| vec![b"SET".to_vec(), name(number).into_bytes(), name(number).into_bytes()])
            .collect();
        assert!(connection.pipeline(&commands).expect("SET").iter().all(Reply::is_ok), "every key is taken");
    }
}
