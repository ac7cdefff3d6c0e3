//! Libraries of functions: what `FUNCTION` keeps, as values.
//!
//! For: the first line of a library, what a change makes of all libraries, the bytes in which they are kept, and the
//! payload of `FUNCTION DUMP`.
//! Not here: running code (`vm`), where libraries are kept and known (`functions`, `dispatch::functions`).

use std::collections::HashSet;

use bytes::Bytes;
use korum_protocol::peer::wire;
use serde::{Deserialize, Serialize};

/// Bytes of the code of all libraries together: every node has all of it, each of its threads compiles what it runs into
/// an interpreter that is kept up to 32 MiB, and a change writes and fetches the whole.
pub const CODE_BYTES_MAX: usize = 1 << 20;
/// Functions of all libraries together.
const FUNCTIONS_MAX: usize = 10_000;

/// The answer to what would be more.
pub const TOO_LONG: &str = "ERR the libraries are too long: the code of all functions has at most 1 MB, and there are at most 10000 of them; delete some first";
/// What Redis says of a bad name, of functions too.
pub const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long";

/// Flags of functions, in the order of their bits.
pub const FLAGS: [&str; 5] = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

/// A function that a library registers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Function {
    /// As it was registered; it is called by it in any case.
    pub name: Bytes,
    /// What it is said to do.
    pub description: Option<Bytes>,
    /// A bit for each of [`FLAGS`].
    pub flags: u8,
}

impl Function {
    /// It may not write.
    #[must_use]
    pub fn reads_only(&self) -> bool {
        self.flags & 1 != 0
    }
}

/// A library.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Library {
    /// Its name.
    pub name: Bytes,
    /// The whole code, the first line included.
    pub code: Bytes,
    /// What it registers.
    pub functions: Vec<Function>,
    /// The version with which it came; 0 before it is there. Loaded again, it begins anew.
    pub loaded: u64,
}

/// All libraries of a cluster.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Libraries {
    /// Tells one state of them from all others; 0 if there never were any.
    pub version: u64,
    /// In the order in which they came.
    pub list: Vec<Library>,
}

/// What becomes of libraries that are there, when others are restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Policy {
    /// All go.
    Flush,
    /// They stay; one of the same name is an error.
    Append,
    /// One of the same name goes.
    Replace,
}

/// A change of the libraries.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// `FUNCTION LOAD`
    Load {
        /// The new one.
        library: Library,
        /// It may take the place of one of the same name.
        replaces: bool,
    },
    /// `FUNCTION DELETE`
    Delete(Bytes),
    /// `FUNCTION FLUSH`
    Flush,
    /// `FUNCTION RESTORE`
    Restore {
        /// The new ones.
        libraries: Vec<Library>,
        /// What becomes of the others.
        policy: Policy,
    },
}

impl Change {
    /// As one argument of a request.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        wire::encode(self)
    }

    /// Reads it back.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        wire::decode(bytes).ok()
    }
}

impl Libraries {
    /// The bytes in which they are kept.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        wire::encode(self)
    }

    /// Reads them back.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        wire::decode(bytes).ok()
    }

    /// What a change makes of them, as the state `version`.
    ///
    /// # Errors
    /// With the text of the error reply.
    pub fn changed(&self, change: Change, version: u64) -> Result<Self, String> {
        let mut list = self.list.clone();
        let new = match change {
            Change::Load { library, replaces } => {
                if replaces {
                    list.retain(|other| other.name != library.name);
                }
                vec![library]
            }
            Change::Delete(name) => {
                let at = list.iter().position(|library| library.name == name);
                list.remove(at.ok_or("ERR Library not found")?);
                Vec::new()
            }
            Change::Flush => return Ok(Self { version, list: Vec::new() }),
            Change::Restore { libraries, policy } => {
                let names = |list: &[Library]| list.iter().map(|it| it.name.clone()).collect::<HashSet<_>>();
                match policy {
                    Policy::Flush => list.clear(),
                    Policy::Append => {
                        let old = names(&list);
                        if let Some(library) = libraries.iter().find(|library| old.contains(&library.name)) {
                            return Err(format!("ERR Library {} already exists", text(&library.name)));
                        }
                    }
                    Policy::Replace => {
                        let new = names(&libraries);
                        list.retain(|library| !new.contains(&library.name));
                    }
                }
                libraries
            }
        };
        let mut shelf = Shelf::default();
        list.into_iter().try_for_each(|library| shelf.add(library))?;
        new.into_iter().try_for_each(|library| shelf.add(Library { loaded: version, ..library }))?;
        Ok(Self { version, list: shelf.list })
    }
}

