"""Sorted sets: scores, ranges, ends, several put together.

Redis 7.0 prints scores with 17 digits, 7.2 and Korum with as few as read back; and Redis keeps -0 in large sets only.
So numbers are compared as what they are (`by_number`).
Ranges of names are asked only of keys whose members all have one score: for any other set the answer is not defined.
"""

import re

from . import Family, rules

NUMBER = re.compile(rb"-?[0-9]+([.][0-9]+)?(e[-+][0-9]+)?")


def by_number(rule):
    """A rule for replies in which numbers are written in one way."""
    def written(reply):
        kind, content = reply
        if isinstance(content, list):
            return kind, [written(item) for item in content]
        if kind in b"$," and content is not None and NUMBER.fullmatch(content):
            return kind, b"%.17g" % (float(content) + 0.0)
        return reply
    return lambda left, right: rule(written(left), written(right))


EXACT = by_number(rules.exact)
LARGE = [b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808"]


class SortedSets(Family):
    NAME = "sorted_sets"
    WEIGHT = 60
    PREFIX = b"z"
    SHARES = ((24, "add"), (6, "increment"), (6, "remove"), (10, "read"), (6, "rank"), (12, "range"), (6, "older_range"),
              (5, "count"), (4, "remove_range"), (5, "store_range"), (7, "pop"), (5, "pop_any"), (4, "chance"), (12, "several"),
              (4, "several_counted"), (3, "scan"), (2, "large"), (8, "name_add"), (8, "name_range"), (3, "waits"))
    RULES = {"ZRANDMEMBER": rules.shape, "ZSCAN": by_number(rules.scanned_pairs)} | dict.fromkeys((
        "ZADD", "ZINCRBY", "ZSCORE", "ZMSCORE", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZPOPMIN",
        "ZPOPMAX", "ZMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP", "ZUNION", "ZINTER", "ZDIFF",
    ), EXACT)
    EXCHANGED = (b"zset",)
    READS = {b"zset": [[b"ZRANGE", b"KEY", b"0", b"-1", b"WITHSCORES"], [b"ZCARD", b"KEY"], [b"OBJECT", b"ENCODING", b"KEY"]]}

    @classmethod
    def keys(cls):
        """The keys that other families know of, too."""
        return super().keys()[:4]

    @classmethod
    def name_keys(cls):
        """The keys for ranges of names: nobody else makes other scores of them."""
        return super().keys()[4:]

    def key(self):
        """One of its keys, seldom one of another family."""
        return self.any(*self.keys()) if self.random.random() < 0.93 else self.other()

    def other(self):
        """A key of another family, or a set: never one of those for ranges of names."""
        return self.any(b"{d}s0", b"{d}s1", b"{d}1", b"{d}h0")

    def name_key(self):
        """A key whose members all have the score 0."""
        return self.any(*self.name_keys())

    def near(self):
        """The key of a source: sets count too."""
        return self.key() if self.random.random() < 0.8 else self.any(b"{d}s0", b"{d}s1", self.name_key())

    def score(self):
        """Scores, and what is none."""
        if self.random.random() < 0.85:
            return str(self.random.randint(-40, 40) / self.any(1, 1, 2, 4, 10, 3)).encode()
        return self.any(b"inf", b"-inf", b"+inf", b"nan", b"x", b"", b" 1", b"1e3", b"0x10", b"1e400", b"99999999999999", b"-5e-1", b"infinity",
                        b"1e17", b"123456789012345678", b"1e-7", b"-1.5e300", b"1e-320")

    def end(self):
        """An end of a range of scores."""
        return self.any(b"", b"", b"(") + self.any(self.score(), self.score(), b"-inf", b"+inf")

    def place(self):
        """A place in the order."""
        return b"%d" % self.random.randint(-8, 8) if self.random.random() < 0.9 else self.any(b"100", b"-100", b"x", b"1.5", *LARGE)

    def name(self):
        """An end of a range of names."""
        if self.random.random() < 0.25:
            return self.any(b"-", b"+", b"a", b"", b"+x")
        return self.any(b"[", b"(") + self.words.item()

    def limit(self):
        """LIMIT, or nothing."""
        return self.maybe(b"LIMIT", self.any(b"0", b"1", b"2", b"100", b"-1", b"x"), self.any(b"0", b"1", b"3", b"-1", b"x", b"100"))

    def add(self):
        """Scores are given."""
        options = [self.maybe(self.any(b"NX", b"XX", b"xx")), self.maybe(self.any(b"GT", b"LT"), chance=0.2), self.maybe(b"CH"),
                   self.maybe(b"INCR", chance=0.08), self.maybe(b"BAD", chance=0.02)]
        pairs = sum(([self.score(), self.words.item()] for _ in range(self.any(1, 1, 2, 5))), [])
        return [b"ZADD", self.key()] + self.words.shuffled(*options) + pairs

    def increment(self):
        """A score grows."""
        return [b"ZINCRBY", self.key(), self.score(), self.words.item()]

    def remove(self):
        """Members go."""
        return [b"ZREM", self.key()] + [self.words.item() for _ in range(self.random.randint(1, 4))]

    def read(self):
        """Members and scores are asked for."""
        word = self.any(b"ZSCORE", b"ZMSCORE", b"ZCARD")
        count = {b"ZSCORE": 1, b"ZMSCORE": self.random.randint(1, 4)}.get(word, 0)
        return [word, self.key()] + [self.words.item() for _ in range(count)]

    def rank(self):
        """Places are asked for. (WITHSCORE is newer than 7.0.)"""
        return [self.any(b"ZRANK", b"ZREVRANK"), self.key(), self.words.item()]

    def range_options(self):
        """The kind of a range with its ends: not by names."""
        by = self.any([], [], [b"BYSCORE"], [b"BYSCORE", b"REV"], [b"REV"], [b"BYSCORE", b"BYSCORE"], [b"REV", b"REV"])
        ends = [self.end(), self.end()] if b"BYSCORE" in by else [self.place(), self.place()]
        return ends, by

    def range(self):
        """ZRANGE with its options."""
        ends, by = self.range_options()
        limit = self.limit() if by or self.random.random() < 0.1 else []
        return [b"ZRANGE", self.key()] + ends + self.words.shuffled(by, limit, self.maybe(b"WITHSCORES"), self.maybe(b"BAD", chance=0.03))

    def older_range(self):
        """The commands before ZRANGE could do all."""
        word = self.any(b"ZREVRANGE", b"ZRANGEBYSCORE", b"ZREVRANGEBYSCORE")
        ends = [self.place(), self.place()] if word == b"ZREVRANGE" else [self.end(), self.end()]
        return [word, self.key()] + ends + self.words.shuffled(self.maybe(b"WITHSCORES"), self.limit(), self.maybe(b"REV", chance=0.03))

    def store_range(self):
        """ZRANGESTORE with its options."""
        ends, by = self.range_options()
        return [b"ZRANGESTORE", self.key(), self.near()] + ends + self.words.shuffled(by, self.limit(), self.maybe(b"WITHSCORES", chance=0.03))

    def count(self):
        """Members in a range of scores."""
        return [b"ZCOUNT", self.key(), self.end(), self.end()]

    def remove_range(self):
        """Ranges go."""
        return self.any([b"ZREMRANGEBYRANK", self.key(), self.place(), self.place()],
                        [b"ZREMRANGEBYSCORE", self.key(), self.end(), self.end()])

    def pop(self):
        """Members go from the ends."""
        return [self.any(b"ZPOPMIN", b"ZPOPMAX"), self.key()] + self.maybe(self.any(b"0", b"1", b"2", b"100", b"-1", b"x", *LARGE), chance=0.6)

    def counted(self, make):
        """Keys behind their number, which may be wrong."""
        keys = [make() for _ in range(self.random.randint(1, 3))]
        number = b"%d" % len(keys) if self.random.random() < 0.93 else self.any(b"0", b"-1", b"x", b"9", *LARGE)
        return [number] + keys

    def pop_any(self):
        """Members go from the first set that has any."""
        return ([b"ZMPOP"] + self.counted(self.key) + [self.any(b"MIN", b"MAX", b"min", b"BAD")]
                + self.maybe(b"COUNT", self.any(b"1", b"2", b"10", b"0", b"-1", b"x", *LARGE)) + self.maybe(b"COUNT", b"1", chance=0.03))

    def waits(self):
        """Commands that may wait, a moment: nobody else adds anything meanwhile."""
        time = self.any(b"0.01", b"0.01", b"0.001", b"-1", b"x", b"")
        keys = [self.key() for _ in range(self.random.randint(1, 3))]
        if self.random.random() < 0.6:
            return [self.any(b"BZPOPMIN", b"BZPOPMAX")] + keys + [time]
        return ([b"BZMPOP", time, b"%d" % len(keys)] + keys + [self.any(b"MIN", b"MAX", b"BAD")]
                + self.maybe(b"COUNT", self.any(b"1", b"2", b"0", b"x")))

    def chance(self):
        """Members by chance."""
        count = self.maybe(self.any(b"0", b"2", b"-3", b"1000", b"x", b"-9223372036854775808", b"9223372036854775807"), chance=0.8)
        return [b"ZRANDMEMBER", self.key()] + count + (self.maybe(self.any(b"WITHSCORES", b"BAD")) if count else [])

    def weights(self, count):
        """WEIGHTS and AGGREGATE."""
        weights = [self.any(b"1", b"2", b"0", b"-1", b"0.5", b"inf", b"x") for _ in range(self.any(count, count, count, count + 1))]
        return self.words.shuffled(self.maybe(b"WEIGHTS", *weights), self.maybe(b"AGGREGATE", self.any(b"SUM", b"MIN", b"MAX", b"BAD")))

    def several(self):
        """Several sets, answered or stored."""
        word = self.any(b"ZUNION", b"ZINTER", b"ZDIFF", b"ZUNIONSTORE", b"ZINTERSTORE", b"ZDIFFSTORE")
        target = [self.key()] if word.endswith(b"STORE") else []
        keys = self.counted(self.near)
        weights = self.weights(len(keys) - 1) if b"DIFF" not in word or self.random.random() < 0.05 else []
        return [word] + target + keys + self.words.shuffled(weights, self.maybe(b"WITHSCORES", chance=0.05 if target else 0.4))

    def several_counted(self):
        """ZINTERCARD."""
        limit = self.maybe(b"LIMIT", self.any(b"0", b"1", b"2", b"-1", b"x", *LARGE))
        return [b"ZINTERCARD"] + self.counted(self.near) + limit + self.maybe(b"BAD", chance=0.05)

    def scan(self):
        """A walk in one step, and what is no walk."""
        options = [self.maybe(b"MATCH", self.words.glob()), self.maybe(b"COUNT", self.any(b"1000", b"10000", b"0", b"-1", b"x")),
                   self.maybe(b"BAD", chance=0.05)]
        return [b"ZSCAN", self.key(), self.any(b"0", b"0", b"0", b"x", b"")] + self.words.shuffled(*options)

    def large(self):
        """More members than the small form has room for."""
        start, count = self.random.randrange(1000), self.any(50, 130, 700)
        pairs = ([b"%d" % (number * 37 % 11), b"m%d" % number] for number in range(start, start + count))
        return [b"ZADD", self.key()] + sum(pairs, [])

    def name_add(self):
        """Members of equal scores come and go."""
        word = self.any(b"ZADD", b"ZADD", b"ZREM")
        names = [self.any(self.words.item(), b"n%d" % self.random.randrange(200)) for _ in range(self.any(1, 3, 20))]
        return [word, self.name_key()] + sum(([b"0", name] if word == b"ZADD" else [name] for name in names), [])

    def name_range(self):
        """Ranges of names."""
        key, low, high = self.name_key(), self.name(), self.name()
        return self.any(
            [b"ZRANGEBYLEX", key, low, high] + self.limit(), [b"ZREVRANGEBYLEX", key, high, low] + self.limit(),
            [b"ZRANGE", key, low, high, b"BYLEX"] + self.words.shuffled(self.maybe(b"REV"), self.limit(), self.maybe(b"WITHSCORES", chance=0.05)),
            [b"ZLEXCOUNT", key, low, high], [b"ZREMRANGEBYLEX", key, low, high],
            [b"ZRANGESTORE", self.key(), key, low, high, b"BYLEX"] + self.limit(),
        )

    def is_allowed(self, command):
        # An argument that was added or taken away must not make a command of 7.2 only, nor spoil the keys of names.
        word = command[0].upper()
        if word in (b"ZRANK", b"ZREVRANK"):
            return len(command) < 4
        if word == b"ZADD" and command[1:2] and command[1] in self.name_keys():
            return len(command) % 2 == 0 and all(score == b"0" for score in command[2::2])
        if word in (b"BZPOPMIN", b"BZPOPMAX"):
            return all(b"{d}" in key for key in command[1:-1])
        return True
