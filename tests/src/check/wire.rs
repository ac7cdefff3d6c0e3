//! A command as it is sent, and what its replies promise.
//!
//! For: requests of a command on a key, and its outcome from their replies, in RESP2 and RESP3.
//! Not here: sockets.
//!
//! | answer | promise |
//! |---|---|
//! | a reply | done |
//! | `CLUSTERDOWN`, `MOVED`, `EXECABORT` | not done: a node says so only of what it did not execute |
//! | `UNKNOWN` | unknown |
//! | any other error | unknown, and told: no client expects it |

use std::time::Duration;

use korum_protocol::resp::Reply as Found;

use super::model::stream::spelled;
use super::model::{Command, Condition, Reply, hash, list, number, pair, set, sorted_set, stream};

const COUNT: &str = "return redis.call('HINCRBY',KEYS[1],ARGV[1],1)";
const TRANSFER: &str = "return {redis.call('DECR',KEYS[1]),redis.call('INCR',KEYS[2])}";

/// The words of one request.
pub type Request = Vec<Vec<u8>>;

/// What came of a command.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// Done, with this reply.
    Done(Reply),
    /// Certainly not done.
    NotDone,
    /// Not done; whoever is at this address may do it.
    Moved(String),
    /// Perhaps done, now or later.
    Unknown,
    /// Unknown, because of a reply that no client expects.
    Strange(String),
}

impl Command {
    /// Is it one request that is answered at once?
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let waits = match self {
            Command::List(command) => command.wait().is_some(),
            Command::SortedSet(command) => command.wait().is_some(),
            Command::Stream(command) => command.wait().is_some(),
            _ => false,
        };
        !waits && requests("", self).len() == 1
    }
}

/// What is sent, in one go and on one connection; the last reply tells what came of it.
#[must_use]
pub fn requests(key: &str, command: &Command) -> Vec<Request> {
    let other = other(key);
    match command {
        Command::Hash(command) => vec![of_hash(key, command)],
        Command::List(list::Command::ReadBoth) => {
            unit(vec![line(&["LRANGE", key, "0", "-1"]), line(&["LRANGE", &other, "0", "-1"])])
        }
        Command::List(command) => vec![of_list(key, &other, command)],
        Command::Members(set::Command::Add(member)) => vec![line(&["SADD", key, member])],
        Command::Members(set::Command::Remove(member)) => vec![line(&["SREM", key, member])],
        Command::Members(set::Command::Read) => {
            vec![line(&[&["SMISMEMBER", key], &set::MEMBERS[..]].concat())]
        }
        Command::SortedSet(command) => vec![of_sorted_set(key, command)],
        Command::Stream(command) => vec![of_stream(key, command)],
        Command::Pair(pair::Command::Transfer { by_script: true }) => {
            vec![line(&["EVAL", TRANSFER, "2", key, &other])]
        }
        Command::Pair(pair::Command::Transfer { by_script: false }) => {
            unit(vec![line(&["DECR", key]), line(&["INCR", &other])])
        }
        Command::Pair(pair::Command::Read { in_unit: true }) => {
            unit(vec![line(&["GET", key]), line(&["GET", &other])])
        }
        Command::Pair(pair::Command::Read { in_unit: false }) => vec![line(&["MGET", key, &other])],
        Command::Swap { value, .. } => unit(vec![of_text(key, &Command::set(value))]),
        _ => vec![of_text(key, command)],
    }
}

/// The second key of an object of two; of the same slot, if the first has a hash tag.
fn other(key: &str) -> String {
    format!("{key}:other")
}

