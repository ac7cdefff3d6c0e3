//! What is done while nothing breaks: keys that fill, a last reading, a word with a node.

use std::time::Duration;

use bytes::BytesMut;
use korum_protocol::resp::{Reply, encode_request};
use tokio::time::sleep;

use super::call::{Call, take_in};
use super::connection::Connection;
use super::orders::{key, orders};
use korum_tests::check::{Answer, read};

/// Length of the values that only fill.
const FILLING_BYTES: usize = 8 << 10;

/// Reads every key once, where it may take as long as it has to.
pub async fn read_all(client: usize) {
    let kinds = orders(|orders| orders.kinds.clone());
    let mut number = 0;
    let mut turn = 0;
    while let Some(kind) = kinds.get(number) {
        let ports = orders(|orders| orders.client_ports.clone());
        let address = &ports[turn % ports.len()];
        turn += 1;
        let mut bytes = BytesMut::new();
        let call = Call::begin(client, &key(number), kind.read(), &mut bytes);
        let answers = async {
            let mut connection = Connection::open(address).await?;
            if !connection.send(&bytes).await {
                return None;
            }
            connection.replies(call.requests).await
        };
        match answers.await {
            Some(answers)
                if matches!(read(&call.command, &answers), Answer::Done(_) | Answer::Strange(_)) =>
            {
                take_in(&call, &answers);
                number += 1;
            }
            _ => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Fills all groups.
pub async fn fill() {
    let (groups, filling) = orders(|orders| (orders.groups, orders.filling));
    let value = vec![b'x'; FILLING_BYTES];
    for group in 0..groups {
        let mut next = 0;
        while next < filling {
            let ports = orders(|orders| orders.client_ports.clone());
            let Some(mut connection) = Connection::open(&ports[next % ports.len()]).await else { continue };
            while next < filling {
                let key = format!("fill:{{{group}}}:{next}");
                let mut bytes = BytesMut::new();
                encode_request(&[b"SET", key.as_bytes(), &value], &mut bytes);
                if !connection.send(&bytes).await
                    || !matches!(connection.reply().await, Some(Reply::Simple(_)))
                {
                    sleep(Duration::from_millis(20)).await;
                    break;
                }
                next += 1;
            }
        }
    }
}

/// Sends one command to a node's client port and tells its answer as text.
pub async fn ask(address: String, words: Vec<String>) -> Result<String, String> {
    let mut connection = Connection::open(&address).await.ok_or("no connection")?;
    let mut bytes = BytesMut::new();
    encode_request(&words, &mut bytes);
    if !connection.send(&bytes).await {
        return Err("not sent".to_owned());
    }
    match connection.reply().await {
        Some(Reply::Error(text)) => Err(String::from_utf8_lossy(&text).into_owned()),
        Some(reply) => Ok(reply
            .as_bytes()
            .map_or_else(|| format!("{reply:?}"), |text| String::from_utf8_lossy(text).into_owned())),
        None => Err("no answer".to_owned()),
    }
}
