//! Sorted sets.
//!
//! For: the commands on single members of one sorted set, and walks over it.
//! Not here: how a sorted set is kept (`store::sorted_set`).
//! Next: `add` gives scores, `range` reads and removes ranges, whose ends `bounds` reads; `pop` takes from the ends,
//! `random` picks by chance, `algebra` puts several together; `number` is how scores are read and printed.

use korum_protocol::resp::{ProtocolVersion, ReplyWriter};

use super::args::{is, wrong_number};
use super::scan::{ScanOptions, cursor, reply_head};
use super::{Call, SYNTAX_ERROR};
use crate::store::{Change, Classes, Score, SortedSet, SortedSetChange};

mod add;
mod algebra;
mod bounds;
pub mod number;
pub mod pop;
mod random;
pub(super) mod range;
#[cfg(test)]
mod tests;

pub use add::{zadd, zincrby};
pub use algebra::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
pub use pop::{bzmpop, bzpopmax, bzpopmin, zmpop, zpopmax, zpopmin};
pub use random::zrandmember;
pub use range::{
    zcount, zlexcount, zrange, zrangebylex, zrangebyscore, zrangestore, zremrangebylex, zremrangebyrank,
    zremrangebyscore, zrevrange, zrevrangebylex, zrevrangebyscore,
};

/// `ZREM key member …`
pub fn zrem(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let mut removed = 0;
        for index in 2..call.args.len() {
            let member = call.arg(index);
            if call.read_collection::<SortedSet>(place)?.is_some_and(|set| set.score(member).is_some()) {
                call.change(place, Change::SortedSet(SortedSetChange::Remove { member }));
                removed += 1;
            }
        }
        if removed > 0 {
            call.notify_removal(Classes::SORTED_SET, "zrem", place);
        }
        call.reply.integer(removed);
        Ok(())
    });
}

/// `ZCARD key`
pub fn zcard(call: &mut Call<'_>) {
    call.answer(|call| {
        let place = call.place(1);
        let count = call.read_collection::<SortedSet>(place)?.map_or(0, SortedSet::len);
        call.reply.integer(count as i64);
        Ok(())
    });
}

/// `ZSCORE key member`
pub fn zscore(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, member) = (call.place(1), call.arg(2));
        let score = call.read_collection::<SortedSet>(place)?.and_then(|set| set.score(member));
        reply_score_or_null(&mut call.reply, score);
        Ok(())
    });
}

/// `ZMSCORE key member …`
pub fn zmscore(call: &mut Call<'_>) {
    call.answer(|call| {
        let (place, args) = (call.place(1), call.args);
        let (set, reply) = call.read_beside::<SortedSet>(place)?;
        reply.array(args.len() - 2);
        for index in 2..args.len() {
            reply_score_or_null(reply, set.and_then(|set| set.score(&args[index])));
        }
        Ok(())
    });
}

/// `ZRANK key member [WITHSCORE]`
pub fn zrank(call: &mut Call<'_>) {
    rank(call, "zrank", |rank, _| rank);
}

/// `ZREVRANK key member [WITHSCORE]`
pub fn zrevrank(call: &mut Call<'_>) {
    rank(call, "zrevrank", |rank, len| len - 1 - rank);
}

fn rank(call: &mut Call<'_>, command: &str, count: fn(usize, usize) -> usize) {
    call.answer(|call| {
        if call.args.len() > 4 {
            return Err(wrong_number(command));
        }
        let with_score = match call.args.get(3) {
            None => false,
            Some(option) if is(option, "withscore") => true,
            Some(_) => return Err(SYNTAX_ERROR.into()),
        };
        let (place, member) = (call.place(1), call.arg(2));
        let (set, reply) = call.read_beside::<SortedSet>(place)?;
        let found = set.and_then(|set| Some((count(set.rank(member)?, set.len()), set.score(member)?)));
        match found {
            Some((rank, score)) => {
                if with_score {
                    reply.array(2);
                }
                reply.integer(rank as i64);
                if with_score {
                    reply_score(reply, score);
                }
            }
            None if with_score => reply.null_array(),
            None => reply.null(),
        }
        Ok(())
    });
}

/// `ZSCAN key cursor [MATCH pattern] [COUNT count]`
pub fn zscan(call: &mut Call<'_>) {
    call.answer(|call| {
        cursor(&call.args)?;
        let (place, args) = (call.place(1), call.args);
        let (set, reply) = call.read_beside::<SortedSet>(place)?;
        let Some(set) = set else {
            reply_head(reply, 0, 0);
            return Ok(());
        };
        let options = ScanOptions::parse(&args)?;
        let scan = set.scan(options.cursor, options.count);
        let pairs = scan.indexes.filter_map(|index| set.nth(index));
        let found: Vec<_> = pairs.filter(|(member, _)| options.wants(member)).collect();
        reply_head(reply, scan.next, 2 * found.len());
        for (member, score) in found {
            reply.bulk(member);
            // Text in both versions.
            reply.bulk(number::text(score.get()).as_bytes());
        }
        Ok(())
    });
}

fn reply_score(reply: &mut ReplyWriter<'_>, score: Score) {
    reply.double(&number::text(score.get()));
}

fn reply_score_or_null(reply: &mut ReplyWriter<'_>, score: Option<Score>) {
    match score {
        Some(score) => reply_score(reply, score),
        None => reply.null(),
    }
}

/// How members are answered: alone, or with their scores behind them, in RESP3 as pairs.
#[derive(Clone, Copy)]
struct Layout {
    with_scores: bool,
    in_pairs: bool,
}

impl Layout {
    fn of(reply: &ReplyWriter<'_>, with_scores: bool) -> Self {
        Self { with_scores, in_pairs: with_scores && reply.version() == ProtocolVersion::Resp3 }
    }

    /// Opens the answer of `count` members.
    fn open(self, reply: &mut ReplyWriter<'_>, count: usize) {
        // The number comes from a client: twice the largest one is still a number of 64 bits.
        let items = if self.with_scores && !self.in_pairs { count.saturating_mul(2) } else { count };
        reply.array(items);
    }

    fn member(self, reply: &mut ReplyWriter<'_>, member: &[u8], score: Score) {
        if self.in_pairs {
            reply.array(2);
        }
        reply.bulk(member);
        if self.with_scores {
            reply_score(reply, score);
        }
    }
}