fn line(words: &[&str]) -> Request {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn unit(inside: Vec<Request>) -> Vec<Request> {
    [vec![line(&["MULTI"])], inside, vec![line(&["EXEC"])]].concat()
}

fn seconds(time: &Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

fn of_text(key: &str, command: &Command) -> Request {
    let ms = |time: &Duration| time.as_millis().to_string();
    match command {
        Command::Set { value, condition, get, expire } => {
            let mut words = line(&["SET", key]);
            words.push(value.to_vec());
            match condition {
                Condition::Always => {}
                Condition::Missing => words.extend(line(&["NX"])),
                Condition::Existing => words.extend(line(&["XX"])),
            }
            words.extend(line(if *get { &["GET"] } else { &[] }));
            words.extend(expire.iter().flat_map(|time| line(&["PX", &ms(time)])));
            words
        }
        Command::Append(tail) => [line(&["APPEND", key]), vec![tail.to_vec()]].concat(),
        Command::Incr => line(&["INCR", key]),
        Command::Del => line(&["DEL", key]),
        Command::GetDel => line(&["GETDEL", key]),
        Command::Expire(time) => line(&["PEXPIRE", key, &ms(time)]),
        _ => line(&["GET", key]),
    }
}

fn of_hash(key: &str, command: &hash::Command) -> Request {
    match command {
        hash::Command::Set(field, value) => [line(&["HSET", key, field]), vec![value.to_vec()]].concat(),
        hash::Command::Get(field) => line(&["HGET", key, field]),
        hash::Command::Count { by_script: false } => line(&["HINCRBY", key, hash::COUNTER, "1"]),
        hash::Command::Count { by_script: true } => line(&["EVAL", COUNT, "1", key, hash::COUNTER]),
        hash::Command::Delete(field) => line(&["HDEL", key, field]),
        hash::Command::Read => line(&[&["HMGET", key], &hash::FIELDS[..], &[hash::COUNTER]].concat()),
    }
}

fn of_list(key: &str, other: &str, command: &list::Command) -> Request {
    match command {
        list::Command::Push(item) => [line(&["RPUSH", key]), vec![item.to_vec()]].concat(),
        list::Command::Pop { wait: None } => line(&["LPOP", key]),
        list::Command::Pop { wait: Some(wait) } => line(&["BLPOP", key, &seconds(wait)]),
        list::Command::Take { wait: None } => line(&["LPOP", other]),
        list::Command::Take { wait: Some(wait) } => line(&["BLPOP", other, &seconds(wait)]),
        list::Command::Move { wait: None } => line(&["LMOVE", key, other, "LEFT", "RIGHT"]),
        list::Command::Move { wait: Some(wait) } => {
            line(&["BLMOVE", key, other, "LEFT", "RIGHT", &seconds(wait)])
        }
        list::Command::Read | list::Command::ReadBoth => line(&["LRANGE", key, "0", "-1"]),
    }
}

fn of_sorted_set(key: &str, command: &sorted_set::Command) -> Request {
    match command {
        sorted_set::Command::Raise(member) => line(&["ZADD", key, "INCR", "1", member]),
        sorted_set::Command::PopLeast { wait: None } => line(&["ZPOPMIN", key]),
        sorted_set::Command::PopLeast { wait: Some(wait) } => line(&["BZPOPMIN", key, &seconds(wait)]),
        sorted_set::Command::Remove(member) => line(&["ZREM", key, member]),
        sorted_set::Command::Read => line(&["ZRANGE", key, "0", "-1", "WITHSCORES"]),
    }
}

fn of_stream(key: &str, command: &stream::Command) -> Request {
    let id = |id: &stream::Id| String::from_utf8_lossy(&spelled(*id)).into_owned();
    match command {
        stream::Command::Create => line(&["XGROUP", "CREATE", key, "group", "0", "MKSTREAM"]),
        stream::Command::Add(new) => line(&["XADD", key, &id(new), "field", "value"]),
        stream::Command::Next { wait } => {
            let block = wait.map(|wait| wait.as_millis().to_string());
            let block = block.iter().flat_map(|ms| ["BLOCK", ms]).collect::<Vec<_>>();
            let next = [&["XREADGROUP", "GROUP", "group", "me", "COUNT", "1"], &block[..]].concat();
            line(&[&next, &["STREAMS", key, ">"][..]].concat())
        }
        stream::Command::Acknowledge(given) => line(&["XACK", key, "group", &id(given)]),
        stream::Command::Read => line(&["XRANGE", key, "-", "+"]),
    }
}

/// What came of a command, from the replies to its requests.
#[must_use]
pub fn read(command: &Command, replies: &[Found]) -> Answer {
    let Some((last, before)) = replies.split_last() else { return Answer::Unknown };
    match last {
        Found::Error(text) if text.starts_with(b"EXECABORT") => {
            let why = before.iter().find_map(Found::as_error);
            why.map_or(Answer::NotDone, |why| match refusal(why) {
                Answer::Done(_) | Answer::Unknown => Answer::NotDone,
                other => other,
            })
        }
        Found::Error(text) => refusal(text),
        found => match value(command, found) {
            Some(reply) => Answer::Done(reply),
            None => Answer::Strange(format!("{found:?}")),
        },
    }
}

fn refusal(text: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(text).into_owned();
    let mut words = text.split(' ');
    match words.next().unwrap_or_default() {
        "UNKNOWN" => Answer::Unknown,
        "MOVED" => words.nth(1).map_or(Answer::NotDone, |address| Answer::Moved(address.to_owned())),
        "CLUSTERDOWN" | "TRYAGAIN" | "LOADING" => Answer::NotDone,
        "BUSYGROUP" => Answer::Done(Reply::GroupExists),
        "NOGROUP" => Answer::Done(Reply::NoGroup),
        _ if text.contains("not an integer") || text.contains("overflow") => Answer::Done(Reply::NotInteger),
        _ if text.contains("equal or smaller than the target stream top item") => {
            Answer::Done(Reply::IdTooSmall)
        }
        _ => Answer::Strange(text),
    }
}

/// The reply as the model gives it: without the key, names of fields and whatever else says nothing new.
fn value(command: &Command, found: &Found) -> Option<Reply> {
    let is_null = *found == Found::Null;
    match command {
        _ if is_null => Some(Reply::Nil),
        Command::List(list::Command::Pop { .. } | list::Command::Take { .. }) => flat(found)?.pop(),
        Command::SortedSet(sorted_set::Command::PopLeast { .. }) => {
            let mut leaves = flat(found)?;
            let pair = leaves.split_off(leaves.len().saturating_sub(2));
            Some(if pair.is_empty() { Reply::Nil } else { Reply::List(pair) })
        }
        Command::Stream(stream::Command::Next { .. }) => flat(found)?.into_iter().nth(1),
        Command::Stream(stream::Command::Read) => {
            Some(Reply::List(flat(found)?.into_iter().step_by(3).collect()))
        }
        Command::List(list::Command::ReadBoth) => plain(found),
        Command::Swap { .. } => flat(found)?.pop(),
        _ if matches!(found, Found::Array(_)) => Some(Reply::List(flat(found)?)),
        _ => plain(found),
    }
}

fn plain(found: &Found) -> Option<Reply> {
    match found {
        Found::Simple(text) if &text[..] == b"OK" => Some(Reply::Ok),
        Found::Null => Some(Reply::Nil),
        Found::Bulk(bytes) => Some(Reply::Value(bytes[..].into())),
        Found::Integer(number) => Some(Reply::Integer(*number)),
        // Scores are whole numbers here.
        Found::Double(score) => Some(number(*score as i64)),
        Found::Array(items) => items.iter().map(plain).collect::<Option<_>>().map(Reply::List),
        _ => None,
    }
}

/// All that is in a reply, without its brackets, which differ between RESP2 and RESP3.
fn flat(found: &Found) -> Option<Vec<Reply>> {
    match found {
        Found::Array(items) | Found::Set(items) => {
            items.iter().map(flat).collect::<Option<Vec<_>>>().map(|parts| parts.concat())
        }
        Found::Map(pairs) => {
            let parts = pairs.iter().flat_map(|(key, value)| [flat(key), flat(value)]);
            parts.collect::<Option<Vec<_>>>().map(|parts| parts.concat())
        }
        other => plain(other).map(|reply| vec![reply]),
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::resp::Reply as Found;

    use super::*;

    fn bulk(text: &str) -> Found {
        Found::Bulk(text.to_owned().into())
    }

    fn error(text: &str) -> Found {
        Found::Error(text.to_owned().into())
    }

    fn text(text: &str) -> Reply {
        Reply::Value(text.as_bytes().into())
    }

    #[test]
    fn both_protocols_say_the_same() {
        let least = Command::SortedSet(sorted_set::Command::PopLeast { wait: None });
        let seen = Answer::Done(Reply::List(vec![text("two"), text("3")]));
        let reply = |score| Found::Array(vec![bulk("two"), score]);
        assert_eq!(read(&least, &[reply(bulk("3"))]), seen);
        assert_eq!(read(&least, &[reply(Found::Double(3.0))]), seen);
        assert_eq!(read(&least, &[Found::Array(vec![])]), Answer::Done(Reply::Nil));
        let next = Command::Stream(stream::Command::Next { wait: None });
        let entry = Found::Array(vec![bulk("7-1"), Found::Array(vec![bulk("field"), bulk("value")])]);
        let entries = Found::Array(vec![entry]);
        let second = Found::Array(vec![Found::Array(vec![bulk("key"), entries.clone()])]);
        assert_eq!(read(&next, &[second]), Answer::Done(text("7-1")));
        assert_eq!(read(&next, &[Found::Map(vec![(bulk("key"), entries)])]), Answer::Done(text("7-1")));
    }

    #[test]
    fn a_unit_is_done_or_it_says_why_not() {
        let transfer = Command::Pair(pair::Command::Transfer { by_script: false });
        assert_eq!(requests("k", &transfer).len(), 4);
        let queued = || Found::Simple("QUEUED".into());
        let done = Found::Array(vec![Found::Integer(-1), Found::Integer(1)]);
        let told = read(&transfer, &[Found::Simple("OK".into()), queued(), queued(), done]);
        assert_eq!(told, Answer::Done(Reply::List(vec![Reply::Integer(-1), Reply::Integer(1)])));
        let aborted = || error("EXECABORT Transaction discarded because of previous errors.");
        let moved = error("MOVED 7 10.0.0.1:6379");
        let told = read(&transfer, &[Found::Simple("OK".into()), moved, queued(), aborted()]);
        assert_eq!(told, Answer::Moved("10.0.0.1:6379".into()));
        let told =
            read(&transfer, &[Found::Simple("OK".into()), error("CLUSTERDOWN x"), queued(), aborted()]);
        assert_eq!(told, Answer::NotDone);
        assert_eq!(read(&transfer, &[queued(), error("UNKNOWN outcome")]), Answer::Unknown);
        assert!(matches!(read(&transfer, &[queued(), error("ERR what")]), Answer::Strange(_)));
    }
}
