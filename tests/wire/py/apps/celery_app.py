"""A Celery application, as its worker and its producers load it: test_celery.py says where and how by environment."""

import json
import os

from celery import Celery

app = Celery("korum", broker=os.environ["CELERY_BROKER"], backend=os.environ["CELERY_BACKEND"])
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_routes={"celery_app.urgent": {"queue": "urgent"}},
    worker_hijack_root_logger=False,
    **json.loads(os.environ["CELERY_SETTINGS"]),
)


@app.task
def add(a, b):
    """A sum."""
    return a + b


@app.task
def total(numbers):
    """The sum of what a chord's tasks gave."""
    return sum(numbers)


@app.task
def fails():
    """An error, which the producer is to see."""
    raise KeyError("on purpose")


@app.task(bind=True, max_retries=3)
def at_the_third(self):
    """Works when it is tried for the third time."""
    if self.request.retries < 2:
        raise self.retry(countdown=0.05)
    return self.request.retries


@app.task
def urgent(text):
    """In a queue of its own."""
    return text.upper()


@app.task(acks_late=True)
def late(number):
    """Is taken out of what is not acknowledged only afterwards."""
    return number
