//! Lists.
//!
//! For: the commands on items at the ends and in places.
//! Not here: how a list is kept (`store::list`).
//! Next: `position` searches, `transfer` takes items from one list to another, or from one of several.

use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::resp::ReplyWriter;

use super::args::{integer, is, wrong_number};
use super::string::REPLY_TOO_LARGE;
use super::{Call, SYNTAX_ERROR, Stop};
use crate::store::keyspace::Place;
use crate::store::{Change, Classes, List, ListChange};

mod blocking;
mod position;
mod transfer;
#[cfg(test)]
mod tests;

pub use blocking::{blmove, blmpop, blpop, brpop, brpoplpush};
pub use position::{linsert, lpos, lrem};
pub use transfer::{lmove, lmpop, rpoplpush};

/// The answer to a number that must not be negative.
const NOT_POSITIVE: &str = "ERR value is out of range, must be positive";

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Front,
    Back,
}

impl End {
    /// `LEFT` or `RIGHT`.
    fn parse(word: &[u8]) -> Result<Self, Stop> {
        if is(word, "left") {
            Ok(Self::Front)
        } else if is(word, "right") {
            Ok(Self::Back)
        } else {
            Err(SYNTAX_ERROR.into())
        }
    }

    fn push(self, item: &[u8]) -> Change<'_> {
        Change::List(match self {
            Self::Front => ListChange::PushFront { item },
            Self::Back => ListChange::PushBack { item },
        })
    }

    fn pop(self, count: usize) -> Change<'static> {
        Change::List(match self {
            Self::Front => ListChange::PopFront { count },
            Self::Back => ListChange::PopBack { count },
        })
    }

    /// The event of putting an item here.
    fn pushed(self) -> &'static str {
        if self == Self::Front { "lpush" } else { "rpush" }
    }

    /// The event of taking items from here.
    fn popped(self) -> &'static str {
        if self == Self::Front { "lpop" } else { "rpop" }
    }

    fn item(self, list: &List) -> Option<&[u8]> {
        match self {
            Self::Front => list.get(0),
            Self::Back => list.get(list.len().wrapping_sub(1)),
        }
    }
}

/// `LPUSH key item …`
pub fn lpush(call: &mut Call<'_>) {
    push(call, End::Front, false);
}

/// `RPUSH key item …`
pub fn rpush(call: &mut Call<'_>) {
    push(call, End::Back, false);
}

/// `LPUSHX key item …`
pub fn lpushx(call: &mut Call<'_>) {
    push(call, End::Front, true);
}

/// `RPUSHX key item …`
pub fn rpushx(call: &mut Call<'_>) {
    push(call, End::Back, true);
}

fn push(call: &mut Call<'_>, end: End, must_exist: bool) {
    call.answer(|call| {
        let place = call.place(1);
        let before = call.read_collection::<List>(place)?.map(List::len);
        if must_exist && before.is_none() {
            call.reply.integer(0);
            return Ok(());
        }
        for index in 2..call.args.len() {
            call.change(place, end.push(call.arg(index)));
        }
        call.notify(Classes::LIST, end.pushed(), place);
        call.reply.integer((before.unwrap_or(0) + call.args.len() - 2) as i64);
        Ok(())
    });
}

/// `LPOP key [count]`
pub fn lpop(call: &mut Call<'_>) {
    pop(call, End::Front, "lpop");
}

/// `RPOP key [count]`
pub fn rpop(call: &mut Call<'_>) {
    pop(call, End::Back, "rpop");
}

fn pop(call: &mut Call<'_>, end: End, command: &str) {
    call.answer(|call| {
        if call.args.len() > 3 {
            return Err(wrong_number(command));
        }
        let place = call.place(1);
        let count = call.args.get(2).map(not_negative).transpose()?;
        let (list, reply) = call.read_beside::<List>(place)?;
        match (list, count) {
            (None, None) => reply.null(),
            (None, Some(_)) => reply.null_array(),
            (Some(list), None) => {
                reply.bulk(end.item(list).unwrap_or_default());
                take_one(call, place, end);
            }
            (Some(_), Some(count)) => take_out(call, place, end, count)?,
        }
        Ok(())
    });
}

/// Removes the item at an end of a list that is there.
fn take_one(call: &mut Call<'_>, place: Place<'_>, end: End) {
    call.change(place, end.pop(1));
    call.notify_removal(Classes::LIST, end.popped(), place);
}

