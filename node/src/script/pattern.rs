//! Patterns of Lua 5.1, matched step by step.
//!
//! For: the matches of a pattern in a text, with Lua's results and errors, in bounded memory; somebody is asked every
//! so many steps whether to go on.
//! Not here: the functions of `string` that scripts see (`text`).
//!
//! Lua's own matcher calls itself for each repetition, and nothing can interrupt it: `('a'):rep(30)` against
//! `('a?'):rep(30) .. ('a'):rep(30)` takes hours. Here what may be tried otherwise stands on a list ([`Retry`]), at most
//! one for each item of the pattern, and the same attempts are made in the same order.
//! As in Lua, a pattern ends at its first zero byte, and letters are those of ASCII.

/// Captures of one pattern.
pub const CAPTURES_MAX: usize = 32;
/// Steps between two questions whether to go on: some hundred microseconds.
const STEPS: u32 = 50_000;

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// The pattern is wrong: Lua's text for it.
    Pattern(&'static str),
    /// It was not to go on.
    Stopped,
}

/// A part of the text that the pattern marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capture {
    /// Where it begins.
    pub start: usize,
    /// What it is.
    pub length: Length,
}

/// How long a capture is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// So many bytes.
    Bytes(usize),
    /// It is a position, not a part.
    Position,
    /// Its end has not come.
    Open,
}

/// What is tried when an attempt fails, latest first.
#[derive(Clone, Copy)]
enum Retry {
    /// `*` and `+`: one repetition fewer, then `next`.
    Fewer { at: usize, count: usize, next: usize },
    /// `-`: one repetition more of the item `item..end`, then what follows.
    More { at: usize, item: usize, end: usize },
    /// `?`: without it.
    Without { at: usize, next: usize },
    /// A capture that was begun was not.
    Unopen,
    /// A capture that was ended was not.
    Unclose(usize),
}

/// A pattern in a text.
pub struct Matcher<'t, G> {
    text: &'t [u8],
    pattern: &'t [u8],
    captures: [Capture; CAPTURES_MAX],
    level: usize,
    retries: Vec<Retry>,
    steps: u32,
    /// May it go on?
    goes_on: G,
}

impl<'t, G: FnMut() -> bool> Matcher<'t, G> {
    /// Matches `pattern`, without the `^` in front of it, against `text`.
    pub fn new(text: &'t [u8], pattern: &'t [u8], goes_on: G) -> Self {
        let none = Capture { start: 0, length: Length::Open };
        Self {
            text,
            pattern,
            captures: [none; CAPTURES_MAX],
            level: 0,
            retries: Vec::new(),
            steps: 0,
            goes_on,
        }
    }

    /// The end of the match that begins at `start`, if there is one.
    ///
    /// # Errors
    /// When the pattern is wrong, as far as it was looked at, or when it was not to go on.
    pub fn match_at(&mut self, start: usize) -> Result<Option<usize>, Problem> {
        self.level = 0;
        self.retries.clear();
        let (mut at, mut place) = (start, 0);
        loop {
            match self.advance(at, place)? {
                Some(end) => return Ok(Some(end)),
                None => match self.retry()? {
                    Some(next) => (at, place) = next,
                    None => return Ok(None),
                },
            }
        }
    }

    /// The first match that begins at `from` or behind it: where it begins and ends. `is_anchored`: only there.
    ///
    /// # Errors
    /// As [`Self::match_at`].
    pub fn find(&mut self, from: usize, is_anchored: bool) -> Result<Option<(usize, usize)>, Problem> {
        for start in from..=self.text.len() {
            if let Some(end) = self.match_at(start)? {
                return Ok(Some((start, end)));
            }
            if is_anchored {
                break;
            }
        }
        Ok(None)
    }

