//! A majority of the voters is lost for ever, and an operator makes a cluster of those who are left.

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
    // One of the survivors may know more than the other: then that one is to be asked.
    let mut replies = Vec::new();
    let told = wait::until("the quorum is re-formed", LIMIT, || {
        for survivor in [3, 4] {
            let mut connection = cluster.client(survivor);
            connection.patience(LIMIT).map_err(|error| error.to_string())?;
            let reply = connection.call(COMMAND).map_err(|error| error.to_string())?;
            if reply.error().is_none() {
                return Ok(reply.text());
            }
            replies.push(format!("{reply:?}"));
        }
        Err(replies.last().cloned().unwrap_or_default())
    });
    println!("after {} refusals: {told}", replies.len());

    // Both serve; what one of them held is there, what none held is gone, and nothing else.
    cluster.wait_ready(PATIENCE);
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

    // A lost node that comes back with its directory is told so and ends; with an empty one it joins.
    cluster.launch_again(0, false);
    assert!(!cluster.wait_ended(0, LIMIT), "it ends with an error");
    cluster.launch_again(1, true);
    cluster.wait_answering(1);
    cluster.wait_ready(PATIENCE);
    let value = cluster.client(1).call("GET after:3").expect("GET");
    assert_eq!(value, Reply::from("1"));
}
