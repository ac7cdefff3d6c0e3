//! Sorted sets, through the commands.

use korum_protocol::resp::ProtocolVersion;

use crate::command::testing::Bench;

const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value|";

/// A bench with three members in one sorted set.
fn three() -> Bench {
    let mut bench = Bench::new();
    assert_eq!(bench.words("zadd z 1 a 2 b 3 c"), ":3|");
    bench
}

#[test]
fn scores_are_given_under_conditions() {
    let mut bench = three();
    bench.expect(&[
        ("zadd z 1.5 a 4 d", ":1|"),
        ("zadd z ch 1.5 a 2.5 b 5 e", ":2|"),
        ("zadd z nx 9 a 9 f", ":1|"),
        ("zadd z xx 7 f 7 g", ":0|"),
        ("zscore z f", "$1|7|"),
        ("zscore z g", "$-1|"),
        ("zadd z gt ch 6 f 8 e", ":1|"),
        ("zadd z lt ch 6 f 9 e", ":1|"),
        ("zadd z incr 1.5 a", "$1|3|"),
        ("zadd z nx incr 1.5 a", "$-1|"),
        ("zadd z xx incr 1.5 none", "$-1|"),
        ("zadd none xx 1 a", ":0|"),
        ("zadd none xx incr 1 a", "$-1|"),
        ("exists none", ":0|"),
        ("zincrby z -0.5 a", "$3|2.5|"),
        ("zincrby n 3 a", "$1|3|"),
        ("zadd i +inf a", ":1|"),
        ("zincrby i -inf a", "-ERR resulting score is not a number (NaN)|"),
        ("zadd z nx xx 1 a", "-ERR XX and NX options at the same time are not compatible|"),
        ("zadd z gt nx 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible|"),
        ("zadd z gt lt 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible|"),
        ("zadd z incr 1 a 2 b", "-ERR INCR option supports a single increment-element pair|"),
        ("zadd z 1 a 2", "-ERR syntax error|"),
        ("zadd z x a", "-ERR value is not a valid float|"),
        ("zadd z 1 q nan r", "-ERR value is not a valid float|"),
        ("zscore z q", "$-1|"),
        ("zmscore z a x e", "*3|$3|2.5|$-1|$1|8|"),
        ("zmscore x a b", "*2|$-1|$-1|"),
        ("type z", "+zset|"),
        ("object encoding z", "$8|listpack|"),
    ]);
    bench.words("zadd z ch 5 a");
    assert_eq!(bench.count, 1);
    bench.words("zadd z ch 5 a");
    assert_eq!(bench.count, 0, "nothing changed");
}

#[test]
fn members_have_ranks_and_are_removed() {
    let mut bench = three();
    bench.expect(&[
        ("zcard z", ":3|"),
        ("zcard x", ":0|"),
        ("zrank z c", ":2|"),
        ("zrevrank z c", ":0|"),
        ("zrank z x", "$-1|"),
        ("zrank z b withscore", "*2|:1|$1|2|"),
        ("zrevrank z x withscore", "*-1|"),
        ("zrank z b x", "-ERR syntax error|"),
        ("zrank z b withscore x", "-ERR wrong number of arguments for 'zrank' command|"),
        ("zrem z a x", ":1|"),
        ("zrem x a", ":0|"),
        ("zrem z b c", ":2|"),
        ("exists z", ":0|"),
    ]);
    bench.version = ProtocolVersion::Resp3;
    bench.expect(&[
        ("zadd z 1.5 a", ":1|"),
        ("zrank z a withscore", "*2|:0|,1.5|"),
        ("zrank z x withscore", "_|"),
        ("zscore z a", ",1.5|"),
        ("zscore z x", "_|"),
        ("zincrby z inf a", ",inf|"),
    ]);
}

