//! Sorting the items of a list, a set or a sorted set.
//!
//! For: `SORT` and `SORT_RO`.
//! Not here: collections. Keys that patterns form are in the slot of the key that is sorted, else they are refused.

use std::cmp::Ordering;

use korum_protocol::limits::BULK_BYTES_MAX;
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::Args;
use korum_protocol::resp::number::float;

use crate::command::args::{integer, is};
use crate::command::string::REPLY_TOO_LARGE;
use crate::command::{Call, SYNTAX_ERROR, Stop, WRONG_TYPE};
use crate::store::{Classes, List, ListChange, Value, ValueRef};

type Bytes = Box<[u8]>;

/// What is asked for.
#[derive(Default)]
struct Options<'a> {
    by: Option<&'a [u8]>,
    limit: Option<(i64, i64)>,
    get: Vec<&'a [u8]>,
    descending: bool,
    alpha: bool,
    target: Option<usize>,
}

impl<'a> Options<'a> {
    fn parse(args: &Args<'a>, may_store: bool) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut index = 2;
        while let Some(word) = args.get(index) {
            let next = args.get(index + 1);
            match (next, args.get(index + 2)) {
                _ if is(word, "asc") => options.descending = false,
                _ if is(word, "desc") => options.descending = true,
                _ if is(word, "alpha") => options.alpha = true,
                (Some(offset), Some(count)) if is(word, "limit") => {
                    options.limit = Some((integer(offset)?, integer(count)?));
                    index += 2;
                }
                (Some(_), _) if is(word, "store") && may_store => {
                    options.target = Some(index + 1);
                    index += 1;
                }
                (Some(pattern), _) if is(word, "by") => {
                    if pattern.contains(&b'*') {
                        check_slot(pattern, args, "BY")?;
                    }
                    options.by = Some(pattern);
                    index += 1;
                }
                (Some(pattern), _) if is(word, "get") => {
                    if pattern != b"#" {
                        check_slot(pattern, args, "GET")?;
                    }
                    options.get.push(pattern);
                    index += 1;
                }
                _ => return Err(SYNTAX_ERROR.into()),
            }
            index += 1;
        }
        Ok(options)
    }

    /// Items stay in their order: there is nothing to sort by.
    fn keeps_order(&self) -> bool {
        self.by.is_some_and(|pattern| !pattern.contains(&b'*'))
    }
}

/// Refuses a pattern that forms keys of other slots: its hash tag must stand before the star, and be that of the key.
fn check_slot(pattern: &[u8], args: &Args<'_>, option: &str) -> Result<(), Stop> {
    let before = pattern.split(|byte| *byte == b'*').next().unwrap_or_default();
    let open = before.iter().position(|byte| *byte == b'{');
    let has_tag = open.is_some_and(|open| before[open + 1..].iter().position(|byte| *byte == b'}') > Some(0));
    if has_tag && slot_of(pattern) == slot_of(&args[1]) {
        return Ok(());
    }
    Err(format!(
        "ERR {option} option of SORT denied in cluster mode when keys formed by the pattern may be in different slots."
    )
    .into())
}

/// The key and the field that a pattern means for an item.
fn formed<'p>(pattern: &'p [u8], item: &[u8]) -> Option<(Vec<u8>, Option<&'p [u8]>)> {
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let (before, behind) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = behind.windows(2).position(|pair| pair == b"->").filter(|arrow| arrow + 2 < behind.len());
    let (behind, field) = match arrow {
        Some(arrow) => (&behind[..arrow], Some(&behind[arrow + 2..])),
        None => (behind, None),
    };
    Some(([before, item, behind].concat(), field))
}

