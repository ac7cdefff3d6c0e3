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
    /// It is the reply of a command: a table with an `err`, not a text.
    is_reply: bool,
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
    Error::external(Raised { text, is_reply: true })
}

/// An error without a place.
#[must_use]
pub fn plain(text: impl Into<String>) -> Error {
    Error::external(Raised { text: text.into(), is_reply: false })
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

/// The text of an error that was caught, and whether it is a reply.
#[must_use]
pub fn read(error: &Error) -> (String, bool) {
    match error {
        Error::CallbackError { cause, .. } => read(cause),
        Error::ExternalError(cause) => match cause.downcast_ref::<Raised>() {
            Some(raised) => (raised.text.clone(), raised.is_reply),
            None => (first_line(&cause.to_string()), false),
        },
        other => (first_line(&other.to_string()), false),
    }
}

/// Errors of the interpreter are followed by a trace that tells scripts nothing.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
