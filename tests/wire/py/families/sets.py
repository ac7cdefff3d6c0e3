"""Sets: members, chance, several sets put together."""

from . import Family, rules

LARGE = [b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808"]


class Sets(Family):
    NAME = "sets"
    WEIGHT = 40
    PREFIX = b"s"
    SHARES = ((20, "add"), (8, "remove"), (8, "read"), (5, "move"), (14, "several"), (5, "count"), (4, "chance"),
              (4, "pop"), (3, "scan"), (2, "large"))
    RULES = {
        "SMEMBERS": rules.unordered, "SINTER": rules.unordered, "SUNION": rules.unordered, "SDIFF": rules.unordered,
        "SRANDMEMBER": rules.shape, "SPOP": rules.shape, "SSCAN": rules.scanned,
    }
    # Without OBJECT ENCODING: Redis 7.0 has no listpacks for sets, 7.2 has.
    EXCHANGED = (b"set",)
    READS = {b"set": [[b"SMEMBERS", b"KEY"], [b"SCARD", b"KEY"]]}

    def member(self):
        """A member; integers more often than elsewhere, so that sets of them stay."""
        return self.words.item() if self.random.random() < 0.4 else b"%d" % self.random.randint(-5, 25)

    def add(self):
        """Members come."""
        return [b"SADD", self.key()] + [self.member() for _ in range(self.random.randint(1, 6))]

    def remove(self):
        """Members go."""
        return [b"SREM", self.key()] + [self.member() for _ in range(self.random.randint(1, 6))]

    def read(self):
        """Members are asked for."""
        word = self.any(b"SMEMBERS", b"SISMEMBER", b"SMISMEMBER", b"SCARD")
        count = {b"SISMEMBER": 1, b"SMISMEMBER": self.random.randint(1, 4)}.get(word, 0)
        return [word, self.key()] + [self.member() for _ in range(count)]

    def move(self):
        """A member changes its set."""
        return [b"SMOVE", self.key(), self.key(), self.member()]

    def several(self):
        """Several sets, answered or stored."""
        word = self.any(b"SINTER", b"SUNION", b"SDIFF", b"SINTERSTORE", b"SUNIONSTORE", b"SDIFFSTORE")
        target = [self.key()] if word.endswith(b"STORE") else []
        return [word] + target + [self.key() for _ in range(self.random.randint(1, 4))]

    def count(self):
        """SINTERCARD, with what can be wrong."""
        keys = [self.key() for _ in range(self.random.randint(1, 3))]
        number = b"%d" % len(keys) if self.random.random() < 0.9 else self.any(b"0", b"-1", b"x", b"9", *LARGE)
        limit = self.maybe(b"LIMIT", self.any(b"0", b"1", b"2", b"100", b"-1", b"x", *LARGE))
        return [b"SINTERCARD", number] + keys + limit + self.maybe(b"BAD", chance=0.05)

    def chance(self):
        """Members by chance, which stay."""
        count = self.maybe(self.any(b"0", b"1", b"2", b"-3", b"1000", b"x", b"-9223372036854775808", b"9223372036854775807"), chance=0.8)
        return [b"SRANDMEMBER", self.key()] + count + self.maybe(b"BAD", chance=0.03)

    def pop(self):
        """Members by chance, which go: afterwards both servers are made equal again."""
        key = self.key()
        count = self.maybe(self.any(b"0", b"1", b"2", b"5", b"1000", b"-1", b"x", *LARGE), chance=0.8)
        return [[b"SPOP", key] + count + self.maybe(b"BAD", chance=0.03), [b"DEL", key]]

    def is_allowed(self, command):
        # A count that was added to SPOP or taken from it is the same to the DEL behind it.
        return True

    def scan(self):
        """A walk in one step, and what is no walk."""
        options = [self.maybe(b"MATCH", self.words.glob()), self.maybe(b"COUNT", self.any(b"1000", b"10000", b"0", b"-1", b"x")),
                   self.maybe(b"BAD", chance=0.05)]
        return [b"SSCAN", self.key(), self.any(b"0", b"0", b"0", b"x", b"")] + self.words.shuffled(*options)

    def large(self):
        """More members than the small forms have room for."""
        start, count = self.random.randrange(1000), self.any(100, 130, 520)
        form = self.any(b"%d", b"m%d")
        return [self.any(b"SADD", b"SADD", b"SREM"), self.key()] + [form % number for number in range(start, start + count)]
