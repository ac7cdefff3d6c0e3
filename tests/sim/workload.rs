//! Clients: what they write and read, and what they make of the answers.
//!
//! For: keys of every kind on both ports, alone and in pipelines, following `MOVED`, over every connection's end.
//! Not here: the record (`history`), when clients begin and end (`scenario`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::BytesMut;
use korum_node::env::transport::TcpStream;
use korum_protocol::resp::{Reply as Answer, ReplyDecoder, encode_request};
use korum_tests::check::{Command, Condition, Reply};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::history;

/// Longest wait for an answer; longer than the nodes' own, so that some outcomes are told as unknown.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for a connection.
const CONNECT_WAIT: Duration = Duration::from_millis(600);
/// Length of the values that only fill.
const FILLING_BYTES: usize = 8 << 10;
/// `MOVED` answers that are followed for one command.
const MOVES_MAX: usize = 4;

/// What clients are told while they run.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Addresses (`host:port`) of all nodes' client ports.
    pub client_ports: Vec<String>,
    /// Addresses of all nodes' cluster ports.
    pub cluster_ports: Vec<String>,
    /// Time to stop.
    pub stop: bool,
    /// Answers that no node may give.
    pub nonsense: Vec<String>,
    /// Shortest and longest pause between two calls, milliseconds.
    pub pause_ms: (u64, u64),
    /// Number of keys,
    pub keys: usize,
    /// and of the groups that they stand in: keys of a group share a slot.
    pub groups: usize,
    /// Keys that only fill each group, so that its partition is streamed in more than one piece.
    pub filling: usize,
}

thread_local! {
    static ORDERS: RefCell<Orders> = RefCell::default();
}

/// Reads or changes the orders.
pub fn orders<T>(work: impl FnOnce(&mut Orders) -> T) -> T {
    ORDERS.with(|orders| work(&mut orders.borrow_mut()))
}

struct Connection {
    stream: TcpStream,
    input: BytesMut,
    decoder: ReplyDecoder,
}

impl Connection {
    async fn open(address: &str) -> Option<Self> {
        let stream = timeout(CONNECT_WAIT, TcpStream::connect(address)).await.ok()?.ok()?;
        Some(Self { stream, input: BytesMut::new(), decoder: ReplyDecoder::new() })
    }

    async fn reply(&mut self) -> Option<Answer> {
        let reply = async {
            loop {
                match self.decoder.decode(&mut self.input) {
                    Ok(Some(reply)) => return Some(reply),
                    Ok(None) => {}
                    Err(error) => {
                        orders(|orders| orders.nonsense.push(error.to_string()));
                        return None;
                    }
                }
                if self.stream.read_buf(&mut self.input).await.ok()? == 0 {
                    return None;
                }
            }
        };
        timeout(ANSWER_WAIT, reply).await.ok().flatten()
    }
}

/// A client's life.
pub async fn run(client: usize, seed: u64) {
    // Never sent to another thread: there is none.
    let mut life = Client {
        number: client,
        chance: SmallRng::seed_from_u64(seed),
        on_cluster_port: client % 2 == 1,
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

/// Reads every key once, where it may take as long as it has to.
pub async fn read_all(client: usize) {
    let keys = orders(|orders| orders.keys);
    let mut number = 0;
    let mut turn = 0;
    while number < keys {
        let ports = orders(|orders| orders.client_ports.clone());
        let address = &ports[turn % ports.len()];
        turn += 1;
        let call = Call { key: key(number), command: Command::Get, place: 0 };
        let call = Call { place: history::call(client, &call.key, Command::Get), ..call };
        let read = async {
            let mut connection = Connection::open(address).await?;
            let mut bytes = BytesMut::new();
            encode_request(&words(&call.key, &call.command), &mut bytes);
            connection.stream.write_all(&bytes).await.ok()?;
            connection.reply().await
        };
        match read.await {
            Some(Answer::Error(_)) | None => sleep(Duration::from_millis(100)).await,
            Some(answer) => {
                take_in(&call, &answer);
                number += 1;
            }
        }
    }
}

struct Client {
    number: usize,
    chance: SmallRng,
    on_cluster_port: bool,
    connections: BTreeMap<String, Connection>,
    home: String,
    written: u64,
}

/// A call under way.
pub struct Call {
    pub key: String,
    pub command: Command,
    /// Its place in the key's history.
    pub place: usize,
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
        let home = self.home.clone();
        let Some(mut connection) = self.take(&home).await else {
            self.home.clear();
            return;
        };
        let count = if self.chance.random_range(0..4) == 0 { self.chance.random_range(2..=5) } else { 1 };
        let mut calls: Vec<Call> = Vec::new();
        let mut bytes = BytesMut::new();
        for _ in 0..count {
            let (key, command) = choose(&mut self.chance, self.number, &mut self.written);
            encode_request(&words(&key, &command), &mut bytes);
            let place = history::call(self.number, &key, command.clone());
            calls.push(Call { key, command, place });
        }
        if connection.stream.write_all(&bytes).await.is_err() {
            return;
        }
        let mut moved = Vec::new();
        let mut is_whole = true;
        for call in calls {
            let Some(answer) = connection.reply().await else {
                is_whole = false;
                break;
            };
            if let Some(target) = take_in(&call, &answer) {
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
            let mut bytes = BytesMut::new();
            encode_request(&words(&call.key, &call.command), &mut bytes);
            if connection.stream.write_all(&bytes).await.is_err() {
                return;
            }
            let Some(answer) = connection.reply().await else { return };
            self.connections.insert(target, connection);
            match take_in(&call, &answer) {
                Some(next) => target = next,
                None => return,
            }
        }
        history::outcome(&call.key, call.place, None);
    }
}

/// A command by chance, for `client`; `written` counts what it writes, so that no two values are the same.
pub fn choose(chance: &mut SmallRng, client: usize, written: &mut u64) -> (String, Command) {
    let keys = orders(|orders| orders.keys);
    let number = chance.random_range(0..keys);
    *written += 1;
    let value = format!("{client}-{written}");
    let dice = chance.random_range(0..100);
    // The kind of a key follows from its number.
    let command = match number % 4 {
        0 => match dice {
            0..40 => Command::Get,
            40..80 => Command::Incr,
            80..90 => Command::Del,
            _ => Command::GetDel,
        },
        1 => match dice {
            0..45 => Command::Get,
            45..85 => Command::Append(value.as_bytes().into()),
            _ => Command::Del,
        },
        2 => match dice {
            0..40 => Command::Get,
            40..80 => {
                let expire = Duration::from_millis(chance.random_range(100..3000));
                set(&value, Condition::Always, false, Some(expire))
            }
            80..90 => Command::Expire(Duration::from_millis(chance.random_range(100..3000))),
            _ => set(&value, Condition::Missing, false, None),
        },
        _ => match dice {
            0..45 => Command::Get,
            45..70 => set(&value, Condition::Always, false, None),
            70..80 => set(&value, Condition::Missing, false, None),
            80..90 => set(&value, Condition::Existing, true, None),
            90..95 => Command::GetDel,
            _ => Command::Del,
        },
    };
    (key(number), command)
}

/// The name of a key.
pub fn key(number: usize) -> String {
    let groups = orders(|orders| orders.groups).max(1);
    format!("key:{{{}}}:{number}", number % groups)
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
                let is_sent = connection.stream.write_all(&bytes).await.is_ok();
                if !is_sent || !matches!(connection.reply().await, Some(Answer::Simple(_))) {
                    sleep(Duration::from_millis(20)).await;
                    break;
                }
                next += 1;
            }
        }
    }
}

