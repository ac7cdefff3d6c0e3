//! Clients that use the Rust client.
//!
//! For: what its outcomes promise, and that it finds every key while nodes come and go.
//! Not here: which commands (`workload`), the record (`history`).

use std::time::Duration;

use bytes::BytesMut;
use korum_client::simulated::{Dialing, Stream, dial_by};
use korum_client::{ClientBuilder, Error, Reply};
use korum_node::env::transport::TcpStream;
use korum_tests::check::requests;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use crate::history;
use crate::workload::{Call, choose, orders, take_in};

/// Of so many commands one is followed by a new client.
const COMMANDS_PER_CLIENT: u32 = 200;

fn dial(address: String) -> Dialing {
    Box::pin(async move {
        let stream = TcpStream::connect(&address).await?;
        Ok(Box::new(stream) as Box<dyn Stream>)
    })
}

/// A client's life.
pub async fn run(number: usize, seed: u64) {
    dial_by(dial);
    let mut chance = SmallRng::seed_from_u64(seed);
    let mut written = 0;
    while !orders(|orders| orders.stop) {
        let seeds = orders(|orders| orders.client_ports.clone());
        let builder = ClientBuilder::new(seeds).connect_deadline(Duration::from_secs(2));
        let Ok(client) = builder.connect().await else { continue };
        while !orders(|orders| orders.stop) && chance.random_range(0..COMMANDS_PER_CLIENT) > 0 {
            let (key, command) = choose(&mut chance, number, &mut written);
            // It has no connection of its own to wait on, or to hold a transaction.
            if !command.is_plain() {
                continue;
            }
            let call = Call::begin(number, &key, command, &mut BytesMut::new());
            let answer = match client.command(&requests(&call.key, &call.command)[0]).await {
                Ok(reply) => Some(reply),
                Err(Error::Server(error)) => Some(Reply::Error(error.text().to_owned().into())),
                Err(error) if error.is_unknown_outcome() => None,
                Err(_) => {
                    history::outcome(&call.key, call.place, None);
                    None
                }
            };
            if answer.and_then(|answer| take_in(&call, &[answer])).is_some() {
                // It has followed as long as it had time.
                history::outcome(&call.key, call.place, None);
            }
            let (least, most) = orders(|orders| orders.pause_ms);
            sleep(Duration::from_millis(chance.random_range(least..=most))).await;
        }
    }
}
