//! A request that means the same later.
//!
//! For: commands that wait: `$` is the last id of the moment in which the command came, not of that in which it is
//! run again.

use bytes::{BufMut, Bytes, BytesMut};
use korum_protocol::resp::Args;

use super::read::Request;
use crate::command::Names;
use crate::command::args::is;
use crate::store::xstream::StreamId;
use crate::store::{Collection, Keyspace, Stream};

/// The request with the last ids of its streams in the place of `$`, as bytes; `None` if it can stay as it is.
#[must_use]
pub fn fixed_request(args: &Args<'_>, names: &Names, keyspace: &Keyspace, now_ms: u64) -> Option<Bytes> {
    let request =
        Request::parse(args, false).ok().filter(|_| args.get(0).is_some_and(|name| is(name, "xread")))?;
    let ids = request.first + request.streams..args.len();
    if !ids.clone().any(|index| args.get(index) == Some(b"$")) {
        return None;
    }
    let mut out = BytesMut::new();
    out.put_slice(format!("*{}\r\n", args.len()).as_bytes());
    for (index, argument) in args.iter().enumerate() {
        let key = ids.contains(&index).then(|| names.at(args, index - request.streams));
        let last = key.filter(|_| argument == b"$").map(|key| {
            let entry = keyspace.peek(key, now_ms);
            let stream = entry.and_then(|entry| Stream::of(entry.value()));
            stream.map_or(StreamId::MIN, Stream::last_id).to_string()
        });
        let argument = last.as_ref().map_or(argument, |last| last.as_bytes());
        out.put_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.put_slice(argument);
        out.put_slice(b"\r\n");
    }
    Some(out.freeze())
}
