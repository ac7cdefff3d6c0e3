"""Functions: libraries that are right and wrong, calls, lists.

The names of two functions of one library never differ in case only: Redis 7.0 crashes when such a library is replaced.
Payloads of FUNCTION DUMP are not compared: Redis compresses them.

In a transaction that changes libraries no function is called with keys: commands without keys run after those with keys.
"""

import re

from . import Family, rules

# What Redis 7.0 dumped: nothing, and a library l1 with a function f1.
PAYLOADS = (
    b"\n\x00]\x9b\\@\x0f\x7f\xa2\xda",
    b'\xf5@C#!lua name=l1\nredis.register_function("f1",function() return 7 end)\n\x00?\x0ef\x13z\x1ek\xee',
)


def in_any_order(left, right):
    """The same items in any order, at every depth: libraries and functions have no order in Redis."""
    def sorted_all(reply):
        kind, content = reply
        return (kind, sorted(map(sorted_all, content), key=repr) if isinstance(content, list) else content)
    return left == right or sorted_all(left) == sorted_all(right)


def one_of_those(left, right):
    """Of several functions that are another library's, either may be named."""
    def unnamed(reply):
        return re.sub(rb"Function f[1-4] already", b"Function already", repr(reply).encode())
    return unnamed(left) == unnamed(right)


