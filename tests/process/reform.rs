//! A majority of the voters is lost for ever, and an operator makes a cluster of those who are left.

use std::thread;
use std::time::Duration;

use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::Reply;
use korum_tests::harness::{alone, wait};

use crate::copies::{holders, load_keys, value_of};

const COMMAND: &str = "KORUM REFORM-QUORUM THE-OTHERS-ARE-GONE-FOR-EVER";
/// What may pass until it is a refusal that stays, or done.
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn a_lost_quorum_is_re_formed_by_one_command_and_the_lost_nodes_stay_outside() {
    let _alone = alone();
    let mut cluster = Cluster::start(5);
    wait::until("five voters", PATIENCE, || {
        let voters = cluster.status(0)?["voters"].as_u64();
        if voters == Some(5) { Ok(()) } else { Err(format!("{voters:?} voters")) }
    });
    let count = 3_000;
    load_keys(&cluster, count);
    let held = holders(&cluster, count);
    // While there is a quorum nothing is re-formed, with the word or without.
    let refused = |reply: Reply, part: &str| {
        assert!(reply.error().is_some_and(|text| text.contains(part)), "{reply:?}");
    };
    refused(cluster.client(3).call(COMMAND).expect("a reply"), "nothing to re-form");
    refused(cluster.client(3).call("KORUM REFORM-QUORUM").expect("a reply"), "two clusters");

    for lost in 0..3 {
        cluster.kill(lost);
    }
    wait::until("the survivors have no quorum", LIMIT, || match cluster.status(3) {
        Err(_) => Ok(()),
        Ok(_) => Err("it serves".into()),
    });
    // Two operators ask at once, each at a survivor: they must not make two clusters. One of the survivors may know more
    // than the other, too: then that one is to be asked.
    let ask = |survivor: usize| {
        let mut connection = cluster.client(survivor);
        connection.patience(LIMIT).expect("a timeout");
        connection.call(COMMAND).expect("a reply")
    };
    let (mut rounds, mut refusals) = (0, Vec::new());
    let told = wait::until("the quorum is re-formed", LIMIT, || {
        rounds += 1;
        let replies = thread::scope(|scope| {
            let other = scope.spawn(|| ask(3 + rounds % 2));
            // At the same moment first; then one of them has its turn.
            thread::sleep(Duration::from_millis(3) * (rounds as u32 - 1));
            [ask(4 - rounds % 2), other.join().expect("it is answered")]
        });
        let (refused, done): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.error().is_some());
        refusals.extend(refused.into_iter().map(|reply| format!("{reply:?}")));
        match &done[..] {
            [] => Err(refusals.last().cloned().unwrap_or_default()),
            [done] => Ok(done.text()),
            both => panic!("re-formed twice: {both:?}"),
        }
    });
    println!("after {rounds} rounds, refused: {refusals:?}: {told}");

    // Both serve; what one of them held is there, what none held is gone, and nothing else.
    cluster.wait_ready(PATIENCE);
    let epoch = cluster.status(3).expect("it serves")["epoch"].as_u64().expect("a number");
    assert!(epoch > 1_000_000, "maps of the lost nodes have epochs of their own, and this has {epoch}");
    for survivor in [3, 4] {
        let mut client = cluster.client(survivor);
        client.patience(LIMIT).expect("a timeout");
        for (number, nodes) in held.iter().enumerate() {
            let name = format!("loaded:{number}");
            let found = client.call(&format!("GET {name}")).expect("GET");
            let kept = nodes.contains(&3) || nodes.contains(&4);
            let expected = if kept { Reply::Bulk(value_of(name.as_bytes())) } else { Reply::Null };
            assert_eq!(found, expected, "{name}, held by {nodes:?}");
        }
        assert!(client.call(&format!("SET after:{survivor} 1")).expect("SET").is_ok());
    }

    // Lost nodes that come back with their directories, two at once, are told so and end; with an empty one they join.
    cluster.launch_again(0, false);
    cluster.launch_again(1, false);
    for lost in [0, 1] {
        assert!(!cluster.wait_ended(lost, LIMIT), "node {lost} ends with an error");
    }
    cluster.launch_again(1, true);
    cluster.wait_answering(1);
    cluster.wait_ready(PATIENCE);
    let value = cluster.client(1).call("GET after:3").expect("GET");
    assert_eq!(value, Reply::from("1"));
}
