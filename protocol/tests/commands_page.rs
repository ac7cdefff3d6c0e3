//! `COMMANDS.md` says which commands of Redis there are, and is made from the table of commands.
//!
//! When it disagrees, `KORUM_WRITE=1 cargo test -p korum-protocol --test commands_page` writes it anew.

use std::fmt::Write;

use korum_protocol::command::{CommandSpec, table};

const COMMANDS: &str = include_str!("commands_redis_7_4.txt");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/COMMANDS.md");
const HEAD: &str = "# Commands

Which commands of Redis 7.0, 7.2 and 7.4 Korum has, and what is different.
The page is made from the table of commands by `tests/commands_page.rs`; remarks and reasons stand in `tests/commands_redis_7_4.txt`.
Korum's own commands are listed by `KORUM HELP`.
";

struct Command<'a> {
    name: &'a str,
    chapter: &'a str,
    since: &'a str,
    remark: &'a str,
    reason: &'a str,
}

fn commands() -> impl Iterator<Item = Command<'static>> {
    COMMANDS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().expect("five fields");
        Command { name: field(), chapter: field(), since: field(), remark: field(), reason: field() }
    })
}

fn is_there(name: &str) -> bool {
    let (container, sub) = name.split_once('|').unwrap_or((name, ""));
    let found = table::lookup(container.as_bytes());
    found.is_some_and(|spec| sub.is_empty() || table::lookup_in(spec, sub.as_bytes()).is_some())
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let there = commands().filter(|command| is_there(command.name)).count();
    let _ = write!(page, "\n{there} of {} are there.\n", commands().count());
    let mut chapter = "";
    for command in commands() {
        if command.chapter != chapter {
            chapter = command.chapter;
            let _ =
                write!(page, "\n## {chapter}\n\n| command | since | there | remark |\n|---|---|---|---|\n");
        }
        let name = command.name.replace('|', " ").to_uppercase();
        let (there, remark) = match is_there(command.name) {
            true => ("yes", command.remark.trim_start_matches('-')),
            false if command.reason == "-" => ("no", "not yet"),
            false => ("no", command.reason),
        };
        let _ = writeln!(page, "| `{name}` | {} | {there} | {remark} |", command.since);
    }
    page
}

#[test]
fn the_page_says_what_the_table_has() {
    if std::env::var_os("KORUM_WRITE").is_some() {
        std::fs::write(PAGE, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs =
        page().lines().zip(written.lines()).find(|(now, then)| now != then).map(|(now, _)| now.to_owned());
    assert!(written == page(), "COMMANDS.md is outdated, first at {differs:?}; KORUM_WRITE=1 writes it anew");
}

#[test]
fn every_command_is_on_the_page() {
    let name_of = |spec: &CommandSpec| spec.full_name;
    let flat = table::all().flat_map(|spec| {
        let own = spec.subcommands.is_empty().then_some(spec);
        own.into_iter().chain(spec.subcommands)
    });
    for name in flat.map(name_of).filter(|name| !name.starts_with("korum")) {
        assert!(
            commands().any(|command| command.name == name),
            "{name} is missing in commands_redis_7_4.txt"
        );
    }
}
