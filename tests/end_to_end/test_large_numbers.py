"""Numbers in a file whose squares are beyond floats: one sentence and exit code 2, without a
warning of NumPy's."""

import subprocess
import sys

import pytest

from unflip.datasets import make_mixture

pytest.importorskip("typer", reason="needs the extra unflip[cli]")


@pytest.mark.parametrize("cell", ["1e300", "-1e308"])
@pytest.mark.parametrize(
    "command", [["audit"], ["fit", "--out", "model.skops"]], ids=["audit", "fit"]
)
def test_a_cell_that_cannot_be_squared_is_named(tmp_path, command, cell):
    X, y = make_mixture(40, 2, random_state=0)
    lines = [f"{a},{b},{label}" for (a, b), label in zip(X.tolist(), y.tolist(), strict=True)]
    lines[3] = f"{cell},0.5,1"
    (tmp_path / "data.csv").write_text("\n".join(["first,second,label", *lines, ""]))
    words = [
        sys.executable,
        "-m",
        "unflip",
        command[0],
        "data.csv",
        "--label",
        "label",
        *command[1:],
    ]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    said = done.stderr.strip()
    assert said.startswith(
        f"unflip: Column 'first' of data.csv holds '{cell}' in row 3, which is so large that its "
        "square"
    )
    assert "\n" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]
