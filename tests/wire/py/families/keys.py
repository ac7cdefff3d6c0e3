"""Keys whatever they hold, the connection, and what is known of commands."""

from . import Family, rules


def encodings(left, right):
    """The same, but for what Redis 7.2, as Korum, keeps in listpacks and 7.0 does not: short lists, small sets."""
    return left == right or right == (b"$", b"listpack") and left in ((b"$", b"quicklist"), (b"$", b"hashtable"))


class Keys(Family):
    NAME = "keys"
    WEIGHT = 40
    SHARES = ((10, "expire"), (5, "many"), (8, "two"), (12, "simple"), (2, "object"), (5, "other"))
    RULES = {
        "TTL": rules.near(2), "EXPIRETIME": rules.near(2), "PTTL": rules.near(2000), "PEXPIRETIME": rules.near(2000),
        "KEYS": rules.unordered, "SCAN": rules.scanned, "TIME": rules.kind, "RANDOMKEY": rules.kind, "WAIT": rules.kind,
        # whether a small number is shared depends in Redis on the way in which it came to be
        "OBJECT REFCOUNT": rules.kind, "OBJECT ENCODING": encodings,
    }

    def key(self):
        return self.words.key()

    def expire(self):
        """EXPIRE and kin with all their options."""
        words = self.words
        word, moment = self.any((b"EXPIRE", words.seconds()), (b"PEXPIRE", words.milliseconds()),
                                (b"EXPIREAT", words.moment(1)), (b"PEXPIREAT", words.moment(1000)))
        flags = self.any([], [], [b"NX"], [b"XX"], [b"GT"], [b"LT"], [b"gt", b"XX"], [b"NX", b"GT"], [b"GT", b"LT"], [b"ZZ"])
        return [word, self.key(), moment] + flags

    def many(self):
        """DEL and kin over keys of one slot or of many."""
        return [self.any(b"DEL", b"UNLINK", b"EXISTS", b"TOUCH")] + [self.key() for _ in range(self.random.randint(1, 5))]

    def two(self):
        """Commands about two keys of one slot."""
        one, other = self.words.near(), self.words.near()
        return self.any([b"RENAME", one, other], [b"RENAMENX", one, other],
                        [b"COPY", one, other] + self.maybe(b"DB", self.any(b"0", b"0", b"x", b"-1"))
                        + self.maybe(b"REPLACE", chance=0.5) + self.maybe(b"BAD", chance=0.05))

    def simple(self):
        """Commands about one key without options."""
        return [self.any(b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME", b"PERSIST", b"TYPE", b"EXISTS", b"DEL"), self.key()]

    def object(self):
        """What is known of how a key is kept."""
        return [b"OBJECT", self.any(b"ENCODING", b"encoding", b"REFCOUNT", b"FREQ", b"BAD"), self.key()]

    def other(self):
        """Commands about the keyspace, the connection and commands."""
        words = self.words
        return self.any(
            [b"KEYS", self.any(b"*", b"plain*", b"{d}?", b"{d}[0-3]", b"{d}[^a-z]", b"plain\\1", b"[a-", b"*n*1", b"", b"{d}*[")],
            [b"ECHO", words.value()], [b"PING"], [b"PING", words.value()], [b"SELECT", self.any(b"0", b"x", b"-1")],
            [b"COMMAND", b"GETKEYS"] + self.any(self.simple, self.many, self.two)(), [b"COMMAND", b"GETKEYS", b"PING"],
            [b"COMMAND", b"GETKEYS", b"SET", b"a", b"b"], [b"COMMAND", b"GETKEYS", b"MSET", b"a", b"b", b"c", b"d"],
            [b"COMMAND", b"GETKEYS", b"NOSUCH", b"a"], [b"OBJECT", b"ENCODING"], [b"TOUCH"], [b"DUMP", b"nothing"],
            [b"RESTORE", self.any(*words.keys), b"0", self.any(b"junk", b"", b"\x00\x01a\x0a\x00aaaaaaaa")],
            [b"RESTORE", self.key(), self.any(b"-1", b"x", b"0"), b"junk"] + self.any([b"REPLACE"], [b"BAD"], [b"IDLETIME", b"-1"], [b"FREQ", b"300"]),
            [b"NOSUCH", words.value()], [b"CLIENT", b"GETNAME"], [b"CLIENT", b"NOSUCH"], [b"OBJECT", b"NOSUCH", b"a"],
            [b"WAIT", b"0", b"0"], [b"WAIT", b"x", b"0"], [b"TIME", b"x"], [b"RANDOMKEY", b"x"],
        )
