"""What the submit page says of a module is what the command line takes and writes."""

from __future__ import annotations

import html
import re
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.registry import load_registry
from evaluator.__main__ import command_line
from evaluator.submission.validate import examine_source
from leaderboard.pages.submit.guide import ARCHIVE_GUIDE

BLOCKS = [
    html.unescape(block) for block in re.findall(r"<pre[^>]*>(.*?)</pre>", ARCHIVE_GUIDE, re.S)
]


def test_the_files_of_the_guide_are_a_module_without_a_problem(tmp_path: Path) -> None:
    manifest, scorer, _ = BLOCKS
    (tmp_path / "assay.toml").write_text(manifest)
    (tmp_path / "scorer.py").write_text(scorer)
    seen = examine_source(tmp_path, load_registry())
    assert seen.problems == ()
    assert (seen.name, seen.version) == ("my-metric", "1.0")


def test_the_first_command_of_the_guide_writes_what_the_second_takes(tmp_path: Path) -> None:
    begin, check, submit = (line.split() for line in BLOCKS[-1].splitlines())
    assert all(words[:3] == ["python", "-m", "evaluator"] for words in (begin, check, submit))
    *command, folder = begin[3:]
    assert check[3:] == ["check", folder]
    assert submit[3:] == ["submit", folder]
    done = CliRunner().invoke(command_line(), [*command, str(tmp_path / folder)])
    assert done.exit_code == 0, done.output
    assert examine_source(tmp_path / folder, load_registry()).problems == ()
    assert {"assay.toml", "scorer.py"} <= {path.name for path in (tmp_path / folder).iterdir()}


def test_a_new_plain_folder_says_what_to_read_and_what_to_type_next(tmp_path: Path) -> None:
    folder = tmp_path / "my-metric"
    said = CliRunner().invoke(command_line(), ["init", "plain", str(folder)]).output
    assert said.splitlines() == [
        f"{folder}: a new plain folder. README.md says what to change.",
        f"Try it: python -m evaluator check {folder}",
    ]
    assert (folder / "README.md").read_text().strip()