/// Libraries that get along with each other, put there one after the other.
#[derive(Default)]
pub struct Shelf {
    list: Vec<Library>,
    names: HashSet<Bytes>,
    /// Of all functions, in lower case.
    functions: HashSet<Vec<u8>>,
    code_bytes: usize,
}

impl Shelf {
    /// Adds one.
    ///
    /// # Errors
    /// With the text of the error reply, if its name or one of its functions is another's, or if it does not fit.
    pub fn add(&mut self, library: Library) -> Result<(), String> {
        if !self.names.insert(library.name.clone()) {
            return Err(format!("ERR Library '{}' already exists", text(&library.name)));
        }
        let lower = |function: &Function| function.name.to_ascii_lowercase();
        if let Some(taken) = library.functions.iter().find(|it| self.functions.contains(&lower(it))) {
            return Err(format!("ERR Function {} already exists", text(&taken.name)));
        }
        self.functions.extend(library.functions.iter().map(lower));
        self.code_bytes += library.code.len();
        if self.code_bytes > CODE_BYTES_MAX || self.functions.len() > FUNCTIONS_MAX {
            return Err(TOO_LONG.into());
        }
        self.list.push(library);
        Ok(())
    }

    /// All of them, in the order in which they came.
    #[must_use]
    pub fn into_list(self) -> Vec<Library> {
        self.list
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// May a library, or a function, have this name?
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The name in the first line of a library, `#!lua name=…`, and the code without that line, but with its end, so that
/// lines keep their numbers.
///
/// # Errors
/// With the text of the error reply.
pub fn read_header(code: &[u8]) -> Result<(Bytes, &[u8]), String> {
    const INVALID: &str = "ERR Invalid library metadata";
    if !code.starts_with(b"#!") {
        return Err("ERR Missing library metadata".into());
    }
    let end = memchr::memchr2(b'\n', 0, code).filter(|&at| code[at] == b'\n').ok_or(INVALID)?;
    let words = split(&code[..end]).filter(|words| !words.is_empty()).ok_or(INVALID)?;
    let mut name: Option<&[u8]> = None;
    for word in &words[1..] {
        match word.split_at_checked(5) {
            Some((key, value)) if key.eq_ignore_ascii_case(b"name=") => {
                if name.replace(value).is_some() {
                    return Err("ERR Invalid metadata value, name argument was given multiple times".into());
                }
            }
            _ => return Err(format!("ERR Invalid metadata value given: {}", text(word))),
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    if !is_name(name) {
        return Err(format!("ERR {BAD_NAME}"));
    }
    let engine = &words[0][2..];
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(format!("ERR Engine '{}' not found", text(engine)));
    }
    Ok((Bytes::copy_from_slice(name), &code[end..]))
}

/// Splits a line at blanks, with quotes as Redis reads them; `None` if a quote is not ended well.
fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let is_blank = |byte: u8| matches!(byte, b' ' | 9..=13);
    let (mut words, mut at) = (Vec::new(), 0);
    loop {
        while line.get(at).is_some_and(|&byte| is_blank(byte)) {
            at += 1;
        }
        if at >= line.len() {
            return Some(words);
        }
        let (mut word, mut quote) = (Vec::new(), None);
        loop {
            let byte = line.get(at).copied();
            let next = line.get(at + 1).copied();
            match (quote, byte) {
                (None, None) => break,
                (None, Some(byte)) if is_blank(byte) => break,
                (None, Some(byte @ (b'"' | b'\''))) => quote = Some(byte),
                (Some(_), None) => return None,
                (Some(end), Some(byte)) if byte == end => {
                    if next.is_some_and(|next| !is_blank(next)) {
                        return None;
                    }
                    at += 1;
                    break;
                }
                (Some(b'"'), Some(b'\\')) if next.is_some() => {
                    let digit = |at: usize| char::from(*line.get(at)?).to_digit(16);
                    at += 1;
                    match (next, digit(at + 1), digit(at + 2)) {
                        (Some(b'x'), Some(high), Some(low)) => {
                            word.push((high << 4 | low) as u8);
                            at += 2;
                        }
                        (Some(letter), ..) => word.push(match letter {
                            b'n' => b'\n',
                            b'r' => b'\r',
                            b't' => b'\t',
                            b'b' => 8,
                            b'a' => 7,
                            other => other,
                        }),
                        (None, ..) => {}
                    }
                }
                (Some(b'\''), Some(b'\\')) if next == Some(b'\'') => {
                    word.push(b'\'');
                    at += 1;
                }
                (_, Some(byte)) => word.push(byte),
            }
            at += 1;
        }
        words.push(word);
    }
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