/// What a pattern gives for an item.
fn looked_up(call: &mut Call<'_>, pattern: &[u8], item: &[u8]) -> Option<Bytes> {
    if pattern == b"#" {
        return Some(item.into());
    }
    let (key, field) = formed(pattern, item)?;
    let key = call.stored(&key);
    let place = call.keyspace.place(&key);
    let entry = call.looks.read(call.keyspace, place, call.now_ms, call.effects)?;
    match (entry.value(), field) {
        (ValueRef::String(string), None) => Some(string.bytes().into()),
        (ValueRef::Hash(hash), Some(field)) => hash.get(field).map(Box::from),
        _ => None,
    }
}

/// The items of a collection that can be sorted, and whether it keeps them in no order that is told.
fn items(value: ValueRef<'_>) -> Result<(Vec<Bytes>, bool), Stop> {
    Ok(match value {
        ValueRef::List(list) => (list.iter().map(Box::from).collect(), false),
        ValueRef::Set(set) => (set.iter().map(|member| member.bytes().into()).collect(), true),
        ValueRef::SortedSet(set) => (set.iter().map(|(member, _)| Box::from(member)).collect(), false),
        _ => return Err(WRONG_TYPE.into()),
    })
}

/// What an item is sorted by.
#[derive(Clone, PartialEq, Debug)]
enum Weight {
    Number(f64),
    Text(Option<Bytes>),
}

fn weight(call: &mut Call<'_>, options: &Options<'_>, item: &[u8]) -> Result<Weight, Stop> {
    let text = match options.by {
        Some(pattern) => looked_up(call, pattern, item),
        None => Some(item.into()),
    };
    if options.alpha {
        return Ok(Weight::Text(text));
    }
    // As `strtod` reads it: nothing is zero, and blanks may stand before it.
    let number =
        text.filter(|text| !text.is_empty()).map_or(Some(0.0), |text| float(text.trim_ascii_start()));
    Ok(Weight::Number(number.ok_or("ERR One or more scores can't be converted into double")?))
}

fn order((one, first): &(Bytes, Weight), (other, second): &(Bytes, Weight)) -> Ordering {
    match (first, second) {
        (Weight::Number(first), Weight::Number(second)) => {
            first.partial_cmp(second).unwrap_or(Ordering::Equal).then_with(|| one.cmp(other))
        }
        (Weight::Text(first), Weight::Text(second)) => first.cmp(second),
        _ => Ordering::Equal,
    }
}

/// The part of `len` items that a limit leaves.
fn limited(limit: Option<(i64, i64)>, len: usize) -> std::ops::Range<usize> {
    let Some((offset, count)) = limit else { return 0..len };
    let start = usize::try_from(offset.max(0)).unwrap_or(usize::MAX).min(len);
    let end = usize::try_from(count).map_or(len, |count| start.saturating_add(count).min(len));
    start..end
}

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC|DESC] [ALPHA] [STORE destination]`
pub fn sort(call: &mut Call<'_>) {
    call.answer(|call| run(call, true));
}

/// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC|DESC] [ALPHA]`
pub fn sort_ro(call: &mut Call<'_>) {
    call.answer(|call| run(call, false));
}

fn run(call: &mut Call<'_>, may_store: bool) -> Result<(), Stop> {
    let mut options = Options::parse(&call.args, may_store)?;
    let place = call.place(1);
    let (mut items, has_no_order) = match call.read(place) {
        Some(entry) => items(entry.value())?,
        None => (Vec::new(), false),
    };
    if options.keeps_order() && has_no_order && options.target.is_some() {
        // What is stored must not depend on how a set is kept.
        (options.by, options.alpha) = (None, true);
    }
    if options.keeps_order() {
        if options.descending && !has_no_order {
            items.reverse();
        }
    } else {
        let mut weighed = Vec::with_capacity(items.len());
        for item in items {
            let weight = weight(call, &options, &item)?;
            weighed.push((item, weight));
        }
        weighed.sort_by(|one, other| if options.descending { order(other, one) } else { order(one, other) });
        items = weighed.into_iter().map(|(item, _)| item).collect();
    }
    let range = limited(options.limit, items.len());
    let found = &items[range];
    match options.target {
        Some(target) => store(call, target, &options, found),
        None => reply(call, &options, found),
    }
}

