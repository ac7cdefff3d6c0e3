//! A row of numbers as a picture of letters.
//!
//! For: `LATENCY GRAPH`, drawn as Redis draws it.
//! Not here: which numbers (`slowlog`).

/// Columns side by side; what is longer continues below.
pub const COLUMNS: usize = 80;
/// Lines of a picture.
const ROWS: usize = 4;
/// From nearly nothing to a full line.
const LEVELS: [char; 3] = ['_', 'o', '#'];
/// A line that is full, below the last.
const FULL: char = '|';

/// Draws numbers with their labels, which stand below them, from top to bottom.
#[must_use]
pub fn draw(samples: &[(u64, String)]) -> String {
    let least = samples.iter().map(|sample| sample.0).min().unwrap_or(0);
    let most = samples.iter().map(|sample| sample.0).max().unwrap_or(0);
    let parts = samples.chunks(COLUMNS).map(|part| draw_part(part, least, most));
    parts.collect::<Vec<_>>().join("\n")
}

fn draw_part(samples: &[(u64, String)], least: u64, most: u64) -> String {
    let steps = ROWS * LEVELS.len();
    let range = (most - least).max(1) as f64;
    let height = |number: u64| (((number - least) as f64 * steps as f64 / range) as usize).min(steps - 1);
    let mut lines: Vec<String> = Vec::new();
    for row in 0..ROWS {
        let bottom = (ROWS - 1 - row) * LEVELS.len();
        let letter = |(number, _): &(u64, String)| match height(*number).checked_sub(bottom) {
            Some(level) => LEVELS.get(level).copied().unwrap_or(FULL),
            None => ' ',
        };
        lines.push(samples.iter().map(letter).collect());
    }
    // An empty line above the labels.
    lines.push(" ".repeat(samples.len()));
    let longest = samples.iter().map(|(_, label)| label.len()).max().unwrap_or(0);
    for at in 0..longest {
        let letter = |(_, label): &(u64, String)| label.as_bytes().get(at).map_or(' ', |&byte| byte.into());
        lines.push(samples.iter().map(letter).collect());
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_as_redis_draws_it() {
        let samples = [(100, "2s".to_owned()), (30, "1s".to_owned()), (50, "0s".to_owned())];
        assert_eq!(draw(&samples), "#  \n|  \n| _\n|_|\n   \n210\nsss\n");
    }

    #[test]
    fn equal_numbers_are_low_and_long_rows_continue_below() {
        assert_eq!(draw(&[(7, "9m".to_owned())]), " \n \n \n_\n \n9\nm\n");
        let many: Vec<_> = (0..=COLUMNS as u64).map(|number| (number, "x".to_owned())).collect();
        assert_eq!(draw(&many).lines().filter(|line| line.starts_with('x')).count(), 2);
        assert_eq!(draw(&[]), "");
    }
}
