//! `CLIENT`: a connection looks at itself and at the others.
//!
//! For: parsing and answering; the state is in `net::session` and `net::clients`.
//! Not here: `HELLO`, `AUTH` and kin (`connection`), `CLIENT TRACKING` and kin (`tracking`).

use std::time::Duration;

use korum_protocol::resp::{Args, ReplyWriter};

use super::subcommand::{self, NOT_AN_INTEGER, SYNTAX, integer, lower, wrong_arity};
use crate::env::Tick;
use crate::net::clients::{Client, ClientType, Filter, Flag, PauseMode, Registry, Unblock, is_valid_name};
use crate::net::session::{ReplyMode, Session};

/// Redis' text for a name that cannot be shown in a list.
pub const INVALID_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

/// Runs `CLIENT …` for the connection `me`.
pub fn client(
    args: Args<'_>,
    session: &mut Session,
    me: &Client,
    registry: &Registry,
    now: Tick,
    reply: &mut ReplyWriter<'_>,
) {
    let name = subcommand::name(args);
    let count = args.len();
    let arity = match name.as_str() {
        "" => return wrong_arity("client", reply),
        "id" | "info" | "getname" | "unpause" | "help" => count == 2,
        "setname" | "reply" | "no-evict" | "no-touch" => count == 3,
        "setinfo" => count == 4,
        "kill" | "pause" | "unblock" => count >= 3,
        _ => true,
    };
    if !arity {
        return wrong_arity(&format!("client|{name}"), reply);
    }
    match name.as_str() {
        "id" => reply.integer(me.id.cast_signed()),
        "info" => reply.verbatim("txt", format!("{}\n", me.line(now)).as_bytes()),
        "list" => list(args, registry, now, reply),
        "getname" => match me.name() {
            name if name.is_empty() => reply.null(),
            name => reply.bulk(name.as_bytes()),
        },
        "setname" => match set_name(me, &args[2]) {
            Ok(()) => reply.ok(),
            Err(text) => reply.error(text),
        },
        "setinfo" => set_info(args, me, reply),
        "kill" => kill(args, session, me, registry, reply),
        "pause" => pause(args, registry, now, reply),
        "unpause" => {
            registry.unpause();
            reply.ok();
        }
        "unblock" => unblock(args, registry, reply),
        "reply" => reply_mode(args, session, reply),
        "no-evict" => switch(args, reply, |on| me.set_flag(Flag::NoEvict, on)),
        "no-touch" => switch(args, reply, |on| {
            session.no_touch = on;
            me.set_flag(Flag::NoTouch, on);
        }),
        "help" => subcommand::help("CLIENT", HELP, reply),
        _ => subcommand::unknown("CLIENT", args, reply),
    }
}

/// Gives a client a name, or none for an empty one.
///
/// # Errors
/// The text of the error reply.
pub fn set_name(me: &Client, name: &[u8]) -> Result<(), &'static str> {
    if !is_valid_name(name) {
        return Err(INVALID_NAME);
    }
    me.set_name(&String::from_utf8_lossy(name));
    Ok(())
}

fn set_info(args: Args<'_>, me: &Client, reply: &mut ReplyWriter<'_>) {
    let option = lower(&args[2]);
    let set: fn(&Client, &str) = match option.as_str() {
        "lib-name" => Client::set_library,
        "lib-ver" => Client::set_library_version,
        _ => {
            let given = String::from_utf8_lossy(&args[2]);
            return reply.error(&format!("ERR Unrecognized option '{given}'"));
        }
    };
    if !is_valid_name(&args[3]) {
        return reply.error(&format!("ERR {option} cannot contain spaces, newlines or special characters."));
    }
    set(me, &String::from_utf8_lossy(&args[3]));
    reply.ok();
}

fn client_type(word: &[u8]) -> Result<ClientType, String> {
    match lower(word).as_str() {
        "normal" => Ok(ClientType::Normal),
        "master" => Ok(ClientType::Master),
        "replica" | "slave" => Ok(ClientType::Replica),
        "pubsub" => Ok(ClientType::PubSub),
        _ => Err(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(word))),
    }
}

