//! Taking members from either end.
//!
//! For: `ZPOPMIN ZPOPMAX ZMPOP`, and the same for commands that wait until there is something to take.

use std::ops::Range;

use korum_protocol::resp::{ProtocolVersion, ReplyWriter};

use super::range::{owned, remove};
use super::reply_score;
use crate::command::args::{integer, is, positive};
use crate::command::{Call, SYNTAX_ERROR, Stop, blocking};
use crate::store::keyspace::Place;
use crate::store::{Score, SortedSet};

/// Which members are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Those with the lowest scores.
    Lowest,
    /// Those with the highest scores.
    Highest,
}

/// Members that were taken, with their scores.
pub type Popped = Vec<(Box<[u8]>, Score)>;

/// The first of these arguments that names a sorted set; none of those before it is a key of another type.
///
/// # Errors
/// At the first key of another type.
pub fn first_that_is_there(call: &mut Call<'_>, keys: Range<usize>) -> Result<Option<usize>, Stop> {
    for index in keys {
        if call.read_collection::<SortedSet>(call.place(index))?.is_some() {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Takes up to `count` members from one end of a sorted set, which may be missing.
///
/// # Errors
/// For a key of another type.
pub fn pop(call: &mut Call<'_>, place: Place<'_>, end: End, count: usize) -> Result<Popped, Stop> {
    let Some(set) = call.read_collection::<SortedSet>(place)? else { return Ok(Vec::new()) };
    let popped: Popped = match end {
        End::Lowest => set.upwards(0).take(count).map(owned).collect(),
        End::Highest => set.downwards(set.len() - 1).take(count).map(owned).collect(),
    };
    let event = if end == End::Lowest { "zpopmin" } else { "zpopmax" };
    remove(call, place, popped.iter().map(|(member, _)| &member[..]), event)?;
    Ok(popped)
}

/// Writes the members that were taken, each as a pair or one after the other; not the array around them.
pub fn reply_popped(reply: &mut ReplyWriter<'_>, popped: &Popped, in_pairs: bool) {
    for (member, score) in popped {
        if in_pairs {
            reply.array(2);
        }
        reply.bulk(member);
        reply_score(reply, *score);
    }
}

/// `ZPOPMIN key [count]`
pub fn zpopmin(call: &mut Call<'_>) {
    pop_one_key(call, End::Lowest);
}

/// `ZPOPMAX key [count]`
pub fn zpopmax(call: &mut Call<'_>) {
    pop_one_key(call, End::Highest);
}

fn pop_one_key(call: &mut Call<'_>, end: End) {
    call.answer(|call| {
        if call.args.len() > 3 {
            return Err(SYNTAX_ERROR.into());
        }
        let count = call.args.get(2).map(positive).transpose()?;
        let place = call.place(1);
        let popped = pop(call, place, end, count.unwrap_or(1))?;
        let in_pairs = count.is_some() && call.reply.version() == ProtocolVersion::Resp3;
        call.reply.array(if in_pairs { popped.len() } else { 2 * popped.len() });
        reply_popped(&mut call.reply, &popped, in_pairs);
        Ok(())
    });
}

/// `BZPOPMIN key … timeout`
pub fn bzpopmin(call: &mut Call<'_>) {
    pop_first_key(call, End::Lowest);
}

/// `BZPOPMAX key … timeout`
pub fn bzpopmax(call: &mut Call<'_>) {
    pop_first_key(call, End::Highest);
}

fn pop_first_key(call: &mut Call<'_>, end: End) {
    call.answer(|call| {
        let timeout = call.args.len() - 1;
        blocking::check(call, timeout)?;
        let Some(index) = first_that_is_there(call, 1..timeout)? else {
            call.reply.null_array();
            return Ok(());
        };
        let place = call.place(index);
        let popped = pop(call, place, end, 1)?;
        call.reply.array(3);
        call.reply.bulk(place.name());
        reply_popped(&mut call.reply, &popped, false);
        Ok(())
    });
}

/// `BZMPOP timeout numkeys key … MIN|MAX [COUNT count]`
pub fn bzmpop(call: &mut Call<'_>) {
    call.answer(|call| {
        arguments(call, 2)?;
        blocking::check(call, 1)?;
        pop_several(call, 2)
    });
}

/// `ZMPOP numkeys key … MIN|MAX [COUNT count]`
pub fn zmpop(call: &mut Call<'_>) {
    call.answer(|call| pop_several(call, 1));
}

/// Takes from the first sorted set that is there, as told from argument `first` on.
fn pop_several(call: &mut Call<'_>, first: usize) -> Result<(), Stop> {
    let (keys, end, count) = arguments(call, first)?;
    match first_that_is_there(call, keys)? {
        None => call.reply.null_array(),
        Some(index) => {
            let place = call.place(index);
            let popped = pop(call, place, end, count)?;
            reply_key_and_popped(call, index, &popped);
        }
    }
    Ok(())
}

/// What `ZMPOP` and `BZMPOP` are told from their number of keys on, which is argument `first`: the keys, the end and
/// how many to take.
///
/// # Errors
/// With Redis' texts.
pub fn arguments(call: &Call<'_>, first: usize) -> Result<(Range<usize>, End, usize), Stop> {
    let at_least_one = |text: &[u8]| integer(text).ok().filter(|&number| number > 0);
    let keys = at_least_one(call.arg(first)).ok_or("ERR numkeys should be greater than 0")?;
    let from = first + 1;
    let to = usize::try_from(keys).ok().and_then(|keys| from.checked_add(keys)).ok_or(SYNTAX_ERROR)?;
    let end = match call.args.get(to) {
        Some(word) if is(word, "min") => End::Lowest,
        Some(word) if is(word, "max") => End::Highest,
        _ => return Err(SYNTAX_ERROR.into()),
    };
    let count = match (call.args.get(to + 1), call.args.get(to + 2)) {
        (None, _) => 1,
        (Some(word), Some(count)) if is(word, "count") => {
            let count = at_least_one(count).ok_or("ERR count should be greater than 0")?;
            if call.args.len() > to + 3 {
                return Err(SYNTAX_ERROR.into());
            }
            usize::try_from(count).unwrap_or(usize::MAX)
        }
        _ => return Err(SYNTAX_ERROR.into()),
    };
    Ok((from..to, end, count))
}

/// The answer of `ZMPOP` and `BZMPOP`: the key at argument `index`, and what was taken from it.
pub fn reply_key_and_popped(call: &mut Call<'_>, index: usize, popped: &Popped) {
    let key = call.arg(index);
    call.reply.array(2);
    call.reply.bulk(key);
    call.reply.array(popped.len());
    reply_popped(&mut call.reply, popped, true);
}
