//! `cjson`: JSON for scripts, with the rules and the errors of lua-cjson.
//!
//! For: encoding values and decoding texts, both bounded in depth.
//! Not here: settings of the library: they are what they are.

use mlua::{Lua, LuaString, Table, Value};

use super::format::general;
use super::raise;

/// How deep tables and texts may nest: lua-cjson goes to 1000, which would take too much of a thread's stack.
const DEPTH_MAX: usize = 128;
/// An array with more than so many elements of which most are missing is refused.
const SPARSE_SAFE: usize = 10;
const SPARSE_RATIO: usize = 2;
/// Bytes of an encoded text.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// `encode` and `decode`.
pub fn functions(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let encoder = |lua: &Lua, value: Value| {
        let mut out = Vec::new();
        encode(&value, &mut out, 0).map_err(|problem| raise::at(lua, problem))?;
        lua.create_string(&out)
    };
    table.raw_set("encode", lua.create_function(encoder)?)?;
    let decoder = |lua: &Lua, text: LuaString| {
        let bytes = text.as_bytes();
        let decoded = Decoder { lua, text: &bytes, at: 0 }.document()?;
        decoded.map_err(|problem| raise::at(lua, problem))
    };
    table.raw_set("decode", lua.create_function(decoder)?)?;
    Ok(table)
}

fn encode(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<(), String> {
    if out.len() > TEXT_BYTES_MAX {
        return Err("Cannot serialise: the text is too long".to_owned());
    }
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::LightUserData(pointer) if pointer.0.is_null() => out.extend_from_slice(b"null"),
        Value::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Integer(number) => out.extend_from_slice(general(*number as f64, 14).as_bytes()),
        Value::Number(number) if !number.is_finite() => {
            return Err("Cannot serialise number: must not be NaN or Inf".to_owned());
        }
        Value::Number(number) => out.extend_from_slice(general(*number, 14).as_bytes()),
        Value::String(text) => encode_string(&text.as_bytes(), out),
        Value::Table(table) => return encode_table(table, out, depth + 1),
        other => return Err(format!("Cannot serialise {}: type not supported", other.type_name())),
    }
    Ok(())
}

fn encode_table(table: &Table, out: &mut Vec<u8>, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("Cannot serialise, excessive depth ({depth})"));
    }
    if let Some(length) = array_length(table)? {
        out.push(b'[');
        for at in 1..=length {
            if at > 1 {
                out.push(b',');
            }
            encode(&table.raw_get(at).unwrap_or(Value::Nil), out, depth)?;
        }
        out.push(b']');
        return Ok(());
    }
    out.push(b'{');
    let mut is_first = true;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        match key {
            Value::String(text) => encode_string(&text.as_bytes(), out),
            Value::Integer(number) => {
                out.extend_from_slice(format!("\"{}\"", general(number as f64, 14)).as_bytes())
            }
            Value::Number(number) => out.extend_from_slice(format!("\"{}\"", general(number, 14)).as_bytes()),
            _ => return Err("Cannot serialise table: table key must be a number or string".to_owned()),
        }
        out.push(b':');
        encode(&value, out, depth)?;
    }
    out.push(b'}');
    Ok(())
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
    text: &'t [u8],
    at: usize,
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

impl Decoder<'_, '_> {
    fn document(&mut self) -> Decoded {
        let value = match self.value(0)? {
            Ok(value) => value,
            Err(problem) => return Ok(Err(problem)),
        };
        let (token, at) = self.token();
        Ok(if matches!(token, Token::End) { Ok(value) } else { Err(expected("the end", &token, at)) })
    }

    fn value(&mut self, depth: usize) -> Decoded {
        let (token, at) = self.token();
        self.value_of(token, at, depth)
    }

    fn value_of(&mut self, token: Token, at: usize, depth: usize) -> Decoded {
        Ok(Ok(match token {
            Token::Text(text) => Value::String(self.lua.create_string(text)?),
            Token::Number(number) => Value::Number(number),
            Token::Word(value) => value,
            Token::Open(_) if depth >= DEPTH_MAX => {
                let nested = depth + 1;
                return Ok(Err(format!(
                    "Found too many nested data structures ({nested}) at character {at}"
                )));
            }
            Token::Open(b'{') => return self.object(depth + 1),
            Token::Open(_) => return self.array(depth + 1),
            other => return Ok(Err(expected("value", &other, at))),
        }))
    }

    fn array(&mut self, depth: usize) -> Decoded {
        let table = self.lua.create_table()?;
        let (mut token, mut at) = self.token();
        if matches!(token, Token::Close(b']')) {
            return Ok(Ok(Value::Table(table)));
        }
        for index in 1.. {
            match self.value_of(token, at, depth)? {
                Ok(value) => table.raw_set(index, value)?,
                Err(problem) => return Ok(Err(problem)),
            }
            (token, at) = self.token();
            match token {
                Token::Close(b']') => break,
                Token::Comma => (token, at) = self.token(),
                other => return Ok(Err(expected("comma or array end", &other, at))),
            }
        }
        Ok(Ok(Value::Table(table)))
    }

    fn object(&mut self, depth: usize) -> Decoded {
        let table = self.lua.create_table()?;
        let (mut token, mut at) = self.token();
        if matches!(token, Token::Close(b'}')) {
            return Ok(Ok(Value::Table(table)));
        }
        loop {
            let Token::Text(key) = token else { return Ok(Err(expected("object key string", &token, at))) };
            let (colon, place) = self.token();
            if !matches!(colon, Token::Colon) {
                return Ok(Err(expected("colon", &colon, place)));
            }
            match self.value(depth)? {
                Ok(value) => table.raw_set(self.lua.create_string(key)?, value)?,
                Err(problem) => return Ok(Err(problem)),
            }
            (token, at) = self.token();
            match token {
                Token::Close(b'}') => return Ok(Ok(Value::Table(table))),
                Token::Comma => (token, at) = self.token(),
                other => return Ok(Err(expected("comma or object end", &other, at))),
            }
        }
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
