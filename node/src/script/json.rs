//! `cjson`: JSON for scripts, with the rules and the errors of lua-cjson.
//!
//! For: encoding values and decoding texts, both bounded in depth, without taking stack for it.
//! Not here: settings of the library: they are what they are.

use std::rc::Rc;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};

use super::format::general;
use super::raise;
use super::vm::Watch;

/// How deep tables and texts may nest, as in lua-cjson.
const DEPTH_MAX: usize = 1000;
/// An array with more than so many elements of which most are missing is refused.
const SPARSE_SAFE: usize = 10;
const SPARSE_RATIO: usize = 2;
/// Bytes of an encoded text.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// Values between two looks at the clock.
const VALUES: usize = 4096;

/// `encode` and `decode`.
pub fn functions(lua: &Lua, watch: &Rc<Watch>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let (next, watched) = (lua.globals().get::<Function>("next")?, Rc::clone(watch));
    let encoder = move |lua: &Lua, words: MultiValue| {
        let value = only(lua, words)?;
        let mut encoder = Encoder { lua, watch: &watched, next: &next, out: Vec::new(), values: 0 };
        encoder.encode(value)?;
        lua.create_string(&encoder.out)
    };
    table.raw_set("encode", lua.create_function(encoder)?)?;
    let watched = Rc::clone(watch);
    let decoder = move |lua: &Lua, words: MultiValue| {
        let text = match only(lua, words)? {
            Value::String(text) => text,
            Value::Integer(number) => lua.create_string(general(number as f64, 14))?,
            Value::Number(number) => lua.create_string(general(number, 14))?,
            other => {
                let text = format!("string expected, got {}", other.type_name());
                return Err(raise::bad_argument(lua, 1, &text));
            }
        };
        let bytes = text.as_bytes();
        let decoded = Decoder { lua, watch: &watched, text: &bytes, at: 0, values: 0 }.document()?;
        decoded.map_err(|problem| raise::at(lua, problem))
    };
    table.raw_set("decode", lua.create_function(decoder)?)?;
    Ok(table)
}

/// The only argument.
fn only(lua: &Lua, mut words: MultiValue) -> mlua::Result<Value> {
    match words.pop_front() {
        Some(value) if words.is_empty() => Ok(value),
        _ => Err(raise::bad_argument(lua, 1, "expected 1 argument")),
    }
}

struct Encoder<'l> {
    lua: &'l Lua,
    watch: &'l Watch,
    /// Lua's `next`.
    next: &'l Function,
    out: Vec<u8>,
    values: usize,
}

/// A table that is being encoded.
enum Open {
    Array { table: Table, at: usize, length: usize },
    Object { table: Table, last: Value },
}

impl Encoder<'_> {
    fn encode(&mut self, value: Value) -> mlua::Result<()> {
        let mut open: Vec<Open> = Vec::new();
        self.begin(value, &mut open)?;
        while let Some(mut top) = open.pop() {
            let value = match &mut top {
                Open::Array { at, length, .. } if at == length => {
                    self.out.push(b']');
                    continue;
                }
                Open::Array { table, at, .. } => {
                    if *at > 0 {
                        self.out.push(b',');
                    }
                    *at += 1;
                    table.raw_get(*at)?
                }
                Open::Object { table, last } => {
                    let pair = self.next.call::<(Value, Value)>((&*table, &*last))?;
                    if pair.0.is_nil() {
                        self.out.push(b'}');
                        continue;
                    }
                    if !last.is_nil() {
                        self.out.push(b',');
                    }
                    self.key(&pair.0)?;
                    *last = pair.0;
                    pair.1
                }
            };
            open.push(top);
            self.begin(value, &mut open)?;
        }
        Ok(())
    }

    /// Encodes a value that is no table, or opens one.
    fn begin(&mut self, value: Value, open: &mut Vec<Open>) -> mlua::Result<()> {
        self.values += 1;
        if self.values.is_multiple_of(VALUES) {
            self.watch.look(self.lua)?;
        }
        if self.out.len() > TEXT_BYTES_MAX {
            return Err(raise::at(self.lua, "Cannot serialise: the text is too long"));
        }
        let out = &mut self.out;
        match value {
            Value::Nil => out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => out.extend_from_slice(b"null"),
            Value::Boolean(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Value::Integer(number) => out.extend_from_slice(general(number as f64, 14).as_bytes()),
            Value::Number(number) if !number.is_finite() => {
                return Err(raise::at(self.lua, "Cannot serialise number: must not be NaN or Inf"));
            }
            Value::Number(number) => out.extend_from_slice(general(number, 14).as_bytes()),
            Value::String(text) => encode_string(&text.as_bytes(), out),
            Value::Table(table) => {
                let depth = open.len() + 1;
                if depth > DEPTH_MAX {
                    let text = format!("Cannot serialise, excessive nesting ({depth})");
                    return Err(raise::at(self.lua, text));
                }
                match array_length(&table).map_err(|problem| raise::at(self.lua, problem))? {
                    Some(length) => {
                        out.push(b'[');
                        open.push(Open::Array { table, at: 0, length });
                    }
                    None => {
                        out.push(b'{');
                        open.push(Open::Object { table, last: Value::Nil });
                    }
                }
            }
            other => {
                let text = format!("Cannot serialise {}: type not supported", other.type_name());
                return Err(raise::at(self.lua, text));
            }
        }
        Ok(())
    }

    fn key(&mut self, key: &Value) -> mlua::Result<()> {
        match key {
            Value::String(text) => encode_string(&text.as_bytes(), &mut self.out),
            Value::Integer(number) => {
                self.out.extend_from_slice(format!("\"{}\"", general(*number as f64, 14)).as_bytes());
            }
            Value::Number(number) => {
                self.out.extend_from_slice(format!("\"{}\"", general(*number, 14)).as_bytes());
            }
            _ => {
                let text = "Cannot serialise table: table key must be a number or string";
                return Err(raise::at(self.lua, text));
            }
        }
        self.out.push(b':');
        Ok(())
    }
}

