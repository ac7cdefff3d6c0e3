//! One run: start, load, break, heal, rest, judge.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use korum_client::ClientBuilder;
use tokio::runtime::{Builder, Runtime};

use super::fault::{Event, Fault};
use super::rest;
use super::severed::Probes;
use crate::check::{self, Command, Kind, Operation, Rules, Verdict};
use crate::harness::cluster::Cluster;
use crate::harness::recorder::{Door, Keys, Record, Recorded, Recorder};
use crate::harness::writers::{History, Load, Writers};

/// Before the fault.
const WARM: Duration = Duration::from_millis(600);
/// The longest write gap that passes, on a busy machine too: all but one fault are over in less than two seconds, and a
/// replica that does not acknowledge is dropped after one, or two if it is heard (`replica_timeout`).
const GAP_MAX: Duration = Duration::from_millis(3_500);
/// Patience of clients that ask a victim for what it is primary of.
const INSIDER: Duration = Duration::from_millis(150);
/// Hot keys of each node, of each kind.
const TEXTS: usize = 2;
const COUNTERS: usize = 1;
/// Beside them: a queue, into which some push what others pop or wait for, and two counters that transactions change.
const OTHERS: [Kind; 2] = [Kind::Queue, Kind::Pair];
/// Clients at each node that only wait for items of queues, wherever these are.
const WAITERS: usize = 2;
/// After the rest, still under load.
const AFTER: Duration = Duration::from_millis(300);
/// How long a node that is cut off may still acknowledge: its lease (700 ms), the time for which a leader trusts its last
/// confirmation (200 ms), and what a busy machine adds.
pub const SEVERED_MAX: Duration = Duration::from_millis(1_000);

/// What a run showed.
#[derive(Default, Debug)]
pub struct Outcome {
    /// The longest time that a writer at a healthy node waited, begun before the causes ended.
    pub gap: Duration,
    /// When that began, after the fault's begin.
    pub gap_at: Duration,
    /// The same as `gap`, ended while the cluster healed.
    pub gap_healing: Duration,
    /// When that began, after the fault's begin.
    pub gap_healing_at: Duration,
    /// From the end of the causes until all was whole.
    pub healed: Duration,
    /// Acknowledged operations.
    pub acknowledged: usize,
    /// Operations of unknown outcome.
    pub unknown: usize,
    /// Operations that were refused.
    pub failed: usize,
    /// Items that were pushed into queues, acknowledged, and accounted for.
    pub items: usize,
    /// The last acknowledgement of a node that was cut off, after that began.
    pub severed: Option<Duration>,
    /// Acknowledged writes that cannot be read.
    pub lost: Vec<String>,
    /// Histories that no order explains.
    pub violations: Vec<String>,
    /// What else must not be: no rest, differing copies, undecided histories, strange replies.
    pub troubles: Vec<String>,
    /// Where logs and data were kept, when something was wrong.
    pub kept: Option<String>,
}

impl Outcome {
    /// Was anything wrong?
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.lost.is_empty() && self.violations.is_empty() && self.troubles.is_empty()
    }
}

