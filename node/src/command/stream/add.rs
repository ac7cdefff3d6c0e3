//! Adding entries.
//!
//! For: `XADD`.
//! Not here: its options on trimming (`trim`).

use super::ids::NewId;
use super::trim::Options;
use super::{again, change};
use crate::command::args::wrong_number;
use crate::command::{Call, Stop};
use crate::store::xstream::{Fields, StreamChange, StreamId};
use crate::store::{Classes, Stream};

/// `XADD key [NOMKSTREAM] [MAXLEN|MINID [=|~] threshold [LIMIT count]] id field value …`
pub fn xadd(call: &mut Call<'_>) {
    call.answer(|call| {
        let (options, first) = Options::parse(&call.args, true)?;
        let items = call.args.len().saturating_sub(first);
        if items < 2 || !items.is_multiple_of(2) {
            return Err(wrong_number("xadd"));
        }
        if options.id == NewId::Exact(StreamId::MIN) {
            return Err("ERR The ID specified in XADD must be greater than 0-0".into());
        }
        let place = call.place(1);
        let last = match call.read_collection::<Stream>(place)? {
            Some(stream) => stream.last_id(),
            None if options.no_stream => {
                call.reply.null();
                return Ok(());
            }
            None => StreamId::MIN,
        };
        let id = next_id(options.id, last, call.now_ms)?;
        let args = call.args;
        let bytes = Fields::encode((first..args.len()).map(|index| args.get(index).unwrap_or_default()));
        let Some(fields) = Fields::from_bytes(&bytes) else { return Err(wrong_number("xadd")) };
        change(call, place, StreamChange::Add { id, fields });
        call.notify(Classes::STREAM, "xadd", place);
        let trimmed =
            options.trim.and_then(|trim| again(call, place).and_then(|stream| stream.trimmed(&trim)));
        if let Some((trimmed, _)) = trimmed {
            change(call, place, StreamChange::Trim(trimmed));
            call.notify(Classes::STREAM, "xtrim", place);
        }
        super::reply_id(&mut call.reply, id);
        Ok(())
    });
}

/// The id of an entry that comes after `last`.
fn next_id(wanted: NewId, last: StreamId, now_ms: u64) -> Result<StreamId, Stop> {
    if last == StreamId::MAX {
        return Err("ERR The stream has exhausted the last possible ID, unable to add more items".into());
    }
    let id = match wanted {
        NewId::Any if now_ms > last.ms => Some(StreamId { ms: now_ms, seq: 0 }),
        NewId::Any => last.next(),
        NewId::Within(ms) if ms == last.ms => last.seq.checked_add(1).map(|seq| StreamId { ms, seq }),
        NewId::Within(ms) => Some(StreamId { ms, seq: 0 }),
        NewId::Exact(id) => Some(id),
    };
    id.filter(|id| *id > last)
        .ok_or("ERR The ID specified in XADD is equal or smaller than the target stream top item".into())
}