#[test]
fn ranges_are_read() {
    let mut bench = three();
    bench.expect(&[
        ("zrange z 0 -1", "*3|$1|a|$1|b|$1|c|"),
        ("zrange z 0 -1 rev", "*3|$1|c|$1|b|$1|a|"),
        ("zrange z 0 0 rev withscores", "*2|$1|c|$1|3|"),
        ("zrevrange z 1 1", "*1|$1|b|"),
        ("zrange z 2 1", "*0|"),
        ("zrange z -100 0", "*1|$1|a|"),
        ("zrange z 3 10", "*0|"),
        ("zrange x 0 -1", "*0|"),
        ("zrangebyscore z 1 2", "*2|$1|a|$1|b|"),
        ("zrangebyscore z (1 (3", "*1|$1|b|"),
        ("zrangebyscore z -inf +inf limit 1 1", "*1|$1|b|"),
        ("zrangebyscore z -inf +inf limit 1 -1", "*2|$1|b|$1|c|"),
        ("zrangebyscore z -inf +inf limit -1 2", "*0|"),
        ("zrevrangebyscore z 3 2 withscores", "*4|$1|c|$1|3|$1|b|$1|2|"),
        ("zrevrangebyscore z inf -inf limit 1 1", "*1|$1|b|"),
        ("zrange z 3 2 byscore rev", "*2|$1|c|$1|b|"),
        (
            "zrange z 0 1 limit 0 1",
            "-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX|",
        ),
        (
            "zrange z - + bylex withscores",
            "-ERR syntax error, WITHSCORES not supported in combination with BYLEX|",
        ),
        ("zrange z a 1", "-ERR value is not an integer or out of range|"),
        ("zrange z a 1 byscore", "-ERR min or max is not a float|"),
        ("zrange z a + bylex", "-ERR min or max not valid string range item|"),
        ("zrange z 0 1 byscore bylex", "-ERR syntax error|"),
        ("zrevrange z 0 1 rev", "-ERR syntax error|"),
        ("zrange z 0 1 limit 1 -1", "*2|$1|a|$1|b|"),
        ("zrangebyscore z 0 1 limit 1", "-ERR syntax error|"),
        ("zcount z 1 (3", ":2|"),
        ("zcount x 1 2", ":0|"),
        ("zcount z x 2", "-ERR min or max is not a float|"),
        ("zadd n 0 a 0 aa 0 b 0 c", ":4|"),
        ("zrangebylex n - +", "*4|$1|a|$2|aa|$1|b|$1|c|"),
        ("zrangebylex n [aa (c", "*2|$2|aa|$1|b|"),
        ("zrangebylex n + -", "*0|"),
        ("zrevrangebylex n + (a limit 1 1", "*1|$1|b|"),
        ("zrange n (c [aa bylex rev", "*2|$1|b|$2|aa|"),
        ("zlexcount n (a +", ":3|"),
        ("zlexcount n a +", "-ERR min or max not valid string range item|"),
    ]);
    bench.version = ProtocolVersion::Resp3;
    bench.expect(&[
        ("zrange z 0 1 withscores", "*2|*2|$1|a|,1|*2|$1|b|,2|"),
        ("zrange x 0 1 withscores", "*0|"),
    ]);
}

#[test]
fn ranges_are_stored_and_removed() {
    three().expect(&[
        ("zrangestore d z 0 1", ":2|"),
        ("zrange d 0 -1 withscores", "*4|$1|a|$1|1|$1|b|$1|2|"),
        ("zrangestore d z 3 2 byscore rev limit 0 1", ":1|"),
        ("zrange d 0 -1", "*1|$1|c|"),
        ("zrangestore d z 0 1 withscores", "-ERR syntax error|"),
        ("zrangestore d x 0 1", ":0|"),
        ("exists d", ":0|"),
        ("zrangestore z z 1 -1", ":2|"),
        ("zadd z 1 a 4 d", ":2|"),
        ("zremrangebyrank z 0 0", ":1|"),
        ("zremrangebyscore z (3 inf", ":1|"),
        ("zremrangebylex z [b [b", ":1|"),
        ("zremrangebyrank z x 0", "-ERR value is not an integer or out of range|"),
        ("zremrangebyscore x 0 1", ":0|"),
        ("zremrangebyrank z 0 -1", ":1|"),
        ("exists z", ":0|"),
    ]);
}

#[test]
fn ends_are_popped() {
    let mut bench = three();
    bench.expect(&[
        ("zpopmin x", "*0|"),
        ("zpopmin z 0", "*0|"),
        ("zpopmin z -1", "-ERR value is out of range, must be positive|"),
        ("zpopmin z 1 1", "-ERR syntax error|"),
        ("zpopmin z", "*2|$1|a|$1|1|"),
        ("zpopmax z 1", "*2|$1|c|$1|3|"),
        ("zmpop 2 x z max", "*2|$1|z|*1|*2|$1|b|$1|2|"),
        ("exists z", ":0|"),
        ("zmpop 2 x z max", "*-1|"),
        ("zmpop 0 x max", "-ERR numkeys should be greater than 0|"),
        ("zmpop 2 x max", "-ERR syntax error|"),
        ("zmpop 1 x max count 0", "-ERR count should be greater than 0|"),
        ("zmpop 1 x max count 1 count 1", "-ERR syntax error|"),
        ("zadd z 1 a 2 b 3 c", ":3|"),
        ("zmpop 1 z min count 2", "*2|$1|z|*2|*2|$1|a|$1|1|*2|$1|b|$1|2|"),
        ("zpopmax z 9", "*2|$1|c|$1|3|"),
    ]);
    bench.version = ProtocolVersion::Resp3;
    bench.expect(&[
        ("zadd z 1 a 2 b 3 c", ":3|"),
        ("zpopmin z", "*2|$1|a|,1|"),
        ("zpopmin z 1", "*1|*2|$1|b|,2|"),
        ("zmpop 1 x min", "_|"),
    ]);
}