/// A number as `LPOP` takes it: not negative, and one text for everything else.
fn not_negative(text: &[u8]) -> Result<usize, Stop> {
    let number = integer(text).map_err(|_| NOT_POSITIVE)?;
    usize::try_from(number).map_err(|_| NOT_POSITIVE.into())
}

/// Answers up to `count` items from an end of a list that is there, and removes them.
fn take_out(call: &mut Call<'_>, place: Place<'_>, end: End, count: usize) -> Result<(), Stop> {
    let (list, reply) = call.read_beside::<List>(place)?;
    let Some(list) = list else { return Ok(()) };
    let count = count.min(list.len());
    match end {
        End::Front => reply_items(reply, count, list.iter())?,
        End::Back => reply_items(reply, count, list.iter().rev())?,
    }
    if count == list.len() {
        // Not piece by piece: what is large is dropped where nobody waits.
        call.delete(place);
    } else if count > 0 {
        call.change(place, end.pop(count));
    }
    if count > 0 {
        call.notify_removal(Classes::LIST, end.popped(), place);
    }
    Ok(())
}

/// An array of the first `count` items.
fn reply_items<'l>(
    reply: &mut ReplyWriter<'_>,
    count: usize,
    items: impl Iterator<Item = &'l [u8]>,
) -> Result<(), Stop> {
    let start = reply.mark();
    reply.array(count);
    for item in items.take(count) {
        if reply.written_since(start) > BULK_BYTES_MAX {
            reply.take_back(start);
            return Err(REPLY_TOO_LARGE.into());
        }
        reply.bulk(item);
    }
    Ok(())
}

/// `LLEN key`
pub fn llen(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let len = call.read_collection::<List>(place)?.map_or(0, List::len);
        call.reply.integer(len as i64);
        Ok(())
    });
}

/// Places between two indexes, which count from the end when negative: the first, and how many.
fn range(start: i64, stop: i64, len: usize) -> (usize, usize) {
    let len = len as i64;
    let from_end = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
    let (start, stop) = (from_end(start).max(0), from_end(stop).min(len - 1));
    if start > stop { (0, 0) } else { (start as usize, (stop - start + 1) as usize) }
}

/// A place, which counts from the end when negative, if there is one.
fn place_of(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(len as i64)? } else { index };
    usize::try_from(index).ok().filter(|&index| index < len)
}

/// `LRANGE key start stop`
pub fn lrange(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, start, stop) = (call.place(1), integer(call.arg(2))?, integer(call.arg(3))?);
        let (list, reply) = call.read_beside::<List>(place)?;
        let Some(list) = list else {
            reply.array(0);
            return Ok(());
        };
        let (start, count) = range(start, stop, list.len());
        reply_items(reply, count, list.iter_from(start))
    });
}

/// `LINDEX key index`
pub fn lindex(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, index) = (call.place(1), call.arg(2));
        let (list, reply) = call.read_beside::<List>(place)?;
        let Some(list) = list else {
            reply.null();
            return Ok(());
        };
        match place_of(integer(index)?, list.len()).and_then(|index| list.get(index)) {
            Some(item) => reply.bulk(item),
            None => reply.null(),
        }
        Ok(())
    });
}

/// `LSET key index item`
pub fn lset(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, index, item) = (call.place(1), call.arg(2), call.arg(3));
        let list = call.read_collection::<List>(place)?.ok_or("ERR no such key")?;
        let index = place_of(integer(index)?, list.len()).ok_or("ERR index out of range")?;
        if list.get(index) != Some(item) {
            call.change(place, Change::List(ListChange::Set { index, item }));
        }
        call.notify(Classes::LIST, "lset", place);
        call.reply.ok();
        Ok(())
    });
}

/// `LTRIM key start stop`
pub fn ltrim(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, start, stop) = (call.place(1), integer(call.arg(2))?, integer(call.arg(3))?);
        if let Some(len) = call.read_collection::<List>(place)?.map(List::len) {
            let (start, count) = range(start, stop, len);
            if count == 0 {
                call.delete(place);
            } else {
                for (end, count) in [(End::Back, len - start - count), (End::Front, start)] {
                    if count > 0 {
                        call.change(place, end.pop(count));
                    }
                }
            }
            call.notify_removal(Classes::LIST, "ltrim", place);
        }
        call.reply.ok();
        Ok(())
    });
}
