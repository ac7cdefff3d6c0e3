//! Somebody who calls everything that changes a value, on keys of his own.
//!
//! For: I11 and the equality of all copies in the end, over all types: whatever a command does by chance, by rank or by
//! the moment, its copies must do the same.
//! Not here: what the answers should be (`tests/wire/py/differential.py` asks Redis).

use std::time::Duration;

use bytes::BytesMut;
use korum_protocol::resp::{Reply, encode_request};
use rand::RngExt;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::time::sleep;

use super::connection::Connection;
use super::orders::orders;

/// Commands, by what their keys hold. `K` and `L` are keys of one slot, `V` a text, `I` a small number.
const COMMANDS: [(&str, &[&str]); 9] = [
    (
        "text",
        &[
            "SET K V PX 900",
            "SETRANGE K I V",
            "INCRBYFLOAT L 0.1",
            "GETEX K PX 700",
            "SETBIT K I 1",
            "MSETNX K V L 1",
            "BITFIELD L SET u8 I 200 INCRBY i5 I 3",
            "DEL K L",
            "COPY K L REPLACE",
            "RENAME K L",
            "PERSIST K",
        ],
    ),
    (
        "hash",
        &[
            "HSET K f V g I",
            "HSETNX K V I",
            "HINCRBYFLOAT L n 0.5",
            "HDEL K f g",
            "HEXPIRE K 1 FIELDS 2 f g",
            "HPERSIST K FIELDS 1 f",
            "HSET K V V",
            "HINCRBY L n I",
            "COPY K L REPLACE",
            "EXPIRE L 1",
        ],
    ),
    (
        "list",
        &[
            "RPUSH K V I V",
            "LPUSH K V",
            "LINSERT K BEFORE I V",
            "LREM K I V",
            "LTRIM K 0 7",
            "LSET K 0 V",
            "LMPOP 2 K L LEFT COUNT 2",
            "RPOPLPUSH K L",
            "LMOVE L K RIGHT LEFT",
            "SORT K ALPHA STORE L",
            "BLPOP K L 0.01",
            "PEXPIRE L 800",
        ],
    ),
    (
        "set",
        &[
            "SADD K V I",
            "SADD L I",
            "SPOP K",
            "SPOP L 2",
            "SMOVE K L I",
            "SUNIONSTORE L K L",
            "SDIFFSTORE L L K",
            "SREM K I V",
            "SINTERSTORE L K L",
            "RENAME L K",
        ],
    ),
    (
        "sorted",
        &[
            "ZADD K I V 2 I",
            "ZADD K GT CH I two 3 V",
            "ZINCRBY K 0.5 V",
            "ZREMRANGEBYRANK K 2 4",
            "ZREMRANGEBYSCORE K 1 2",
            "ZPOPMAX K",
            "ZUNIONSTORE L 2 K L",
            "ZRANGESTORE L K 0 3",
            "ZMPOP 1 K MAX COUNT 2",
            "GEOADD L 13.3 38.1 V 15.0 37.5 I",
            "GEOSEARCHSTORE L L FROMLONLAT 15 37 BYRADIUS 200 km",
            "BZPOPMAX K 0.01",
        ],
    ),
    (
        "stream",
        &[
            "XADD K * f V",
            "XADD K MAXLEN ~ 20 * f V g I",
            "XGROUP CREATE K one $ MKSTREAM",
            "XREADGROUP GROUP one me COUNT 2 STREAMS K >",
            "XREADGROUP GROUP one you BLOCK 10 STREAMS K >",
            "XAUTOCLAIM K one you 0 0 COUNT 1",
            "XTRIM K MAXLEN 12",
            "XADD K NOMKSTREAM * f V",
            "XGROUP DELCONSUMER K one you",
            "XCLAIM K one me 0 0-1 JUSTID",
            "XGROUP SETID K one 0",
        ],
    ),
    ("sketch", &["PFADD K V I", "PFADD L V", "PFMERGE L K", "PFCOUNT K", "DEL L"]),
    ("bits", &["SETBIT K I 1", "BITOP XOR L K L", "BITOP NOT L K", "GETDEL L", "APPEND K V"]),
    (
        "any",
        &[
            "SET K V",
            "RPUSH K V",
            "SADD K V",
            "DEL K",
            "COPY K L REPLACE",
            "RENAMENX K L",
            "EXPIRE K 1",
            "ZADD K I V",
            "HSET L f V",
            "EVAL redis.call('SADD',KEYS[1],ARGV[1],2,3);return_redis.call('SPOP',KEYS[1]) 1 K V",
            "UNLINK L",
        ],
    ),
];
/// Keys of each kind in a group.
const KEYS: u32 = 3;
/// What may be said of a command by which it is never done: then it is not noise.
const NONSENSE: [&[u8]; 4] = [b"ERR unknown", b"ERR syntax", b"ERR wrong number", b"ERR Error compiling"];

