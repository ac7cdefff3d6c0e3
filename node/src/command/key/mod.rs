//! Keys, whatever they hold.
//!
//! For: deleting, counting, renaming, copying, moving to another database.
//! Next: `expire` sets deadlines, `object` looks inside, `dump` carries values to other servers.

use super::args::is;
use super::{Call, SYNTAX_ERROR};
use crate::store::Classes;

pub mod crc64;
pub mod dump;
pub mod expire;
pub mod lzf;
pub mod object;
pub mod rdb;
pub mod sort;

#[cfg(test)]
mod tests;

pub use dump::{dump, restore};
pub use expire::{expire, expireat, expiretime, persist, pexpire, pexpireat, pexpiretime, pttl, ttl};
pub use object::{
    OBJECT_HELP, debug_object, is_debug_object, memory_usage, object_encoding, object_freq, object_idletime,
    object_refcount,
};
pub use sort::{sort, sort_ro};

/// The answer to a key that is to become itself.
const SAME: &str = "ERR source and destination objects are the same";

/// `DEL key …`
pub fn del(call: &mut Call<'_>) {
    let mut deleted = 0;
    for index in 1..call.args.len() {
        let place = call.place(index);
        if call.delete(place) {
            call.notify(Classes::GENERIC, "del", place);
            deleted += 1;
        }
    }
    call.reply.integer(deleted);
}

/// `UNLINK key …`: as `DEL`; large values are always dropped elsewhere.
pub fn unlink(call: &mut Call<'_>) {
    del(call);
}

/// `EXISTS key …`: a key named twice counts twice.
pub fn exists(call: &mut Call<'_>) {
    let found = (1..call.args.len()).filter(|&index| call.look(call.place(index)).is_some()).count();
    call.reply.integer(found as i64);
}

/// `TOUCH key …`
pub fn touch(call: &mut Call<'_>) {
    let found = (1..call.args.len()).filter(|&index| call.read(call.place(index)).is_some()).count();
    call.reply.integer(found as i64);
}

/// `TYPE key`
pub fn type_(call: &mut Call<'_>) {
    let name = call.look(call.place(1)).map_or("none", |entry| entry.value().type_name());
    call.reply.simple(name);
}

/// `RENAME key newkey`
pub fn rename(call: &mut Call<'_>) {
    rename_if(call, false);
}

/// `RENAMENX key newkey`
pub fn renamenx(call: &mut Call<'_>) {
    rename_if(call, true);
}

fn rename_if(call: &mut Call<'_>, if_missing: bool) {
    let (source, target) = (call.place(1), call.place(2));
    if call.look(source).is_none() {
        return call.reply.error("ERR no such key");
    }
    if source.key != target.key {
        if if_missing && call.look(target).is_some() {
            return call.reply.integer(0);
        }
        if let Some(Err(text)) = call.keyspace.peek(source.key, 0).map(|entry| call.fits(entry.value())) {
            return call.reply.error(&text);
        }
        let entry = call.keyspace.take(source).expect("it was just seen");
        call.effects.delete(source);
        let deadline = entry.deadline_ms();
        call.put_value(target, entry.into_value(), deadline);
        call.notify(Classes::GENERIC, "rename_from", source);
        call.notify(Classes::GENERIC, "rename_to", target);
        if if_missing {
            return call.reply.integer(1);
        }
    } else if if_missing {
        return call.reply.integer(0);
    }
    call.reply.ok();
}

/// `COPY source destination [DB database] [REPLACE]`
pub fn copy(call: &mut Call<'_>) {
    call.answer(|call| {
        let (mut replace, mut to) = (false, call.names.database());
        let mut index = 3;
        while let Some(option) = call.args.get(index) {
            if is(option, "replace") {
                replace = true;
            } else if is(option, "db")
                && let Some(database) = call.args.get(index + 1)
            {
                to = call.names.find(database)?;
                index += 1;
            } else {
                return Err(SYNTAX_ERROR.into());
            }
            index += 1;
        }
        if call.names.is_cluster() && to != call.names.database() {
            return Err("ERR Copying to another database is not allowed in cluster mode".into());
        }
        let key = call.stored_in(to, 2);
        let (source, target) = (call.place(1), call.keyspace.place(&key));
        if source.key == target.key {
            return Err(SAME.into());
        }
        call.keyspace.share(source);
        let copy = call.read(source).map(|entry| (entry.to_value(), entry.deadline_ms()));
        let copied = match copy {
            Some((value, deadline)) if replace || call.look(target).is_none() => {
                call.fits(value.as_ref())?;
                call.put_value(target, value, deadline);
                call.notify(Classes::GENERIC, "copy_to", target);
                true
            }
            _ => false,
        };
        call.reply.integer(i64::from(copied));
        Ok(())
    });
}

/// `MOVE key database`
pub fn move_(call: &mut Call<'_>) {
    call.answer(|call| {
        if call.names.is_cluster() {
            return Err("ERR MOVE is not allowed in cluster mode".into());
        }
        let to = call.names.find(call.arg(2))?;
        if to == call.names.database() {
            return Err(SAME.into());
        }
        let key = call.stored_in(to, 1);
        let (source, target) = (call.place(1), call.keyspace.place(&key));
        let is_moved = call.look(source).is_some() && call.look(target).is_none();
        if is_moved {
            call.keyspace.peek(source.key, 0).map_or(Ok(()), |entry| call.fits(entry.value()))?;
            let entry = call.keyspace.take(source).expect("it was just seen");
            call.effects.delete(source);
            let deadline = entry.deadline_ms();
            call.put_value(target, entry.into_value(), deadline);
            call.notify(Classes::GENERIC, "move_from", source);
            call.notify(Classes::GENERIC, "move_to", target);
        }
        call.reply.integer(is_moved.into());
        Ok(())
    });
}
