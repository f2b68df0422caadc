"""What imports torch or Ray does so when it is used: the command line and the site start without."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import REPOSITORY
from tests.kit.processes import finished

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


STEPS = {
    "import evaluator": {"torch", "transformers", "pandas", "gradio", "evaluator.metric"},
    "import evaluator.__main__; evaluator.__main__.command_line('status')": {
        "benchmarks.__main__",
        "evaluator.commands.check",
        "evaluator.scorers",
        "jinja2",
        *HEAVY,
        *LATER,
    },
    "import benchmarks.__main__": HEAVY | LATER,
    "evaluator.__main__.command_line()": HEAVY | LATER,
    # The digest of a family's code, which every manifest of a built-in metric holds.
    "from evaluator.scorers.family_code import code_digest; code_digest('question_answering')": HEAVY,
}
"""Statements of one process, in their order, and what is not loaded after each."""


def loaded(*steps: str) -> list[set[str]]:
    """The modules and packages of one process after each of some statements."""
    code = "".join(f"{step}\nprint('modules', *__import__('sys').modules)\n" for step in steps)
    done = finished([sys.executable, "-c", code], cwd=REPOSITORY)
    assert done.returncode == 0, done.stderr
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("modules ")]
    return [{*names, *(name.partition(".")[0] for name in names)} for names in lines]


@pytest.mark.slow
def test_help_lists_and_the_site_import_no_library_of_models_and_no_statistics() -> None:
    (names,) = loaded(LOOK)
    assert {"app", "evaluator", "gradio", "benchmarks.evalmuse.measures"} <= names
    assert not (HEAVY | LATER) & names


def test_the_package_loads_none_of_itself_and_the_command_lines_no_models() -> None:
    after = loaded(*STEPS)
    assert {"evaluator.__main__", "evaluator.scorers.family_code"} <= after[-1]
    assert [heavy & names for heavy, names in zip(STEPS.values(), after, strict=True)] == [
        set() for _ in STEPS
    ]
