//! `COMMAND` and its subcommands: the table described to clients.
//!
//! For: replies made of nothing but the table, in both versions of RESP, shaped as Redis 7.0 shapes them.
//! Not here: the facts (the families), who may ask (the node's `dispatch`).
//!
//! Arguments of commands and their history are left out of `COMMAND DOCS`; both are optional there.

use super::args::is_keyword;
use super::glob;
use super::keys::keys_with_flags;
use super::resolve;
use super::table::{all, count, lookup, lookup_in};
use super::{Categories, CommandId, CommandSpec, KeyFlags, KeyForm, KeySpec};
use crate::resp::{Args, ReplyWriter};

/// Answers `COMMAND …`; `args` is the whole request, of which `resolve` found `id`. `false` when `id` is
/// none of this family.
pub fn reply(id: CommandId, args: &Args<'_>, out: &mut ReplyWriter<'_>) -> bool {
    match id {
        CommandId::Command => command(out),
        CommandId::CommandCount => out.integer(count() as i64),
        CommandId::CommandInfo => info(args, out),
        CommandId::CommandDocs => docs(args, out),
        CommandId::CommandList => list(args, out),
        CommandId::CommandGetkeys => get_keys(args, false, out),
        CommandId::CommandGetkeysandflags => get_keys(args, true, out),
        CommandId::CommandHelp => help(out),
        _ => return false,
    }
    true
}

/// `COMMAND HELP`.
fn help(out: &mut ReplyWriter<'_>) {
    out.array(HELP.len());
    HELP.iter().for_each(|line| out.simple(line));
}

const HELP: &[&str] = &[
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    Return details about all Redis commands.",
    "COUNT",
    "    Return the total number of commands in this Redis server.",
    "LIST",
    "    Return a list of all commands in this Redis server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "GETKEYS <full-command>",
    "    Return the keys from a full Redis command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full Redis command.",
    "HELP",
    "    Prints this help.",
];

/// `COMMAND`: an entry for every command.
fn command(out: &mut ReplyWriter<'_>) {
    out.array(count());
    all().for_each(|spec| entry(spec, out));
}

/// `COMMAND INFO [name …]`: an entry or nothing for each name, all entries without names.
fn info(args: &Args<'_>, out: &mut ReplyWriter<'_>) {
    if args.len() == 2 {
        return command(out);
    }
    out.array(args.len() - 2);
    for name in args.iter().skip(2) {
        match by_full_name(name) {
            Some(spec) => entry(spec, out),
            None => out.null(),
        }
    }
}

