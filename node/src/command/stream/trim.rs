//! Trimming.
//!
//! For: the options that `XADD` and `XTRIM` share, and `XTRIM`.
//! Not here: which entries go (`store::xstream::trim`).

use korum_protocol::resp::Args;

use super::change;
use super::ids::{self, NewId};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::xstream::{StreamChange, Trim, Until};
use crate::store::{Classes, Stream};

/// Most entries that go with `~` and without `LIMIT`: a hundred blocks, as in Redis.
const ROUGH_LIMIT: u64 = 10_000;

/// What stands before the fields of `XADD`, or behind the key of `XTRIM`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The id of the new entry.
    pub id: NewId,
    /// `NOMKSTREAM`
    pub no_stream: bool,
    /// What to trim.
    pub trim: Option<Trim>,
}

impl Options {
    /// Reads them from argument 2 on, the id too if `is_add`; gives the index behind them.
    ///
    /// # Errors
    /// With Redis' texts, in Redis' order.
    pub fn parse(args: &Args<'_>, is_add: bool) -> Result<(Self, usize), Stop> {
        let mut options = Self { id: NewId::Any, no_stream: false, trim: None };
        let (mut limit, mut index) = (None, 2);
        // Without an id nothing is left for fields.
        let mut end = args.len() + usize::from(is_add);
        while let Some(option) = args.get(index) {
            let next = args.get(index + 1);
            if is_add && option == b"*" {
                end = index + 1;
                break;
            }
            match next {
                Some(next) if is(option, "maxlen") || is(option, "minid") => {
                    if options.trim.is_some() {
                        return Err("ERR syntax error, MAXLEN and MINID options at the same time are not \
                                    compatible"
                            .into());
                    }
                    let has_sign = index + 2 < args.len() && matches!(next, b"~" | b"=");
                    let threshold = args.get(index + 1 + usize::from(has_sign)).unwrap_or_default();
                    let until = if is(option, "maxlen") {
                        let length = u64::try_from(integer(threshold)?);
                        Until::Length(length.map_err(|_| "ERR The MAXLEN argument must be >= 0.")?)
                    } else {
                        Until::Id(ids::strict(threshold, 0)?)
                    };
                    options.trim = Some(Trim { until, is_rough: has_sign && next == b"~", limit: 0 });
                    index += 2 + usize::from(has_sign);
                }
                Some(next) if is(option, "limit") => {
                    let most = u64::try_from(integer(next)?);
                    limit = Some(most.map_err(|_| "ERR The LIMIT argument must be >= 0.")?);
                    index += 2;
                }
                _ if is_add && is(option, "nomkstream") => {
                    options.no_stream = true;
                    index += 1;
                }
                _ if is_add => {
                    options.id = ids::new(option)?;
                    end = index + 1;
                    break;
                }
                _ => return Err(SYNTAX_ERROR.into()),
            }
        }
        options.set_limit(limit, is_add)?;
        Ok((options, end))
    }

    fn set_limit(&mut self, limit: Option<u64>, is_add: bool) -> Result<(), Stop> {
        match (&mut self.trim, limit) {
            (None, Some(1..)) => {
                Err("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy".into())
            }
            (None, _) if !is_add => {
                Err("ERR syntax error, XTRIM must be called with a trimming strategy".into())
            }
            (None | Some(Trim { is_rough: false, .. }), Some(_)) => {
                Err("ERR syntax error, LIMIT cannot be used without the special ~ option".into())
            }
            (Some(trim), limit) if trim.is_rough => {
                trim.limit = limit.unwrap_or(ROUGH_LIMIT);
                Ok(())
            }
            (_, None) | (Some(_), Some(_)) => Ok(()),
        }
    }
}

/// `XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count]`
pub fn xtrim(call: &mut Call<'_>) {
    call.answer(|call| {
        let (options, _) = Options::parse(&call.args, false)?;
        let place = call.place(1);
        let stream = call.read_collection::<Stream>(place)?;
        let trimmed = stream.zip(options.trim).and_then(|(stream, trim)| stream.trimmed(&trim));
        let mut gone = 0;
        if let Some((trimmed, count)) = trimmed {
            change(call, place, StreamChange::Trim(trimmed));
            call.notify(Classes::STREAM, "xtrim", place);
            gone = count;
        }
        call.reply.integer(gone as i64);
        Ok(())
    });
}
