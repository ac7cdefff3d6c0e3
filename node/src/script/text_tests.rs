//! The same results and errors as the functions of Lua's own library, on anything.

use std::rc::Rc;
use std::time::Duration;

use mlua::{Error, Function, Lua, LuaString, MultiValue, Table, Value};
use proptest::prelude::*;

use super::super::vm::Watch;
use super::{Guard, functions, raise};

/// Lua's functions, and those of this room.
struct Both {
    lua: Lua,
    native: Table,
    own: Table,
    watch: Rc<Watch>,
}

impl Both {
    fn new() -> Self {
        let lua = Lua::new();
        let (watch, guard) = (Rc::new(Watch::default()), Rc::new(Guard::default()));
        watch.begin_for_test(Duration::from_secs(60));
        let own = functions(&lua, &watch, &guard).unwrap();
        let call = lua.globals().get("pcall").unwrap();
        guard.set(call, lua.load("return function(t, k) return t[k] end").eval().unwrap());
        let native = lua.globals().get("string").unwrap();
        Self { lua, native, own, watch }
    }

    fn text(&self, bytes: &[u8]) -> Value {
        Value::String(self.lua.create_string(bytes).unwrap())
    }

    /// What both give for these arguments.
    fn call(&self, name: &str, words: &[Value]) -> (String, String) {
        let one = |table: &Table| {
            let function: Function = table.get(name).unwrap();
            shown(function.call::<MultiValue>(MultiValue::from_vec(words.to_vec())))
        };
        (one(&self.native), one(&self.own))
    }

    /// All that `gmatch` finds, up to ten.
    fn all(&self, words: &[Value]) -> (String, String) {
        let one = |table: &Table| {
            let gmatch: Function = table.get("gmatch").unwrap();
            let next: Function = match gmatch.call(MultiValue::from_vec(words.to_vec())) {
                Ok(next) => next,
                Err(error) => return shown(Err(error)),
            };
            let found: Vec<String> = (0..10).map(|_| shown(next.call::<MultiValue>(()))).collect();
            found.join("; ")
        };
        (one(&self.native), one(&self.own))
    }
}

fn shown(outcome: mlua::Result<MultiValue>) -> String {
    match outcome {
        Ok(values) => values.iter().map(show).collect::<Vec<_>>().join(", "),
        Err(Error::RuntimeError(text)) => format!("error: {}", text.lines().next().unwrap_or_default()),
        Err(error) => format!("error: {}", raise::read(&error).0),
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{:?}", text.as_bytes().escape_ascii().to_string()),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Patterns, most of them good.
fn pattern() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "a", "b", "c", ".", "%a", "%d", "%s", "%W", "%z", "[ab]", "[^a]", "[a-c]", "[%d-]", "[]]", "[^]a]",
        "[a%]]", "(", ")", "(a", "b)", "()", "(.-)", "(b*)", "*", "+", "-", "?", "*", "?", "%1", "%2", "%0",
        "%bab", "%b()", "%f[a]", "%f[^b]", "%f", "%b", "^", "$", "%", "[", "]", "[a", "[a-", "%-", "%.",
        "%%", "\0",
    ]);
    prop::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat().into_bytes())
}

fn subject() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"aaabbbcABC()1 -.]%\0\xff\n".to_vec());
    prop::collection::vec(byte, 0..14)
}

