//! The `fred` crate, unchanged, against three nodes: as a client of one server on the client port, as one of a cluster
//! on the cluster port.
//!
//! Only with `--features redis-crate`: it brings dependencies that nothing else needs.

use std::time::Duration;

use fred::prelude::*;
use fred::types::RespVersion;
use korum_tests::harness::cluster::{Cluster, PATIENCE};

async fn open(url: &str, version: RespVersion) -> Client {
    let mut config = Config::from_url(url).expect("a configuration");
    config.version = version;
    let client = Builder::from_config(config)
        .with_performance_config(|it| it.default_command_timeout = PATIENCE)
        .build()
        .expect("a client");
    client.init().await.expect("a connection");
    client
}

/// What works on both ports.
async fn common(client: &Client, other: &Client, name: &str) {
    // single keys on all nodes, also many under way at once
    for number in 0..200 {
        let () = client.set(format!("{name}:{number}"), number, None, None, false).await.expect("SET");
    }
    let reads = (0..200).map(|number| other.get::<i64, _>(format!("{name}:{number}")));
    for (number, read) in reads.enumerate() {
        assert_eq!(read.await.expect("GET"), number as i64);
    }
    let nothing: Option<String> = client.get("nothing").await.expect("GET");
    assert_eq!(nothing, None);
    let key = format!("{{{name}}}ttl");
    let () =
        client.set(&key, "x", Some(Expiration::EX(100)), Some(SetOptions::NX), false).await.expect("SET");
    let left: i64 = other.ttl(&key).await.expect("TTL");
    assert!((1..=100).contains(&left), "{left}");

    // types
    let key = format!("{{{name}}}hash");
    let () = client.hset(&key, [("a", 1), ("b", 2)]).await.expect("HSET");
    let all: std::collections::HashMap<String, i64> = other.hgetall(&key).await.expect("HGETALL");
    assert_eq!((all.len(), all["b"]), (2, 2));
    let key = format!("{{{name}}}scores");
    let _: i64 =
        client.zadd(&key, None, None, false, false, vec![(1.5, "a"), (2.5, "b")]).await.expect("ZADD");
    let score: f64 = other.zscore(&key, "b").await.expect("ZSCORE");
    assert!((score - 2.5).abs() < f64::EPSILON);

    // one slot: a pipeline, a transaction, a script
    let key = format!("{{{name}}}count");
    let pipeline = client.pipeline();
    let () = pipeline.set(&key, 1, None, None, false).await.expect("queued");
    let () = pipeline.incr_by(&key, 41).await.expect("queued");
    let replies: (String, i64) = pipeline.all().await.expect("a pipeline");
    assert_eq!(replies, ("OK".into(), 42));
    let transaction = client.multi();
    let () = transaction.incr(&key).await.expect("queued");
    let () = transaction.get(&key).await.expect("queued");
    let replies: (i64, i64) = transaction.exec(true).await.expect("EXEC");
    assert_eq!(replies, (43, 43));
    let script = "return redis.call('INCRBY', KEYS[1], ARGV[1])";
    let counted: i64 = client.eval(script, vec![key.clone()], vec![7]).await.expect("EVAL");
    let hash: String = client.script_load(script).await.expect("SCRIPT LOAD");
    let again: i64 = other.evalsha(hash, vec![key.clone()], vec![1]).await.expect("EVALSHA");
    assert_eq!((counted, again), (50, 51));

    // errors keep their text
    let () = client.set(&key, "text", None, None, false).await.expect("SET");
    let error = client.incr::<i64, _>(&key).await.expect_err("not a number");
    assert!(error.details().contains("not an integer"), "{error:?}");

    // commands that wait, on a connection of their own
    let (queue, waiting) = (format!("{{{name}}}queue"), client.clone_new());
    waiting.init().await.expect("a connection");
    let taken = tokio::spawn({
        let (queue, waiting) = (queue.clone(), waiting.clone());
        async move { waiting.blpop::<(String, String), _>(vec![queue.clone(), format!("{queue}2")], 20.0).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let _: i64 = other.rpush(&queue, "item").await.expect("RPUSH");
    assert_eq!(taken.await.expect("no panic").expect("BLPOP"), (queue, "item".into()));
    waiting.quit().await.expect("QUIT");

    // messages
    let listener = client.clone_new();
    listener.init().await.expect("a connection");
    let mut messages = listener.message_rx();
    listener.subscribe(name).await.expect("SUBSCRIBE");
    // it does not wait until the server knows of the subscription
    let hello = "hello";
    loop {
        let () = other.publish(name, hello).await.expect("PUBLISH");
        if tokio::time::timeout(Duration::from_millis(100), messages.recv()).await.is_ok() {
            break;
        }
    }
    for number in 0..3 {
        let () = other.publish(name, number).await.expect("PUBLISH");
    }
    for number in 0..3 {
        let message = loop {
            let message = tokio::time::timeout(PATIENCE, messages.recv()).await.expect("in time");
            let message = message.expect("a message");
            if message.value.as_str().as_deref() != Some(hello) {
                break message;
            }
        };
        assert_eq!(message.value.as_i64(), Some(number));
    }
    listener.quit().await.expect("QUIT");
}

#[tokio::test]
async fn it_works_as_a_client_of_one_server_and_as_one_of_a_cluster() {
    let cluster = Cluster::start_with(3, &["--cross-slot-transactions"]);
    for version in [RespVersion::RESP2, RespVersion::RESP3] {
        let url = |index: usize| format!("redis://127.0.0.1:{}", cluster.nodes[index].client);
        let (client, other) = (open(&url(0), version.clone()).await, open(&url(1), version.clone()).await);
        common(&client, &other, "one").await;
        // keys of several slots, which a client of a cluster would not send
        let pairs: Vec<(String, i64)> = (0..50).map(|number| (format!("many:{number}"), number)).collect();
        let keys: Vec<String> = pairs.iter().map(|(key, _)| key.clone()).collect();
        client.mset(pairs).await.expect("MSET");
        let found: Vec<i64> = other.mget(keys.clone()).await.expect("MGET");
        assert_eq!(found, (0..50).collect::<Vec<_>>());
        let transaction = client.multi();
        for key in &keys {
            let () = transaction.incr(key).await.expect("queued");
        }
        let found: Vec<i64> = transaction.exec(true).await.expect("EXEC");
        assert_eq!(found, (1..51).collect::<Vec<_>>());
        let deleted: i64 = other.del(keys).await.expect("DEL");
        assert_eq!(deleted, 50);
        client.quit().await.expect("QUIT");
        other.quit().await.expect("QUIT");

        let url = format!("redis-cluster://127.0.0.1:{}", cluster.nodes[2].cluster);
        let (client, other) = (open(&url, version.clone()).await, open(&url, version).await);
        common(&client, &other, "cluster").await;
        client.quit().await.expect("QUIT");
        other.quit().await.expect("QUIT");
        cluster.client(0).call("FLUSHALL").expect("FLUSHALL");
    }
}
