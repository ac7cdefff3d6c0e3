//! The parameters of a running node: what `CONFIG GET` shows and `CONFIG SET` changes.
//!
//! For: values that workers read on every request (atomics) and the text of all the others.
//! Not here: replies (`command::server`), the list of parameters (`parameter`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use korum_protocol::command::glob::matches_in_any_case;
use korum_protocol::resp::request::RequestLimits;

use super::Config;
use super::parameter::PARAMETERS;
use crate::net::outbox::Limits;
use crate::store::Classes;

/// Eviction policies, in the order in which Redis lists them; [`Live::policy`] is an index into this.
pub const POLICIES: &[&str] = &[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

/// Parameters that can change while the node runs. Shared by all threads.
pub struct Live {
    texts: RwLock<BTreeMap<&'static str, String>>,
    hot: Hot,
    /// `DEBUG SET-ACTIVE-EXPIRE 0` was said.
    no_active_expiry: AtomicBool,
}

/// Copies of the numbers that are read often.
#[derive(Default)]
struct Hot {
    maxmemory: AtomicU64,
    policy: AtomicU64,
    maxclients: AtomicU64,
    timeout_s: AtomicU64,
    bulk_bytes: AtomicU64,
    query_bytes: AtomicU64,
    output_bytes: AtomicU64,
    pubsub: [AtomicU64; 3],
    notify: AtomicU64,
    tracked_keys: AtomicU64,
    latency_ms: AtomicU64,
    slower_than_us: AtomicU64,
    crosses_slots: AtomicBool,
    tracks_latency: AtomicBool,
}

impl Live {
    /// The parameters of a node that starts with `config`.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let texts: BTreeMap<_, _> = PARAMETERS.iter().map(|it| (it.name, (it.initial)(config))).collect();
        let live = Self {
            hot: Hot::default(),
            texts: RwLock::new(BTreeMap::new()),
            no_active_expiry: AtomicBool::new(false),
        };
        live.hot.refresh(&texts);
        *live.texts.write().unwrap_or_else(PoisonError::into_inner) = texts;
        live
    }

    /// Parameters whose names match any of the patterns, by name. One that is named, not matched, is called as it was
    /// named. On the cluster port the node says that it is a cluster.
    #[must_use]
    pub fn get<'a>(
        &self,
        patterns: impl Iterator<Item = &'a [u8]> + Clone,
        on_cluster_port: bool,
    ) -> Vec<(Cow<'a, str>, String)> {
        let texts = self.texts.read().unwrap_or_else(PoisonError::into_inner);
        let wanted = texts.iter().filter(|(name, _)| {
            patterns.clone().any(|pattern| matches_in_any_case(pattern, name.as_bytes()))
        });
        let named = |name: &'static str| {
            let same = patterns.clone().find(|given| given.eq_ignore_ascii_case(name.as_bytes()));
            same.map_or(Cow::Borrowed(name), String::from_utf8_lossy)
        };
        wanted
            .map(|(name, value)| match *name {
                "cluster-enabled" if on_cluster_port => (named(name), "yes".to_owned()),
                name => (named(name), value.clone()),
            })
            .collect()
    }

    /// The text of one parameter; empty when there is no such.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.texts.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned().unwrap_or_default()
    }

    /// Sets all of these or none; returns the names of what changed.
    ///
    /// # Errors
    /// The text of the error reply.
    pub fn set(&self, wanted: &[(&[u8], &[u8])]) -> Result<Vec<&'static str>, String> {
        let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
        let failed = |name: &str, why: &str| {
            Err(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
        };
        // As Redis does: first all the names, then all the values.
        let mut found = Vec::with_capacity(wanted.len());
        for (name, value) in wanted {
            let shown = String::from_utf8_lossy(name);
            let parameter = PARAMETERS.iter().find(|it| it.name.as_bytes().eq_ignore_ascii_case(name));
            let Some(parameter) = parameter else {
                return Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{shown}'"));
            };
            if found.iter().any(|(other, _): &(&super::parameter::Parameter, _)| other.name == parameter.name)
            {
                return failed(&shown, "duplicate parameter");
            }
            if matches!(parameter.kind, super::parameter::Kind::Fixed) {
                return failed(&shown, "can't set immutable config");
            }
            found.push((parameter, *value));
        }
        let mut changed = Vec::new();
        for (parameter, value) in found {
            let Ok(value) = std::str::from_utf8(value) else {
                return failed(parameter.name, "argument must be valid text");
            };
            let present = &texts[parameter.name];
            match parameter.kind.read(value, present) {
                Ok(value) if value == *present => {}
                Ok(value) => changed.push((parameter.name, value)),
                Err(why) => return failed(parameter.name, &why),
            }
        }
        let names = changed.iter().map(|(name, _)| *name).collect();
        texts.extend(changed);
        self.hot.refresh(&texts);
        Ok(names)
    }

    /// Whether expired keys are removed in the background.
    pub fn expires_actively(&self) -> bool {
        !self.no_active_expiry.load(Relaxed)
    }

    /// Stops that, or goes on with it.
    pub fn set_active_expiry(&self, is_on: bool) {
        self.no_active_expiry.store(!is_on, Relaxed);
    }

    /// Memory for data, bytes; 0 sets no limit.
    pub fn maxmemory(&self) -> u64 {
        self.hot.maxmemory.load(Relaxed)
    }

    /// Eviction policy, an index into [`POLICIES`].
    pub fn policy(&self) -> usize {
        self.hot.policy.load(Relaxed) as usize
    }

    /// Most client connections.
    pub fn maxclients(&self) -> usize {
        self.hot.maxclients.load(Relaxed) as usize
    }

    /// A client that is idle for this long is closed; `None` means never.
    pub fn timeout(&self) -> Option<Duration> {
        Some(self.hot.timeout_s.load(Relaxed)).filter(|&seconds| seconds > 0).map(Duration::from_secs)
    }

    /// Longest bulk string of a request, bytes: never more than nodes take of each other.
    pub fn proto_max_bulk_len(&self) -> usize {
        (self.hot.bulk_bytes.load(Relaxed) as usize).min(RequestLimits::default().bulk_bytes)
    }

    /// Most unparsed bytes of a connection.
    pub fn client_query_buffer_limit(&self) -> usize {
        self.hot.query_bytes.load(Relaxed) as usize
    }

    /// Most unsent reply bytes of a connection; 0 sets no limit.
    pub fn client_output_buffer_limit(&self) -> usize {
        self.hot.output_bytes.load(Relaxed) as usize
    }

    /// What may wait for a client that listens: messages of others.
    pub fn pubsub_limits(&self) -> Limits {
        let [hard, soft, seconds] = [0, 1, 2].map(|at: usize| self.hot.pubsub[at].load(Relaxed));
        Limits { hard: hard as usize, soft: soft as usize, patience: Duration::from_secs(seconds) }
    }

    /// Which events of keys are told.
    pub fn notify_classes(&self) -> Classes {
        Classes::from_bits(self.hot.notify.load(Relaxed) as u16)
    }

    /// Most keys that clients may have read and kept, of those that are remembered; 0 sets no limit.
    pub fn tracking_table_max_keys(&self) -> usize {
        self.hot.tracked_keys.load(Relaxed) as usize
    }

    /// Whether commands are measured; those that are fast by nature only if somebody wants to know of little.
    #[inline]
    pub fn measures(&self, is_fast: bool) -> bool {
        let (slow_us, delay_ms) = (self.hot.slower_than_us.load(Relaxed), self.hot.latency_ms.load(Relaxed));
        let is_wanted = slow_us != u64::MAX || delay_ms != 0;
        is_wanted && (!is_fast || slow_us < 1000)
    }

    /// Whether it is counted how long commands take.
    pub fn tracks_latency(&self) -> bool {
        self.hot.tracks_latency.load(Relaxed)
    }

    /// Commands that take as long, in milliseconds, are delays; `None` turns that off.
    pub fn latency_threshold_ms(&self) -> Option<u64> {
        Some(self.hot.latency_ms.load(Relaxed)).filter(|&ms| ms > 0)
    }

    /// Whether a transaction whose keys are in several slots is run as a unit for each.
    pub fn cross_slot_transactions(&self) -> bool {
        self.hot.crosses_slots.load(Relaxed)
    }

    /// Commands that take longer, in microseconds, are logged as slow; `None` turns that off.
    pub fn slowlog_slower_than_us(&self) -> Option<u64> {
        Some(self.hot.slower_than_us.load(Relaxed)).filter(|&us| us != u64::MAX)
    }
}

