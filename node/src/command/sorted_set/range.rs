//! Ranges of a sorted set: read, counted, stored, removed.

use std::ops::Range;

use super::Layout;
use super::bounds::{Bounds, By};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::keyspace::Place;
use crate::store::{Change, Classes, Score, SortedSet, SortedSetChange, Value, ValueRef};

/// What a command of this kind fixes; `None` where its options say it.
#[derive(Clone, Copy)]
struct Kind {
    by: Option<By>,
    downwards: Option<bool>,
    /// Where the key stands, behind a destination if there is one.
    key: usize,
}

impl Kind {
    const fn fixed(by: By, downwards: bool) -> Self {
        Self { by: Some(by), downwards: Some(downwards), key: 1 }
    }
}

/// What is asked for.
struct Request<'a> {
    bounds: Bounds<'a>,
    downwards: bool,
    with_scores: bool,
    offset: i64,
    limit: i64,
}

impl<'a> Request<'a> {
    /// Reads the options and then the ends, which stand behind the key.
    fn parse(call: &Call<'a>, kind: Kind) -> Result<Self, Stop> {
        let stores = kind.key > 1;
        let (mut by, mut downwards, mut with_scores) = (kind.by, kind.downwards, false);
        let (mut offset, mut limit) = (0, -1);
        let mut index = kind.key + 3;
        while let Some(option) = call.args.get(index) {
            if !stores && is(option, "withscores") {
                with_scores = true;
            } else if is(option, "limit")
                && let Some((from, count)) = call.args.get(index + 1).zip(call.args.get(index + 2))
            {
                (offset, limit) = (integer(from)?, integer(count)?);
                index += 2;
            } else if downwards.is_none() && is(option, "rev") {
                downwards = Some(true);
            } else if by.is_none() && is(option, "bylex") {
                by = Some(By::Name);
            } else if by.is_none() && is(option, "byscore") {
                by = Some(By::Score);
            } else {
                return Err(SYNTAX_ERROR.into());
            }
            index += 1;
        }
        let (by, downwards) = (by.unwrap_or(By::Place), downwards.unwrap_or(false));
        if limit != -1 && by == By::Place {
            return Err(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
                    .into(),
            );
        }
        if with_scores && by == By::Name {
            return Err("ERR syntax error, WITHSCORES not supported in combination with BYLEX".into());
        }
        let (first, second) = (call.arg(kind.key + 1), call.arg(kind.key + 2));
        // Read downwards, the higher end comes first.
        let is_swapped = downwards && by != By::Place;
        let (low, high) = if is_swapped { (second, first) } else { (first, second) };
        Ok(Self { bounds: Bounds::parse(by, low, high)?, downwards, with_scores, offset, limit })
    }

    /// The ranks that are to come.
    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        let ranks = self.bounds.ranks(set, self.downwards);
        // Redis takes `LIMIT offset -1` for places too, and ignores it.
        if let Bounds::Places(..) = self.bounds {
            return ranks;
        }
        let skipped = usize::try_from(self.offset).unwrap_or(usize::MAX).min(ranks.len());
        let count = usize::try_from(self.limit).unwrap_or(usize::MAX).min(ranks.len() - skipped);
        if self.downwards {
            let end = ranks.end - skipped;
            end - count..end
        } else {
            let start = ranks.start + skipped;
            start..start + count
        }
    }
}

/// `ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
pub fn zrange(call: &mut Call<'_>) {
    answer(call, Kind { by: None, downwards: None, key: 1 });
}