fn set(value: &str, condition: Condition, get: bool, expire: Option<Duration>) -> Command {
    Command::Set { value: value.as_bytes().into(), condition, get, expire }
}

/// A command as it is sent.
pub fn words(key: &str, command: &Command) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut say = |word: &[u8]| words.push(word.to_vec());
    let milliseconds = |time: &Duration| time.as_millis().to_string().into_bytes();
    match command {
        Command::Get => [b"GET", key.as_bytes()].iter().for_each(|word| say(word)),
        Command::Set { value, condition, get, expire } => {
            say(b"SET");
            say(key.as_bytes());
            say(value);
            match condition {
                Condition::Always => {}
                Condition::Missing => say(b"NX"),
                Condition::Existing => say(b"XX"),
            }
            if *get {
                say(b"GET");
            }
            if let Some(time) = expire {
                say(b"PX");
                say(&milliseconds(time));
            }
        }
        Command::Incr => {
            say(b"INCR");
            say(key.as_bytes());
        }
        Command::Append(tail) => {
            say(b"APPEND");
            say(key.as_bytes());
            say(tail);
        }
        Command::Del => {
            say(b"DEL");
            say(key.as_bytes());
        }
        Command::GetDel => {
            say(b"GETDEL");
            say(key.as_bytes());
        }
        Command::Expire(time) => {
            say(b"PEXPIRE");
            say(key.as_bytes());
            say(&milliseconds(time));
        }
    }
    words
}

/// Records what an answer says; gives the address if it says that another node is to be asked.
pub fn take_in(call: &Call, answer: &Answer) -> Option<String> {
    let reply = match answer {
        Answer::Simple(text) if text == "OK" => Reply::Ok,
        Answer::Null => Reply::Nil,
        Answer::Bulk(value) => Reply::Value(value[..].into()),
        Answer::Integer(number) => Reply::Integer(*number),
        Answer::Error(text) => {
            let text = String::from_utf8_lossy(text).into_owned();
            let mut parts = text.split(' ');
            match parts.next() {
                Some("UNKNOWN") => return None,
                Some("MOVED") => return parts.nth(1).map(ToOwned::to_owned),
                Some("CLUSTERDOWN" | "TRYAGAIN" | "LOADING") => {
                    history::outcome(&call.key, call.place, None);
                    return None;
                }
                _ if text.starts_with("ERR value is not an integer") => Reply::NotInteger,
                _ => {
                    orders(|orders| orders.nonsense.push(format!("{} {}: {text}", call.command, call.key)));
                    return None;
                }
            }
        }
        other => {
            orders(|orders| orders.nonsense.push(format!("{} {}: {other:?}", call.command, call.key)));
            return None;
        }
    };
    history::outcome(&call.key, call.place, Some(reply));
    None
}

/// Sends one command to a node's client port and tells its answer as text.
pub async fn ask(address: String, words: Vec<String>) -> Result<String, String> {
    let mut connection = Connection::open(&address).await.ok_or("no connection")?;
    let mut bytes = BytesMut::new();
    encode_request(&words, &mut bytes);
    connection.stream.write_all(&bytes).await.map_err(|error| error.to_string())?;
    match connection.reply().await {
        Some(Answer::Error(text)) => Err(String::from_utf8_lossy(&text).into_owned()),
        Some(reply) => Ok(reply
            .as_bytes()
            .map_or_else(|| format!("{reply:?}"), |text| String::from_utf8_lossy(text).into_owned())),
        None => Err("no answer".to_owned()),
    }
}
