//! The command table against Redis 7.0.15: facts and whole replies, recorded in two text files.

use bytes::BytesMut;
use korum_protocol::command::{
    CommandSpec, Flags, KeyForm, KeySpec, introspect, key_positions, resolve, table,
};
use korum_protocol::resp::{Parsed, ProtocolVersion, Reply, ReplyDecoder, ReplyWriter, RequestParser};

const FACTS: &str = include_str!("commands_redis_7_0.txt");
const REPLIES: &str = include_str!("replies_redis_7_0.txt");

/// What we have and Redis 7.0 has not.
const NEWER: [&str; 14] = [
    "client|setinfo",
    "client|no-touch",
    "hexpire",
    "hpexpire",
    "hexpireat",
    "hpexpireat",
    "httl",
    "hpttl",
    "hexpiretime",
    "hpexpiretime",
    "hpersist",
    "hgetdel",
    "hgetex",
    "hsetex",
];

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

fn flat() -> impl Iterator<Item = &'static CommandSpec> {
    table::all().flat_map(|spec| std::iter::once(spec).chain(spec.subcommands))
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(",") }
}

/// A command in the form of the recorded facts.
fn facts(spec: &CommandSpec) -> String {
    let key = |key: &KeySpec| {
        let flags: Vec<_> = key.flags.names().collect();
        let place = match key.form {
            KeyForm::Range => format!("{}:{}:{}", key.first, key.last, key.step),
            KeyForm::Counted => format!("#{}", key.first),
            KeyForm::After { word, from, parts } => {
                format!("{word}>{from}:{}:{}/{parts}", key.last, key.step)
            }
            KeyForm::Unknown => "?".to_owned(),
        };
        format!("{}@{place}", flags.join("+"))
    };
    let categories: Vec<_> = spec.categories.names().map(|name| format!("@{name}")).collect();
    let keys: Vec<_> = spec.keys.iter().map(key).collect();
    let doc_flag = match (spec.deprecated, spec.is_system) {
        (Some(_), _) => "deprecated",
        (None, true) => "syscmd",
        (None, false) => "-",
    };
    [
        spec.full_name.to_owned(),
        spec.arity.to_string(),
        joined(spec.flags.names()),
        format!("{} {} {}", spec.first_key, spec.last_key, spec.key_step),
        joined(categories.iter().map(String::as_str)),
        joined(spec.tips.iter().copied()),
        joined(keys.iter().map(String::as_str)),
        spec.group.name().to_owned(),
        spec.since.to_owned(),
        doc_flag.to_owned(),
        spec.deprecated.map_or("-", |(since, _)| since).to_owned(),
    ]
    .join("; ")
}