fn list(args: Args<'_>, registry: &Registry, now: Tick, reply: &mut ReplyWriter<'_>) {
    let mut filter = Filter::default();
    match (args.len(), args.get(2).map(lower).as_deref()) {
        (2, _) => {}
        (4, Some("type")) => match client_type(&args[3]) {
            Ok(kind) => filter.kind = Some(kind),
            Err(text) => return reply.error(&text),
        },
        (4.., Some("id")) => {
            let ids: Option<Vec<u64>> =
                args.tail(3).iter().map(|id| u64::try_from(integer(id)?).ok()).collect();
            if ids.is_none() {
                return reply.error("ERR Invalid client ID");
            }
            filter.ids = ids;
        }
        _ => return reply.error(SYNTAX),
    }
    let mut text = String::new();
    for client in registry.select(&filter) {
        text.push_str(&client.line(now));
        text.push('\n');
    }
    reply.verbatim("txt", text.as_bytes());
}

fn kill(
    args: Args<'_>,
    session: &mut Session,
    me: &Client,
    registry: &Registry,
    reply: &mut ReplyWriter<'_>,
) {
    let mut filter = Filter::default();
    let old_style = args.len() == 3;
    if old_style {
        filter.address = Some(String::from_utf8_lossy(&args[2]).into_owned());
    } else {
        filter.except = Some(me.id);
        if let Err(text) = kill_filter(args.tail(2), me, &mut filter) {
            return reply.error(&text);
        }
    }
    let victims = registry.select(&filter);
    for victim in &victims {
        // Whoever kills itself is told first.
        if victim.id == me.id { session.closing = true } else { victim.kill() }
    }
    match victims.len() {
        0 if old_style => reply.error("ERR No such client"),
        _ if old_style => reply.ok(),
        count => reply.integer(count as i64),
    }
}

fn kill_filter(options: Args<'_>, me: &Client, filter: &mut Filter) -> Result<(), String> {
    for at in (0..options.len()).step_by(2) {
        let value = options.get(at + 1).ok_or(SYNTAX)?;
        let text = || String::from_utf8_lossy(value).into_owned();
        match lower(&options[at]).as_str() {
            "id" => {
                let id =
                    integer(value).filter(|&id| id > 0).ok_or("ERR client-id should be greater than 0")?;
                filter.ids = Some(vec![id.cast_unsigned()]);
            }
            "type" => filter.kind = Some(client_type(value)?),
            "addr" => filter.address = Some(text()),
            "laddr" => filter.local = Some(text()),
            "user" if text() == "default" => {}
            "user" => return Err(format!("ERR No such user '{}'", text())),
            "skipme" => match lower(value).as_str() {
                "yes" => filter.except = Some(me.id),
                "no" => filter.except = None,
                _ => return Err(SYNTAX.to_owned()),
            },
            _ => return Err(SYNTAX.to_owned()),
        }
    }
    Ok(())
}

/// What Redis answers where the arity is found wrong by the subcommand itself.
fn too_many(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    let name = String::from_utf8_lossy(&args[1]);
    reply.error(&format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try CLIENT HELP."
    ));
}

fn pause(args: Args<'_>, registry: &Registry, now: Tick, reply: &mut ReplyWriter<'_>) {
    let mode = match (args.len(), args.get(3).map(lower).as_deref()) {
        (3, _) | (4, Some("all")) => PauseMode::All,
        (4, Some("write")) => PauseMode::Write,
        (4, _) => return reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL"),
        _ => return too_many(args, reply),
    };
    match integer(&args[2]).map(u64::try_from) {
        None => reply.error("ERR timeout is not an integer or out of range"),
        Some(Err(_)) => reply.error("ERR timeout is negative"),
        Some(Ok(ms)) => {
            registry.pause(now + Duration::from_millis(ms), mode, now);
            reply.ok();
        }
    }
}

