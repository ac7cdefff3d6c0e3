//! `LATENCY`: what delays commands.
//!
//! For: parsing and answering.
//! Not here: the delays (`admin::slowlog`), the times of commands (`admin::command_stats`), pictures (`admin::sparkline`).

use std::collections::HashSet;

use korum_protocol::command::lookup;
use korum_protocol::resp::{Args, ReplyWriter};

use super::subcommand::{self, lower, wrong_arity};
use crate::admin::command_stats::{AllTotals, CommandTotals};
use crate::admin::slowlog::{Delays, Latency};
use crate::admin::sparkline;

/// What the family tells of.
pub struct LatencyFigures<'a> {
    /// Delays by kind.
    pub delays: &'a Latency,
    /// Times of commands.
    pub commands: &'a dyn Fn() -> AllTotals,
    /// From how many milliseconds on a command is a delay; `None`: nobody looks.
    pub threshold_ms: Option<u64>,
    /// Unix seconds.
    pub now: u64,
}

/// `LATENCY DOCTOR|GRAPH|HISTOGRAM|HISTORY|LATEST|RESET|HELP`.
pub fn latency(args: Args<'_>, figures: &LatencyFigures<'_>, reply: &mut ReplyWriter<'_>) {
    let delays = figures.delays;
    match (subcommand::name(args).as_str(), args.len()) {
        ("", _) => wrong_arity("latency", reply),
        ("latest", 2) => {
            let all = delays.all();
            reply.array(all.len());
            for (kind, delays) in all {
                let (at, took_ms) = delays.all.back().copied().unwrap_or_default();
                reply.array(4);
                reply.bulk(kind.as_bytes());
                [at, took_ms, delays.longest_ms].into_iter().for_each(|it| reply.integer(it.cast_signed()));
            }
        }
        ("history", 3) => {
            let found = of_kind(delays, &args[2]).map(|(_, delays)| delays).unwrap_or_default();
            reply.array(found.all.len());
            for (at, took_ms) in found.all {
                reply.array(2);
                reply.integer(at.cast_signed());
                reply.integer(took_ms.cast_signed());
            }
        }
        ("reset", _) => {
            let names: Vec<&[u8]> = args.tail(2).iter().collect();
            reply.integer(delays.reset(&names) as i64);
        }
        ("histogram", _) => histogram(&(figures.commands)(), args.tail(2), reply),
        ("doctor", 2) => reply.verbatim("txt", doctor(figures).as_bytes()),
        ("graph", 3) => match of_kind(delays, &args[2]) {
            Some((kind, delays)) => reply.verbatim("txt", graph(kind, &delays, figures.now).as_bytes()),
            None => {
                let event = String::from_utf8_lossy(&args[2]);
                reply.error(&format!("ERR No samples available for event '{event}'"));
            }
        },
        ("help", 2) => subcommand::help("LATENCY", HELP, reply),
        (name @ ("latest" | "history" | "doctor" | "graph" | "help"), _) => {
            wrong_arity(&format!("latency|{name}"), reply);
        }
        _ => subcommand::unknown("LATENCY", args, reply),
    }
}

fn of_kind(delays: &Latency, name: &[u8]) -> Option<(&'static str, Delays)> {
    let wanted = lower(name);
    delays.all().into_iter().find(|(kind, _)| *kind == wanted)
}

/// Of the commands named, once each, and of all subcommands of the containers among them; of all commands if none is
/// named.
fn histogram(totals: &AllTotals, names: Args<'_>, reply: &mut ReplyWriter<'_>) {
    let shown = |name: &str| totals.get_key_value(name).filter(|(_, row)| row.times.total() > 0);
    let mut rows: Vec<(&str, &CommandTotals)> = Vec::new();
    if names.is_empty() {
        rows.extend(totals.keys().filter_map(|name| shown(name)).map(|(name, row)| (*name, row)));
    }
    let mut asked = HashSet::new();
    for spec in names.iter().filter_map(lookup).filter(|spec| asked.insert(spec.full_name)) {
        let all = std::iter::once(spec).chain(spec.subcommands);
        rows.extend(all.filter_map(|it| shown(it.full_name)).map(|(name, row)| (*name, row)));
    }
    reply.map(rows.len());
    for (name, row) in rows {
        reply.bulk(name.as_bytes());
        reply.map(2);
        reply.bulk(b"calls");
        reply.integer(row.times.total().cast_signed());
        reply.bulk(b"histogram_usec");
        let shown = row.times.cumulative();
        reply.map(shown.len());
        for (us, count) in shown {
            reply.integer(us.cast_signed());
            reply.integer(count.cast_signed());
        }
    }
}

fn graph(kind: &str, delays: &Delays, now: u64) -> String {
    let times = || delays.all.iter().map(|(_, took_ms)| *took_ms);
    let (most, least) = (times().max().unwrap_or(0), times().min().unwrap_or(0));
    let samples: Vec<_> =
        delays.all.iter().map(|&(at, took_ms)| (took_ms, age(now.saturating_sub(at)))).collect();
    format!(
        "{kind} - high {most} ms, low {least} ms (all time high {} ms)\n{}\n{}",
        delays.longest_ms,
        "-".repeat(sparkline::COLUMNS),
        sparkline::draw(&samples)
    )
}

