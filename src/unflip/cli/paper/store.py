"""Results on disk, written atomically; a piece is finished when its manifest is written."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from unflip._utils.atomic_files import write_atomically
from unflip._utils.version import __version__
from unflip.cli.paper.piece import Piece, Settings, Tables, Task

PICTURE = "picture"


def fingerprint(piece: Piece, settings: Settings) -> str:
    """Return a hash of the piece, its settings and the version of the library."""
    content = [piece.name, asdict(settings), __version__]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Manifest:
    """Origin and files of a finished piece."""

    piece: str
    fingerprint: str
    quick: bool
    version: str
    seconds: float  # computing time, summed over all parts
    files: dict[str, str]  # name → SHA-256


class Folder:
    """The folder of one piece in the results."""

    def __init__(self, results: Path, name: str) -> None:
        self.path = results / name

    def manifest(self) -> Manifest | None:
        """Return the manifest, or None if it is missing or does not match the files."""
        try:
            content = json.loads((self.path / "manifest.json").read_text(encoding="utf-8"))
            manifest = Manifest(**content)
            matches = [
                _digest(self.path / name) == digest for name, digest in manifest.files.items()
            ]
        except (OSError, ValueError, TypeError):
            return None
        return manifest if all(matches) else None

    def clear(self) -> None:
        """Delete all results and parts of the piece."""
        shutil.rmtree(self.path, ignore_errors=True)

    def part(self, mark: str, task: Task) -> Path:
        """Return the file of a part."""
        return self.path / "parts" / mark[:16] / f"{task.name}.json"

    def save(self, tables: Tables, pictures: dict[str, bytes], manifest: dict[str, Any]) -> None:
        """Write tables and pictures, then the manifest, then delete the parts."""
        contents = {
            f"{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items()
        }
        contents |= {f"{PICTURE}.{kind}": content for kind, content in pictures.items()}
        (self.path / "manifest.json").unlink(missing_ok=True)
        for name, content in contents.items():
            write_atomically(self.path / name, content)
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        written = asdict(Manifest(**manifest, version=__version__, files=digests))
        write_atomically(self.path / "manifest.json", json.dumps(written, indent=1).encode())
        shutil.rmtree(self.path / "parts", ignore_errors=True)

    def tables(self, manifest: Manifest) -> Tables:
        """Read the saved tables."""
        names = [name for name in manifest.files if name.endswith(".csv")]
        return {name[: -len(".csv")]: pd.read_csv(self.path / name) for name in names}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def encode_part(tables: Tables, seconds: float) -> bytes:
    """Return a part as JSON, which preserves floats exactly."""
    columns = {name: table.to_dict("list") for name, table in tables.items()}
    return json.dumps({"seconds": seconds, "tables": columns}).encode()


def read_part(path: Path) -> tuple[Tables, float]:
    """Return the tables of a part and its computing time in seconds."""
    content = json.loads(path.read_bytes())
    tables = {name: pd.DataFrame(columns) for name, columns in content["tables"].items()}
    return tables, content["seconds"]
