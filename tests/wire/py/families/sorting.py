"""SORT and SORT_RO: lists, sets and sorted sets, weights elsewhere, what is stored."""

from . import Family


class Sorting(Family):
    NAME = "sorting"
    WEIGHT = 15
    PREFIX = b"o"
    SHARES = ((4, "weigh"), (12, "sort"), (2, "read"))

    def number(self):
        """An item that is a number, seldom another."""
        return b"%d" % self.random.randint(0, 15) if self.random.random() < 0.97 else self.any(b"a", b"1.5", b"-inf", b"nan", b"", b" 1")

    def filled(self, key):
        """Something to sort, and the end of what was there."""
        items = [self.number() for _ in range(self.random.randint(1, 6))]
        scored = sum(([b"%d" % self.random.randint(0, 9), item] for item in items), [])
        make = self.any([b"RPUSH", key] + items, [b"RPUSH", key] + items, [b"SADD", key] + items, [b"ZADD", key] + scored,
                        [b"SET", key, b"text"] if self.random.random() < 0.2 else [b"EXISTS", key])
        return [[b"DEL", key], make]

    def weigh(self):
        """Weights and names of items."""
        item = self.number()
        return self.any([b"SET", b"{d}w_" + item, b"%d" % self.random.randint(0, 1000)], [b"HSET", b"{d}wh_" + item, b"w", self.number()],
                        [b"SET", b"{d}name_" + item, self.words.item()])

    def sort(self):
        """With all options, of a new key each time: Redis turns a sorted set that it sorts into a skiplist, Korum does not.
        A set has no order of its own, so it is not asked for in that."""
        key = b"{d}o0"
        before = self.filled(key)
        orders = [[], [], [b"BY", b"{d}w_*"], [b"BY", b"{d}wh_*->w"]] + ([[b"by", b"nosort"]] if before[1][0] != b"SADD" else [])
        by = self.any(*orders)
        get = sum((self.any([], [b"GET", b"#"], [b"GET", b"{d}name_*"], [b"GET", b"{d}wh_*->w"], [b"GET", b"{d}w_*->"]) for _ in range(2)), [])
        limit = self.maybe(b"LIMIT", self.any(b"0", b"1", b"-1", b"3", b"100", b"x"), self.any(b"0", b"2", b"-1", b"100", b"x"))
        alpha = self.maybe(b"ALPHA", chance=0.3) if not by else []
        store = self.maybe(b"STORE", self.any(b"{d}o4", b"{d}o5"), chance=0.25)
        words = [self.any(b"SORT", b"SORT", b"SORT_RO"), key] + by
        words += self.words.shuffled(get, limit, alpha, self.any([], [b"DESC"], [b"asc"]), store, self.maybe(b"BAD", chance=0.03))
        # Redis looks at an error of the C library that an earlier command may have left; ZADD makes it forget that.
        return before + [[b"ZADD", b"{d}forget", b"XX", b"1", b"m"], words, [b"DEL", key]]

    def read(self):
        """What is there."""
        return self.any([b"LRANGE", self.key(), b"0", b"-1"], [b"TYPE", self.key()])
