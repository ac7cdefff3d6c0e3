//! Scripts in a cluster: known to all nodes, run where their keys are, whole on every copy.

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::Reply;
use korum_tests::harness::wait;

const MOVE: &str = "local n = tonumber(ARGV[1]) redis.call('decrby', KEYS[1], n) redis.call('incrby', KEYS[2], n) \
                    return redis.call('mget', KEYS[1], KEYS[2])";

fn eval(cluster: &Cluster, index: usize, script: &[u8], is_digest: bool, keys: [&str; 2]) -> Reply {
    let name: &[u8] = if is_digest { b"EVALSHA" } else { b"EVAL" };
    let words = [name, script, b"2", keys[0].as_bytes(), keys[1].as_bytes(), b"3"];
    cluster.client(index).call_bytes(&words).expect("a reply")
}

#[test]
fn a_script_that_one_node_knows_runs_through_all() {
    let cluster = Cluster::start(3);
    for (round, tag) in ["a", "b", "c", "d"].iter().enumerate() {
        let (one, other) = (format!("{{{tag}}}one"), format!("{{{tag}}}other"));
        // Made known through one node only, by running it.
        let source = format!("{MOVE} -- {round}");
        let reply = eval(&cluster, round % 3, source.as_bytes(), false, [&one, &other]);
        assert_eq!(reply.items(), [Reply::from("-3"), Reply::from("3")]);
        let digest =
            cluster.client(0).call_bytes(&[b"SCRIPT", b"LOAD", source.as_bytes()]).expect("LOAD").text();
        for index in 0..3 {
            let reply = eval(&cluster, index, digest.as_bytes(), true, [&one, &other]);
            let moved = 3 * (index as i64 + 2);
            let (minus, plus) = ((-moved).to_string(), moved.to_string());
            assert_eq!(
                reply.items(),
                [Reply::from(minus.as_str()), Reply::from(plus.as_str())],
                "node {index}"
            );
        }
    }
    // Only by its digest, at a node that never saw it.
    let quiet = "return redis.call('incr', KEYS[1]) -- quiet";
    let reply = cluster.client(1).call_bytes(&[b"EVAL", quiet.as_bytes(), b"1", b"{q}n"]).expect("EVAL");
    assert_eq!(reply, Reply::Integer(1));
    let digest_of = [&b"EVAL"[..], b"return redis.sha1hex(ARGV[1])", b"0", quiet.as_bytes()];
    let sha = cluster.client(1).call_bytes(&digest_of).expect("EVAL").text();
    for (index, count) in [(2, 2), (0, 3)] {
        let mut client = cluster.client(index);
        assert_eq!(
            client.call(&format!("SCRIPT EXISTS {sha}")).expect("EXISTS").items(),
            [Reply::Integer(1)]
        );
        let reply = client.call(&format!("EVALSHA {sha} 1 {{q}}n")).expect("EVALSHA");
        assert_eq!(reply, Reply::Integer(count));
    }
    // FLUSH speaks for all.
    assert!(cluster.client(0).call("SCRIPT FLUSH").expect("FLUSH").is_ok());
    for index in 0..3 {
        let reply = cluster.client(index).call(&format!("EVALSHA {sha} 1 {{q}}n")).expect("EVALSHA");
        assert!(reply.error().is_some_and(|text| text.starts_with("NOSCRIPT")), "{reply:?}");
    }
}

#[test]
fn what_scripts_wrote_survives_their_node() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let keys = ["{k}one", "{k}other"];
    let victim = cluster.primary_of(keys[0]);
    let survivor = (victim + 1) % 3;
    let digest =
        cluster.client(victim).call_bytes(&[b"SCRIPT", b"LOAD", MOVE.as_bytes()]).expect("LOAD").text();
    for _ in 0..50 {
        assert_eq!(eval(&cluster, survivor, digest.as_bytes(), true, keys).items().len(), 2);
    }
    cluster.kill(victim);
    let reply = wait::until("scripts run at the heir", PATIENCE, || {
        let reply = eval(&cluster, survivor, digest.as_bytes(), true, keys);
        if reply.error().is_some() { Err(format!("{reply:?}")) } else { Ok(reply) }
    });
    let moved: i64 = reply.items()[1].text().parse().expect("a number");
    assert!(moved >= 153, "{reply:?}");
    assert_eq!(reply.items()[0].text(), (-moved).to_string());
}
