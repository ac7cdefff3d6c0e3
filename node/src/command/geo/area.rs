//! Areas on earth, and the cells that cover them.
//!
//! For: which cells a search looks at, in Redis' order, since answers that are not sorted come in it.
//! Not here: the options of the search (`search`).

use super::cell::{Cell, EARTH_RADIUS, Position, STEPS_MAX};

/// Half of the length of the equator on a square map, meters.
const MERCATOR_MAX: f64 = 20_037_726.37;
/// A degree, radians.
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// A circle or a box around a position, meters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shape {
    /// All up to this distance.
    Circle {
        /// The distance.
        radius: f64,
    },
    /// All in a box.
    Box {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
}

/// A shape on earth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Area {
    /// Its middle.
    pub center: Position,
    /// Its form.
    pub shape: Shape,
}

impl Area {
    /// The distance of a position from the middle, if it is inside.
    #[must_use]
    pub fn distance(&self, position: Position) -> Option<f64> {
        match self.shape {
            Shape::Circle { radius } => {
                Some(self.center.distance(position)).filter(|distance| *distance <= radius)
            }
            Shape::Box { width, height } => {
                let beside = Position { longitude: self.center.longitude, latitude: position.latitude };
                let is_inside = position.latitude_distance(self.center) <= height / 2.0
                    && position.distance(beside) <= width / 2.0;
                is_inside.then(|| self.center.distance(position))
            }
        }
    }

    /// Meters from the middle to the side and to the top.
    fn halves(&self) -> (f64, f64) {
        match self.shape {
            Shape::Circle { radius } => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
        }
    }

    /// The outermost longitudes and latitudes: west, south, east, north.
    fn bounds(&self) -> (f64, f64, f64, f64) {
        let (width, height) = self.halves();
        let Position { longitude, latitude } = self.center;
        let up = height / EARTH_RADIUS / DEGREE;
        // A degree of longitude is shortest at the side of the nearer pole.
        let side = if latitude < 0.0 { latitude - up } else { latitude + up };
        let right = width / EARTH_RADIUS / side.to_radians().cos() / DEGREE;
        (longitude - right, latitude - up, longitude + right, latitude + up)
    }

    /// How often to halve the world so that nine cells cover the area.
    fn steps(&self) -> u32 {
        let mut reach = match self.shape {
            Shape::Circle { radius } => radius,
            Shape::Box { .. } => {
                let (width, height) = self.halves();
                (width * width + height * height).sqrt()
            }
        };
        if reach == 0.0 {
            return STEPS_MAX;
        }
        let mut steps = 1i32;
        while reach < MERCATOR_MAX {
            reach *= 2.0;
            steps += 1;
        }
        let latitude = self.center.latitude.abs();
        let near_pole = i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        (steps - 2 - near_pole).clamp(1, STEPS_MAX as i32).unsigned_abs()
    }

    /// The cells to look at, in order: the one of the middle, and those around it that are needed.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let (west, south, east, north) = self.bounds();
        let mut middle = self.center.to_cell(self.steps());
        let reaches_out = middle.moved(0, 1).extent().latitude.high < north
            || middle.moved(0, -1).extent().latitude.low > south
            || middle.moved(1, 0).extent().longitude.high < east
            || middle.moved(-1, 0).extent().longitude.low > west;
        if middle.steps > 1 && reaches_out {
            middle = self.center.to_cell(middle.steps - 1);
        }
        let extent = middle.extent();
        let is_needed = |(right, up): (i32, i32)| {
            middle.steps < 2
                || !(up < 0 && extent.latitude.low < south
                    || up > 0 && extent.latitude.high > north
                    || right < 0 && extent.longitude.low < west
                    || right > 0 && extent.longitude.high > east)
        };
        let around = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let mut cells = vec![middle];
        for place in around.into_iter().filter(|place| is_needed(*place)) {
            let cell = middle.moved(place.0, place.1);
            // In a world of few cells neighbors are the same; Redis compares with the one before, unless that is the
            // middle.
            if cells.len() == 1 || cells.last() != Some(&cell) {
                cells.push(cell);
            }
        }
        cells
    }
}
