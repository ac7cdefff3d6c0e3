//! A cursor over arguments, with typed errors.
//!
//! For: command families that read options one after the other and answer as Redis does.
//! Not here: which options a command has; numbers as text (`resp::number`).

use super::CommandSpec;
use super::resolve::wrong_arity;
use crate::resp::Args;
use crate::resp::number::{float, integer};

/// Why arguments are not what a command takes. `Display` is the text of the reply.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum ArgsError {
    /// Not a signed 64-bit integer in canonical form.
    #[error("ERR value is not an integer or out of range")]
    NotAnInteger,
    /// Not a finite or infinite floating point number.
    #[error("ERR value is not a valid float")]
    NotAFloat,
    /// An option that is not known, not complete, or not to be combined.
    #[error("ERR syntax error")]
    Syntax,
    /// More arguments or fewer than this command takes.
    #[error("{}", wrong_arity(.0))]
    WrongArity(&'static CommandSpec),
}

/// Two errors are equal when their replies are.
impl PartialEq for ArgsError {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::WrongArity(one), Self::WrongArity(other)) => one.id == other.id,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Reads the arguments of one request in order.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    args: Args<'a>,
    position: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor before the argument at `position`: 1 is behind a command's name.
    #[must_use]
    pub fn new(args: Args<'a>, position: usize) -> Self {
        Self { args, position }
    }

    /// Number of arguments left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.args.len().saturating_sub(self.position)
    }

    /// Whether all arguments were read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.remaining() == 0
    }

    /// The next argument, which stays.
    #[must_use]
    pub fn peek(&self) -> Option<&'a [u8]> {
        self.args.get(self.position)
    }

    /// The next argument, which must be there.
    ///
    /// # Errors
    /// [`ArgsError::Syntax`] at the end.
    pub fn bytes(&mut self) -> Result<&'a [u8], ArgsError> {
        self.next().ok_or(ArgsError::Syntax)
    }

    /// The next argument as an integer.
    ///
    /// # Errors
    /// [`ArgsError::Syntax`] at the end, [`ArgsError::NotAnInteger`] for anything else.
    pub fn integer(&mut self) -> Result<i64, ArgsError> {
        integer(self.bytes()?).ok_or(ArgsError::NotAnInteger)
    }

    /// The next argument as a floating point number, which may be infinite.
    ///
    /// # Errors
    /// [`ArgsError::Syntax`] at the end, [`ArgsError::NotAFloat`] for anything else.
    pub fn float(&mut self) -> Result<f64, ArgsError> {
        float(self.bytes()?).ok_or(ArgsError::NotAFloat)
    }

    /// Takes the next argument when it is `keyword` (in any case); says whether it was.
    pub fn keyword(&mut self, keyword: &str) -> bool {
        let is_it = self.peek().is_some_and(|arg| is_keyword(arg, keyword));
        self.position += usize::from(is_it);
        is_it
    }

    /// Takes the next argument when it is one of `options` (in any case); the value beside its name.
    ///
    /// # Errors
    /// [`ArgsError::Syntax`] when it is none of them, or at the end.
    pub fn one_of<T: Copy>(&mut self, options: &[(&str, T)]) -> Result<T, ArgsError> {
        let arg = self.bytes()?;
        let found = options.iter().find(|(keyword, _)| is_keyword(arg, keyword));
        found.map(|(_, value)| *value).ok_or(ArgsError::Syntax)
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// [`ArgsError::Syntax`] when something is.
    pub fn finish(&self) -> Result<(), ArgsError> {
        if self.is_done() { Ok(()) } else { Err(ArgsError::Syntax) }
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let arg = self.peek()?;
        self.position += 1;
        Some(arg)
    }
}

/// Whether an argument is this keyword, in any case.
#[must_use]
pub fn is_keyword(arg: &[u8], keyword: &str) -> bool {
    arg.eq_ignore_ascii_case(keyword.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(arguments: &[&str], read: impl FnOnce(Cursor) -> T) -> T {
        let text = arguments.concat();
        let mut end = 0;
        let mut ranges = Vec::new();
        for argument in arguments {
            ranges.push(end..end + argument.len());
            end += argument.len();
        }
        read(Cursor::new(Args::new(text.as_bytes(), &ranges), 0))
    }

    #[test]
    fn options_are_read_in_order_and_in_any_case() {
        with(&["ex", "10", "Nx", "1.5"], |mut cursor| {
            assert!(!cursor.keyword("PX"));
            assert!(cursor.keyword("EX"));
            assert_eq!(cursor.integer(), Ok(10));
            assert_eq!(cursor.one_of(&[("XX", 1), ("NX", 2)]), Ok(2));
            assert_eq!(cursor.finish(), Err(ArgsError::Syntax));
            assert_eq!(cursor.float(), Ok(1.5));
            assert_eq!(cursor.finish(), Ok(()));
            assert_eq!(cursor.integer(), Err(ArgsError::Syntax));
            assert!(!cursor.keyword("NX"));
        });
    }

    #[test]
    fn errors_have_the_texts_of_redis() {
        let text = |error: ArgsError| error.to_string();
        with(&["+1"], |mut cursor| {
            assert_eq!(
                text(cursor.integer().expect_err("no +")),
                "ERR value is not an integer or out of range"
            );
        });
        with(&["nan"], |mut cursor| {
            assert_eq!(text(cursor.float().expect_err("no nan")), "ERR value is not a valid float");
        });
        assert_eq!(text(ArgsError::Syntax), "ERR syntax error");
        let mset = super::super::lookup(b"mset").expect("known");
        assert_eq!(text(ArgsError::WrongArity(mset)), "ERR wrong number of arguments for 'mset' command");
    }
}
