//! Which command is meant, and has it the right number of arguments?
//!
//! For: the first gate of every request, with Redis 7's own error texts.
//! Not here: keys (`keys`), rights and state (the node's `dispatch`).

use super::CommandSpec;
use super::table::{lookup, lookup_in};
use crate::resp::Args;

/// Most bytes of a client's argument that an error quotes.
const QUOTED_BYTES_MAX: usize = 128;

/// Why a request names no command that can run.
#[derive(Clone, Debug)]
pub enum ResolveError {
    /// No such command; the text quotes the request.
    UnknownCommand(Vec<u8>),
    /// No such subcommand; the text quotes the request.
    UnknownSubcommand(Vec<u8>),
    /// Too few arguments, or too many.
    WrongArity(&'static CommandSpec),
}

impl ResolveError {
    /// The text of the error reply. It may quote any bytes of the client: write it with
    /// [`crate::resp::ReplyWriter::error_bytes`].
    #[must_use]
    pub fn reply(self) -> Vec<u8> {
        match self {
            Self::UnknownCommand(text) | Self::UnknownSubcommand(text) => text,
            Self::WrongArity(spec) => wrong_arity(spec).into_bytes(),
        }
    }
}

/// `ERR wrong number of arguments for 'get' command`; also for commands that count more closely
/// than their arity says (`MSET` with a key and no value).
#[must_use]
pub fn wrong_arity(spec: &CommandSpec) -> String {
    format!("ERR wrong number of arguments for '{}' command", spec.full_name)
}

/// The command of this request, or the subcommand when its container is named with one.
///
/// # Errors
/// [`ResolveError`] with the reply to give. An empty request is an unknown command.
#[inline]
pub fn resolve(args: &Args<'_>) -> Result<&'static CommandSpec, ResolveError> {
    let spec = find(args)?;
    if spec.accepts(args.len()) { Ok(spec) } else { Err(ResolveError::WrongArity(spec)) }
}

/// As [`resolve`], without the arity.
///
/// # Errors
/// [`ResolveError`] for unknown names.
#[inline]
pub fn find(args: &Args<'_>) -> Result<&'static CommandSpec, ResolveError> {
    let Some(spec) = args.get(0).and_then(lookup) else { return Err(unknown_command(args)) };
    match args.get(1) {
        Some(name) if !spec.subcommands.is_empty() => {
            lookup_in(spec, name).ok_or_else(|| unknown_subcommand(args, name))
        }
        _ => Ok(spec),
    }
}

#[cold]
fn unknown_command(args: &Args<'_>) -> ResolveError {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(quoted(args.get(0).unwrap_or_default(), QUOTED_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    // The quotes and blanks count too: the list stays near the limit, not each argument.
    let start = text.len();
    for arg in args.iter().skip(1) {
        let used = text.len() - start;
        if used >= QUOTED_BYTES_MAX {
            break;
        }
        text.push(b'\'');
        text.extend_from_slice(quoted(arg, QUOTED_BYTES_MAX - used));
        text.extend_from_slice(b"' ");
    }
    ResolveError::UnknownCommand(text)
}

#[cold]
fn unknown_subcommand(args: &Args<'_>, name: &[u8]) -> ResolveError {
    let container = args.get(0).unwrap_or_default().to_ascii_uppercase();
    let parts =
        [b"ERR unknown subcommand '", quoted(name, QUOTED_BYTES_MAX), b"'. Try ", &container, b" HELP."];
    ResolveError::UnknownSubcommand(parts.concat())
}

/// The start of `arg`, up to `limit` bytes; Redis prints a C string, which a zero byte ends.
fn quoted(arg: &[u8], limit: usize) -> &[u8] {
    let end = memchr::memchr(0, arg).unwrap_or(arg.len());
    &arg[..end.min(limit)]
}
