//! `CLIENT TRACKING`, `CACHING`, `TRACKINGINFO`, `GETREDIR`: a client keeps what it reads, and is told what changes.
//!
//! For: parsing, the rules between the options, and the answers.
//! Not here: whom to tell (`net::tracking`), other nodes (`dispatch::track`).

use std::sync::Arc;

use korum_protocol::command::CommandId;
use korum_protocol::resp::{Args, ReplyWriter};

use super::subcommand::{NOT_AN_INTEGER, SYNTAX, integer, lower};
use crate::net::clients::{Client, Flag, Registry};
use crate::net::session::Session;

/// What a client has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// It is told of all keys with its prefixes, whatever it has read.
    pub is_broadcast: bool,
    /// Only reads behind `CLIENT CACHING YES` are kept.
    pub opt_in: bool,
    /// Reads behind `CLIENT CACHING NO` are not kept.
    pub opt_out: bool,
    /// It does not want to be told of what it changed itself.
    pub no_loop: bool,
    /// The answers go to another client.
    pub is_redirected: bool,
    /// `CLIENT CACHING` was the last command.
    pub is_marked: bool,
}

impl Options {
    /// Whether what the next command reads is kept; `is_marked` holds for one command.
    #[must_use]
    pub fn keeps(self) -> bool {
        if self.opt_in { self.is_marked } else { !(self.opt_out && self.is_marked) }
    }
}

/// What other nodes have to be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome {
    /// Nothing.
    Replied,
    /// To tell this one of changes.
    Begin,
    /// Not to do so any more.
    End,
}

/// Runs one of these commands for the connection `me`.
pub fn client(
    id: CommandId,
    args: Args<'_>,
    session: &mut Session,
    me: &Arc<Client>,
    registry: &Registry,
    reply: &mut ReplyWriter<'_>,
) -> Outcome {
    match id {
        CommandId::ClientTracking => match tracking(args, session, me, registry) {
            Ok(outcome) => {
                reply.ok();
                return outcome;
            }
            Err(text) => reply.error(&text),
        },
        CommandId::ClientCaching => match caching(args, session) {
            Ok(()) => reply.ok(),
            Err(text) => reply.error(text),
        },
        CommandId::ClientGetredir => match session.tracking {
            None => reply.integer(-1),
            Some(_) => reply.integer(registry.tracker.redirect(me).map_or(0, u64::cast_signed)),
        },
        _ => info(session, me, registry, reply),
    }
    Outcome::Replied
}

fn tracking(
    args: Args<'_>,
    session: &mut Session,
    me: &Arc<Client>,
    registry: &Registry,
) -> Result<Outcome, String> {
    let mut options = Options::default();
    let mut redirect = None;
    let mut prefixes: Vec<&[u8]> = Vec::new();
    let mut at = 3;
    while let Some(option) = args.get(at) {
        match (lower(option).as_str(), args.get(at + 1)) {
            ("redirect", Some(id)) => {
                if redirect.is_some() {
                    return Err("ERR A client can only redirect to a single other client".to_owned());
                }
                let id = integer(id).ok_or(NOT_AN_INTEGER)?;
                let target = u64::try_from(id).ok().and_then(|id| registry.get(id));
                redirect = Some(target.ok_or("ERR The client ID you want redirect to does not exist")?);
                at += 1;
            }
            ("prefix", Some(prefix)) => {
                prefixes.push(prefix);
                at += 1;
            }
            ("bcast", _) => options.is_broadcast = true,
            ("optin", _) => options.opt_in = true,
            ("optout", _) => options.opt_out = true,
            ("noloop", _) => options.no_loop = true,
            _ => return Err(SYNTAX.to_owned()),
        }
        at += 1;
    }
    match lower(&args[2]).as_str() {
        "on" => {}
        "off" => {
            session.tracking = None;
            me.set_redirect(-1);
            let is_last = registry.tracker.end(me);
            return Ok(if is_last { Outcome::End } else { Outcome::Replied });
        }
        _ => return Err(SYNTAX.to_owned()),
    }
    check(options, session.tracking, &prefixes)?;
    if options.is_broadcast {
        check_prefixes(&prefixes, &registry.tracker.prefixes(me))?;
        if prefixes.is_empty() {
            prefixes.push(b"");
        }
    }
    options.is_redirected = redirect.is_some();
    session.tracking = Some(options);
    me.set_redirect(redirect.as_ref().map_or(0, |target| target.id.cast_signed()));
    me.set_flag(Flag::TrackingBroken, false);
    me.set_flag(Flag::TrackingAll, options.is_broadcast);
    let is_first = registry.tracker.begin(me, redirect.as_ref(), &prefixes);
    Ok(if is_first { Outcome::Begin } else { Outcome::Replied })
}

