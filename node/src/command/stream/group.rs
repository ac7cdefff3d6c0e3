//! Groups and their consumers.
//!
//! For: the subcommands of `XGROUP`. Argument 2 is the key, 3 the group.

use super::{change, ids, quoted, see, unknown_subcommand};
use crate::command::args::{integer, is};
use crate::command::{Call, Stop};
use crate::store::keyspace::Place;
use crate::store::xstream::{StreamChange, StreamId};
use crate::store::{Classes, Stream};

/// What `XGROUP HELP` lists.
pub const GROUP_HELP: &[&str] = &[
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
];

const KEY_NEEDED: &str = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to \
                          use the MKSTREAM option to create an empty stream automatically.";

#[derive(Default)]
struct Options {
    make_stream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(call: &Call<'_>, is_create: bool) -> Result<Self, Stop> {
        let (mut options, mut index) = (Self::default(), 5);
        while let Some(option) = call.args.get(index) {
            match call.args.get(index + 1) {
                _ if is_create && is(option, "mkstream") => {
                    options.make_stream = true;
                    index += 1;
                }
                Some(number) if is(option, "entriesread") => {
                    options.entries_read = match integer(number)? {
                        -1 => None,
                        number => Some(
                            u64::try_from(number)
                                .map_err(|_| "ERR value for ENTRIESREAD must be positive or -1")?,
                        ),
                    };
                    index += 2;
                }
                _ => return Err(unknown_subcommand(call, "XGROUP")),
            }
        }
        Ok(options)
    }
}

/// The stream, which must be there, with its place; and whether it has the group, which must be there too if
/// `is_needed`.
fn find<'c>(call: &'c mut Call<'_>, place: Place<'_>, is_needed: bool) -> Result<(&'c Stream, bool), Stop> {
    let (key, group) = (call.arg(2), call.arg(3));
    let stream = call.read_collection::<Stream>(place)?.ok_or(KEY_NEEDED)?;
    let is_there = stream.group(group).is_some();
    if is_needed && !is_there {
        return Err(format!(
            "NOGROUP No such consumer group '{}' for key name '{}'",
            quoted(group),
            quoted(key)
        )
        .into());
    }
    Ok((stream, is_there))
}

/// `XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]`
pub fn xgroup_create(call: &mut Call<'_>) {
    call.answer(|call| {
        let options = Options::parse(call, true)?;
        let (place, group) = (call.place(2), call.arg(3));
        let stream = call.read_collection::<Stream>(place)?;
        if stream.is_none() && !options.make_stream {
            return Err(KEY_NEEDED.into());
        }
        let top = stream.map_or(StreamId::MIN, Stream::last_id);
        let is_there = stream.is_some_and(|stream| stream.group(group).is_some());
        if call.args.len() > 8 {
            return Err(unknown_subcommand(call, "XGROUP"));
        }
        let last_id = if call.arg(4) == b"$" { top } else { ids::strict(call.arg(4), 0)? };
        if is_there {
            return Err("BUSYGROUP Consumer Group name already exists".into());
        }
        change(call, place, StreamChange::SetGroup { group, last_id, entries_read: options.entries_read });
        call.notify(Classes::STREAM, "xgroup-create", place);
        call.reply.ok();
        Ok(())
    });
}

/// `XGROUP SETID key group id|$ [ENTRIESREAD entries-read]`
pub fn xgroup_setid(call: &mut Call<'_>) {
    call.answer(|call| {
        let options = Options::parse(call, false)?;
        let (place, group) = (call.place(2), call.arg(3));
        let (stream, _) = find(call, place, true)?;
        let top = stream.last_id();
        if call.args.len() > 7 {
            return Err(unknown_subcommand(call, "XGROUP"));
        }
        let last_id = if call.arg(4) == b"$" { top } else { ids::any(call.arg(4), 0)? };
        change(call, place, StreamChange::SetGroup { group, last_id, entries_read: options.entries_read });
        call.notify(Classes::STREAM, "xgroup-setid", place);
        call.reply.ok();
        Ok(())
    });
}

/// `XGROUP DESTROY key group`
pub fn xgroup_destroy(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, group) = (call.place(2), call.arg(3));
        let (_, is_there) = find(call, place, false)?;
        if is_there {
            change(call, place, StreamChange::DestroyGroup { group });
            call.notify(Classes::STREAM, "xgroup-destroy", place);
        }
        call.reply.integer(is_there.into());
        Ok(())
    });
}

/// `XGROUP CREATECONSUMER key group consumer`
pub fn xgroup_createconsumer(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, group, consumer) = (call.place(2), call.arg(3), call.arg(4));
        let (stream, _) = find(call, place, true)?;
        let is_new = stream.group(group).is_some_and(|group| group.consumer(consumer).is_none());
        if is_new {
            see(call, place, group, consumer, false);
        }
        call.reply.integer(is_new.into());
        Ok(())
    });
}

/// `XGROUP DELCONSUMER key group consumer`: how many entries were pending at it.
pub fn xgroup_delconsumer(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, group, consumer) = (call.place(2), call.arg(3), call.arg(4));
        let (stream, _) = find(call, place, true)?;
        let found = stream.group(group).and_then(|group| group.consumer(consumer));
        let pending = found.map(|consumer| consumer.pending().len());
        if pending.is_some() {
            change(call, place, StreamChange::DeleteConsumer { group, consumer });
            call.notify(Classes::STREAM, "xgroup-delconsumer", place);
        }
        call.reply.integer(pending.unwrap_or(0) as i64);
        Ok(())
    });
}
