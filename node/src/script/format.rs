//! Numbers as C prints them with `%g`.
//!
//! For: `cjson` and the arguments of commands, which Redis prints with 14 and 17 digits.

/// As `printf("%.{precision}g")`; `inf`, `-inf`, `nan` and `-nan` as C prints those.
#[must_use]
pub fn general(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    if value.fract() == 0.0 && value.abs() < 1e14 && (value != 0.0 || value.is_sign_positive()) {
        return (value as i64).to_string();
    }
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(digits), exponent.abs());
    }
    let decimals = usize::try_from(precision as i32 - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

/// Without zeros at the end of a fraction.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_c() {
        for (value, precision, text) in [
            (0.0, 14, "0"),
            (-0.0, 14, "-0"),
            (3.0, 14, "3"),
            (-17.0, 17, "-17"),
            (1.5, 17, "1.5"),
            (0.1, 17, "0.10000000000000001"),
            (1.0 / 3.0, 14, "0.33333333333333"),
            (1e15, 14, "1e+15"),
            (9_007_199_254_740_992.0, 14, "9.007199254741e+15"),
            (9_007_199_254_740_992.0, 17, "9007199254740992"),
            (1e300, 17, "1.0000000000000001e+300"),
            (1.25e-7, 14, "1.25e-07"),
            (0.0001, 14, "0.0001"),
            (123_456.789, 14, "123456.789"),
            (f64::INFINITY, 14, "inf"),
            (f64::NEG_INFINITY, 14, "-inf"),
        ] {
            assert_eq!(general(value, precision), text);
        }
    }
}
