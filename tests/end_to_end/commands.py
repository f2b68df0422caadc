"""Running the commands as a person does, each as if it were a process of its own."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from tests.kit.processes import finished
from tests.kit.warm.warm_python import lasting, shared_server

REPOSITORY = Path(__file__).resolve().parents[2]


def environment(**more: object) -> dict[str, str]:
    """This process's environment without settings of Assay, and with the given ones."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_")}
    return {**clean, **{name: str(value) for name, value in more.items()}}


def evaluator(*words: object, **settings: object) -> subprocess.CompletedProcess[str]:
    """`python -m evaluator ...` from the repository's root, with these environment variables."""
    command = [_python(), "-m", "evaluator", *words]
    return finished(command, cwd=REPOSITORY, env=environment(**settings), within_s=280)


@cache
def _python() -> Path:
    return lasting().enter_context(shared_server().python(REPOSITORY, environment())).program
