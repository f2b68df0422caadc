"""`python -m supply.notes`: what CHANGELOG.md says of the version that is released."""

from __future__ import annotations

import sys
from pathlib import Path

from supply.release_check import changes_of, version_of

if __name__ == "__main__":
    sys.stdout.write(changes_of(Path.cwd(), version_of(Path.cwd())) + "\n")
