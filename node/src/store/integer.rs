//! Decimal integers as Redis reads them: `0`, `-7`, never `+7`, `007`, `-0` or ` 7`.
//!
//! For: arguments, and for telling counters from other strings.

/// Longest text that can be an `i64`, bytes: a sign and 19 digits.
pub const INTEGER_TEXT_MAX: usize = 20;

/// The integer that `text` is the only spelling of.
#[must_use]
pub fn parse(text: &[u8]) -> Option<i64> {
    if text.len() > INTEGER_TEXT_MAX {
        return None;
    }
    let (negative, digits) = match text {
        b"0" => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !matches!(digits.first()?, b'1'..=b'9') {
        return None;
    }
    let mut magnitude: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// How many bytes the decimal text of `number` has.
#[must_use]
pub fn text_len(number: i64) -> usize {
    let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(number < 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_one_spelling_of_an_integer_is_read() {
        for (text, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("18446744073709551616", None),
            ("99999999999999999999", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("00", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1\0", None),
            ("1a", None),
        ] {
            assert_eq!(parse(text.as_bytes()), number, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_integer_reads_back_and_has_its_length(number: i64) {
            let text = number.to_string();
            prop_assert_eq!(parse(text.as_bytes()), Some(number));
            prop_assert_eq!(text_len(number), text.len());
        }

        #[test]
        fn what_is_read_is_spelled_the_same(text in "[-+ 0-9a]{0,21}") {
            if let Some(number) = parse(text.as_bytes()) {
                prop_assert_eq!(number.to_string(), text);
            }
        }
    }
}
