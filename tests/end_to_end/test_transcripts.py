"""Shell sessions in the documentation are up to date, and the options they name exist."""

import os
import re

import pytest

from support.transcripts import PROMPT, ROOT, matches, pages, remade, sessions, without_sessions

TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in pages()}
WITH_SESSIONS = [name for name, text in TEXTS.items() if sessions(text)]
COMMAND = re.compile(
    r"\bunflip (audit|evaluate|apply|fit|predict|plan|demo|explore|reproduce)\b([^`\n]*)"
)

PAGE = """\
```python
# count.py
print("one")
print("two")
```

```console
$ python count.py
one
three
$ python -c "print(1, end='')"
1
```
"""


@pytest.mark.skipif(os.name == "nt", reason="the sessions need a Unix shell")
@pytest.mark.parametrize("name", WITH_SESSIONS)
def test_sessions_are_up_to_date(name):
    """After an intended change of the output, run `make transcripts`."""
    pytest.importorskip("typer", reason="the program needs the extra unflip[cli]")
    pytest.importorskip("pandas", reason="the program needs the extra unflip[cli]")
    assert TEXTS[name] == remade(TEXTS[name])


def test_the_command_line_page_has_sessions():
    assert "docs/command_line.md" in WITH_SESSIONS


def test_prompts_are_only_in_sessions_and_sessions_start_with_one():
    outside = [
        f"{name}: {line}"
        for name, text in TEXTS.items()
        for line in without_sessions(text).splitlines()
        if line.lstrip().startswith(PROMPT)
    ]
    assert outside == []
    assert [
        name
        for name in WITH_SESSIONS
        for session in sessions(TEXTS[name])
        if not session.startswith(PROMPT)
    ] == []


def test_outdated_output_is_replaced():
    now = remade(PAGE)
    assert now == PAGE.replace("three", "two")
    assert remade(now) == now


def test_missing_output_is_added_and_surplus_output_is_removed():
    assert remade(PAGE.replace("one\nthree\n", "")) == remade(PAGE)
    assert remade(PAGE.replace("\n1\n", "\n1\n\nmore\n")) == remade(PAGE)


def test_a_failing_command_is_an_error():
    with pytest.raises(RuntimeError, match="exit code 3"):
        remade(PAGE.replace('print("two")', "raise SystemExit(3)"))


def test_only_marked_parts_of_a_line_may_vary():
    assert matches("took [...] s\n", "took 1.5 s\n")
    assert not matches("took [...] s\n", "took 1.5 min\n")
    assert not matches("took [...] s\n", "took\n1.5 s\n")
    assert not matches("first, ...\n", "first, second\n")
    page = PAGE.replace("three", "t[...]")
    assert remade(page) == page


def test_options_named_in_the_documentation_exist():
    pytest.importorskip("typer", reason="the program needs the extra unflip[cli]")
    from typer.main import get_command

    from unflip.cli.program import app

    program = get_command(app)
    existing = {name: options_of(program.get_command(None, name)) for name in program.commands}
    named = [
        (page, command, option)
        for page, text in TEXTS.items()
        for command, arguments in COMMAND.findall(text)
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", arguments)
    ]
    assert len(named) > 20
    assert [use for use in named if use[2] not in existing[use[1]]] == []


def options_of(command):
    return {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
