"""Mutation tests: how many small errors in the numerical core the quick tests find.

All tests are collected once. A first run records which lines each test executes, and its time. Then
each mutant is tried in a fork of the process. The fork runs the tests of the changed lines, fast
ones first, until one fails or the time limit is reached. Tests that start other processes, and
simulations, are left out: an error that only they would find counts as not found.

Verdicts are appended to a table. The same command resumes where it stopped; with more seconds it
tries survivors again. Survivors are printed, except those in survivors.csv, which gives the reason
for each.
"""

import argparse
import csv
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import coverage
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mutants import ROOT, Mutant, mutants

SOURCE = ROOT / "src" / "unflip"
CORE = [
    "targets",
    "ridge/spectrum",
    "theory",
    "calibration/log_odds",
    "calibration/mixture",
    "calibration/slope",
    "calibration/intercepts",
    "model/refinement/refine",
]
TESTS = [
    "src",
    "tests/unit",
    "tests/contract",
    "tests/properties",
    "tests/golden",
    "README.md",
    "docs",
]
COLUMNS = ["file", "line", "column", "kind", "before", "after", "verdict", "tests", "seconds"]
JUDGED = Path(__file__).with_name("survivors.csv")
KEY = ["file", "line", "column", "kind", "after"]
_MEMORY = 8 * 2**30  # bytes that a fork may use


class Trial:
    """pytest plugin that replaces the loop over tests by one run for each mutant, in a fork."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.judged = judged()
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record that a test failed."""
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the mutants of each module, and print how many were found."""
        items = {item.nodeid: item for item in session.items}
        notes = self.options.notes.resolve()
        if not notes.exists():
            os.waitpid(_forked(lambda: self._take_notes(session.items, notes)), 0)
        ran = Notes(json.loads(notes.read_text(encoding="utf-8")), items)
        print(
            f"{len(ran.seconds)} tests, without {len(ran.failed)} that fail while traced: "
            f"{ran.failed}",
            flush=True,
        )
        table = Table(self.options.table.resolve())
        totals = [self._try_module(path, ran, items, table) for path in modules(self.options.names)]
        n_found, n_tried = np.sum(totals, axis=0)
        print(f"{n_found} of {n_tried} mutants found: {n_found / n_tried:.1%}", flush=True)
        return True

    def _take_notes(self, items: list[pytest.Item], notes: Path) -> int:
        """Run every test, and record the lines it executes and its time."""
        lines: dict[str, dict[str, list[str]]] = {}
        seconds = {}
        failed = []
        traced = coverage.Coverage(data_file=None, source=[str(SOURCE)], config_file=False)
        traced.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            traced.switch_context(item.nodeid)
            start = time.perf_counter()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = round(time.perf_counter() - start, 4)
            failed += [item.nodeid] if self.failed else []
            self.failed = False
        traced.stop()
        for file in traced.get_data().measured_files():
            ran = traced.get_data().contexts_by_lineno(file)
            lines[str(Path(file).relative_to(ROOT))] = {
                str(line): tests for line, tests in ran.items()
            }
        notes.write_text(
            json.dumps({"seconds": seconds, "failed": failed, "lines": lines}), encoding="utf-8"
        )
        return 0

    def _try_module(self, path: Path, ran: "Notes", items: dict, table: "Table") -> tuple[int, int]:
        drawn = mutants(path)
        rng = np.random.default_rng([self.options.seed, *str(path.relative_to(ROOT)).encode()])
        drawn = [drawn[i] for i in sorted(rng.permutation(len(drawn))[: self.options.n])]
        waiting = [mutant for mutant in drawn if not table.is_done(mutant, self.options.seconds)]
        waiting.reverse()
        if waiting:
            self._check_unchanged(
                [items[test] for test in ran.tests_of(waiting[0], self.options.seconds)]
            )
        running: dict[int, Run] = {}
        while waiting or running:
            while waiting and len(running) < self.options.jobs:
                mutant = waiting.pop()
                tests = ran.tests_of(mutant, self.options.seconds)
                run = Run(mutant, len(tests), 20 + 5 * ran.duration(tests))
                running[
                    _forked(lambda m=mutant, t=tests: self._try(m, [items[test] for test in t]))
                ] = run
            for pid in [pid for pid, run in running.items() if run.is_over(pid)]:
                run = running.pop(pid)
                table.write(run, self.options.seconds)
            time.sleep(0.005)
        survivors = [mutant for mutant in drawn if table.verdict(mutant) == "survived"]
        for mutant in survivors:
            if (mutant.where, mutant.before, mutant.after) not in self.judged:
                print(
                    f"  {mutant.file}:{mutant.line}: {mutant.before}  ->  {mutant.after}",
                    flush=True,
                )
        n_found = len(drawn) - len(survivors)
        print(f"{path.relative_to(SOURCE)}: {n_found} of {len(drawn)} found", flush=True)
        return n_found, len(drawn)

    def _check_unchanged(self, items: list[pytest.Item]) -> None:
        """Exit if tests fail in a fork without a mutant: they would find every mutant."""
        _, status = os.waitpid(_forked(lambda: self._try(None, items)), 0)
        if status or not items:
            sys.exit(
                "There are no tests, or they fail without a mutant: delete the file of --notes, "
                "and run make test."
            )

    def _try(self, mutant: Mutant | None, items: list[pytest.Item]) -> int:
        """Run tests with a mutant, or without one, until the first failure."""
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        if mutant is not None:
            mutant.put_in_place()
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return 1
        return 0


class Notes:
    """Which tests execute a line, and their times."""

    def __init__(self, notes: dict, items: dict) -> None:
        self.seconds = notes["seconds"]
        self.failed = notes["failed"]
        usable = items.keys() - set(self.failed)
        self.lines = {
            file: {int(line): usable.intersection(tests) for line, tests in lines.items()}
            for file, lines in notes["lines"].items()
        }

    def tests_of(self, mutant: Mutant, seconds: float) -> list[str]:
        """Return the tests of a mutant, fast ones first, up to this total time.

        These are the tests that execute its lines. If the lines run on import, these are the tests
        of the function around it or of lines that read it, or else all tests of the module.
        """
        lines = self.lines.get(mutant.file, {})
        for chosen in (mutant.lines, mutant.function_lines, lines):
            if tests := set().union(*(lines.get(line, set()) for line in chosen)):
                break
        ordered = sorted(tests, key=lambda test: (self.seconds[test], test))
        within = np.cumsum([self.seconds[test] for test in ordered]) <= seconds
        return ordered[: max(int(within.sum()), 1)]

    def duration(self, tests: list[str]) -> float:
        """Return the total time of tests in seconds."""
        return sum(self.seconds[test] for test in tests)


class Run:
    """A fork that tries one mutant."""

    def __init__(self, mutant: Mutant, n_tests: int, limit: float) -> None:
        self.mutant = mutant
        self.n_tests = n_tests
        self.limit = limit
        self.start = time.monotonic()
        self.verdict = ""

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def is_over(self, pid: int) -> bool:
        """Return whether the fork has ended or was stopped at its limit; sets the verdict."""
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            self.verdict = "survived" if status == 0 else "killed"
        elif self.elapsed > self.limit:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.verdict = "timeout"
        return bool(self.verdict)


class Table:
    """Verdicts, in a CSV file that grows line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[tuple, dict] = {}
        if path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                self._rows = {tuple(row[name] for name in KEY): row for row in csv.DictReader(file)}

    def verdict(self, mutant: Mutant) -> str:
        """Return the verdict of a mutant that was tried."""
        return self._rows[mutant.key]["verdict"]

    def is_done(self, mutant: Mutant, seconds: float) -> bool:
        """Return whether a mutant was found before, or survived this many seconds."""
        row = self._rows.get(mutant.key)
        return row is not None and (
            row["verdict"] != "survived" or float(row["seconds"]) >= seconds
        )

    def write(self, run: Run, seconds: float) -> None:
        """Append the verdict of a mutant."""
        mutant = run.mutant
        place = [mutant.file, mutant.line, mutant.column, mutant.kind, mutant.before, mutant.after]
        row = [*map(str, place), run.verdict, str(run.n_tests), str(seconds)]
        new = not self.path.exists()
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, row] if new else [row])
        self._rows[mutant.key] = dict(zip(COLUMNS, row, strict=True))