/// A life.
pub async fn run(number: usize, seed: u64) {
    let mut chance = SmallRng::seed_from_u64(seed);
    let mut connection = None;
    while !orders(|orders| orders.stop) {
        let (_, most) = orders(|orders| orders.pause_ms);
        sleep(Duration::from_millis(chance.random_range(1..=most.max(10)))).await;
        let lines: Vec<Vec<String>> = match chance.random_range(0..5) {
            0 => unit(&mut chance),
            _ => vec![line(&mut chance)],
        };
        let mut bytes = BytesMut::new();
        lines.iter().for_each(|words| encode_request(words, &mut bytes));
        let ports = orders(|orders| orders.client_ports.clone());
        let mut open = match connection.take() {
            Some(open) if chance.random_range(0..40) > 0 => open,
            _ => match Connection::open(&ports[(number + chance.random_range(0..ports.len())) % ports.len()])
                .await
            {
                Some(open) => open,
                None => continue,
            },
        };
        if !open.send(&bytes).await {
            continue;
        }
        let Some(answers) = open.replies(lines.len()).await else { continue };
        connection = Some(open);
        for (words, answer) in lines.iter().zip(&answers) {
            if let Reply::Error(text) = answer
                && NONSENSE.iter().any(|nonsense| text.starts_with(nonsense))
            {
                let text = String::from_utf8_lossy(text).into_owned();
                orders(|orders| orders.nonsense.push(format!("{}: {text}", words.join(" "))));
            }
        }
    }
}

/// A command by chance.
fn line(chance: &mut SmallRng) -> Vec<String> {
    let group = chance.random_range(0..orders(|orders| orders.groups).max(1));
    let (kind, lines) = COMMANDS[chance.random_range(0..COMMANDS.len())];
    in_group(chance, group, kind, lines)
}

/// A few commands on keys of one kind in a transaction.
fn unit(chance: &mut SmallRng) -> Vec<Vec<String>> {
    let group = chance.random_range(0..orders(|orders| orders.groups).max(1));
    let (kind, lines) = COMMANDS[chance.random_range(0..COMMANDS.len())];
    let inside = (0..chance.random_range(1..5)).map(|_| in_group(chance, group, kind, lines));
    let mut unit = vec![vec!["MULTI".to_owned()]];
    unit.extend(inside);
    unit.push(vec!["EXEC".to_owned()]);
    unit
}

fn in_group(chance: &mut SmallRng, group: usize, kind: &str, lines: &[&str]) -> Vec<String> {
    let line = lines[chance.random_range(0..lines.len())];
    let mut word = |word: &str| match word {
        "K" | "L" => format!("noise:{{{group}}}:{kind}:{}", chance.random_range(0..KEYS)),
        "V" => format!("v{}", chance.random_range(0..40)),
        "I" => chance.random_range(0..12).to_string(),
        other => other.replace('_', " "),
    };
    line.split(' ').map(&mut word).collect()
}
