//! Patterns of `KEYS`, `SCAN MATCH`, `CONFIG GET` and `COMMAND LIST`: `*`, `?`, `[a-z]`, `[^a]` and `\`, exactly
//! as Redis matches them.
//!
//! Bounded: a star that fails is never retried once a later star was reached, so that a pattern of n bytes
//! against a text of m costs at most n × m steps, whoever wrote it.

/// Whether `text` matches `pattern` as a whole.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    search(pattern, text, false)
}

/// As [`matches()`], ASCII letters in either case.
#[must_use]
pub fn matches_in_any_case(pattern: &[u8], text: &[u8]) -> bool {
    search(pattern, text, true)
}

fn search(pattern: &[u8], text: &[u8], ignore_case: bool) -> bool {
    if text.is_empty() {
        // Redis looks at no star before it has seen a byte; only a single star, "all keys", is no pattern there.
        return pattern.is_empty() || pattern == b"*";
    }
    let (mut p, mut t) = (0, 0);
    // Where to go on when what follows the last star does not match: behind the star, one byte later.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            while pattern.get(p) == Some(&b'*') {
                p += 1;
            }
            if p == pattern.len() {
                return true;
            }
            retry = Some((p, t));
            continue;
        }
        if p == pattern.len() && t == text.len() {
            return true;
        }
        if p < pattern.len()
            && let Some(&byte) = text.get(t)
            && let Some(next) = step(pattern, p, byte, ignore_case)
        {
            (p, t) = (next, t + 1);
            continue;
        }
        match retry {
            Some((star, from)) if from < text.len() => {
                (p, t) = (star, from + 1);
                retry = Some((star, from + 1));
            }
            _ => return false,
        }
    }
}

/// Matches the item of the pattern at `p`, not a star, against one byte; returns where the next item is.
fn step(pattern: &[u8], p: usize, byte: u8, ignore_case: bool) -> Option<usize> {
    let fold = |byte: u8| if ignore_case { byte.to_ascii_lowercase() } else { byte };
    let literal = |at: usize| (fold(pattern[at]) == fold(byte)).then_some(at + 1);
    match pattern[p] {
        b'?' => Some(p + 1),
        b'[' => {
            let (found, next) = class(&pattern[p + 1..], byte, fold);
            found.then_some(p + 1 + next)
        }
        b'\\' if p + 1 < pattern.len() => literal(p + 1),
        _ => literal(p),
    }
}

/// Matches a class behind its bracket; returns also its length with the closing bracket. A class that is
/// never closed ends with the pattern.
fn class(pattern: &[u8], byte: u8, fold: impl Fn(u8) -> u8) -> (bool, usize) {
    let not = pattern.first() == Some(&b'^');
    let mut at = usize::from(not);
    let mut found = false;
    loop {
        match pattern[at..] {
            [] => return (found != not, at),
            [b'\\', escaped, ..] => {
                // Redis does not fold the case of what is escaped in a class.
                found |= escaped == byte;
                at += 2;
            }
            [b']', ..] => return (found != not, at + 1),
            [from, b'-', to, ..] => {
                // Redis compares signed characters.
                let (from, to, signed) = (from as i8, to as i8, |byte: i8| fold(byte as u8) as i8);
                found |= (signed(from.min(to))..=signed(from.max(to))).contains(&signed(byte as i8));
                at += 3;
            }
            [one, ..] => {
                found |= fold(one) == fold(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("**", "", false),
            ("user:*:name", "user:1:2:name", true),
            ("user:*:name", "user:1:names", false),
            ("A*", "abc", false),
            ("a*", "a", true),
            ("**", "abc", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[a\\]]", "]", true),
            ("[a-", "-", true),
            ("[a-", "a", true),
            ("[ab", "b", true),
            ("[^ab", "c", true),
            ("[", "a", false),
            ("[^", "a", true),
            ("[]", "a", false),
            ("[]a]", "a", false),
            ("\\", "\\", true),
            ("a\\", "a\\", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("*a", "aab", false),
            ("[a-c", "b", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        assert!(matches_in_any_case(b"MAX*[C-D]", b"maxd"));
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let pattern = b"a*".repeat(20_000);
        assert!(!matches(&[&pattern[..], b"b"].concat(), &b"a".repeat(2000)));
    }

    /// The definition, without regard to cost.
    fn matches_slowly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] => (0..=text.len()).any(|skip| matches_slowly(rest, &text[skip..])),
            _ => text.split_first().is_some_and(|(&byte, rest)| {
                step(pattern, 0, byte, false).is_some_and(|next| matches_slowly(&pattern[next..], rest))
            }),
        }
    }

    proptest! {
        #[test]
        fn the_fast_way_and_the_definition_agree(pattern in "[ab*?\\\\\\[\\]^-]{0,10}", text in "[ab\\]^-]{0,8}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            let expected = if text.is_empty() { pattern.is_empty() || pattern == b"*" } else { matches_slowly(pattern, text) };
            prop_assert_eq!(matches(pattern, text), expected);
        }

        #[test]
        fn no_pattern_panics(pattern: Vec<u8>, text: Vec<u8>, ignore_case: bool) {
            let _ = search(&pattern, &text, ignore_case);
        }
    }
}