/// Runs a fault once; the seed decides victims, moments and what clients call. `flags` are given to every node.
///
/// # Panics
/// When the machine gives no ports, threads or processes, or a node ends by itself.
#[must_use]
pub fn run(fault: Fault, seed: u64, nodes: usize, flags: &[&str]) -> Outcome {
    let mut cluster = fault.cluster(nodes, flags);
    let mut victims = fault.choose(&cluster, seed);
    let healthy: Vec<u16> = cluster
        .running()
        .into_iter()
        .filter(|node| !victims.nodes.contains(node))
        .map(|node| cluster.nodes[node].client)
        .collect();
    let runtime =
        Arc::new(Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime"));

    let load = Load { writers: 2, keys: 1_500, rate: Some(600), name: "ledger", ..Load::default() };
    let writers = Writers::start(&healthy, &load);
    let hot: Vec<Keys> = (0..cluster.nodes.len()).map(|node| keys_of(&cluster, node)).collect();
    let mut all = Keys::default();
    hot.iter().for_each(|keys| all.extend(keys));
    let with_all = |doors: Vec<Door>| doors.into_iter().map(|door| (door, all.clone())).collect::<Vec<_>>();
    let mut clients = with_all(doors(&cluster, &runtime));
    for &node in &victims.nodes {
        let insider = || Door::impatient(node, cluster.nodes[node].client, INSIDER);
        // What they give up is unknown; of pops there would be so many that a lost item would not show.
        let keys = Keys { others: Vec::new(), ..hot[node].clone() };
        clients.extend([(insider(), keys.clone()), (insider(), keys)]);
    }
    for &node in &cluster.running() {
        let waiter = || (Door::client(node, cluster.nodes[node].client), all.to_wait_for());
        clients.extend((0..WAITERS).map(|_| waiter()));
    }
    let recorder = Recorder::start(clients, seed);
    let probes = Probes::start(&cluster, fault.severs(&victims));
    std::thread::sleep(WARM);
    let event = fault.happen(&mut cluster, &mut victims);
    let severed = probes.stop(event.begin, event.end);
    let mut outcome = Outcome { severed, ..Outcome::default() };
    match rest::wait(&cluster) {
        Ok(healed) => outcome.healed = healed,
        Err(why) => outcome.troubles.push(why),
    }
    std::thread::sleep(AFTER);
    let ledgers = writers.stop();
    let begin = recorder.begin();
    let record = recorder.stop(with_all(doors(&cluster, &runtime)));

    judge_ledgers(&mut outcome, &cluster, &ledgers, &event);
    judge_record(&mut outcome, record, &event, begin, fault.severs(&victims));
    match rest::differing_copies(&cluster, &all) {
        Ok(troubles) => outcome.troubles.extend(troubles),
        Err(why) => outcome.troubles.push(format!("copies cannot be compared: {why}")),
    }
    if !outcome.is_good() {
        outcome.kept = cluster.keep_files().map(|path| path.display().to_string());
    }
    outcome
}

/// A client port and the cluster ports of each running node, and the Rust client twice.
fn doors(cluster: &Cluster, runtime: &Arc<Runtime>) -> Vec<Door> {
    let running = cluster.running();
    let mut doors = Vec::new();
    let ports: Vec<u16> = running.iter().map(|&node| cluster.nodes[node].cluster).collect();
    for (turn, &node) in running.iter().enumerate() {
        doors.push(Door::client(node, cluster.nodes[node].client));
        doors.push(Door::cluster(ports.clone(), turn));
    }
    for _ in 0..2 {
        let seeds = running.iter().map(|&node| format!("127.0.0.1:{}", cluster.nodes[node].client));
        let client = ClientBuilder::new(seeds).request_deadline(Duration::from_millis(2_500)).connect();
        let client = runtime.block_on(client).expect("a seed answers");
        doors.push(Door::library(Arc::clone(runtime), client));
    }
    doors
}

/// Keys of which the node is primary now, so that every node has some.
fn keys_of(cluster: &Cluster, node: usize) -> Keys {
    // Whoever needs a second key finds it in the same slot, by the tag.
    let own = |kind: &str, count: usize| -> Vec<String> {
        let names = (0..10_000).map(|number| format!("{{hot:{kind}:{number}}}"));
        names.filter(|key| cluster.primary_of(key) == node).take(count).collect()
    };
    let others =
        OTHERS.iter().flat_map(|kind| own(&format!("{kind:?}"), 1).into_iter().map(|key| (*kind, key)));
    let others = others.collect();
    Keys { texts: own("text", TEXTS), counters: own("count", COUNTERS), others, waits_for: Vec::new() }
}

/// [`GAP_MAX`], or what whoever looks for the cause of shorter ones has asked for: the files of such runs are kept.
fn gap_max() -> Duration {
    let asked = std::env::var("KORUM_CHAOS_GAP_MS").ok().and_then(|text| text.parse().ok());
    asked.map_or(GAP_MAX, Duration::from_millis)
}

fn judge_ledgers(outcome: &mut Outcome, cluster: &Cluster, ledgers: &[History], event: &Event) {
    let longest = |from: Instant, until: Instant| {
        let gaps = ledgers.iter().map(|ledger| ledger.gap_between(from, until));
        let since = |at: Instant| at.saturating_duration_since(event.begin);
        gaps.max().map_or((Duration::MAX, Duration::ZERO), |(gap, at)| (gap, since(at)))
    };
    (outcome.gap, outcome.gap_at) = longest(event.begin, event.end);
    (outcome.gap_healing, outcome.gap_healing_at) = longest(event.end, Instant::now());
    let (gap, limit) = (outcome.gap.max(outcome.gap_healing), gap_max());
    if gap > limit {
        outcome.troubles.push(format!("a writer at a healthy node waited {gap:?}"));
    }
    outcome.acknowledged += ledgers.iter().map(|ledger| ledger.times.len()).sum::<usize>();
    for node in cluster.running() {
        outcome.lost.extend(ledgers.iter().flat_map(|ledger| ledger.lost(cluster.nodes[node].client)));
    }
}

fn judge_record(outcome: &mut Outcome, record: Record, event: &Event, begin: Instant, severed: &[usize]) {
    let mut strange = record.strange;
    strange.sort();
    strange.dedup();
    outcome.troubles.extend(strange.into_iter().map(|text| format!("a strange reply: {text}")));
    let mut histories: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    let (from, until) = (event.begin - begin, event.end - begin);
    for Recorded { key, node, operation } in record.operations {
        match operation.outcome {
            check::Outcome::Acknowledged { at, ref reply } => {
                outcome.acknowledged += 1;
                let is_severed = node.is_some_and(|node| severed.contains(&node));
                // Whoever waited in vain is told so where he is.
                if is_severed && !operation.command.is_refused(reply) && (from..until).contains(&at) {
                    outcome.severed = outcome.severed.max(Some(at - from));
                }
            }
            check::Outcome::Failed => outcome.failed += 1,
            check::Outcome::Unknown => outcome.unknown += 1,
        }
        histories.entry(key).or_default().push(operation);
    }
    if let Some(late) = outcome.severed.filter(|&late| late > SEVERED_MAX) {
        outcome.violations.push(format!("a node that was cut off acknowledged {late:?} later"));
    }
    for (key, history) in histories {
        if history.iter().any(|operation| matches!(operation.command, Command::List(_))) {
            match check::account(&history) {
                Ok(items) => outcome.items += items.pushed,
                Err(what) => outcome.lost.push(format!("queue {key}: {what}")),
            }
        }
        match check::check(&history, &Rules::default()) {
            Verdict::Linearizable { .. } => {}
            Verdict::Violation(violation) => outcome.violations.push(format!("{key}: {violation}")),
            Verdict::Undecided { steps } => outcome
                .troubles
                .push(format!("{key}: undecided after {steps} steps, {} operations", history.len())),
        }
    }
}
