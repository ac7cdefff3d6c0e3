//! What test suites ask of a server.
//!
//! For: the subcommands of `DEBUG` that mean something here; the others are refused, and told what is there.
//! Not here: `DEBUG OBJECT`, which is about a key (`key::debug_object`), and the waiting of `DEBUG SLEEP`
//! (`dispatch::alone`): it holds back nobody but the connection that asks.

use std::time::Duration;

use korum_protocol::command::{CommandId, CommandSpec, glob};
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};

use super::subcommand::{self, NOT_AN_INTEGER, integer, lower};
use crate::config::live::Live;
use crate::config::value::memory;

/// Longest text that `STRINGMATCH-LEN` makes, bytes.
const TEXT_BYTES_MAX: i64 = 1 << 16;
/// Longest `SLEEP`.
const SLEEP_MAX: Duration = Duration::from_secs(24 * 3600);
/// Longest packed list that Redis may be told of, bytes.
const PACKED_BYTES_MAX: u64 = 4 << 30;

const HELP: &[&str] = &[
    "CHANGE-REPL-ID",
    "    Does nothing: copies are known by positions, not by ids.",
    "ERROR <string>",
    "    Return an error of this text.",
    "LOG <message>",
    "    Write a message to the log.",
    "OBJECT <key>",
    "    Show how a key is kept.",
    "PROTOCOL <type>",
    "    Reply with a test value of the specified type. <type> can be: string,",
    "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
    "    true, false.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Does nothing: lists have blocks of one size.",
    "RELOAD [MERGE] [NOFLUSH]",
    "    Does nothing: no data is written to disk, and all of it stays.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Stop, or go on with, removing expired keys in the background at this node.",
    "SLEEP <seconds>",
    "    Let this connection wait. Others go on.",
    "STRINGMATCH-LEN <len> <pattern>",
    "    Match the pattern against so many letters 'a'.",
];

/// `DEBUG …`, but for `OBJECT` and `SLEEP`.
pub fn debug(args: Args<'_>, live: &Live, reply: &mut ReplyWriter<'_>) {
    match (subcommand::name(args).as_str(), args.len()) {
        ("help", 2) => subcommand::help("DEBUG", HELP, reply),
        ("change-repl-id", 2) => reply.ok(),
        ("error", 3) => reply.error_bytes(&args[2]),
        ("log", 3) => {
            tracing::info!(text = %args[2].escape_ascii(), "DEBUG LOG");
            reply.ok();
        }
        ("protocol", 3) => protocol(&lower(&args[2]), reply),
        ("quicklist-packed-threshold", 3) => {
            let size = std::str::from_utf8(&args[2]).ok().and_then(memory);
            match size.filter(|&bytes| bytes <= PACKED_BYTES_MAX) {
                Some(_) => reply.ok(),
                None => reply.error("ERR argument must be a memory value bigger than 1 and smaller than 4gb"),
            }
        }
        ("reload", _) => {
            let options = args.tail(2);
            let is = |words: &[&str]| options.iter().all(|option| words.contains(&lower(option).as_str()));
            if is(&["merge", "noflush"]) {
                reply.ok();
            } else if is(&["merge", "noflush", "nosave"]) {
                reply.error("ERR DEBUG RELOAD NOSAVE has nothing to load: no data is written to disk");
            } else {
                reply.error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
            }
        }
        ("set-active-expire", 3) => match integer(&args[2]) {
            Some(number) => {
                live.set_active_expiry(number != 0);
                reply.ok();
            }
            None => reply.error(NOT_AN_INTEGER),
        },
        ("stringmatch-len", 4) => match integer(&args[2]) {
            Some(len @ 0..=TEXT_BYTES_MAX) => {
                let matches = glob::matches(&args[3], &vec![b'a'; len as usize]);
                reply.integer(i64::from(matches));
            }
            _ => reply.error(NOT_AN_INTEGER),
        },
        _ => unknown(args, reply),
    }
}

/// No such subcommand, or not so many arguments; Redis does not tell them apart.
pub fn unknown(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    let given = args.get(1).unwrap_or_default();
    let given = String::from_utf8_lossy(&given[..given.len().min(128)]);
    let text = "unknown subcommand or wrong number of arguments for";
    reply.error(&format!("ERR {text} '{given}'. Try DEBUG HELP."));
}

