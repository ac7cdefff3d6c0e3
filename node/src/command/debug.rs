//! What test suites ask of a server.
//!
//! For: the few subcommands of `DEBUG` that make sense here; the others are refused, and told what is there.

use korum_protocol::command::glob;
use korum_protocol::resp::{Args, ReplyWriter};

use super::subcommand::{self, NOT_AN_INTEGER, integer, wrong_arity};
use crate::config::live::Live;

/// Longest text that `STRINGMATCH-LEN` makes, bytes.
const TEXT_BYTES_MAX: i64 = 1 << 16;

const HELP: &[&str] = &[
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Stop, or go on with, removing expired keys in the background at this node.",
    "STRINGMATCH-LEN <len> <pattern>",
    "    Match the pattern against so many letters 'a'.",
];

/// `DEBUG HELP|SET-ACTIVE-EXPIRE|STRINGMATCH-LEN`
pub fn debug(args: Args<'_>, live: &Live, reply: &mut ReplyWriter<'_>) {
    match (subcommand::name(args).as_str(), args.len()) {
        ("help", 2) => subcommand::help("DEBUG", HELP, reply),
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
        ("help" | "set-active-expire" | "stringmatch-len", _) => wrong_arity("debug", reply),
        _ => reply.error(
            "ERR DEBUG command not allowed. There are DEBUG HELP, SET-ACTIVE-EXPIRE and STRINGMATCH-LEN; OBJECT and \
             MEMORY USAGE look at keys, and KORUM HELP lists what Korum tells",
        ),
    }
}

#[cfg(test)]
mod tests {
    use korum_protocol::resp::ProtocolVersion::Resp2;

    use super::*;
    use crate::command::subcommand::testing::answer;
    use crate::config::Config;

    #[test]
    fn it_says_what_is_there() {
        let live = Live::new(&Config::default());
        let ask = |line: &str| answer(line, Resp2, |args, reply| debug(args, &live, reply));
        assert!(ask("debug sleep 0").starts_with("-ERR DEBUG command not allowed."));
        assert!(live.expires_actively());
        assert_eq!(ask("debug set-active-expire 0"), "+OK\r\n");
        assert!(!live.expires_actively());
        assert_eq!(ask("debug stringmatch-len 10 a*a"), ":1\r\n");
        assert_eq!(ask("debug stringmatch-len 99999999 a*a"), format!("-{NOT_AN_INTEGER}\r\n"));
        assert!(ask("debug help").starts_with("*7\r\n"));
    }
}
