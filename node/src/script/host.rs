//! `redis.call` and `redis.pcall`: a command of a script, as a nested call on the script's partition.
//!
//! For: which commands a script may run on which keys, and the errors that Redis gives else.
//! Not here: raising errors (`prelude`), conversions (`convert`).

use std::ops::Range;

use bytes::BytesMut;
use korum_protocol::command::{CommandId, CommandSpec, Flags, ResolveError, key_positions, resolve};
use korum_protocol::limits::KEY_BYTES_MAX;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::{Args, ProtocolVersion, Reply, ReplyDecoder, ReplyWriter};
use mlua::{Lua, MultiValue, Value};

use super::convert::to_lua;
use super::format::general;
use crate::command::transaction::EFFECT_BYTES_MAX;
use crate::command::{Call, connection, server};
use crate::dispatch::execute;
use crate::store::Keyspace;

const NO_COMMAND: &str = "ERR Please specify at least one argument for this redis lib call";
const NOT_TEXT: &str = "ERR Lua redis lib command arguments must be strings or integers";
const NO_SUCH_COMMAND: &str = "ERR Invalid command passed to redis.acl_check_cmd()";
const UNKNOWN: &str = "ERR Unknown Redis command called from script";
const WRONG_ARITY: &str = "ERR Wrong number of args calling Redis command from script";
const NOT_ALLOWED: &str = "ERR This Redis command is not allowed from script";
const READ_ONLY: &str = "ERR Write commands are not allowed from read-only scripts.";
const OTHER_SLOT: &str = "ERR Script attempted to access keys that do not hash to the same slot";
const UNDECLARED: &str = "ERR Script attempted to access keys, and was given none: name them in KEYS, so that the script runs where they are";
const KEY_TOO_LONG: &str = "ERR the key is too long; keys have at most 16 MB";
const TOO_MUCH: &str = "ERR the script changes too much at once; split it into smaller ones";

/// Bytes that one script may publish: they wait in memory until it is done.
const PUBLISHED_BYTES_MAX: usize = 16 << 20;
const TOO_MUCH_PUBLISHED: &str = "ERR the script publishes too much at once";

/// The arguments of a command as one buffer, and where each stands in it.
fn arguments(words: &MultiValue) -> Result<(Vec<u8>, Vec<Range<usize>>), &'static str> {
    let (mut buffer, mut ranges) = (Vec::new(), Vec::with_capacity(words.len()));
    for word in words {
        let start = buffer.len();
        match word {
            Value::String(text) => buffer.extend_from_slice(&text.as_bytes()),
            Value::Integer(number) => buffer.extend_from_slice(general(*number as f64, 17).as_bytes()),
            Value::Number(number) => buffer.extend_from_slice(general(*number, 17).as_bytes()),
            _ => return Err(NOT_TEXT),
        }
        ranges.push(start..buffer.len());
    }
    Ok((buffer, ranges))
}

/// `redis.acl_check_cmd`: whether the client may run a command. There is one user, who may run all that there are.
///
/// # Errors
/// With the text of the error when there is no such command.
pub fn may_run(words: &MultiValue) -> Result<bool, &'static str> {
    let (buffer, ranges) = arguments(words)?;
    let args = Args::new(&buffer, &ranges);
    if args.is_empty() {
        return Err(NO_COMMAND);
    }
    match resolve(&args) {
        // A container without a subcommand is found too.
        Ok(_) | Err(ResolveError::WrongArity(_)) => Ok(true),
        Err(ResolveError::UnknownCommand(_) | ResolveError::UnknownSubcommand(_)) => Err(NO_SUCH_COMMAND),
    }
}

/// The commands of one script that runs.
pub struct Commands<'c, 'a> {
    call: &'c mut Call<'a>,
    /// The slot of the script's keys; `None` if it was given none.
    slot: Option<u16>,
    /// The database that it has chosen.
    database: u8,
    reads_only: bool,
    marks_access: bool,
    /// Bytes that it has published.
    published: usize,
}

impl<'c, 'a> Commands<'c, 'a> {
    /// For a script with keys of this slot.
    pub fn new(call: &'c mut Call<'a>, slot: Option<u16>, reads_only: bool) -> Self {
        let (marks_access, database) = (call.looks.marks_access, call.names.database());
        Self { call, slot, database, reads_only, marks_access, published: 0 }
    }

    /// Runs a command: its reply, or the text of its error.
    ///
    /// # Errors
    /// When the interpreter has no memory left.
    pub fn invoke(
        &mut self,
        lua: &Lua,
        words: &MultiValue,
        is_resp3: bool,
    ) -> mlua::Result<Result<Value, String>> {
        let (buffer, ranges) = match arguments(words) {
            Ok(arguments) => arguments,
            Err(text) => return Ok(Err(text.to_owned())),
        };
        let mut out = BytesMut::new();
        let version = if is_resp3 { ProtocolVersion::Resp3 } else { ProtocolVersion::Resp2 };
        if let Err(text) = self.run(Args::new(&buffer, &ranges), version, &mut out) {
            return Ok(Err(text.to_owned()));
        }
        Ok(match ReplyDecoder::new().decode(&mut out) {
            Ok(Some(Reply::Error(text))) => Err(String::from_utf8_lossy(&text).into_owned()),
            Ok(Some(reply)) => Ok(to_lua(lua, &reply, is_resp3)?),
            Ok(None) | Err(_) => Err("ERR the reply is too large for a script".to_owned()),
        })
    }

