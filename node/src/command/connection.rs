//! Connection commands: a client says who it is and how it wants to be spoken to.
//!
//! For: `HELLO AUTH PING ECHO SELECT QUIT RESET READONLY READWRITE ASKING`, `KORUM CONSISTENCY`.
//! Not here: `CLIENT` (`client`).

use bytes::BytesMut;
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};

use super::client::INVALID_NAME;
use super::names;
use super::subcommand::{SYNTAX, integer, lower, wrong_arity};
use crate::config::Consistency;
use crate::net::clients::{Client, Flag, is_valid_name};
use crate::net::session::{PortKind, Session};
use crate::store::Databases;

/// The Redis version whose behaviour clients may count on.
pub const REDIS_VERSION: &str = "7.2.0";

/// Text for commands of a client that has not given the password.
pub const NOAUTH: &str = "NOAUTH Authentication required.";

const WRONGPASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NO_PASSWORD_SET: &str = "ERR AUTH <password> called without any password configured for the default user. \
                               Are you sure your configuration is correct?";
const HELLO_NOAUTH: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                            HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                            select the RESP protocol version at the same time";

/// `HELLO [2|3] [AUTH user password] [SETNAME name]`. `password` is empty when none is asked for.
///
/// The reply is written in the version that was asked for, whatever `reply` speaks.
pub fn hello(
    args: Args<'_>,
    session: &mut Session,
    me: &Client,
    password: &str,
    reply: &mut ReplyWriter<'_>,
) {
    match hello_options(args, session, password) {
        Err(text) => reply.error(&text),
        Ok(wanted) => {
            if wanted.authenticated {
                session.authenticated = true;
            }
            if let Some(name) = wanted.name {
                me.set_name(&String::from_utf8_lossy(name));
            }
            session.version = wanted.version;
            me.set_version(wanted.version);
            let mut out = BytesMut::with_capacity(160);
            greeting(session, &mut ReplyWriter::new(&mut out, wanted.version));
            reply.raw(&out);
        }
    }
}

struct Hello<'a> {
    version: ProtocolVersion,
    authenticated: bool,
    name: Option<&'a [u8]>,
}

fn hello_options<'a>(args: Args<'a>, session: &Session, password: &str) -> Result<Hello<'a>, String> {
    let mut wanted = Hello { version: session.version, authenticated: false, name: None };
    if let Some(version) = args.get(1) {
        wanted.version = match integer(version) {
            None => return Err("ERR Protocol version is not an integer or out of range".to_owned()),
            Some(2) => ProtocolVersion::Resp2,
            Some(3) => ProtocolVersion::Resp3,
            Some(_) => return Err("NOPROTO unsupported protocol version".to_owned()),
        };
    }
    let mut credentials = None;
    let mut at = 2;
    while let Some(option) = args.get(at) {
        match (lower(option).as_str(), args.get(at + 1), args.get(at + 2)) {
            ("auth", Some(user), Some(given)) => {
                credentials = Some((user, given));
                at += 3;
            }
            ("setname", Some(name), _) => {
                if !is_valid_name(name) {
                    return Err(INVALID_NAME.to_owned());
                }
                wanted.name = Some(name);
                at += 2;
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                return Err(format!("ERR Syntax error in HELLO option '{option}'"));
            }
        }
    }
    match credentials {
        Some((user, given)) if is_known(user, given, password) => wanted.authenticated = true,
        Some(_) => return Err(WRONGPASS.to_owned()),
        None if session.authenticated => {}
        None => return Err(HELLO_NOAUTH.to_owned()),
    }
    Ok(wanted)
}

fn greeting(session: &Session, reply: &mut ReplyWriter<'_>) {
    let version = if session.version == ProtocolVersion::Resp3 { 3 } else { 2 };
    let mode: &[u8] = match session.port {
        PortKind::Client => b"standalone",
        PortKind::Cluster => b"cluster",
    };
    reply.map(7);
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(REDIS_VERSION.as_bytes());
    reply.bulk(b"proto");
    reply.integer(version);
    reply.bulk(b"id");
    reply.integer(session.id.cast_signed());
    reply.bulk(b"mode");
    reply.bulk(mode);
    reply.bulk(b"role");
    reply.bulk(b"master");
    reply.bulk(b"modules");
    reply.array(0);
}

/// Without a password, the default user is let in with any.
fn is_known(user: &[u8], given: &[u8], password: &str) -> bool {
    user == b"default" && (password.is_empty() || equal_in_constant_time(given, password.as_bytes()))
}

/// How long it takes says nothing about where two secrets of one length differ.
fn equal_in_constant_time(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |different, (l, r)| different | (l ^ r)) == 0
}

