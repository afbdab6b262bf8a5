"""The program `unflip` in a process of its own."""

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
    done = run("demo", cwd=tmp_path)
    for word in (
        "oracle",
        "naive",
        "unbiased",
        "optimized",
        "LPClassifier()",
        "predicted",
        "simulated",
        "Picture: unflip-demo.png",
    ):
        assert word in done.stdout
    picture = (tmp_path / "unflip-demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("missing/demo.png", "missing is not a folder"),
        ("demo.pdf", "must end in .png"),
        (".", "must end in .png"),
    ],
)
def test_error_of_a_bad_file_name(tmp_path, out, message):
    done = run("demo", "--out", out, cwd=tmp_path, code=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_a_file_name(tmp_path):
    (tmp_path / "folder.png").mkdir()
    assert (
        "folder.png is a folder" in run("demo", "--out", "folder.png", cwd=tmp_path, code=2).stderr
    )


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
