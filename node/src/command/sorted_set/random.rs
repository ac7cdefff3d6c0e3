//! Members by chance.

use korum_protocol::limits::BULK_BYTES_MAX;

use super::Layout;
use crate::command::sample::Sample;
use crate::command::string::REPLY_TOO_LARGE;
use crate::command::{Call, SYNTAX_ERROR, WRONG_TYPE};
use crate::store::{Collection, SortedSet};

/// `ZRANDMEMBER key [count [WITHSCORES]]`
pub fn zrandmember(call: &mut Call<'_>) {
    call.answer(|call| {
        let asked = match call.args.get(2) {
            None => None,
            Some(count) => {
                let asked = Sample::parse(count, call.args.get(3), "withscores")?;
                if call.args.len() > 4 {
                    return Err(SYNTAX_ERROR.into());
                }
                Some(asked)
            }
        };
        let place = call.place(1);
        let entry = call.looks.read(call.keyspace, place, call.now_ms, call.effects);
        let set = entry.map(|entry| SortedSet::of(entry.value()).ok_or(WRONG_TYPE)).transpose()?;
        let reply = &mut call.reply;
        let Some(set) = set else {
            if asked.is_some() {
                reply.array(0)
            } else {
                reply.null()
            }
            return Ok(());
        };
        let (sample, with_scores) = asked.unwrap_or((Sample::Repeated(1), false));
        if sample.is_too_large(set.len()) {
            return Err(REPLY_TOO_LARGE.into());
        }
        let (start, layout) = (reply.mark(), Layout::of(reply, with_scores));
        if asked.is_some() {
            layout.open(reply, sample.size(set.len()));
        }
        for index in sample.indexes(set.len(), call.random) {
            if reply.written_since(start) > BULK_BYTES_MAX {
                reply.take_back(start);
                return Err(REPLY_TOO_LARGE.into());
            }
            if let Some((member, score)) = set.nth(index) {
                layout.member(reply, member, score);
            }
        }
        Ok(())
    });
}
