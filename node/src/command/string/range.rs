//! Parts of strings.

use std::ops::Range;

use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::rope::HELD_BYTES_MIN;

use crate::command::args::integer;
use crate::command::{Call, Stop};
use crate::store::keyspace::seconds;
use crate::store::{Classes, ValueRef};

/// Refuses a string that would be longer than the longest bulk string.
fn check_length(len: usize, more: usize) -> Result<(), Stop> {
    match len.checked_add(more) {
        Some(sum) if sum <= BULK_BYTES_MAX => Ok(()),
        _ => Err("ERR string exceeds maximum allowed size (proto-max-bulk-len)".into()),
    }
}

/// `APPEND key value`
pub fn append(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, tail) = (call.place(1), call.arg(2));
        let len = match call.read_string(place)?.map(|string| string.len()) {
            None => {
                call.put(place, ValueRef::string(tail), None);
                tail.len()
            }
            Some(len) => {
                check_length(len, tail.len())?;
                call.keyspace.tick(seconds(call.now_ms));
                call.keyspace.append(place, tail);
                call.effects.append(place, tail, call.source);
                len + tail.len()
            }
        };
        call.notify(Classes::STRING, "append", place);
        call.reply.integer(len as i64);
        Ok(())
    });
}

/// `STRLEN key`
pub fn strlen(call: &mut Call<'_>) {
    call.answer(|call| {
        let len = call.read_string(call.place(1))?.map_or(0, |string| string.len());
        call.reply.integer(len as i64);
        Ok(())
    });
}

/// `GETRANGE key start end`: both inclusive, negative ones count from the end.
pub fn getrange(call: &mut Call<'_>) {
    call.answer(|call| {
        let (start, end) = (integer(call.arg(2))?, integer(call.arg(3))?);
        let place = call.place(1);
        let entry = call.looks.read(call.keyspace, place, call.now_ms, call.effects);
        let string = entry.map(|entry| crate::command::string_of(entry.value())).transpose()?;
        let bytes = string.map(|string| string.bytes()).unwrap_or_default();
        let range = part(bytes.len(), start, end);
        if range.len() < HELD_BYTES_MIN {
            call.reply.bulk(&bytes[range]);
        } else if let Some(shared) = call.keyspace.share(place) {
            call.reply.bulk_held(&shared.slice(range));
        }
        Ok(())
    });
}

/// `SUBSTR key start end`: the old name of `GETRANGE`.
pub fn substr(call: &mut Call<'_>) {
    getrange(call);
}

fn part(len: usize, start: i64, end: i64) -> Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let len = len as i64;
    let from_front = |index: i64| if index < 0 { (len + index).max(0) } else { index };
    let (start, end) = (from_front(start), from_front(end).min(len - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

/// `SETRANGE key offset value`
pub fn setrange(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, bytes) = (call.place(1), call.arg(3));
        let offset = usize::try_from(integer(call.arg(2))?).map_err(|_| "ERR offset is out of range")?;
        let len = call.read_string(place)?.map_or(0, |string| string.len());
        if bytes.is_empty() {
            call.reply.integer(len as i64);
            return Ok(());
        }
        check_length(offset, bytes.len())?;
        call.notify_new(place);
        call.keyspace.tick(seconds(call.now_ms));
        call.keyspace.overwrite(place, offset, bytes);
        call.effects.overwrite(place, offset, bytes, call.source);
        call.notify(Classes::STRING, "setrange", place);
        call.reply.integer(len.max(offset + bytes.len()) as i64);
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_are_those_of_redis() {
        let text = b"This is a string";
        for (start, end, expected) in [
            (0, 3, "This"),
            (-3, -1, "ing"),
            (0, -1, "This is a string"),
            (10, 100, "string"),
            (-100, -200, ""),
            (-200, -100, "T"),
            (5, 3, ""),
            (16, 20, ""),
            (i64::MIN, i64::MAX, "This is a string"),
            (i64::MAX, i64::MIN, ""),
        ] {
            assert_eq!(&text[part(text.len(), start, end)], expected.as_bytes(), "{start} {end}");
        }
        assert_eq!(part(0, 0, -1), 0..0);
    }
}
