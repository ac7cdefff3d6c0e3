//! Raw arguments become a request: encoded once, its slot known, its safety known.
//!
//! For: all that routing and retrying need to know of a command, from the command table.
//! Not here: sockets, typed methods (`command`).

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use korum_protocol::command::{CommandSpec, Flags, key_positions, resolve};
use korum_protocol::placement::slot::slot_of;
use korum_protocol::resp::Args;
use korum_protocol::resp::decode::encode_request;

use crate::error::Error;
use crate::target::Route;

/// A command that is ready to be sent, as often as needed.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The bytes on the wire.
    pub(crate) bytes: Bytes,
    /// Where it may run.
    pub(crate) route: Route,
    /// Executing it twice changes nothing: it only reads.
    pub(crate) repeatable: bool,
    /// The command's name, for messages.
    pub(crate) name: Name,
}

/// A command's name, for messages; without an allocation for the common ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Known(&'static str),
    Other(Arc<str>),
}

impl Name {
    fn as_str(&self) -> &str {
        match self {
            Self::Known(name) => name,
            Self::Other(name) => name,
        }
    }

    pub(crate) fn to_arc(&self) -> Arc<str> {
        match self {
            Self::Known(name) => (*name).into(),
            Self::Other(name) => name.clone(),
        }
    }
}

/// Commands that change what a connection is, or ask about it (`WAIT`). Many callers share each connection, so they
/// cannot go there.
const CONNECTION_COMMANDS: [&str; 23] = [
    "asking",
    "auth",
    "client|caching",
    "client|reply",
    "client|tracking",
    "discard",
    "exec",
    "hello",
    "monitor",
    "multi",
    "psubscribe",
    "punsubscribe",
    "quit",
    "readonly",
    "readwrite",
    "reset",
    "select",
    "ssubscribe",
    "subscribe",
    "sunsubscribe",
    "unsubscribe",
    "wait",
    "watch",
];

impl Request {
    /// Reads the command table for `args`; the first is the command's name.
    ///
    /// # Errors
    /// [`Error::Request`] when nothing sensible can be sent: no argument at all, keys of several slots,
    /// or a command that needs a connection of its own. Unknown commands and wrong arities are left to the node.
    pub(crate) fn new<A: AsRef<[u8]>>(args: &[A]) -> Result<Self, Error> {
        let Some(first) = args.first() else {
            return Err(Error::Request("a command needs at least its name".into()));
        };
        let bytes = encode(args);
        let ranges = ranges(args, bytes.len());
        let parsed = Args::new(&bytes, &ranges);
        let spec = resolve(&parsed).ok();
        let name = match spec {
            Some(spec) => Name::Known(spec.full_name),
            None => Name::Other(lower(first.as_ref()).into()),
        };
        if spec.is_some_and(|spec| spec.flags.contains(Flags::BLOCKING)) || is_private(name.as_str(), args) {
            return Err(Error::Request(format!(
                "{} needs a connection of its own, and this client shares its connections between callers; \
                 use a plain Redis client at a node's client port for it",
                name.as_str()
            )));
        }
        let route = match spec {
            Some(spec) => route(spec, &parsed)?,
            // The node knows better, or says what is wrong; its client port finds the key's place.
            None => Route::AnyNode,
        };
        let repeatable = spec.is_some_and(|spec| spec.flags.contains(Flags::READONLY));
        Ok(Self { bytes: bytes.clone(), route, repeatable, name })
    }

    /// A command whose slot and nature the typed methods know already.
    pub(crate) fn known<A: AsRef<[u8]>>(name: &'static str, slot: u16, repeatable: bool, args: &[A]) -> Self {
        Self { bytes: encode(args), route: Route::Slot(slot), repeatable, name: Name::Known(name) }
    }
}

/// Where the keys of a command lie.
fn route(spec: &CommandSpec, args: &Args<'_>) -> Result<Route, Error> {
    // Keys that cannot be found are an error that the node words.
    let Ok(positions) = key_positions(spec, args) else { return Ok(Route::AnyNode) };
    let mut slots = positions.filter_map(|position| args.get(position)).map(slot_of);
    let Some(slot) = slots.next() else { return Ok(Route::AnyNode) };
    if slots.all(|other| other == slot) {
        return Ok(Route::Slot(slot));
    }
    Err(Error::Request(format!(
        "CROSSSLOT the keys of {} lie in different slots; give them a common {{hash tag}}, \
         or use the client's mget, mset, del and exists, which split their keys",
        spec.full_name
    )))
}

