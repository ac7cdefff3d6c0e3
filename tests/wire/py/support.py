"""What the Python tests share: one three-node cluster for all of them, started when the first asks, ended at exit.

KORUM_TEST_ADDR=HOST:PORT (client port) and KORUM_TEST_CLUSTER=HOST:PORT (cluster port) point the tests at nodes that
run already; any Redis serves for the first, any Redis Cluster for the second.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))

import build  # noqa: E402
from local import Cluster  # noqa: E402
from resp import Connection, ReplyError  # noqa: E402

_started = {}
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that what was started is ended


def _start(nodes):
    """A cluster of so many nodes, kept for all tests of this process."""
    if nodes not in _started:
        directory = tempfile.mkdtemp(prefix="korum-test-")
        cluster = Cluster(directory)
        cluster.binary = build.node_binary(release=os.environ.get("KORUM_TEST_PROFILE") == "release")
        atexit.register(_end, cluster)
        cluster.start(nodes)
        cluster.wait_ready(60, expected=nodes)
        _started[nodes] = cluster
    return _started[nodes]


def _end(cluster):
    cluster.stop()
    if os.environ.get("KORUM_TEST_KEEP"):
        print(f"kept: {cluster.directory}", file=sys.stderr)
    else:
        shutil.rmtree(cluster.directory, ignore_errors=True)


def _given(name):
    address = os.environ.get(name)
    if address:
        host, _, port = address.rpartition(":")
        return host, int(port)
    return None


def single():
    """(host, port) of a one-node cluster's client port."""
    return _given("KORUM_TEST_ADDR") or ("127.0.0.1", _start(1).nodes[0].port)


def client_port():
    """(host, port) of the client port of a node of three."""
    return _given("KORUM_TEST_ADDR") or ("127.0.0.1", _start(3).nodes[0].port)


def client_ports():
    """(host, port) of the client ports of all nodes of three."""
    given = _given("KORUM_TEST_ADDR")
    return [given] * 3 if given else [("127.0.0.1", node.port) for node in _start(3).nodes]


def cross_slot_transactions(answer):
    """CONFIG SET cross-slot-transactions at all nodes of three; a plain Redis has no slots, and does not know it."""
    for host, port in client_ports():
        with Connection(port, host=host) as connection:
            try:
                connection.call("CONFIG", "SET", "cross-slot-transactions", answer)
            except ReplyError:
                if not os.environ.get("KORUM_TEST_ADDR"):
                    raise


def cluster_port():
    """(host, port) of the cluster port of a node of three."""
    return _given("KORUM_TEST_CLUSTER") or ("127.0.0.1", _start(3).nodes[0].cluster_port)