/// `ZREVRANGE key start stop [WITHSCORES]`
pub fn zrevrange(call: &mut Call<'_>) {
    answer(call, Kind::fixed(By::Place, true));
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
pub fn zrangebyscore(call: &mut Call<'_>) {
    answer(call, Kind::fixed(By::Score, false));
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
pub fn zrevrangebyscore(call: &mut Call<'_>) {
    answer(call, Kind::fixed(By::Score, true));
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`
pub fn zrangebylex(call: &mut Call<'_>) {
    answer(call, Kind::fixed(By::Name, false));
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
pub fn zrevrangebylex(call: &mut Call<'_>) {
    answer(call, Kind::fixed(By::Name, true));
}

fn answer(call: &mut Call<'_>, kind: Kind) {
    call.answer(|call| {
        let request = Request::parse(call, kind)?;
        let place = call.place(1);
        let (set, reply) = call.read_beside::<SortedSet>(place)?;
        let Some(set) = set else {
            reply.array(0);
            return Ok(());
        };
        let (ranks, layout) = (request.ranks(set), Layout::of(reply, request.with_scores));
        layout.open(reply, ranks.len());
        walk(set, ranks, request.downwards).for_each(|(member, score)| layout.member(reply, member, score));
        Ok(())
    });
}

/// The members of a range, in either direction.
fn walk(set: &SortedSet, ranks: Range<usize>, downwards: bool) -> impl Iterator<Item = (&[u8], Score)> {
    let up = (!downwards).then(|| set.upwards(ranks.start));
    let down = downwards.then(|| set.downwards(ranks.end.saturating_sub(1)));
    up.into_iter().flatten().chain(down.into_iter().flatten()).take(ranks.len())
}

/// `ZRANGESTORE destination source start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count]`
pub fn zrangestore(call: &mut Call<'_>) {
    call.answer(|call| {
        let request = Request::parse(call, Kind { by: None, downwards: None, key: 2 })?;
        let source = call.place(2);
        let set = call.read_collection::<SortedSet>(source)?;
        let found = set.map(|set| walk(set, request.ranks(set), false).collect::<SortedSet>());
        let target = call.place(1);
        store(call, target, found.unwrap_or_default(), "zrangestore");
        Ok(())
    });
}

/// Puts a sorted set to its destination, and answers its length; an empty one ends the key.
pub(in crate::command) fn store(call: &mut Call<'_>, target: Place<'_>, set: SortedSet, event: &'static str) {
    let count = set.len();
    if set.is_empty() {
        call.delete_and_notify(target);
    } else if let Err(text) = call.fits(ValueRef::SortedSet(&set)) {
        return call.reply.error(&text);
    } else {
        call.put_value(target, Value::SortedSet(Box::new(set)), None);
        call.notify(Classes::SORTED_SET, event, target);
    }
    call.reply.integer(count as i64);
}

/// `ZCOUNT key min max`
pub fn zcount(call: &mut Call<'_>) {
    count(call, By::Score);
}

/// `ZLEXCOUNT key min max`
pub fn zlexcount(call: &mut Call<'_>) {
    count(call, By::Name);
}

fn count(call: &mut Call<'_>, by: By) {
    call.answer(|call| {
        let bounds = Bounds::parse(by, call.arg(2), call.arg(3))?;
        let place = call.place(1);
        let count = call.read_collection::<SortedSet>(place)?.map_or(0, |set| bounds.ranks(set, false).len());
        call.reply.integer(count as i64);
        Ok(())
    });
}

/// `ZREMRANGEBYRANK key start stop`
pub fn zremrangebyrank(call: &mut Call<'_>) {
    remove_range(call, By::Place, "zremrangebyrank");
}

/// `ZREMRANGEBYSCORE key min max`
pub fn zremrangebyscore(call: &mut Call<'_>) {
    remove_range(call, By::Score, "zremrangebyscore");
}

/// `ZREMRANGEBYLEX key min max`
pub fn zremrangebylex(call: &mut Call<'_>) {
    remove_range(call, By::Name, "zremrangebylex");
}

fn remove_range(call: &mut Call<'_>, by: By, event: &'static str) {
    call.answer(|call| {
        let bounds = Bounds::parse(by, call.arg(2), call.arg(3))?;
        let place = call.place(1);
        let set = call.read_collection::<SortedSet>(place)?;
        let removed = set.map(|set| walk(set, bounds.ranks(set, false), false).map(owned).collect());
        let removed: Vec<_> = removed.unwrap_or_default();
        remove(call, place, removed.iter().map(|(member, _)| &member[..]), event)?;
        call.reply.integer(removed.len() as i64);
        Ok(())
    });
}

/// A copy of a member, with its score.
pub(super) fn owned((member, score): (&[u8], Score)) -> (Box<[u8]>, Score) {
    (member.into(), score)
}

/// Removes members, each of which is there and named once.
pub(super) fn remove<'m>(
    call: &mut Call<'_>,
    place: Place<'_>,
    members: impl ExactSizeIterator<Item = &'m [u8]>,
    event: &'static str,
) -> Result<(), Stop> {
    if members.len() == 0 {
        return Ok(());
    }
    // All of them: one effect instead of one for each.
    if call.read_collection::<SortedSet>(place)?.is_some_and(|set| set.len() == members.len()) {
        call.delete(place);
    } else {
        for member in members {
            call.change(place, Change::SortedSet(SortedSetChange::Remove { member }));
        }
    }
    call.notify_removal(Classes::SORTED_SET, event, place);
    Ok(())
}