/// What stands for a match.
fn replacement() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "'x'",
        "'%1'",
        "'<%0>'",
        "'%2%1'",
        "'%'",
        "'%%'",
        "'%9'",
        "''",
        "7",
        "true",
        "nil",
        "{}",
        "{a = 'A', b = 1.5, c = false, [1] = 'one'}",
        "{a = {}}",
        "setmetatable({}, {__index = function(_, k) return k .. '!' end})",
        "function(...) return select('#', ...) .. tostring((...)) end",
        "function() end",
        "function() return false end",
        "function(a) return a == 'a' and {} end",
        "function() error('boom', 0) end",
        "tostring",
        "type",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn finds_and_matches_what_lua_does(
        text in subject(), pattern in pattern(), from in prop::option::of(-17_i64..17), plain: bool,
    ) {
        let both = Both::new();
        let mut words = vec![both.text(&text), both.text(&pattern)];
        words.push(from.map_or(Value::Nil, Value::Integer));
        for name in ["find", "match"] {
            let (native, own) = both.call(name, &words);
            prop_assert_eq!(native, own, "{} {:?} {:?} {:?}", name, text, pattern, from);
        }
        words.push(Value::Boolean(plain));
        let (native, own) = both.call("find", &words);
        prop_assert_eq!(native, own);
        let (native, own) = both.all(&words[..2]);
        prop_assert_eq!(native, own, "gmatch {:?} {:?}", text, pattern);
    }

    #[test]
    fn replaces_what_lua_does(
        text in subject(), pattern in pattern(), new in replacement(), most in prop::option::of(-2_i64..5),
    ) {
        let both = Both::new();
        let new: Value = both.lua.load(format!("return {new}")).eval().unwrap();
        let words =
            [both.text(&text), both.text(&pattern), new.clone(), most.map_or(Value::Nil, Value::Integer)];
        let (native, own) = both.call("gsub", &words);
        // What a function raises comes through the prelude, which is not here.
        let is_through = own == "error: an error of the script" && native == "error: boom";
        prop_assert!(native == own || is_through, "{native} {own} {:?} {:?} {:?}", text, pattern, new);
    }

    #[test]
    fn repeats_as_lua_does(text in subject(), count in -3_i64..9) {
        let both = Both::new();
        let (native, own) = both.call("rep", &[both.text(&text), Value::Integer(count)]);
        prop_assert_eq!(native, own);
    }
}

#[test]
fn arguments_are_judged_as_lua_judges_them() {
    let both = Both::new();
    let values = [
        Value::Nil,
        Value::Boolean(true),
        Value::Integer(12),
        Value::Number(1.5),
        Value::Number(1e20),
        Value::Table(both.lua.create_table().unwrap()),
        both.text(b"1"),
        both.text(b" 0x1 "),
        both.text(b"a1a1"),
    ];
    for name in ["find", "match", "gsub", "rep", "gmatch"] {
        let (native, own) = both.call(name, &[]);
        assert_eq!(native, own, "{name}");
        for a in &values {
            let (native, own) = both.call(name, std::slice::from_ref(a));
            assert_eq!(native, own, "{name} {a:?}");
            for b in &values {
                let is_huge = name == "rep" && matches!(b, Value::Number(number) if *number > 1e9);
                if name == "gmatch" || is_huge {
                    continue;
                }
                let words = [a.clone(), b.clone()];
                let (native, own) = both.call(name, &words);
                assert_eq!(native, own, "{name} {a:?} {b:?}");
                for c in &values {
                    for d in [Value::Nil, Value::Integer(1), both.text(b"x")] {
                        let words = [a.clone(), b.clone(), c.clone(), d];
                        let (native, own) = both.call(name, &words);
                        assert_eq!(native, own, "{name} {words:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn many_captures_and_long_texts() {
    let both = Both::new();
    let long = b"ab".repeat(5_000);
    for pattern in
        [&b"(".repeat(40)[..], &b"()".repeat(32), &b"()".repeat(33), b"a.-b$", b"(a)(b)%1%2", b"%b\0a"]
    {
        let words = [both.text(&long), both.text(pattern)];
        for name in ["find", "match"] {
            let (native, own) = both.call(name, &words);
            assert_eq!(native, own, "{name} {pattern:?}");
        }
    }
    let own: Function = both.own.get("rep").unwrap();
    let huge = own.call::<LuaString>((both.text(b"xy"), 1_000_000_000));
    assert_eq!(raise::read(&huge.unwrap_err()).0, "not enough memory");
    assert_eq!(own.call::<LuaString>((both.text(b""), 2_000_000_000)).unwrap().as_bytes().len(), 0);
}

#[test]
fn a_search_that_goes_back_and_forth_is_stopped() {
    let both = Both::new();
    both.watch.begin_for_test(Duration::from_millis(20));
    let find: Function = both.own.get("find").unwrap();
    let (text, pattern) = ("a".repeat(40), "a?".repeat(40) + &"a".repeat(40) + "b");
    let error = find.call::<MultiValue>((text, pattern)).unwrap_err();
    assert!(raise::read(&error).0.contains("the script was stopped"), "{error}");
    let error = find.call::<MultiValue>(("a".repeat(100_000), ".-.-.-b")).unwrap_err();
    assert!(raise::read(&error).0.contains("the script was stopped"), "{error}");
}
