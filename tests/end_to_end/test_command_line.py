"""The program `unflip` in a process of its own."""

import re
import subprocess
import sys

import pytest

from support.files import program

RUN = [sys.executable, "-m", "unflip"]


def run(*arguments, cwd=None, code=0):
    pytest.importorskip("typer", reason="needs the extra unflip[cli]")
    done = subprocess.run(
        [*RUN, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_demo(tmp_path):
    """The audit of the demo finds nearly all wrong labels, and names few others."""
    done = run("demo", cwd=tmp_path)
    figures = {
        line[:40].strip(): re.findall(r"[0-9.]+", line[40:]) for line in done.stdout.splitlines()
    }
    assert float(figures["of these, really wrong"][0]) >= 90
    truth = int(re.search(r"truth: (\d+)", done.stdout)[1])
    assert float(figures[f"of the {truth} wrong labels, found"][0]) >= 90
    estimate, error, by_disagreement = map(
        int, figures[f"Wrong labels, estimated (truth: {truth})"]
    )
    assert abs(estimate - truth) <= 3 * error < abs(by_disagreement - truth)
    estimated = float(figures["Accuracy on new images, estimated"][0])
    measured, of_logistic_regression = map(float, figures["Accuracy on new images, measured"])
    assert abs(estimated - measured) <= 2
    assert measured > of_logistic_regression
    assert "unflip audit reviews.csv" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "unflip-demo.html",
        "unflip-demo.png",
    ]
    assert (tmp_path / "unflip-demo.png").read_bytes().startswith(b"\x89PNG")
    assert "<title>" in (tmp_path / "unflip-demo.html").read_text(encoding="utf-8")


def test_demo_of_the_theory(tmp_path):
    done = run("demo", "theory", cwd=tmp_path)
    for word in (
        "oracle",
        "naive",
        "unbiased",
        "optimized",
        "LPClassifier()",
        "predicted",
        "simulated",
        "Picture: unflip-demo-theory.png",
    ):
        assert word in done.stdout
    picture = (tmp_path / "unflip-demo-theory.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--picture", "missing/demo.png"], "missing is not a folder"),
        (["--picture", "demo.pdf"], "must end in .png"),
        (["--picture", "."], "must end in .png"),
        (["--out", "missing/demo.html"], "missing is not a folder"),
        (["--out", "demo.png"], "must end in .html"),
        (["theory", "--picture", "demo.pdf"], "must end in .png"),
        (["theory", "--out", "demo.html"], "demo theory writes no page"),
        (["practice"], "takes the word theory or none, not 'practice'"),
    ],
)
def test_error_of_bad_arguments_of_the_demo(tmp_path, words, message):
    done = run("demo", *words, cwd=tmp_path, code=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_file_name(tmp_path):
    (tmp_path / "folder.png").mkdir()
    done = run("demo", "--picture", "folder.png", cwd=tmp_path, code=2)
    assert "folder.png is a folder" in done.stderr


def test_help_and_version():
    assert "demo" in run("--help").stdout
    assert run("--version").stdout.startswith("unflip 0.")
    assert run("nonsense", code=2).stderr


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_program_starts_without_numerical_libraries(option):
    pytest.importorskip("typer", reason="needs the extra unflip[cli]")
    code = f"""
import sys
from unflip.__main__ import main
sys.argv = ["unflip", "{option}"]
try:
    main()
finally:
    print("imported:", sorted({{"numpy", "scipy", "sklearn", "pandas"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("imported: []\n")


def test_help_has_the_first_paragraph_of_each_command():
    pytest.importorskip("typer", reason="needs the extra unflip[cli]")
    from typer.main import get_command

    from unflip.cli.program import app

    commands = get_command(app)
    words = " ".join(run("--help").stdout.replace("│", " ").split())
    for name in commands.commands:
        paragraph = commands.get_command(None, name).help.split("\n\n")[0]
        assert f"{name} {' '.join(paragraph.split())}" in words


def test_help_shows_no_value_for_flags_and_arguments_in_capitals():
    for command, usage in (
        ((), " [OPTIONS] COMMAND"),
        (("audit",), " audit [OPTIONS] DATA "),
        (("predict",), " predict [OPTIONS] MODEL DATA "),
        (("reproduce",), " reproduce [OPTIONS] PIECE"),
    ):
        text = program(*command, "--help").stdout
        assert usage in text
        assert "bool" not in text.lower()


def test_error_without_the_extra_names_it():
    code = "import sys; sys.modules['typer'] = None; from unflip.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "unflip[cli]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_the_core_needs_only_its_hard_dependencies():
    blocked = ("matplotlib", "typer", "rich", "pandas", "mpmath", "pytest")
    code = f"import sys; sys.modules.update(dict.fromkeys({blocked!r})); from unflip import *"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def options(condition):
    """Return (command, option) for each option that satisfies a condition."""
    pytest.importorskip("typer", reason="needs the extra unflip[cli]")
    from typer.core import TyperOption
    from typer.main import get_command

    from unflip.cli.program import app

    program = get_command(app)
    return [
        (name, option.opts[0])
        for name in program.commands
        for option in program.get_command(None, name).params
        if isinstance(option, TyperOption) and condition(option)
    ]


def test_options_with_one_value_cannot_be_repeated():
    single = options(lambda option: not option.is_flag and not option.multiple)
    assert {
        ("audit", "--group"),
        ("apply", "--item"),
        ("fit", "--decisions"),
        ("plan", "--n"),
    } <= set(single)
    assert {command for command, _ in single} >= {"demo", "predict", "explore", "reproduce"}
    for command, option in single:
        done = program(command, "data.csv", option, "1", f"{option}=2", code=2)
        assert (
            done.stderr == f"unflip: {option} is given 2 times but takes one value: pass it once.\n"
        )


def test_lists_and_flags_can_be_repeated():
    several = options(lambda option: option.is_flag or option.multiple)
    assert {
        ("audit", "--label"),
        ("audit", "--text"),
        ("fit", "--ignore"),
        ("apply", "--json"),
    } <= set(several)
    done = program(
        "plan",
        "--n=100",
        "--p=9",
        "--mean-norm=2",
        "--eps-pos=.1",
        "--eps-neg=.1",
        "--json",
        "--json",
    )
    assert done.stdout.startswith("{")
    error = program(
        "audit",
        "none.csv",
        "--label",
        "a",
        "--label",
        "b",
        "--ignore",
        "c",
        "--ignore",
        "d",
        code=2,
    ).stderr
    assert "none.csv does not exist" in error
