//! Arguments read as numbers and options, with Redis' errors.
//!
//! For: typed reading of single arguments.
//! Not here: floats (`string::float`), which need Redis' long double.

use super::Stop;
use crate::store::integer;

/// The answer to an argument that is not an integer.
pub const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";

/// An `i64`, spelled in the only way.
///
/// # Errors
/// With Redis' text if it is not.
pub fn integer(text: &[u8]) -> Result<i64, Stop> {
    integer::parse(text).ok_or(NOT_AN_INTEGER.into())
}

/// A number of items, which may be 0.
///
/// # Errors
/// With one text for all that is none.
pub fn positive(text: &[u8]) -> Result<usize, Stop> {
    let number = integer::parse(text).and_then(|number| usize::try_from(number).ok());
    number.ok_or("ERR value is out of range, must be positive".into())
}

/// An `i32`, spelled in the only way (database numbers).
///
/// # Errors
/// With one text if it is not an integer, with another if it is too large.
pub fn small_integer(text: &[u8]) -> Result<i32, Stop> {
    i32::try_from(integer(text)?).map_err(|_| {
        format!("ERR value is out of range, value must between {} and {}", i32::MIN, i32::MAX).into()
    })
}

/// Whether `text` is the option `name`, in any case.
#[must_use]
pub fn is(text: &[u8], name: &str) -> bool {
    text.eq_ignore_ascii_case(name.as_bytes())
}

/// The answer to a time to live that cannot be.
#[must_use]
pub fn invalid_expire(command: &str) -> Stop {
    format!("ERR invalid expire time in '{command}' command").into()
}

/// The answer to a number of arguments that cannot be, where the arity cannot tell.
#[must_use]
pub fn wrong_number(command: &str) -> Stop {
    format!("ERR wrong number of arguments for '{command}' command").into()
}
