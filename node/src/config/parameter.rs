//! The parameters that Redis clients ask for with `CONFIG`: names, kinds, defaults.
//!
//! For: answering tools that were written for Redis, and checking what they set.
//! Not here: the values of this moment (`live`), Korum's own settings (`settings`).

use super::Config;
use super::live::POLICIES;
use crate::command::hyperloglog::SPARSE_BYTES_MAX;
use crate::store::{hash, set, sorted_set};

/// What a parameter may be.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Cannot be set while the node runs.
    Fixed,
    /// A whole number in a range.
    Number(i64, i64),
    /// Bytes, at least so many.
    Memory(i64),
    /// `yes` or `no`.
    YesNo,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Keyspace event flags.
    Events,
    /// Limits of output buffers by class of client.
    BufferLimits,
    /// Percentiles, or none.
    Percentiles,
    /// Any text.
    Text,
    /// Only what it already is; the text says why.
    Only(&'static str),
}

/// One parameter.
pub struct Parameter {
    /// Its name, lower case.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Its value at start.
    pub initial: fn(&Config) -> String,
}

macro_rules! parameters {
    ($($name:literal $kind:expr, |$config:pat_param| $value:expr;)*) => {
        /// All parameters, by name.
        pub static PARAMETERS: &[Parameter] = &[$(Parameter {
            name: $name,
            kind: $kind,
            initial: |$config| ($value).to_string(),
        },)*];
    };
}

const INT: i64 = i32::MAX as i64;
const LEVELS: &[&str] = &["debug", "verbose", "notice", "warning"];
const NO_AOF: &str = "Korum keeps data in memory, on several nodes, and writes no append-only file";
const NO_RDB: &str = "Korum keeps data in memory, on several nodes, and writes no snapshots";

