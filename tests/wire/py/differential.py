#!/usr/bin/env python3
"""Random commands, sent to Redis 7.0 and to Korum: every reply must be the same, byte for byte.

  differential.py [--families hashes,keys] [--seed N] [--commands 20000] [--all] [--resp 2|3] [--list]
                  [--reference HOST:PORT] [--subject HOST:PORT]
  differential.py --cluster     through a node of three, while one joins and another is drained; then all copies
  differential.py --long 1000000    seed after seed, RESP2 and RESP3 in turn, and a table at the end

For: the long tail of options, edge values and error texts of all families of commands on keys.
Not here: the commands (`families`, one a file), the cluster (`spread`), the table (`counted`), speed.

Everything follows from the seed. After a difference it prints the seed, the command, both replies and the commands
that touched the same keys before; both servers are then emptied and it goes on, so that one run shows all kinds.
Now and then, and at the end, all keys are compared: type, value, deadline.
Without --reference it starts a redis-server of its own; without --subject a node (see support.py).
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import socket
import sys
import tempfile
import time
from collections import OrderedDict

import counted
import support
import process
import spread
from families import all_families, rules
from families.words import Words
from resp import encode

BATCH = 40
STATE_EVERY = 1000  # commands between two comparisons of all keys
LONG_RUN = 20_000  # commands of one seed in a long comparison


class Raw:
    """A connection that returns replies as the bytes that came."""

    def __init__(self, address):
        self.address = address
        self.hello = None
        self.open()

    def open(self):
        """A new connection, in the protocol of the old one."""
        self.socket = socket.create_connection(self.address, timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")
        if self.hello:
            self.batch([[b"HELLO", self.hello]])

    def batch(self, commands):
        """Send all, read all. When a reply does not come, it says so in its place and begins a new connection."""
        replies = []
        try:
            self.socket.sendall(b"".join(map(encode, commands)))
            for _ in commands:
                replies.append(self.read())
        except OSError as error:
            self.socket.close()
            self.open()
            replies.append(b"(no reply: %s)" % str(error).encode())
            replies += [b"(not reached)"] * (len(commands) - len(replies))
        return replies

    def read(self):
        """One reply, raw."""
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError(f"the connection ended after {line!r}")
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=!" and int(rest) >= 0:
            return line + self.reader.read(int(rest) + 2)
        count = {b"*": 1, b"~": 1, b">": 1, b"%": 2}.get(kind, 0)
        if count and int(rest) > 0:
            return line + b"".join(self.read() for _ in range(count * int(rest)))
        return line


class Rules:
    """How replies are compared, and how values are read, by all families."""

    def __init__(self, families):
        self.rules, self.reads, self.exchanged, self.fleeting = {}, {}, set(), set()
        for family in families.values():
            self.exchanged.update(family.EXCHANGED)
            self.fleeting.update(family.FLEETING)
            self.rules.update(family.RULES)
            for name, commands in family.READS.items():
                self.reads.setdefault(name, []).extend(commands)

    def same(self, command, left, right):
        """Are the replies the same, as far as the command lets them be?"""
        if not right or right[:1] == b"(":
            return False
        if left == right:
            return True
        word = command[0].decode("latin-1").upper()
        both = f"{word} {command[1].decode('latin-1').upper()}" if len(command) > 1 else word
        rule = self.rules.get(both) or self.rules.get(word)
        return rule is not None and rule(rules.parse(left), rules.parse(right))

    def allow(self, names, rule):
        """From now on replies to these are compared so."""
        self.rules.update(dict.fromkeys(names, rule))

    def reading(self, name, key):
        """The commands that read a value of this type in full."""
        return [[key if word == b"KEY" else word for word in command] for command in self.reads.get(name, [])]


def show(data, limit=300):
    """Bytes for people."""
    text = repr(bytes(data))[1:]
    return text if len(text) <= limit else f"{text[:limit]}... ({len(data)} bytes)"


def shape(command, left, right):
    """What kind of difference it is: the command and the replies without their particulars."""
    def of(reply):
        return re.sub(rb"[0-9]+", b"N", reply[:60]) if reply[:1] == b"-" else reply[:1]
    return command[0].upper(), tuple(w.upper() for w in command[1:2] if command[0].upper() in (b"OBJECT", b"COMMAND")), of(left), of(right)


class Comparison:
    """One run: two servers, what was sent, what differed."""

    def __init__(self, options, reference, subject, moving=None, counts=None):
        self.options = options
        self.moving = moving
        self.counts = counts or counted.Counts()
        self.refused = 0
        chosen = all_families()
        self.rules = Rules(chosen)
        if options.families:
            chosen = {name: chosen[name] for name in options.families.split(",")}
        self.words = Words(options.seed, chosen.values())
        self.families = [family(self.words) for family in chosen.values()]
        self.weights = [family.WEIGHT for family in chosen.values()]
        self.history = []
        self.differences = OrderedDict()
        self.done = 0
        self.servers = [Raw(reference), Raw(subject)]
        is_resp3 = self.words.random.random() < 0.5 if options.resp is None else options.resp == 3
        self.version, self.hello = (3, b"3") if is_resp3 else (2, None)
        if is_resp3:
            for server in self.servers:
                server.hello = self.hello
                server.batch([[b"HELLO", self.hello]])
        if moving:
            self.rules.allow(spread.LAID_OUT_ANEW, rules.kind)

    def fresh(self):
        """Empty servers on new connections: a reply that was one too many or too few must not shift the next ones."""
        self.history.clear()
        for server in self.servers:
            server.socket.close()
            server.open()
            server.batch([[b"FLUSHALL"]])

    def difference(self, command, left, right):
        """Something differs: shown once for each kind."""
        name = shape(command, left, right)
        if name in self.differences:
            self.differences[name] += 1
            return
        self.differences[name] = 1
        touched = [one for one in self.history if set(one[1:]) & set(command[1:])][-6:]
        print(f"difference (seed {self.options.seed}, --commands {self.options.commands}) after {self.done} commands:")
        for one in touched:
            print("      before:", " ".join(show(word, 60) for word in one[:40]))
        print("     command:", " ".join(show(word, 80) for word in command[:40]))
        print("       redis:", show(left))
        print("       korum:", show(right), flush=True)

    def ask(self, commands):
        """The same commands to both; whether all replies were the same."""
        for command, left, right in zip(commands, *(server.batch(commands) for server in self.servers)):
            self.done += 1
            if not self.rules.same(command, left, right):
                if self.is_refused(command, right):
                    self.refused += 1
                else:
                    self.difference(command, left, right)
                self.fresh()
                return False
            self.history.append(command)
        return True

    def is_refused(self, command, right):
        """What a cluster may refuse and a single Redis does not: a transaction after a WATCH, on any doubt, as when the
        keys have just changed their node or their database; and keys of several slots, which words of options are where
        a wrong number of keys takes them in."""
        is_null = command[0].upper() == b"EXEC" and right in (b"*-1\r\n", b"_\r\n")
        return is_null or right.startswith(b"-CROSSSLOT ")

    def together(self, commands):
        """Commands whose keys are in one slot: in a cluster one of many."""
        return spread.placed(commands, self.words.random) if self.moving else commands

    def dump_and_restore(self):
        """DUMP on a server and RESTORE there what it said, or what the other one said: the payload is its own business,
        the outcome is not."""
        tail = self.words.maybe(b"REPLACE", chance=0.6) + self.words.maybe(b"ABSTTL", chance=0.2)
        source, target = self.together([[self.words.near(), self.words.near()]])[0]
        payloads = [server.batch([[b"DUMP", source]])[0] for server in self.servers]
        name = self.servers[0].batch([[b"TYPE", source]])[0][1:-2]
        is_exchanged = name in self.rules.exchanged and self.words.random.random() < 0.7
        if is_exchanged:
            payloads.reverse()
        outcomes = []
        for server, payload in zip(self.servers, payloads):
            if payload[:1] == b"$" and not payload.startswith(b"$-1"):
                data = payload.split(b"\r\n", 1)[1][:-2]
                payload = server.batch([[b"RESTORE", target, b"0", data] + tail])[0]
            outcomes.append(payload)
        told = [b"RESTORE", target, b"0", b"(dump of the other)" if is_exchanged else b"(own dump)", source] + tail
        if outcomes[0] != outcomes[1]:
            self.difference(told, *outcomes)
            self.fresh()
            return
        self.history.append(told)
        if self.read([target]) and name in self.rules.fleeting:
            self.ask([[b"DEL", target]])

    def read(self, keys):
        """Compares these keys as they are now; whether they are the same."""
        for key in keys:
            types = [server.batch([[b"TYPE", key]])[0] for server in self.servers]
            if types[0] != types[1]:
                self.difference([b"TYPE", key], *types)
                self.fresh()
                return False
            name = types[0][1:-2]
            if not self.ask([[b"TYPE", key], [b"PEXPIRETIME", key]] + self.rules.reading(name, key)):
                return False
        return True

    def all_keys(self):
        """The keys of Redis, in order."""
        _, content = rules.parse(self.servers[0].batch([[b"KEYS", b"*"]])[0])
        return sorted(name for _, name in content)

    def state(self):
        """Compares all keys."""
        if self.ask([[b"KEYS", b"*"]]):
            self.read(self.all_keys())

    def short(self):
        """A short time to live passes, on both sides."""
        [[key]] = self.together([[self.words.near()]])
        for server in self.servers:
            server.batch([[b"DEL", key], [b"SET", key, b"short", b"PX", b"1"]])
        time.sleep(0.01)

    def run(self):
        """Everything; the differences by kind."""
        options = self.options
        begin = time.monotonic()
        next_state = STATE_EVERY
        self.fresh()
        while self.done < options.commands and time.monotonic() - begin < options.seconds:
            commands = []
            while len(commands) < BATCH:
                family = self.words.random.choices(self.families, self.weights)[0]
                made = self.together(family.make())
                self.counts.add(family.NAME, self.version, len(made))
                commands += made
            self.ask(commands)
            if self.moving:
                self.moving.step(self.done / options.commands)
            self.dump_and_restore()
            if self.words.random.random() < 0.05:
                self.short()
            if self.done >= next_state:
                self.state()
                next_state = self.done + STATE_EVERY * (4 if self.moving else 1)
            if len(self.history) > 2000:
                del self.history[:1000]
            if self.differences and not options.all:
                break
        took = self.moving.finish() if self.moving else 0
        self.state()
        if self.moving and not self.differences:
            copies = spread.compare_copies(self, Raw, self.moving)
            print(f"at rest {took:.1f} s later; {self.refused} transactions refused; keys held by each node: {copies}")
        return self.differences


def address(text):
    """HOST:PORT."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def long(options, reference, subject):
    """Seed after seed until enough commands were compared: the commands, and the differences of all."""
    counts, done, differences = counted.Counts(), 0, OrderedDict()
    enough, options.commands, options.seconds = options.long, min(LONG_RUN, options.long), 3600
    chosen, begin = options.resp, time.monotonic()
    while done < enough:
        options.resp = chosen or 2 + done // LONG_RUN % 2
        comparison = Comparison(options, reference, subject, counts=counts)
        differences.update(comparison.run())
        done += comparison.done
        print(f"seed {options.seed}: {done} of {enough} commands in {time.monotonic() - begin:.0f} s", flush=True)
        if comparison.differences and not options.all:
            break
        options.seed += 1
    families = all_families()
    print(counts.table(families))
    print("\nNot compared, or not byte for byte:\n" + counted.allowed(families) + "\n")
    return done, differences


