//! Clients: what they write and read, and what they make of the answers.
//!
//! For: keys of every kind on both ports, alone and in pipelines, following `MOVED`, over every connection's end; those
//! who only wait for something; transactions on a condition.
//! Not here: which commands there are and what they mean (`korum_tests::check`), the record (`history`), when clients
//! begin and end (`scenario`).
//! Next: `orders` is what clients are told, `call` a command under way, `quiet` what is done while nothing breaks, and
//! `noise` what nobody judges but by its copies.

mod call;
mod connection;
mod noise;
mod orders;
mod quiet;

use std::collections::BTreeMap;
use std::slice;
use std::time::Duration;

use bytes::BytesMut;
use korum_protocol::resp::{Reply as Answer, encode_request};
use korum_tests::check::{Bytes, Command};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use crate::history;
use connection::Connection;

pub use call::{Call, choose, take_in};
pub use noise::run as make_noise;
pub use orders::orders;
pub use quiet::{ask, fill, read_all};

/// `MOVED` answers that are followed for one command.
const MOVES_MAX: usize = 4;

/// What a client is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Habit {
    /// It writes and reads.
    Works,
    /// It waits for items and entries that others bring.
    Waits,
}

struct Client {
    number: usize,
    habit: Habit,
    chance: SmallRng,
    on_cluster_port: bool,
    connections: BTreeMap<String, Connection>,
    home: String,
    written: u64,
}

/// A client's life.
pub async fn run(number: usize, habit: Habit, seed: u64) {
    // Never sent to another thread: there is none.
    let mut life = Client {
        number,
        habit,
        chance: SmallRng::seed_from_u64(seed),
        on_cluster_port: number % 2 == 1,
        connections: BTreeMap::new(),
        home: String::new(),
        written: 0,
    };
    while !orders(|orders| orders.stop) {
        life.turn().await;
        let (least, most) = orders(|orders| orders.pause_ms);
        let pause = life.chance.random_range(least..=most);
        if pause > 0 {
            sleep(Duration::from_millis(pause)).await;
        }
    }
}

impl Client {
    async fn turn(&mut self) {
        if self.home.is_empty() || self.chance.random_range(0..50) == 0 {
            let ports = orders(|orders| {
                let ports = if self.on_cluster_port { &orders.cluster_ports } else { &orders.client_ports };
                ports.clone()
            });
            self.home = ports[self.chance.random_range(0..ports.len())].clone();
        }
        match self.habit {
            Habit::Works => {
                let count =
                    if self.chance.random_range(0..4) == 0 { self.chance.random_range(2..=5) } else { 1 };
                let chosen: Vec<_> =
                    (0..count).map(|_| choose(&mut self.chance, self.number, &mut self.written)).collect();
                match &chosen[0] {
                    (key, Command::Swap { value, .. }) => self.swap(key, value).await,
                    _ => self.pipeline(chosen).await,
                }
            }
            Habit::Waits => match call::choose_wait(&mut self.chance) {
                Some(chosen) => self.pipeline(vec![chosen]).await,
                None => sleep(Duration::from_millis(100)).await,
            },
        }
    }

    /// All of them at once, on one connection; those that are told to go elsewhere go there one by one.
    async fn pipeline(&mut self, chosen: Vec<(String, Command)>) {
        let home = self.home.clone();
        let Some(mut connection) = self.take(&home).await else {
            self.home.clear();
            return;
        };
        let mut bytes = BytesMut::new();
        // A swap begins with a reading, which has to be answered first.
        let chosen = chosen.into_iter().filter(|(_, command)| !matches!(command, Command::Swap { .. }));
        let calls: Vec<Call> =
            chosen.map(|(key, command)| Call::begin(self.number, &key, command, &mut bytes)).collect();
        if !connection.send(&bytes).await {
            return;
        }
        let mut moved = Vec::new();
        let mut is_whole = true;
        for call in calls {
            let Some(answers) = connection.replies(call.requests).await else {
                is_whole = false;
                break;
            };
            if let Some(target) = take_in(&call, &answers) {
                moved.push((call, target));
            }
        }
        if is_whole {
            self.connections.insert(home, connection);
        } else {
            self.home.clear();
        }
        for (call, target) in moved {
            self.follow(call, target).await;
        }
    }

    async fn take(&mut self, address: &str) -> Option<Connection> {
        match self.connections.remove(address) {
            Some(connection) => Some(connection),
            None => Connection::open(address).await,
        }
    }

    /// The same call where the answer said: it was not executed so far.
    async fn follow(&mut self, call: Call, mut target: String) {
        for _ in 0..MOVES_MAX {
            let Some(mut connection) = self.take(&target).await else { break };
            if !connection.send(&call.bytes()).await {
                return;
            }
            let Some(answers) = connection.replies(call.requests).await else { return };
            self.connections.insert(target, connection);
            match take_in(&call, &answers) {
                Some(next) => target = next,
                None => return,
            }
        }
        history::outcome(&call.key, call.place, None);
    }

    /// `WATCH`, a reading, and a transaction that writes unless somebody else wrote meanwhile.
    async fn swap(&mut self, key: &str, value: &Bytes) {
        let mut address = self.home.clone();
        for _ in 0..MOVES_MAX {
            let Some(mut connection) = self.take(&address).await else { return };
            let mut bytes = BytesMut::new();
            encode_request(&["WATCH", key], &mut bytes);
            let reading = Call::begin(self.number, key, Command::Get, &mut bytes);
            if !connection.send(&bytes).await {
                return;
            }
            let (Some(watched), Some(found)) = (connection.reply().await, connection.reply().await) else {
                return;
            };
            if let Some(target) = take_in(&reading, slice::from_ref(&found)) {
                history::outcome(key, reading.place, None);
                self.connections.insert(address, connection);
                address = target;
                continue;
            }
            let expected = match (watched, found) {
                (Answer::Simple(_), Answer::Bulk(found)) => Some(found[..].into()),
                (Answer::Simple(_), Answer::Null) => None,
                // With the connection goes what it watches.
                _ => return,
            };
            let mut bytes = BytesMut::new();
            let swap = Command::Swap { expected, value: value.clone() };
            let call = Call::begin(self.number, key, swap, &mut bytes);
            if !connection.send(&bytes).await {
                return;
            }
            let Some(answers) = connection.replies(call.requests).await else { return };
            self.connections.insert(address, connection);
            if take_in(&call, &answers).is_some() {
                history::outcome(key, call.place, None);
            }
            return;
        }
    }
}
