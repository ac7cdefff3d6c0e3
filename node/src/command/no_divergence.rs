//! No arguments make a command on collections panic, nor a replica differ from its primary.

use korum_protocol::command::{CommandSpec, Group, table};
use korum_protocol::resp::ProtocolVersion;
use proptest::prelude::*;

use super::testing::Bench;

const GROUPS: [Group; 4] = [Group::Hash, Group::Set, Group::SortedSet, Group::Geo];
const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const WORDS: &str = "a b c d m1 m2 m3 m150 0 1 2 3 -1 -2 10 1.5 inf -inf nan x [a (b [m1 (m3 + - ( [ nx xx gt lt ch incr \
    withscores withscore withvalues limit bylex byscore rev weights aggregate sum min max count match * km m 13.4 52.5 any \
    asc desc store storedist withdist withhash withcoord frommember fromlonlat byradius bybox 9223372036854775807 \
    -9223372036854775808 4611686018427387905";

fn specs() -> Vec<&'static CommandSpec> {
    table::all().filter(|spec| GROUPS.contains(&spec.group)).collect()
}

/// Large collections of every kind, one a key.
fn filled() -> Bench {
    let mut bench = Bench::new();
    let line = |name: &str, item: &dyn Fn(u8) -> String| {
        let items: Vec<_> = (0..160).map(item).collect();
        format!("{name} {}", items.join(" "))
    };
    bench.words(&line("sadd a", &|number| format!("m{number}")));
    bench.words(&line("zadd b", &|number| format!("{} m{number}", number % 7)));
    bench.words(&line("geoadd c", &|number| {
        let degrees = f64::from(number) / 2.0;
        format!("{degrees} {degrees} m{number}")
    }));
    bench.words("hset d m1 1 m2 2");
    bench
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn replicas_follow_any_commands(
        commands in proptest::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..6usize,
             proptest::collection::vec(any::<prop::sample::Index>(), 14)),
            1..60,
        ),
        three in any::<bool>(),
    ) {
        let (specs, words) = (specs(), WORDS.split_whitespace().collect::<Vec<_>>());
        let mut bench = filled();
        bench.version = if three { ProtocolVersion::Resp3 } else { ProtocolVersion::Resp2 };
        for (spec, key, more, arguments) in commands {
            let spec = spec.get(&specs);
            let least = usize::from(spec.arity.unsigned_abs()) - 1;
            let count = if spec.arity < 0 { least + more } else { least };
            let mut line = vec![spec.name.as_bytes(), key.get(&KEYS).as_bytes()];
            line.extend(arguments.iter().take(count - 1).map(|word| word.get(&words).as_bytes()));
            let reply = bench.run(&line);
            prop_assert!(!reply.is_empty());
            if reply[0] == b'-' {
                prop_assert_eq!(reply.iter().filter(|&&byte| byte == b'\n').count(), 1);
            }
        }
    }
}