def parsed():
    """The options; exits where they are wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--commands", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=90, help="end after so long, however many commands were done")
    parser.add_argument("--families", help="only these, with commas between")
    parser.add_argument("--resp", type=int, choices=(2, 3), help="the protocol; without it, by chance")
    parser.add_argument("--list", action="store_true", help="only print the names of the families")
    parser.add_argument("--all", action="store_true", help="go on after a difference and show every kind once")
    parser.add_argument("--cluster", action="store_true", help="three nodes, one joins, one is drained")
    parser.add_argument("--long", type=int, metavar="COMMANDS", help="seed after seed, until so many were compared")
    parser.add_argument("--reference", type=address)
    parser.add_argument("--subject", type=address)
    options = parser.parse_args()
    if not set((options.families or "").split(",")) <= set(all_families()) | {""}:
        parser.error("no such family; --list shows them")
    if options.cluster and (options.long or options.subject):
        parser.error("--cluster starts its own nodes, for one seed")
    return options


@contextlib.contextmanager
def redis():
    """The address of a Redis of our own; None if there is none here."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    directory = tempfile.mkdtemp(prefix="korum-reference-")
    port = process.free_ports(1)[0]
    own = process.spawn([program, "--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", directory],
                        os.path.join(directory, "log"))
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield "127.0.0.1", port
    finally:
        process.end(*own)
        shutil.rmtree(directory, ignore_errors=True)


def compare(options, reference):
    """Compares as the options say: the number of commands, and the differences."""
    if options.long:
        return long(options, reference, options.subject or support.single())
    moving = spread.Moving() if options.cluster else None
    try:
        subject = moving.start() if moving else options.subject or support.single()
        comparison = Comparison(options, reference, subject, moving)
        differences = comparison.run()
        return comparison.done, differences
    finally:
        if moving:
            moving.stop()


def main():
    options = parsed()
    if options.list:
        print(" ".join(sorted(all_families())))
        return 0
    seed = options.seed
    with contextlib.nullcontext(options.reference) if options.reference else redis() as reference:
        if reference is None:
            print("skipped: redis-server is not installed")
            return 0
        done, differences = compare(options, reference)
    what = f"--families {options.families} " if options.families else ""
    what += "--cluster " if options.cluster else f"--long {options.long} " if options.long else f"--commands {options.commands} "
    if differences:
        print(f"{len(differences)} kinds of differences in {done} commands; again: "
              f"differential.py {what}--seed {seed} --all")
        return 1
    print(f"{done} commands, no difference ({what}--seed {seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
