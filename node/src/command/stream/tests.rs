//! Streams, through the commands.

use korum_protocol::resp::{Args, ProtocolVersion};

use proptest::prelude::*;

use crate::command::Names;
use crate::command::testing::{Bench, NOW_MS};

const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
const INVALID: &str = "-ERR Invalid stream ID specified as stream command argument|";

#[test]
fn entries_are_added_and_read() {
    let mut bench = Bench::new();
    let id = format!("${}|{NOW_MS}-0|", 15);
    bench.expect(&[
        ("xadd s nomkstream * f v", "$-1|"),
        ("xadd s * f v", &id),
        ("xadd s * f v", &id.replace("-0|", "-1|")),
        ("type s", "+stream|"),
        ("object encoding s", "$6|stream|"),
        ("xadd s 1-1 f v", "-ERR The ID specified in XADD is equal or smaller than the target stream top item|"),
        ("xadd t 0-0 f v", "-ERR The ID specified in XADD must be greater than 0-0|"),
        ("exists t", ":0|"),
        ("xadd t 0-* f v", "$3|0-1|"),
        ("xadd t 5-* f v g w", "$3|5-0|"),
        ("xadd t 5-* g w", "$3|5-1|"),
        ("xadd t 5 f", "-ERR wrong number of arguments for 'xadd' command|"),
        ("xadd t 5 f v g", "-ERR wrong number of arguments for 'xadd' command|"),
        ("xadd t x f v", INVALID),
        ("xlen t", ":3|"),
        ("xlen x", ":0|"),
        ("xrange t - +", "*3|*2|$3|0-1|*2|$1|f|$1|v|*2|$3|5-0|*4|$1|f|$1|v|$1|g|$1|w|*2|$3|5-1|*2|$1|g|$1|w|"),
        ("xrevrange t + - count 1", "*1|*2|$3|5-1|*2|$1|g|$1|w|"),
        ("xrange t (0-1 (5-1", "*1|*2|$3|5-0|*4|$1|f|$1|v|$1|g|$1|w|"),
        ("xrange t 5 5 count 1", "*1|*2|$3|5-0|*4|$1|f|$1|v|$1|g|$1|w|"),
        ("xrange t - + count 0", "*-1|"),
        ("xrange t - + count x", "-ERR value is not an integer or out of range|"),
        ("xrange t - + limit 1", "-ERR syntax error|"),
        ("xrange t (18446744073709551615-18446744073709551615 +", "-ERR invalid start ID for the interval|"),
        ("xrange t - (0-0", "-ERR invalid end ID for the interval|"),
        ("xrange x - +", "*0|"),
        ("xread count 1 streams t s 0 $", "*1|*2|$1|t|*1|*2|$3|0-1|*2|$1|f|$1|v|"),
        ("xread streams t s 5-1 $", "*-1|"),
        ("xread streams t s 5-1", "-ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.|"),
        ("xread streams t >", "-ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.|"),
        ("xread block x streams t 0", "-ERR timeout is not an integer or out of range|"),
        ("xread block -1 streams t 0", "-ERR timeout is negative|"),
        ("xdel t 5-0 7-7 5-0", ":1|"),
        ("xdel t 5-0 x", INVALID),
        ("xdel x x", ":0|"),
        ("xlen t", ":2|"),
        ("xdel t 0-1 5-1", ":2|"),
        ("xrange t - +", "*0|"),
        ("exists t", ":1|"),
        ("xadd t 5-1 f v", "-ERR The ID specified in XADD is equal or smaller than the target stream top item|"),
        ("xsetid t 5-0", "-ERR The ID specified in XSETID is smaller than current max_deleted_entry_id|"),
        ("xsetid t 9-0 entriesadded 7 maxdeletedid 8-0", "+OK|"),
        ("xsetid x 1-1", "-ERR no such key|"),
        ("xadd t 9-* f v", "$3|9-1|"),
        ("xsetid t 8-5", "-ERR The ID specified in XSETID is smaller than the target stream top item|"),
        ("xsetid t 9-1 entriesadded 0", "-ERR The entries_added specified in XSETID is smaller than the target stream length|"),
        ("xadd u 18446744073709551615-18446744073709551615 f v", "$41|18446744073709551615-18446744073709551615|"),
        ("xadd u * f v", "-ERR The stream has exhausted the last possible ID, unable to add more items|"),
    ]);
    bench.version = ProtocolVersion::Resp3;
    bench.expect(&[
        ("xread streams t 9-0", "%1|$1|t|*1|*2|$3|9-1|*2|$1|f|$1|v|"),
        ("xread streams t 9-1", "_|"),
    ]);
}

