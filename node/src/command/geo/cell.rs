//! Cells of the globe.
//!
//! For: positions as numbers of 52 bits and back, cells of any size and their neighbors, distances.
//! Not here: which cells an area needs (`area`).
//!
//! Longitude and latitude are each halved up to 26 times; the bits of the halves, latitude's first, make the number
//! of a cell. Bits, rounding and the radius of the earth are Redis', so that scores and answers are equal.

use crate::store::Score;

/// Most halvings of each coordinate.
pub const STEPS_MAX: u32 = 26;
/// Bounds of longitude, degrees.
const LONGITUDES: Span = Span { low: -180.0, high: 180.0 };
/// Bounds of latitude, degrees: those of a square map of the world.
const LATITUDES: Span = Span { low: -85.051_128_78, high: 85.051_128_78 };
/// Bounds of latitude in geohashes as others write them.
const ALL_LATITUDES: Span = Span { low: -90.0, high: 90.0 };
/// Meters.
pub const EARTH_RADIUS: f64 = 6_372_797.560856;
/// The bits of latitude.
const EVEN: u64 = 0x5555_5555_5555_5555;
/// The bits of longitude.
const ODD: u64 = !EVEN;
/// The digits of geohashes.
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// From one number to another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    /// The lower one.
    pub low: f64,
    /// The higher one.
    pub high: f64,
}

impl Span {
    fn contains(self, number: f64) -> bool {
        (self.low..=self.high).contains(&number)
    }

    /// The part `number` of `2^steps` equal ones.
    fn part(self, number: u32, steps: u32) -> Self {
        let (scale, count) = (self.high - self.low, (1u64 << steps) as f64);
        Self {
            low: self.low + f64::from(number) / count * scale,
            high: self.low + (f64::from(number) + 1.0) / count * scale,
        }
    }

    /// Which of `2^steps` equal parts holds a number.
    fn index(self, number: f64, steps: u32) -> u32 {
        ((number - self.low) / (self.high - self.low) * (1u64 << steps) as f64) as u32
    }

    fn middle(self) -> f64 {
        (self.low + self.high) / 2.0
    }
}

/// A position, degrees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// A cell: `steps` halvings of each coordinate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// Its number, with `2 × steps` bits.
    pub bits: u64,
    /// How often each coordinate was halved, 1 to 26.
    pub steps: u32,
}

/// What a cell covers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Extent {
    /// From west to east.
    pub longitude: Span,
    /// From south to north.
    pub latitude: Span,
}

/// Puts the bits of a number on the even places.
fn spread(number: u32) -> u64 {
    let mut bits = u64::from(number);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, EVEN),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// The number on the even places.
fn gather(bits: u64) -> u32 {
    let mut bits = bits & EVEN;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        bits = (bits | bits >> shift) & mask;
    }
    bits as u32
}

impl Position {
    /// A position, unless it is outside of the map.
    #[must_use]
    pub fn new(longitude: f64, latitude: f64) -> Option<Self> {
        (LONGITUDES.contains(longitude) && LATITUDES.contains(latitude))
            .then_some(Self { longitude, latitude })
    }

    /// The position that a score means: the middle of its cell. Scores that are no cells mean something too.
    #[must_use]
    pub fn of(score: Score) -> Self {
        let number = score.get();
        // As C converts it: negative numbers wrap around.
        let bits = if number < i64::MAX as f64 { number as i64 as u64 } else { number as u64 };
        let extent = Cell { bits, steps: STEPS_MAX }.extent();
        Self {
            longitude: extent.longitude.middle().clamp(LONGITUDES.low, LONGITUDES.high),
            latitude: extent.latitude.middle().clamp(LATITUDES.low, LATITUDES.high),
        }
    }

    /// The cell of this size in which it lies.
    #[must_use]
    pub fn to_cell(self, steps: u32) -> Cell {
        self.to_cell_between(LATITUDES, steps)
    }

    fn to_cell_between(self, latitudes: Span, steps: u32) -> Cell {
        let latitude = spread(latitudes.index(self.latitude, steps));
        let longitude = spread(LONGITUDES.index(self.longitude, steps));
        Cell { bits: latitude | longitude << 1, steps }
    }

    /// The score of its smallest cell.
    #[must_use]
    pub fn to_score(self) -> Score {
        self.to_cell(STEPS_MAX).first_score()
    }

