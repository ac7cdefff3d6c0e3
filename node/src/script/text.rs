//! Functions of `string` that could take for ever, as scripts see them.
//!
//! For: `find match gmatch gsub rep`, with the results and errors of Lua 5.1, in bounded time and memory.
//! Not here: matching (`pattern`), the other functions of `string`, which are Lua's own: each takes a time that grows
//! with its arguments.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};

use super::convert::cut;
use super::format::general;
use super::pattern::{Capture, Length, Matcher, Problem};
use super::raise;
use super::vm::{MEMORY_MAX, Watch};

/// Characters that make a text a pattern.
const SPECIAL: &[u8] = b"^$*+?.([%-";

/// What the prelude gives the host to call functions of a script by: what they raise comes through as it is.
#[derive(Default)]
pub struct Guard {
    /// Calls a function: whether it came to its end, and its values.
    call: RefCell<Option<Function>>,
    /// Indexes a table.
    index: RefCell<Option<Function>>,
}

impl Guard {
    /// Takes them.
    pub fn set(&self, call: Function, index: Function) {
        self.call.replace(Some(call));
        self.index.replace(Some(index));
    }

    fn call(&self, function: &Value, values: MultiValue) -> mlua::Result<Value> {
        let guard = self.call.borrow().clone().ok_or_else(raise::thrown)?;
        let mut words = values;
        words.push_front(function.clone());
        let mut outcome = guard.call::<MultiValue>(words)?;
        match outcome.pop_front() {
            Some(Value::Boolean(true)) => Ok(outcome.pop_front().unwrap_or(Value::Nil)),
            _ => Err(raise::thrown()),
        }
    }

    fn index(&self, table: &Table, key: Value) -> mlua::Result<Value> {
        if table.metatable().is_none() {
            return table.raw_get(key);
        }
        let index = self.index.borrow().clone().ok_or_else(raise::thrown)?;
        let words = MultiValue::from_vec(vec![Value::Table(table.clone()), key]);
        self.call(&Value::Function(index), words)
    }
}

/// The functions.
pub fn functions(lua: &Lua, watch: &Rc<Watch>, guard: &Rc<Guard>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for (name, is_find) in [("find", true), ("match", false)] {
        let watch = Rc::clone(watch);
        let search = move |lua: &Lua, words: MultiValue| search(lua, &watch, &words, is_find);
        table.raw_set(name, lua.create_function(search)?)?;
    }
    let watched = Rc::clone(watch);
    let gmatch = move |lua: &Lua, words: MultiValue| gmatch(lua, &watched, &words);
    table.raw_set("gmatch", lua.create_function(gmatch)?)?;
    let (watched, guard) = (Rc::clone(watch), Rc::clone(guard));
    let gsub = move |lua: &Lua, words: MultiValue| gsub(lua, &watched, &guard, &words);
    table.raw_set("gsub", lua.create_function(gsub)?)?;
    table.raw_set("rep", lua.create_function(|lua, words: MultiValue| rep(lua, &words))?)?;
    Ok(table)
}

/// The name of a value's type, as errors tell it.
fn type_name(value: Option<&Value>) -> &'static str {
    match value {
        None => "no value",
        Some(Value::Integer(_) | Value::Number(_)) => "number",
        Some(Value::LightUserData(_) | Value::UserData(_) | Value::Error(_)) => "userdata",
        Some(other) => other.type_name(),
    }
}

/// An argument that is a string, or a number, which is as good.
fn text_of(lua: &Lua, words: &MultiValue, number: usize) -> mlua::Result<LuaString> {
    match words.get(number - 1) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Integer(value)) => lua.create_string(general(*value as f64, 14)),
        Some(Value::Number(value)) => lua.create_string(general(*value, 14)),
        other => {
            let text = format!("string expected, got {}", type_name(other));
            Err(raise::bad_argument(lua, number, &text))
        }
    }
}

/// An argument that is a number, or a string that spells one; cut off as C cuts it.
fn number_of(lua: &Lua, words: &MultiValue, number: usize) -> mlua::Result<i64> {
    let found = match words.get(number - 1) {
        Some(Value::Integer(value)) => return Ok(*value),
        Some(Value::Number(value)) => Some(*value),
        Some(value @ Value::String(_)) => lua.coerce_number(value.clone())?,
        _ => None,
    };
    found.map(cut).ok_or_else(|| {
        let text = format!("number expected, got {}", type_name(words.get(number - 1)));
        raise::bad_argument(lua, number, &text)
    })
}

fn number_or(lua: &Lua, words: &MultiValue, number: usize, default: i64) -> mlua::Result<i64> {
    match words.get(number - 1) {
        None | Some(Value::Nil) => Ok(default),
        Some(_) => number_of(lua, words, number),
    }
}

/// Bytes of a result between two looks at the clock.
const LOOK_BYTES: usize = 1 << 20;