/// Seconds, in a few letters.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn doctor(figures: &LatencyFigures<'_>) -> String {
    let all = figures.delays.all();
    if figures.threshold_ms.is_none() && all.is_empty() {
        return "Nobody looks for delays at this node. CONFIG SET latency-monitor-threshold <milliseconds> \
                begins with it.\n"
            .to_owned();
    }
    if all.is_empty() {
        return "No command of this node was delayed since it is looked at.\n".to_owned();
    }
    let mut text = "These commands of this node took longer than they should:\n\n".to_owned();
    for (number, (kind, delays)) in all.iter().enumerate() {
        let count = delays.all.len() as u64;
        let average = delays.all.iter().map(|it| it.1).sum::<u64>() / count.max(1);
        let deviation = delays.all.iter().map(|it| it.1.abs_diff(average)).sum::<u64>() / count.max(1);
        let first = delays.all.front().map_or(figures.now, |it| it.0);
        let period = figures.now.saturating_sub(first) as f64 / count.max(1) as f64;
        text.push_str(&format!(
            "{}. {kind}: {count} latency spikes (average {average}ms, mean deviation {deviation}ms, period {period:.2} \
             sec). Worst all time event {}ms.\n",
            number + 1,
            delays.longest_ms
        ));
    }
    text.push_str(
        "\nWhat may help:\n\n\
         - SLOWLOG GET shows which commands they were; LATENCY HISTOGRAM how long each kind of command takes.\n\
         - KEYS, SMEMBERS, SORT and scripts hold back whoever needs the same partition: SCAN and kin go in steps.\n\
         - A node that has too few processors, or shares them, is late with everything: see its load.\n",
    );
    text
}

const HELP: &[&str] = &[
    "DOCTOR",
    "    Return a human readable latency analysis report.",
    "GRAPH <event>",
    "    Return an ASCII latency graph for the <event> class.",
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
    "    If no commands are specified then all histograms are replied.",
];

#[cfg(test)]
mod tests {
    use korum_protocol::command::CommandId;
    use korum_protocol::resp::ProtocolVersion::{self, Resp2, Resp3};

    use super::*;
    use crate::admin::command_stats::CommandStats;
    use crate::command::subcommand::testing::answer_words;

    struct World {
        delays: Latency,
        stats: CommandStats,
        threshold_ms: Option<u64>,
    }

    impl World {
        fn new() -> Self {
            Self { delays: Latency::default(), stats: CommandStats::default(), threshold_ms: Some(10) }
        }

        fn ask_as(&self, version: ProtocolVersion, line: &str) -> String {
            let words: Vec<&str> = line.split(' ').collect();
            let commands = || {
                let mut totals = AllTotals::new();
                self.stats.add_to(&mut totals);
                totals
            };
            let threshold_ms = self.threshold_ms;
            let figures =
                LatencyFigures { delays: &self.delays, commands: &commands, threshold_ms, now: 100 };
            answer_words(&words, version, |args, reply| latency(args, &figures, reply))
        }

        fn ask(&self, line: &str) -> String {
            self.ask_as(Resp2, line)
        }
    }

    #[test]
    fn histograms_are_of_the_commands_asked_for() {
        let world = World::new();
        assert_eq!(world.ask("latency histogram"), "*0\r\n");
        world.stats.took(CommandId::Get, 3, 900);
        world.stats.took(CommandId::ConfigGet, 1, 20_000);
        world.stats.called(CommandId::Set, 1);
        let get = "$3\r\nget\r\n%2\r\n$5\r\ncalls\r\n:3\r\n$14\r\nhistogram_usec\r\n%1\r\n:1\r\n:3\r\n";
        assert_eq!(world.ask_as(Resp3, "latency histogram GET set nosuch"), format!("%1\r\n{get}"));
        assert!(world.ask("latency histogram config").contains("config|get"));
        assert!(world.ask("latency histogram").starts_with("*4\r\n"));
    }

    #[test]
    fn errors_have_the_texts_of_redis() {
        let world = World::new();
        assert_eq!(world.ask("latency latest"), "*0\r\n");
        assert_eq!(world.ask("latency reset"), ":0\r\n");
        assert_eq!(world.ask("latency graph x"), "-ERR No samples available for event 'x'\r\n");
        assert_eq!(world.ask("latency foo"), "-ERR unknown subcommand 'foo'. Try LATENCY HELP.\r\n");
        assert!(world.ask("latency help").starts_with("*17\r\n"));
    }

    #[test]
    fn graphs_and_reports_are_of_the_delays() {
        let mut world = World::new();
        assert!(world.ask("latency doctor").contains("No command of this node was delayed"));
        assert_eq!(world.ask("latency graph command"), "-ERR No samples available for event 'command'\r\n");
        [(98, 100), (99, 30), (100, 50)].into_iter().for_each(|(at, ms)| world.delays.add("command", at, ms));
        let report = world.ask("latency doctor");
        assert!(report.contains("1. command: 3 latency spikes (average 60ms, mean deviation 26ms, period 0.67 sec). Worst all time event 100ms."), "{report}");
        let graph = world.ask("latency graph COMMAND");
        assert!(graph.contains("command - high 100 ms, low 30 ms (all time high 100 ms)\n----"), "{graph}");
        assert!(graph.ends_with("-\n#  \n|  \n| _\n|_|\n   \n210\nsss\n\r\n"), "{graph}");
        assert_eq!(world.ask("latency reset command foo"), ":1\r\n");
        world.threshold_ms = None;
        assert!(world.ask("latency doctor").contains("CONFIG SET latency-monitor-threshold"));
        assert_eq!([0, 59, 60, 3_600, 90_000].map(age), ["0s", "59s", "1m", "1h", "1d"]);
    }
}
