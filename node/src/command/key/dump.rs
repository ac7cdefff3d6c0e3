//! Carrying values to and from other servers.

use super::rdb;
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::Classes;
use crate::store::keyspace::seconds;

/// Latest deadline, Unix ms: answers are signed.
const DEADLINE_MAX: u64 = i64::MAX as u64;

/// `DUMP key`
pub fn dump(call: &mut Call<'_>) {
    let place = call.place(1);
    // As in Redis, this counts as an access.
    match call.looks.read(call.keyspace, place, call.now_ms, call.effects) {
        Some(entry) => call.reply.bulk(&rdb::dump(entry.value())),
        None => call.reply.null(),
    }
}

#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_seconds: Option<u64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(call: &Call<'_>) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut index = 4;
        while let Some(option) = call.args.get(index) {
            index += 1;
            if is(option, "replace") {
                options.replace = true;
            } else if is(option, "absttl") {
                options.absolute = true;
            } else if is(option, "idletime")
                && options.frequency.is_none()
                && let Some(text) = call.args.get(index)
            {
                let idle = u64::try_from(integer(text)?);
                options.idle_seconds = Some(idle.map_err(|_| "ERR Invalid IDLETIME value, must be >= 0")?);
                index += 1;
            } else if is(option, "freq")
                && options.idle_seconds.is_none()
                && let Some(text) = call.args.get(index)
            {
                let frequency = u8::try_from(integer(text)?);
                let frequency = frequency.map_err(|_| "ERR Invalid FREQ value, must be >= 0 and <= 255")?;
                options.frequency = Some(frequency);
                index += 1;
            } else {
                return Err(SYNTAX_ERROR.into());
            }
        }
        Ok(options)
    }
}

/// `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
///
/// The frequency is accepted and not kept, while no eviction policy counts accesses.
pub fn restore(call: &mut Call<'_>) {
    call.answer(|call| {
        let options = Options::parse(call)?;
        let place = call.place(1);
        if !options.replace && call.read(place).is_some() {
            return Err("BUSYKEY Target key name already exists.".into());
        }
        let ttl = u64::try_from(integer(call.arg(2))?).map_err(|_| "ERR Invalid TTL value, must be >= 0")?;
        let value = rdb::restore(call.arg(3)).map_err(|error| error.to_string())?;
        let deadline = match ttl {
            0 => None,
            ms if options.absolute => Some(ms),
            ms => Some(ms.saturating_add(call.now_ms).min(DEADLINE_MAX)),
        };
        if deadline.is_some_and(|deadline| deadline <= call.now_ms) {
            // It has ended already; what it was to replace is gone all the same.
            if options.replace {
                call.delete(place);
                call.notify(Classes::GENERIC, "del", place);
            }
        } else {
            call.fits(value.as_ref())?;
            call.put_value(place, value, deadline);
            call.notify(Classes::GENERIC, "restore", place);
            if let Some(idle) = options.idle_seconds {
                let idle = u32::try_from(idle).unwrap_or(u32::MAX);
                call.keyspace.set_access(place, seconds(call.now_ms).saturating_sub(idle));
            }
        }
        call.reply.ok();
        Ok(())
    });
}
