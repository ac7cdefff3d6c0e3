//! Errors that functions of the host raise in a script.
//!
//! For: an error that a script can catch as Lua's own, with the place in the script in front, as C functions have it.
//! Not here: errors of the interpreter (`vm` tells them), how they are caught (`prelude`).

use std::fmt;

use mlua::{Error, Lua};

/// An error of a function of the host.
#[derive(Clone, Debug)]
pub struct Raised {
    text: String,
    kind: Kind,
}

/// What an error is for who catches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A text.
    Text,
    /// The reply of a command: a table with an `err`.
    Reply,
    /// Whatever a function of the script has raised that the host has called: the prelude has kept it.
    Thrown,
}

impl Kind {
    /// As the prelude calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reply => "reply",
            Self::Thrown => "thrown",
        }
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Raised {}

/// The error reply of a command.
#[must_use]
pub fn reply(text: String) -> Error {
    Error::external(Raised { text, kind: Kind::Reply })
}

/// An error without a place.
#[must_use]
pub fn plain(text: impl Into<String>) -> Error {
    Error::external(Raised { text: text.into(), kind: Kind::Text })
}

/// What a function of the script has raised, on its way through the host.
#[must_use]
pub fn thrown() -> Error {
    Error::external(Raised { text: "an error of the script".to_owned(), kind: Kind::Thrown })
}

/// What Lua says when memory is used up.
#[must_use]
pub fn no_memory() -> Error {
    plain("not enough memory")
}

/// An argument that is not what a function takes, as Lua's own functions tell it: by the name that the script calls the
/// function by.
#[must_use]
pub fn bad_argument(lua: &Lua, number: usize, text: &str) -> Error {
    let names = lua.inspect_stack(0, |frame| {
        let names = frame.names();
        (names.name.map(|name| name.into_owned()), names.name_what)
    });
    let (name, what) = names.unwrap_or_default();
    let name = name.unwrap_or_else(|| "?".to_owned());
    match (what, number) {
        (Some("method"), 1) => at(lua, format!("calling '{name}' on bad self ({text})")),
        (Some("method"), _) => at(lua, format!("bad argument #{} to '{name}' ({text})", number - 1)),
        _ => at(lua, format!("bad argument #{number} to '{name}' ({text})")),
    }
}

/// An error, with the place from which the function was called in front of it, if that is in a script.
#[must_use]
pub fn at(lua: &Lua, text: impl fmt::Display) -> Error {
    let place = lua.inspect_stack(1, |frame| {
        let source = frame.source().short_src.map(|source| source.into_owned());
        source.zip(frame.current_line())
    });
    match place.flatten() {
        Some((source, line)) => plain(format!("{source}:{line}: {text}")),
        None => plain(text.to_string()),
    }
}

/// The text of an error that was caught, and what it is.
#[must_use]
pub fn read(error: &Error) -> (String, Kind) {
    match error {
        Error::CallbackError { cause, .. } => read(cause),
        Error::ExternalError(cause) => match cause.downcast_ref::<Raised>() {
            Some(raised) => (raised.text.clone(), raised.kind),
            None => (first_line(&cause.to_string()), Kind::Text),
        },
        other => (first_line(&other.to_string()), Kind::Text),
    }
}

/// Errors of the interpreter are followed by a trace that tells scripts nothing.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
