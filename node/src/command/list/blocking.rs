//! Taking items out of lists, now or later: what is done when there are any.

use super::transfer::{Several, move_one};
use super::{End, take_one};
use crate::command::{Call, Stop, blocking};
use crate::store::List;

/// `BLPOP key … timeout`
pub fn blpop(call: &mut Call<'_>) {
    pop_first(call, End::Front);
}

/// `BRPOP key … timeout`
pub fn brpop(call: &mut Call<'_>) {
    pop_first(call, End::Back);
}

fn pop_first(call: &mut Call<'_>, end: End) {
    call.answer(|call| {
        let timeout = call.args.len() - 1;
        blocking::check(call, timeout)?;
        for index in 1..timeout {
            let place = call.place(index);
            let (list, reply) = call.read_beside::<List>(place)?;
            if let Some(item) = list.and_then(|list| end.item(list)) {
                reply.array(2);
                reply.bulk(place.name());
                reply.bulk(item);
                take_one(call, place, end);
                return Ok(());
            }
        }
        call.reply.null_array();
        Ok(())
    });
}

/// `BLMOVE source target LEFT|RIGHT LEFT|RIGHT timeout`
pub fn blmove(call: &mut Call<'_>) {
    call.answer(|call| {
        let (from, to) = (End::parse(call.arg(3))?, End::parse(call.arg(4))?);
        blocking::check(call, 5)?;
        move_or_nothing(call, from, to)
    });
}

/// `BRPOPLPUSH source target timeout`
pub fn brpoplpush(call: &mut Call<'_>) {
    call.answer(|call| {
        blocking::check(call, 3)?;
        move_or_nothing(call, End::Back, End::Front)
    });
}

fn move_or_nothing(call: &mut Call<'_>, from: End, to: End) -> Result<(), Stop> {
    if !move_one(call, from, to)? {
        call.reply.null();
    }
    Ok(())
}

/// `BLMPOP timeout numkeys key … LEFT|RIGHT [COUNT count]`
pub fn blmpop(call: &mut Call<'_>) {
    call.answer(|call| {
        let several = Several::parse(call, 2)?;
        blocking::check(call, 1)?;
        if !several.run(call)? {
            call.reply.null_array();
        }
        Ok(())
    });
}
