"""SORT and SORT_RO: lists, sets and sorted sets, weights elsewhere, what is stored."""

from . import Family


class Sorting(Family):
    NAME = "sorting"
    WEIGHT = 15
    PREFIX = b"o"
    SHARES = ((6, "fill"), (4, "weigh"), (20, "sort"), (2, "read"))

    def number(self):
        """An item that is a number, seldom another."""
        return b"%d" % self.random.randint(0, 15) if self.random.random() < 0.97 else self.any(b"a", b"1.5", b"-inf", b"nan", b"", b" 1")

    def fill(self):
        """Something to sort."""
        number = self.random.randint(1, 6)
        items = [self.number() for _ in range(number)]
        scored = sum(([b"%d" % self.random.randint(0, 9), item] for item in items), [])
        return self.any([b"RPUSH", b"{d}o0"] + items, [b"RPUSH", b"{d}o1"] + items, [b"SADD", b"{d}o2"] + items,
                        [b"ZADD", b"{d}o3"] + scored, [b"DEL", self.key()])

    def weigh(self):
        """Weights and names of items."""
        item = self.number()
        return self.any([b"SET", b"{d}w_" + item, b"%d" % self.random.randint(0, 1000)], [b"HSET", b"{d}wh_" + item, b"w", self.number()],
                        [b"SET", b"{d}name_" + item, self.words.item()])

    def sort(self):
        """With all options. What has no order by itself is not asked for in its own order."""
        key = self.key()
        by = self.any([], [], [b"BY", b"{d}w_*"], [b"BY", b"{d}wh_*->w"], [b"by", b"nosort"])
        get = sum((self.any([], [b"GET", b"#"], [b"GET", b"{d}name_*"], [b"GET", b"{d}wh_*->w"], [b"GET", b"{d}w_*->"]) for _ in range(2)), [])
        limit = self.maybe(b"LIMIT", self.any(b"0", b"1", b"-1", b"3", b"100", b"x"), self.any(b"0", b"2", b"-1", b"100", b"x"))
        alpha = self.maybe(b"ALPHA", chance=0.3) if not by else []
        store = self.maybe(b"STORE", self.any(b"{d}o4", b"{d}o5"), chance=0.25)
        word = self.any(b"SORT", b"SORT", b"SORT_RO")
        before = []
        if by == [b"by", b"nosort"]:
            key = b"{d}o0"
            before = [[b"DEL", key], self.any([b"RPUSH", key, b"3", b"1", b"2"], [b"ZADD", key, b"1", b"3", b"2", b"1", b"3", b"2"])]
        return before + [[word, key] + by + self.words.shuffled(get, limit, alpha, self.any([], [b"DESC"], [b"asc"]), store, self.maybe(b"BAD", chance=0.03))]

    def read(self):
        """What is there."""
        return self.any([b"LRANGE", self.key(), b"0", b"-1"], [b"TYPE", self.key()])
