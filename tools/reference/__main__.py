"""`python -m tools.reference`: write the documents that say what the code says, in a checkout."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.__main__ import command_line as of_benchmarks
from benchmarks.registry import load_registry
from evaluator.__main__ import command_line as of_evaluator
from tools.reference.errors import error_codes
from tools.reference.pages import (
    commands_page,
    errata_page,
    errors_page,
    measures_page,
    settings_page,
    states_page,
)
from tools.reference.records import records_page

ROOT = Path(__file__).resolve().parents[2]


def documents(root: Path) -> Mapping[str, str]:
    """Path to content of each."""
    cards = sorted((b.card for b in load_registry().values()), key=lambda c: (c.simulated, c.name))
    command_lines = {
        "python -m evaluator": of_evaluator(),
        "python -m benchmarks": of_benchmarks(),
    }
    return {
        "errata.md": errata_page(),
        "reference/commands.md": commands_page(command_lines),
        "reference/errors.md": errors_page(error_codes(root)),
        "reference/measures.md": measures_page(cards),
        "reference/records.md": records_page(),
        "reference/settings.md": settings_page(),
        "reference/states.md": states_page(),
    }


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