#[test]
fn sets_are_put_together() {
    let mut bench = three();
    bench.expect(&[
        ("zadd y 10 b 20 c 30 d", ":3|"),
        ("sadd s a d", ":2|"),
        ("zunion 2 z y withscores", "*8|$1|a|$1|1|$1|b|$2|12|$1|c|$2|23|$1|d|$2|30|"),
        ("zunion 2 z y", "*4|$1|a|$1|b|$1|c|$1|d|"),
        ("zinter 2 z y withscores weights 2 1", "*4|$1|b|$2|14|$1|c|$2|26|"),
        ("zinter 2 z y withscores aggregate min", "*4|$1|b|$1|2|$1|c|$1|3|"),
        ("zunion 2 z s withscores aggregate max", "*8|$1|a|$1|1|$1|d|$1|1|$1|b|$1|2|$1|c|$1|3|"),
        ("zdiff 2 z y withscores", "*2|$1|a|$1|1|"),
        ("zdiff 2 z none", "*3|$1|a|$1|b|$1|c|"),
        ("zdiff 1 none", "*0|"),
        ("zinter 2 z none", "*0|"),
        ("zintercard 2 z y", ":2|"),
        ("zintercard 2 z y limit 1", ":1|"),
        ("zintercard 2 z y limit -1", "-ERR LIMIT can't be negative|"),
        ("zunionstore d 2 z s", ":4|"),
        ("zrange d 0 -1 withscores", "*8|$1|d|$1|1|$1|a|$1|2|$1|b|$1|2|$1|c|$1|3|"),
        ("zinterstore d 2 z d weights 1 -inf", ":3|"),
        ("zscore d a", "$4|-inf|"),
        ("zdiffstore d 2 z z", ":0|"),
        ("exists d", ":0|"),
        ("zadd i inf a", ":1|"),
        ("zadd j -inf a", ":1|"),
        ("zunion 2 i j withscores", "*2|$1|a|$1|0|"),
        ("zunion 1 i withscores weights 0", "*2|$1|a|$1|0|"),
        ("zunion 0 z", "-ERR at least 1 input key is needed for 'zunion' command|"),
        ("zunion x z", "-ERR value is not an integer or out of range|"),
        ("zunion 2 z", "-ERR syntax error|"),
        ("zunion 1 z weights", "-ERR syntax error|"),
        ("zunion 1 z weights x", "-ERR weight value is not a float|"),
        ("zunion 1 z aggregate avg", "-ERR syntax error|"),
        ("zdiff 1 z weights 1", "-ERR syntax error|"),
        ("zunionstore d 1 z withscores", "-ERR syntax error|"),
        ("zintercard 1 z withscores", "-ERR syntax error|"),
        ("set k v", "+OK|"),
        ("zunion 2 z k", WRONG),
        ("zunionstore k 1 z", ":3|"),
        ("type k", "+zset|"),
    ]);
    bench.version = ProtocolVersion::Resp3;
    bench.expect(&[("zinter 2 z y withscores", "*2|*2|$1|b|,12|*2|$1|c|,23|")]);
}

#[test]
fn a_large_sorted_set_is_walked_and_sampled() {
    let mut bench = Bench::new();
    for number in 0..600 {
        bench.words(&format!("zadd z {} member{number}", number % 7));
    }
    assert_eq!(bench.words("object encoding z"), "$8|skiplist|");
    assert!(bench.words("zscan z 0 count 100").starts_with("*2|$3|500|*200|"));
    assert!(bench.words("zscan z 100 count 100 match member7").starts_with("*2|$1|0|*2|$7|member7|$1|0|"));
    assert!(bench.words("zrandmember z -700 withscores").starts_with("*1400|"));
    assert!(bench.words("zrandmember z 9999").starts_with("*600|"));
    assert!(bench.words("zrandmember z").starts_with("$"));
    assert!(
        bench.words("zrandmember z -4611686018427387903 withscores").starts_with("-ERR the reply is too")
    );
    bench.expect(&[
        ("zrandmember z 0", "*0|"),
        ("zrandmember x", "$-1|"),
        ("zrandmember x 1 withscores", "*0|"),
        ("zrandmember z 1 x", "-ERR syntax error|"),
        ("zrandmember z 1 withscores x", "-ERR syntax error|"),
        ("zscan x 0", "*2|$1|0|*0|"),
        ("zrange z 0 1", "*2|$7|member0|$9|member105|"),
        ("zremrangebyscore z 0 5", ":515|"),
        ("zcard z", ":85|"),
        ("object encoding z", "$8|skiplist|"),
    ]);
    bench.version = ProtocolVersion::Resp3;
    assert!(bench.words("zrandmember z 2 withscores").starts_with("*2|*2|$"));
}

#[test]
fn other_types_are_refused() {
    let mut bench = three();
    bench.words("set k 1");
    bench.words("sadd s 1");
    for line in [
        "zadd k 1 a",
        "zincrby k 1 a",
        "zrem k a",
        "zcard k",
        "zscore k a",
        "zmscore k a",
        "zrank k a",
        "zcount k 0 1",
        "zlexcount k - +",
        "zrange k 0 1",
        "zrangestore d k 0 1",
        "zrangebyscore k 0 1",
        "zremrangebyrank k 0 1",
        "zpopmin k",
        "zpopmin k 0",
        "zmpop 2 x k min",
        "zrandmember k",
        "zrandmember k 1",
        "zscan k 0",
        "zunion 1 k",
        "zadd s 1 a",
        "get z",
        "sadd z a",
        "sunion z",
    ] {
        assert_eq!(bench.words(line), WRONG, "{line}");
    }
}
