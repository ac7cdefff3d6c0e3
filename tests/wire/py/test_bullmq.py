"""BullMQ on ioredis, unchanged; the script prints one line a check."""

import os
import shutil
import subprocess
import unittest

import support


@unittest.skipUnless(shutil.which("node"), "Node.js is not installed")
class BullMq(unittest.TestCase):
    """Producer, worker and listener at different nodes."""

    def run_script(self, mode, addresses):
        modules = os.environ.get("KORUM_NODE_MODULES", "")
        if not os.path.isdir(os.path.join(modules, "bullmq")):
            self.skipTest("BullMQ is not installed (scripts/test installs it)")
        script = os.path.join(support.ROOT, "tests", "wire", "js", "bullmq.js")
        words = [f"{host}:{port}" for host, port in addresses]
        done = subprocess.run(["node", script, mode, *words], env={**os.environ, "NODE_PATH": modules},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout.decode())

    def test_client_ports(self):
        self.run_script("redis", support.client_ports())

    def test_cluster_port(self):
        self.run_script("cluster", [support.cluster_port()])


if __name__ == "__main__":
    unittest.main()
