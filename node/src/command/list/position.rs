//! Searching a list for items.

use super::End;
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::{Change, Classes, List, ListChange};

/// `LINSERT key BEFORE|AFTER pivot item`
pub fn linsert(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, pivot, item) = (call.place(1), call.arg(3), call.arg(4));
        let behind = match call.arg(2) {
            word if is(word, "after") => 1,
            word if is(word, "before") => 0,
            _ => return Err(SYNTAX_ERROR.into()),
        };
        let Some(list) = call.read_collection::<List>(place)? else {
            call.reply.integer(0);
            return Ok(());
        };
        let (len, found) = (list.len(), list.iter().position(|found| found == pivot));
        match found {
            None => call.reply.integer(-1),
            Some(index) => {
                call.change(place, Change::List(ListChange::Insert { index: index + behind, item }));
                call.notify(Classes::LIST, "linsert", place);
                call.reply.integer(len as i64 + 1);
            }
        }
        Ok(())
    });
}

/// `LREM key count item`: a negative count begins at the end, 0 means all.
pub fn lrem(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, count, item) = (call.place(1), integer(call.arg(2))?, call.arg(3));
        let limit = match usize::try_from(count.unsigned_abs()) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(limit) => limit,
        };
        let equal = |list: &List| list.iter().filter(|found| *found == item).take(limit).count();
        let removed = call.read_collection::<List>(place)?.map_or(0, equal);
        if removed > 0 {
            let from_back = count < 0;
            call.change(place, Change::List(ListChange::RemoveEqual { item, limit: removed, from_back }));
            call.notify_removal(Classes::LIST, "lrem", place);
        }
        call.reply.integer(removed as i64);
        Ok(())
    });
}

struct Search {
    /// Which end it begins at.
    from: End,
    /// Matches to pass over before the first that is wanted.
    skip: u64,
    /// How many are wanted; one, and answered alone, if not said.
    count: Option<usize>,
    /// Items to look at.
    length_max: usize,
}

impl Search {
    fn parse(call: &Call<'_>) -> Result<Self, Stop> {
        let mut search = Self { from: End::Front, skip: 0, count: None, length_max: usize::MAX };
        let mut index = 3;
        while let Some(option) = call.args.get(index) {
            let value = call.args.get(index + 1).ok_or(SYNTAX_ERROR)?;
            index += 2;
            if is(option, "rank") {
                let rank = integer(value)?;
                if rank == i64::MIN {
                    return Err(format!(
                        "ERR value is out of range, value must between {} and {}",
                        -i64::MAX,
                        i64::MAX
                    )
                    .into());
                }
                search.from = if rank < 0 { End::Back } else { End::Front };
                search.skip = rank.unsigned_abs().checked_sub(1).ok_or(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
                     or use negative to start from the end of the list",
                )?;
            } else if is(option, "count") {
                search.count = Some(or_all(value, "ERR COUNT can't be negative")?);
            } else if is(option, "maxlen") {
                search.length_max = or_all(value, "ERR MAXLEN can't be negative")?;
            } else {
                return Err(SYNTAX_ERROR.into());
            }
        }
        Ok(search)
    }

    /// The places of the matches that are wanted.
    fn run<'l>(&self, list: &'l List, item: &[u8]) -> Vec<usize> {
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        let (len, count) = (list.len(), self.count.unwrap_or(1));
        let is_match = |(_, found): &(usize, &'l [u8])| *found == item;
        match self.from {
            End::Front => {
                let looked_at = list.iter().enumerate().take(self.length_max).filter(is_match);
                looked_at.skip(skip).take(count).map(|(at, _)| at).collect()
            }
            End::Back => {
                let looked_at = list.iter().rev().enumerate().take(self.length_max).filter(is_match);
                looked_at.skip(skip).take(count).map(|(at, _)| len - 1 - at).collect()
            }
        }
    }
}

/// A number that is not negative; 0 means all.
fn or_all(text: &[u8], otherwise: &'static str) -> Result<usize, Stop> {
    let number = integer(text).ok().and_then(|number| usize::try_from(number).ok()).ok_or(otherwise)?;
    Ok(if number == 0 { usize::MAX } else { number })
}

/// `LPOS key item [RANK rank] [COUNT count] [MAXLEN length]`
pub fn lpos(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, item) = (call.place(1), call.arg(2));
        let search = Search::parse(call)?;
        let (list, reply) = call.read_beside::<List>(place)?;
        let found = list.map_or_else(Vec::new, |list| search.run(list, item));
        if search.count.is_some() {
            reply.array(found.len());
            found.iter().for_each(|&at| reply.integer(at as i64));
        } else {
            match found.first() {
                Some(&at) => reply.integer(at as i64),
                None => reply.null(),
            }
        }
        Ok(())
    });
}
