"""`scorers cost`: what it prints, and that the document holds what it prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluator.__main__ import command_line
from evaluator.scorers.registry import load_rows
from tests.conftest import REPOSITORY
from tests.evaluator.scorers.tiny_dual import save_clip

pytestmark = pytest.mark.slow

DOCUMENT = REPOSITORY / "docs" / "gpu-and-cluster.md"


def printed(*words: object, code: int = 0) -> str:
    found = CliRunner().invoke(
        command_line(), ["scorers", "cost", *map(str, words)], env={"COLUMNS": "200"}
    )
    assert found.exit_code == code, found.output
    return str(found.output)


def test_the_document_holds_the_table_that_the_command_prints(tmp_path: Path) -> None:
    text = DOCUMENT.read_text()
    command = "python -m evaluator scorers cost --gpu a100 --markdown"
    assert command in text
    table = printed("--gpu", "a100", "--markdown", "--rates", tmp_path / "none.json").strip()
    shown = re.search(r"<!-- costs -->\n(.*?)\n<!-- end of costs -->", text, re.DOTALL)
    assert shown is not None
    assert shown[1].strip() == table, f"write what `{command}` prints into {DOCUMENT.name}"


def test_each_row_is_there_once_and_each_cell_says_what_it_rests_on(tmp_path: Path) -> None:
    lines = printed("--markdown", "--rates", tmp_path / "none.json").strip().splitlines()
    names = [name.strip() for line in lines[2:] for name in line.split("|")[1].split(",")]
    assert sorted(names) == sorted(load_rows())
    cells = [cell.strip() for line in lines[2:] for cell in line.split("|")[2:-1]]
    assert all(re.fullmatch(r"–|(<0\.01|[\d.]+)–(<0\.01|[\d.]+) [mep]", cell) for cell in cells)


def test_programs_get_hours_prices_and_reasons(tmp_path: Path) -> None:
    words = ("--metric", "pickscore", "--benchmark", "ts2", "--gpu-rate", "2", "--json")
    found = json.loads(printed(*words, "--rates", tmp_path / "none.json"))
    (one,) = found["costs"]
    assert (one["metric"], one["benchmark"]) == ("pickscore", "ts2")
    assert [each["basis"] for each in one["estimates"]] == ["estimated", "published"]
    for each in one["estimates"]:
        assert each["price"] == [2 * hours for hours in each["hours"]]
        assert each["why"]


def test_a_metric_is_measured_and_kept(tmp_path: Path) -> None:
    folder, rates = save_clip(tmp_path / "clip"), tmp_path / "rates.json"
    words = ("--measure", "clipscore-hessel", "--device", "cpu", "--offline")
    given = ("--checkpoint", f"model={folder}")
    said = printed(*words, *given, "--images", 2, "--rates", rates, "--benchmark", "ts2")
    assert "Measured: measured on cpu" in said
    again = printed("--metric", "clipscore-hessel", "--rates", rates, "--benchmark", "ts2")
    assert " m " in again


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--gpu", "abacus"), "unknown_gpu"),
        (("--metric", "nothing"), "unknown_scorer"),
        (("--benchmark", "croc_syn"), "size_unknown"),
    ],
)
def test_what_cannot_be_reckoned_is_refused(words: tuple[str, ...], says: str) -> None:
    found = CliRunner().invoke(command_line(), ["scorers", "cost", *words])
    assert found.exit_code != 0
    assert getattr(found.exception, "code", "") == says
