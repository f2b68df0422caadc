"""Entry point of `python -m benchmarks.errata`."""

from __future__ import annotations

import sys

from benchmarks.command_line import run
from benchmarks.errata.command import app


def main() -> int:
    """Run the command line; returns the exit code (0, 1 their input, 2 usage, 3 ours)."""
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