/// `COMMAND DOCS [name …]`: unknown names are left out.
fn docs(args: &Args<'_>, out: &mut ReplyWriter<'_>) {
    let named: Vec<_> = args.iter().skip(2).filter_map(by_full_name).collect();
    let wanted: Vec<_> = if args.len() == 2 { all().collect() } else { named };
    out.map(wanted.len());
    wanted.into_iter().for_each(|spec| documentation(spec, out));
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`.
fn list(args: &Args<'_>, out: &mut ReplyWriter<'_>) {
    let names: Vec<_> = match (args.len(), args.get(2), args.get(3), args.get(4)) {
        (2, ..) => all().map(|spec| spec.name).collect(),
        (5, Some(by), Some(kind), Some(value)) if is_keyword(by, "FILTERBY") => {
            if is_keyword(kind, "MODULE") {
                Vec::new()
            } else if is_keyword(kind, "ACLCAT") {
                let category = Categories::named(value);
                let is_in =
                    |spec: &&CommandSpec| category.is_some_and(|category| spec.categories.contains(category));
                flat().filter(is_in).map(|spec| spec.full_name).collect()
            } else if is_keyword(kind, "PATTERN") {
                let matches = |name: &&str| glob::matches_in_any_case(value, name.as_bytes());
                flat().map(|spec| spec.full_name).filter(matches).collect()
            } else {
                return out.error("ERR syntax error");
            }
        }
        _ => return out.error("ERR syntax error"),
    };
    out.array(names.len());
    names.iter().for_each(|name| out.bulk(name.as_bytes()));
}

/// `COMMAND GETKEYS name [argument …]` and `COMMAND GETKEYSANDFLAGS`.
fn get_keys(args: &Args<'_>, with_flags: bool, out: &mut ReplyWriter<'_>) {
    let request = args.tail(2);
    let Ok(spec) = resolve::find(&request) else { return out.error("ERR Invalid command specified") };
    let has_keys = spec.keys.iter().any(|key| !key.flags.contains(KeyFlags::NOT_KEY));
    if !has_keys && spec.find_keys.is_none() {
        return out.error("ERR The command has no key arguments");
    }
    if !spec.accepts(request.len()) {
        return out.error("ERR Invalid number of arguments specified for command");
    }
    let keys = match keys_with_flags(spec, &request) {
        Ok(keys) => keys,
        Err(error) => return out.error(&error.to_string()),
    };
    out.array(keys.len());
    for (position, flags) in keys {
        if with_flags {
            out.array(2);
        }
        out.bulk(&request[position]);
        if with_flags {
            statuses(flags.names(), "", out);
        }
    }
}

/// A command or `container|subcommand`, in any case.
fn by_full_name(name: &[u8]) -> Option<&'static CommandSpec> {
    match name.iter().position(|byte| *byte == b'|') {
        Some(bar) => lookup_in(lookup(&name[..bar])?, &name[bar + 1..]),
        None => lookup(name),
    }
}

/// All commands and subcommands.
fn flat() -> impl Iterator<Item = &'static CommandSpec> {
    all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands))
}

/// The ten elements of a command in `COMMAND INFO`.
fn entry(spec: &CommandSpec, out: &mut ReplyWriter<'_>) {
    out.array(10);
    out.bulk(spec.full_name.as_bytes());
    out.integer(spec.arity.into());
    statuses(spec.flags.names(), "", out);
    out.integer(spec.first_key.into());
    out.integer(spec.last_key.into());
    out.integer(spec.key_step.into());
    statuses(spec.categories.names(), "@", out);
    out.set(spec.tips.len());
    spec.tips.iter().for_each(|tip| out.bulk(tip.as_bytes()));
    out.set(spec.keys.len());
    spec.keys.iter().for_each(|key| key_spec(key, out));
    out.set(spec.subcommands.len());
    spec.subcommands.iter().for_each(|spec| entry(spec, out));
}

fn key_spec(key: &KeySpec, out: &mut ReplyWriter<'_>) {
    out.map(3);
    out.bulk(b"flags");
    statuses(key.flags.names(), "", out);
    out.bulk(b"begin_search");
    match key.form {
        KeyForm::Range | KeyForm::Counted => typed("index", &[("index", key.first.into())], out),
        KeyForm::After { word, from, .. } => {
            out.map(2);
            text("type", "keyword", out);
            out.bulk(b"spec");
            out.map(2);
            text("keyword", word, out);
            out.bulk(b"startfrom");
            out.integer(from.into());
        }
        KeyForm::Unknown => typed("unknown", &[], out),
    }
    out.bulk(b"find_keys");
    let limit = if let KeyForm::After { parts, .. } = key.form { parts.into() } else { 0 };
    match key.form {
        KeyForm::Range | KeyForm::After { .. } => {
            let fields = [("lastkey", key.last.into()), ("keystep", key.step.into()), ("limit", limit)];
            typed("range", &fields, out);
        }
        KeyForm::Counted => typed("keynum", &[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)], out),
        KeyForm::Unknown => typed("unknown", &[], out),
    }
}

fn typed(kind: &str, fields: &[(&str, i64)], out: &mut ReplyWriter<'_>) {
    out.map(2);
    text("type", kind, out);
    out.bulk(b"spec");
    out.map(fields.len());
    for (name, number) in fields {
        out.bulk(name.as_bytes());
        out.integer(*number);
    }
}

/// A command's name and its documentation.
fn documentation(spec: &CommandSpec, out: &mut ReplyWriter<'_>) {
    out.bulk(spec.full_name.as_bytes());
    let doc_flags: Vec<_> = [(spec.deprecated.is_some(), "deprecated"), (spec.is_system, "syscmd")]
        .into_iter()
        .filter_map(|(is_set, name)| is_set.then_some(name))
        .collect();
    let optional = [!doc_flags.is_empty(), !spec.subcommands.is_empty()];
    let optional =
        optional.iter().filter(|is_there| **is_there).count() + 2 * usize::from(spec.deprecated.is_some());
    out.map(4 + optional);
    text("summary", spec.summary, out);
    text("since", spec.since, out);
    text("group", spec.group.name(), out);
    text("complexity", spec.complexity, out);
    if !doc_flags.is_empty() {
        out.bulk(b"doc_flags");
        statuses(doc_flags.into_iter(), "", out);
    }
    if let Some((since, replaced_by)) = spec.deprecated {
        text("deprecated_since", since, out);
        text("replaced_by", replaced_by, out);
    }
    if !spec.subcommands.is_empty() {
        out.bulk(b"subcommands");
        out.map(spec.subcommands.len());
        spec.subcommands.iter().for_each(|spec| documentation(spec, out));
    }
}

fn text(key: &str, value: &str, out: &mut ReplyWriter<'_>) {
    out.bulk(key.as_bytes());
    out.bulk(value.as_bytes());
}

/// A set of names, as statuses.
fn statuses(names: impl Iterator<Item = &'static str>, prefix: &str, out: &mut ReplyWriter<'_>) {
    let names: Vec<_> = names.collect();
    out.set(names.len());
    names.iter().for_each(|name| out.simple(&format!("{prefix}{name}")));
}