    fn run(
        &mut self,
        args: Args<'_>,
        version: ProtocolVersion,
        out: &mut BytesMut,
    ) -> Result<(), &'static str> {
        if args.is_empty() {
            return Err(NO_COMMAND);
        }
        let spec = resolve(&args).map_err(|error| match error {
            ResolveError::WrongArity(_) => WRONG_ARITY,
            ResolveError::UnknownCommand(_) | ResolveError::UnknownSubcommand(_) => UNKNOWN,
        })?;
        if spec.flags.contains(Flags::NOSCRIPT) {
            return Err(NOT_ALLOWED);
        }
        if spec.flags.contains(Flags::WRITE) && self.reads_only {
            return Err(READ_ONLY);
        }
        let Ok(mut keys) = key_positions(spec, &args) else {
            self.refuse(spec, args, version, out);
            return Ok(());
        };
        let Some(first) = keys.next() else { return self.run_keyless(spec, args, version, out) };
        let slot = self.slot.ok_or(UNDECLARED)?;
        let mut keys = std::iter::once(first).chain(keys).map(|at| &args[at]);
        if keys.clone().any(|key| key.len() > KEY_BYTES_MAX) {
            return Err(KEY_TOO_LONG);
        }
        if keys.any(|key| slot_of(key) != slot) {
            return Err(OTHER_SLOT);
        }
        if !spec.flags.contains(Flags::READONLY) && self.call.effects.rope().len() > EFFECT_BYTES_MAX {
            return Err(TOO_MUCH);
        }
        let names = self.call.names.with(self.database);
        let mut nested = self.call.nested_apart(args, &names, ReplyWriter::new(out, version));
        nested.looks.prepare(spec, self.marks_access);
        execute::run(spec.id, &mut nested);
        self.call.looks.ran(spec.id, out.first() == Some(&b'-'));
        Ok(())
    }

    /// A command whose keys cannot be found says itself what is wrong with its arguments.
    fn refuse(&mut self, spec: &CommandSpec, args: Args<'_>, version: ProtocolVersion, out: &mut BytesMut) {
        let mut nowhere = Keyspace::new(0);
        let names = self.call.names.with(self.database);
        let mut nested = self.call.nested_apart(args, &names, ReplyWriter::new(out, version));
        nested.keyspace = &mut nowhere;
        execute::run(spec.id, &mut nested);
    }

    fn run_keyless(
        &mut self,
        spec: &CommandSpec,
        args: Args<'_>,
        version: ProtocolVersion,
        out: &mut BytesMut,
    ) -> Result<(), &'static str> {
        let mut reply = ReplyWriter::new(out, version);
        match spec.id {
            CommandId::Ping => connection::ping(args, &mut reply),
            CommandId::Echo => connection::echo(args, &mut reply),
            // The moment at which the script began, so that it does not change under it.
            CommandId::Time => server::time(args, self.call.now_ms * 1000, &mut reply),
            CommandId::Publish => {
                self.published += args.bytes();
                if self.published > PUBLISHED_BYTES_MAX {
                    return Err(TOO_MUCH_PUBLISHED);
                }
                self.call.effects.notices.publish(&args[1], &args[2]);
                // It goes out when the script is done: nobody has received it yet.
                reply.integer(0);
            }
            // For the rest of the script; its client's choice stays.
            CommandId::Select => match self.call.names.select(&args[1]) {
                Ok(database) => {
                    self.database = database;
                    reply.ok();
                }
                Err(text) => reply.error(&text),
            },
            _ => return Err(NOT_ALLOWED),
        }
        Ok(())
    }
}

/// The text of `redis.error_reply`: a code in front of it, `ERR` unless it brings its own.
#[must_use]
pub fn error_text(given: &[u8]) -> Vec<u8> {
    let text = given.strip_prefix(b"-").unwrap_or(given);
    if text.contains(&b' ') { text.to_vec() } else { [b"ERR ", text].concat() }
}

#[cfg(test)]
mod tests {
    use super::error_text;

    #[test]
    fn an_error_without_a_code_gets_one() {
        for (given, text) in [
            ("My Err", "My Err"),
            ("ERR x", "ERR x"),
            ("-CODE x y", "CODE x y"),
            ("one", "ERR one"),
            ("-one", "ERR one"),
        ] {
            assert_eq!(error_text(given.as_bytes()), text.as_bytes());
        }
    }
}