#[test]
fn streams_are_trimmed_by_entries_or_by_blocks() {
    let mut bench = Bench::new();
    for number in 1..=250 {
        bench.words(&format!("xadd s {number} f v"));
    }
    bench.expect(&[
        ("xtrim s maxlen ~ 240", ":0|"),
        ("xtrim s maxlen ~ 120", ":100|"),
        ("xtrim s maxlen = 120", ":30|"),
        ("xtrim s minid ~ 201", ":70|"),
        ("xtrim s minid 211", ":10|"),
        ("xtrim s maxlen ~ 0 limit 10", ":0|"),
        ("xadd s maxlen 5 251 f v", "$5|251-0|"),
        ("xlen s", ":5|"),
        ("xtrim s maxlen 5 limit 1", "-ERR syntax error, LIMIT cannot be used without the special ~ option|"),
        (
            "xtrim s maxlen 5 minid 1",
            "-ERR syntax error, MAXLEN and MINID options at the same time are not compatible|",
        ),
        ("xtrim s maxlen -1", "-ERR The MAXLEN argument must be >= 0.|"),
        (
            "xtrim s limit 1",
            "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy|",
        ),
        ("xtrim x maxlen 0", ":0|"),
        ("xtrim s maxlen 0", ":5|"),
        ("exists s", ":1|"),
    ]);
}

