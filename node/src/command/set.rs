//! Sets.
//!
//! For: the commands on the members of one set.
//! Not here: how a set is kept (`store::set`).
//! Next: `random` picks by chance, `algebra` puts several sets together.

use super::scan::{ScanOptions, cursor, reply_head};
use super::{Call, reply_string};
use crate::store::{Change, Classes, Set, SetChange};

mod algebra;
mod random;
#[cfg(test)]
mod tests;

pub use algebra::{sdiff, sdiffstore, sinter, sintercard, sinterstore, sunion, sunionstore};
pub use random::{spop, srandmember};

/// `SADD key member …`
pub fn sadd(call: &mut Call<'_>) {
    change_each(call, "sadd", |set, member| {
        let is_new = set.is_none_or(|set| !set.contains(member));
        is_new.then_some(SetChange::Add { member })
    });
}

/// `SREM key member …`
pub fn srem(call: &mut Call<'_>) {
    change_each(call, "srem", |set, member| {
        let is_there = set.is_some_and(|set| set.contains(member));
        is_there.then_some(SetChange::Remove { member })
    });
}

/// Does what `change` says for each of the members from argument 2 on, and answers how often that was something.
fn change_each(
    call: &mut Call<'_>,
    event: &'static str,
    change: for<'m> fn(Option<&Set>, &'m [u8]) -> Option<SetChange<'m>>,
) {
    call.answer(|call| {
        let place = call.place(1);
        let mut changed = 0;
        for index in 2..call.args.len() {
            let member = call.arg(index);
            if let Some(change) = change(call.read_collection::<Set>(place)?, member) {
                call.change(place, Change::Set(change));
                changed += 1;
            }
        }
        if changed > 0 {
            call.notify_removal(Classes::SET, event, place);
        }
        call.reply.integer(changed);
        Ok(())
    });
}

/// `SMEMBERS key`
pub fn smembers(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let (set, reply) = call.read_beside::<Set>(place)?;
        reply.set(set.map_or(0, Set::len));
        set.into_iter().flat_map(Set::iter).for_each(|member| reply_string(reply, member));
        Ok(())
    });
}

/// `SISMEMBER key member`
pub fn sismember(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, member) = (call.place(1), call.arg(2));
        let is_member = call.read_collection::<Set>(place)?.is_some_and(|set| set.contains(member));
        call.reply.integer(i64::from(is_member));
        Ok(())
    });
}

/// `SMISMEMBER key member …`
pub fn smismember(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, args) = (call.place(1), call.args);
        let (set, reply) = call.read_beside::<Set>(place)?;
        reply.array(args.len() - 2);
        for index in 2..args.len() {
            reply.integer(i64::from(set.is_some_and(|set| set.contains(&args[index]))));
        }
        Ok(())
    });
}

/// `SCARD key`
pub fn scard(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let count = call.read_collection::<Set>(place)?.map_or(0, Set::len);
        call.reply.integer(count as i64);
        Ok(())
    });
}

/// `SMOVE source destination member`
pub fn smove(call: &mut Call<'_>) {
    call.answer(|call| {
        let (source, target, member) = (call.place(1), call.place(2), call.arg(3));
        let Some(is_there) = call.read_collection::<Set>(source)?.map(|set| set.contains(member)) else {
            call.reply.integer(0);
            return Ok(());
        };
        let is_new = call.read_collection::<Set>(target)?.is_none_or(|set| !set.contains(member));
        if is_there && source.key != target.key {
            call.change(source, Change::Set(SetChange::Remove { member }));
            call.notify_removal(Classes::SET, "srem", source);
            if is_new {
                call.change(target, Change::Set(SetChange::Add { member }));
                call.notify(Classes::SET, "sadd", target);
            }
        }
        call.reply.integer(i64::from(is_there));
        Ok(())
    });
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`
pub fn sscan(call: &mut Call<'_>) {
    call.answer(|call| {
        cursor(&call.args)?;
        let (place, args) = (call.place(1), call.args);
        let (set, reply) = call.read_beside::<Set>(place)?;
        let Some(set) = set else {
            reply_head(reply, 0, 0);
            return Ok(());
        };
        let options = ScanOptions::parse(&args)?;
        let scan = set.scan(options.cursor, options.count);
        let members = scan.indexes.filter_map(|index| set.nth(index));
        let found: Vec<_> = members.filter(|member| options.wants(&member.bytes())).collect();
        reply_head(reply, scan.next, found.len());
        found.into_iter().for_each(|member| reply_string(reply, member));
        Ok(())
    });
}