/// A matcher that looks at the clock, and what the clock has said.
fn matcher<'t>(
    lua: &'t Lua,
    watch: &'t Watch,
    text: &'t [u8],
    pattern: &'t [u8],
    stop: &'t Cell<Option<mlua::Error>>,
) -> Matcher<'t, impl FnMut() -> bool + 't> {
    Matcher::new(text, pattern, move || match watch.look(lua) {
        Ok(()) => true,
        Err(error) => {
            stop.set(Some(error));
            false
        }
    })
}

fn error_of(lua: &Lua, problem: Problem, stop: &Cell<Option<mlua::Error>>) -> mlua::Error {
    match problem {
        Problem::Pattern(text) => raise::at(lua, text),
        Problem::Stopped => stop.take().unwrap_or_else(|| raise::plain("the script was stopped")),
    }
}

/// A capture as a value.
fn value_of(lua: &Lua, text: &[u8], capture: Capture) -> mlua::Result<Value> {
    match capture.length {
        Length::Bytes(length) => {
            lua.create_string(&text[capture.start..capture.start + length]).map(Value::String)
        }
        Length::Position | Length::Open => Ok(Value::Number((capture.start + 1) as f64)),
    }
}

/// The captures of the last match; of one without any the whole, if `or_whole`.
fn captures<G: FnMut() -> bool>(
    matcher: &Matcher<'_, G>,
    (start, end): (usize, usize),
    or_whole: bool,
) -> Result<Vec<Capture>, Problem> {
    let count = if matcher.count() == 0 && or_whole { 1 } else { matcher.count() };
    (0..count).map(|number| matcher.capture(number, start, end)).collect()
}

/// A pattern without the `^` in front of it, and whether it had one.
fn anchored(pattern: &[u8]) -> (&[u8], bool) {
    match pattern.strip_prefix(b"^") {
        Some(rest) => (rest, true),
        None => (pattern, false),
    }
}

/// `string.find(text, pattern, from, plain)`, `string.match(text, pattern, from)`
fn search(lua: &Lua, watch: &Watch, words: &MultiValue, is_find: bool) -> mlua::Result<MultiValue> {
    let (text, pattern) = (text_of(lua, words, 1)?, text_of(lua, words, 2)?);
    let from = number_or(lua, words, 3, 1)?;
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let from = if from < 0 { from.saturating_add(text.len() as i64 + 1) } else { from };
    let from = usize::try_from(from - 1).unwrap_or(0).min(text.len());
    let is_plain = || {
        let asks = words.get(3).is_some_and(|plain| !matches!(plain, Value::Nil | Value::Boolean(false)));
        let visible = pattern.split(|&byte| byte == 0).next().unwrap_or_default();
        asks || !visible.iter().any(|byte| SPECIAL.contains(byte))
    };
    let place = |start: usize, end: usize| [Value::Integer(start as i64 + 1), Value::Integer(end as i64)];
    if is_find && is_plain() {
        let found = memchr::memmem::find(&text[from..], &pattern);
        return Ok(MultiValue::from_vec(match found {
            Some(at) => place(from + at, from + at + pattern.len()).to_vec(),
            None => vec![Value::Nil],
        }));
    }
    let stop = Cell::new(None);
    let (rest, is_anchored) = anchored(&pattern);
    let mut matcher = matcher(lua, watch, &text, rest, &stop);
    let found = matcher.find(from, is_anchored).map_err(|problem| error_of(lua, problem, &stop))?;
    let Some((start, end)) = found else { return Ok(MultiValue::from_vec(vec![Value::Nil])) };
    let parts =
        captures(&matcher, (start, end), !is_find).map_err(|problem| error_of(lua, problem, &stop))?;
    let mut values = if is_find { place(start, end).to_vec() } else { Vec::new() };
    for part in parts {
        values.push(value_of(lua, &text, part)?);
    }
    Ok(MultiValue::from_vec(values))
}

/// `string.gmatch(text, pattern)`
fn gmatch(lua: &Lua, watch: &Rc<Watch>, words: &MultiValue) -> mlua::Result<Function> {
    let (text, pattern) = (text_of(lua, words, 1)?, text_of(lua, words, 2)?);
    let (watch, next) = (Rc::clone(watch), Cell::new(0));
    lua.create_function(move |lua, _: MultiValue| {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        let stop = Cell::new(None);
        let mut matcher = matcher(lua, &watch, &text, &pattern, &stop);
        let found = matcher.find(next.get(), false).map_err(|problem| error_of(lua, problem, &stop))?;
        let Some((start, end)) = found else { return Ok(MultiValue::new()) };
        next.set(end + usize::from(end == start));
        let parts =
            captures(&matcher, (start, end), true).map_err(|problem| error_of(lua, problem, &stop))?;
        let values: mlua::Result<Vec<_>> = parts.into_iter().map(|part| value_of(lua, &text, part)).collect();
        values.map(MultiValue::from_vec)
    })
}