#[test]
fn a_group_reads_acknowledges_and_claims() {
    let mut bench = Bench::new();
    for number in 1..=4 {
        bench.words(&format!("xadd s {number} f v"));
    }
    let no_group = "-NOGROUP No such key 's' or consumer group 'x'";
    bench.expect(&[
        ("xgroup create s g 0", "+OK|"),
        ("xgroup create s g 0", "-BUSYGROUP Consumer Group name already exists|"),
        (
            "xreadgroup group g a count 2 streams s >",
            "*1|*2|$1|s|*2|*2|$3|1-0|*2|$1|f|$1|v|*2|$3|2-0|*2|$1|f|$1|v|",
        ),
        ("xreadgroup group g b count 1 noack streams s >", "*1|*2|$1|s|*1|*2|$3|3-0|*2|$1|f|$1|v|"),
        ("xreadgroup group g b streams s >", "*1|*2|$1|s|*1|*2|$3|4-0|*2|$1|f|$1|v|"),
        ("xreadgroup group g b streams s >", "*-1|"),
        ("xpending s g", "*4|:3|$3|1-0|$3|4-0|*2|*2|$1|a|$1|2|*2|$1|b|$1|1|"),
        ("xpending s g - + 10 a", "*2|*4|$3|1-0|$1|a|:0|:1|*4|$3|2-0|$1|a|:0|:1|"),
        ("xpending s g idle 1 - + 10", "*0|"),
        ("xpending s g - + 10 nobody", "*0|"),
        ("xpending s g - +", "-ERR syntax error|"),
        ("xpending s x", &format!("{no_group}|")),
        ("xdel s 2", ":1|"),
        ("xreadgroup group g a streams s 0", "*1|*2|$1|s|*2|*2|$3|1-0|*2|$1|f|$1|v|*2|$3|2-0|*-1|"),
        ("xpending s g - + 10 a", "*2|*4|$3|1-0|$1|a|:0|:2|*4|$3|2-0|$1|a|:0|:1|"),
        ("xclaim s g b 0 1 2 3", "*1|*2|$3|1-0|*2|$1|f|$1|v|"),
        ("xpending s g", "*4|:2|$3|1-0|$3|4-0|*1|*2|$1|b|$1|2|"),
        ("xclaim s g a 0 3 force justid", "*1|$3|3-0|"),
        ("xclaim s g a 0 1 retrycount 9 idle 500", "*1|*2|$3|1-0|*2|$1|f|$1|v|"),
        ("xpending s g - + 1 a", "*1|*4|$3|1-0|$1|a|:500|:9|"),
        ("xclaim s g b 501 1", "*0|"),
        ("xclaim s g b 0 1 bad", "-ERR Unrecognized XCLAIM option 'bad'|"),
        ("xautoclaim s g b 500 0 count 1", "*3|$3|3-0|*1|*2|$3|1-0|*2|$1|f|$1|v|*0|"),
        ("xdel s 3", ":1|"),
        ("xautoclaim s g b 0 - justid", "*3|$3|0-0|*2|$3|1-0|$3|4-0|*1|$3|3-0|"),
        ("xautoclaim s x b 0 0", &format!("{no_group}|")),
        ("xack s g 1 1 9", ":1|"),
        ("xack s g x", INVALID),
        ("xack s x 1", ":0|"),
        ("xgroup delconsumer s g b", ":1|"),
        ("xpending s g", "*4|:0|$-1|$-1|*-1|"),
        ("xgroup createconsumer s g c", ":1|"),
        ("xgroup createconsumer s g c", ":0|"),
        ("xgroup setid s g 0", "+OK|"),
        ("xreadgroup group g c count 1 streams s >", "*1|*2|$1|s|*1|*2|$3|1-0|*2|$1|f|$1|v|"),
        ("xgroup destroy s g", ":1|"),
        ("xgroup destroy s g", ":0|"),
        ("xgroup setid s g 0", "-NOGROUP No such consumer group 'g' for key name 's'|"),
        ("xgroup create x g $ mkstream", "+OK|"),
        ("xlen x", ":0|"),
        (
            "xgroup create x h 1 mkstream bad",
            "-ERR unknown subcommand or wrong number of arguments for 'create'. Try XGROUP HELP.|",
        ),
        (
            "xreadgroup group g c streams y >",
            "-NOGROUP No such key 'y' or consumer group 'g' in XREADGROUP with GROUP option|",
        ),
    ]);
    let answer = bench.words("xgroup create y g 0");
    assert!(answer.starts_with("-ERR The XGROUP subcommand requires the key to exist."), "{answer}");
}

#[test]
fn a_request_that_waits_says_from_where() {
    let mut bench = Bench::new();
    bench.words("xadd s 5-3 f v");
    let names = Names::new(&bench.keyspace.databases, 0, false);
    let fixed = |line: &str| {
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        for word in line.split(' ') {
            ranges.push(buffer.len()..buffer.len() + word.len());
            buffer.extend_from_slice(word.as_bytes());
        }
        let bytes = super::fixed_request(&Args::new(&buffer, &ranges), &names, &bench.keyspace, NOW_MS)?;
        Some(String::from_utf8_lossy(&bytes).replace("\r\n", "|"))
    };
    assert_eq!(fixed("xread block 0 streams s 1"), None);
    assert_eq!(fixed("xreadgroup group g c block 0 streams s >"), None);
    let expected = "*8|$5|xread|$5|block|$1|0|$7|streams|$1|s|$1|$|$3|5-3|$3|0-0|";
    assert_eq!(fixed("xread block 0 streams s $ $ $").as_deref(), Some(expected));
}

