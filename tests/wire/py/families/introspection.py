"""What tools ask of a server: about connections, settings, commands, what was slow; mostly what is refused, and how."""

from . import Family, rules

# Commands whose keys are asked for, with what may stand behind them.
KEYED = (
    b"get A", b"set A v", b"set A v ex 10 get", b"mget A B", b"mset A 1 B 2", b"bitfield A get u8 0", b"bitop and A B",
    b"bitfield A overflow sat get u8 0 set u8 0 1", b"sort A by w* store B", b"sort_ro A", b"zunionstore A 1 B",
    b"zinter 2 A B", b"sintercard 2 A B limit 1", b"georadius A 0 0 1 km store B", b"georadiusbymember A m 1 km",
    b"lmove A B left right", b"blmpop 0 2 A B left", b"blpop A B 0", b"xread count 1 streams A B 0 0", b"copy A B",
    b"xreadgroup group g c streams A >", b"eval x 2 A B c", b"evalsha x 0", b"object encoding A", b"memory usage A",
    b"xgroup create A g 0", b"pfmerge A B", b"pfcount A B", b"rename A B", b"smove A B m", b"getex A persist", b"ping",
    b"zrangestore A B 0 1", b"lcs A B", b"touch A B", b"xadd A * f v", b"geosearchstore A B frommember m bybox 1 1 km",
    b"nosuch A", b"zinter x A", b"zinter 9 A", b"get", b"bzmpop 0 1 A max", b"restore A 0 x", b"dump A", b"exec",
)
CLIENT = (
    b"KILL", b"KILL 1.2.3.4:5", b"KILL ID", b"KILL ID x", b"KILL ID 0", b"KILL ID 999999", b"KILL TYPE x", b"KILL TYPE master",
    b"KILL TYPE slave", b"KILL TYPE pubsub", b"KILL USER nobody", b"KILL SKIPME x", b"KILL SKIPME yes ADDR 1.1.1.1:1",
    b"KILL LADDR 1.1.1.1:1", b"KILL ADDR 1.1.1.1:1 LADDR 2.2.2.2:2 ID 7", b"KILL BAD x", b"KILL ID 7 BAD", b"KILL MAXAGE 1",
    b"LIST TYPE x", b"LIST ID", b"LIST ID 999998 999999", b"LIST ID 0", b"LIST ID x", b"LIST BAD", b"LIST TYPE master",
    b"LIST TYPE normal x", b"PAUSE", b"PAUSE x", b"PAUSE -1", b"PAUSE 0 BAD", b"PAUSE 0 WRITE", b"PAUSE 0 ALL", b"PAUSE 1.5",
    b"UNPAUSE", b"UNPAUSE x", b"NO-EVICT", b"NO-EVICT on", b"NO-EVICT off", b"NO-EVICT x", b"REPLY", b"REPLY x", b"REPLY on",
    b"UNBLOCK", b"UNBLOCK x", b"UNBLOCK 999999", b"UNBLOCK 999999 BAD", b"UNBLOCK 999999 ERROR", b"GETNAME", b"GETNAME x",
    b"SETNAME", b"SETNAME name", b"SETNAME \x7f", b"SETNAME name x", b"BAD", b"HELP x", b"CACHING yes", b"CACHING", b"GETREDIR",
    b"TRACKINGINFO", b"ID x", b"INFO x", b"TRACKING", b"TRACKING x", b"TRACKING on BAD", b"TRACKING on PREFIX a",
)
SERVER = (
    b"CONFIG", b"CONFIG BAD", b"CONFIG GET", b"CONFIG GET nosuch", b"CONFIG GET MaxMemory", b"CONFIG GET maxmemory maxmemory",
    b"CONFIG GET maxmemory-polic?", b"CONFIG GET [s]low*max*", b"CONFIG SET", b"CONFIG SET x", b"CONFIG SET nosuch 1", b"CONFIG SET timeout x",
    b"CONFIG SET timeout -1", b"CONFIG SET timeout 0 timeout 0", b"CONFIG SET maxmemory x", b"CONFIG SET maxmemory-policy x",
    b"CONFIG SET latency-tracking x", b"CONFIG SET latency-tracking-info-percentiles 101",
    b"CONFIG RESETSTAT x", b"CONFIG REWRITE x", b"CONFIG HELP", b"SLOWLOG", b"SLOWLOG BAD", b"SLOWLOG GET x", b"SLOWLOG GET -2",
    b"SLOWLOG GET 1 2", b"SLOWLOG LEN x", b"SLOWLOG RESET", b"SLOWLOG HELP", b"LATENCY", b"LATENCY BAD", b"LATENCY RESET nosuch",
    b"LATENCY GRAPH", b"LATENCY GRAPH nosuch", b"LATENCY HISTORY", b"LATENCY HISTORY nosuch", b"LATENCY LATEST", b"LATENCY LATEST x",
    b"LATENCY HISTOGRAM nosuch", b"LATENCY HELP", b"LATENCY DOCTOR x", b"MEMORY", b"MEMORY BAD", b"MEMORY DOCTOR x", b"MEMORY PURGE",
    b"MEMORY PURGE x", b"MEMORY HELP", b"MEMORY USAGE", b"MEMORY USAGE {d}nokey", b"MEMORY USAGE {d}nokey SAMPLES x",
    b"MEMORY USAGE {d}nokey SAMPLES -1", b"MEMORY USAGE {d}nokey BAD 1", b"MEMORY MALLOC-STATS x", b"OBJECT", b"OBJECT BAD", b"OBJECT HELP",
    b"OBJECT HELP x", b"OBJECT FREQ", b"OBJECT FREQ {d}nokey", b"OBJECT IDLETIME", b"ROLE", b"ROLE x", b"MODULE", b"MODULE LIST", b"MODULE LIST x",
    b"MODULE BAD", b"RESET x", b"WAIT x 0", b"WAIT 0 x", b"WAIT 0 -1", b"WAIT 0", b"TIME x", b"LOLWUT VERSION x", b"ECHO", b"PING a b",
)
ACL = (
    b"WHOAMI", b"WHOAMI x", b"USERS", b"LIST", b"LIST x", b"CAT", b"CAT nosuch", b"CAT transaction x", b"GETUSER default", b"GETUSER nobody",
    b"GETUSER", b"DELUSER default", b"DELUSER nobody", b"DELUSER", b"GENPASS 0", b"GENPASS x", b"GENPASS 4097", b"GENPASS 1 2", b"LOG RESET",
    b"LOG", b"LOG x", b"LOG x y", b"DRYRUN default GET a", b"DRYRUN default GET", b"DRYRUN default NOSUCH a", b"DRYRUN nobody GET a", b"DRYRUN default",
    b"SAVE", b"LOAD", b"SETUSER", b"BAD", b"HELP", b"HELP x",
)
COMMAND = (
    b"BAD", b"GETKEYS", b"GETKEYS get", b"GETKEYS nosuch a", b"GETKEYS ping a", b"LIST BAD", b"LIST FILTERBY", b"LIST FILTERBY ACLCAT nosuch",
    b"LIST FILTERBY MODULE x", b"LIST FILTERBY BAD x", b"LIST FILTERBY PATTERN xaut*", b"COUNT x", b"HELP", b"HELP x", b"INFO nosuch", b"DOCS nosuch",
    b"INFO get config|set", b"INFO zadd lmove", b"GETKEYSANDFLAGS",
)
# What an argument less may make of these, and must not be sent.
OWN = {
    tuple(line.split(b" ")) for line in (
        b"ACL GENPASS", b"ACL GENPASS 1", b"CLIENT HELP", b"CLIENT ID", b"CLIENT INFO", b"CLIENT LIST", b"CLIENT LIST TYPE NORMAL",
        b"CLIENT TRACKING ON", b"COMMAND", b"COMMAND COUNT", b"COMMAND DOCS", b"COMMAND INFO", b"COMMAND LIST", b"LATENCY DOCTOR",
        b"LATENCY HISTOGRAM", b"LOLWUT VERSION", b"LOLWUT", b"MEMORY DOCTOR", b"MEMORY MALLOC-STATS", b"MEMORY USAGE {d}NOKEY EXTRA", b"RESET",
        b"SLOWLOG GET", b"SLOWLOG GET 1", b"SLOWLOG LEN",
    )
}


