"""What imports torch or Ray does so when it is used: the command line and the site start without."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

HEAVY = {
    "torch", "torchvision", "transformers", "diffusers", "open_clip", "ray", "tokenizers",
    "datasets", "accelerate", "timm", "spacy",
}  # fmt: skip
LATER = {"scipy.stats", "scipy.special", "scipy.sparse", "scipy.optimize"}
"""What takes a second and 60 MiB together, and is used by a command or a page or two."""
LOOK = """
import typer.testing
import app
from benchmarks.registry import load_registry
from evaluator.__main__ import command_line
load_registry()
for words in (["--help"], ["scorers", "list", "--json"], ["scorers", "run", "--help"],
              ["generate", "--help"], ["questions", "write", "--help"], ["worker", "--help"],
              ["init", "--help"], ["check", "--help"]):
    done = typer.testing.CliRunner().invoke(command_line(), words)
    assert done.exit_code == 0, done.output
"""


def loaded(code: str) -> set[str]:
    """The modules and packages of a process that ran this."""
    told = f"{code}\nimport sys\nprint(*sys.modules)"
    command = [sys.executable, "-c", told]
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    modules = said.stdout.splitlines()[-1].split()
    return {*modules, *(name.partition(".")[0] for name in modules)}


@pytest.mark.slow
def test_help_lists_and_the_site_import_no_library_of_models_and_no_statistics() -> None:
    found = loaded(LOOK)
    assert {"app", "evaluator", "gradio", "benchmarks.evalmuse.measures"} <= found
    assert not (HEAVY | LATER) & found


@pytest.mark.parametrize("module", ["evaluator", "benchmarks"])
def test_the_command_lines_start_without_statistics(module: str) -> None:
    found = loaded(f"import {module}.__main__")
    assert f"{module}.__main__" in found
    assert not (HEAVY | LATER) & found
