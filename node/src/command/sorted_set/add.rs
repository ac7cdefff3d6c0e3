//! Giving scores.

use super::number;
use crate::command::args::is;
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::{Change, Classes, Score, SortedSet, SortedSetChange};

/// What `ZADD` is told to do.
#[derive(Clone, Copy, Default)]
struct Options {
    if_missing: bool,
    if_present: bool,
    if_greater: bool,
    if_less: bool,
    count_changed: bool,
    increment: bool,
}

impl Options {
    /// Takes an option; whether it is one.
    fn take(&mut self, option: &[u8]) -> bool {
        let known = [
            ("nx", &mut self.if_missing),
            ("xx", &mut self.if_present),
            ("gt", &mut self.if_greater),
            ("lt", &mut self.if_less),
            ("ch", &mut self.count_changed),
            ("incr", &mut self.increment),
        ];
        for (name, option_set) in known {
            if is(option, name) {
                *option_set = true;
                return true;
            }
        }
        false
    }

    fn check(self, pairs: usize) -> Result<(), Stop> {
        if self.if_missing && self.if_present {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        if self.if_greater && self.if_missing || self.if_less && (self.if_missing || self.if_greater) {
            return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
        }
        if self.increment && pairs > 1 {
            return Err("ERR INCR option supports a single increment-element pair".into());
        }
        Ok(())
    }

    /// The new score of a member; `None` if it is to stay as it is.
    fn score(self, old: Option<f64>, given: f64) -> Result<Option<f64>, Stop> {
        let Some(old) = old else { return Ok((!self.if_present).then_some(given)) };
        if self.if_missing {
            return Ok(None);
        }
        let new = if self.increment { old + given } else { given };
        if new.is_nan() {
            return Err("ERR resulting score is not a number (NaN)".into());
        }
        Ok((!(self.if_greater && new <= old || self.if_less && new >= old)).then_some(new))
    }
}

/// `ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member …`
pub fn zadd(call: &mut Call<'_>) {
    call.answer(|call| add(call, Options::default()));
}

/// `ZINCRBY key increment member`
pub fn zincrby(call: &mut Call<'_>) {
    call.answer(|call| add(call, Options { increment: true, ..Options::default() }));
}

fn add(call: &mut Call<'_>, mut options: Options) -> Result<(), Stop> {
    let mut first = 2;
    while call.args.get(first).is_some_and(|option| options.take(option)) {
        first += 1;
    }
    let left = call.args.len() - first;
    if left == 0 || !left.is_multiple_of(2) {
        return Err(SYNTAX_ERROR.into());
    }
    options.check(left / 2)?;
    let place = call.place(1);
    // All scores are read before anything changes.
    for index in (first..call.args.len()).step_by(2) {
        number::parse(call.arg(index))?;
    }
    call.read_collection::<SortedSet>(place)?;
    let (mut added, mut changed, mut last) = (0, 0, None);
    for index in (first..call.args.len()).step_by(2) {
        let (given, member) = (number::parse(call.arg(index))?, call.arg(index + 1));
        let old = call.read_collection::<SortedSet>(place)?.and_then(|set| set.score(member));
        last = options.score(old.map(Score::get), given)?;
        let Some(score) = last.and_then(Score::new).filter(|score| old != Some(*score)) else { continue };
        call.change(place, Change::SortedSet(SortedSetChange::Put { member, score }));
        added += i64::from(old.is_none());
        changed += 1;
    }
    if changed > 0 {
        let event = if options.increment { "zincr" } else { "zadd" };
        call.notify(Classes::SORTED_SET, event, place);
    }
    match (options.increment, last) {
        (true, Some(score)) => call.reply.double(&number::text(score)),
        (true, None) => call.reply.null(),
        (false, _) => call.reply.integer(if options.count_changed { changed } else { added }),
    }
    Ok(())
}
