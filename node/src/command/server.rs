//! Server commands that say how the node is, or change it: `INFO CONFIG TIME LOLWUT SHUTDOWN WAIT SLOWLOG`.
//!
//! For: parsing and answering; what has to be done is returned as a value.
//! Not here: the texts (`admin`), commands that touch data (`DBSIZE`, `FLUSHALL`).

use std::time::Duration;

use korum_protocol::placement::hash::sm;
use korum_protocol::resp::{Args, ReplyWriter};

use super::connection::REDIS_VERSION;
use super::subcommand::{self, NOT_AN_INTEGER, SYNTAX, integer, lower, wrong_arity};
use crate::admin::info::{self, InfoSnapshot};
use crate::admin::slowlog::{Entry, SlowLog};
use crate::config::live::Live;
use crate::net::session::PortKind;

/// `INFO [section ...]`.
pub fn info(args: Args<'_>, snapshot: &InfoSnapshot, reply: &mut ReplyWriter<'_>) {
    let names: Vec<&[u8]> = args.tail(1).iter().collect();
    reply.verbatim("txt", info::text(snapshot, &names).as_bytes());
}

/// What is left to do after `CONFIG`; the reply is written.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum ConfigOutcome {
    /// Nothing.
    Done,
    /// These parameters have new values.
    Changed(Vec<&'static str>),
    /// Set the counters back.
    ResetStats,
}

/// `CONFIG GET|SET|RESETSTAT|REWRITE|HELP`.
pub fn config(args: Args<'_>, live: &Live, port: PortKind, reply: &mut ReplyWriter<'_>) -> ConfigOutcome {
    let name = subcommand::name(args);
    let arity = match name.as_str() {
        "" => {
            wrong_arity("config", reply);
            return ConfigOutcome::Done;
        }
        "get" => args.len() >= 3,
        "set" => args.len() >= 4,
        "resetstat" | "rewrite" | "help" => args.len() == 2,
        _ => true,
    };
    if !arity {
        wrong_arity(&format!("config|{name}"), reply);
        return ConfigOutcome::Done;
    }
    match name.as_str() {
        "get" => {
            let patterns: Vec<&[u8]> = args.tail(2).iter().collect();
            let found = live.get(patterns.iter().copied(), port == PortKind::Cluster);
            reply.map(found.len());
            for (name, value) in found {
                reply.bulk(name.as_bytes());
                reply.bulk(value.as_bytes());
            }
        }
        "set" => return config_set(args.tail(2), live, reply),
        "resetstat" => {
            reply.ok();
            return ConfigOutcome::ResetStats;
        }
        "rewrite" => reply.error("ERR The server is running without a config file"),
        "help" => subcommand::help("CONFIG", CONFIG_HELP, reply),
        _ => subcommand::unknown("CONFIG", args, reply),
    }
    ConfigOutcome::Done
}

fn config_set(pairs: Args<'_>, live: &Live, reply: &mut ReplyWriter<'_>) -> ConfigOutcome {
    if !pairs.len().is_multiple_of(2) {
        reply.error(SYNTAX);
        return ConfigOutcome::Done;
    }
    let wanted: Vec<(&[u8], &[u8])> =
        (0..pairs.len()).step_by(2).filter_map(|at| Some((pairs.get(at)?, pairs.get(at + 1)?))).collect();
    match live.set(&wanted) {
        Ok(changed) => {
            reply.ok();
            if changed.is_empty() { ConfigOutcome::Done } else { ConfigOutcome::Changed(changed) }
        }
        Err(text) => {
            reply.error(&text);
            ConfigOutcome::Done
        }
    }
}

/// `ROLE`: every node is primary of some partitions. Copies are told of by `KORUM STATUS`.
pub fn role(reply: &mut ReplyWriter<'_>) {
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
}

