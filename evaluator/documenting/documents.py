"""The documents that are written from the code, by path below `docs/`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.__main__ import command_line as of_benchmarks
from benchmarks.registry import load_registry
from benchmarks.settings.reference import rows as settings
from evaluator.__main__ import command_line as of_evaluator
from evaluator.documenting.commands_page import commands_page
from evaluator.documenting.errata_page import errata_page
from evaluator.documenting.error_codes import error_codes
from evaluator.documenting.errors_page import errors_page
from evaluator.documenting.measures_page import measures_page
from evaluator.documenting.records_page import records_page
from evaluator.documenting.settings_page import settings_page
from evaluator.documenting.states_page import states_page


def documents(root: Path) -> Mapping[str, str]:
    """Path to content of each.

    Args:
        root: of the repository, whose source holds the error codes.
    """
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
        "reference/settings.md": settings_page(settings()),
        "reference/states.md": states_page(),
    }
