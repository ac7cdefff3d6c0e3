//! The `redis` crate with `cluster-async`, unchanged, against three nodes.
//!
//! Only with `--features redis-crate`: it brings many dependencies that nothing else needs.
//! `KORUM_TEST_CLUSTER=HOST:PORT` points it at a cluster that runs already.

use std::collections::HashMap;

use korum_tests::harness::cluster::Cluster;
use redis::AsyncCommands;
use redis::cluster::ClusterClient;

#[tokio::test]
async fn the_async_cluster_client_works() {
    let (_cluster, address) = match std::env::var("KORUM_TEST_CLUSTER") {
        Ok(address) => (None, address),
        Err(_) => {
            let cluster = Cluster::start(3);
            let address = format!("127.0.0.1:{}", cluster.nodes[0].cluster);
            (Some(cluster), address)
        }
    };
    for protocol in ["resp2", "resp3"] {
        let client =
            ClusterClient::new([format!("redis://{address}/?protocol={protocol}")]).expect("a client");
        let mut connection = client.get_async_connection().await.expect("a connection to the cluster");

        // single keys on all nodes
        for number in 0..300 {
            let (): () = connection.set(format!("crate:{number}"), number).await.expect("SET");
        }
        for number in 0..300 {
            let found: i64 = connection.get(format!("crate:{number}")).await.expect("GET");
            assert_eq!(found, number);
        }
        let nothing: Option<String> = connection.get("crate:nothing").await.expect("GET");
        assert_eq!(nothing, None);

        // the client splits these by slot
        let pairs: Vec<(String, i64)> =
            (0..100).map(|number| (format!("crate:many:{number}"), number)).collect();
        let (): () = connection.mset(&pairs).await.expect("MSET");
        let keys: Vec<&String> = pairs.iter().map(|(key, _)| key).collect();
        let found: Vec<i64> = connection.mget(&keys).await.expect("MGET");
        assert_eq!(found, (0..100).collect::<Vec<_>>());
        let deleted: i64 = connection.del(&keys).await.expect("DEL");
        assert_eq!(deleted, 100);

        // a pipeline within one slot
        let mut pipeline = redis::pipe();
        pipeline.set("{crate}a", 1).ignore().incr("{crate}a", 41).get("{crate}a");
        let (counted, read): (i64, i64) = pipeline.query_async(&mut connection).await.expect("a pipeline");
        assert_eq!((counted, read), (42, 42));

        // errors keep their kinds
        let (): () = connection.set("crate:text", "text").await.expect("SET");
        let error = connection.incr::<_, _, i64>("crate:text", 1).await.expect_err("not a number");
        assert_eq!(error.code(), Some("ERR"), "{error}");

        // what is asked of all nodes
        let size: i64 = connection_dbsize(&mut connection).await;
        assert!(size >= 301, "DBSIZE over all primaries: {size}");
        let info: HashMap<String, redis::InfoDict> = info_of_all(&mut connection).await;
        assert!(!info.is_empty());
    }
}

async fn connection_dbsize(connection: &mut redis::cluster_async::ClusterConnection) -> i64 {
    redis::cmd("DBSIZE").query_async(connection).await.expect("DBSIZE")
}

async fn info_of_all(
    connection: &mut redis::cluster_async::ClusterConnection,
) -> HashMap<String, redis::InfoDict> {
    redis::cmd("INFO").query_async(connection).await.expect("INFO")
}