/// The length of a table whose keys are all positive whole numbers; `None` for any other, and for an empty one.
fn array_length(table: &Table) -> Result<Option<usize>, String> {
    let (mut most, mut count) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair.map_err(|error| error.to_string())?;
        match key {
            Value::Integer(number) if number > 0 => {
                most = most.max(number as usize);
                count += 1;
            }
            _ => return Ok(None),
        }
    }
    if most > SPARSE_SAFE && most > count * SPARSE_RATIO {
        return Err("Cannot serialise table: excessively sparse array".to_owned());
    }
    Ok((most > 0).then_some(most))
}

fn encode_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' | b'/' => out.extend_from_slice(&[b'\\', byte]),
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            13 => out.extend_from_slice(b"\\r"),
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

struct Decoder<'l, 't> {
    lua: &'l Lua,
    watch: &'l Watch,
    text: &'t [u8],
    at: usize,
    values: usize,
}

/// What stands next in a text.
enum Token {
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    Text(Vec<u8>),
    Number(f64),
    Word(Value),
    End,
    Invalid(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Self::Open(b'{') => "T_OBJ_BEGIN",
            Self::Open(_) => "T_ARR_BEGIN",
            Self::Close(b'}') => "T_OBJ_END",
            Self::Close(_) => "T_ARR_END",
            Self::Comma => "T_COMMA",
            Self::Colon => "T_COLON",
            Self::Text(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Word(Value::Boolean(_)) => "T_BOOLEAN",
            Self::Word(_) => "T_NULL",
            Self::End => "T_END",
            Self::Invalid(why) => why,
        }
    }
}

/// A value, or what is wrong; the outer error is the interpreter's.
type Decoded = mlua::Result<Result<Value, String>>;

/// A table that is being decoded.
enum Unfinished {
    Array { table: Table, length: usize },
    Object { table: Table, key: LuaString },
}