class Functions(Family):
    NAME = "functions"
    WEIGHT = 6
    PREFIX = b"fn"
    SHARES = ((6, "load"), (4, "wrong"), (12, "call"), (4, "look"), (2, "remove"), (2, "restore"), (2, "transaction"))
    RULES = {"FUNCTION LIST": in_any_order, "FUNCTION DUMP": rules.kind, "FUNCTION LOAD": one_of_those, "EXEC": one_of_those}

    def make(self):
        """As they are: one argument more could be a key of another slot."""
        made = self.random.choices(self.methods, self.shares)[0]()
        return made if isinstance(made[0], list) else [made]

    def name(self):
        """A function's name, in any case."""
        name = self.any(b"f1", b"f2", b"f3", b"f4")
        return self.any(name, name, name, name.upper())

    def function(self, name):
        """Code that registers a function."""
        body = self.any(
            b"return redis.call('set', keys[1], args[1] or 'x')", b"return redis.call('get', keys[1])", b"return {#keys, #args, keys, args}",
            b"return args", b"return redis.call(unpack(args))", b"return redis.pcall(unpack(args))", b"error('boom')", b"error({err='CODE x'})",
            b"return redis.error_reply('X y')", b"return foo", b"foo = 1", b"return type(KEYS)", b"return redis.sha1hex(args[1])",
            b"redis.setresp(3) return redis.call('get', keys[1])", b"return {double=tonumber(args[1])}", b"return {map={a=args[1]}}",
            b"return cjson.encode({keys, args})", b"return string.gsub(args[1], '(.)', '<%1>')", b"return tostring(redis.breakpoint)",
            b"return redis.acl_check_cmd(unpack(args))", b"return loadstring('return type(redis)')()", b"return redis.register_function",
        )
        callback = b"function(keys, args) " + body + b" end"
        if self.random.random() < 0.5:
            return b"redis.register_function('" + name + b"', " + callback + b")"
        flags = b",".join(self.random.sample([b"'no-writes'", b"'allow-oom'", b"'allow-stale'", b"'no-cluster'", b"'allow-cross-slot-keys'"],
                                             self.random.randint(0, 3)))
        description = self.any(b"", b", description='what it does'")
        return b"redis.register_function{function_name='" + name + b"', callback=" + callback + b", flags={" + flags + b"}" + description + b"}"

    def library(self):
        """A library that is right, unless its functions are another's."""
        names = self.random.sample([b"f1", b"f2", b"f3", b"f4"], self.random.randint(1, 2))
        head = self.any(b"#!lua name=", b"#!LUA   NAME=", b"#!lua name=") + self.any(b"l1", b"l2", b'"l3"')
        return head + b"\n" + b"\n".join(map(self.function, names))

    def load(self):
        """FUNCTION LOAD."""
        return [b"FUNCTION", b"LOAD"] + self.any([], [b"REPLACE"], [b"replace"], [b"REPLACE", b"REPLACE"]) + [self.library()]

    def wrong(self):
        """Libraries that are refused."""
        code = self.any(
            b"", b"x", b"#!lua", b"#!lua\n", b"#!lua name=\n", b"#!lua name=a-b\n", b"#!js name=a\n", b"#! name=a\n", b"#!lua name=a name=b\n",
            b"#!lua foo=1\n", b"#!lua name=a\n", b'#!lua name=a "x\n', b"#!lua name='a' \nreturn 1", b"#!lua name=\"\\x61\"\nreturn 1",
        )
        if self.random.random() < 0.7:
            code = b"#!lua name=wrong\n" + self.any(
                b"bad bad", b"return 1", b"foo = 1", b"local x = foo", b"error('x')", b"redis.call('get', 'x')", b"redis.x = 1", b"local x = string",
                b"redis.register_function()", b"redis.register_function('g')", b"redis.register_function('g', 1)", b"redis.register_function({}, 1)",
                b"redis.register_function('g-1', function() end)", b"redis.register_function('', function() end)",
                b"redis.register_function('g', function() end, {})", b"redis.register_function{}", b"redis.register_function{function_name='g'}",
                b"redis.register_function{callback=function() end}", b"redis.register_function{function_name='g', callback=1}",
                b"redis.register_function{function_name={}, callback=function() end}",
                b"redis.register_function{function_name='g', callback=function() end, flags=1}",
                b"redis.register_function{function_name='g', callback=function() end, flags={'x'}}",
                b"redis.register_function{function_name='g', callback=function() end, flags={{}}}",
                b"redis.register_function{function_name='g', callback=function() end, description={}}",
                b"redis.register_function{function_name='g', callback=function() end, foo=1}",
                b"redis.register_function{function_name='g', callback=function() end, [1]=1}",
                b"redis.register_function('g', function() end) redis.register_function('g', function() end)",
            )
        return [b"FUNCTION", b"LOAD"] + self.any([], [b"REPLACE"], [b"x"]) + [code]

    def arguments(self):
        """What a function is called with."""
        key = self.key()
        return self.any([], [b"1"], [b"x", b"y"], [b"GET", key], [b"SET", key, self.words.value()], [b"STRLEN", key], [b"nosuch"], [b"GET"],
                        [b"PING"], [b"1.5"])

    def call(self):
        """FCALL and FCALL_RO."""
        count = self.any([b"1", self.key()], [b"1", self.key()], [b"1", self.key()], [b"2", self.key(), self.key()], [b"0"], [b"-1"], [b"x"], [b"9"])
        if count == [b"0"]:
            return self.call_keyless()
        return [self.any(b"FCALL", b"FCALL", b"FCALL_RO", b"fcall"), self.any(self.name(), self.name(), b"nosuch")] + count + self.arguments()

    def call_keyless(self):
        """The same without keys."""
        return [self.any(b"FCALL", b"FCALL_RO"), self.name(), b"0"] + self.any([], [b"1"], [b"x", b"y"])

    def look(self):
        """What there is."""
        return self.any(
            [b"FUNCTION", b"LIST"], [b"FUNCTION", b"LIST", b"WITHCODE"], [b"FUNCTION", b"LIST", b"LIBRARYNAME", self.any(b"l1", b"L*", b"x", b"")],
            [b"FUNCTION", b"LIST", b"libraryname", b"l?", b"withcode"], [b"FUNCTION", b"LIST", self.any(b"LIBRARYNAME", b"foo", b"WITHCODE"), b"WITHCODE"],
            [b"FUNCTION", b"STATS"], [b"FUNCTION", b"DUMP"], [b"FUNCTION", b"HELP"], [b"FUNCTION", b"KILL"], [b"FUNCTION", b"NOSUCH"], [b"FUNCTION"],
            [b"FUNCTION", b"DUMP", b"x"], [b"COMMAND", b"GETKEYS", b"FCALL", b"f", b"1", self.key(), b"x"],
        )

    def remove(self):
        """FUNCTION DELETE and FLUSH."""
        return self.any([b"FUNCTION", b"DELETE", self.any(b"l1", b"l2", b"l3", b"L1", b"nosuch")], [b"FUNCTION", b"DELETE", self.any(b"l1", b"l2", b"l3")],
                        [b"FUNCTION", b"FLUSH"] + self.any([], [b"SYNC"], [b"async"], [b"x"], [b"SYNC", b"x"]))

    def restore(self):
        """FUNCTION RESTORE of what Redis dumped."""
        payload = self.any(*PAYLOADS, PAYLOADS[1], b"", b"x", PAYLOADS[1][:-1] + b"x")
        return [b"FUNCTION", b"RESTORE", payload] + self.any([], [b"FLUSH"], [b"append"], [b"REPLACE"], [b"foo"], [b"FLUSH", b"x"])

    def transaction(self):
        """Functions between MULTI and EXEC."""
        choice = self.any((self.call,), (self.call_keyless, self.load, self.remove))
        inside = [self.any(*choice)() for _ in range(self.random.randint(1, 4))]
        return [[b"MULTI"]] + inside + [[self.any(b"EXEC", b"EXEC", b"DISCARD")]]
