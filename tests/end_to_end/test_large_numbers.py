"""Numbers in a file whose squares overflow float64: one error line, exit code 2, no warning."""

import subprocess
import sys

import pytest

from unflip.datasets import make_mixture

pytest.importorskip("typer", reason="needs the extra unflip[cli]")


@pytest.mark.parametrize("cell", ["1e300", "-1e308"])
@pytest.mark.parametrize(
    "command", [["audit"], ["fit", "--out", "model.skops"]], ids=["audit", "fit"]
)
def test_error_names_a_cell_whose_square_overflows(tmp_path, command, cell):
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
    errors = done.stderr.strip()
    assert errors.startswith(
        f"unflip: Column 'first' of data.csv has '{cell}' in row 3 (counted from 0), which is so "
        "large that its square overflows float64"
    )
    assert "\n" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["data.csv"]
