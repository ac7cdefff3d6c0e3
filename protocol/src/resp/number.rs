//! Numbers as text, exactly as Redis reads them.
//!
//! For: headers of the wire and arguments of commands, which accept the same integers.
//! Not here: error texts (`command::args`), writing numbers (`reply`, and the node for floats).

/// A signed 64-bit integer in its one canonical form: no `+`, no blanks, no leading zeros, no `-0`.
#[must_use]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude = 0u64; // 19 digits stay below 10^19 < 2^64
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    if is_negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Longest text of a floating point number, bytes: Redis' `MAX_LONG_DOUBLE_CHARS` less its end.
const FLOAT_BYTES_MAX: usize = 5 * 1024 - 1;

/// A floating point number as C's `strtod` reads it, all of the text and no blank before it: decimal or
/// hexadecimal, or an infinity by name. No NaN, no overflow, no underflow to zero.
/// Redis reads into 80 bits where this reads into 64, so it takes exponents up to 4932.
#[must_use]
pub fn float(text: &[u8]) -> Option<f64> {
    let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    if text.len() > FLOAT_BYTES_MAX || unsigned.first().is_none_or(|byte| matches!(byte, b'+' | b'-')) {
        return None;
    }
    if let [b'0', b'x' | b'X', digits @ ..] = unsigned {
        let magnitude = hexadecimal(digits)?;
        return Some(if text[0] == b'-' { -magnitude } else { magnitude });
    }
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let is_named = unsigned[0].is_ascii_alphabetic();
    let mut mantissa = unsigned.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    let is_underflow = number == 0.0 && mantissa.any(|byte| matches!(byte, b'1'..=b'9'));
    let is_overflow = number.is_infinite() && !is_named;
    (!number.is_nan() && !is_overflow && !is_underflow).then_some(number)
}

/// `1a.8p-3`, the digits behind `0x`.
fn hexadecimal(text: &[u8]) -> Option<f64> {
    let end = text.iter().position(|byte| matches!(byte, b'p' | b'P'));
    let (digits, exponent) = match end {
        Some(end) => (&text[..end], std::str::from_utf8(&text[end + 1..]).ok()?.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
    let (whole, fraction) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut magnitude = 0f64;
    for &digit in whole.iter().chain(fraction) {
        magnitude = magnitude * 16.0 + f64::from(char::from(digit).to_digit(16)?);
    }
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let number = magnitude * 2f64.powi(shift);
    (number.is_finite() && (number != 0.0 || magnitude == 0.0)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_form() {
        for number in [0, 1, -1, 9, 10, -10, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1] {
            assert_eq!(integer(number.to_string().as_bytes()), Some(number));
        }
        for text in ["", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1a", "a", "0x1", "1.0", "--1"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
        for text in
            ["9223372036854775808", "-9223372036854775809", "99999999999999999999", "9999999999999999999"]
        {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn floats_are_read_as_strtod_reads_them() {
        let cases = [
            ("0", 0.0),
            ("-0", -0.0),
            ("1", 1.0),
            ("+1", 1.0),
            ("-1.5", -1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("1E-3", 0.001),
            ("00012", 12.0),
            ("3.0e+2", 300.0),
            ("inf", f64::INFINITY),
            ("-INF", f64::NEG_INFINITY),
            ("+infinity", f64::INFINITY),
            ("0x10", 16.0),
            ("-0x1.8p1", -3.0),
            ("0X.8", 0.5),
            ("0e5", 0.0),
        ];
        for (text, number) in cases {
            assert_eq!(float(text.as_bytes()), Some(number), "{text}");
        }
        for text in [
            "",
            " 1",
            "1 ",
            "1,5",
            "abc",
            "nan",
            "-nan",
            "NaN",
            "1e",
            "e5",
            ".",
            "+",
            "--1",
            "+-1",
            "0x",
            "0x1p",
            "0xg",
            "1e400",
            "-1e400",
            "1e-5000",
            "infin",
            "1_0",
            "0x1p99999",
            "-",
            "0x.",
            "1\0",
        ] {
            assert_eq!(float(text.as_bytes()), None, "{text}");
        }
        assert_eq!(float(&[b'1'; 6000]), None);
    }
}
