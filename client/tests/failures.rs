//! What a client does when nodes redirect, stall, close or vanish.

mod fake;

use std::time::Duration;

use fake::{Cluster, Mood, until};
use korum_client::{Client, ClientBuilder, Epoch, Error};
use tokio::time::Instant;

fn quick(cluster: &Cluster) -> ClientBuilder {
    ClientBuilder::new(cluster.seeds())
        .request_deadline(Duration::from_millis(1_500))
        .attempt_deadline(Duration::from_millis(300))
        .overdue_grace(Duration::from_millis(200))
}

async fn two_hundred_writes(client: &Client) -> Vec<Result<(), Error>> {
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { client.set(format!("k{number}"), "v").await })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

#[tokio::test]
async fn two_hundred_redirected_requests_fetch_one_map() {
    let cluster = Cluster::start(3).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    let before = cluster.maps();
    cluster.shuffle();
    assert!(two_hundred_writes(&client).await.iter().all(Result::is_ok));
    assert_eq!(client.epoch(), Epoch(2));
    // One round; a machine that stalls for a moment may be asked once more.
    assert!((1..=2).contains(&(cluster.maps() - before)));
}

#[tokio::test]
async fn without_a_newer_map_at_most_five_requests_a_second_ask_for_one() {
    let cluster = Cluster::start(3).await;
    let client = quick(&cluster).connect().await.unwrap();
    cluster.nodes.iter().for_each(|node| node.set(Mood::Refuse("CLUSTERDOWN The cluster is down")));
    let before = cluster.maps();
    let began = Instant::now();
    for result in two_hundred_writes(&client).await {
        let error = result.unwrap_err();
        assert!(matches!(&error, Error::Unavailable { attempts: 2.., .. }), "{error}");
        assert!(error.to_string().contains("CLUSTERDOWN"), "{error}");
    }
    let seconds = began.elapsed().as_secs_f64();
    let asked = cluster.maps() - before;
    assert!(asked >= 2 && asked as f64 <= 5.0 * (seconds + 1.0), "{asked} in {seconds} s");
}

#[tokio::test]
async fn a_lost_answer_is_unknown_for_a_write_and_repeated_for_a_read() {
    let cluster = Cluster::start(2).await;
    let client = quick(&cluster).connect().await.unwrap();
    let node = cluster.nodes[0].clone();
    let key = cluster.key_of(node.id);
    client.set(&key, "v").await.unwrap();

    node.set(Mood::Close);
    let error = client.set(&key, "w").await.unwrap_err();
    assert!(matches!(&error, Error::UnknownOutcome { .. }), "{error}");
    assert_eq!(node.count("SET"), 2, "it was not sent again");

    let heal = async {
        until("the read was tried", || node.count("GET") >= 1).await;
        node.set(Mood::Serve);
    };
    let (value, ()) = tokio::join!(client.get(&key), heal);
    assert_eq!(value.unwrap().as_deref(), Some(&b"v"[..]));
    assert!(node.count("GET") >= 2);
}

#[tokio::test]
async fn a_node_that_refuses_connections_makes_nothing_unknown() {
    let cluster = Cluster::start(1).await;
    let client = quick(&cluster).connect().await.unwrap();
    // Nothing listens there.
    cluster.change(|map| map.nodes.values_mut().for_each(|node| node.addresses.cluster = 1));
    let error = quick(&cluster).connect().await.unwrap().set("k", "v").await.unwrap_err();
    assert!(matches!(&error, Error::Unavailable { .. }), "{error}");
    client.set("k", "v").await.unwrap();
}