    /// How many captures the last match has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.level
    }

    /// A capture of the last match, which is `start..end`; the first one is the whole match if there are none.
    ///
    /// # Errors
    /// When there is no such capture, or its end did not come.
    pub fn capture(&self, number: usize, start: usize, end: usize) -> Result<Capture, Problem> {
        if number >= self.level {
            if number > 0 {
                return Err(Problem::Pattern("invalid capture index"));
            }
            return Ok(Capture { start, length: Length::Bytes(end - start) });
        }
        match self.captures[number] {
            Capture { length: Length::Open, .. } => Err(Problem::Pattern("unfinished capture")),
            capture => Ok(capture),
        }
    }

    /// The byte of the pattern at a place; zero at its end.
    fn byte(&self, place: usize) -> u8 {
        self.pattern.get(place).copied().unwrap_or(0)
    }

    fn step(&mut self, count: usize) -> Result<(), Problem> {
        self.steps = self.steps.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        if self.steps >= STEPS {
            self.steps = 0;
            if !(self.goes_on)() {
                return Err(Problem::Stopped);
            }
        }
        Ok(())
    }

    /// Matches what stands at `place` of the pattern, and all that follows, at `at` of the text; where repetitions can
    /// be chosen, the first choice, and the others are noted.
    fn advance(&mut self, mut at: usize, mut place: usize) -> Result<Option<usize>, Problem> {
        loop {
            self.step(1)?;
            match (self.byte(place), self.byte(place + 1)) {
                (0, _) => return Ok(Some(at)),
                (b'(', next) => {
                    if self.level >= CAPTURES_MAX {
                        return Err(Problem::Pattern("too many captures"));
                    }
                    let is_position = next == b')';
                    let length = if is_position { Length::Position } else { Length::Open };
                    self.captures[self.level] = Capture { start: at, length };
                    self.level += 1;
                    self.retries.push(Retry::Unopen);
                    place += 1 + usize::from(is_position);
                }
                (b')', _) => {
                    let open = self.captures[..self.level].iter().rposition(|it| it.length == Length::Open);
                    let open = open.ok_or(Problem::Pattern("invalid pattern capture"))?;
                    self.captures[open].length = Length::Bytes(at - self.captures[open].start);
                    self.retries.push(Retry::Unclose(open));
                    place += 1;
                }
                (b'%', b'b') => match self.balanced(at, place + 2)? {
                    Some(end) => (at, place) = (end, place + 4),
                    None => return Ok(None),
                },
                (b'%', b'f') => {
                    if self.byte(place + 2) != b'[' {
                        return Err(Problem::Pattern("missing '[' after '%f' in pattern"));
                    }
                    let end = self.class_end(place + 2)?;
                    let before = at.checked_sub(1).map_or(0, |before| self.text[before]);
                    let here = self.text.get(at).copied().unwrap_or(0);
                    self.step(end - place)?;
                    if self.is_in_set(before, place + 2, end - 1) || !self.is_in_set(here, place + 2, end - 1)
                    {
                        return Ok(None);
                    }
                    place = end;
                }
                (b'%', digit) if digit.is_ascii_digit() => match self.repeated(at, digit)? {
                    Some(end) => (at, place) = (end, place + 2),
                    None => return Ok(None),
                },
                (b'$', 0) => return Ok((at == self.text.len()).then_some(at)),
                _ => match self.item(at, place)? {
                    Some(next) => (at, place) = next,
                    None => return Ok(None),
                },
            }
        }
    }

    /// One item that stands for a single byte, with its repetitions.
    fn item(&mut self, at: usize, place: usize) -> Result<Option<(usize, usize)>, Problem> {
        let end = self.class_end(place)?;
        self.step(end - place)?;
        let fits = self.fits(at, place, end);
        Ok(match self.byte(end) {
            b'?' => {
                if fits {
                    self.retries.push(Retry::Without { at, next: end + 1 });
                }
                Some((at + usize::from(fits), end + 1))
            }
            b'+' if !fits => None,
            sign @ (b'*' | b'+') => {
                let first = at + usize::from(sign == b'+');
                let mut count = 0;
                while self.fits(first + count, place, end) {
                    count += 1;
                    self.step(end - place)?;
                }
                if count > 0 {
                    self.retries.push(Retry::Fewer { at: first, count, next: end + 1 });
                }
                Some((first + count, end + 1))
            }
            b'-' => {
                self.retries.push(Retry::More { at, item: place, end });
                Some((at, end + 1))
            }
            _ => fits.then_some((at + 1, end)),
        })
    }

    /// The next attempt.
    fn retry(&mut self) -> Result<Option<(usize, usize)>, Problem> {
        while let Some(retry) = self.retries.pop() {
            self.step(1)?;
            match retry {
                Retry::Fewer { at, count, next } => {
                    if count > 1 {
                        self.retries.push(Retry::Fewer { at, count: count - 1, next });
                    }
                    return Ok(Some((at + count - 1, next)));
                }
                Retry::More { at, item, end } => {
                    self.step(end - item)?;
                    if self.fits(at, item, end) {
                        self.retries.push(Retry::More { at: at + 1, item, end });
                        return Ok(Some((at + 1, end + 1)));
                    }
                }
                Retry::Without { at, next } => return Ok(Some((at, next))),
                Retry::Unopen => self.level -= 1,
                Retry::Unclose(open) => self.captures[open].length = Length::Open,
            }
        }
        Ok(None)
    }

    /// Where the item at `place` ends that stands for a single byte.
    fn class_end(&self, place: usize) -> Result<usize, Problem> {
        match self.byte(place) {
            b'%' if self.byte(place + 1) == 0 => Err(Problem::Pattern("malformed pattern (ends with '%')")),
            b'%' => Ok(place + 2),
            b'[' => {
                let mut end = place + 1 + usize::from(self.byte(place + 1) == b'^');
                loop {
                    let byte = self.byte(end);
                    if byte == 0 {
                        return Err(Problem::Pattern("malformed pattern (missing ']')"));
                    }
                    end += 1;
                    if byte == b'%' && self.byte(end) != 0 {
                        end += 1;
                    }
                    if self.byte(end) == b']' {
                        return Ok(end + 1);
                    }
                }
            }
            _ => Ok(place + 1),
        }
    }

    /// Is the byte of the text one that the item `place..end` stands for?
    fn fits(&self, at: usize, place: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(at) else { return false };
        match self.byte(place) {
            b'.' => true,
            b'%' => is_in_class(byte, self.byte(place + 1)),
            b'[' => self.is_in_set(byte, place, end - 1),
            literal => literal == byte,
        }
    }

    /// Is the byte in the set whose `[` is at `place` and whose `]` is at `end`?
    fn is_in_set(&self, byte: u8, place: usize, end: usize) -> bool {
        let is_negated = self.byte(place + 1) == b'^';
        let mut at = place + 1 + usize::from(is_negated);
        while at < end {
            let first = self.byte(at);
            if first == b'%' {
                at += 1;
                if is_in_class(byte, self.byte(at)) {
                    return !is_negated;
                }
            } else if self.byte(at + 1) == b'-' && at + 2 < end {
                at += 2;
                if (first..=self.byte(at)).contains(&byte) {
                    return !is_negated;
                }
            } else if first == byte {
                return !is_negated;
            }
            at += 1;
        }
        is_negated
    }

    /// `%bxy`: where the text that is balanced in these two ends.
    fn balanced(&mut self, at: usize, place: usize) -> Result<Option<usize>, Problem> {
        let (open, close) = (self.byte(place), self.byte(place + 1));
        if open == 0 || close == 0 {
            return Err(Problem::Pattern("unbalanced pattern"));
        }
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for next in at + 1..self.text.len() {
            self.step(1)?;
            let byte = self.text[next];
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(next + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%1`: where the same as in a capture ends.
    fn repeated(&mut self, at: usize, digit: u8) -> Result<Option<usize>, Problem> {
        let capture = usize::from(digit).checked_sub(usize::from(b'1')).filter(|&number| number < self.level);
        let capture = capture.map(|number| self.captures[number]);
        let Some(Capture { start, length }) = capture.filter(|it| it.length != Length::Open) else {
            return Err(Problem::Pattern("invalid capture index"));
        };
        let Length::Bytes(length) = length else { return Ok(None) };
        self.step(length / 64)?;
        let is_same = self.text[at..].starts_with(&self.text[start..start + length]);
        Ok(is_same.then_some(at + length))
    }
}

/// `%a` and kin; any other letter stands for itself.
fn is_in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | 9..=13),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_by_the_pattern_and_steps_are_counted() {
        let text = b"a".repeat(28);
        let pattern = [b"a?".repeat(28), b"a".repeat(28), b"b".to_vec()].concat();
        let mut asked = 0;
        let mut matcher = Matcher::new(&text, &pattern, || {
            asked += 1;
            asked < 3
        });
        assert_eq!(matcher.find(0, true), Err(Problem::Stopped));
        assert!(matcher.retries.len() <= pattern.len());
        drop(matcher);
        assert_eq!(asked, 3);
    }

    #[test]
    fn a_long_pattern_takes_no_stack() {
        let (text, pattern) = (b"a".repeat(300_000), b"a?".repeat(300_000));
        assert_eq!(Matcher::new(&text, &pattern, || true).match_at(0), Ok(Some(300_000)));
    }
}
