"""Databases: the same keys in several of them, what moves between them, and what is said of one.

All commands come back to database 0: other families know no other.
"""

from . import Family, rules


class Databases(Family):
    NAME = "databases"
    WEIGHT = 10
    PREFIX = b"db"
    SHARES = ((10, "elsewhere"), (10, "moved"), (4, "transaction"), (3, "script"), (3, "refused"), (1, "swapped"))
    # keys whose time is over count until they are removed, here and there
    RULES = {"DBSIZE": rules.near(5)}

    def make(self):
        """As they are: one argument more could be a key of another slot."""
        made = self.random.choices(self.methods, self.shares)[0]()
        return made if isinstance(made[0], list) else [made]

    def database(self):
        """A database, mostly one of a few."""
        return self.any(b"1", b"1", b"2", b"9", b"15")

    def any_key(self):
        """One of its keys, or one of any type."""
        return self.any(self.key(), self.words.near())

    def plain(self):
        """A command on keys, of a few kinds."""
        words, key, item = self.words, self.key(), self.words.item()
        return self.any(
            [b"SET", key, words.value()], [b"GET", key], [b"DEL", key, self.any_key()], [b"EXISTS", key, self.any_key()],
            [b"MGET", key, self.any_key()], [b"MSET", key, item, self.key(), item], [b"INCR", key], [b"TYPE", self.any_key()],
            [b"RPUSH", key, item], [b"LPOP", key], [b"LMPOP", b"2", self.any_key(), key, b"LEFT"], [b"LRANGE", key, b"0", b"-1"],
            [b"BLPOP", key, self.any_key(), b"0.001"], [b"ZADD", key, b"1", item], [b"ZMPOP", b"2", key, self.any_key(), b"MIN"],
            [b"BZPOPMIN", key, b"0.001"], [b"XADD", key, b"1-1", b"f", b"v"], [b"XREAD", b"STREAMS", key, b"0"],
            [b"XREADGROUP", b"GROUP", b"g", b"c", b"STREAMS", key, b">"], [b"XGROUP", b"CREATE", key, b"g", b"0"],
            [b"RENAME", key, self.key()], [b"SETEX", key, words.seconds(), item], [b"PERSIST", key], [b"UNLINK", key],
            [b"SINTERSTORE", key, self.any_key()], [b"OBJECT", b"REFCOUNT", b"{d}nothing"],
        )

    def about_all(self):
        """What is said of a whole database."""
        return self.any([b"DBSIZE"], [b"KEYS", self.any(b"*", b"{d}db?", b"*[1-3]")], [b"RANDOMKEY"],
                        [b"SCAN", b"0", b"COUNT", b"100000"], [b"SCAN", b"0", b"COUNT", b"100000", b"MATCH", b"{d}db*"])

    def elsewhere(self):
        """Commands in another database."""
        inside = [self.plain() for _ in range(self.random.randint(1, 4))] + [self.about_all()]
        if self.random.random() < 0.1:
            inside.append([self.any(b"FLUSHDB", b"flushdb")] + self.any([], [b"SYNC"], [b"ASYNC"]))
            inside.append([b"DBSIZE"])
        return [[b"SELECT", self.database()]] + inside + [[b"SELECT", b"0"]]

    def moved(self):
        """Keys that go to another database, or come from there."""
        way = self.any(
            [b"MOVE", self.any_key(), self.database()],
            [b"COPY", self.any_key(), self.any_key(), b"DB", self.database()] + self.maybe(b"REPLACE", chance=0.5),
        )
        if self.random.random() < 0.5:
            return [way, [b"DBSIZE"]]
        back = self.any([b"MOVE", self.any_key(), b"0"], [b"COPY", self.any_key(), self.any_key(), b"REPLACE", b"DB", b"0"], way)
        return [[b"SELECT", self.database()], back, [b"DBSIZE"], [b"SELECT", b"0"]]

    def transaction(self):
        """SELECT between MULTI and EXEC, and before: WATCH in one database, EXEC in another."""
        inside = []
        for _ in range(self.random.randint(1, 5)):
            inside.append(self.any([b"SELECT", self.any(self.database(), b"99")], self.plain(), [b"MOVE", self.key(), self.database()]))
        watch = []
        if self.random.random() < 0.4:
            watch = [[b"SELECT", self.database()], [b"WATCH", self.key()], [b"SELECT", self.database()], [b"SET", self.key(), b"1"]]
        inside = [command for command in inside if command[0] not in (b"BLPOP", b"BZPOPMIN")]
        return watch + [[b"MULTI"]] + inside + [[self.any(b"EXEC", b"EXEC", b"DISCARD")], self.plain(), [b"SELECT", b"0"]]

    def script(self):
        """A script that chooses a database: its client's stays."""
        script = self.any(b"redis.call('SELECT', ARGV[1]) return redis.call('GET', KEYS[1])",
                          b"redis.call('SELECT', ARGV[1]) return redis.call('APPEND', KEYS[1], '.')",
                          b"local v = redis.call('GET', KEYS[1]) redis.call('SELECT', ARGV[1]) return {v, redis.call('SET', KEYS[1], '7')}",
                          b"return redis.pcall('SELECT', ARGV[1])", b"return {redis.pcall('MOVE', KEYS[1], ARGV[1]), KEYS[1]}")
        database = self.any(self.database(), b"x", b"16", b"0")
        return [[b"EVAL", script, b"1", self.any(*self.keys()), database], [b"DBSIZE"]]

    def refused(self):
        """Numbers that no database has, and other mistakes."""
        number = self.any(b"16", b"-1", b"x", b"", b"1.0", b"99999999999", b" 1", b"256", b"0", b"+1")
        return self.any([b"MOVE", self.key(), number], [b"MOVE", self.key()], [b"COPY", self.key(), self.key(), b"DB", number],
                        [b"SWAPDB", number, b"1"] if number != b"0" else [b"SWAPDB", b"1"], [b"SWAPDB", b"x", number],
                        [b"SWAPDB", b"3", b"3"], [b"COPY", self.key(), self.key(), b"DB"], [b"FLUSHDB", b"nothing"],
                        [[b"SELECT", number], [b"SELECT", b"0"]][0 if number != b"0" else 1])

    def swapped(self):
        """Two databases change their keys."""
        one, other = self.database(), self.any(b"0", b"1", b"2", b"9")
        return [[b"SWAPDB", one, other], [b"DBSIZE"], [b"SELECT", one], [b"KEYS", b"{d}db*"], self.plain(), [b"SELECT", b"0"]]