/// `AUTH [user] password`.
pub fn auth(args: Args<'_>, session: &mut Session, password: &str, reply: &mut ReplyWriter<'_>) {
    let (user, given) = match args.len() {
        2 if password.is_empty() => return reply.error(NO_PASSWORD_SET),
        2 => (&b"default"[..], &args[1]),
        3 => (&args[1], &args[2]),
        0 | 1 => return wrong_arity("auth", reply),
        _ => return reply.error(SYNTAX),
    };
    if is_known(user, given, password) {
        session.authenticated = true;
        reply.ok();
    } else {
        reply.error(WRONGPASS);
    }
}

/// `PING [message]`.
pub fn ping(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    match args.len() {
        1 => reply.simple("PONG"),
        2 => reply.bulk(&args[1]),
        _ => wrong_arity("ping", reply),
    }
}

/// `ECHO message`.
pub fn echo(args: Args<'_>, reply: &mut ReplyWriter<'_>) {
    if args.len() == 2 { reply.bulk(&args[1]) } else { wrong_arity("echo", reply) }
}

/// `SELECT index`: there are `databases`, one on the cluster port.
pub fn select(
    args: Args<'_>,
    session: &mut Session,
    me: &Client,
    databases: &Databases,
    reply: &mut ReplyWriter<'_>,
) {
    if args.len() != 2 {
        return wrong_arity("select", reply);
    }
    match names::select(databases, &args[1], session.port == PortKind::Cluster) {
        Err(text) => reply.error(&text),
        Ok(database) => {
            session.database = database;
            me.set_database(database);
            reply.ok();
        }
    }
}

/// `QUIT`: answered, then closed.
pub fn quit(session: &mut Session, reply: &mut ReplyWriter<'_>) {
    session.closing = true;
    reply.ok();
}

/// `RESET`: as if it had just connected. Subscriptions and transactions are the caller's to end.
pub fn reset(session: &mut Session, me: &Client, password: &str, reply: &mut ReplyWriter<'_>) {
    session.reset(!password.is_empty());
    me.set_name("");
    me.set_version(ProtocolVersion::Resp2);
    me.set_transaction(None, 0, 0);
    me.set_database(0);
    [Flag::ReadOnly, Flag::NoEvict, Flag::NoTouch].into_iter().for_each(|flag| me.set_flag(flag, false));
    reply.simple("RESET");
}

/// `READONLY` and `READWRITE`: whether replicas may answer reads. On both ports, since a cluster-aware
/// client may keep its first connection to the client port.
pub fn read_only(
    args: Args<'_>,
    session: &mut Session,
    me: &Client,
    value: bool,
    reply: &mut ReplyWriter<'_>,
) {
    if args.len() != 1 {
        return wrong_arity(if value { "readonly" } else { "readwrite" }, reply);
    }
    session.readonly = value;
    me.set_flag(Flag::ReadOnly, value);
    reply.ok();
}

/// `ASKING`: holds for the next command.
pub fn asking(args: Args<'_>, session: &mut Session, reply: &mut ReplyWriter<'_>) {
    if args.len() != 1 {
        return wrong_arity("asking", reply);
    }
    session.asking = true;
    reply.ok();
}

