"""Runs Python in a folder as an ordinary user: `python as_space_user.py UID WORDS`.

Nothing of the project is on the path of what is run.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

OPENED = Path(__file__).parents[1] / "evaluator/isolation/as_another_user.py"


def main() -> None:
    """Open the way to Python, become the user, and run the rest."""
    uid, *words = sys.argv[1:]
    runpy.run_path(str(OPENED))["become"](int(uid))
    os.execv(sys.executable, [sys.executable, *words])


if __name__ == "__main__":
    main()