impl Decoder<'_, '_> {
    fn document(&mut self) -> Decoded {
        let mut open: Vec<Unfinished> = Vec::new();
        let (mut token, mut at) = self.token();
        loop {
            // A value stands here.
            self.values += 1;
            if self.values.is_multiple_of(VALUES) {
                self.watch.look(self.lua)?;
            }
            let mut value = match token {
                Token::Text(text) => Value::String(self.lua.create_string(text)?),
                Token::Number(number) => Value::Number(number),
                Token::Word(value) => value,
                Token::Open(_) if open.len() >= DEPTH_MAX => {
                    let nested = open.len() + 1;
                    return Ok(Err(format!(
                        "Found too many nested data structures ({nested}) at character {at}"
                    )));
                }
                Token::Open(kind) => {
                    let table = self.lua.create_table()?;
                    let (first, place) = self.token();
                    match (kind, first) {
                        (b'{', Token::Close(b'}')) | (b'[', Token::Close(b']')) => Value::Table(table),
                        (b'{', first) => {
                            let key = match self.key(first, place)? {
                                Ok(key) => key,
                                Err(problem) => return Ok(Err(problem)),
                            };
                            open.push(Unfinished::Object { table, key });
                            (token, at) = self.token();
                            continue;
                        }
                        (_, first) => {
                            open.push(Unfinished::Array { table, length: 0 });
                            (token, at) = (first, place);
                            continue;
                        }
                    }
                }
                other => return Ok(Err(expected("value", &other, at))),
            };
            // It belongs into the innermost table, which may end with it, and so on.
            loop {
                let (next, place) = self.token();
                let Some(top) = open.last_mut() else {
                    return Ok(match next {
                        Token::End => Ok(value),
                        other => Err(expected("the end", &other, place)),
                    });
                };
                match top {
                    Unfinished::Array { table, length } => {
                        *length += 1;
                        table.raw_set(*length, value)?;
                        match next {
                            Token::Comma => break,
                            Token::Close(b']') => value = Value::Table(table.clone()),
                            other => return Ok(Err(expected("comma or array end", &other, place))),
                        }
                    }
                    Unfinished::Object { table, key } => {
                        table.raw_set(&*key, value)?;
                        match next {
                            Token::Comma => {
                                let (token, place) = self.token();
                                match self.key(token, place)? {
                                    Ok(next) => *key = next,
                                    Err(problem) => return Ok(Err(problem)),
                                }
                                break;
                            }
                            Token::Close(b'}') => value = Value::Table(table.clone()),
                            other => return Ok(Err(expected("comma or object end", &other, place))),
                        }
                    }
                }
                open.pop();
            }
            (token, at) = self.token();
        }
    }

    /// A key, whose token was just read, and the colon behind it.
    fn key(&mut self, token: Token, at: usize) -> mlua::Result<Result<LuaString, String>> {
        let Token::Text(key) = token else { return Ok(Err(expected("object key string", &token, at))) };
        let key = self.lua.create_string(key)?;
        let (colon, place) = self.token();
        Ok(if matches!(colon, Token::Colon) { Ok(key) } else { Err(expected("colon", &colon, place)) })
    }

    /// The next token, and where it stands, counted from 1.
    fn token(&mut self) -> (Token, usize) {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        let place = self.at + 1;
        let Some(&byte) = self.text.get(self.at) else { return (Token::End, place) };
        self.at += 1;
        let token = match byte {
            b'{' | b'[' => Token::Open(byte),
            b'}' | b']' => Token::Close(byte),
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.word(),
        };
        (token, place)
    }

    fn word(&mut self) -> Token {
        let rest = &self.text[self.at - 1..];
        let words = [("true", Value::Boolean(true)), ("false", Value::Boolean(false)), ("null", Value::NULL)];
        for (word, value) in words {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len() - 1;
                return Token::Word(value);
            }
        }
        Token::Invalid("invalid token")
    }

    fn number(&mut self) -> Token {
        let start = self.at - 1;
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
        while self.text.get(self.at).is_some_and(is_part) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        let digits = text.trim_start_matches('-');
        let is_octal = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        match text.parse() {
            Ok(number) if !is_octal => Token::Number(number),
            Ok(_) | Err(_) => Token::Invalid("invalid number"),
        }
    }

    fn string(&mut self) -> Token {
        let mut out = Vec::new();
        loop {
            let Some(&byte) = self.text.get(self.at) else {
                return Token::Invalid("unexpected end of string");
            };
            self.at += 1;
            match byte {
                b'"' => return Token::Text(out),
                b'\\' => {
                    let Some(&escape) = self.text.get(self.at) else {
                        return Token::Invalid("unexpected end of string");
                    };
                    self.at += 1;
                    match escape {
                        b'"' | b'\\' | b'/' => out.push(escape),
                        b'b' => out.push(8),
                        b'f' => out.push(12),
                        b'n' => out.push(10),
                        b'r' => out.push(13),
                        b't' => out.push(9),
                        b'u' => match self.unicode() {
                            Some(letter) => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
                            None => return Token::Invalid("invalid unicode escape code"),
                        },
                        _ => return Token::Invalid("invalid escape code"),
                    }
                }
                0..32 => return Token::Invalid("invalid token"),
                _ => out.push(byte),
            }
        }
    }

    fn unicode(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        if self.text.get(self.at..self.at + 2)? != b"\\u" {
            return None;
        }
        self.at += 2;
        let second = self.four_digits()?;
        let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
        char::from_u32(0x10000 + ((first - 0xD800) << 10) + low)
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |number, &digit| Some(number << 4 | char::from(digit).to_digit(16)?))
    }
}

fn expected(what: &str, found: &Token, at: usize) -> String {
    format!("Expected {what} but found {} at character {at}", found.name())
}