/// `KORUM CONSISTENCY [strong|async]`: what this connection's writes wait for; `default` unless it was told.
pub fn consistency(args: Args<'_>, session: &mut Session, default: Consistency, reply: &mut ReplyWriter<'_>) {
    session.consistency = match (args.len(), args.get(2).map(lower).as_deref()) {
        (2, _) => {
            let word: &[u8] = match session.consistency.unwrap_or(default) {
                Consistency::Strong => b"strong",
                Consistency::Async => b"async",
            };
            return reply.bulk(word);
        }
        (3, Some("strong")) => Some(Consistency::Strong),
        (3, Some("async")) => Some(Consistency::Async),
        (3, _) => return reply.error(SYNTAX),
        _ => return wrong_arity("korum|consistency", reply),
    };
    reply.ok();
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use korum_protocol::resp::ProtocolVersion::Resp2;

    use super::*;
    use crate::command::subcommand::testing::answer;
    use crate::env::Tick;
    use crate::net::clients::{Place, Registry};

    fn place() -> Place {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        Arc::new(Registry::default()).enter(address, address, PortKind::Client, Tick(0), 9).unwrap()
    }

    fn say_hello(line: &str, session: &mut Session, place: &Place, password: &str) -> String {
        answer(line, session.version, |args, reply| hello(args, session, &place.client, password, reply))
    }

    #[test]
    fn hello_answers_in_the_version_it_was_asked_for() {
        let place = place();
        let mut session = Session::new(1, PortKind::Client, false);
        assert_eq!(
            say_hello("hello 3 setname x", &mut session, &place, ""),
            "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n\
             $4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
        );
        assert_eq!(place.client.name(), "x");
        session.port = PortKind::Cluster;
        let text = say_hello("hello 2", &mut session, &place, "");
        assert!(
            text.starts_with("*14\r\n") && text.contains("$7\r\ncluster\r\n") && text.contains(":2\r\n"),
            "{text}"
        );
        assert_eq!(session.version, Resp2);
        assert!(say_hello("hello", &mut session, &place, "").starts_with("*14\r\n"));
    }

    #[test]
    fn hello_refuses_in_the_words_of_redis() {
        let place = place();
        let mut session = Session::new(1, PortKind::Client, true);
        for (line, text) in [
            ("hello 4", "NOPROTO unsupported protocol version"),
            ("hello abc", "ERR Protocol version is not an integer or out of range"),
            ("hello 2 auth", "ERR Syntax error in HELLO option 'auth'"),
            ("hello 2 foo", "ERR Syntax error in HELLO option 'foo'"),
            ("hello 3 auth default bad setname y", WRONGPASS),
            ("hello 3", HELLO_NOAUTH),
            ("hello 3 auth default pw setname \u{7f}", INVALID_NAME),
        ] {
            assert_eq!(say_hello(line, &mut session, &place, "pw"), format!("-{text}\r\n"), "{line}");
        }
        assert!(!session.authenticated && session.version == Resp2 && place.client.name().is_empty());
        assert!(say_hello("hello 3 auth default pw", &mut session, &place, "pw").starts_with("%7"));
        assert!(session.authenticated);
    }

    #[test]
    fn auth_knows_the_default_user_only() {
        let mut session = Session::new(1, PortKind::Client, true);
        let mut ask = |line: &str, password: &str| {
            answer(line, Resp2, |args, reply| auth(args, &mut session, password, reply))
        };
        assert_eq!(ask("auth x", ""), format!("-{NO_PASSWORD_SET}\r\n"));
        assert_eq!(ask("auth a b", ""), format!("-{WRONGPASS}\r\n"));
        assert_eq!(ask("auth a b c", "pw"), "-ERR syntax error\r\n");
        assert_eq!(ask("auth", "pw"), "-ERR wrong number of arguments for 'auth' command\r\n");
        assert_eq!(ask("auth pX", "pw"), format!("-{WRONGPASS}\r\n"));
        assert_eq!(ask("auth default pw", "pw"), "+OK\r\n");
        assert_eq!(ask("auth default any", ""), "+OK\r\n");
    }

    #[test]
    fn select_chooses_a_database_until_reset() {
        let (mut session, place) = (Session::new(1, PortKind::Client, false), place());
        let ask = |line: &str, session: &mut Session| {
            let databases = Databases::default();
            answer(line, Resp2, |args, reply| select(args, session, &place.client, &databases, reply))
        };
        assert_eq!(ask("select 15", &mut session), "+OK\r\n");
        assert_eq!(ask("select 16", &mut session), "-ERR DB index is out of range\r\n");
        assert_eq!(ask("select a", &mut session), "-ERR value is not an integer or out of range\r\n");
        assert_eq!((session.database, place.client.database()), (15, 15));
        answer("reset", Resp2, |_, reply| reset(&mut session, &place.client, "", reply));
        assert_eq!((session.database, place.client.database()), (0, 0));
        session.port = PortKind::Cluster;
        assert_eq!(ask("select 1", &mut session), "-ERR SELECT is not allowed in cluster mode\r\n");
        assert_eq!(ask("select 0", &mut session), "+OK\r\n");
    }

    #[test]
    fn consistency_is_the_default_until_told() {
        let mut session = Session::new(1, PortKind::Client, false);
        let mut ask = |line: &str| {
            answer(line, Resp2, |args, reply| consistency(args, &mut session, Consistency::Strong, reply))
        };
        assert_eq!(ask("korum consistency"), "$6\r\nstrong\r\n");
        assert_eq!(ask("korum consistency ASYNC"), "+OK\r\n");
        assert_eq!(ask("korum consistency weak"), "-ERR syntax error\r\n");
        assert_eq!(ask("korum consistency"), "$5\r\nasync\r\n");
        assert!(ask("korum consistency a b").starts_with("-ERR wrong number of arguments"));
    }

    #[test]
    fn small_commands() {
        assert_eq!(answer("ping", Resp2, ping), "+PONG\r\n");
        assert_eq!(answer("ping x", Resp2, ping), "$1\r\nx\r\n");
        assert_eq!(answer("ping a b", Resp2, ping), "-ERR wrong number of arguments for 'ping' command\r\n");
        assert_eq!(answer("echo hi", Resp2, echo), "$2\r\nhi\r\n");
        let place = place();
        let mut session = Session::new(1, PortKind::Cluster, false);
        answer("readonly", Resp2, |args, reply| read_only(args, &mut session, &place.client, true, reply));
        answer("asking", Resp2, |args, reply| asking(args, &mut session, reply));
        assert!(session.readonly && session.asking && place.client.has_flag(Flag::ReadOnly));
        assert_eq!(
            answer("reset", Resp2, |_, reply| reset(&mut session, &place.client, "", reply)),
            "+RESET\r\n"
        );
        assert!(!session.readonly && !session.asking);
        assert_eq!(answer("quit", Resp2, |_, reply| quit(&mut session, reply)), "+OK\r\n");
        assert!(session.closing);
    }
}