class Introspection(Family):
    NAME = "introspection"
    WEIGHT = 6
    PREFIX = b"i"
    RULES = {"ACL CAT": rules.unordered, "OBJECT REFCOUNT": rules.kind, "TIME": rules.kind}
    SHARES = ((4, "keys_of"), (4, "client"), (5, "server"), (2, "acl"), (2, "command"), (3, "object"))

    def words_of(self, name, lines):
        """A command of one of these lines."""
        return [word for word in [name, *self.random.choice(lines).split(b" ")] if word]

    def keys_of(self):
        """Which keys a command has, and what it does with them."""
        line = self.random.choice(KEYED).replace(b"A", self.key()).replace(b"B", self.key())
        return [b"COMMAND", self.any(b"GETKEYS", b"GETKEYSANDFLAGS"), *line.split(b" ")]

    def client(self):
        """Of connections."""
        return self.words_of(b"CLIENT", CLIENT)

    def server(self):
        """Of settings, of what was slow, of memory."""
        return self.words_of(b"", SERVER)

    def acl(self):
        """Of users."""
        return self.words_of(b"ACL", ACL)

    def command(self):
        """Of commands."""
        return self.words_of(b"COMMAND", COMMAND)

    def object(self):
        """Of how a key is kept."""
        key = self.key()
        return self.any([b"SET", key, self.any(b"1", b"text", b"99999")], [b"OBJECT", b"FREQ", key], [b"OBJECT", b"REFCOUNT", key],
                        [b"OBJECT", b"ENCODING", key], [b"DEL", key])

    def is_allowed(self, command):
        """Whether a command may be sent: not one that is about this connection, makes it silent or others wait, or tells
        what is different by nature."""
        words = tuple(word.upper() for word in command)
        if words[:2] == (b"COMMAND", b"DOCS") and len(words) > 3:
            return False  # in words of its own
        return words not in OWN and (len(words) == 2 or words[:2] != (b"ACL", b"SETUSER"))
