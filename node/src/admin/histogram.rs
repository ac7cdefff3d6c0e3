//! How long things took, counted in classes.
//!
//! For: percentiles that are right within a few percent, in a few kilobytes, and the powers of two that `LATENCY
//! HISTOGRAM` shows.
//! Not here: measuring, and who counts (`command_stats`).

/// Every power of two is divided into so many classes, so a class spans at most a sixteenth of its times.
const PARTS: u64 = 1 << PART_BITS;
const PART_BITS: u32 = 4;
/// Times from here on are one class: a minute, in nanoseconds.
const LONGEST_BITS: u32 = 36;
/// Number of classes.
pub const CLASSES: usize = ((LONGEST_BITS - PART_BITS) as usize + 1) * PARTS as usize;
/// The shortest time that `LATENCY HISTOGRAM` shows, a microsecond; each further one is twice as long.
const FIRST_SHOWN_BITS: u32 = 10;

/// The class of a time.
#[must_use]
pub fn class_of(nanos: u64) -> usize {
    let bits = nanos.max(1).ilog2();
    let class = if bits < PART_BITS {
        nanos
    } else {
        u64::from(bits - PART_BITS) * PARTS + (nanos >> (bits - PART_BITS))
    };
    (class as usize).min(CLASSES - 1)
}

/// The longest time of a class, nanoseconds.
fn longest_of(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * PARTS {
        return class;
    }
    let shift = class / PARTS - 1;
    (((class % PARTS + PARTS) + 1) << shift) - 1
}

/// So many of each class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distribution {
    counts: Vec<u64>,
}

impl Default for Distribution {
    fn default() -> Self {
        Self { counts: vec![0; CLASSES] }
    }
}

impl Distribution {
    /// Adds times of a class.
    pub fn add(&mut self, class: usize, count: u64) {
        self.counts[class] += count;
    }

    /// How many times were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time, in nanoseconds, that `percent` of all do not exceed; 0 if there are none.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> u64 {
        let total = self.total();
        let wanted = ((percent / 100.0 * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        let reached = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(0, longest_of)
    }

    /// Powers of two, as microseconds, up to which there are more than up to the one before, and how many up to there:
    /// what Redis shows.
    #[must_use]
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut shown = Vec::new();
        let (mut seen, mut told) = (0, 0);
        let mut bits = FIRST_SHOWN_BITS;
        for (class, count) in self.counts.iter().enumerate() {
            if *count == 0 {
                continue;
            }
            while longest_of(class) > 1 << bits {
                if seen > told {
                    shown.push((shown_us(bits), seen));
                    told = seen;
                }
                bits += 1;
            }
            seen += count;
        }
        if seen > told {
            shown.push((shown_us(bits), seen));
        }
        shown
    }
}

/// `2^bits` nanoseconds as Redis prints it: the longest time that its histogram, of two digits, does not tell from it.
fn shown_us(bits: u32) -> u64 {
    ((1 << bits) + (1 << (bits - 7)) - 1) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_and_are_narrow() {
        assert!((0..5_000).is_sorted_by_key(class_of));
        for nanos in (0..5_000).chain((0..30).map(|bits| 1 << bits)).chain([u64::MAX]) {
            let class = class_of(nanos);
            assert!(class < CLASSES);
            assert!(nanos <= longest_of(class) || class == CLASSES - 1, "{nanos}");
            assert!(class == 0 || nanos > longest_of(class - 1), "{nanos}");
        }
        for class in 32..CLASSES {
            let (low, high) = (longest_of(class - 1) + 1, longest_of(class));
            assert!((high - low) as f64 <= low as f64 / 16.0, "{class}");
        }
    }

    #[test]
    fn percentiles_are_of_those_counted() {
        let mut times = Distribution::default();
        assert_eq!(times.percentile(50.0), 0);
        (1..=100u64).for_each(|us| times.add(class_of(us * 1000), 1));
        for (percent, us) in [(50.0, 50.0), (99.0, 99.0), (99.9, 100.0), (0.0, 1.0), (100.0, 100.0)] {
            let found = times.percentile(percent) as f64 / 1000.0;
            assert!((us..us * 1.07).contains(&found), "{percent}: {found}");
        }
    }

    #[test]
    fn powers_of_two_are_shown_as_redis_shows_them() {
        let mut times = Distribution::default();
        assert!(times.cumulative().is_empty());
        for (nanos, count) in [(300, 2), (900, 1), (20_000, 5), (140_000, 1)] {
            times.add(class_of(nanos), count);
        }
        assert_eq!(times.cumulative(), [(1, 3), (33, 8), (264, 9)]);
        let shown: Vec<u64> = (10..22).map(shown_us).collect();
        assert_eq!(shown, [1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113]);
    }
}