#[test]
fn what_a_group_has_read_and_how_far_it_is_behind_is_told() {
    let mut bench = Bench::new();
    let lag = |bench: &mut Bench| {
        let answer = bench.words("xinfo groups s");
        answer.split("$12|entries-read|").nth(1).map(str::to_owned).expect("a group")
    };
    bench.expect(&[("xgroup create s g 0 mkstream", "+OK|")]);
    assert_eq!(lag(&mut bench), "$-1|$3|lag|:0|");
    for number in 1..=5 {
        bench.words(&format!("xadd s {number} f v"));
    }
    assert_eq!(lag(&mut bench), "$-1|$3|lag|:5|");
    bench.words("xreadgroup group g c count 2 streams s >");
    assert_eq!(lag(&mut bench), ":2|$3|lag|:3|");
    bench.words("xdel s 4");
    assert_eq!(lag(&mut bench), ":2|$3|lag|$-1|");
    bench.words("xreadgroup group g c streams s >");
    assert_eq!(lag(&mut bench), ":5|$3|lag|:0|");
    bench.expect(&[
        ("xgroup setid s g 0 entriesread 3", "+OK|"),
        ("xgroup setid s g 0 entriesread -2", "-ERR value for ENTRIESREAD must be positive or -1|"),
    ]);
    assert_eq!(lag(&mut bench), ":3|$3|lag|$-1|");
}

#[test]
fn a_stream_is_described() {
    let mut bench = Bench::new();
    bench.version = ProtocolVersion::Resp3;
    bench.expect(&[
        ("xadd s 1-1 f v", "$3|1-1|"),
        ("xadd s 2-1 f v", "$3|2-1|"),
        ("xgroup create s g 0", "+OK|"),
        ("xreadgroup group g c count 1 streams s >", "%1|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|"),
        ("xdel s 1-1", ":1|"),
        (
            "xinfo stream s",
            "%10|$6|length|:1|$15|radix-tree-keys|:1|$16|radix-tree-nodes|:2|$17|last-generated-id|$3|2-1|\
             $20|max-deleted-entry-id|$3|1-1|$13|entries-added|:2|$23|recorded-first-entry-id|$3|2-1|\
             $6|groups|:1|$11|first-entry|*2|$3|2-1|*2|$1|f|$1|v|$10|last-entry|*2|$3|2-1|*2|$1|f|$1|v|",
        ),
        ("xinfo consumers s g", "*1|%4|$4|name|$1|c|$7|pending|:1|$4|idle|:0|$8|inactive|:0|"),
        ("xinfo consumers s x", "-NOGROUP No such consumer group 'x' for key name 's'|"),
        ("xinfo groups x", "-ERR no such key|"),
        (
            "xinfo stream s full count",
            "-ERR unknown subcommand or wrong number of arguments for 'stream'. Try XINFO HELP.|",
        ),
    ]);
    let full = bench.words("xinfo stream s full count 1");
    let expected = format!(
        "$6|groups|*1|%7|$4|name|$1|g|$17|last-delivered-id|$3|1-1|$12|entries-read|:1|$3|lag|:1|$9|pel-count|:1|\
         $7|pending|*1|*4|$3|1-1|$1|c|:{NOW_MS}|:1|$9|consumers|*1|%5|$4|name|$1|c|$9|seen-time|:{NOW_MS}|\
         $11|active-time|:{NOW_MS}|$9|pel-count|:1|$7|pending|*1|*3|$3|1-1|:{NOW_MS}|:1|"
    );
    assert!(full.ends_with(&expected), "{full}");
}

#[test]
fn other_types_are_refused_and_refuse() {
    let mut bench = Bench::new();
    bench.words("set n 1");
    bench.words("xadd s 1 f v");
    for line in [
        "xadd n 1 f v",
        "xlen n",
        "xrange n - +",
        "xread streams n 0",
        "xdel n 1",
        "xtrim n maxlen 1",
        "xsetid n 1",
        "xgroup create n g 0",
        "xgroup destroy n g",
        "xreadgroup group g c streams n >",
        "xack n g 1",
        "xpending n g",
        "xclaim n g c 0 1",
        "xautoclaim n g c 0 0",
        "xinfo stream n",
        "xinfo groups n",
        "xinfo consumers n g",
        "get s",
        "hget s f",
        "append s x",
    ] {
        assert_eq!(bench.words(line), WRONG, "{line}");
    }
}

