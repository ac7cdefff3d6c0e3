"""Jobs of RQ, as its worker loads them."""


def add(a, b):
    """A sum."""
    return a + b


def fails():
    """An error."""
    raise ValueError("on purpose")


class Attempts:
    """How often `at_the_third` was tried, at the server: each job has a process of its own."""

    key = "{rq}attempts"


def at_the_third():
    """Works when it is tried for the third time."""
    from rq import get_current_job
    count = get_current_job().connection.incr(Attempts.key)
    if count < 3:
        raise ValueError("not yet")
    return count


def sum_of_dependencies():
    """The sum of what the jobs gave that this one waited for."""
    from rq import get_current_job
    return sum(job.return_value() for job in get_current_job().fetch_dependencies())
