//! Places, through the commands.

use crate::command::testing::Bench;

/// The two cities of Redis' documentation.
fn sicily() -> Bench {
    let mut bench = Bench::new();
    let line = "geoadd s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania";
    assert_eq!(bench.words(line), ":2|");
    bench
}

#[test]
fn places_are_added_and_told() {
    sicily().expect(&[
        ("zscore s Palermo", "$16|3479099956230698|"),
        ("zscore s Catania", "$16|3479447370796909|"),
        ("geoadd s nx 1 1 Palermo", ":0|"),
        ("geoadd s xx ch 13.361389 38.115556 Palermo 1 1 Rome", ":0|"),
        ("geoadd s nx xx 1 1 a", "-ERR syntax error|"),
        ("geoadd s 1 1 a 2", "-ERR syntax error|"),
        ("geoadd s 181 1 a", "-ERR invalid longitude,latitude pair 181.000000,1.000000|"),
        ("geoadd s x 1 a", "-ERR value is not a valid float|"),
        ("geodist s Palermo Catania", "$11|166274.1516|"),
        ("geodist s Palermo Catania km", "$8|166.2742|"),
        ("geodist s Palermo Palermo", "$6|0.0000|"),
        ("geodist s Palermo x", "$-1|"),
        ("geodist x a b", "$-1|"),
        ("geodist s Palermo Catania yd", "-ERR unsupported unit provided. please use M, KM, FT, MI|"),
        ("geohash s Palermo x Catania", "*3|$11|sqc8b49rny0|$-1|$11|sqdtr74hyu0|"),
        ("geopos s Palermo x", "*2|*2|$20|13.36138933897018433|$20|38.11555639549629859|*-1|"),
        ("geopos x a", "*1|*-1|"),
        ("geohash x a", "*1|$-1|"),
        ("set k v", "+OK|"),
        ("geopos k a", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
    ]);
}

#[test]
fn places_are_found() {
    sicily().expect(&[
        (
            "georadius s 15 37 200 km withdist withcoord",
            "*2|*3|$7|Palermo|$8|190.4424|*2|$20|13.36138933897018433|$20|38.11555639549629859|\
             *3|$7|Catania|$7|56.4413|*2|$20|15.08726745843887329|$20|37.50266842333162032|",
        ),
        ("georadius s 15 37 100 km", "*1|$7|Catania|"),
        ("georadius_ro s 15 37 200 km asc count 1", "*1|$7|Catania|"),
        ("georadiusbymember s Palermo 1 m", "*1|$7|Palermo|"),
        (
            "georadiusbymember_ro s Palermo 200 km withhash desc",
            "*2|*2|$7|Catania|:3479447370796909|*2|$7|Palermo|:3479099956230698|",
        ),
        ("georadiusbymember s x 1 m", "-ERR could not decode requested zset member|"),
        ("georadiusbymember x x 1 m", "*0|"),
        ("georadius s 15 37 -1 km", "-ERR radius cannot be negative|"),
        ("georadius s 15 37 x km", "-ERR need numeric radius|"),
        ("georadius_ro s 15 37 1 km store d", "-ERR syntax error|"),
        (
            "georadius s 15 37 200 km store d withdist",
            "-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options|",
        ),
        ("georadius s 15 37 200 km store d", ":2|"),
        ("zscore d Catania", "$16|3479447370796909|"),
        ("georadius s 15 37 100 km storedist d", ":1|"),
        ("georadius s 15 37 1 km store d", ":0|"),
        ("exists d", ":0|"),
        ("geosearch s fromlonlat 15 37 bybox 400 400 km asc", "*2|$7|Catania|$7|Palermo|"),
        ("geosearch s frommember Palermo bybox 10 10 km", "*1|$7|Palermo|"),
        ("geosearch s frommember Palermo byradius 0 km withdist", "*1|*2|$7|Palermo|$6|0.0000|"),
        ("geosearch s fromlonlat 15 37 byradius 200 km count 1 any", "*1|$7|Palermo|"),
        (
            "geosearch s fromlonlat 15 37 byradius 200 km any",
            "-ERR the ANY argument requires COUNT argument|",
        ),
        ("geosearch s fromlonlat 15 37 byradius 200 km count 0", "-ERR COUNT must be > 0|"),
        (
            "geosearch s fromlonlat 15 37 asc desc withhash",
            "-ERR exactly one of BYRADIUS and BYBOX can be specified for geosearch|",
        ),
        (
            "geosearch s byradius 200 km asc desc withhash",
            "-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for geosearch|",
        ),
        ("geosearch s fromlonlat 15 37 frommember Palermo byradius 1 km", "-ERR syntax error|"),
        ("geosearch x frommember a byradius 1 km asc", "*0|"),
        ("geosearchstore d s fromlonlat 15 37 byradius 200 km storedist count 1", ":1|"),
        ("zrange d 0 -1", "*1|$7|Catania|"),
        ("geosearchstore d x fromlonlat 15 37 byradius 200 km", ":0|"),
        ("exists d", ":0|"),
    ]);
}

/// However the world is cut into cells: every place that is near enough is found, once.
#[test]
fn nothing_near_is_missed() {
    let mut bench = Bench::new();
    let places: Vec<(f64, f64)> =
        (0..600).map(|at| (f64::from(at * 47 % 357) - 178.5, f64::from(at * 31 % 167) - 83.0)).collect();
    for (at, (longitude, latitude)) in places.iter().enumerate() {
        bench.words(&format!("geoadd s {longitude} {latitude} p{at}"));
    }
    for (center, radius) in [(5, 1), (17, 300), (200, 2000), (399, 5000), (77, 700), (310, 40)] {
        let line = format!("georadiusbymember s p{center} {radius} km");
        let found = bench.words(&line).matches("|p").count();
        let near = (0..600).filter(|at| {
            let distance = bench.words(&format!("geodist s p{center} p{at} km"));
            distance.split('|').nth(1).unwrap().parse::<f64>().unwrap() <= f64::from(radius)
        });
        assert_eq!(found, near.count(), "{line}");
    }
}