parameters! {
    "active-expire-effort" Kind::Number(1, 10), |_| 1;
    "activedefrag" Kind::Only("Korum's allocator needs no defragmentation"), |_| "no";
    "aclfile" Kind::Fixed, |_| "";
    "appendfsync" Kind::OneOf(&["everysec", "always", "no"]), |_| "everysec";
    "appendonly" Kind::Only(NO_AOF), |_| "no";
    "bind" Kind::Fixed, |c| c.network.bind.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    "client-output-buffer-limit" Kind::BufferLimits, |c| format!("normal {} 0 0 slave 0 0 0 pubsub 33554432 8388608 60", c.limits.client_output_buffer_limit);
    "client-query-buffer-limit" Kind::Memory(1 << 20), |c| c.limits.client_query_buffer_limit;
    "cluster-allow-reads-when-down" Kind::Fixed, |_| "no";
    "cluster-announce-ip" Kind::Fixed, |c| c.network.announce_host.clone();
    "cluster-enabled" Kind::Fixed, |_| "no";
    "cluster-node-timeout" Kind::Fixed, |c| c.timing.lease.as_millis();
    "cluster-port" Kind::Fixed, |c| c.network.peer_port;
    "cluster-require-full-coverage" Kind::Fixed, |_| "no";
    "cross-slot-transactions" Kind::YesNo, |c| if c.cluster.cross_slot_transactions { "yes" } else { "no" };
    "daemonize" Kind::Fixed, |_| "no";
    "databases" Kind::Fixed, |c| c.limits.databases;
    "dbfilename" Kind::Fixed, |_| "";
    "dir" Kind::Fixed, |c| c.storage.dir.display();
    "hash-max-listpack-entries" Kind::Number(0, i64::MAX), |_| hash::PACKED_FIELDS_MAX;
    "hash-max-listpack-value" Kind::Number(0, i64::MAX), |_| hash::PACKED_ITEM_BYTES_MAX;
    "hash-max-ziplist-entries" Kind::Number(0, i64::MAX), |_| hash::PACKED_FIELDS_MAX;
    "hash-max-ziplist-value" Kind::Number(0, i64::MAX), |_| hash::PACKED_ITEM_BYTES_MAX;
    "hll-sparse-max-bytes" Kind::Number(0, i64::MAX), |_| SPARSE_BYTES_MAX;
    "hz" Kind::Number(1, 500), |_| 10;
    "io-threads" Kind::Fixed, |c| c.limits.threads;
    "io-threads-do-reads" Kind::Fixed, |_| "yes";
    "latency-monitor-threshold" Kind::Number(0, i64::MAX), |_| 0;
    "latency-tracking" Kind::YesNo, |_| "yes";
    "latency-tracking-info-percentiles" Kind::Percentiles, |_| "50 99 99.9";
    "lazyfree-lazy-eviction" Kind::YesNo, |_| "yes";
    "lazyfree-lazy-expire" Kind::YesNo, |_| "yes";
    "lazyfree-lazy-server-del" Kind::YesNo, |_| "yes";
    "lazyfree-lazy-user-del" Kind::YesNo, |_| "yes";
    "lazyfree-lazy-user-flush" Kind::YesNo, |_| "yes";
    "lfu-decay-time" Kind::Number(0, INT), |_| 1;
    "lfu-log-factor" Kind::Number(0, INT), |_| 10;
    "list-compress-depth" Kind::Number(0, INT), |_| 0;
    "list-max-listpack-size" Kind::Number(-5, INT), |_| -2;
    "list-max-ziplist-size" Kind::Number(-5, INT), |_| -2;
    "logfile" Kind::Fixed, |_| "";
    "loglevel" Kind::OneOf(LEVELS), |_| "notice";
    "lua-time-limit" Kind::Number(1, INT), |_| crate::script::cache::TIME_LIMIT.as_millis();
    "busy-reply-threshold" Kind::Number(1, INT), |_| crate::script::cache::TIME_LIMIT.as_millis();
    "maxclients" Kind::Number(1, 1_000_000), |c| c.network.maxclients;
    "maxmemory" Kind::Memory(0), |c| c.limits.maxmemory;
    "maxmemory-clients" Kind::Fixed, |_| 0;
    "maxmemory-eviction-tenacity" Kind::Number(0, 100), |_| 10;
    "maxmemory-policy" Kind::OneOf(POLICIES), |c| c.limits.maxmemory_policy.clone();
    "maxmemory-samples" Kind::Number(1, INT), |_| 5;
    "min-replicas-max-lag" Kind::Number(0, INT), |_| 10;
    "min-replicas-to-write" Kind::Fixed, |_| 0;
    "notify-keyspace-events" Kind::Events, |_| "";
    "pidfile" Kind::Fixed, |_| "";
    "port" Kind::Fixed, |c| c.network.port;
    "proto-max-bulk-len" Kind::Memory(1 << 20), |c| c.limits.proto_max_bulk_len;
    "protected-mode" Kind::Fixed, |_| "no";
    "repl-backlog-size" Kind::Fixed, |c| c.limits.backlog;
    "repl-timeout" Kind::Fixed, |c| c.cluster.replica_timeout.as_secs().max(1);
    "replica-announce-ip" Kind::Fixed, |_| "";
    "replica-priority" Kind::Fixed, |_| 100;
    "replica-read-only" Kind::Only("replicas follow their primary, always"), |_| "yes";
    "replica-serve-stale-data" Kind::Fixed, |_| "no";
    "replicaof" Kind::Fixed, |_| "";
    "requirepass" Kind::Text, |c| c.network.requirepass.0.clone();
    "save" Kind::Only(NO_RDB), |_| "";
    "set-max-intset-entries" Kind::Number(0, i64::MAX), |_| set::INTEGERS_MAX;
    "set-max-listpack-entries" Kind::Number(0, i64::MAX), |_| set::PACKED_MEMBERS_MAX;
    "set-max-listpack-value" Kind::Number(0, i64::MAX), |_| set::PACKED_MEMBER_BYTES_MAX;
    "slave-read-only" Kind::Only("replicas follow their primary, always"), |_| "yes";
    "slaveof" Kind::Fixed, |_| "";
    "slowlog-log-slower-than" Kind::Number(-1, i64::MAX), |_| 10_000;
    "slowlog-max-len" Kind::Number(0, 65_536), |_| 128;
    "stop-writes-on-bgsave-error" Kind::YesNo, |_| "no";
    "stream-node-max-bytes" Kind::Memory(0), |_| 4096;
    "stream-node-max-entries" Kind::Number(0, i64::MAX), |_| 100;
    "tcp-backlog" Kind::Fixed, |_| 511;
    "tcp-keepalive" Kind::Number(0, INT), |c| c.network.tcp_keepalive.as_secs();
    "timeout" Kind::Number(0, INT), |c| c.network.timeout.as_millis().div_ceil(1000);
    "tls-port" Kind::Fixed, |_| 0;
    "tracking-table-max-keys" Kind::Number(0, i64::MAX), |_| 1_000_000;
    "unixsocket" Kind::Fixed, |_| "";
    "zset-max-listpack-entries" Kind::Number(0, i64::MAX), |_| sorted_set::PACKED_MEMBERS_MAX;
    "zset-max-listpack-value" Kind::Number(0, i64::MAX), |_| sorted_set::PACKED_MEMBER_BYTES_MAX;
    "zset-max-ziplist-entries" Kind::Number(0, i64::MAX), |_| sorted_set::PACKED_MEMBERS_MAX;
    "zset-max-ziplist-value" Kind::Number(0, i64::MAX), |_| sorted_set::PACKED_MEMBER_BYTES_MAX;
}