fn reply(call: &mut Call<'_>, options: &Options<'_>, found: &[Bytes]) -> Result<(), Stop> {
    let start = call.reply.mark();
    call.reply.array(found.len() * options.get.len().max(1));
    for item in found {
        if call.reply.written_since(start) > BULK_BYTES_MAX {
            call.reply.take_back(start);
            return Err(REPLY_TOO_LARGE.into());
        }
        if options.get.is_empty() {
            call.reply.bulk(item);
        }
        for pattern in &options.get {
            match looked_up(call, pattern, item) {
                Some(value) => call.reply.bulk(&value),
                None => call.reply.null(),
            }
        }
    }
    Ok(())
}

fn store(call: &mut Call<'_>, target: usize, options: &Options<'_>, found: &[Bytes]) -> Result<(), Stop> {
    let mut list = List::default();
    for item in found {
        if options.get.is_empty() {
            list.apply(&ListChange::PushBack { item });
        }
        for pattern in &options.get {
            let value = looked_up(call, pattern, item).unwrap_or_default();
            list.apply(&ListChange::PushBack { item: &value });
        }
    }
    let (place, len) = (call.place(target), list.len());
    if len == 0 {
        if call.delete(place) {
            call.notify(Classes::GENERIC, "del", place);
        }
    } else {
        call.fits(ValueRef::List(&list))?;
        call.put_value(place, Value::List(Box::new(list)), None);
        call.notify(Classes::LIST, "sortstore", place);
    }
    call.reply.integer(len as i64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::command::testing::Bench;

    const DENIED: &str =
        "option of SORT denied in cluster mode when keys formed by the pattern may be in different slots.|";

    #[test]
    fn collections_are_sorted_by_themselves_and_by_what_is_elsewhere() {
        Bench::new().expect(&[
            ("RPUSH {k}l 3 1 10 2", ":4|"),
            ("SORT {k}l", "*4|$1|1|$1|2|$1|3|$2|10|"),
            ("SORT {k}l DESC LIMIT 1 2", "*2|$1|3|$1|2|"),
            ("SORT {k}l ALPHA", "*4|$1|1|$2|10|$1|2|$1|3|"),
            ("SORT {k}l BY nosort DESC LIMIT 0 2", "*2|$1|2|$2|10|"),
            ("MSET {k}w1 9 {k}w2 8 {k}w3 7 {k}w10 6", "+OK|"),
            ("SORT {k}l BY {k}w*", "*4|$2|10|$1|3|$1|2|$1|1|"),
            ("HSET {k}h1 f one", ":1|"),
            ("SORT {k}l LIMIT 0 1 GET # GET {k}h*->f GET {k}none*", "*3|$1|1|$3|one|$-1|"),
            ("SORT {k}l STORE {k}t", ":4|"),
            ("LRANGE {k}t 0 -1", "*4|$1|1|$1|2|$1|3|$2|10|"),
            ("SORT {k}none STORE {k}t", ":0|"),
            ("EXISTS {k}t", ":0|"),
            ("SORT_RO {k}l STORE {k}t", "-ERR syntax error|"),
            ("SADD {k}s b a", ":2|"),
            ("SORT {k}s", "-ERR One or more scores can't be converted into double|"),
            ("SORT {k}s ALPHA", "*2|$1|a|$1|b|"),
            ("SORT {k}w1", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
        ]);
    }

    #[test]
    fn patterns_stay_in_the_slot_of_the_key() {
        let mut bench = Bench::new();
        for pattern in ["w*", "{other}w*", "w*{k}", "{}*", "{*}"] {
            for option in ["BY", "GET"] {
                assert_eq!(
                    bench.words(&format!("SORT {{k}}l {option} {pattern}")),
                    format!("-ERR {option} {DENIED}")
                );
            }
        }
    }
}
