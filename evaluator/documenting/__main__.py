"""`python -m evaluator.documenting`: write the reference, in a checkout (`make docs`)."""

from __future__ import annotations

import sys
from pathlib import Path

from evaluator.documenting.documents import documents

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Write what has changed, and name it."""
    for name, content in documents(ROOT).items():
        path = ROOT / "docs" / name
        if path.is_file() and path.read_text("utf-8") == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
        sys.stdout.write(f"docs/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
