"""Celery with Redis as its broker and for its results, unchanged: a producer at one node, a worker at another.

Its queues are lists, one for each priority, at which a worker waits with one BRPOP; what is not acknowledged, results
and the worker's control are other keys. So either Celery's `global_keyprefix` puts all keys in one slot, or
`cross-slot-transactions` is on, and queues for answers to remote control do not expire, since a script with keys of two
slots sees to that. Chords need the former, for the same reason.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import support

try:
    import celery
except ImportError:
    celery = None

NO_LIBRARY = "Celery is not installed (scripts/test installs it)"
APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
PATIENCE = 20  # seconds


class Common:
    """What must work both ways."""

    @classmethod
    def setUpClass(cls):
        support.cross_slot_transactions(cls.answer)
        cls.addClassCleanup(support.cross_slot_transactions, "no")
        urls = [f"redis://{host}:{port}/0" for host, port in support.client_ports()]
        cls.environment = {
            **os.environ,
            "CELERY_BROKER": urls[0],
            "CELERY_BACKEND": urls[1],
            "CELERY_SETTINGS": json.dumps(cls.settings),
            "PYTHONPATH": APPS,
        }
        cls.log = tempfile.TemporaryFile()
        cls.addClassCleanup(cls.log.close)
        command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "--queues", "celery,urgent",
                   "--concurrency", "2", "--loglevel", "WARNING", "--hostname", f"{cls.__name__}@test"]
        environment = {**cls.environment, "CELERY_BROKER": urls[2], "CELERY_BACKEND": urls[2]}
        cls.worker = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=cls.log,
                                      stderr=subprocess.STDOUT, start_new_session=True, cwd=APPS)
        cls.addClassCleanup(cls.end_worker)

    @classmethod
    def end_worker(cls):
        cls.worker.send_signal(signal.SIGTERM)
        try:
            cls.worker.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(cls.worker.pid, signal.SIGKILL)
            cls.worker.wait()

    def produce(self, lines):
        """Runs a producer, which prints what it got as JSON."""
        program = "import json, celery\nfrom celery_app import *\nfrom celery import chain, chord, group\n" + lines
        done = subprocess.run([sys.executable, "-c", program], env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=3 * PATIENCE, check=False)
        if done.returncode != 0 or self.worker.poll() is not None:
            self.log.seek(0)
            self.fail(f"{done.stderr.decode()}\nthe worker:\n{self.log.read().decode()}")
        return json.loads(done.stdout)

    def test_tasks(self):
        found = self.produce(f"""
wait = dict(timeout={PATIENCE})
found = {{}}
found["one"] = add.delay(2, 3).get(**wait)
found["group"] = group(add.s(number, number) for number in range(30))().get(**wait)
found["chain"] = chain(add.s(1, 2), add.s(3), add.s(4))().get(**wait)
found["queue"] = urgent.delay("text").get(**wait)
found["priority"] = [add.apply_async((number, 1), priority=number).get(**wait) for number in (0, 3, 6, 9)]
found["retried"] = at_the_third.delay().get(**wait)
found["soon"] = add.apply_async((5, 6), countdown=0.2).get(**wait)
found["late"] = [result.get(**wait) for result in [late.delay(number) for number in range(10)]]
failed = fails.delay()
try:
    failed.get(**wait)
except KeyError as error:
    found["error"] = str(error)
found["state"] = failed.state
forgotten = add.delay(1, 1)
forgotten.get(**wait)
forgotten.forget()
found["forgotten"] = forgotten.state
print(json.dumps(found))
""")
        self.assertEqual(found, {
            "one": 5,
            "group": [2 * number for number in range(30)],
            "chain": 10,
            "queue": "TEXT",
            "priority": [1, 4, 7, 10],
            "retried": 2,
            "soon": 11,
            "late": list(range(10)),
            "error": "'on purpose'",
            "state": "FAILURE",
            "forgotten": "PENDING",
        })

    def test_remote_control(self):
        found = self.produce(f"""
add.delay(1, 1).get(timeout={PATIENCE})  # the worker is there, and hears
queues = app.control.inspect(timeout=5, limit=1).active_queues()
late.apply_async((1,), countdown=3600).revoke()
print(json.dumps([len(app.control.ping(timeout=5, limit=1)), [queue["name"] for queue in list(queues.values())[0]]]))
""")
        self.assertEqual((found[0], sorted(found[1])), (1, ["celery", "urgent"]))


@unittest.skipIf(celery is None, NO_LIBRARY)
class InManySlots(Common, unittest.TestCase):
    settings = {"control_queue_expires": None, "event_queue_expires": None}
    answer = "yes"


@unittest.skipIf(celery is None, NO_LIBRARY)
class InOneSlot(Common, unittest.TestCase):
    settings = {
        "broker_transport_options": {"global_keyprefix": "{celery}:"},
        "result_backend_transport_options": {"global_keyprefix": "{celery}:"},
    }
    answer = "no"

    def test_chords(self):
        found = self.produce(f"""
result = chord((add.s(number, 1) for number in range(10)), total.s())()
nested = chord([chain(add.s(1, 1), add.s(number)) for number in range(3)], total.s())()
print(json.dumps([result.get(timeout={PATIENCE}), nested.get(timeout={PATIENCE})]))
""")
        self.assertEqual(found, [55, 9])


if __name__ == "__main__":
    unittest.main()
