"""What imports torch or Ray does so when it is used: the command line and the site start without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "torchvision", "transformers", "diffusers", "open_clip", "ray", "tokenizers")
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


def test_help_lists_and_the_site_import_no_library_of_models() -> None:
    said = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    loaded = json.loads(said.stdout.splitlines()[-1])
    assert {"app", "evaluator", "gradio"} <= set(loaded)
    assert not set(HEAVY) & set(loaded)
