"""A Korum cluster on this machine: its nodes, their state file, and what can be done to them.

For: scripts/cluster, scripts/test and the Python tests.
Not here: words for people (scripts/cluster), the demo (demo.py).

Everything lives in one directory: cluster.json (the state), lock, and node-N/ with its data and node-N.log.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import time

import process
from resp import Connection, Disconnected, ReplyError


DRAIN_SECONDS = 300
LEAVE_SECONDS = 5


class Problem(Exception):
    """What went wrong and what to do next, for people."""


class Node:
    """One node as the state file knows it."""

    def __init__(self, record):
        self.__dict__.update(record)

    number: int
    port: int
    cluster_port: int
    peer_port: int
    pid: int
    started: int

    @property
    def state(self):
        """running, paused, dead (it should run and does not) or stopped (it left on purpose)."""
        return "stopped" if self.pid == 0 else process.state(self.pid, self.started)

    def call(self, *args, timeout=3.0):
        """One command on the client port."""
        with Connection(self.port, timeout=timeout) as connection:
            return connection.call(*args)

    def call_cluster_port(self, *args, timeout=3.0):
        """One command on the cluster port, which speaks for this node alone."""
        with Connection(self.cluster_port, timeout=timeout) as connection:
            return connection.call(*args)

    def status(self, timeout=3.0):
        """KORUM STATUS JSON as a dict; raises Disconnected or ReplyError."""
        return json.loads(self.call("KORUM", "STATUS", "JSON", timeout=timeout))

    def cluster_info(self, timeout=3.0):
        """CLUSTER INFO as a dict of str."""
        text = self.call("CLUSTER", "INFO", timeout=timeout).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


class Cluster:
    """The cluster of one directory. Open it with `Cluster.open` (one command at a time holds it)."""

    def __init__(self, directory):
        self.directory = os.path.abspath(directory)
        self.binary = None
        self.replication = None
        self.nodes = []

    # -- the state file ----------------------------------------------------------------------------

    @property
    def _file(self):
        return os.path.join(self.directory, "cluster.json")

    @contextlib.contextmanager
    def locked(self):
        """Hold the directory, so that two commands never change one cluster at the same time."""
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, "lock"), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Problem(f"another command is at work in {self.directory}; wait for it") from None
            yield self

    def load(self):
        """Read the state; False when there is none. State from before a reboot counts as stopped nodes."""
        try:
            with open(self._file) as file:
                state = json.load(file)
        except FileNotFoundError:
            return False
        except ValueError:
            raise Problem(f"{self._file} is damaged; remove {self.directory} and start again") from None
        self.binary = state["binary"]
        self.replication = state["replication"]
        self.nodes = [Node(record) for record in state["nodes"]]
        if state["boot_id"] != process.boot_id():
            for node in self.nodes:
                node.pid = node.started = 0
        return True

    def save(self):
        """Write the state, all or nothing."""
        state = {
            "boot_id": process.boot_id(),
            "binary": self.binary,
            "replication": self.replication,
            "nodes": [vars(node) for node in self.nodes],
        }
        with open(self._file + ".new", "w") as file:
            json.dump(state, file, indent=1)
        os.replace(self._file + ".new", self._file)

    # -- nodes -------------------------------------------------------------------------------------

    def node(self, number):
        """The node with this number."""
        for node in self.nodes:
            if node.number == number:
                return node
        known = ", ".join(str(node.number) for node in self.nodes) or "none"
        raise Problem(f"there is no node {number}; nodes: {known}")

    def running(self):
        """Nodes whose process runs and is not paused."""
        return [node for node in self.nodes if node.state == "running"]

    def path(self, node, *more):
        """A path that belongs to a node."""
        return os.path.join(self.directory, f"node-{node.number}", *more)

    def log(self, node):
        """The node's log file."""
        return os.path.join(self.directory, f"node-{node.number}.log")

    def new_node(self):
        """A node with the next number and ports of its own, not started yet."""
        taken = {port for node in self.nodes for port in (node.port, node.cluster_port, node.peer_port)}
        port, cluster_port, peer_port = process.free_ports(3, taken)
        number = max((node.number for node in self.nodes), default=0) + 1
        node = Node(dict(number=number, port=port, cluster_port=cluster_port, peer_port=peer_port, pid=0, started=0))
        self.forget_files(node)  # of an earlier cluster that did not start
        self.nodes.append(node)
        return node

    def launch(self, node, seeds, extra=()):
        """Start the node's process; `seeds` are the nodes it may join through (none: it starts a cluster)."""
        data = self.path(node)
        os.makedirs(data, exist_ok=True)
        arguments = [self.binary, "--bind", "127.0.0.1", "--port", str(node.port)]
        arguments += ["--cluster-port", str(node.cluster_port), "--peer-port", str(node.peer_port)]
        arguments += ["--dir", data]
        if self.replication:
            arguments += ["--replication", str(self.replication)]
        for seed in seeds:
            arguments += ["--join", f"127.0.0.1:{seed.port}"]
        arguments += list(extra)
        arguments += os.environ.get("KORUM_NODE_FLAGS", "").split()
        node.pid, node.started = process.spawn(arguments, self.log(node))
        self.save()

    def start(self, count, extra=()):
        """Start `count` nodes from nothing; the first alone, the others join it."""
        first = self.new_node()
        self.launch(first, [], extra)
        self.wait_answering(first, 20)
        for _ in range(count - 1):
            self.launch(self.new_node(), [first], extra)

    def seeds_for(self, node):
        """One node that a starting node can join through."""
        return [other for other in self.running() if other is not node][:1]

    def drain(self, node):
        """Let a node hand over everything and leave. Done when the others have forgotten it and are settled; then it
        ends by itself, or is ended."""
        others = [other for other in self.running() if other is not node]
        if node.state != "running" or not others:
            raise Problem(f"node {node.number} cannot hand over: it must run, and so must another")
        name = node.call("CLUSTER", "MYID").decode()
        others[0].call("KORUM", "DRAIN", name, timeout=10.0)
        end = time.monotonic() + DRAIN_SECONDS
        while True:
            why = self.unready(nodes=others) or self._knows(others[0], name)
            if why is None:
                break
            if time.monotonic() > end:
                raise Problem(f"node {node.number} has not left after {DRAIN_SECONDS} s: {why}")
            time.sleep(0.05)
        if not process.wait_dead(node.pid, node.started, LEAVE_SECONDS):
            process.end(node.pid, node.started)
        self.nodes.remove(node)
        self.save()
        self.forget_files(node)

    @staticmethod
    def _knows(node, name):
        """Why is another node not forgotten yet? None when it is."""
        try:
            known = [one.get("id") for one in node.status().get("nodes", [])]
        except (Disconnected, ReplyError, ValueError) as error:
            return str(error)
        return f"node {node.number} still knows it" if name in known else None

    def stop(self):
        """End every process of this cluster: politely, all at once, then with force."""
        for node in self.nodes:
            if node.pid:
                process.send(node.pid, node.started, signal.SIGCONT)
                process.send(node.pid, node.started, signal.SIGTERM)
        left = []
        for node in self.nodes:
            if node.pid and not process.end(node.pid, node.started):
                left.append(node)
            node.pid = node.started = 0
        if left:
            raise Problem("still there after SIGKILL: " + ", ".join(f"node {node.number}" for node in left))

    def forget_files(self, node):
        """Delete a node's data and log."""
        shutil.rmtree(self.path(node), ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.log(node))

    def forget_state(self):
        """Delete the state file; logs stay."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._file)

    def remove_files(self):
        """Delete what this cluster wrote, and only that."""
        for node in self.nodes:
            self.forget_files(node)
        for name in ("cluster.json", "lock"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self.directory, name))
        with contextlib.suppress(OSError):
            os.rmdir(self.directory)

    # -- waiting -----------------------------------------------------------------------------------

    def _tail(self, node, lines=15):
        try:
            with open(self.log(node), errors="replace") as file:
                return "".join(file.readlines()[-lines:]) or "(nothing)\n"
        except OSError:
            return "(no log)\n"

    def wait_answering(self, node, seconds):
        """Wait until the node answers PING."""
        end = time.monotonic() + seconds
        while True:
            try:
                if node.call("PING", timeout=1.0) == "PONG":
                    return
                why = "it does not answer PONG"
            except (Disconnected, ReplyError) as error:
                why = str(error)
            if node.state == "dead":
                raise Problem(f"node {node.number} ended at once; its log {self.log(node)} says:\n{self._tail(node)}")
            if time.monotonic() > end:
                raise Problem(
                    f"node {node.number} does not answer after {seconds} s ({why}); its log {self.log(node)} says:\n"
                    + self._tail(node)
                )
            time.sleep(0.02)

    def unready(self, expected=None, nodes=None):
        """Why the cluster is not ready, or None when every running node (or every one of `nodes`) says that it is:
        all are up, they know the same map, every slot is served and no partition is moving."""
        nodes = self.running() if nodes is None else nodes
        if not nodes:
            return "no node runs"
        epochs = set()
        for node in nodes:
            try:
                info = node.cluster_info(timeout=1.0)
                if info.get("cluster_state") != "ok":
                    return f"node {node.number} says cluster_state:{info.get('cluster_state')}"
                epochs.add(info.get("cluster_current_epoch"))
                why = not_settled(node.status(timeout=1.0), expected or len(nodes))
            except (Disconnected, ReplyError, ValueError) as error:
                why = str(error)
            if why:
                return f"node {node.number}: {why}"
        return None if len(epochs) == 1 else f"nodes are at different epochs: {sorted(map(str, epochs))}"

    def wait_ready(self, seconds, expected=None):
        """Wait until `unready` finds nothing; returns the seconds it took."""
        begin = time.monotonic()
        watched = self.running()  # not those that were killed on purpose
        while True:
            why = self.unready(expected)
            if why is None:
                return time.monotonic() - begin
            for node in watched:
                if node.state == "dead":
                    raise Problem(f"node {node.number} died; its log {self.log(node)} says:\n{self._tail(node)}")
            if time.monotonic() - begin > seconds:
                raise Problem(f"the cluster is not ready after {seconds} s: {why}\nlogs: {self.directory}/node-*.log")
            time.sleep(0.05)


def not_settled(status, expected):
    """Reads KORUM STATUS JSON: why is the cluster not settled? None when it is."""
    nodes = status.get("nodes", [])
    up = [node for node in nodes if is_up(node)]
    if len(up) != expected:
        return f"{len(up)} nodes up of {expected}"
    moving = status.get("moving", 0)
    return f"{moving} partitions are moving" if moving else None


def is_up(node):
    """Is a node of KORUM STATUS JSON up, and a member?"""
    return node.get("state") in ("up", "leaving")
