"""scripts/cluster as people use it: every command, and clear words when something is wrong."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))

import build  # noqa: E402
import process  # noqa: E402


class ClusterScript(unittest.TestCase):
    """One cluster after another, each in a directory of its own."""

    @classmethod
    def setUpClass(cls):
        cls.environment = {**os.environ, "KORUM_BIN": build.node_binary(release=False)}

    def setUp(self):
        self.directory = os.path.join(tempfile.mkdtemp(prefix="korum-test-"), "cluster")
        self.addCleanup(shutil.rmtree, os.path.dirname(self.directory), ignore_errors=True)
        self.addCleanup(self.script, "stop", good=None)

    def script(self, *words, good=True):
        """Run scripts/cluster; returns what it said. good=None: whatever happens."""
        command = [os.path.join(ROOT, "scripts", "cluster"), words[0], "--dir", self.directory, *map(str, words[1:])]
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=180, check=False)
        said = done.stdout.decode("utf-8", "replace")
        if good is not None:
            self.assertEqual(done.returncode == 0, good, f"{words}:\n{said}")
            self.assertNotIn("Traceback", said)
        return said

    def processes(self):
        """(pid, started) of the nodes in the state file."""
        with open(os.path.join(self.directory, "cluster.json")) as file:
            return [(node["pid"], node["started"]) for node in json.load(file)["nodes"]]

    def test_a_life(self):
        said = self.script("start", "--nodes", 3)
        self.assertIn("redis-cli -p", said)
        self.assertIn("redis-cli -c -p", said)
        pids = self.processes()
        self.assertEqual(len(pids), 3)
        self.assertIn("runs in", self.script("start", good=False))
        self.assertIn("OK", self.script("cli", 1, "set", "greeting", "hello"))
        self.assertIn("hello", self.script("cli", 2, "get", "greeting"))

        self.script("kill", 2)
        self.assertIn("does not run", self.script("kill", 2, good=False))
        self.assertIn("dead", self.script("status"))
        self.assertIn("hello", self.script("cli", 3, "get", "greeting"))
        self.script("restart", 2)
        self.script("pause", 3)
        self.assertIn("paused", self.script("status"))
        self.script("resume", 3)
        self.script("restart", 3, "--empty")
        self.script("add")
        self.assertIn("hello", self.script("cli", 4, "get", "greeting"))
        self.script("drain", 1)
        self.assertIn("hello", self.script("cli", 4, "get", "greeting"))
        self.assertNotEqual(self.script("logs", 4), "")
        self.assertIn("there is no node 9", self.script("kill", 9, good=False))

        pids += self.processes()
        self.script("stop")
        self.assertTrue(all(process.state(*one) == "dead" for one in pids if one[0]))
        self.assertFalse(os.path.exists(self.directory), "nothing is left")

    def test_without_a_cluster(self):
        for words in (["status"], ["kill", 1], ["cli"], ["logs", 1], ["drain", 1], ["add"]):
            self.assertIn("there is no cluster in", self.script(*words, good=False))
        self.assertFalse(os.path.exists(self.directory))

    def test_state_from_before_a_reboot_signals_nobody(self):
        self.script("start", "--nodes", 1)
        path = os.path.join(self.directory, "cluster.json")
        with open(path) as file:
            state = json.load(file)
        (pid, started), = self.processes()
        # as if the machine had been started again and the pid belonged to somebody else
        with open(path, "w") as file:
            json.dump({**state, "boot_id": "another"}, file)
        self.assertIn("stopped", self.script("status"))
        self.script("kill", 1, good=False)
        self.assertEqual(process.state(pid, started), "running")
        # a recycled pid: same number, another start
        state["nodes"][0]["started"] = started + 1
        with open(path, "w") as file:
            json.dump(state, file)
        self.script("kill", 1, good=False)
        self.assertEqual(process.state(pid, started), "running")
        state["nodes"][0]["started"] = started
        with open(path, "w") as file:
            json.dump(state, file)

    def test_two_clusters_side_by_side(self):
        self.script("start", "--nodes", 1)
        first = self.directory
        self.directory = first + "-other"
        self.addCleanup(self.script, "stop", good=None)
        self.script("start", "--nodes", 1)
        self.script("cli", "set", "a", "other")
        self.script("stop")
        self.directory = first
        self.assertNotIn("other", self.script("cli", "get", "a"))
        self.script("stop")


if __name__ == "__main__":
    unittest.main()