#[test]
fn a_stream_can_be_copied_renamed_and_deleted() {
    let mut bench = Bench::new();
    for number in 1..=300 {
        bench.words(&format!("xadd s {number} f{} {number}", number % 7));
    }
    bench.words("xgroup create s g 0");
    bench.words("xreadgroup group g c count 50 streams s >");
    bench.expect(&[
        ("copy s t", ":1|"),
        ("rename s u", "+OK|"),
        ("xlen t", ":300|"),
        ("xrange t 300 +", "*1|*2|$5|300-0|*2|$2|f6|$3|300|"),
        ("xpending t g", "*4|:50|$3|1-0|$4|50-0|*1|*2|$1|c|$2|50|"),
        ("pexpire u 10", ":1|"),
        ("del t", ":1|"),
    ]);
    bench.now_ms += 11;
    bench.expect(&[
        ("xlen u", ":0|"),
        ("xadd u 1 f v", "$3|1-0|"),
        ("xpending u g", "-NOGROUP No such key 'u' or consumer group 'g'|"),
    ]);
}

const WORDS: &str = "s s s t g g h a b streams group noack count block justid force idle time retrycount lastid maxlen \
    minid ~ = limit nomkstream entriesread mkstream entriesadded maxdeletedid full idle start - + $ > * ( 0 0-0 0-1 1 \
    2 3 5 1-1 2-2 (1-1 1-* 7-* -1 x 18446744073709551615-18446744073709551615 9223372036854775807";

fn request() -> impl Strategy<Value = Vec<String>> {
    let words: Vec<&'static str> = WORDS.split_whitespace().collect();
    let some = |from: &[&'static str]| proptest::sample::select(from.to_vec()).prop_map(str::to_owned);
    let any = proptest::collection::vec(some(&words), 1..9);
    let names = some(&[
        "xadd",
        "xlen",
        "xrange",
        "xrevrange",
        "xread",
        "xdel",
        "xtrim",
        "xsetid",
        "xgroup create",
        "xgroup setid",
        "xgroup destroy",
        "xgroup createconsumer",
        "xgroup delconsumer",
        "xreadgroup",
        "xack",
        "xpending",
        "xclaim",
        "xautoclaim",
        "xinfo stream",
        "xinfo groups",
        "xinfo consumers",
        "del",
    ]);
    // What makes the others come upon something.
    let sensible = some(&[
        "xadd s * f v",
        "xadd t * g 1",
        "xgroup create s g 0 mkstream",
        "xreadgroup group g a count 2 streams s >",
        "xreadgroup group g b streams s 0",
        "xclaim s g b 0 1-1 2-2 force",
        "xautoclaim s g a 0 -",
        "xdel s 1-1",
        "xadd s 1-* f v",
        "xadd s 2-2 f v h w",
        "xtrim s maxlen 3",
    ]);
    let line = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    prop_oneof![
        1 => (names, any).prop_map(move |(name, words)| [line(name), words].concat()),
        1 => sensible.prop_map(line),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_arguments_are_answered_and_the_replica_follows(
        requests in proptest::collection::vec(request(), 1..60), three: bool,
    ) {
        let mut bench = Bench::new();
        bench.version = if three { ProtocolVersion::Resp3 } else { ProtocolVersion::Resp2 };
        for request in requests {
            let words: Vec<&[u8]> = request.iter().map(String::as_bytes).collect();
            let reply = bench.run(&words);
            prop_assert!(reply.ends_with(b"\r\n"));
            if reply.starts_with(b"-") {
                prop_assert_eq!(reply.iter().filter(|&&byte| byte == b'\n').count(), 1);
                prop_assert!(bench.count == 0, "an error, and still a change: {:?}", request);
            }
        }
    }
}
