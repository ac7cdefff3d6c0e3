"""redis-cli and redis-benchmark, unchanged, against a cluster."""

import os
import shutil
import subprocess
import unittest

import support
from resp import Connection, encode


def run(*command, data=None, seconds=90):
    """Run a tool; returns its standard output, fails when it fails."""
    done = subprocess.run([str(part) for part in command], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=seconds, check=False)
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{text}")
    return text


@unittest.skipUnless(shutil.which("redis-cli"), "redis-cli is not installed")
class Cli(unittest.TestCase):
    """redis-cli on the client port."""

    def cli(self, *command, **more):
        return run("redis-cli", "-p", support.client_port()[1], *command, **more).strip()

    def setUp(self):
        self.cli("flushall")

    def test_commands(self):
        self.assertEqual(self.cli("set", "greeting", "hello"), "OK")
        self.assertEqual(self.cli("get", "greeting"), "hello")
        self.assertEqual(self.cli("-3", "get", "greeting"), "hello")
        self.assertEqual(self.cli("get", "nothing"), "")
        self.assertIn("ERR unknown command", self.cli("nosuch"))

    def test_a_prompt_fed_from_a_file(self):
        self.assertEqual(self.cli(data=b"set a 1\nincr a\nget a\n").split(), ["OK", "2", "2"])

    def test_pipe(self):
        data = b"".join(encode(("SET", f"pipe:{i}", i)) for i in range(5000))
        self.assertIn("errors: 0, replies: 5000", self.cli("--pipe", data=data))
        self.assertEqual(self.cli("dbsize"), "5000")
        self.assertEqual(len(self.cli("--scan", "--pattern", "pipe:*").split()), 5000)

    def test_diagnosis_tools(self):
        self.cli("set", "big", "x" * 1000)
        self.assertIn("Biggest string found", self.cli("--bigkeys"))
        self.assertIn("redis_version", self.cli("info"))

    def test_what_monitoring_asks(self):
        for number in range(20):
            self.cli("set", f"asked:{number}", number)
            self.assertIn(" encoding:int ", self.cli("debug", "object", f"asked:{number}"), "wherever it is")
        self.assertIn("cmdstat_set:calls=", self.cli("info", "commandstats"))
        self.assertIn("latency_percentiles_usec_set:p50=", self.cli("info", "latencystats"))
        self.assertIn("histogram_usec", self.cli("latency", "histogram", "set"))
        self.assertEqual(self.cli("acl", "whoami"), "default")
        self.assertIn("user default on nopass", self.cli("acl", "list"))
        self.assertEqual(self.cli("role").split()[0], "master")
        self.assertEqual(self.cli("module", "list"), "")


@unittest.skipUnless(shutil.which("redis-cli"), "redis-cli is not installed")
class CliCluster(unittest.TestCase):
    """redis-cli -c on the cluster port: it follows MOVED."""

    def test_keys_of_all_nodes(self):
        port = support.cluster_port()[1]
        commands = "".join(f"set moved:{i} {i}\nget moved:{i}\n" for i in range(60))
        told = run("redis-cli", "-c", "-p", port, data=commands.encode()).split()
        self.assertEqual([word for word in told if word.isdigit()], [str(i) for i in range(60)])
        self.assertEqual(told.count("OK"), 60)

    def test_cluster_check(self):
        port = support.cluster_port()[1]
        told = run("redis-cli", "--cluster", "call", f"127.0.0.1:{port}", "ping")
        self.assertEqual(told.count("PONG"), 3, told)
        told = run("redis-cli", "--cluster", "check", f"127.0.0.1:{port}")
        self.assertIn("[OK] All 16384 slots covered.", told)
        self.assertIn("cluster_state:ok", run("redis-cli", "-p", port, "cluster", "info"))


@unittest.skipUnless(shutil.which("redis-benchmark"), "redis-benchmark is not installed")
class Benchmark(unittest.TestCase):
    """redis-benchmark on the client port, and with --cluster."""

    def test_client_port(self):
        port = support.client_port()[1]
        for depth in (1, 16):
            told = run("redis-benchmark", "-p", port, "-t", "ping,set,get,incr,mset", "-n", 5000, "-P", depth,
                       "-r", 10_000, "-c", 50, "--csv")
            for name in ("PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)"):
                self.assertIn(f'"{name}"', told)
            self.assertNotIn("rror", told)

    def test_cluster(self):
        port = support.cluster_port()[1]
        told = run("redis-benchmark", "--cluster", "-p", port, "-t", "set,get", "-n", 10_000, "-r", 10_000, "-c", 50,
                   "-P", 4, "-q")
        self.assertIn("SET:", told)
        self.assertIn("GET:", told)
        self.assertNotIn("rror", told)


@unittest.skipUnless(shutil.which("node"), "Node.js is not installed")
class IoRedis(unittest.TestCase):
    """ioredis `Cluster`; the script prints one line a check."""

    def test_cluster(self):
        modules = os.environ.get("KORUM_NODE_MODULES", "")
        if not os.path.isdir(os.path.join(modules, "ioredis")):
            self.skipTest("ioredis is not installed (scripts/test installs it)")
        script = os.path.join(support.ROOT, "tests", "wire", "js", "ioredis_cluster.js")
        host, port = support.cluster_port()
        environment = {**os.environ, "NODE_PATH": modules}
        done = subprocess.run(["node", script, host, str(port)], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=90, check=False)
        self.assertEqual(done.returncode, 0, done.stdout.decode())


class OwnClient(unittest.TestCase):
    """The scripts' own client, in both protocols."""

    def test_both_protocols(self):
        for hello in (2, 3):
            with Connection(support.client_port()[1]) as connection:
                connection.call("HELLO", hello)
                self.assertEqual(connection.call("SET", "own", b"\x00\xff"), "OK")
                self.assertEqual(connection.call("GET", "own"), b"\x00\xff")
                self.assertIsNone(connection.call("GET", "own:nothing"))
                self.assertEqual(connection.call("DEL", "own"), 1)


if __name__ == "__main__":
    unittest.main()