/// How long `DEBUG SLEEP seconds` waits; `None` for anything else. What is no number is none, as in Redis.
#[must_use]
pub fn sleep(spec: &CommandSpec, args: &Args<'_>) -> Option<Duration> {
    if spec.id != CommandId::Debug || args.len() != 3 || !args[1].eq_ignore_ascii_case(b"sleep") {
        return None;
    }
    let seconds = std::str::from_utf8(&args[2]).ok().and_then(|text| text.parse::<f64>().ok());
    let wait = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
    Some(wait.unwrap_or_default().min(SLEEP_MAX))
}

fn protocol(kind: &str, reply: &mut ReplyWriter<'_>) {
    let is_resp3 = reply.version() == ProtocolVersion::Resp3;
    match kind {
        "string" => reply.bulk(b"Hello World"),
        "integer" => reply.integer(12345),
        "double" => reply.double("3.141"),
        "bignum" => reply.big_number("1234567999999999999999999999999999999"),
        "null" => reply.null(),
        "array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        "set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        "map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        "attrib" => {
            if is_resp3 {
                reply.raw(b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n");
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        "push" if !is_resp3 => reply.error("ERR RESP2 is not supported by this command"),
        "push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        "verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        "true" => reply.boolean(true),
        "false" => reply.boolean(false),
        _ => reply.error(
            "ERR Wrong protocol type name. Please use one of the following: \
             string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
        ),
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::command::lookup;
    use korum_protocol::resp::ProtocolVersion::{Resp2, Resp3};

    use super::*;
    use crate::command::subcommand::testing::{answer, args_of};
    use crate::config::Config;

    #[test]
    fn it_says_what_is_there() {
        let live = Live::new(&Config::default());
        let ask = |line: &str| answer(line, Resp2, |args, reply| debug(args, &live, reply));
        assert_eq!(
            ask("debug Segfault"),
            "-ERR unknown subcommand or wrong number of arguments for 'Segfault'. Try DEBUG HELP.\r\n"
        );
        assert!(live.expires_actively());
        assert_eq!(ask("debug set-active-expire 0"), "+OK\r\n");
        assert!(!live.expires_actively());
        assert_eq!(ask("debug stringmatch-len 10 a*a"), ":1\r\n");
        assert_eq!(ask("debug stringmatch-len 99999999 a*a"), format!("-{NOT_AN_INTEGER}\r\n"));
        assert!(ask("debug help").starts_with(&format!("*{}\r\n", HELP.len() + 3)));
        assert_eq!(ask("debug error FOO"), "-FOO\r\n");
        for line in ["reload", "RELOAD merge", "change-repl-id", "quicklist-packed-threshold 1b", "log x"] {
            assert_eq!(ask(&format!("debug {line}")), "+OK\r\n", "{line}");
        }
        for line in ["reload nosave", "reload foo", "quicklist-packed-threshold 5gb", "protocol x"] {
            assert!(ask(&format!("debug {line}")).starts_with("-ERR "), "{line}");
        }
    }

    #[test]
    fn values_of_every_type_are_those_of_redis() {
        let live = Live::new(&Config::default());
        let ask = |version, kind: &str| {
            answer(&format!("debug protocol {kind}"), version, |args, reply| debug(args, &live, reply))
        };
        for (kind, resp2, resp3) in [
            ("double", "$5\r\n3.141\r\n", ",3.141\r\n"),
            (
                "map",
                "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
                "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
            ),
            (
                "push",
                "-ERR RESP2 is not supported by this command\r\n",
                ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n$40\r\nSome real reply following the push reply\r\n",
            ),
            ("set", "*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n"),
        ] {
            assert_eq!((ask(Resp2, kind).as_str(), ask(Resp3, kind).as_str()), (resp2, resp3), "{kind}");
        }
    }

    #[test]
    fn sleeps_are_told_from_all_others() {
        let (debug, get) = (lookup(b"debug").unwrap(), lookup(b"get").unwrap());
        let wait = |spec, line: &str| args_of(line, |args| sleep(spec, &args));
        assert_eq!(wait(debug, "debug SLEEP 0.25"), Some(Duration::from_millis(250)));
        assert_eq!(wait(debug, "debug sleep x"), Some(Duration::ZERO));
        assert_eq!(wait(debug, "debug sleep -1"), Some(Duration::ZERO));
        assert_eq!(wait(debug, "debug sleep 1e300"), Some(Duration::ZERO));
        assert_eq!(wait(debug, "debug sleep 9999999"), Some(SLEEP_MAX));
        assert_eq!(wait(debug, "debug object x"), None);
        assert_eq!(wait(get, "get sleep 1"), None);
    }
}