impl Kind {
    /// The value that `text` means, as it will be shown; or why it is refused, in Redis' words.
    pub fn read(self, text: &str, present: &str) -> Result<String, String> {
        match self {
            Kind::Fixed => Err("can't set immutable config".to_owned()),
            Kind::Number(min, max) => {
                let number: i64 =
                    text.parse().map_err(|_| "argument couldn't be parsed into an integer".to_owned())?;
                within(number, min, max)
            }
            Kind::Memory(min) => {
                let bytes =
                    super::value::memory(text).ok_or_else(|| "argument must be a memory value".to_owned())?;
                within(i64::try_from(bytes).unwrap_or(i64::MAX), min, i64::MAX)
            }
            Kind::YesNo => match text.to_ascii_lowercase().as_str() {
                word @ ("yes" | "no") => Ok(word.to_owned()),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Kind::OneOf(words) => {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(text));
                word.map(|word| (*word).to_owned())
                    .ok_or_else(|| format!("argument(s) must be one of the following: {}", words.join(", ")))
            }
            Kind::Events => events(text),
            Kind::BufferLimits => buffer_limits(text, present),
            Kind::Percentiles => percentiles(text),
            Kind::Text => Ok(text.to_owned()),
            Kind::Only(why) => {
                if text.eq_ignore_ascii_case(present) {
                    Ok(present.to_owned())
                } else {
                    Err(why.to_owned())
                }
            }
        }
    }
}

fn within(number: i64, min: i64, max: i64) -> Result<String, String> {
    if (min..=max).contains(&number) {
        Ok(number.to_string())
    } else {
        Err(format!("argument must be between {min} and {max} inclusive"))
    }
}

/// Flags of keyspace events, in the order in which Redis shows them.
fn events(text: &str) -> Result<String, String> {
    const ALL: &str = "g$lshzxetd";
    const REST: &str = "nKEm";
    let legal = |flag: char| flag == 'A' || ALL.contains(flag) || REST.contains(flag);
    if !text.chars().all(legal) {
        return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned());
    }
    let is_set = |flag: &char| text.contains(*flag);
    let mut shown: String = if text.contains('A') || ALL.chars().all(|flag| text.contains(flag)) {
        "A".to_owned()
    } else {
        ALL.chars().filter(is_set).collect()
    };
    shown.extend(REST.chars().filter(is_set));
    Ok(shown)
}

/// Numbers from 0 to 100.
fn percentiles(text: &str) -> Result<String, String> {
    let numbers: Option<Vec<f64>> = text.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    let numbers = numbers.ok_or("Invalid latency-tracking-info-percentiles parameters")?;
    if numbers.iter().any(|number| !(0.0..=100.0).contains(number)) {
        return Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".to_owned());
    }
    Ok(numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(" "))
}

/// `class hard soft seconds`, several times; classes that are not named keep their limits.
fn buffer_limits(text: &str, present: &str) -> Result<String, String> {
    const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
    }
    let mut limits: Vec<String> = present.split(' ').map(str::to_owned).collect();
    for group in words.chunks_exact(4) {
        let class = if group[0].eq_ignore_ascii_case("replica") { "slave" } else { group[0] };
        let at = CLASSES.iter().position(|known| known.eq_ignore_ascii_case(class));
        let at = at.ok_or("Invalid client class specified in buffer limit configuration.")?;
        let sizes = [group[1], group[2]].map(super::value::memory);
        let (Some(hard), Some(soft), Ok(seconds)) = (sizes[0], sizes[1], group[3].parse::<u32>()) else {
            return Err(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.".to_owned()
            );
        };
        for (offset, number) in [hard, soft, u64::from(seconds)].into_iter().enumerate() {
            limits[4 * at + 1 + offset] = number.to_string();
        }
    }
    Ok(limits.join(" "))
}
