"""Shell sessions in the documentation: run their commands, and compare or rewrite the output.

A session is a fenced block of the language ``console``. A line that begins with ``$ `` is a
command; the lines up to the next command are what it prints, errors included. The sessions of a
page run in the order of the page, in one temporary folder. A block of the language ``python`` whose
first line is the name of a file, such as ``# tumours.py``, is saved in that folder before the first
command runs. ``[...]`` in the output stands for text that varies between runs, within one line.
``make transcripts`` updates all pages.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROMPT, VARIES = "$ ", "[...]"
_SESSION = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
_SCRIPT = re.compile(
    r"^```python\n# (?P<name>\w+\.py)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)
_PROGRAMS = {"unflip": [sys.executable, "-m", "unflip"], "python": [sys.executable]}
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_ENVIRONMENT = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"} | _THREADS


def pages():
    """Return all pages of the documentation, without generated pages."""
    sources = [
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not {"gallery", "generated"} & set(page.parts)
    ]
    return sorted([*ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *sources])


def sessions(text):
    """Return the shell sessions of a page."""
    return _SESSION.findall(text)


def without_sessions(text):
    """Return a page without its shell sessions."""
    return _SESSION.sub("", text)


def remade(text):
    """Return the text of a page with the current output of its commands."""
    with tempfile.TemporaryDirectory() as folder:
        for script in _SCRIPT.finditer(text):
            (Path(folder) / script["name"]).write_text(script["code"], encoding="utf-8")
        return _SESSION.sub(
            lambda session: _STEP.sub(lambda step: _remade_step(step, folder), session[0]), text
        )


def _remade_step(step, folder):
    printed = output_of(step["command"], folder)
    return step[0] if matches(step["output"], printed) else f"{PROMPT}{step['command']}\n{printed}"


def matches(shown, printed):
    """Whether the output on a page equals the printed one, except for parts that vary."""
    return re.fullmatch(".*".join(map(re.escape, shown.split(VARIES))), printed) is not None


def output_of(command, folder):
    """Run a command in a folder, and return its output; raise RuntimeError if it fails."""
    program, *arguments = shlex.split(command)
    words = [*_PROGRAMS.get(program, [program]), *arguments]
    options = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "encoding": "utf-8",
        "check": False,
    }
    done = subprocess.run(words, cwd=folder, env=os.environ | _ENVIRONMENT, **options)
    if done.returncode:
        raise RuntimeError(f"{command!r} ended with exit code {done.returncode}:\n{done.stdout}")
    return done.stdout if done.stdout.endswith("\n") or not done.stdout else done.stdout + "\n"


def main():
    """Update the output of the sessions on all pages."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if sessions(text):
            now = remade(text)
            page.write_text(now, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: {'unchanged' if now == text else 'updated'}")


if __name__ == "__main__":
    main()
