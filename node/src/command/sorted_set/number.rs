//! Scores as text.
//!
//! For: reading arguments and writing answers as Redis 7.2 does: the shortest text that reads back.
//! Not here: Redis' long doubles (`string::float`).

use korum_protocol::resp::number::float;

use crate::command::Stop;
use crate::command::string::float::NOT_A_FLOAT;

/// Largest integer that is printed without an exponent whatever its digits are: half of the range of an `i64`.
const INTEGER_MAX: f64 = (i64::MAX / 2) as f64;

/// An argument as a number; infinite ones are numbers too.
///
/// # Errors
/// With Redis' text if it is not.
pub fn parse(text: &[u8]) -> Result<f64, Stop> {
    float(text).ok_or(NOT_A_FLOAT.into())
}

/// The end of a range of scores, as `strtod` reads it: blanks before it, too large and too small ones included.
#[must_use]
pub fn parse_loosely(text: &[u8]) -> Option<f64> {
    if text.is_empty() {
        return Some(0.0);
    }
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0b).count();
    let text = &text[blanks..];
    let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    float(text).or_else(|| {
        // Out of range: an infinity, or zero.
        let is_decimal = matches!(unsigned, [b'0'..=b'9' | b'.', ..]);
        std::str::from_utf8(text).ok().filter(|_| is_decimal)?.parse().ok()
    })
}

/// A number as Redis 7.2 answers it.
#[must_use]
pub fn text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if number.fract() == 0.0 && number.abs() <= INTEGER_MAX {
        return (number as i64).to_string();
    }
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = mantissa.replace('.', "");
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{}", layout(&digits, exponent))
}

/// Lays out `d.ddd × 10^exponent` as Redis' `fpconv` does.
fn layout(digits: &str, exponent: i32) -> String {
    let count = digits.len() as i32;
    // The exponent of the last digit.
    let last = exponent - (count - 1);
    if last >= 0 && exponent.abs() < count + 7 {
        return format!("{digits}{}", "0".repeat(last as usize));
    }
    if last < 0 && (last > -7 || exponent.abs() < 4) {
        let whole = count + last;
        return if whole <= 0 {
            format!("0.{}{digits}", "0".repeat(whole.unsigned_abs() as usize))
        } else {
            let (whole, fraction) = digits.split_at(whole as usize);
            format!("{whole}.{fraction}")
        };
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{rest}e{sign}{}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_printed_as_redis_prints_them() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (0.5, "0.5"),
            (-1.25, "-1.25"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (3.25, "3.25"),
            (1e15, "1000000000000000"),
            (1e18, "1000000000000000000"),
            (1e19, "1e+19"),
            (1.5e300, "1.5e+300"),
            (1e-5, "0.00001"),
            (1.5e-7, "1.5e-7"),
            (1e-7, "1e-7"),
            (5e-324, "5e-324"),
            (123456.789, "123456.789"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(text(number), expected);
        }
    }

    #[test]
    fn ends_of_ranges_are_read_loosely() {
        for (text, number) in [
            ("", Some(0.0)),
            ("1.5", Some(1.5)),
            (" \t-2", Some(-2.0)),
            ("inf", Some(f64::INFINITY)),
            ("1e400", Some(f64::INFINITY)),
            ("-1e400", Some(f64::NEG_INFINITY)),
            ("1e-5000", Some(0.0)),
            ("nan", None),
            (" ", None),
            ("1 ", None),
            ("x", None),
            ("1x", None),
            ("-", None),
        ] {
            assert_eq!(parse_loosely(text.as_bytes()), number, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn texts_read_back(number: f64) {
            if !number.is_nan() {
                prop_assert_eq!(parse(text(number).as_bytes()), Ok(number));
            }
        }
    }
}