impl Hot {
    fn refresh(&self, texts: &BTreeMap<&'static str, String>) {
        let number = |name: &str| texts[name].parse::<u64>().unwrap_or(u64::MAX);
        self.maxmemory.store(number("maxmemory"), Relaxed);
        self.maxclients.store(number("maxclients"), Relaxed);
        self.timeout_s.store(number("timeout"), Relaxed);
        self.bulk_bytes.store(number("proto-max-bulk-len"), Relaxed);
        self.query_bytes.store(number("client-query-buffer-limit"), Relaxed);
        self.slower_than_us.store(number("slowlog-log-slower-than"), Relaxed);
        self.tracks_latency.store(texts["latency-tracking"] == "yes", Relaxed);
        let policy = POLICIES.iter().position(|name| *name == texts["maxmemory-policy"]);
        self.policy.store(policy.unwrap_or(POLICIES.len() - 1) as u64, Relaxed);
        let output = texts["client-output-buffer-limit"].split(' ').nth(1).and_then(|hard| hard.parse().ok());
        self.output_bytes.store(output.unwrap_or(0), Relaxed);
        self.tracked_keys.store(number("tracking-table-max-keys"), Relaxed);
        self.latency_ms.store(number("latency-monitor-threshold"), Relaxed);
        self.crosses_slots.store(texts["cross-slot-transactions"] == "yes", Relaxed);
        let events = Classes::parse(&texts["notify-keyspace-events"]);
        self.notify.store(u64::from(events.bits()), Relaxed);
        let classes = texts["client-output-buffer-limit"].split(' ');
        for (limit, word) in self.pubsub.iter().zip(classes.skip_while(|word| *word != "pubsub").skip(1)) {
            limit.store(word.parse().unwrap_or(0), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> Live {
        Live::new(&Config::default())
    }

    fn set(live: &Live, pairs: &[(&str, &str)]) -> Result<Vec<&'static str>, String> {
        let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        live.set(&pairs)
    }

    fn names(live: &Live, patterns: &[&'static str]) -> Vec<Cow<'static, str>> {
        live.get(patterns.iter().map(|it| it.as_bytes()), false).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn parameters_are_found_by_patterns() {
        let live = live();
        assert_eq!(names(&live, &["port", "zz", "PROTO*"]), ["port", "proto-max-bulk-len"]);
        assert_eq!(names(&live, &["save", "sav?"]), ["save"]);
        assert_eq!(names(&live, &["maxCLIENTS", "port"]), ["maxCLIENTS", "port"], "as they were asked for");
        assert_eq!(names(&live, &["[a-b]ppend*"]), ["appendfsync", "appendonly"]);
        assert_eq!(names(&live, &["*"]).len(), PARAMETERS.len());
        assert!(names(&live, &["*x*y*z*"]).is_empty());
    }

    #[test]
    fn cluster_port_says_that_it_is_a_cluster() {
        let value = |on| live().get([&b"cluster-enabled"[..]].into_iter(), on)[0].1.clone();
        assert_eq!((value(false), value(true)), ("no".to_owned(), "yes".to_owned()));
    }

    #[test]
    fn refusals_have_the_texts_of_redis() {
        let live = live();
        let failed = |name: &str, why: &str| {
            Err(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
        };
        assert_eq!(
            set(&live, &[("zzz", "1")]),
            Err("ERR Unknown option or number of arguments for CONFIG SET - 'zzz'".to_owned())
        );
        assert_eq!(
            set(&live, &[("maxmemory", "abc")]),
            failed("maxmemory", "argument must be a memory value")
        );
        assert_eq!(
            set(&live, &[("maxmemory", "1"), ("maxmemory", "2"), ("zz", "3")]),
            failed("maxmemory", "duplicate parameter")
        );
        assert_eq!(set(&live, &[("databases", "3")]), failed("databases", "can't set immutable config"));
        assert_eq!(
            set(&live, &[("timeout", "-1")]),
            failed("timeout", "argument must be between 0 and 2147483647 inclusive")
        );
        assert_eq!(
            set(&live, &[("timeout", "x")]),
            failed("timeout", "argument couldn't be parsed into an integer")
        );
        assert_eq!(
            set(&live, &[("proto-max-bulk-len", "1")]),
            failed(
                "proto-max-bulk-len",
                "argument must be between 1048576 and 9223372036854775807 inclusive"
            )
        );
        assert_eq!(
            set(&live, &[("client-output-buffer-limit", "foo")]),
            failed("client-output-buffer-limit", "Wrong number of arguments in buffer limit configuration.")
        );
        let policies = "volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, \
                        allkeys-random, noeviction";
        assert_eq!(
            set(&live, &[("maxmemory-policy", "foo")]),
            failed("maxmemory-policy", &format!("argument(s) must be one of the following: {policies}"))
        );
    }

    #[test]
    fn several_parameters_are_set_all_or_none() {
        let live = live();
        assert!(set(&live, &[("maxmemory", "1gb"), ("maxmemory-policy", "foo")]).is_err());
        assert_eq!(live.maxmemory(), 0);
        assert_eq!(
            set(&live, &[("MAXMEMORY", "1gb"), ("maxmemory-policy", "allkeys-lru"), ("timeout", "0")]),
            Ok(vec!["maxmemory", "maxmemory-policy"])
        );
        assert_eq!(live.maxmemory(), 1 << 30);
        assert_eq!(POLICIES[live.policy()], "allkeys-lru");
        assert_eq!(live.text("maxmemory"), "1073741824");
    }

    #[test]
    fn hot_values_follow() {
        let live = live();
        set(&live, &[("timeout", "7"), ("slowlog-log-slower-than", "-1"), ("maxclients", "3")]).unwrap();
        assert_eq!(live.timeout(), Some(Duration::from_secs(7)));
        assert_eq!(live.slowlog_slower_than_us(), None);
        assert_eq!(live.maxclients(), 3);
        set(&live, &[("client-output-buffer-limit", "normal 5mb 0 0")]).unwrap();
        assert_eq!(live.client_output_buffer_limit(), 5 << 20);
        let limits = |hard, soft, seconds| Limits { hard, soft, patience: Duration::from_secs(seconds) };
        assert_eq!(live.pubsub_limits(), limits(32 << 20, 8 << 20, 60));
        set(&live, &[("client-output-buffer-limit", "pubsub 1mb 0 7")]).unwrap();
        assert_eq!(live.pubsub_limits(), limits(1 << 20, 0, 7));
    }

    #[test]
    fn keyspace_events_are_shown_in_the_order_of_redis() {
        let live = live();
        for (given, shown) in
            [("KEA", "AKE"), ("Kxg", "gxK"), ("nmtdKExzh", "hzxtdnKEm"), ("g$lshzxetd", "A"), ("", "")]
        {
            set(&live, &[("notify-keyspace-events", given)]).unwrap();
            assert_eq!(live.text("notify-keyspace-events"), shown);
        }
    }

    #[test]
    fn persistence_stays_off_but_may_be_turned_off_again() {
        let live = live();
        assert_eq!(set(&live, &[("save", ""), ("appendonly", "no")]), Ok(vec![]));
        assert!(set(&live, &[("appendonly", "yes")]).is_err());
    }
}