#[test]
fn facts_are_those_of_redis() {
    for line in lines(FACTS) {
        let name = line.split("; ").next().expect("a name");
        let spec = flat().find(|spec| spec.full_name == name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(facts(spec), line);
    }
    let recorded: Vec<_> = lines(FACTS).filter_map(|line| line.split("; ").next()).collect();
    for spec in flat().filter(|spec| !spec.full_name.starts_with("korum")) {
        let name = spec.full_name;
        assert_ne!(
            recorded.contains(&name),
            NEWER.contains(&name),
            "{name}: recorded in Redis 7.0, or newer"
        );
    }
}

/// Parses an inline request and runs `use_it` on its arguments.
fn with_args<T>(request: &[u8], use_it: impl FnOnce(&korum_protocol::resp::Args) -> T) -> T {
    let line = [request, b"\r\n"].concat();
    let mut parser = RequestParser::default();
    assert_eq!(parser.parse(&line), Ok(Parsed::Request { consumed: line.len() }));
    use_it(&parser.args(&line))
}

fn answer(request: &str, version: ProtocolVersion) -> Vec<u8> {
    let mut out = BytesMut::new();
    let mut writer = ReplyWriter::new(&mut out, version);
    with_args(request.as_bytes(), |args| match resolve(args) {
        Ok(spec) => assert!(introspect::reply(spec.id, args, &mut writer), "{request} runs"),
        Err(error) => writer.error_bytes(&error.reply()),
    });
    out.to_vec()
}

#[test]
fn replies_are_those_of_redis() {
    // Redis adds a remark in prose to the key of SET, which we leave out.
    let notes = ["*8\\r\\n$5\\r\\nnotes\\r\\n", "%4\\r\\n$5\\r\\nnotes\\r\\n"];
    for line in lines(REPLIES) {
        let mut fields = line.split('\t');
        let mut field = || fields.next().expect("three fields");
        let (version, request, expected) = (field(), field(), field());
        let version = if version == "3" { ProtocolVersion::Resp3 } else { ProtocolVersion::Resp2 };
        let answered =
            answer(request, version).escape_ascii().to_string().replace("\\'", "'").replace("\\\"", "\"");
        let mut expected = expected.to_owned();
        for (with_notes, without) in notes.iter().zip(["*6\\r\\n", "%3\\r\\n"]) {
            if let Some(start) = expected.find(with_notes) {
                let end = start + expected[start..].find("$5\\r\\nflags").expect("flags follow");
                expected.replace_range(start..end, without);
            }
        }
        assert_eq!(answered, expected, "{request}");
    }
}

#[test]
fn whole_table_is_printed_in_both_versions() {
    for version in [ProtocolVersion::Resp2, ProtocolVersion::Resp3] {
        for request in
            ["COMMAND", "COMMAND DOCS", "COMMAND LIST", "COMMAND INFO", "COMMAND HELP", "COMMAND COUNT"]
        {
            let mut buffer = BytesMut::from(&answer(request, version)[..]);
            let reply = ReplyDecoder::new().decode(&mut buffer).expect("decodes").expect("is whole");
            assert!(buffer.is_empty(), "{request} writes one reply");
            let length = match reply {
                Reply::Array(values) => values.len(),
                Reply::Map(pairs) => pairs.len(),
                Reply::Integer(number) => number as usize,
                other => panic!("{request}: {other:?}"),
            };
            let expected = match request {
                "COMMAND HELP" => 21,
                "COMMAND DOCS" if version == ProtocolVersion::Resp2 => 2 * table::count(),
                _ => table::count(),
            };
            assert_eq!(length, expected, "{request}");
        }
    }
}

#[test]
fn keys_stand_where_the_table_says() {
    for (request, expected) in [
        ("GET a", &[1][..]),
        ("PING", &[]),
        ("SET a b EX 1", &[1]),
        ("MGET a b c", &[1, 2, 3]),
        ("MSET a 1 b 2", &[1, 3]),
        ("RENAME a b", &[1, 2]),
        ("LCS a b LEN", &[1, 2]),
        ("OBJECT ENCODING a", &[2]),
        ("MEMORY USAGE a SAMPLES 1", &[2]),
        ("SINTERSTORE a b c", &[1, 2, 3]),
        ("ZUNIONSTORE a 2 b c WEIGHTS 1 2", &[1, 3, 4]),
        ("GEORADIUS a 1 2 3 km STORE b STOREDIST c", &[1, 9]),
        ("GEORADIUSBYMEMBER a b 3 km STORE store", &[1, 6]),
        ("GEORADIUS a 1 2 3 km STORE", &[1]),
        ("CLUSTER KEYSLOT a", &[]),
        ("KORUM EXPLAIN a", &[]),
    ] {
        let found: Vec<usize> = with_args(request.as_bytes(), |args| {
            let spec = resolve(args).expect("resolves");
            key_positions(spec, args).expect("has its keys").collect()
        });
        assert_eq!(found, expected, "{request}");
    }
}

#[test]
fn korums_own_flags_stand_where_they_should_and_are_not_printed() {
    let with = |flag: Flags| -> Vec<_> {
        flat().filter(|spec| spec.flags.contains(flag)).map(|spec| spec.name).collect()
    };
    assert_eq!(with(Flags::SPLIT), ["mget", "mset", "del", "unlink", "exists", "touch"]);
    assert_eq!(with(Flags::ALL_NODES), ["randomkey", "keys", "scan", "dbsize", "flushdb", "flushall"]);
    assert!(flat().all(|spec| spec.flags.names().all(|name| !name.is_empty())));
}

#[test]
fn every_summary_is_one_sentence_and_every_container_helps() {
    for spec in flat() {
        assert!(!spec.summary.is_empty() && !spec.summary.ends_with('.'), "{}", spec.full_name);
        assert!(!spec.since.is_empty() && !spec.complexity.is_empty(), "{}", spec.full_name);
        assert!(spec.subcommands.is_empty() || spec.subcommands.iter().any(|sub| sub.name == "help"));
    }
}
