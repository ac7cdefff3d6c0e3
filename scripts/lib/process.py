"""Processes of our own: start, recognise, signal.

For: never signalling a process that we did not start. A process is a pid *and* the time at which it started
(from /proc) *and* the boot it belongs to, so a recycled pid or a state file from before a reboot is recognised.
Not here: what the processes are (see local.py).
"""

import os
import random
import signal
import socket
import subprocess
import time

_children = {}  # pid -> Popen of this very script, to reap them


def boot_id():
    """Names this boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def stat(pid):
    """Fields of /proc/PID/stat from the state on (index 0 is field 3), or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def start_time(pid):
    """When the process started, in clock ticks since boot; None when it is gone."""
    fields = stat(pid)
    return int(fields[19]) if fields else None


def state(pid, started):
    """'running', 'paused' or 'dead'; a zombie and a stranger with the same pid are dead."""
    if pid in _children:
        _children[pid].poll()
    fields = stat(pid)
    if not fields or int(fields[19]) != started or fields[0] in "ZX":
        return "dead"
    return "paused" if fields[0] in "Tt" else "running"


def send(pid, started, number):
    """Send a signal to exactly this process; False when it is gone."""
    if not hasattr(os, "pidfd_open"):
        if state(pid, started) == "dead":
            return False
        os.kill(pid, number)
        return True
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if state(pid, started) == "dead":
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def wait_paused(pid, seconds):
    """Wait until every thread has stopped after SIGSTOP; False when one has not after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        try:
            stats = [stat(f"{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task")]
        except OSError:
            return False
        if all(fields is None or fields[0] == "T" for fields in stats):
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.005)


def wait_dead(pid, started, seconds):
    """Wait until the process is gone; False when it is still there after so many seconds."""
    end = time.monotonic() + seconds
    while state(pid, started) != "dead":
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def end(pid, started, patience=5.0):
    """Ask the process to leave (SIGTERM, after waking it up), insist after `patience` seconds (SIGKILL)."""
    send(pid, started, signal.SIGCONT)
    if send(pid, started, signal.SIGTERM) and not wait_dead(pid, started, patience):
        send(pid, started, signal.SIGKILL)
        return wait_dead(pid, started, 5.0)
    return True


def spawn(arguments, log, directory=None):
    """Start a detached process whose output goes to the end of a file; returns (pid, start time)."""
    with open(log, "ab") as output:
        child = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory, start_new_session=True
        )
    _children[child.pid] = child
    return child.pid, start_time(child.pid)


def free_ports(count, taken=()):
    """Ports of loopback that nobody listens on, below the range that the kernel gives to outgoing connections,
    so that a node that was stopped finds its port free again."""
    ports = []
    for _ in range(10_000):
        port = random.randrange(11_000, 32_000)
        if port in taken or port in ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError("no free ports on 127.0.0.1")
