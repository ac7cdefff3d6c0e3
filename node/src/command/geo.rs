//! Places on earth.
//!
//! For: the commands on single places of a sorted set.
//! Not here: how a sorted set is kept (`store::sorted_set`), what a cell is (`cell`).
//! Next: `search` finds places in an area, which `area` covers with cells.

use super::args::is;
use super::sorted_set::number;
use super::{Call, SYNTAX_ERROR, Stop};
use crate::store::{Change, Classes, Score, SortedSet, SortedSetChange};
use cell::Position;

mod area;
mod cell;
mod search;
#[cfg(test)]
mod tests;

pub use search::{
    georadius, georadius_ro, georadiusbymember, georadiusbymember_ro, geosearch, geosearchstore,
};

/// `GEOADD key [NX|XX] [CH] longitude latitude member …`
pub fn geoadd(call: &mut Call<'_>) {
    call.answer(|call| {
        let (mut if_missing, mut if_present, mut count_changed) = (false, false, false);
        let mut first = 2;
        while let Some(option) = call.args.get(first) {
            if is(option, "nx") {
                if_missing = true;
            } else if is(option, "xx") {
                if_present = true;
            } else if is(option, "ch") {
                count_changed = true;
            } else {
                break;
            }
            first += 1;
        }
        let left = call.args.len() - first;
        if left == 0 || !left.is_multiple_of(3) || if_missing && if_present {
            return Err(SYNTAX_ERROR.into());
        }
        let place = call.place(1);
        // All positions are read before anything changes.
        for index in (first..call.args.len()).step_by(3) {
            position(call, index)?;
        }
        call.read_collection::<SortedSet>(place)?;
        let (mut added, mut changed) = (0, 0);
        for index in (first..call.args.len()).step_by(3) {
            let (score, member) = (position(call, index)?.to_score(), call.arg(index + 2));
            let old = call.read_collection::<SortedSet>(place)?.and_then(|set| set.score(member));
            if old == Some(score) || if old.is_some() { if_missing } else { if_present } {
                continue;
            }
            call.change(place, Change::SortedSet(SortedSetChange::Put { member, score }));
            added += i64::from(old.is_none());
            changed += 1;
        }
        if changed > 0 {
            call.notify(Classes::SORTED_SET, "zadd", place);
        }
        call.reply.integer(if count_changed { changed } else { added });
        Ok(())
    });
}

/// Reads longitude and latitude from argument `index` on.
fn position(call: &Call<'_>, index: usize) -> Result<Position, Stop> {
    let longitude = number::parse(call.arg(index))?;
    let latitude = number::parse(call.arg(index + 1))?;
    Position::new(longitude, latitude)
        .ok_or_else(|| format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}").into())
}

/// Reads a unit; how many meters it is.
fn unit(text: &[u8]) -> Result<f64, Stop> {
    let known = [("m", 1.0), ("km", 1000.0), ("ft", 0.3048), ("mi", 1609.34)];
    let found = known.into_iter().find(|(name, _)| is(text, name));
    Ok(found.ok_or("ERR unsupported unit provided. please use M, KM, FT, MI")?.1)
}

/// `GEODIST key member member [M|KM|FT|MI]`
pub fn geodist(call: &mut Call<'_>) {
    call.answer(|call| {
        let meters = match call.args.get(4) {
            None => 1.0,
            Some(text) if call.args.len() == 5 => unit(text)?,
            Some(_) => return Err(SYNTAX_ERROR.into()),
        };
        let (place, one, other) = (call.place(1), call.arg(2), call.arg(3));
        let (set, reply) = call.read_beside::<SortedSet>(place)?;
        let scores = set.and_then(|set| set.score(one).zip(set.score(other)));
        match scores.map(|(one, other)| (Position::of(one), Position::of(other))) {
            Some((one, other)) => reply.bulk(distance_text(one.distance(other) / meters).as_bytes()),
            None => reply.null(),
        }
        Ok(())
    });
}

/// A distance, with four decimals.
fn distance_text(distance: f64) -> String {
    format!("{distance:.4}")
}

/// A coordinate: 17 decimals, less the zeros at the end.
fn coordinate_text(coordinate: f64) -> String {
    let text = format!("{coordinate:.17}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0" } else { short }.to_owned()
}

/// `GEOPOS key member …`
pub fn geopos(call: &mut Call<'_>) {
    each_member(call, |score, reply| match score {
        Some(score) => reply_position(reply, Position::of(score)),
        None => reply.null_array(),
    });
}

/// `GEOHASH key member …`
pub fn geohash(call: &mut Call<'_>) {
    each_member(call, |score, reply| match score {
        Some(score) => reply.bulk(&Position::of(score).to_geohash()),
        None => reply.null(),
    });
}

type Reply<'a> = korum_protocol::resp::ReplyWriter<'a>;

fn reply_position(reply: &mut Reply<'_>, position: Position) {
    reply.array(2);
    reply.double(&coordinate_text(position.longitude));
    reply.double(&coordinate_text(position.latitude));
}

/// Answers something about the score of each member from argument 2 on.
fn each_member(call: &mut Call<'_>, answer: fn(Option<Score>, &mut Reply<'_>)) {
    call.answer(|call| {
        let (place, args) = (call.place(1), call.args);
        let (set, reply) = call.read_beside::<SortedSet>(place)?;
        reply.array(args.len() - 2);
        for index in 2..args.len() {
            answer(set.and_then(|set| set.score(&args[index])), reply);
        }
        Ok(())
    });
}
