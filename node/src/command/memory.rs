//! `MEMORY DOCTOR|STATS|MALLOC-STATS|PURGE|HELP`: what the node as a whole takes.
//!
//! For: answering tools written for Redis, with the figures that mean something here.
//! Not here: `MEMORY USAGE`, which looks at one key (`key::object`).

use korum_protocol::command::CommandId;
use korum_protocol::resp::ReplyWriter;

use super::subcommand;

/// Memory of a node at one moment.
#[derive(Clone, Copy, Default, Debug)]
pub struct MemoryFigures {
    /// Of the process, bytes.
    pub resident: u64,
    /// Of the process, the most so far, bytes.
    pub resident_peak: u64,
    /// Of keys and values, bytes.
    pub data: u64,
    /// Number of keys, copies included.
    pub keys: u64,
}

/// Answers a subcommand other than `USAGE`.
pub fn memory(id: CommandId, figures: impl FnOnce() -> MemoryFigures, reply: &mut ReplyWriter<'_>) {
    match id {
        CommandId::MemoryDoctor => reply.verbatim("txt", b"Korum has no complaint about its memory.\n"),
        // The allocator gives memory back by itself.
        CommandId::MemoryPurge => reply.ok(),
        CommandId::MemoryMallocStats => reply.bulk(b"Stats not supported for the current allocator"),
        CommandId::MemoryStats => stats(&figures(), reply),
        _ => subcommand::help("MEMORY", HELP, reply),
    }
}

fn stats(figures: &MemoryFigures, reply: &mut ReplyWriter<'_>) {
    let fields = [
        ("peak.allocated", figures.resident_peak),
        ("total.allocated", figures.resident),
        ("overhead.total", figures.resident.saturating_sub(figures.data)),
        ("keys.count", figures.keys),
        ("keys.bytes-per-key", figures.data.checked_div(figures.keys).unwrap_or(0)),
        ("dataset.bytes", figures.data),
    ];
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let ratios = [
        ("dataset.percentage", 100.0 * share(figures.data, figures.resident)),
        ("peak.percentage", 100.0 * share(figures.resident, figures.resident_peak)),
        ("fragmentation", share(figures.resident, figures.data)),
    ];
    reply.map(fields.len() + ratios.len());
    for (name, value) in fields {
        reply.bulk(name.as_bytes());
        reply.integer(value.cast_signed());
    }
    for (name, value) in ratios {
        reply.bulk(name.as_bytes());
        reply.double(&value.to_string());
    }
}

const HELP: &[&str] = &[
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return internal statistics report from the memory allocator.",
    "PURGE",
    "    Attempt to purge dirty pages for reclamation by the allocator.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. Nested values are",
    "    sampled up to <count> times (default: 5, 0 means sample all).",
];

#[cfg(test)]
mod tests {
    use korum_protocol::resp::ProtocolVersion::Resp3;

    use super::*;
    use crate::command::subcommand::testing::answer;

    #[test]
    fn figures_are_a_map() {
        let figures = || MemoryFigures { resident: 10, resident_peak: 20, data: 6, keys: 3 };
        let text = answer("memory stats", Resp3, |_, reply| memory(CommandId::MemoryStats, figures, reply));
        assert!(text.starts_with("%6\r\n$14\r\npeak.allocated\r\n:20\r\n"), "{text}");
        assert!(text.contains("$18\r\nkeys.bytes-per-key\r\n:2\r\n"), "{text}");
    }
}