/// `TIME`; `wall_us` is Unix time.
pub fn time(args: Args<'_>, wall_us: u64, reply: &mut ReplyWriter<'_>) {
    if args.len() != 1 {
        return wrong_arity("time", reply);
    }
    reply.array(2);
    reply.bulk((wall_us / 1_000_000).to_string().as_bytes());
    reply.bulk((wall_us % 1_000_000).to_string().as_bytes());
}

/// `LOLWUT [VERSION n] ...`: a meadow in which every flower knows where it stands.
pub fn lolwut(args: Args<'_>, seed: u64, reply: &mut ReplyWriter<'_>) {
    if args.get(1).map(lower).as_deref() == Some("version")
        && args.get(2).is_some_and(|n| integer(n).is_none())
    {
        return reply.error(NOT_AN_INTEGER);
    }
    const FLOWERS: [char; 8] = ['.', ',', '\'', '`', '*', 'o', '@', '"'];
    const ROWS: u64 = 8;
    const COLUMNS: u64 = 48;
    let mut text = String::new();
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            // Flowers grow thicker towards the viewer, and each kind in patches of its own.
            let dice = sm(seed, row * COLUMNS + column);
            let patch = sm(seed ^ 1, row / 3 * 8 + column / 7) as usize;
            let grows = dice % ROWS <= row;
            let flower = FLOWERS[(patch + (dice >> 32) as usize % 2) % FLOWERS.len()];
            text.push(if grows { flower } else { ' ' });
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text.push_str(&format!(
        "\nKorum ver. {}, speaking Redis ver. {REDIS_VERSION}\n",
        env!("CARGO_PKG_VERSION")
    ));
    reply.verbatim("txt", text.as_bytes());
}

/// What `SHUTDOWN` asks for. Saving means nothing here: data lives on in the other copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shutdown {
    /// Do not wait for replicas.
    pub now: bool,
    /// Go on whatever fails.
    pub force: bool,
}

/// `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]`.
///
/// # Errors
/// The text of the error reply. Without an error nothing is answered: the connection is closed.
pub fn shutdown(args: Args<'_>) -> Result<Shutdown, &'static str> {
    let mut wanted = Shutdown::default();
    let (mut save, mut nosave, mut abort) = (false, false, false);
    for option in args.tail(1).iter() {
        match lower(option).as_str() {
            "save" => save = true,
            "nosave" => nosave = true,
            "now" => wanted.now = true,
            "force" => wanted.force = true,
            "abort" => abort = true,
            _ => return Err(SYNTAX),
        }
    }
    match (abort, args.len()) {
        (true, 2) => Err("ERR No shutdown in progress."),
        (true, _) => Err(SYNTAX),
        (false, _) if save && nosave => Err(SYNTAX),
        (false, _) => Ok(wanted),
    }
}

/// `WAIT numreplicas timeout`: how many replicas, and how long (`None`: without end).
///
/// # Errors
/// The text of the error reply.
pub fn wait(args: Args<'_>) -> Result<(i64, Option<Duration>), String> {
    if args.len() != 3 {
        return Err("ERR wrong number of arguments for 'wait' command".to_owned());
    }
    let replicas = integer(&args[1]).ok_or(NOT_AN_INTEGER)?;
    match integer(&args[2]).map(u64::try_from) {
        None => Err("ERR timeout is not an integer or out of range".to_owned()),
        Some(Err(_)) => Err("ERR timeout is negative".to_owned()),
        Some(Ok(0)) => Ok((replicas, None)),
        Some(Ok(ms)) => Ok((replicas, Some(Duration::from_millis(ms)))),
    }
}

/// `SLOWLOG GET|LEN|RESET|HELP`.
pub fn slowlog(args: Args<'_>, log: &SlowLog, reply: &mut ReplyWriter<'_>) {
    match (subcommand::name(args).as_str(), args.len()) {
        ("", _) => wrong_arity("slowlog", reply),
        ("get", 3) if integer(&args[2]).is_none_or(|count| count < -1) => {
            reply.error("ERR count should be greater than or equal to -1");
        }
        ("get", 2 | 3) => {
            let count = args.get(2).and_then(integer).unwrap_or(10);
            slow_commands(&log.newest(usize::try_from(count).unwrap_or(usize::MAX)), reply);
        }
        ("get", _) => {
            let given = String::from_utf8_lossy(&args[1]);
            let text = "unknown subcommand or wrong number of arguments for";
            reply.error(&format!("ERR {text} '{given}'. Try SLOWLOG HELP."));
        }
        ("len", 2) => reply.integer(log.len() as i64),
        ("reset", 2) => {
            log.reset();
            reply.ok();
        }
        ("help", 2) => subcommand::help("SLOWLOG", SLOWLOG_HELP, reply),
        (name @ ("len" | "reset" | "help"), _) => wrong_arity(&format!("slowlog|{name}"), reply),
        _ => subcommand::unknown("SLOWLOG", args, reply),
    }
}

fn slow_commands(entries: &[Entry], reply: &mut ReplyWriter<'_>) {
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.integer(entry.id.cast_signed());
        reply.integer(entry.began.cast_signed());
        reply.integer(entry.took_us.cast_signed());
        reply.array(entry.arguments.len());
        entry.arguments.iter().for_each(|argument| reply.bulk(argument));
        reply.bulk(entry.address.as_bytes());
        reply.bulk(entry.name.as_bytes());
    }
}

