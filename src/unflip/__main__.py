"""Start the command line, or say what to install for it."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the program `unflip`."""
    try:
        from unflip.cli.program import app
    except ModuleNotFoundError as missing:
        sys.exit(
            f"unflip: the command line needs {missing.name}; "
            'install it with: pip install "unflip[cli]"'
        )
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)  # as shells do
    app()


if __name__ == "__main__":
    main()
