//! The longest common subsequence of two strings.
//!
//! For: `LCS`.
//! Bounded: the table of lengths has at most `CELLS_MAX` cells; Redis' only bound is its allocator, while
//! here the work is done under a lock.

use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop, string_of};

/// Most cells of the table, 4 bytes each: two strings of 8 KiB, a tenth of a second and 256 MiB.
const CELLS_MAX: usize = 1 << 26;

#[derive(Default)]
struct Options {
    len: bool,
    index: bool,
    with_lengths: bool,
    shortest: usize,
}

impl Options {
    fn parse(call: &Call<'_>) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut index = 3;
        while let Some(option) = call.args.get(index) {
            if is(option, "idx") {
                options.index = true;
            } else if is(option, "len") {
                options.len = true;
            } else if is(option, "withmatchlen") {
                options.with_lengths = true;
            } else if is(option, "minmatchlen")
                && let Some(text) = call.args.get(index + 1)
            {
                options.shortest = usize::try_from(integer(text)?).unwrap_or(0);
                index += 1;
            } else {
                return Err(SYNTAX_ERROR.into());
            }
            index += 1;
        }
        if options.index && options.len {
            return Err("ERR If you want both the length and indexes, please just use IDX.".into());
        }
        Ok(options)
    }
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]`
pub fn lcs(call: &mut Call<'_>) {
    call.answer(|call| {
        let mut text = |index| -> Result<Vec<u8>, Stop> {
            match call.read(call.place(index)).map(|entry| string_of(entry.value())) {
                None => Ok(Vec::new()),
                Some(Ok(string)) => Ok(string.bytes().into_owned()),
                Some(Err(_)) => Err("ERR The specified keys must contain string values".into()),
            }
        };
        let (a, b) = (text(1)?, text(2)?);
        let options = Options::parse(call)?;
        let table = Table::new(&a, &b)?;
        if options.len {
            call.reply.integer(i64::from(table.get(a.len(), b.len())));
            return Ok(());
        }
        let (common, matches) = table.trace(&a, &b, options.shortest);
        if !options.index {
            call.reply.bulk(&common);
            return Ok(());
        }
        let reply = &mut call.reply;
        reply.map(2);
        reply.bulk(b"matches");
        reply.array(matches.len());
        for found in &matches {
            reply.array(if options.with_lengths { 3 } else { 2 });
            for start in [found.a, found.b] {
                reply.array(2);
                reply.integer(start as i64);
                reply.integer((start + found.len - 1) as i64);
            }
            if options.with_lengths {
                reply.integer(found.len as i64);
            }
        }
        reply.bulk(b"len");
        reply.integer(common.len() as i64);
        Ok(())
    });
}

/// A run of bytes that both strings have.
struct Match {
    a: usize,
    b: usize,
    len: usize,
}

/// The lengths for all pairs of prefixes.
struct Table {
    width: usize,
    cells: Vec<u32>,
}

impl Table {
    fn new(a: &[u8], b: &[u8]) -> Result<Self, Stop> {
        let width = b.len() + 1;
        let cells = width.checked_mul(a.len() + 1).filter(|cells| *cells <= CELLS_MAX);
        let cells = cells.ok_or("ERR Insufficient memory, failed allocating transient memory for LCS")?;
        let mut table = Self { width, cells: vec![0; cells] };
        for (i, x) in a.iter().enumerate() {
            let (before, row) = table.cells.split_at_mut((i + 1) * width);
            let before = &before[i * width..];
            for (j, y) in b.iter().enumerate() {
                row[j + 1] = if x == y { before[j] + 1 } else { before[j + 1].max(row[j]) };
            }
        }
        Ok(table)
    }

    fn get(&self, a: usize, b: usize) -> u32 {
        self.cells[a * self.width + b]
    }

    /// One longest subsequence and its runs of at least `shortest` bytes, last first: of equal ways Redis'.
    fn trace(&self, a: &[u8], b: &[u8], shortest: usize) -> (Vec<u8>, Vec<Match>) {
        let mut common = Vec::with_capacity(self.get(a.len(), b.len()) as usize);
        let mut matches = Vec::new();
        let (mut i, mut j) = (a.len(), b.len());
        let mut run = 0;
        let mut end_run = |i, j, run: &mut usize| {
            if *run > 0 && *run >= shortest {
                matches.push(Match { a: i, b: j, len: *run });
            }
            *run = 0;
        };
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                common.push(a[i]);
                run += 1;
            } else {
                end_run(i, j, &mut run);
                if self.get(i - 1, j) > self.get(i, j - 1) { i -= 1 } else { j -= 1 }
            }
        }
        end_run(i, j, &mut run);
        common.reverse();
        (common, matches)
    }
}

#[cfg(test)]
mod tests {
    use crate::command::testing::Bench;
    use korum_protocol::resp::ProtocolVersion;

    #[test]
    fn lcs_answers_as_redis_does() {
        let mut bench = Bench::new();
        bench.expect(&[
            ("mset k1 ohmytext k2 mynewtext n1 12345 n2 245", "+OK|"),
            ("lcs k1 k2", "$6|mytext|"),
            ("lcs k1 k2 len", ":6|"),
            ("lcs n1 n2", "$3|245|"),
            ("lcs k1 none", "$0||"),
            ("lcs none none len", ":0|"),
            ("lcs k1 none idx", "*4|$7|matches|*0|$3|len|:0|"),
            ("lcs k1 k2 idx", "*4|$7|matches|*2|*2|*2|:4|:7|*2|:5|:8|*2|*2|:2|:3|*2|:0|:1|$3|len|:6|"),
            (
                "lcs k1 k2 idx minmatchlen 4 withmatchlen",
                "*4|$7|matches|*1|*3|*2|:4|:7|*2|:5|:8|:4|$3|len|:6|",
            ),
            ("lcs k1 k2 len idx", "-ERR If you want both the length and indexes, please just use IDX.|"),
            ("lcs k1 k2 minmatchlen", "-ERR syntax error|"),
            ("lcs k1 k2 foo", "-ERR syntax error|"),
            ("lcs k1 k2 idx minmatchlen a", "-ERR value is not an integer or out of range|"),
        ]);
        bench.version = ProtocolVersion::Resp3;
        assert_eq!(bench.words("lcs k1 n1 idx"), "%2|$7|matches|*0|$3|len|:0|");
    }

    #[test]
    fn lcs_of_long_strings_is_refused() {
        let mut bench = Bench::new();
        let long = vec![b'a'; 100_000];
        bench.run(&[b"set", b"k", &long]);
        let answer = bench.words("lcs k k");
        assert_eq!(answer, "-ERR Insufficient memory, failed allocating transient memory for LCS|");
    }
}
