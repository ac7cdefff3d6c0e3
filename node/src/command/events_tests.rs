//! Which events commands tell, compared with what Redis 7.0 tells.

use super::testing::Bench;

/// Runs lines on one keyspace and compares what each tells, as `event key`.
fn expect(lines: &[(&str, &str)]) {
    let mut bench = Bench::new();
    for (line, events) in lines {
        bench.words(line);
        let told: Vec<String> = bench
            .notices
            .iter()
            .map(|notice| format!("{} {}", notice.event, String::from_utf8_lossy(&notice.key)))
            .collect();
        assert_eq!(told.join(", "), *events, "{line}");
    }
}

#[test]
fn strings_tell_what_redis_tells() {
    expect(&[
        ("get a", "keymiss a"),
        ("set a 1", "new a, set a"),
        ("set a 1 ex 10", "set a, expire a"),
        ("set a 2 nx", ""),
        ("get a", ""),
        ("setex a 10 1", "set a, expire a"),
        ("psetex b 10 1", "new b, set b, expire b"),
        ("getset a 5", "set a"),
        ("incr a", "incrby a"),
        ("decrby a 2", "incrby a"),
        ("incrbyfloat a 0.5", "incrbyfloat a"),
        ("append a x", "append a"),
        ("append n x", "new n, append n"),
        ("setrange a 1 yy", "setrange a"),
        ("setrange a 1 ", ""),
        ("mset a 1 c 2", "set a, new c, set c"),
        ("msetnx a 1 d 2", ""),
        ("setnx d 1", "new d, set d"),
        ("setnx d 1", ""),
        ("getex d ex 10", "expire d"),
        ("getex d persist", "persist d"),
        ("getex d", ""),
        ("getex d pxat 1", "del d"),
        ("getdel c", "del c"),
        ("getdel c", "keymiss c"),
    ]);
}

#[test]
fn keys_tell_what_redis_tells() {
    expect(&[
        ("set a 1", "new a, set a"),
        ("expire a 100", "expire a"),
        ("expire a 50 gt", ""),
        ("persist a", "persist a"),
        ("persist a", ""),
        ("rename a b", "new b, rename_from a, rename_to b"),
        ("copy b c", "new c, copy_to c"),
        ("copy b c", ""),
        ("renamenx b c", ""),
        ("expire b -1", "del b"),
        ("expire b 1", ""),
        ("del c none", "del c"),
        ("set d 1", "new d, set d"),
        ("unlink d", "del d"),
        ("exists d", "keymiss d"),
    ]);
}

#[test]
fn hashes_tell_what_redis_tells() {
    expect(&[
        ("hset h a 1 b 2", "new h, hset h"),
        ("hsetnx h a 1", ""),
        ("hsetnx h c 1", "hset h"),
        ("hincrby h c 1", "hincrby h"),
        ("hincrbyfloat h c 0.5", "hincrbyfloat h"),
        ("hdel h none", ""),
        ("hdel h a", "hdel h"),
        ("hdel h b c", "hdel h, del h"),
    ]);
}

#[test]
fn lists_tell_what_redis_tells() {
    expect(&[
        ("lpushx l a", ""),
        ("rpush l a b c d", "new l, rpush l"),
        ("lpush l x y", "lpush l"),
        ("lset l 0 y", "lset l"),
        ("linsert l before a q", "linsert l"),
        ("linsert l before none q", ""),
        ("lrem l 0 none", ""),
        ("lrem l 0 q", "lrem l"),
        ("ltrim l 1 -1", "ltrim l"),
        ("lpop l", "lpop l"),
        ("rpop l 0", ""),
        ("rpop l 2", "rpop l"),
        ("lmove l m left right", "new m, rpush m, lpop l"),
        ("rpoplpush l m", "lpush m, rpop l, del l"),
        ("lmove m m left right", "rpush m, lpop m"),
        ("lmpop 2 none m left count 9", "lpop m, del m"),
        ("lpop m", ""),
        ("rpush l a", "new l, rpush l"),
        ("ltrim l 5 6", "ltrim l, del l"),
        ("rpush l a", "new l, rpush l"),
        ("lmove l l left left", "lpush l, lpop l"),
        ("lrem l 0 a", "lrem l, del l"),
    ]);
}

#[test]
fn streams_tell_what_redis_tells() {
    expect(&[
        ("xadd s 1 f v", "new s, xadd s"),
        ("xadd s maxlen 1 2 f v", "xadd s, xtrim s"),
        ("xadd s maxlen 5 3 f v", "xadd s"),
        ("xdel s 3", "xdel s"),
        ("xdel s 3", ""),
        ("xtrim s maxlen 0", "xtrim s"),
        ("xtrim s maxlen 0", ""),
        ("xsetid s 9", "xsetid s"),
        ("xgroup create s g 0", "xgroup-create s"),
        ("xgroup create n g $ mkstream", "new n, xgroup-create n"),
        ("xgroup setid s g 0", "xgroup-setid s"),
        ("xgroup createconsumer s g c", "xgroup-createconsumer s"),
        ("xgroup createconsumer s g c", ""),
        ("xadd s 10 f v", "xadd s"),
        ("xreadgroup group g d streams s >", "xgroup-createconsumer s"),
        ("xreadgroup group g d streams s >", ""),
        ("xclaim s g e 0 10", "xgroup-createconsumer s"),
        ("xautoclaim s g f 0 0", "xgroup-createconsumer s"),
        ("xack s g 10", ""),
        ("xgroup delconsumer s g d", "xgroup-delconsumer s"),
        ("xgroup delconsumer s g d", ""),
        ("xgroup destroy s g", "xgroup-destroy s"),
        ("xgroup destroy s g", ""),
    ]);
}

#[test]
fn what_ends_tells_so_once() {
    let mut bench = Bench::new();
    bench.words("set a 1 px 10");
    bench.now_ms += 11;
    assert_eq!(bench.words("get a"), "$-1|");
    let told: Vec<&str> = bench.notices.iter().map(|notice| notice.event).collect();
    assert_eq!(told, ["expired", "keymiss"]);
    bench.words("strlen a");
    assert_eq!(bench.notices.len(), 1);
}
