//! A part of a large collection, as bytes.
//!
//! For: the next items of a collection, as the state of a collection of only these.
//! Not here: how far it was read, and what happens to it meanwhile (`store::parts`).

use bytes::{BufMut, BytesMut};

use super::COLLECTION;
use super::codec::{put_bytes, put_key, put_varint};
use super::state::put_deadlines;
use crate::store::Kind;
use crate::store::ValueRef;
use crate::store::parts::Prefix;

/// Items, and their number.
#[derive(Default)]
struct Items {
    bytes: BytesMut,
    count: usize,
}

impl Items {
    fn put(&mut self, item: &[u8]) {
        put_bytes(&mut self.bytes, item);
        self.count += 1;
    }
}

/// Appends an effect that holds the items behind `sent`, until they take `budget_bytes` and at least one; nothing if
/// there is none. Returns what was sent then, and whether that is all.
pub fn put_part(
    out: &mut BytesMut,
    key: &[u8],
    value: ValueRef<'_>,
    sent: Prefix,
    budget_bytes: usize,
) -> (Prefix, bool) {
    let mut items = Items::default();
    let start = if let Prefix::Items(start) = sent { start } else { 0 };
    let mut next = start;
    let (kind, len) = match value {
        ValueRef::String(_) => return (sent, true),
        ValueRef::Hash(hash) => {
            let mut deadlines = Vec::new();
            while let Some((field, value, deadline_ms)) = hash.whole(next) {
                items.put(field);
                items.put(value);
                deadlines.push(deadline_ms);
                next += 1;
                if items.bytes.len() >= budget_bytes {
                    break;
                }
            }
            if deadlines.iter().any(Option::is_some) {
                items.put(&put_deadlines(deadlines.into_iter()));
            }
            (Kind::Hash, hash.total())
        }
        ValueRef::List(list) => {
            for item in list.iter_from(start) {
                items.put(item);
                next += 1;
                if items.bytes.len() >= budget_bytes {
                    break;
                }
            }
            (Kind::List, list.len())
        }
        ValueRef::Set(set) => {
            while let Some(member) = set.nth(next) {
                items.put(&member.bytes());
                next += 1;
                if items.bytes.len() >= budget_bytes {
                    break;
                }
            }
            (Kind::Set, set.len())
        }
        ValueRef::SortedSet(set) => {
            while let Some((member, score)) = set.nth(next) {
                items.put(member);
                items.put(&score.to_bytes());
                next += 1;
                if items.bytes.len() >= budget_bytes {
                    break;
                }
            }
            (Kind::SortedSet, set.len())
        }
        ValueRef::Stream(stream) => {
            let after = if let Prefix::Blocks(after) = sent { after } else { None };
            let (last, is_last) = stream.parts_behind(after, budget_bytes, |part| items.put(part));
            put(out, key, Kind::Stream, &items);
            return (Prefix::Blocks(last), is_last);
        }
    };
    if items.count > 0 {
        put(out, key, kind, &items);
    }
    (Prefix::Items(next), next >= len)
}

fn put(out: &mut BytesMut, key: &[u8], kind: Kind, items: &Items) {
    put_key(out, COLLECTION, key);
    out.put_u8(kind as u8);
    put_varint(out, items.count as u64);
    out.put_slice(&items.bytes);
}
