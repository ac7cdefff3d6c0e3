"""Hashes: fields, numbers in them, walks, chance."""

from . import Family, rules


class Hashes(Family):
    NAME = "hashes"
    WEIGHT = 40
    PREFIX = b"h"
    SHARES = ((20, "set"), (12, "read"), (6, "delete"), (6, "number"), (6, "whole"), (4, "chance"), (4, "scan"), (1, "large"))
    RULES = {
        "HGETALL": rules.unordered_pairs, "HKEYS": rules.unordered, "HVALS": rules.unordered,
        "HRANDFIELD": rules.shape, "HSCAN": rules.scanned_pairs,
    }
    EXCHANGED = (b"hash",)
    READS = {b"hash": [[b"HGETALL", b"KEY"], [b"HLEN", b"KEY"], [b"OBJECT", b"ENCODING", b"KEY"]]}

    def set(self):
        """Fields are set."""
        word = self.any(b"HSET", b"HSET", b"HSETNX", b"HMSET")
        words = [word, self.key()]
        for _ in range(1 if word == b"HSETNX" else self.random.randint(1, 4)):
            words += [self.words.item(), self.any(self.words.item, self.words.integer, self.words.float)()]
        return words

    def read(self):
        """Fields are read."""
        word = self.any(b"HGET", b"HMGET", b"HEXISTS", b"HSTRLEN")
        count = self.random.randint(1, 4) if word == b"HMGET" else 1
        return [word, self.key()] + [self.words.item() for _ in range(count)]

    def delete(self):
        """Fields are deleted."""
        return [b"HDEL", self.key()] + [self.words.item() for _ in range(self.random.randint(1, 5))]

    def number(self):
        """Numbers in fields."""
        field = self.words.item()
        return self.any([b"HINCRBY", self.key(), field, self.words.integer()], [b"HINCRBYFLOAT", self.key(), field, self.words.float()])

    def whole(self):
        """The hash as a whole."""
        return [self.any(b"HGETALL", b"HKEYS", b"HVALS", b"HLEN"), self.key()]

    def chance(self):
        """Fields by chance: a negative count may repeat them, a large one gives all."""
        count = self.any([], [self.any(b"0", b"2", b"-3", b"1000", b"x", b"-9223372036854775808", b"9223372036854775807")])
        return [b"HRANDFIELD", self.key()] + count + (self.maybe(self.any(b"WITHVALUES", b"BAD")) if count else [])

    def scan(self):
        """A walk in one step, and what is no walk."""
        options = [self.maybe(b"MATCH", self.words.glob()), self.maybe(b"COUNT", self.any(b"1000", b"10000", b"0", b"-1", b"x")),
                   self.maybe(b"BAD", chance=0.05)]
        return [b"HSCAN", self.key(), self.any(b"0", b"0", b"0", b"x", b"")] + self.words.shuffled(*options)

    def large(self):
        """More fields than the small form has room for."""
        start = self.random.randrange(1000)
        pairs = sum(([b"f%d" % number, b"%d" % number] for number in range(start, start + self.any(100, 600))), [])
        return [b"HSET", self.key()] + pairs