fn check(options: Options, present: Option<Options>, prefixes: &[&[u8]]) -> Result<(), &'static str> {
    if !options.is_broadcast && !prefixes.is_empty() {
        return Err("ERR PREFIX option requires BCAST mode to be enabled");
    }
    if present.is_some_and(|present| present.is_broadcast != options.is_broadcast) {
        return Err(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
        );
    }
    if options.is_broadcast && (options.opt_in || options.opt_out) {
        return Err("ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if options.opt_in && options.opt_out {
        return Err("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    let switches = |present: Options| options.opt_in && present.opt_out || options.opt_out && present.opt_in;
    if present.is_some_and(switches) {
        return Err(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.",
        );
    }
    Ok(())
}

/// No prefix may begin with another one.
fn check_prefixes(prefixes: &[&[u8]], present: &[bytes::Bytes]) -> Result<(), String> {
    let overlap = |one: &[u8], other: &[u8]| one.starts_with(other) || other.starts_with(one);
    let text = |what: &str, one: &[u8], other: &[u8]| {
        let [one, other] = [one, other].map(String::from_utf8_lossy);
        format!(
            "ERR Prefix '{one}' overlaps with {what} prefix '{other}'. Prefixes for a single client must not overlap."
        )
    };
    for (at, prefix) in prefixes.iter().enumerate() {
        if let Some(other) = present.iter().find(|other| overlap(prefix, other)) {
            return Err(text("an existing", prefix, other));
        }
        if let Some(other) = prefixes[at + 1..].iter().find(|other| overlap(prefix, other)) {
            return Err(text("another provided", prefix, other));
        }
    }
    Ok(())
}

fn caching(args: Args<'_>, session: &mut Session) -> Result<(), &'static str> {
    let Some(options) = &mut session.tracking else {
        return Err(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
        );
    };
    match lower(&args[2]).as_str() {
        "yes" if options.opt_in => options.is_marked = true,
        "yes" => return Err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode."),
        "no" if options.opt_out => options.is_marked = true,
        "no" => return Err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode."),
        _ => return Err(SYNTAX),
    }
    Ok(())
}

fn info(session: &Session, me: &Client, registry: &Registry, reply: &mut ReplyWriter<'_>) {
    let options = session.tracking.unwrap_or_default();
    let redirect = registry.tracker.redirect(me);
    let flags: Vec<&str> = [
        (session.tracking.is_none(), "off"),
        (session.tracking.is_some(), "on"),
        (options.is_broadcast, "bcast"),
        (options.opt_in, "optin"),
        (options.opt_in && options.is_marked, "caching-yes"),
        (options.opt_out, "optout"),
        (options.opt_out && options.is_marked, "caching-no"),
        (options.no_loop, "noloop"),
        (options.is_redirected && redirect.is_none(), "broken_redirect"),
    ]
    .into_iter()
    .filter_map(|(is_set, name)| is_set.then_some(name))
    .collect();
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    let none = if session.tracking.is_some() { 0 } else { -1 };
    reply.integer(redirect.map_or(none, u64::cast_signed));
    reply.bulk(b"prefixes");
    let prefixes = registry.tracker.prefixes(me);
    let prefixes: Vec<_> = prefixes.iter().filter(|prefix| !prefix.is_empty()).collect();
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
}
