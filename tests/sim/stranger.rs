//! Somebody who sends what no client and no node would.
//!
//! For: I10. Random bytes, requests and frames that are cut or changed, on every port, all the time.
//! Not here: what must not come of it (`invariants::i10_input`).

use std::time::Duration;

use bytes::BytesMut;
use korum_node::env::transport::TcpStream;
use korum_protocol::resp::encode_request;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::workload::orders;
use crate::world::member::PEER_PORT;

/// Longest input of one connection, bytes.
const INPUT_BYTES_MAX: usize = 600;
/// How long it listens to an answer.
const ANSWER_WAIT: Duration = Duration::from_millis(50);

/// A stranger's life.
pub async fn run(seed: u64) {
    let mut chance = SmallRng::seed_from_u64(seed);
    while !orders(|orders| orders.stop) {
        let ports = orders(|orders| {
            let hosts = orders.client_ports.iter().filter_map(|address| address.split(':').next());
            let peers: Vec<String> = hosts.map(|host| format!("{host}:{PEER_PORT}")).collect();
            [&orders.client_ports[..], &orders.cluster_ports[..], &peers[..]].concat()
        });
        let address = ports[chance.random_range(0..ports.len())].clone();
        let input = input(&mut chance);
        let talk = async {
            let mut stream = TcpStream::connect(&address).await?;
            stream.write_all(&input).await?;
            stream.read(&mut [0; 256]).await
        };
        // Whatever comes back, and when nothing does: the next one.
        let _ = timeout(ANSWER_WAIT, talk).await;
        sleep(Duration::from_millis(chance.random_range(1..80))).await;
    }
}

/// What it says.
fn input(chance: &mut SmallRng) -> Vec<u8> {
    let length = chance.random_range(1..INPUT_BYTES_MAX);
    let mut noise = |length: usize| -> Vec<u8> { (0..length).map(|_| chance.random()).collect() };
    let noise = noise(length);
    let mut bytes = BytesMut::new();
    match chance.random_range(0..4) {
        0 => bytes.extend_from_slice(&noise),
        1 => {
            // A frame of the peer port, as far as its length goes.
            bytes.extend_from_slice(&(length as u32).to_le_bytes());
            bytes.extend_from_slice(&noise);
        }
        2 => {
            let counts: [&[u8]; 5] =
                [b"*2147483647\r\n", b"*-1\r\n", b"*3\r\n$-5\r\n", b"$999999999\r\n", b"*1\r\n*1\r\n"];
            bytes.extend_from_slice(counts[chance.random_range(0..counts.len())]);
            bytes.extend_from_slice(&noise);
        }
        _ => {
            encode_request(&[b"SETRANGE".as_slice(), b"stranger", b"3", &noise], &mut bytes);
            encode_request(&[b"GETRANGE".as_slice(), b"stranger", b"0", b"-1"], &mut bytes);
            let changed = chance.random_range(0..bytes.len());
            bytes[changed] ^= 1 << chance.random_range(0..8);
        }
    }
    let cut = chance.random_range(1..=bytes.len());
    bytes.truncate(if chance.random_range(0..2) == 0 { cut } else { bytes.len() });
    bytes.to_vec()
}
