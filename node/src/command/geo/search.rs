//! Places in an area.
//!
//! For: `GEOSEARCH`, `GEORADIUS` and their kin: options, order, answers, destinations.
//! Not here: the area (`area`).

use super::area::{Area, Shape};
use super::cell::{Cell, Position};
use super::{distance_text, position, reply_position, unit};
use crate::command::args::{integer, is};
use crate::command::sorted_set::number;
use crate::command::sorted_set::range::store as store_set;
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::keyspace::Place;
use crate::store::{Score, SortedSet};

/// Which command it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Search,
    SearchStore,
    Radius { by_member: bool, may_store: bool },
}

/// What the center of a search is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Member,
    Position,
}

/// In which order places come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Nearest,
    Farthest,
}

/// What is asked for.
#[derive(Default)]
struct Request<'a> {
    center: Option<Position>,
    /// How the center was given by an option.
    from: Option<Origin>,
    shape: Option<Shape>,
    /// Meters of the unit of distances.
    unit: f64,
    with_distance: bool,
    with_score: bool,
    with_position: bool,
    order: Option<Order>,
    count: Option<usize>,
    any: bool,
    target: Option<Place<'a>>,
    stores_distances: bool,
}

/// A place that was found.
struct Found {
    member: Box<[u8]>,
    score: Score,
    position: Position,
    /// Meters.
    distance: f64,
}

/// `GEOSEARCH key FROMMEMBER member|FROMLONLAT longitude latitude BYRADIUS radius unit|BYBOX width height unit …`
pub fn geosearch(call: &mut Call<'_>) {
    search(call, Kind::Search);
}

/// `GEOSEARCHSTORE destination key … [STOREDIST]`
pub fn geosearchstore(call: &mut Call<'_>) {
    search(call, Kind::SearchStore);
}

/// `GEORADIUS key longitude latitude radius unit … [STORE key] [STOREDIST key]`
pub fn georadius(call: &mut Call<'_>) {
    search(call, Kind::Radius { by_member: false, may_store: true });
}

/// `GEORADIUS_RO key longitude latitude radius unit …`
pub fn georadius_ro(call: &mut Call<'_>) {
    search(call, Kind::Radius { by_member: false, may_store: false });
}

/// `GEORADIUSBYMEMBER key member radius unit … [STORE key] [STOREDIST key]`
pub fn georadiusbymember(call: &mut Call<'_>) {
    search(call, Kind::Radius { by_member: true, may_store: true });
}

/// `GEORADIUSBYMEMBER_RO key member radius unit …`
pub fn georadiusbymember_ro(call: &mut Call<'_>) {
    search(call, Kind::Radius { by_member: true, may_store: false });
}