fn is_private<A: AsRef<[u8]>>(name: &str, args: &[A]) -> bool {
    // The table may not know a subcommand that the node knows.
    let with_subcommand = || args.get(1).map(|sub| format!("{name}|{}", lower(sub.as_ref())));
    CONNECTION_COMMANDS.contains(&name)
        || (name == "client" && with_subcommand().is_some_and(|name| CONNECTION_COMMANDS.contains(&&*name)))
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

/// Where each argument stands in its encoding, `encoded` bytes long: found from the end, where the lengths add up.
fn ranges<A: AsRef<[u8]>>(args: &[A], encoded: usize) -> Vec<Range<usize>> {
    let mut end = encoded;
    let mut ranges = vec![0..0; args.len()];
    for (range, arg) in ranges.iter_mut().zip(args).rev() {
        let length = arg.as_ref().len();
        // `$length\r\n` before, `\r\n` after.
        *range = end - 2 - length..end - 2;
        end = range.start - 3 - length.checked_ilog10().map_or(1, |digits| digits as usize + 1);
    }
    ranges
}

fn encode<A: AsRef<[u8]>>(args: &[A]) -> Bytes {
    let size = args.iter().map(|arg| arg.as_ref().len() + 16).sum::<usize>() + 16;
    let mut out = BytesMut::with_capacity(size);
    encode_request(args, &mut out);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_command_with_a_key_goes_to_its_slot() {
        let request = Request::new(&["get", "foo"]).unwrap();
        assert_eq!(request.route, Route::Slot(slot_of(b"foo")));
        assert!(request.repeatable);
        assert_eq!(&request.bytes[..], b"*2\r\n$3\r\nget\r\n$3\r\nfoo\r\n");
        assert!(!Request::new(&["SET", "foo", "1"]).unwrap().repeatable);
    }

    #[test]
    fn a_command_without_a_key_goes_anywhere() {
        assert_eq!(Request::new(&["PING"]).unwrap().route, Route::AnyNode);
        assert!(!Request::new(&["NOSUCHCOMMAND", "x"]).unwrap().repeatable);
    }

    #[test]
    fn what_a_shared_connection_cannot_carry_is_refused() {
        for args in [
            &["SUBSCRIBE", "c"][..],
            &["multi"],
            &["SELECT", "1"],
            &["client", "reply", "off"],
            &["AUTH", "x"],
        ] {
            assert!(matches!(Request::new(args), Err(Error::Request(_))), "{args:?}");
        }
        assert!(matches!(Request::new::<&str>(&[]), Err(Error::Request(_))));
        assert!(Request::new(&["CLIENT", "ID"]).is_ok());
        assert!(matches!(Request::new(&["WAIT", "1", "0"]), Err(Error::Request(_))));
    }

    #[test]
    fn a_new_command_is_left_to_the_node() {
        let request = Request::new(&["NOSUCH", "x"]).unwrap();
        assert_eq!((request.route, request.repeatable), (Route::AnyNode, false));
        assert_eq!(request.name.as_str(), "nosuch");
        assert_eq!(Request::new(&["GET"]).unwrap().route, Route::AnyNode, "the node words the wrong arity");
    }

    proptest! {
        #[test]
        fn arguments_are_found_in_their_encoding(args in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..8)) {
            let bytes = encode(&args);
            let found: Vec<&[u8]> = ranges(&args, bytes.len()).into_iter().map(|range| &bytes[range]).collect();
            prop_assert_eq!(found, args);
        }

        #[test]
        fn no_arguments_can_break_it(args in prop::collection::vec("[A-Za-z0-9 *$|]{0,9}", 0..6)) {
            let _ = Request::new(&args);
        }
    }

    #[test]
    fn keys_of_several_slots_are_refused_with_a_way_out() {
        let Err(Error::Request(text)) = Request::new(&["MGET", "a", "b"]) else { panic!("accepted") };
        assert!(text.starts_with("CROSSSLOT") && text.contains("hash tag"));
        assert!(Request::new(&["MGET", "{t}a", "{t}b"]).is_ok());
    }
}
