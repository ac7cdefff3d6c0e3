//! Which function runs a command on a partition.
//!
//! For: the one list of commands that are about keys.
//! Not here: what they do (`command`), commands without keys (`keyless`).

use korum_protocol::command::CommandId;

use crate::command::{Call, hash, key, list, partition, script, string, transaction};
use crate::replication::history::History;

/// Runs the command on the call's partition, which has this history.
pub fn run_on(id: CommandId, call: &mut Call<'_>, history: &mut History) {
    match id {
        CommandId::KorumWatch => transaction::watch(call, history),
        CommandId::KorumExec | CommandId::KorumExecRo => transaction::exec(call, history),
        _ => run(id, call),
    }
}

/// Runs the command on the call's partition; also a command that is a part of another one.
pub fn run(id: CommandId, call: &mut Call<'_>) {
    let run: fn(&mut Call<'_>) = match id {
        CommandId::Get => string::get,
        CommandId::Set => string::set,
        CommandId::SetNx => string::setnx,
        CommandId::SetEx => string::setex,
        CommandId::PSetEx => string::psetex,
        CommandId::GetSet => string::getset,
        CommandId::GetDel => string::getdel,
        CommandId::GetEx => string::getex,
        CommandId::MGet => string::mget,
        CommandId::MSet => string::mset,
        CommandId::MSetNx => string::msetnx,
        CommandId::Append => string::append,
        CommandId::StrLen => string::strlen,
        CommandId::GetRange => string::getrange,
        CommandId::SubStr => string::substr,
        CommandId::SetRange => string::setrange,
        CommandId::Incr => string::incr,
        CommandId::Decr => string::decr,
        CommandId::IncrBy => string::incrby,
        CommandId::DecrBy => string::decrby,
        CommandId::IncrByFloat => string::incrbyfloat,
        CommandId::Lcs => string::lcs,
        CommandId::HSet => hash::hset,
        CommandId::HSetNx => hash::hsetnx,
        CommandId::HMSet => hash::hmset,
        CommandId::HGet => hash::hget,
        CommandId::HMGet => hash::hmget,
        CommandId::HGetAll => hash::hgetall,
        CommandId::HKeys => hash::hkeys,
        CommandId::HVals => hash::hvals,
        CommandId::HLen => hash::hlen,
        CommandId::HExists => hash::hexists,
        CommandId::HStrLen => hash::hstrlen,
        CommandId::HDel => hash::hdel,
        CommandId::HIncrBy => hash::hincrby,
        CommandId::HIncrByFloat => hash::hincrbyfloat,
        CommandId::HRandField => hash::hrandfield,
        CommandId::HScan => hash::hscan,
        CommandId::LPush => list::lpush,
        CommandId::RPush => list::rpush,
        CommandId::LPushX => list::lpushx,
        CommandId::RPushX => list::rpushx,
        CommandId::LPop => list::lpop,
        CommandId::RPop => list::rpop,
        CommandId::LLen => list::llen,
        CommandId::LRange => list::lrange,
        CommandId::LIndex => list::lindex,
        CommandId::LSet => list::lset,
        CommandId::LInsert => list::linsert,
        CommandId::LRem => list::lrem,
        CommandId::LTrim => list::ltrim,
        CommandId::LPos => list::lpos,
        CommandId::LMove => list::lmove,
        CommandId::RPopLPush => list::rpoplpush,
        CommandId::LMPop => list::lmpop,
        CommandId::BlPop => list::blpop,
        CommandId::BrPop => list::brpop,
        CommandId::BlMove => list::blmove,
        CommandId::BrPopLPush => list::brpoplpush,
        CommandId::BlMPop => list::blmpop,
        CommandId::Del => key::del,
        CommandId::Unlink => key::unlink,
        CommandId::Exists => key::exists,
        CommandId::Touch => key::touch,
        CommandId::Type => key::type_,
        CommandId::Expire => key::expire,
        CommandId::PExpire => key::pexpire,
        CommandId::ExpireAt => key::expireat,
        CommandId::PExpireAt => key::pexpireat,
        CommandId::Ttl => key::ttl,
        CommandId::PTtl => key::pttl,
        CommandId::ExpireTime => key::expiretime,
        CommandId::PExpireTime => key::pexpiretime,
        CommandId::Persist => key::persist,
        CommandId::Rename => key::rename,
        CommandId::RenameNx => key::renamenx,
        CommandId::Copy => key::copy,
        CommandId::ObjectEncoding => key::object_encoding,
        CommandId::ObjectFreq => key::object_freq,
        CommandId::ObjectIdletime => key::object_idletime,
        CommandId::ObjectRefcount => key::object_refcount,
        CommandId::MemoryUsage => key::memory_usage,
        CommandId::Dump => key::dump,
        CommandId::Restore => key::restore,
        CommandId::KorumEval => script::eval,
        CommandId::KorumEvalRo => script::eval_ro,
        CommandId::Eval => |call| script::nested(call, CommandId::Eval),
        CommandId::EvalRo => |call| script::nested(call, CommandId::EvalRo),
        CommandId::EvalSha => |call| script::nested(call, CommandId::EvalSha),
        CommandId::EvalShaRo => |call| script::nested(call, CommandId::EvalShaRo),
        CommandId::KorumPart => partition::part,
        CommandId::KorumClear => partition::clear,
        _ => not_about_keys,
    };
    run(call);
}

fn not_about_keys(call: &mut Call<'_>) {
    call.reply.error("ERR this command is not supported by this version of Korum");
}