fn unblock(args: Args<'_>, registry: &Registry, reply: &mut ReplyWriter<'_>) {
    let why = match (args.len(), args.get(3).map(lower).as_deref()) {
        (3, _) | (4, Some("timeout")) => Unblock::Timeout,
        (4, Some("error")) => Unblock::Error,
        (4, _) => return reply.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
        _ => return too_many(args, reply),
    };
    let Some(id) = integer(&args[2]) else { return reply.error(NOT_AN_INTEGER) };
    let target = u64::try_from(id).ok().and_then(|id| registry.get(id));
    reply.integer(i64::from(target.is_some_and(|client| client.unblock(why))));
}

fn reply_mode(args: Args<'_>, session: &mut Session, reply: &mut ReplyWriter<'_>) {
    match lower(&args[2]).as_str() {
        "on" => {
            session.reply_mode = ReplyMode::On;
            reply.ok();
        }
        "off" => session.reply_mode = ReplyMode::Off,
        "skip" if session.reply_mode == ReplyMode::Off => {}
        "skip" => session.reply_mode = ReplyMode::SkipNext,
        _ => reply.error(SYNTAX),
    }
}

fn switch(args: Args<'_>, reply: &mut ReplyWriter<'_>, set: impl FnOnce(bool)) {
    match lower(&args[2]).as_str() {
        "on" => set(true),
        "off" => set(false),
        _ => return reply.error(SYNTAX),
    }
    reply.ok();
}

