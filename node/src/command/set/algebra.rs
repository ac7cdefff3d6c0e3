//! Several sets put together.
//!
//! For: intersections, unions and differences, answered, counted or stored.

use std::borrow::Cow;
use std::ops::Range;

use indexmap::IndexSet;

use crate::command::args::integer;
use crate::command::{Call, SYNTAX_ERROR, Stop, reply_string};
use crate::store::collection::Keyed;
use crate::store::{Classes, Collection, Keyspace, Set, StringRef, Value, ValueRef};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

/// `SINTER key …`
pub fn sinter(call: &mut Call<'_>) {
    answer(call, Operation::Intersection);
}

/// `SUNION key …`
pub fn sunion(call: &mut Call<'_>) {
    answer(call, Operation::Union);
}

/// `SDIFF key …`
pub fn sdiff(call: &mut Call<'_>) {
    answer(call, Operation::Difference);
}

/// `SINTERSTORE destination key …`
pub fn sinterstore(call: &mut Call<'_>) {
    store(call, Operation::Intersection, "sinterstore");
}

/// `SUNIONSTORE destination key …`
pub fn sunionstore(call: &mut Call<'_>) {
    store(call, Operation::Union, "sunionstore");
}

/// `SDIFFSTORE destination key …`
pub fn sdiffstore(call: &mut Call<'_>) {
    store(call, Operation::Difference, "sdiffstore");
}

fn answer(call: &mut Call<'_>, operation: Operation) {
    call.answer(|call| {
        let keys = 1..call.args.len();
        read_all(call, keys.clone())?;
        let members = operation.of(&sets(call.keyspace, call, keys), usize::MAX);
        call.reply.set(members.len());
        members.into_iter().for_each(|member| reply_string(&mut call.reply, member));
        Ok(())
    });
}

fn store(call: &mut Call<'_>, operation: Operation, event: &'static str) {
    call.answer(|call| {
        let keys = 2..call.args.len();
        read_all(call, keys.clone())?;
        let result: Set = operation.of(&sets(call.keyspace, call, keys), usize::MAX).into_iter().collect();
        let (target, count) = (call.place(1), result.len());
        if result.is_empty() {
            call.delete_and_notify(target);
        } else {
            call.fits(ValueRef::Set(&result))?;
            call.put_value(target, Value::Set(Box::new(result)), None);
            call.notify(Classes::SET, event, target);
        }
        call.reply.integer(count as i64);
        Ok(())
    });
}

/// `SINTERCARD numkeys key … [LIMIT limit]`
pub fn sintercard(call: &mut Call<'_>) {
    call.answer(|call| {
        let count = integer(call.arg(1)).ok().filter(|&count| count > 0);
        let count = count.ok_or("ERR numkeys should be greater than 0")?;
        let count = usize::try_from(count).ok().filter(|&count| count <= call.args.len() - 2);
        let count = count.ok_or("ERR Number of keys can't be greater than number of args")?;
        let limit = limit(call, 2 + count)?;
        let keys = 2..2 + count;
        read_all(call, keys.clone())?;
        let found = Operation::Intersection.of(&sets(call.keyspace, call, keys), limit).len();
        call.reply.integer(found as i64);
        Ok(())
    });
}

/// `LIMIT` from argument `index` on, as often as it is given; 0 means none.
fn limit(call: &Call<'_>, mut index: usize) -> Result<usize, Stop> {
    let mut limit = 0;
    while let Some(option) = call.args.get(index) {
        let number = call.args.get(index + 1).filter(|_| option.eq_ignore_ascii_case(b"limit"));
        let number = integer(number.ok_or(SYNTAX_ERROR)?).ok().and_then(|limit| usize::try_from(limit).ok());
        limit = number.ok_or("ERR LIMIT can't be negative")?;
        index += 2;
    }
    Ok(if limit == 0 { usize::MAX } else { limit })
}

/// Looks at the keys of these arguments: expired ones end, and all others are sets.
fn read_all(call: &mut Call<'_>, keys: Range<usize>) -> Result<(), Stop> {
    for index in keys {
        call.read_collection::<Set>(call.place(index))?;
    }
    Ok(())
}

/// The sets of these arguments, all at once.
fn sets<'k>(keyspace: &'k Keyspace, call: &Call<'_>, keys: Range<usize>) -> Vec<Option<&'k Set>> {
    keys.map(|index| {
        keyspace.peek(call.place(index).key, call.now_ms).and_then(|entry| Set::of(entry.value()))
    })
    .collect()
}

impl Operation {
    /// At most `limit` members of the result.
    fn of<'s>(self, sets: &[Option<&'s Set>], limit: usize) -> Vec<StringRef<'s>> {
        match self {
            Self::Intersection => intersection(sets, limit),
            Self::Union => union(sets),
            Self::Difference => difference(sets),
        }
    }
}

/// Walks over the smallest set and asks the others, smallest first.
fn intersection<'s>(sets: &[Option<&'s Set>], limit: usize) -> Vec<StringRef<'s>> {
    let Some(mut sets) = sets.iter().copied().collect::<Option<Vec<&Set>>>() else { return Vec::new() };
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return Vec::new() };
    let members = smallest.iter().filter(|member| others.iter().all(|other| other.has(*member)));
    members.take(limit).collect()
}

fn union<'s>(sets: &[Option<&'s Set>]) -> Vec<StringRef<'s>> {
    let mut seen: IndexSet<Cow<'s, [u8]>, Keyed> = IndexSet::default();
    let members = sets.iter().flatten().flat_map(|set| set.iter());
    members.filter(|member| seen.insert(member.bytes())).collect()
}

/// Takes each of the other sets away, by the smaller of the two.
fn difference<'s>(sets: &[Option<&'s Set>]) -> Vec<StringRef<'s>> {
    let Some((Some(first), others)) = sets.split_first() else { return Vec::new() };
    let mut left: IndexSet<Cow<'s, [u8]>, Keyed> = first.iter().map(StringRef::bytes).collect();
    for other in others.iter().flatten() {
        if other.len() < left.len() {
            for member in other.iter() {
                left.swap_remove(&member.bytes()[..]);
            }
        } else {
            left.retain(|member| !other.contains(member));
        }
    }
    first.iter().filter(|member| left.contains(&member.bytes()[..])).collect()
}