#[tokio::test]
async fn a_stalled_node_delays_nobody_else() {
    let cluster = Cluster::start(3).await;
    let client = quick(&cluster).connect().await.unwrap();
    let keys: Vec<String> = cluster.nodes.iter().map(|node| cluster.key_of(node.id)).collect();
    for key in &keys {
        client.set(key, "v").await.unwrap();
    }
    cluster.nodes[0].set(Mood::Stall);
    let began = Instant::now();
    let waiting: Vec<_> = (0..100)
        .map(|_| {
            let (client, key) = (client.clone(), keys[0].clone());
            tokio::spawn(async move { client.set(key, "w").await })
        })
        .collect();
    let mut waits = Vec::new();
    for _ in 0..200 {
        for key in &keys[1..] {
            let began = Instant::now();
            client.get(key).await.unwrap();
            waits.push(began.elapsed());
        }
    }
    waits.sort();
    // Whoever waited for the stalled node would have waited for an attempt's deadline at least.
    let p99 = waits[waits.len() * 99 / 100];
    assert!(p99 < Duration::from_millis(250), "{p99:?}");
    for task in waiting {
        let error = task.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::UnknownOutcome { .. } | Error::Unavailable { .. }), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_stalled_connection_is_closed_and_the_node_is_used_again_when_it_recovers() {
    let cluster = Cluster::start(1).await;
    let client = quick(&cluster).connect().await.unwrap();
    let node = &cluster.nodes[0];
    client.set("k", "v").await.unwrap();
    node.set(Mood::Stall);
    let error = client.get("k").await.unwrap_err();
    assert!(matches!(&error, Error::Unavailable { .. }), "a read has no unknown outcome: {error}");
    node.set(Mood::Serve);
    assert_eq!(client.get("k").await.unwrap().as_deref(), Some(&b"v"[..]));
}

#[tokio::test]
async fn reads_move_on_as_soon_as_the_map_says_that_their_node_is_down() {
    let cluster = Cluster::start(3).await;
    // With deadlines this long only the map can help.
    let builder = ClientBuilder::new(cluster.seeds()).attempt_deadline(Duration::from_secs(5));
    let client = builder.connect().await.unwrap();
    let node = cluster.nodes[0].clone();
    let key = cluster.key_of(node.id);
    client.get(&key).await.unwrap();
    node.set(Mood::Stall);
    let began = Instant::now();
    let fail = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cluster.mark_down(node.id);
    };
    let (read, write, ()) = tokio::join!(client.get(&key), client.set(&key, "w"), fail);
    assert_eq!(read.unwrap(), None);
    assert!(matches!(write, Err(Error::UnknownOutcome { .. })));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    client.set(&key, "x").await.unwrap();
}

#[tokio::test]
async fn a_request_that_was_dropped_leaves_the_answers_of_others_alone() {
    let cluster = Cluster::start(1).await;
    let client = Client::connect(cluster.seeds()).await.unwrap();
    for number in 0..200 {
        client.set(format!("k{number}"), format!("v{number}")).await.unwrap();
    }
    for number in 0..200 {
        let (dropped, key) = (format!("k{}", (number + 1) % 200), format!("k{number}"));
        let read = tokio::spawn({
            let client = client.clone();
            async move { client.get(dropped).await }
        });
        for _ in 0..number % 4 {
            tokio::task::yield_now().await;
        }
        read.abort();
        assert_eq!(client.get(&key).await.unwrap().unwrap(), format!("v{number}"));
    }
}

#[tokio::test]
async fn an_older_map_never_replaces_a_newer_one() {
    let cluster = Cluster::start(3).await;
    let client = quick(&cluster).refresh_interval(Duration::from_millis(100)).connect().await.unwrap();
    cluster.change(|_| {});
    until("the newer map", || client.epoch() == Epoch(2)).await;
    cluster.change(|map| map.epoch = Epoch(1));
    let before = cluster.maps();
    until("asked again", || cluster.maps() > before + 1).await;
    assert_eq!(client.epoch(), Epoch(2));
}

#[tokio::test]
async fn a_client_finds_the_cluster_again_through_its_seeds() {
    let cluster = Cluster::start(2).await;
    let ports: Vec<u16> = cluster.nodes.iter().map(|node| node.port).collect();
    let move_to = |ports: Vec<u16>| {
        cluster.change(|map| {
            for (node, port) in map.nodes.values_mut().zip(ports) {
                (node.addresses.client, node.addresses.cluster) = (port, port);
            }
        });
    };
    // The map that this client holds leads nowhere; only the seeds do.
    move_to(vec![1, 1]);
    let client = quick(&cluster).request_deadline(Duration::from_secs(5)).connect().await.unwrap();
    assert_eq!(client.epoch(), Epoch(2));
    move_to(ports);
    client.set("k", "v").await.unwrap();
    assert_eq!(client.epoch(), Epoch(3));
}

#[tokio::test]
async fn a_map_of_another_cluster_is_refused() {
    let cluster = Cluster::start(2).await;
    let client = quick(&cluster).refresh_interval(Duration::from_millis(100)).connect().await.unwrap();
    cluster.change(|map| map.cluster_id = korum_protocol::id::ClusterId(2));
    let before = cluster.maps();
    until("asked", || cluster.maps() > before + 1).await;
    assert_eq!(client.epoch(), Epoch(1));
}

#[tokio::test]
async fn a_refused_handshake_is_told_at_once_with_its_reason() {
    let cluster = Cluster::start(1).await;
    let client = quick(&cluster).connect().await.unwrap();
    cluster.nodes[0].set(Mood::Guard);
    let began = Instant::now();
    let error = client.set("k", "v").await.unwrap_err();
    assert!(matches!(&error, Error::Handshake(_)), "{error}");
    assert!(error.to_string().contains("NOAUTH"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(1));
}
