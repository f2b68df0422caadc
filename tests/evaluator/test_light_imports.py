"""What imports torch or Ray does so when it is used: the command line and the site start without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
# What takes a second and more to import, and is used by a command or a page or two.
LATER = ("scipy",)
HEAVY = (
    "torch", "torchvision", "transformers", "diffusers", "open_clip", "ray", "tokenizers",
    "datasets", "accelerate", "timm", "spacy",
)  # fmt: skip
LOOK = """
import json, sys
import typer.testing
import app
from evaluator.__main__ import command_line
for words in (["--help"], ["scorers", "list", "--json"], ["scorers", "run", "--help"],
              ["generate", "--help"], ["questions", "write", "--help"], ["worker", "--help"],
              ["init", "--help"], ["check", "--help"]):
    done = typer.testing.CliRunner().invoke(command_line(), words)
    assert done.exit_code == 0, done.output
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.slow
def test_help_lists_and_the_site_import_no_library_of_models() -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    loaded = json.loads(said.stdout.splitlines()[-1])
    assert {"app", "evaluator", "gradio"} <= set(loaded)
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize("module", ["evaluator", "benchmarks"])
def test_the_command_lines_start_without_statistics(module: str) -> None:
    look = f"import json, sys\nimport {module}.__main__\nprint(json.dumps(sorted(sys.modules)))"
    said = subprocess.run(
        [sys.executable, "-c", look], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    loaded = json.loads(said.stdout)
    assert f"{module}.__main__" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in (*HEAVY, *LATER)}
