//! Clients that keep what they read, over a cluster: nobody keeps what another node has changed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use korum_tests::harness::alone;
use korum_tests::harness::cluster::{Cluster, PATIENCE};
use korum_tests::harness::resp::{Connection, Reply};
use korum_tests::harness::wait;

fn ask(connection: &mut Connection, words: &str) -> Reply {
    connection.call(words).expect("a reply")
}

/// A client with a cache, as libraries have one.
struct Cache {
    connection: Connection,
    kept: HashMap<String, String>,
}

impl Cache {
    fn new(mut connection: Connection, options: &str) -> Self {
        ask(&mut connection, "HELLO 3");
        assert!(ask(&mut connection, &format!("CLIENT TRACKING on{options}")).is_ok());
        Self { connection, kept: HashMap::new() }
    }

    /// Takes one reply, and what is pushed before it.
    fn reply(&mut self) -> Reply {
        loop {
            match self.connection.reply().expect("a reply") {
                Reply::Push(items) if items[1] == Reply::Null => self.kept.clear(),
                Reply::Push(items) => {
                    for key in items[1].items() {
                        self.kept.remove(&key.text());
                    }
                }
                other => return other,
            }
        }
    }

    fn call(&mut self, words: &str) -> Reply {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        self.connection.send(&korum_tests::harness::resp::encode(&words)).expect("sent");
        self.reply()
    }

    /// The kept value, or the one that the node has, which is kept then.
    fn get(&mut self, key: &str) -> String {
        if let Some(value) = self.kept.get(key) {
            return value.clone();
        }
        let value = self.call(&format!("GET {key}")).text();
        self.kept.insert(key.to_owned(), value.clone());
        // A push behind the reply is about it too.
        self.call("PING");
        value
    }
}

/// Until the cache has heard of it, at most some seconds.
fn wait_for(cache: &mut Cache, key: &str, value: &str) {
    wait::until("the cache hears of the change", Duration::from_secs(5), || {
        cache.call("PING");
        match cache.get(key) {
            found if found == value => Ok(()),
            found => Err(format!("{key} is {found}, not {value}")),
        }
    });
}

/// Until all nodes are sure of each other, so that a client keeps what it reads.
fn keep_all(cache: &mut Cache, keys: &[String]) {
    wait::until("everything is kept", PATIENCE, || {
        keys.iter().for_each(|key| drop(cache.get(key)));
        let kept = keys.iter().filter(|key| cache.kept.contains_key(*key)).count();
        if kept == keys.len() { Ok(()) } else { Err(format!("{kept} are kept")) }
    });
}

#[test]
fn a_client_is_spared_its_own_changes_at_all_nodes() {
    let _alone = alone();
    let cluster = Cluster::start(3);
    let names = |kind: &str| -> Vec<String> { (0..30).map(|number| format!("{kind}:{number}")).collect() };
    let (own, others) = (names("own"), names("others"));
    let mut cache = Cache::new(cluster.client(0), " NOLOOP");
    keep_all(&mut cache, &own);
    keep_all(&mut cache, &others);
    for key in &own {
        assert!(cache.call(&format!("SET {key} 1")).is_ok());
    }
    // what each node tells comes in its order: behind these changes there would be those before them
    let mut writer = cluster.client(1);
    for key in &others {
        assert!(ask(&mut writer, &format!("SET {key} 1")).is_ok());
    }
    wait::until("the cache hears of what others have changed", PATIENCE, || {
        cache.call("PING");
        let kept = others.iter().filter(|key| cache.kept.contains_key(*key)).count();
        if kept == 0 { Ok(()) } else { Err(format!("{kept} are kept")) }
    });
    assert!(own.iter().all(|key| cache.kept.contains_key(key)), "{:?}", cache.kept);
}

#[test]
fn changes_at_any_node_reach_the_caches_of_any_node() {
    let _alone = alone();
    let mut cluster = Cluster::start(3);
    let mut writer = cluster.client(0);
    let keys: Vec<String> = (0..30).map(|number| format!("kept:{number}")).collect();
    for key in &keys {
        ask(&mut writer, &format!("SET {key} 0"));
    }
    let mut caches: Vec<Cache> = (0..3).map(|index| Cache::new(cluster.client(index), "")).collect();
    // at first nobody is sure of the others, and nothing is kept; soon everything is
    caches.iter_mut().for_each(|cache| keep_all(cache, &keys));
    for round in 1..4 {
        for key in &keys {
            let mut writer = cluster.client(round % 3);
            ask(&mut writer, &format!("SET {key} {round}"));
        }
        for cache in &mut caches {
            keys.iter().for_each(|key| wait_for(cache, key, &round.to_string()));
        }
    }

    // a node dies: what it served is served by others, and nothing old is kept
    let victim = 2;
    cluster.kill(victim);
    caches.truncate(2);
    let begin = Instant::now();
    wait::until("every key can be written again", PATIENCE, || {
        let mut writer = cluster.client(0);
        let answers = keys.iter().map(|key| ask(&mut writer, &format!("SET {key} after")));
        if answers.into_iter().all(|answer| answer.is_ok()) { Ok(()) } else { Err("not all".to_owned()) }
    });
    println!("written again {:.0?} after the end of a node", begin.elapsed());
    for cache in &mut caches {
        keys.iter().for_each(|key| wait_for(cache, key, "after"));
    }

    // a node joins: keys move, and nothing old is kept
    cluster.launch_again(victim, true);
    cluster.wait_ready(PATIENCE);
    let mut writer = cluster.client(1);
    for key in &keys {
        assert!(ask(&mut writer, &format!("SET {key} moved")).is_ok());
    }
    for cache in &mut caches {
        keys.iter().for_each(|key| wait_for(cache, key, "moved"));
    }
}
