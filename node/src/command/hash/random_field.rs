//! Fields by chance.

use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::resp::ProtocolVersion;

use crate::command::sample::Sample;
use crate::command::string::REPLY_TOO_LARGE;
use crate::command::{Call, Stop, WRONG_TYPE};
use crate::store::{Collection, Hash};

/// `HRANDFIELD key [count [WITHVALUES]]`
pub fn hrandfield(call: &mut Call<'_>) {
    call.answer(|call| match call.args.get(2) {
        None => one(call),
        Some(count) => {
            // A word too many is not the option.
            let option = if call.args.len() > 4 { Some(&b""[..]) } else { call.args.get(3) };
            let (sample, with_values) = Sample::parse(count, option, "withvalues")?;
            several(call, sample, with_values)
        }
    });
}

fn one(call: &mut Call<'_>) -> Result<(), Stop> {
    let place = call.place(1);
    let entry = call.looks.read(call.keyspace, place, call.now_ms, call.effects);
    let hash = entry.map(|entry| Hash::of(entry.value()).ok_or(WRONG_TYPE)).transpose()?;
    let index = hash.and_then(|hash| Sample::Repeated(1).indexes(hash.len(), call.random).next());
    match hash.zip(index).and_then(|(hash, index)| hash.nth(index)) {
        Some((field, _)) => call.reply.bulk(field),
        None => call.reply.null(),
    }
    Ok(())
}

fn several(call: &mut Call<'_>, sample: Sample, with_values: bool) -> Result<(), Stop> {
    let place = call.place(1);
    let entry = call.looks.read(call.keyspace, place, call.now_ms, call.effects);
    let Some(hash) = entry.map(|entry| Hash::of(entry.value()).ok_or(WRONG_TYPE)).transpose()? else {
        call.reply.array(0);
        return Ok(());
    };
    let reply = &mut call.reply;
    let (start, in_pairs) = (reply.mark(), with_values && reply.version() == ProtocolVersion::Resp3);
    let size = sample.size(hash.len());
    reply.array(if with_values && !in_pairs { 2 * size } else { size });
    for index in sample.indexes(hash.len(), call.random) {
        if reply.written_since(start) > BULK_BYTES_MAX {
            reply.take_back(start);
            return Err(REPLY_TOO_LARGE.into());
        }
        let Some((field, value)) = hash.nth(index) else { continue };
        if in_pairs {
            reply.array(2);
        }
        reply.bulk(field);
        if with_values {
            reply.bulk(value);
        }
    }
    Ok(())
}
