//! Scripts on the partition of their keys: `KORUM EVAL`, and `EVAL` as a part of a transaction.
//!
//! For: reading the arguments and running the script; what nodes ask each other of scripts.
//! Not here: the interpreter (`script`), where a script runs (`dispatch::scripts`).

use bytes::{Bytes, BytesMut};
use korum_protocol::command::CommandId;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::decode::encode_header;
use korum_protocol::resp::{Args, ReplyWriter};

use super::args::{NOT_AN_INTEGER, integer};
use super::unit::put_bulks;
use super::{Call, SYNTAX_ERROR};
use crate::script::cache::{hex, parse_hex};
use crate::script::{Digest, Scripts, digest, vm};

/// The answer to a digest that nobody knows.
pub const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// The number of keys in `EVAL script numkeys …`.
///
/// # Errors
/// With Redis' text if it is none, or more than there are arguments.
pub fn count_keys(args: &Args<'_>) -> Result<usize, &'static str> {
    let count = integer(&args[2]).map_err(|_| NOT_AN_INTEGER)?;
    let count = usize::try_from(count).map_err(|_| "ERR Number of keys can't be negative")?;
    if count > args.len() - 3 {
        return Err("ERR Number of keys can't be greater than number of args");
    }
    Ok(count)
}

/// The request that runs a script on the partition of a slot: `KORUM EVAL slot digest script numkeys …`, whose last
/// arguments are those of `args` from the number of keys on.
#[must_use]
pub fn eval_request(slot: u16, script: &Digest, source: &[u8], args: &Args<'_>, reads_only: bool) -> Bytes {
    let (slot, script) = (slot.to_string(), hex(script));
    let name: &[u8] = if reads_only { b"EVAL-RO" } else { b"EVAL" };
    let mut request = BytesMut::with_capacity(args.bytes() + source.len() + 32 * args.len() + 128);
    encode_header(b'*', args.len() + 3, &mut request);
    put_bulks([b"KORUM", name, slot.as_bytes(), script.as_bytes(), source].into_iter(), &mut request);
    put_bulks(args.tail(2).iter(), &mut request);
    request.freeze()
}

/// `KORUM EVAL slot digest script numkeys key … argument …`
pub fn eval(call: &mut Call<'_>) {
    run_internal(call, false);
}

/// `KORUM EVAL-RO slot digest script numkeys key … argument …`
pub fn eval_ro(call: &mut Call<'_>) {
    run_internal(call, true);
}

fn run_internal(call: &mut Call<'_>, reads_only: bool) {
    let args = call.args;
    let slot = std::str::from_utf8(&args[2]).ok().and_then(|slot| slot.parse().ok());
    let (Some(slot), Some(digest)) = (slot, parse_hex(&args[3])) else {
        return call.reply.error(SYNTAX_ERROR);
    };
    // As in `EVAL script numkeys …`.
    let count = match count_keys(&args.tail(3)) {
        Ok(count) => count,
        Err(text) => return call.reply.error(text),
    };
    let (keys, arguments) = (args.part(6, 6 + count), args.tail(6 + count));
    let script = vm::Script { digest, source: &args[4], keys, arguments, slot: Some(slot), reads_only };
    vm::run(call, &script);
}

/// `EVAL`, `EVALSHA` and their forms that only read, in a transaction or without keys.
pub fn nested(call: &mut Call<'_>, id: CommandId) {
    let args = call.args;
    let is_known = matches!(id, CommandId::EvalSha | CommandId::EvalShaRo);
    let reads_only = matches!(id, CommandId::EvalRo | CommandId::EvalShaRo);
    let count = match count_keys(&args) {
        Ok(count) => count,
        Err(text) => return call.reply.error(text),
    };
    let (digest, source) = if is_known {
        let found = parse_hex(&args[1]).and_then(|digest| Some((digest, call.scripts.get(&digest)?)));
        match found {
            Some(found) => found,
            None => return call.reply.error(NO_SCRIPT),
        }
    } else {
        (digest(&args[1]), Bytes::copy_from_slice(&args[1]))
    };
    let (keys, arguments) = (args.part(3, 3 + count), args.tail(3 + count));
    let slot = keys.get(0).map(slot_of);
    vm::run(call, &vm::Script { digest, source: &source, keys, arguments, slot, reads_only });
}

/// `KORUM SCRIPT GET digest | EXISTS digest … | LOAD script | FLUSH`: what nodes ask each other. `DOUBT`: what is known
/// of functions is outdated.
pub fn answer_peer(args: &Args<'_>, scripts: &Scripts, reply: &mut ReplyWriter<'_>) {
    let known = |at: usize| parse_hex(&args[at]).is_some_and(|digest| scripts.knows(&digest));
    match (args.get(2).map(<[u8]>::to_ascii_uppercase).as_deref(), args.get(3)) {
        (Some(b"GET"), Some(name)) => match parse_hex(name).and_then(|digest| scripts.get(&digest)) {
            Some(source) => reply.bulk(&source),
            None => reply.null(),
        },
        (Some(b"EXISTS"), Some(_)) => {
            reply.array(args.len() - 3);
            (3..args.len()).for_each(|at| reply.integer(i64::from(known(at))));
        }
        (Some(b"LOAD"), Some(source)) => {
            scripts.keep(digest(source), source);
            reply.ok();
        }
        (Some(b"FLUSH"), None) => {
            scripts.flush();
            reply.ok();
        }
        (Some(b"DOUBT"), None) => {
            scripts.functions.doubt();
            reply.ok();
        }
        _ => reply.error(SYNTAX_ERROR),
    }
}