/// What `MODULE HELP` lists: there are no modules.
pub const MODULE_HELP: &[&str] = &["LIST", "    Return a list of loaded modules."];

const CONFIG_HELP: &[&str] = &[
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
];

const SLOWLOG_HELP: &[&str] = &[
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
];

#[cfg(test)]
mod tests {
    use korum_protocol::resp::ProtocolVersion::{self, Resp2, Resp3};

    use super::*;
    use crate::command::subcommand::testing::{answer, answer_words};
    use crate::config::Config;

    fn ask_config(words: &[&str], live: &Live, version: ProtocolVersion) -> (String, ConfigOutcome) {
        let mut outcome = ConfigOutcome::Done;
        let words = [&["config"], words].concat();
        let text = answer_words(&words, version, |args, reply| {
            outcome = config(args, live, PortKind::Client, reply)
        });
        (text, outcome)
    }

    #[test]
    fn config_get_is_a_map() {
        let live = Live::new(&Config::default());
        let ask = |version| ask_config(&["get", "port", "maxclients"], &live, version).0;
        let pairs = "$10\r\nmaxclients\r\n$5\r\n10000\r\n$4\r\nport\r\n$4\r\n6379\r\n";
        assert_eq!(ask(Resp3), format!("%2\r\n{pairs}"));
        assert_eq!(ask(Resp2), format!("*4\r\n{pairs}"));
        assert_eq!(ask_config(&["get", "zzz"], &live, Resp2).0, "*0\r\n");
        assert_eq!(ask_config(&["get", "save"], &live, Resp2).0, "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    }

    #[test]
    fn config_errors_have_the_texts_of_redis() {
        let live = Live::new(&Config::default());
        for (words, text) in [
            (&[""; 0][..], "wrong number of arguments for 'config' command"),
            (&["foo"], "unknown subcommand 'foo'. Try CONFIG HELP."),
            (&["get"], "wrong number of arguments for 'config|get' command"),
            (&["set", "a"], "wrong number of arguments for 'config|set' command"),
            (&["set", "timeout", "1", "hz"], "syntax error"),
            (&["set", "zzz", "1"], "Unknown option or number of arguments for CONFIG SET - 'zzz'"),
            (&["resetstat", "x"], "wrong number of arguments for 'config|resetstat' command"),
            (&["rewrite"], "The server is running without a config file"),
        ] {
            assert_eq!(ask_config(words, &live, Resp2).0, format!("-ERR {text}\r\n"), "{words:?}");
        }
    }

    #[test]
    fn config_set_tells_what_changed() {
        let live = Live::new(&Config::default());
        let changed = ask_config(&["set", "maxmemory", "1mb"], &live, Resp2);
        assert_eq!(changed, ("+OK\r\n".to_owned(), ConfigOutcome::Changed(vec!["maxmemory"])));
        assert_eq!(ask_config(&["set", "maxmemory", "1mb"], &live, Resp2).1, ConfigOutcome::Done);
        assert_eq!(
            ask_config(&["resetstat"], &live, Resp2),
            ("+OK\r\n".to_owned(), ConfigOutcome::ResetStats)
        );
        assert!(ask_config(&["help"], &live, Resp2).0.starts_with("*11\r\n+CONFIG <subcommand>"));
    }

    #[test]
    fn info_is_verbatim_text_in_resp3() {
        let snapshot = info::example(PortKind::Client);
        let ask = |version| answer("info cluster", version, |args, reply| info(args, &snapshot, reply));
        assert_eq!(ask(Resp2), "$30\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n");
        assert_eq!(ask(Resp3), "=34\r\ntxt:# Cluster\r\ncluster_enabled:0\r\n\r\n");
        assert_eq!(answer("info nosuch", Resp2, |args, reply| info(args, &snapshot, reply)), "$0\r\n\r\n");
    }

    #[test]
    fn small_answers() {
        let at = 1_795_992_315_287_376;
        assert_eq!(
            answer("time", Resp2, |args, reply| time(args, at, reply)),
            "*2\r\n$10\r\n1795992315\r\n$6\r\n287376\r\n"
        );
        let art = answer("lolwut", Resp3, |args, reply| lolwut(args, 7, reply));
        assert!(art.starts_with('=') && art.contains("\nKorum ver. "), "{art}");
        assert_eq!(
            answer("lolwut version x", Resp2, |args, reply| lolwut(args, 7, reply)),
            "-ERR value is not an integer or out of range\r\n"
        );
    }

    #[test]
    fn shutdown_and_wait_are_parsed() {
        let mut parsed = Err("");
        let mut parse = |line: &str| {
            answer(line, Resp2, |args, _| parsed = shutdown(args));
            parsed
        };
        assert_eq!(parse("shutdown"), Ok(Shutdown::default()));
        assert_eq!(parse("shutdown nosave NOW force"), Ok(Shutdown { now: true, force: true }));
        assert_eq!(parse("shutdown foo"), Err(SYNTAX));
        assert_eq!(parse("shutdown save nosave"), Err(SYNTAX));
        assert_eq!(parse("shutdown abort"), Err("ERR No shutdown in progress."));
        assert_eq!(parse("shutdown save abort"), Err(SYNTAX));
        let parse = |line: &str| {
            let mut parsed = Ok((0, None));
            answer(line, Resp2, |args, _| parsed = wait(args));
            parsed
        };
        assert_eq!(parse("wait 1 50"), Ok((1, Some(Duration::from_millis(50)))));
        assert_eq!(parse("wait 1 0"), Ok((1, None)));
        assert_eq!(parse("wait a b"), Err(NOT_AN_INTEGER.to_owned()));
        assert_eq!(parse("wait 1 b"), Err("ERR timeout is not an integer or out of range".to_owned()));
        assert_eq!(parse("wait 1 -1"), Err("ERR timeout is negative".to_owned()));
    }

    #[test]
    fn slowlog_is_empty() {
        let slow = |line: &str| answer(line, Resp2, |args, reply| slowlog(args, &SlowLog::default(), reply));
        assert_eq!(slow("slowlog get"), "*0\r\n");
        assert_eq!(slow("slowlog get -2"), "-ERR count should be greater than or equal to -1\r\n");
        assert_eq!(slow("slowlog get a"), "-ERR count should be greater than or equal to -1\r\n");
        assert_eq!(slow("slowlog len"), ":0\r\n");
        assert_eq!(slow("slowlog"), "-ERR wrong number of arguments for 'slowlog' command\r\n");
        assert!(slow("slowlog help").starts_with("*12\r\n"));
    }
}
