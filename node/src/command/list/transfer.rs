//! Taking items from one list to another, or out of one of several.

use super::{End, take_out};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::{Classes, List};

/// `LMOVE source target LEFT|RIGHT LEFT|RIGHT`
pub fn lmove(call: &mut Call<'_>) {
    call.answer(|call| {
        let (from, to) = (End::parse(call.arg(3))?, End::parse(call.arg(4))?);
        if !move_one(call, from, to)? {
            call.reply.null();
        }
        Ok(())
    });
}

/// `RPOPLPUSH source target`
pub fn rpoplpush(call: &mut Call<'_>) {
    call.answer(|call| {
        if !move_one(call, End::Back, End::Front)? {
            call.reply.null();
        }
        Ok(())
    });
}

/// Moves an item from the list at argument 1 to the one at argument 2 and answers it; whether there was one.
pub(super) fn move_one(call: &mut Call<'_>, from: End, to: End) -> Result<bool, Stop> {
    let (source, target) = (call.place(1), call.place(2));
    let Some(item) = call.read_collection::<List>(source)?.and_then(|list| from.item(list)) else {
        return Ok(false);
    };
    let item = item.to_vec();
    let target_len = call.read_collection::<List>(target)?.map_or(0, List::len);
    call.reply.bulk(&item);
    let stays = source.key == target.key && (from == to || target_len == 1);
    if !stays {
        // First the push: a list that goes round must not end on the way.
        call.change(target, to.push(&item));
        call.change(source, from.pop(1));
    }
    call.notify(Classes::LIST, to.pushed(), target);
    call.notify_removal(Classes::LIST, from.popped(), source);
    Ok(true)
}

/// What `LMPOP` is told, from argument `first` on: `numkeys key … LEFT|RIGHT [COUNT count]`.
pub(super) struct Several {
    keys: std::ops::Range<usize>,
    end: End,
    count: usize,
}

impl Several {
    pub(super) fn parse(call: &Call<'_>, first: usize) -> Result<Self, Stop> {
        let keys = at_least_one(call.arg(first), "ERR numkeys should be greater than 0")?;
        let word = keys.checked_add(first + 1).filter(|&word| word < call.args.len()).ok_or(SYNTAX_ERROR)?;
        let end = End::parse(call.arg(word))?;
        let count = match (call.args.get(word + 1), call.args.get(word + 2)) {
            (None, _) => 1,
            (Some(option), Some(count)) if is(option, "count") => {
                at_least_one(count, "ERR count should be greater than 0")?
            }
            _ => return Err(SYNTAX_ERROR.into()),
        };
        if call.args.len() > word + 3 {
            return Err(SYNTAX_ERROR.into());
        }
        Ok(Self { keys: first + 1..word, end, count })
    }

    /// Takes items out of the first list that has any and answers them with its key; whether there was one.
    pub(super) fn run(self, call: &mut Call<'_>) -> Result<bool, Stop> {
        for index in self.keys {
            let place = call.place(index);
            if call.read_collection::<List>(place)?.is_some() {
                let start = call.reply.mark();
                call.reply.array(2);
                call.reply.bulk(place.name());
                return match take_out(call, place, self.end, self.count) {
                    Ok(()) => Ok(true),
                    Err(stop) => {
                        call.reply.take_back(start);
                        Err(stop)
                    }
                };
            }
        }
        Ok(false)
    }
}

fn at_least_one(text: &[u8], otherwise: &'static str) -> Result<usize, Stop> {
    let number = integer(text).ok().and_then(|number| usize::try_from(number).ok());
    number.filter(|&number| number > 0).ok_or(otherwise.into())
}

/// `LMPOP numkeys key … LEFT|RIGHT [COUNT count]`
pub fn lmpop(call: &mut Call<'_>) {
    call.answer(|call| {
        let several = Several::parse(call, 1)?;
        if !several.run(call)? {
            call.reply.null_array();
        }
        Ok(())
    });
}
