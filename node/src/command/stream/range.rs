//! Entries between two ids.
//!
//! For: `XLEN`, `XRANGE`, `XREVRANGE`.

use super::{ids, reply_entries};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR};
use crate::store::Stream;

/// `XLEN key`
pub fn xlen(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let len = call.read_collection::<Stream>(place)?.map_or(0, Stream::len);
        call.reply.integer(len as i64);
        Ok(())
    });
}

/// `XRANGE key start end [COUNT count]`
pub fn xrange(call: &mut Call<'_>) {
    range(call, false);
}

/// `XREVRANGE key end start [COUNT count]`
pub fn xrevrange(call: &mut Call<'_>) {
    range(call, true);
}

fn range(call: &mut Call<'_>, is_back: bool) {
    call.answer(|call| {
        let (first, second) = if is_back { (3, 2) } else { (2, 3) };
        let (start, end) = (ids::start(call.arg(first))?, ids::end(call.arg(second))?);
        let (mut count, mut index) = (None, 4);
        while let Some(option) = call.args.get(index) {
            match call.args.get(index + 1) {
                Some(number) if is(option, "count") => count = Some(integer(number)?),
                _ => return Err(SYNTAX_ERROR.into()),
            }
            index += 2;
        }
        let place = call.place(1);
        let (stream, reply) = call.read_beside::<Stream>(place)?;
        let count = match count {
            None => 0,
            Some(count @ 1..) => usize::try_from(count).unwrap_or(usize::MAX),
            Some(_) if stream.is_some() => {
                reply.null_array();
                return Ok(());
            }
            Some(_) => 0,
        };
        match stream {
            None => reply.array(0),
            Some(stream) if is_back => reply_entries(reply, stream.range_back(start, end), count),
            Some(stream) => reply_entries(reply, stream.range(start, end), count),
        }
        Ok(())
    });
}
