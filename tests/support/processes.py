"""Start, watch and stop programs."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

#: Runs the program with one function replaced by a version that writes a file when it is called,
#: and then waits or goes on.
_MARKED = """
import importlib, pathlib, sys, time
owner, name, then, mark = sys.argv[1:5]
module, _, inner = owner.partition(":")
place = importlib.import_module(module)
place = getattr(place, inner) if inner else place
real = getattr(place, name)

def reached(*arguments, **options):
    pathlib.Path(mark).touch()
    if then == "wait":
        time.sleep(600)
    return real(*arguments, **options)

setattr(place, name, reached)
sys.argv[1:] = sys.argv[5:]
from unflip.__main__ import main
main()
"""


def started(command, **options):
    """Start a program that Ctrl-C stops, even if the tests run in the background and ignore it."""
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(command, preexec_fn=listening, **options)


def started_until(owner, name, then, mark, arguments, **options):
    """Start unflip and return once it calls a function.

    Parameters
    ----------
    owner, name : str
        Module or class of the function, as "module" or "module:class", and its name.
    then : {"wait", "go on"}
        What the program does when the function is called.
    mark : Path
        File that is written then; it must not exist before.
    arguments : sequence
        Arguments of the command line.
    """
    words = [sys.executable, "-c", _MARKED, owner, name, then, str(mark), *map(str, arguments)]
    process = started(
        words, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options
    )
    until(mark.exists, process)
    return process


def until(happened, process=None, seconds=120):
    """Wait until a condition holds; fail if the program ends first, or after too long."""
    deadline = time.monotonic() + seconds
    while not happened():
        ended = process is not None and process.poll() is not None
        assert not ended or happened(), (
            f"ended early: {process.stderr.read() if process.stderr else process.returncode}"
        )
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.02)


def living(group):
    """Return the process ids of a group that are running, on systems with /proc."""
    running = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(words[2]) == group and words[0] not in "ZX":
            running.append(int(folder.name))
    return running


def ended(process, ending):
    """Send a signal to a program and its children; return its exit code and its stderr."""
    os.killpg(process.pid, ending)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors.decode()