/// `string.gsub(text, pattern, replacement, most)`
fn gsub(lua: &Lua, watch: &Watch, guard: &Guard, words: &MultiValue) -> mlua::Result<(LuaString, i64)> {
    let (text, pattern) = (text_of(lua, words, 1)?, text_of(lua, words, 2)?);
    let most = number_or(lua, words, 4, text.as_bytes().len() as i64 + 1)?;
    // As C cuts it.
    let most = i64::from(most as i32);
    let replacement = match words.get(2) {
        Some(Value::String(_) | Value::Integer(_) | Value::Number(_)) => {
            Replacement::Text(text_of(lua, words, 3)?)
        }
        Some(Value::Table(table)) => Replacement::Table(table),
        Some(function @ Value::Function(_)) => Replacement::Function(function),
        _ => return Err(raise::bad_argument(lua, 3, "string/function/table expected")),
    };
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (rest, is_anchored) = anchored(&pattern);
    let stop = Cell::new(None);
    let mut matcher = matcher(lua, watch, &text, rest, &stop);
    let (mut out, mut at, mut count) = (Vec::with_capacity(text.len()), 0, 0);
    let mut looked = 0;
    while count < most {
        // Long replacements take time, too.
        if out.len() - looked > LOOK_BYTES {
            looked = out.len();
            watch.look(lua)?;
        }
        let end = matcher.match_at(at).map_err(|problem| error_of(lua, problem, &stop))?;
        if let Some(end) = end {
            count += 1;
            let parts = match &replacement {
                Replacement::Text(_) => None,
                Replacement::Function(_) => Some(captures(&matcher, (at, end), true)),
                Replacement::Table(_) => Some(matcher.capture(0, at, end).map(|part| vec![part])),
            };
            let parts = parts.transpose().map_err(|problem| error_of(lua, problem, &stop))?;
            let value = |part| value_of(lua, &text, part);
            let new = match (&replacement, parts) {
                (Replacement::Text(news), _) => {
                    let added = expand(&news.as_bytes(), &text, &matcher, (at, end), &mut out);
                    added.map_err(|problem| error_of(lua, problem, &stop))?;
                    None
                }
                (Replacement::Function(function), Some(parts)) => {
                    let values: mlua::Result<Vec<_>> = parts.into_iter().map(value).collect();
                    Some(guard.call(function, MultiValue::from_vec(values?))?)
                }
                (Replacement::Table(table), Some(parts)) => Some(guard.index(table, value(parts[0])?)?),
                (Replacement::Function(_) | Replacement::Table(_), None) => None,
            };
            match new {
                None => {}
                Some(Value::Nil | Value::Boolean(false)) => out.extend_from_slice(&text[at..end]),
                Some(Value::String(new)) => out.extend_from_slice(&new.as_bytes()),
                Some(Value::Integer(new)) => out.extend_from_slice(general(new as f64, 14).as_bytes()),
                Some(Value::Number(new)) => out.extend_from_slice(general(new, 14).as_bytes()),
                Some(other) => {
                    let name = type_name(Some(&other));
                    return Err(raise::at(lua, format!("invalid replacement value (a {name})")));
                }
            }
        }
        match end {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                out.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if out.len() > MEMORY_MAX {
            return Err(raise::no_memory());
        }
        if is_anchored {
            break;
        }
    }
    out.extend_from_slice(&text[at..]);
    Ok((lua.create_string(&out)?, count))
}

enum Replacement<'v> {
    Text(LuaString),
    Table(&'v Table),
    Function(&'v Value),
}

/// Appends a replacement with its `%1` and kin.
fn expand<G: FnMut() -> bool>(
    news: &[u8],
    text: &[u8],
    matcher: &Matcher<'_, G>,
    (start, end): (usize, usize),
    out: &mut Vec<u8>,
) -> Result<(), Problem> {
    let mut at = 0;
    while at < news.len() {
        let plain = memchr::memchr(b'%', &news[at..]).unwrap_or(news.len() - at);
        out.extend_from_slice(&news[at..at + plain]);
        at += plain;
        if at < news.len() {
            at += 1;
            match news.get(at).copied().unwrap_or(0) {
                b'0' => out.extend_from_slice(&text[start..end]),
                digit @ b'1'..=b'9' => {
                    let part = matcher.capture(usize::from(digit - b'1'), start, end)?;
                    match part.length {
                        Length::Bytes(length) => {
                            out.extend_from_slice(&text[part.start..part.start + length])
                        }
                        Length::Position | Length::Open => {
                            out.extend_from_slice((part.start + 1).to_string().as_bytes());
                        }
                    }
                }
                other => out.push(other),
            }
            // One replacement may name a long capture any number of times.
            if out.len() > MEMORY_MAX {
                return Ok(());
            }
        }
        at += 1;
    }
    Ok(())
}

/// `string.rep(text, count)`
fn rep(lua: &Lua, words: &MultiValue) -> mlua::Result<LuaString> {
    let text = text_of(lua, words, 1)?;
    let text = text.as_bytes();
    // As C cuts it.
    let count = usize::try_from(number_of(lua, words, 2)? as i32).unwrap_or(0);
    if text.len().saturating_mul(count) > MEMORY_MAX {
        return Err(raise::no_memory());
    }
    lua.create_string(text.repeat(count))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
