//! After the faults: does the cluster come to rest, and are all copies equal?

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::check::requests;
use crate::harness::cluster::Cluster;
use crate::harness::recorder::Keys;
use crate::harness::resp::Reply;

/// How long it may take until everything is whole again.
const PATIENCE: Duration = Duration::from_secs(45);

/// Waits until one node leads, all see one epoch, every partition has its full replica set and nothing moves; how long
/// that took.
///
/// # Errors
/// What is missing after [`PATIENCE`].
pub(super) fn wait(cluster: &Cluster) -> Result<Duration, String> {
    let begin = Instant::now();
    loop {
        match is_at_rest(cluster) {
            Ok(()) => return Ok(begin.elapsed()),
            Err(why) if begin.elapsed() > PATIENCE => {
                return Err(format!("no rest after {PATIENCE:?}: {why}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn is_at_rest(cluster: &Cluster) -> Result<(), String> {
    cluster.ready()?;
    let running = cluster.running();
    let mut leaders = BTreeSet::new();
    for &index in &running {
        let status = cluster.status(index)?;
        leaders.insert(status["leader"].as_str().unwrap_or_default().to_owned());
        for name in ["moving", "waiting", "short", "lost"] {
            if status[name] != 0 {
                return Err(format!("node {index} says {name}: {}", status[name]));
            }
        }
        let wanted = status["replication"].as_u64().unwrap_or(0).min(running.len() as u64);
        let copies: u64 = status["nodes"].as_array().into_iter().flatten().map(copies_of).sum();
        let partitions = status["partitions"].as_u64().unwrap_or(0);
        if copies != wanted * partitions {
            return Err(format!(
                "node {index} counts {copies} copies of {partitions} partitions, not {wanted} of each"
            ));
        }
    }
    if leaders.len() != 1 || leaders.contains("") {
        return Err(format!("leaders: {leaders:?}"));
    }
    Ok(())
}

fn copies_of(node: &Value) -> u64 {
    node["copies"].as_u64().unwrap_or(0)
}

/// How the copies of the hot keys differ, in words; clients must be silent meanwhile.
///
/// # Errors
/// When a node does not answer.
pub(super) fn differing_copies(cluster: &Cluster, keys: &Keys) -> Result<Vec<String>, String> {
    let running = cluster.running();
    let replication = cluster.status(running[0])?["replication"].as_u64().unwrap_or(0) as usize;
    let wanted = replication.min(running.len());
    // Lifetimes end while this looks, and copies do not end them by themselves.
    let mut client = cluster.client(running[0]);
    for (key, _) in keys.readings() {
        client.call(&format!("PERSIST {key}")).map_err(|error| error.to_string())?;
    }
    let mut troubles = Vec::new();
    for (key, reading) in keys.readings() {
        let lines = requests(&key, &reading);
        let words: Vec<&[u8]> = lines[0].iter().map(Vec::as_slice).collect();
        let mut found = Vec::new();
        for &index in &running {
            let mut port = cluster.cluster_port(index);
            port.call("READONLY").map_err(|error| error.to_string())?;
            match port.call_bytes(&words).map_err(|error| error.to_string())? {
                Reply::Error(text) if text.starts_with("MOVED ") => {}
                reply => found.push((index, reply)),
            }
        }
        let is_equal = found.windows(2).all(|two| two[0].1 == two[1].1);
        if !is_equal || found.len() != wanted {
            troubles.push(format!("copies of {key}: {found:?}, {wanted} equal ones expected"));
        }
    }
    Ok(troubles)
}