const HELP: &[&str] = &[
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR <ip:port>",
    "      Kill connections made from the specified address",
    "    * LADDR <ip:port>",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "    * ID <client-id>",
    "      Kill connections by client id.",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "    * ID <client-id> [<client-id> ...]",
    "      Return clients of specified IDs only.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "SETINFO <option> <value>",
    "    Set client meta attr. Options are:",
    "    * LIB-NAME: the client lib name.",
    "    * LIB-VER: the client lib version.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Will not touch LRU/LFU stats when this mode is on.",
];

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use korum_protocol::resp::ProtocolVersion::{self, Resp2, Resp3};

    use super::*;
    use crate::command::subcommand::testing::answer_words;
    use crate::net::clients::Place;
    use crate::net::session::PortKind;

    struct World {
        registry: Arc<Registry>,
        places: Vec<Place>,
        session: Session,
    }

    impl World {
        fn new() -> Self {
            let registry = Arc::new(Registry::default());
            let local = SocketAddr::from(([127, 0, 0, 1], 6379));
            let enter = |port| {
                let address = SocketAddr::from(([127, 0, 0, 1], port));
                registry.enter(address, local, PortKind::Client, Tick(0), 9).unwrap()
            };
            let places = vec![enter(1001), enter(1002)];
            Self { places, registry, session: Session::new(1, PortKind::Client, false) }
        }

        fn ask_as(&mut self, version: ProtocolVersion, words: &[&str]) -> String {
            let words = [&["client"], words].concat();
            answer_words(&words, version, |args, reply| {
                client(args, &mut self.session, &self.places[0].client, &self.registry, Tick(0), reply);
            })
        }

        fn ask(&mut self, line: &str) -> String {
            self.ask_as(Resp2, &line.split(' ').collect::<Vec<_>>())
        }
    }

    #[test]
    fn errors_have_the_texts_of_redis() {
        let mut world = World::new();
        for (line, text) in [
            ("foo", "unknown subcommand 'foo'. Try CLIENT HELP."),
            ("setname", "wrong number of arguments for 'client|setname' command"),
            ("list type foo", "Unknown client type 'foo'"),
            ("list type", "syntax error"),
            ("list id", "syntax error"),
            ("list id a", "Invalid client ID"),
            ("no-evict foo", "syntax error"),
            ("reply foo", "syntax error"),
            ("pause", "wrong number of arguments for 'client|pause' command"),
            ("pause abc", "timeout is not an integer or out of range"),
            ("pause -1", "timeout is negative"),
            ("pause 1 foo", "CLIENT PAUSE mode must be WRITE or ALL"),
            ("unblock a", "value is not an integer or out of range"),
            ("unblock 9 foo", "CLIENT UNBLOCK reason should be TIMEOUT or ERROR"),
            ("kill", "wrong number of arguments for 'client|kill' command"),
            ("kill 1.2.3.4:5", "No such client"),
            ("kill id a", "client-id should be greater than 0"),
            ("kill type foo", "Unknown client type 'foo'"),
            ("kill foo bar", "syntax error"),
            ("kill user nobody", "No such user 'nobody'"),
            ("kill addr 1:2 id", "syntax error"),
            ("setinfo foo x", "Unrecognized option 'foo'"),
        ] {
            assert_eq!(world.ask(line), format!("-ERR {text}\r\n"), "{line}");
        }
        assert_eq!(
            world.ask_as(Resp2, &["setname", "a b"]),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
        );
        assert_eq!(
            world.ask_as(Resp2, &["setinfo", "LIB-VER", "a b"]),
            "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n"
        );
    }

    #[test]
    fn names_are_kept_and_shown() {
        let mut world = World::new();
        assert_eq!(world.ask("getname"), "$-1\r\n");
        assert_eq!(world.ask_as(Resp3, &["getname"]), "_\r\n");
        assert_eq!(world.ask("setname x"), "+OK\r\n");
        assert_eq!(world.ask("setinfo lib-name redis-py"), "+OK\r\n");
        assert_eq!(world.ask("getname"), "$1\r\nx\r\n");
        let info = world.ask_as(Resp3, &["info"]);
        assert!(info.starts_with('=') && info.contains("txt:id=1 addr=127.0.0.1:1001"), "{info}");
        assert!(info.contains(" name=x ") && info.contains(" lib-name=redis-py "), "{info}");
        assert_eq!(world.ask("list").matches("id=").count(), 2);
        assert_eq!(world.ask("list id 2 7").matches("id=").count(), 1);
        assert_eq!(world.ask("setname "), "+OK\r\n");
        assert_eq!(world.ask("getname"), "$-1\r\n");
    }

    #[test]
    fn kill_reaches_others_and_closes_oneself_last() {
        let mut world = World::new();
        assert_eq!(world.ask("kill id 2"), "+OK\r\n".replace("+OK", ":1"));
        assert!(world.places[1].client.is_killed());
        assert_eq!(world.ask("kill skipme no"), ":2\r\n");
        assert!(world.session.closing && !world.places[0].client.is_killed());
        assert_eq!(world.ask("kill 127.0.0.1:1002"), "+OK\r\n");
        assert_eq!(world.ask("kill type pubsub"), ":0\r\n");
    }

    #[test]
    fn reply_modes_answer_nothing_when_off() {
        let mut world = World::new();
        assert_eq!(world.ask("reply off"), "");
        assert_eq!(world.ask("reply skip"), "");
        assert_eq!(world.session.reply_mode, ReplyMode::Off);
        assert_eq!(world.ask("reply on"), "+OK\r\n");
        assert_eq!(world.session.reply_mode, ReplyMode::On);
    }

    #[test]
    fn pause_and_unblock() {
        let mut world = World::new();
        assert_eq!(world.ask("pause 50 write"), "+OK\r\n");
        assert_eq!(world.registry.paused(Tick(1)), Some((Tick(50_000_000), PauseMode::Write)));
        assert_eq!(world.ask("unpause"), "+OK\r\n");
        assert_eq!(world.ask("unblock 2"), ":0\r\n");
        world.places[1].client.set_flag(Flag::Blocked, true);
        assert_eq!(world.ask("unblock 2 error"), ":1\r\n");
        assert!(world.ask("help").starts_with("*58\r\n+CLIENT <subcommand>"));
    }
}