def _forked(work) -> int:
    """Fork a silent process that runs ``work`` and exits with its result, or 1 on an error."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setpgid(0, 0)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        code = work()
    finally:
        os._exit(code)


def judged() -> set[tuple[str, str, str]]:
    """Return the survivors that survivors.csv explains; they are not printed."""
    if not JUDGED.exists():
        return set()
    with JUDGED.open(newline="", encoding="utf-8") as file:
        return {(row["where"], row["before"], row["after"]) for row in csv.DictReader(file)}


def modules(names: list[str]) -> list[Path]:
    """Return the files of modules or folders, such as "targets" or "ridge/spectrum"."""
    paths = []
    for name in names:
        place = SOURCE / name
        paths += sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [path for path in paths if path.name != "__init__.py"]


def main() -> None:
    """Try mutants of the named modules."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=CORE, help="modules or folders of the package")
    parser.add_argument("--n", type=int, help="mutants per module (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random choice of mutants")
    parser.add_argument(
        "--seconds", type=float, default=20, help="seconds of tests per mutant (default: 20)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutants tried in parallel")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="test files or folders")
    parser.add_argument(
        "--table", type=Path, default=Path("build/mutants.csv"), help="CSV file of the verdicts"
    )
    parser.add_argument(
        "--notes",
        type=Path,
        default=Path("build/lines.json"),
        help="file that records which tests execute which lines",
    )
    options = parser.parse_args()
    for place in (options.table, options.notes):
        place.resolve().parent.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    # Otherwise tests would import benchmarks instead of libraries of the same name.
    sys.path.remove(str(Path(__file__).parent))
    quiet = ["-q", "-s", "-m", "not slow", "-p", "no:cacheprovider", "-n0"]
    with threadpool_limits(1):
        sys.exit(pytest.main([*quiet, *options.tests], plugins=[Trial(options)]))


if __name__ == "__main__":
    main()
