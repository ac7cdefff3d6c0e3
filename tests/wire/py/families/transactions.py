"""Transactions and scripts around simple commands: what they answer in them must be what they answer alone."""

from . import Family


class Transactions(Family):
    NAME = "transactions"
    WEIGHT = 12
    PREFIX = b"x"
    SHARES = ((10, "transaction"), (6, "script"), (3, "conversion"), (2, "refused"))

    def make(self):
        """As they are: one argument more could be a key of another slot."""
        made = self.random.choices(self.methods, self.shares)[0]()
        return made if isinstance(made[0], list) else [made]

    def plain(self):
        """A command on one of its keys, whose reply does not depend on the moment."""
        words, key = self.words, self.key()
        return self.any(
            [b"SET", key, words.value()], [b"SET", key, words.value(), b"GET"], [b"SET", key, words.value(), self.any(b"NX", b"XX")],
            [b"GET", key], [b"GETDEL", key], [b"APPEND", key, words.value() + b"."], [b"INCRBY", key, words.integer()], [b"INCR", key],
            [b"STRLEN", key], [b"DEL", key, self.key()], [b"EXISTS", key, self.key()], [b"MGET", key, self.key()],
            [b"HSET", key, b"f", words.value()], [b"HGETALL", key], [b"TYPE", key], [b"PERSIST", key],
        )

    def script(self):
        """A command that a script runs."""
        script = self.any(b"return redis.call(unpack(ARGV))", b"return redis.pcall(unpack(ARGV))",
                          b"local r = redis.pcall(unpack(ARGV)) return {type(r), r, {r}}",
                          b"local ok, r = pcall(redis.call, unpack(ARGV)) return {ok, r}",
                          b"redis.setresp(3) return redis.call(unpack(ARGV))")
        command = self.plain()
        # the order of fields is each server's own
        return [b"EVAL", script, b"1", self.key()] + (command if command[0] != b"HGETALL" else [b"GET", self.key()])

    def transaction(self):
        """Commands between MULTI and EXEC, perhaps one that spoils them, perhaps on a condition."""
        inside = [self.any(self.plain, self.plain, self.script)() for _ in range(self.random.randint(0, 6))]
        commands = [[b"MULTI"]] + inside + [[self.any(b"EXEC", b"EXEC", b"EXEC", b"DISCARD")]]
        for extra in ([b"NOSUCH"], [b"MULTI"], [b"GET"], [b"PING"], [b"UNWATCH"], [b"ECHO", b"x"], [b"WATCH", self.key()], [b"EXEC", b"x"]):
            if self.random.random() < 0.04:
                commands.insert(self.random.randint(0, len(commands) - 1), extra)
        if self.random.random() < 0.3:
            return [[b"WATCH", self.key(), self.key()], self.any([b"SET", self.key(), b"1"], [b"GET", self.key()])] + commands
        return commands

    def conversion(self):
        """Values of Lua as replies."""
        return [b"EVAL", self.any(
            b"return tonumber(ARGV[1])", b"return {tonumber(ARGV[1]), ARGV[1], tostring(ARGV[1])}", b"return {1, 2, nil, 4}",
            b"return {double=tonumber(ARGV[1])}", b"return {map={a=ARGV[1]}}", b"return true", b"return {false, true}", b"return 3.7",
            b"return cjson.encode({tonumber(ARGV[1]), ARGV[1]})", b"return cmsgpack.pack(tonumber(ARGV[1]), ARGV[1])",
            b"return struct.pack('>i4s', 7, ARGV[1])", b"return tostring(tonumber(ARGV[1]))", b"return redis.sha1hex(ARGV[1])",
            b"return bit.tohex(tonumber(ARGV[1]) or 1)", b"return {err=ARGV[1]}", b"return redis.error_reply('X y')", b"return {ok='x'}",
        ), b"0", self.any(b"0", b"1", b"-7", b"1.5", b"1e100", b"255", b"x", b"3.14159265358979", b"12345678901234567")]

    def refused(self):
        """What is no script, or may not be run."""
        return self.any(
            [b"EVAL", b"return 1", self.any(b"-1", b"x", b"2", b"")], [b"EVAL", self.any(b"x y", b"return foo", b"foo = 1", b"return"), b"0"],
            [b"EVALSHA", self.any(b"f" * 40, b"ff", b""), b"0"], [b"EVAL_RO", b"return redis.call('set', KEYS[1], 1)", b"1", self.key()],
            [b"EVAL", b"return redis.call(unpack(ARGV))", b"1", self.key()] + self.any([], [b"nosuch"], [b"get"], [b"multi"], [b"client", b"id"]),
            [b"SCRIPT", self.any(b"KILL", b"NOSUCH", b"EXISTS")], [b"SCRIPT", b"EXISTS", b"f" * 40],
            [b"EXEC"], [b"DISCARD"], [b"MULTI", b"x"], [b"WATCH"],
        )
