"""Running the commands as a person does, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.kit.processes import finished

REPOSITORY = Path(__file__).resolve().parents[2]


def environment(**more: object) -> dict[str, str]:
    """This process's environment without settings of Assay, and with the given ones."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}
    return {**clean, **{name: str(value) for name, value in more.items()}}


def evaluator(*words: object, **settings: object) -> subprocess.CompletedProcess[str]:
    """`python -m evaluator ...` from the repository's root, with these environment variables."""
    return finished(
        [sys.executable, "-m", "evaluator", *words],
        cwd=REPOSITORY,
        env=environment(**settings),
        within_s=280,
    )
