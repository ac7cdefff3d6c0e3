//! A short tour: `cargo run -p korum-client --example tour -- 127.0.0.1:6379`.

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::{Duration, Instant};

use korum_client::{Client, Error};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let seeds: Vec<String> = std::env::args().skip(1).collect();
    let client =
        Client::connect(if seeds.is_empty() { vec!["127.0.0.1:6379".into()] } else { seeds }).await?;
    println!("connected, the cluster map has epoch {}", client.epoch());

    client.set("tour:greeting", "hello").await?;
    client.expire("tour:greeting", Duration::from_secs(60)).await?;
    println!(
        "greeting: {:?}, lives {:?}",
        client.get("tour:greeting").await?,
        client.ttl("tour:greeting").await?
    );

    // Keys of all nodes: one write per node.
    let pairs: Vec<(String, String)> =
        (0..1_000).map(|n| (format!("tour:{n}"), format!("value {n}"))).collect();
    let keys: Vec<&String> = pairs.iter().map(|(key, _)| key).collect();
    let began = Instant::now();
    client.mset(&pairs).await?;
    let values = client.mget(&keys).await?;
    let right = values
        .iter()
        .zip(&pairs)
        .filter(|(value, (_, expected))| value.as_deref() == Some(expected.as_bytes()));
    println!("{} of 1000 values written and read in {:?}", right.count(), began.elapsed());

    // Many tasks share one connection per node.
    let began = Instant::now();
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                for _ in 0..100 {
                    client.incr("tour:visits", 1).await?;
                }
                Ok::<(), Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no task panics")?;
    }
    println!(
        "visits: {:?} after 10000 increments in {:?}",
        client.get("tour:visits").await?,
        began.elapsed()
    );

    // Each command of a pipeline succeeds or fails by itself.
    let answers = client
        .pipeline()
        .command(&["STRLEN", "tour:greeting"])
        .command(&["INCR", "tour:greeting"])
        .command(&["DBSIZE"])
        .send()
        .await;
    answers.iter().for_each(|answer| println!("{answer:?}"));

    println!(
        "{} keys deleted",
        client.del(&keys).await? + client.del(&["tour:greeting", "tour:visits"]).await?
    );
    println!("{:?} keys are left", client.query::<u64>(&["DBSIZE"]).await?);
    Ok(())
}
