"""Programs that tests start and stop."""

import signal
import subprocess
from functools import partial


def started(command, **options):
    """Start a program that Ctrl-C stops, even where the tests themselves run in the background and ignore it."""
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(command, preexec_fn=listening, **options)
