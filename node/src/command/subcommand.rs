//! What commands with subcommands have in common.
//!
//! For: their help and their errors, in Redis' words.

use korum_protocol::resp::{Args, ReplyWriter};

/// Redis' text for a number that cannot be read.
pub const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
/// Redis' text for options that make no sense.
pub const SYNTAX: &str = "ERR syntax error";

/// The subcommand, in lower case; empty when there is none.
#[must_use]
pub fn name(args: Args<'_>) -> String {
    lower(args.get(1).unwrap_or_default())
}

/// An argument as a lower-case word. Not for data.
#[must_use]
pub fn lower(argument: &[u8]) -> String {
    String::from_utf8_lossy(&argument[..argument.len().min(128)]).to_ascii_lowercase()
}

/// `HELP`: `lines` are the usage lines between Redis' head and tail.
pub fn help(command: &str, lines: &[&str], reply: &mut ReplyWriter<'_>) {
    reply.array(lines.len() + 3);
    reply.simple(&format!("{command} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| reply.simple(line));
    reply.simple("HELP");
    reply.simple("    Prints this help.");
}

/// Too few or too many arguments; `command` is `get` or `client|setname`.
pub fn wrong_arity(command: &str, reply: &mut ReplyWriter<'_>) {
    reply.error(&format!("ERR wrong number of arguments for '{command}' command"));
}

/// No such subcommand; `command` in upper case.
pub fn unknown(command: &str, args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    let given = args.get(1).unwrap_or_default();
    let given = String::from_utf8_lossy(&given[..given.len().min(128)]);
    reply.error(&format!("ERR unknown subcommand '{given}'. Try {command} HELP."));
}

/// A signed number, as Redis reads one: no blanks, no plus sign.
#[must_use]
pub fn integer(argument: &[u8]) -> Option<i64> {
    if argument.first() == Some(&b'+') {
        return None;
    }
    std::str::from_utf8(argument).ok()?.parse().ok()
}

/// Helpers of the tests of command families.
#[cfg(test)]
pub mod testing {
    use bytes::BytesMut;
    use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};

    /// What `run` answers to a line of words, as text.
    pub fn answer(
        line: &str,
        version: ProtocolVersion,
        run: impl FnOnce(Args<'_>, &mut ReplyWriter<'_>),
    ) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        answer_words(&words, version, run)
    }

    /// The same for words that may hold blanks.
    pub fn answer_words(
        words: &[&str],
        version: ProtocolVersion,
        run: impl FnOnce(Args<'_>, &mut ReplyWriter<'_>),
    ) -> String {
        let mut out = BytesMut::new();
        with_words(words, |args| run(args, &mut ReplyWriter::new(&mut out, version)));
        String::from_utf8(out.to_vec()).unwrap()
    }

    /// What `use_it` makes of the arguments in a line of words.
    pub fn args_of<T>(line: &str, use_it: impl FnOnce(Args<'_>) -> T) -> T {
        with_words(&line.split(' ').collect::<Vec<_>>(), use_it)
    }

    fn with_words<T>(words: &[&str], use_it: impl FnOnce(Args<'_>) -> T) -> T {
        let mut buffer = Vec::new();
        let mut ranges = Vec::new();
        for word in words {
            let start = buffer.len();
            buffer.extend_from_slice(word.as_bytes());
            ranges.push(start..buffer.len());
        }
        use_it(Args::new(&buffer, &ranges))
    }
}
