"""RQ, unchanged: a producer at one node, a worker at another, with `cross-slot-transactions`.

RQ has no prefix for all its keys, and pipelines what concerns a job, its queue and registries as one MULTI. A queue's
name has a hash tag if a worker waits at it alone: it moves jobs (BLMOVE) from there to a list beside it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import support

try:
    import redis
    import rq
    from rq import Queue, Retry
    from rq.job import Job, JobStatus
    from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry
except ImportError:
    rq = None

NO_LIBRARY = "RQ is not installed (scripts/test installs it)"
APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")
PATIENCE = 20  # seconds


@unittest.skipIf(rq is None, NO_LIBRARY)
class Worker(unittest.TestCase):
    """Jobs through a worker that waits at two queues."""

    queues = ["{rq}high", "{rq}low"]

    @classmethod
    def setUpClass(cls):
        support.cross_slot_transactions("yes")
        cls.addClassCleanup(support.cross_slot_transactions, "no")
        (host, port), _, (there, other) = support.client_ports()
        cls.connection = redis.Redis(host, port)
        cls.addClassCleanup(cls.connection.close)
        cls.connection.flushall()
        cls.log = tempfile.TemporaryFile()
        cls.addClassCleanup(cls.log.close)
        command = [sys.executable, "-m", "rq.cli", "worker", "--url", f"redis://{there}:{other}/0", "--with-scheduler",
                   *cls.queues]
        cls.worker = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": APPS}, stdin=subprocess.DEVNULL,
                                      stdout=cls.log, stderr=subprocess.STDOUT, start_new_session=True, cwd=APPS)
        cls.addClassCleanup(cls.end_worker)

    @classmethod
    def end_worker(cls):
        cls.worker.send_signal(signal.SIGTERM)
        try:
            cls.worker.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(cls.worker.pid, signal.SIGKILL)
            cls.worker.wait()

    def setUp(self):
        self.high, self.low = (Queue(name, connection=self.connection) for name in self.queues)

    def ended(self, job):
        """Waits until the job has ended; its result."""
        end = time.monotonic() + PATIENCE
        while job.get_status() not in (JobStatus.FINISHED, JobStatus.FAILED):
            if time.monotonic() > end or self.worker.poll() is not None:
                self.log.seek(0)
                self.fail(f"{job.get_status()}, the worker:\n{self.log.read().decode()}")
            time.sleep(0.02)
        return job.return_value()

    def test_results(self):
        jobs = [queue.enqueue("rq_jobs.add", number, 1) for number in range(5) for queue in (self.high, self.low)]
        self.assertEqual([self.ended(job) for job in jobs], [number // 2 + 1 for number in range(10)])
        again = Job.fetch(jobs[0].id, connection=self.connection)
        self.assertEqual((again.return_value(), again.origin), (1, "{rq}high"))
        self.assertIn(jobs[1].id, FinishedJobRegistry(queue=self.low).get_job_ids())
        self.assertEqual((len(self.high), StartedJobRegistry(queue=self.high).count), (0, 0))

    def test_many_in_one_transaction(self):
        prepared = [Queue.prepare_data("rq_jobs.add", (number, number)) for number in range(5)]
        jobs = self.low.enqueue_many(prepared)
        self.assertEqual([self.ended(job) for job in jobs], [0, 2, 4, 6, 8])

    def test_errors_and_retries(self):
        failed = self.high.enqueue("rq_jobs.fails", job_id="fails")
        self.assertIsNone(self.ended(failed))
        self.assertEqual(failed.get_status(), JobStatus.FAILED)
        self.assertIn("on purpose", failed.latest_result().exc_string)
        registry = FailedJobRegistry(queue=self.high)
        self.assertIn(failed.id, registry.get_job_ids())
        registry.requeue(failed.id)
        self.ended(failed)
        self.connection.delete("{rq}attempts")
        self.assertEqual(self.ended_at_last(self.low.enqueue("rq_jobs.at_the_third", retry=Retry(max=3))), 3)

    def ended_at_last(self, job):
        """As `ended`, of a job that may fail in between."""
        end = time.monotonic() + PATIENCE
        while job.get_status() != JobStatus.FINISHED:
            self.assertLess(time.monotonic(), end, job.get_status())
            time.sleep(0.02)
        return job.return_value()

    def test_dependencies(self):
        first = [self.low.enqueue("rq_jobs.add", 1, number, job_id=f"first{number}") for number in range(2)]
        then = self.high.enqueue("rq_jobs.sum_of_dependencies", depends_on=first, job_id="then")
        self.assertEqual(self.ended(then), 3)

    def test_a_job_is_deleted_and_one_is_cancelled(self):
        job = self.low.enqueue("rq_jobs.add", 1, 1)
        self.ended(job)
        job.delete()
        self.assertFalse(Job.exists(job.id, connection=self.connection))
        waits = Queue("{rq}nobody", connection=self.connection)
        job = waits.enqueue("rq_jobs.add", 1, 1)
        self.assertEqual(waits.job_ids, [job.id])
        job.cancel()
        self.assertEqual((waits.job_ids, job.get_status()), ([], JobStatus.CANCELED))

    def test_workers_are_known(self):
        workers = rq.Worker.all(connection=self.connection)
        end = time.monotonic() + PATIENCE
        while not workers and time.monotonic() < end:
            workers = rq.Worker.all(connection=self.connection)
        self.assertEqual([worker.queue_names() for worker in workers], [self.queues])


if __name__ == "__main__":
    unittest.main()
