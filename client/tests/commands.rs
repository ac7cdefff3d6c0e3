//! Typed methods, raw commands and pipelines against scripted nodes.

mod fake;

use std::time::Duration;

use fake::{Cluster, Mood};
use korum_client::{Client, ClientBuilder, Error, Reply, TimeToLive};

#[tokio::test]
async fn typed_methods_do_what_they_say() {
    let cluster = Cluster::start(3).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    assert_eq!(client.get("a").await.unwrap(), None);
    client.set("a", "1").await.unwrap();
    assert_eq!(client.get("a").await.unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(client.incr("a", 41).await.unwrap(), 42);
    assert_eq!(client.query::<i64>(&["GET", "a"]).await.unwrap(), 42);
    assert_eq!(client.ttl("a").await.unwrap(), TimeToLive::Forever);
    assert_eq!(client.ttl("nobody").await.unwrap(), TimeToLive::Missing);
    assert!(client.expire("a", Duration::from_secs(1)).await.unwrap());
    assert!(!client.expire("nobody", Duration::from_secs(1)).await.unwrap());
    assert_eq!(client.exists(&["a", "nobody", "a"]).await.unwrap(), 2);
    assert_eq!(client.del(&["a", "nobody"]).await.unwrap(), 1);
    assert_eq!(client.command(&["PING"]).await.unwrap(), Reply::Simple("PONG".into()));
}

#[tokio::test]
async fn many_keys_are_split_and_gathered_in_order() {
    let cluster = Cluster::start(3).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    let pairs: Vec<(String, String)> = (0..300).map(|n| (format!("k{n}"), format!("v{n}"))).collect();
    client.mset(&pairs).await.unwrap();
    let mut keys: Vec<String> = pairs.iter().map(|(key, _)| key.clone()).collect();
    keys.insert(7, "nobody".into());
    keys.push("k0".into());
    let values = client.mget(&keys).await.unwrap();
    for (key, value) in keys.iter().zip(values) {
        let expected = key.strip_prefix('k').map(|n| format!("v{n}"));
        assert_eq!(value.map(|value| String::from_utf8(value.to_vec()).unwrap()), expected, "{key}");
    }
    assert_eq!(client.del(&keys).await.unwrap(), 300);
    assert!(client.mget(&[] as &[&str]).await.unwrap().is_empty());
    // Right first time: nobody was redirected, so nobody asked for another map.
    assert_eq!(cluster.maps(), 1);
}

#[tokio::test]
async fn a_pipeline_answers_in_order_and_each_command_fails_alone() {
    let cluster = Cluster::start(3).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    let mut pipeline = client.pipeline();
    for number in 0..200 {
        pipeline = pipeline.command(&["INCRBY", &format!("k{}", number % 20), "1"]);
    }
    let pipeline = pipeline.command(&["SUBSCRIBE", "x"]).command(&["GETEX", "k1"]).command(&["GET", "k3"]);
    let answers = pipeline.send().await;
    assert_eq!(answers.len(), 203);
    for (number, answer) in answers[..200].iter().enumerate() {
        assert_eq!(answer.as_ref().unwrap(), &Reply::Integer(number as i64 / 20 + 1));
    }
    assert!(matches!(answers[200], Err(Error::Request(_))));
    assert_eq!(answers[201].as_ref().unwrap_err().prefix(), Some("ERR"));
    assert_eq!(answers[202].as_ref().unwrap(), &Reply::Bulk("10".into()));
}

#[tokio::test]
async fn concurrent_requests_share_one_connection_per_node_and_get_their_own_answers() {
    let cluster = Cluster::start(3).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    let tasks = (0..500).map(|number| {
        let client = client.clone();
        tokio::spawn(async move {
            let (key, value) = (format!("k{number}"), format!("v{number}"));
            client.set(&key, &value).await.unwrap();
            assert_eq!(client.get(&key).await.unwrap().as_deref(), Some(value.as_bytes()));
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    // One for requests; the one that fetched the first map was another.
    assert!(cluster.nodes.iter().all(|node| node.connections() <= 2));
}

#[tokio::test]
async fn a_pipeline_keeps_the_order_of_each_key_across_a_new_map() {
    let cluster = Cluster::start(3).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    cluster.shuffle();
    let mut pipeline = client.pipeline();
    for number in 0..100 {
        pipeline = pipeline.command(&["SET", &format!("k{}", number % 10), &number.to_string()]);
    }
    assert!(pipeline.send().await.into_iter().all(|answer| answer.is_ok()));
    for number in 0..10 {
        let value: i64 = client.query(&["GET", &format!("k{number}")]).await.unwrap();
        assert_eq!(value, 90 + number, "the last write of a key is the last that was asked for");
    }
}

#[tokio::test]
async fn server_errors_keep_their_prefix_and_are_not_repeated() {
    let cluster = Cluster::start(1).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    cluster.nodes[0].set(Mood::Refuse("WRONGTYPE Operation against a key holding the wrong kind of value"));
    let error = client.get("a").await.unwrap_err();
    assert_eq!(error.prefix(), Some("WRONGTYPE"));
    assert_eq!(cluster.nodes[0].count("GET"), 1);
}

#[tokio::test]
async fn keyless_commands_move_on_to_another_node() {
    let cluster = Cluster::start(3).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    for refusing in &cluster.nodes {
        refusing.set(Mood::Refuse("LOADING Korum is loading the dataset in memory"));
    }
    cluster.nodes[1].set(Mood::Refuse("CLUSTERDOWN The cluster is down"));
    cluster.nodes[0].set(Mood::Refuse("CLUSTERDOWN The cluster is down"));
    cluster.nodes[2].set(Mood::Serve);
    assert_eq!(client.command(&["PING"]).await.unwrap(), Reply::Simple("PONG".into()));
}

#[tokio::test]
async fn connect_says_what_it_tried() {
    let builder = ClientBuilder::new(["127.0.0.1:1"]).connect_deadline(Duration::from_millis(300));
    let error = builder.connect().await.unwrap_err();
    assert!(matches!(&error, Error::Connect { .. }));
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
    assert!(matches!(Client::connect(Vec::<String>::new()).await, Err(Error::Request(_))));
}
