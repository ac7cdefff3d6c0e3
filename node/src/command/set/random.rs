//! Members by chance.

use korum_protocol::limits::BULK_BYTES_MAX;

use crate::command::args::positive;
use crate::command::sample::Sample;
use crate::command::string::REPLY_TOO_LARGE;
use crate::command::{Call, SYNTAX_ERROR, Stop, WRONG_TYPE, reply_string};
use crate::store::{Change, Classes, Collection, Set, SetChange};

/// `SRANDMEMBER key [count]`
pub fn srandmember(call: &mut Call<'_>) {
    call.answer(|call| {
        let sample = match call.args.get(2) {
            None => None,
            Some(_) if call.args.len() > 3 => return Err(SYNTAX_ERROR.into()),
            Some(count) => Some(Sample::parse(count, None, "")?.0),
        };
        let place = call.place(1);
        let entry = call.looks.read(call.keyspace, place, call.now_ms, call.effects);
        let set = entry.map(|entry| Set::of(entry.value()).ok_or(WRONG_TYPE)).transpose()?;
        let reply = &mut call.reply;
        let Some(set) = set else {
            if sample.is_some() {
                reply.array(0)
            } else {
                reply.null()
            }
            return Ok(());
        };
        if sample.is_some_and(|sample| sample.is_too_large(set.len())) {
            return Err(REPLY_TOO_LARGE.into());
        }
        let start = reply.mark();
        if let Some(sample) = sample {
            reply.array(sample.size(set.len()));
        }
        for index in sample.unwrap_or(Sample::Repeated(1)).indexes(set.len(), call.random) {
            if reply.written_since(start) > BULK_BYTES_MAX {
                reply.take_back(start);
                return Err(REPLY_TOO_LARGE.into());
            }
            if let Some(member) = set.nth(index) {
                reply_string(reply, member);
            }
        }
        Ok(())
    });
}

/// `SPOP key [count]`
pub fn spop(call: &mut Call<'_>) {
    call.answer(|call| match call.args.get(2) {
        None => pop_one(call),
        Some(_) if call.args.len() > 3 => Err(SYNTAX_ERROR.into()),
        Some(count) => pop_several(call, positive(count)?),
    });
}

fn pop_one(call: &mut Call<'_>) -> Result<(), Stop> {
    let popped = choose(call, Sample::Distinct(1))?;
    match popped.first() {
        Some(member) => call.reply.bulk(member),
        None => call.reply.null(),
    }
    remove(call, &popped);
    Ok(())
}

fn pop_several(call: &mut Call<'_>, count: usize) -> Result<(), Stop> {
    let place = call.place(1);
    let (set, reply) = call.read_beside::<Set>(place)?;
    // All of them: one effect instead of one for each.
    if let Some(set) = set.filter(|set| set.len() <= count) {
        reply.set(set.len());
        set.iter().for_each(|member| reply_string(reply, member));
        call.delete(place);
        call.notify_removal(Classes::SET, "spop", place);
        return Ok(());
    }
    let popped = choose(call, Sample::Distinct(count))?;
    call.reply.set(popped.len());
    popped.iter().for_each(|member| call.reply.bulk(member));
    remove(call, &popped);
    Ok(())
}

/// Members of the set at argument 1.
fn choose(call: &mut Call<'_>, sample: Sample) -> Result<Vec<Vec<u8>>, Stop> {
    let place = call.place(1);
    let entry = call.looks.read(call.keyspace, place, call.now_ms, call.effects);
    let Some(set) = entry.map(|entry| Set::of(entry.value()).ok_or(WRONG_TYPE)).transpose()? else {
        return Ok(Vec::new());
    };
    let members = sample.indexes(set.len(), call.random).filter_map(|index| set.nth(index));
    Ok(members.map(|member| member.bytes().into_owned()).collect())
}

/// Replicas are told which members went, not that some did.
fn remove(call: &mut Call<'_>, members: &[Vec<u8>]) {
    let place = call.place(1);
    for member in members {
        call.change(place, Change::Set(SetChange::Remove { member }));
    }
    if !members.is_empty() {
        call.notify_removal(Classes::SET, "spop", place);
    }
}
