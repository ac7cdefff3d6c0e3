//! Deleting entries, and setting a stream's accounts.
//!
//! For: `XDEL`, `XSETID`.

use super::{NO_SUCH_KEY, again, change, ids};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR};
use crate::store::xstream::{Ids, StreamChange, StreamId};
use crate::store::{Classes, Stream};

/// `XDEL key id …`
pub fn xdel(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        if call.read_collection::<Stream>(place)?.is_none() {
            call.reply.integer(0);
            return Ok(());
        }
        let ids = call.args.iter().skip(2).map(|text| ids::strict(text, 0)).collect::<Result<Vec<_>, _>>()?;
        let mut deleted = 0;
        for id in ids {
            if again(call, place).is_some_and(|stream| stream.get(id).is_some()) {
                change(call, place, StreamChange::Delete { ids: Ids::new(&[id.to_bytes()]) });
                deleted += 1;
            }
        }
        if deleted > 0 {
            call.notify(Classes::STREAM, "xdel", place);
        }
        call.reply.integer(deleted);
        Ok(())
    });
}

/// `XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]`
pub fn xsetid(call: &mut Call<'_>) {
    call.answer(|call| {
        let id = ids::strict(call.arg(2), 0)?;
        let (mut added, mut deleted, mut index) = (None, StreamId::MIN, 3);
        while let Some(option) = call.args.get(index) {
            match call.args.get(index + 1) {
                Some(number) if is(option, "entriesadded") => {
                    let number = u64::try_from(integer(number)?);
                    added = Some(number.map_err(|_| "ERR entries_added must be positive")?);
                }
                Some(text) if is(option, "maxdeletedid") => {
                    deleted = ids::strict(text, 0)?;
                    if id < deleted {
                        return Err("ERR The ID specified in XSETID is smaller than the provided \
                                    max_deleted_entry_id"
                            .into());
                    }
                }
                _ => return Err(SYNTAX_ERROR.into()),
            }
            index += 2;
        }
        let place = call.place(1);
        let stream = call.read_collection::<Stream>(place)?.ok_or(NO_SUCH_KEY)?;
        if id < stream.max_deleted() {
            return Err("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id".into());
        }
        if !stream.is_empty() && id < stream.top_id() {
            return Err("ERR The ID specified in XSETID is smaller than the target stream top item".into());
        }
        if added.is_some_and(|added| added < stream.len()) {
            return Err(
                "ERR The entries_added specified in XSETID is smaller than the target stream length".into()
            );
        }
        let accounts = StreamChange::SetAccounts {
            last_id: id,
            max_deleted: if deleted == StreamId::MIN { stream.max_deleted() } else { deleted },
            entries_added: added.unwrap_or(stream.entries_added()),
        };
        change(call, place, accounts);
        call.notify(Classes::STREAM, "xsetid", place);
        call.reply.ok();
        Ok(())
    });
}
