//! The Rust client against real nodes, one of which is killed meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use korum_client::{Client, ClientBuilder, Reply, TimeToLive};
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::{alone, wait};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

fn seeds(cluster: &Cluster) -> Vec<String> {
    // One that nobody listens on is passed over.
    let nodes = cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.client));
    std::iter::once("127.0.0.1:1".to_owned()).chain(nodes).collect()
}

#[test]
fn the_client_finds_every_key() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    runtime().block_on(async {
        let client = Client::connect(seeds(&cluster)).await.expect("a seed answers");
        client.set("greeting", "hello").await.expect("SET");
        assert_eq!(client.get("greeting").await.expect("GET").as_deref(), Some(&b"hello"[..]));
        let pairs: Vec<(String, String)> = (0..500).map(|n| (format!("key:{n}"), n.to_string())).collect();
        client.mset(&pairs).await.expect("MSET");
        let keys: Vec<&String> = pairs.iter().map(|(key, _)| key).collect();
        let values = client.mget(&keys).await.expect("MGET");
        assert!(values.iter().zip(&pairs).all(|(got, (_, set))| got.as_deref() == Some(set.as_bytes())));
        assert_eq!(client.exists(&keys).await.expect("EXISTS"), 500);
        for expected in 1..=10 {
            assert_eq!(client.incr("counter", 1).await.expect("INCR"), expected);
        }
        assert!(client.expire("counter", Duration::from_secs(100)).await.expect("EXPIRE"));
        let left = client.ttl("counter").await.expect("TTL");
        assert!(matches!(left, TimeToLive::Expires(left) if left > Duration::from_secs(90)), "{left:?}");
        let mut pipeline = client.pipeline();
        for number in 0..500 {
            pipeline = pipeline.command(&["GET", &format!("key:{number}")]);
        }
        let replies = pipeline.send().await;
        for (number, reply) in replies.iter().enumerate() {
            let Ok(Reply::Bulk(value)) = reply else { panic!("{reply:?}") };
            assert_eq!(value, number.to_string().as_bytes());
        }
        let length: u64 = client.query(&["STRLEN", "greeting"]).await.expect("STRLEN");
        assert_eq!(length, 5);
        let wrong = client.command(&["INCR", "greeting"]).await.expect_err("not a number");
        assert_eq!(wrong.prefix(), Some("ERR"));
        assert_eq!(client.del(&keys).await.expect("DEL"), 500);
    });
}

#[test]
fn the_client_keeps_what_was_acknowledged_when_a_node_is_killed() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let (runtime, seeds) = (runtime(), seeds(&cluster));
    let client =
        runtime.block_on(ClientBuilder::new(seeds).request_deadline(Duration::from_secs(20)).connect());
    let client = client.expect("a seed answers");
    let (count, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writer = {
        let (client, count, stop) = (client.clone(), Arc::clone(&count), Arc::clone(&stop));
        runtime.spawn(async move {
            let (mut acknowledged, mut unknown) = (0u64, 0u64);
            let mut longest = Duration::ZERO;
            while !stop.load(Ordering::Relaxed) {
                let start = Instant::now();
                let (key, value) = (format!("key:{}", acknowledged % 1000), acknowledged.to_string());
                match client.set(&key, &value).await {
                    Ok(()) => acknowledged += 1,
                    Err(error) if error.is_unknown_outcome() => unknown += 1,
                    Err(error) => panic!("the client gave up: {error}"),
                }
                longest = longest.max(start.elapsed());
                count.store(acknowledged, Ordering::Relaxed);
            }
            (acknowledged, unknown, longest)
        })
    };
    let wait_for = |more: u64| {
        let goal = count.load(Ordering::Relaxed) + more;
        wait::until("acknowledgements", PATIENCE, || match count.load(Ordering::Relaxed) {
            now if now >= goal => Ok(()),
            now => Err(format!("{now} of {goal}")),
        });
    };
    wait_for(1_000);
    cluster.kill(1);
    wait_for(2_000);
    stop.store(true, Ordering::Relaxed);
    let (acknowledged, unknown, longest) = runtime.block_on(writer).expect("the writer ends");
    println!("{acknowledged} acknowledged, {unknown} unknown, longest wait {longest:?}");
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    runtime.block_on(async {
        for number in acknowledged.saturating_sub(1000)..acknowledged {
            let value = client.get(&format!("key:{}", number % 1000)).await.expect("GET").expect("a value");
            let value: u64 = String::from_utf8_lossy(&value).parse().expect("a number");
            // A write of unknown outcome is repeated with the same number by the next round.
            assert!(value >= number, "acknowledged {number}, found {value}");
        }
    });
}