    /// Its geohash as others write it: eleven letters, the last of them always zero, for want of bits.
    #[must_use]
    pub fn to_geohash(self) -> [u8; 11] {
        let bits = self.to_cell_between(ALL_LATITUDES, STEPS_MAX).bits;
        std::array::from_fn(|at| {
            let index = if at < 10 { bits >> (47 - 5 * at) & 0x1f } else { 0 };
            ALPHABET[index as usize]
        })
    }

    /// Meters to another position, on a sphere.
    #[must_use]
    pub fn distance(self, other: Self) -> f64 {
        let (latitude, other_latitude) = (self.latitude.to_radians(), other.latitude.to_radians());
        let (longitude, other_longitude) = (self.longitude.to_radians(), other.longitude.to_radians());
        let v = ((other_longitude - longitude) / 2.0).sin();
        if v == 0.0 {
            return self.latitude_distance(other);
        }
        let u = ((other_latitude - latitude) / 2.0).sin();
        let a = u * u + latitude.cos() * other_latitude.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }

    /// Meters to the latitude of another position.
    #[must_use]
    pub fn latitude_distance(self, other: Self) -> f64 {
        EARTH_RADIUS * (other.latitude.to_radians() - self.latitude.to_radians()).abs()
    }
}

impl Cell {
    /// What it covers.
    #[must_use]
    pub fn extent(self) -> Extent {
        Extent {
            longitude: LONGITUDES.part(gather(self.bits >> 1), self.steps),
            latitude: LATITUDES.part(gather(self.bits), self.steps),
        }
    }

    /// The cell so many cells to the east and north, around the world.
    #[must_use]
    pub fn moved(self, east: i32, north: i32) -> Self {
        let mask = u64::MAX >> (64 - 2 * self.steps);
        let by = |number: u32, distance: i32| spread(number.wrapping_add_signed(distance));
        let longitude = by(gather(self.bits >> 1), east) << 1 & mask;
        let latitude = by(gather(self.bits), north) & mask;
        Self { bits: longitude & ODD | latitude & EVEN, steps: self.steps }
    }

    /// The lowest score of a position in it.
    #[must_use]
    pub fn first_score(self) -> Score {
        let bits = self.bits << (2 * (STEPS_MAX - self.steps));
        Score::new(bits as f64).unwrap_or_default()
    }

    /// The lowest score behind it.
    #[must_use]
    pub fn next_score(self) -> Score {
        Self { bits: self.bits + 1, ..self }.first_score()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_position_lies_in_its_cells(longitude in -180.0..180.0f64, latitude in -85.0..85.0f64, steps in 1..27u32) {
            let position = Position::new(longitude, latitude).unwrap();
            let cell = position.to_cell(steps);
            let extent = cell.extent();
            prop_assert!(extent.longitude.contains(longitude) && extent.latitude.contains(latitude));
            let score = position.to_score();
            prop_assert!((cell.first_score()..cell.next_score()).contains(&score));
            // The middle of the smallest cell is near, and in the same one.
            let back = Position::of(score);
            prop_assert!(position.distance(back) < 0.6);
            prop_assert_eq!(back.to_score(), score);
        }

        #[test]
        fn neighbors_touch(longitude in -160.0..160.0f64, latitude in -70.0..70.0f64, steps in 5..27u32) {
            let cell = Position::new(longitude, latitude).unwrap().to_cell(steps);
            let (here, there) = (cell.extent(), cell.moved(1, -1).extent());
            prop_assert!((here.longitude.high - there.longitude.low).abs() < 1e-9);
            prop_assert!((here.latitude.low - there.latitude.high).abs() < 1e-9);
            prop_assert_eq!(cell.moved(1, -1).moved(-1, 1), cell);
        }

        #[test]
        fn any_score_is_a_position(number: f64) {
            if let Some(score) = Score::new(number) {
                let position = Position::of(score);
                prop_assert!(Position::new(position.longitude, position.latitude).is_some());
                let _ = position.to_geohash();
            }
        }

        #[test]
        fn bits_spread_and_gather(number: u32) {
            prop_assert_eq!(gather(spread(number)), number);
            prop_assert_eq!(spread(number) & ODD, 0);
        }
    }

    #[test]
    fn cells_wrap_around_the_world() {
        let cell = Position::new(179.9, 0.0).unwrap().to_cell(4);
        assert_eq!(cell.moved(1, 0), Position::new(-179.9, 0.0).unwrap().to_cell(4));
    }
}