/// Reads a size that is not negative, and its unit behind `sizes` of them: meters, and meters of the unit.
fn sizes<const N: usize>(
    call: &Call<'_>,
    index: usize,
    names: [&'static str; N],
    negative: &'static str,
) -> Result<([f64; N], f64), Stop> {
    let mut sizes = [0.0; N];
    for (at, (size, name)) in sizes.iter_mut().zip(names).enumerate() {
        *size = number::parse(call.arg(index + at)).map_err(|_| format!("ERR need numeric {name}"))?;
    }
    if sizes.iter().any(|size| *size < 0.0) {
        return Err(negative.into());
    }
    let meters = unit(call.arg(index + N))?;
    Ok((sizes.map(|size| size * meters), meters))
}

impl<'a> Request<'a> {
    /// Reads the arguments; the set is looked at only to find a member in it.
    fn parse(call: &mut Call<'a>, kind: Kind, key: Place<'_>) -> Result<Self, Stop> {
        let mut request = Self { unit: 1.0, ..Self::default() };
        let has_set = call.read_collection::<SortedSet>(key)?.is_some();
        let first = match kind {
            Kind::Search => 2,
            Kind::SearchStore => {
                request.target = Some(call.place(1));
                3
            }
            Kind::Radius { by_member: false, .. } => {
                request.center = Some(position(call, 2)?);
                request.take_radius(call, 4)?;
                6
            }
            Kind::Radius { by_member: true, .. } => {
                // Without a set Redis does not look at member and radius.
                if has_set {
                    request.take_member(call, key, 2)?;
                    request.take_radius(call, 3)?;
                }
                5
            }
        };
        let mut index = first;
        while index < call.args.len() {
            index += request.take_option(call, kind, (key, has_set), index)?;
        }
        request.check(call, kind)?;
        Ok(request)
    }

    fn take_radius(&mut self, call: &Call<'_>, index: usize) -> Result<(), Stop> {
        let ([radius], unit) = sizes(call, index, ["radius"], "ERR radius cannot be negative")?;
        (self.shape, self.unit) = (Some(Shape::Circle { radius }), unit);
        Ok(())
    }

    fn take_member(&mut self, call: &mut Call<'_>, key: Place<'_>, index: usize) -> Result<(), Stop> {
        let member = call.arg(index);
        let score = call.read_collection::<SortedSet>(key)?.and_then(|set| set.score(member));
        self.center = Some(Position::of(score.ok_or("ERR could not decode requested zset member")?));
        Ok(())
    }

    /// Takes the option at `index`; how many arguments it has.
    fn take_option(
        &mut self,
        call: &mut Call<'a>,
        kind: Kind,
        (key, has_set): (Place<'_>, bool),
        index: usize,
    ) -> Result<usize, Stop> {
        let option = call.arg(index);
        let left = call.args.len() - index - 1;
        let searches = !matches!(kind, Kind::Radius { .. });
        let may_store = matches!(kind, Kind::Radius { may_store: true, .. });
        if is(option, "withdist") {
            self.with_distance = true;
        } else if is(option, "withhash") {
            self.with_score = true;
        } else if is(option, "withcoord") {
            self.with_position = true;
        } else if is(option, "any") {
            self.any = true;
        } else if is(option, "asc") {
            self.order = Some(Order::Nearest);
        } else if is(option, "desc") {
            self.order = Some(Order::Farthest);
        } else if is(option, "count") && left >= 1 {
            let count = usize::try_from(integer(call.arg(index + 1))?).ok().filter(|count| *count > 0);
            self.count = Some(count.ok_or("ERR COUNT must be > 0")?);
            return Ok(2);
        } else if may_store && (is(option, "store") || is(option, "storedist")) && left >= 1 {
            self.target = Some(call.place(index + 1));
            self.stores_distances = is(option, "storedist");
            return Ok(2);
        } else if searches && is(option, "frommember") && left >= 1 && self.from != Some(Origin::Position) {
            // Without a set there is no member, and the answer is empty.
            if has_set {
                self.take_member(call, key, index + 1)?;
            }
            self.from = Some(Origin::Member);
            return Ok(2);
        } else if searches && is(option, "fromlonlat") && left >= 2 && self.from != Some(Origin::Member) {
            self.center = Some(position(call, index + 1)?);
            self.from = Some(Origin::Position);
            return Ok(3);
        } else if searches
            && is(option, "byradius")
            && left >= 2
            && !matches!(self.shape, Some(Shape::Box { .. }))
        {
            self.take_radius(call, index + 1)?;
            return Ok(3);
        } else if searches
            && is(option, "bybox")
            && left >= 3
            && !matches!(self.shape, Some(Shape::Circle { .. }))
        {
            let names = ["width", "height"];
            let ([width, height], unit) =
                sizes(call, index + 1, names, "ERR height or width cannot be negative")?;
            (self.shape, self.unit) = (Some(Shape::Box { width, height }), unit);
            return Ok(4);
        } else if kind == Kind::SearchStore && is(option, "storedist") {
            self.stores_distances = true;
        } else {
            return Err(SYNTAX_ERROR.into());
        }
        Ok(1)
    }

    fn check(&self, call: &Call<'_>, kind: Kind) -> Result<(), Stop> {
        if self.target.is_some() && (self.with_distance || self.with_score || self.with_position) {
            let name = if kind == Kind::SearchStore { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(format!(
                "ERR {name} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )
            .into());
        }
        let name = String::from_utf8_lossy(call.arg(0));
        let searches = !matches!(kind, Kind::Radius { .. });
        if searches && self.from.is_none() {
            return Err(
                format!("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {name}").into()
            );
        }
        if searches && self.shape.is_none() {
            return Err(format!("ERR exactly one of BYRADIUS and BYBOX can be specified for {name}").into());
        }
        if self.any && self.count.is_none() {
            return Err("ERR the ANY argument requires COUNT argument".into());
        }
        Ok(())
    }

    /// What is to be found in a set, in order.
    fn find(&self, set: &SortedSet) -> Vec<Found> {
        let Some((center, shape)) = self.center.zip(self.shape) else { return Vec::new() };
        let area = Area { center, shape };
        let limit = self.count.filter(|_| self.any).unwrap_or(usize::MAX);
        let places = area.cells().into_iter().flat_map(|cell| places_in(set, cell));
        let inside = places.filter_map(|(member, score)| {
            let position = Position::of(score);
            let distance = area.distance(position)?;
            Some(Found { member: member.into(), score, position, distance })
        });
        let mut found: Vec<_> = inside.take(limit).collect();
        // A number without an order means the nearest.
        let order = self.order.or(self.count.filter(|_| !self.any).map(|_| Order::Nearest));
        match order {
            Some(Order::Nearest) => found.sort_by(|one, other| one.distance.total_cmp(&other.distance)),
            Some(Order::Farthest) => found.sort_by(|one, other| other.distance.total_cmp(&one.distance)),
            None => {}
        }
        found.truncate(self.count.unwrap_or(usize::MAX));
        found
    }
}

/// The places of a set in a cell.
fn places_in(set: &SortedSet, cell: Cell) -> impl Iterator<Item = (&[u8], Score)> {
    let (first, next) = (cell.first_score(), cell.next_score());
    let start = set.partition_point(|_, score| score < first);
    set.upwards(start).take_while(move |(_, score)| *score < next)
}

fn search(call: &mut Call<'_>, kind: Kind) {
    call.answer(|call| {
        let key = call.place(if kind == Kind::SearchStore { 2 } else { 1 });
        let request = Request::parse(call, kind, key)?;
        let found = call.read_collection::<SortedSet>(key)?.map_or_else(Vec::new, |set| request.find(set));
        match request.target {
            Some(target) => {
                let event = if kind == Kind::SearchStore { "geosearchstore" } else { "georadiusstore" };
                store(call, &request, target, &found, event);
            }
            None => answer(call, &request, &found),
        }
        Ok(())
    });
}

fn answer(call: &mut Call<'_>, request: &Request<'_>, found: &[Found]) {
    let options = [request.with_distance, request.with_score, request.with_position];
    let options = options.into_iter().filter(|is_set| *is_set).count();
    let reply = &mut call.reply;
    reply.array(found.len());
    for place in found {
        if options > 0 {
            reply.array(1 + options);
        }
        reply.bulk(&place.member);
        if request.with_distance {
            reply.bulk(distance_text(place.distance / request.unit).as_bytes());
        }
        if request.with_score {
            reply.integer(place.score.get() as i64);
        }
        if request.with_position {
            reply_position(reply, place.position);
        }
    }
}

fn store(
    call: &mut Call<'_>,
    request: &Request<'_>,
    target: Place<'_>,
    found: &[Found],
    event: &'static str,
) {
    let score = |place: &Found| {
        let distance = Score::new(place.distance / request.unit).unwrap_or_default();
        if request.stores_distances { distance } else { place.score }
    };
    let set: SortedSet = found.iter().map(|place| (&place.member[..], score(place))).collect();
    store_set(call, target, set, event);
}
