//! Headers as Redis 7.0 reads them, and what changes make of libraries.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn library(name: &str, functions: &[&str]) -> Library {
    let function =
        |name: &&str| Function { name: Bytes::from((*name).to_owned()), description: None, flags: 0 };
    Library {
        name: Bytes::from(name.to_owned()),
        code: Bytes::from(format!("#!lua name={name}\n")),
        functions: functions.iter().map(function).collect(),
        loaded: 0,
    }
}

fn load(name: &str, functions: &[&str], replaces: bool) -> Change {
    Change::Load { library: library(name, functions), replaces }
}

fn names(libraries: &Libraries) -> Vec<&str> {
    libraries.list.iter().map(|library| std::str::from_utf8(&library.name).unwrap()).collect()
}

#[test]
fn the_first_line_is_read_as_redis_reads_it() {
    for (code, outcome) in [
        ("", "ERR Missing library metadata"),
        ("x", "ERR Missing library metadata"),
        ("#!lua", "ERR Invalid library metadata"),
        ("#!lua name=a \"x\n", "ERR Invalid library metadata"),
        ("#!lua\n", "ERR Library name was not given"),
        (
            "#!lua name=\n",
            "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        ),
        (
            "#!lua name=a-b\n",
            "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        ),
        ("#!js name=a\n", "ERR Engine 'js' not found"),
        ("#! name=a\n", "ERR Engine '' not found"),
        ("#!lua name=a name=b\n", "ERR Invalid metadata value, name argument was given multiple times"),
        ("#!lua foo=1\n", "ERR Invalid metadata value given: foo=1"),
        ("#!lua name=a\n", "a"),
        ("#!lua name=\"a\"\nx", "a"),
        ("#!LUA   NAME='a_1' \r\nx", "a_1"),
        (
            "#!lua name=\"\\x61\\n\"\nx",
            "ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        ),
        ("#!lua name=\"\\x61b\"\nx", "ab"),
    ] {
        let found = read_header(code.as_bytes());
        let found = found.map(|(name, _)| String::from_utf8(name.to_vec()).unwrap());
        assert_eq!(found.unwrap_or_else(|text| text), outcome, "{code:?}");
    }
    assert_eq!(read_header(b"#!lua name=a\nreturn 1").unwrap().1, b"\nreturn 1");
}

#[test]
fn libraries_come_are_replaced_and_go() {
    let none = Libraries::default();
    let one = none.changed(load("a", &["f", "g"], false), 1).unwrap();
    assert_eq!((one.version, names(&one)), (1, vec!["a"]));
    let refused = |libraries: &Libraries, change| libraries.changed(change, 9).unwrap_err();
    assert_eq!(refused(&one, load("a", &["h"], false)), "ERR Library 'a' already exists");
    assert_eq!(refused(&one, load("b", &["F"], false)), "ERR Function F already exists");
    let replaced = one.changed(load("a", &["h"], true), 2).unwrap();
    assert_eq!(replaced.list[0].functions.len(), 1);
    let two = replaced.changed(load("b", &["f"], true), 3).unwrap();
    assert_eq!(names(&two), ["a", "b"]);
    assert_eq!(refused(&two, load("a", &["f"], true)), "ERR Function f already exists");
    assert_eq!(refused(&two, Change::Delete("A".into())), "ERR Library not found");
    assert_eq!(names(&two.changed(Change::Delete("a".into()), 4).unwrap()), ["b"]);
    assert_eq!(names(&two.changed(Change::Flush, 5).unwrap()), [""; 0]);
}

#[test]
fn restored_libraries_follow_the_policy() {
    let there = Libraries { version: 1, list: vec![library("a", &["f"]), library("b", &["g"])] };
    let restore = |list: Vec<Library>, policy| there.changed(Change::Restore { libraries: list, policy }, 2);
    let list = |outcome: Result<Libraries, String>| {
        outcome.map(|libraries| names(&libraries).join(" ")).unwrap_or_else(|text| text)
    };
    let (same, new) = (|| vec![library("a", &["f"])], || vec![library("c", &["h"])]);
    assert_eq!(list(restore(same(), Policy::Append)), "ERR Library a already exists");
    assert_eq!(list(restore(new(), Policy::Append)), "a b c");
    assert_eq!(list(restore(same(), Policy::Replace)), "b a");
    assert_eq!(list(restore(vec![library("a", &["g"])], Policy::Replace)), "ERR Function g already exists");
    assert_eq!(list(restore(new(), Policy::Flush)), "c");
}

#[test]
fn all_code_together_is_bounded() {
    let mut large = library("a", &["f"]);
    large.code = vec![b' '; CODE_BYTES_MAX - 4].into();
    let there = Libraries::default().changed(Change::Load { library: large, replaces: false }, 1).unwrap();
    assert_eq!(there.changed(load("b", &["g"], false), 2).unwrap_err(), TOO_LONG);
}

proptest! {
    #[test]
    fn changes_and_libraries_read_back(name: Vec<u8>, code: Vec<u8>, flags: u8, replaces: bool, version: u64) {
        let functions = vec![Function { name: name.clone().into(), description: Some(code.clone().into()), flags }];
        let library = Library { name: name.into(), code: code.into(), functions, loaded: version };
        let libraries = Libraries { version, list: vec![library.clone()] };
        prop_assert_eq!(Libraries::decode(&libraries.encode()), Some(libraries.clone()));
        let change = Change::Load { library, replaces };
        prop_assert_eq!(Change::decode(&change.encode()), Some(change.clone()));
        let change = Change::Restore { libraries: libraries.list, policy: Policy::Replace };
        prop_assert_eq!(Change::decode(&change.encode()), Some(change.clone()));
    }

    #[test]
    fn no_first_line_is_too_odd(code: Vec<u8>) {
        let _ = read_header(&code);
        let _ = read_header(&[b"#!lua ", &code[..], b"\n"].concat());
        let _ = Change::decode(&code);
        let _ = Libraries::decode(&code);
    }
}
