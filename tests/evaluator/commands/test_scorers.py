"""`scorers`: what there is, what each computes and costs, one tried on images, one checked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evaluator.scorers.registry import load_rows
from leaderboard.trust import TrustReport
from tests.conftest import REPOSITORY
from tests.evaluator.commands.submitting import record, refused, said
from tests.evaluator.scorers.questions.fakes import FakeWriter

NAME = "clipscore-hessel"
REPO = "openai/clip-vit-base-patch32"


pytestmark = pytest.mark.usefixtures("empty_cache")


def test_every_metric_is_listed_and_described_whole() -> None:
    listed, rows, printed = record("scorers", "list"), load_rows(), said("scorers", "list")
    assert [one["name"] for one in listed] == list(rows)
    assert all(name in printed for name in rows)
    assert [one["needs"] for one in listed if one["name"] == "hpsv2"] == [["--allow-pickle"]]
    assert {one["name"] for one in listed if not one["reads_prompt"]} >= {
        "deqa-score",
        "viescore-pq",
    }
    assert "image only" in said("scorers", "describe", "deqa-score")
    family = record("scorers", "list", "--family", "blip2_itc")
    assert {one["family"] for one in family} == {"blip2_itc"}
    assert "dual_encoder" in refused("unknown_family", "scorers", "list", "--family", "dual")
    words, row = ("scorers", "describe", NAME), rows[NAME]
    text, content = said(*words), record(*words)
    parts = (
        row.formula, row.source, row.notes[0], REPO, "licence: not verified", "0..2.5", "float32",
        "not in the cache", "truncation='end_kept'", "151 M", "image and prompt",
    )  # fmt: skip
    assert [part for part in parts if part not in text] == []
    assert (content["formula"], content["options"]["truncation"]) == (row.formula, "end_kept")
    checkpoint = content["checkpoints"]["model"]
    assert (checkpoint["place"], checkpoint["revision"]) == (None, None)
    assert NAME in refused("unknown_scorer", "scorers", "describe", "clipscore-hesel")


def test_describing_names_the_commit_that_is_in_the_cache(tmp_path: Path) -> None:
    commit = "a" * 40
    snapshot = tmp_path / "hub" / f"models--{REPO.replace('/', '--')}" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(b"w")
    (tmp_path / "assay_checkpoints.json").write_text(json.dumps({REPO: commit}))
    assert commit in said("scorers", "describe", NAME)


@pytest.mark.slow
def test_the_trust_checks_of_a_metric_and_of_another_precision(clip: Path) -> None:
    words = ("scorers", "check", "clipscore-ts2", "--benchmark", "demo_croc", "--images", "4")
    given = ("--checkpoint", f"model={clip}")
    shown = said(*words, *given)
    assert "Passed" in shown and "float32" not in shown
    report = TrustReport.model_validate(record(*words, *given, "--dtype", "bfloat16"))
    assert report.precision is not None and report.precision.largest is not None
    assert 0.0 < report.precision.largest < 0.5  # of cosines times about 100
    dtypes = report.environment["dtype"], report.precision.reference["dtype"]
    assert (dtypes, report.limit) == (("bfloat16", "float32"), 0.05)


def reddest(images: tuple[Any, ...], _: str) -> str:
    """An honest judge of how red images are."""
    first, second = (float(np.asarray(image)[..., 0].mean()) for image in images)
    return f"Image {1 if first > second else 2} is better."


@pytest.mark.slow
def test_a_metric_that_writes_which_image_is_better_is_checked_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = "evaluator.scorers.families.written_comparison"
    monkeypatch.setattr(f"{family}.load_decoder", lambda *_: FakeWriter(reddest))
    (tmp_path / "model").mkdir()
    name, folder = "unifiedreward-pair", f"model={tmp_path / 'model'}"
    given = (name, "--benchmark", "demo_croc", "--checkpoint", folder, "--dtype", "float32")
    report = TrustReport.model_validate(record("scorers", "check", *given, "--images", "4"))
    assert {one.name: one.verdict for one in report.checks}["repeat"] == "same"
    assert report.prompt is not None and report.prompt.verdict == "blind"
    out = tmp_path / "scores.parquet"
    said("scorers", "run", *given, "--limit", "24", "--out", out)
    assert pd.read_parquet(out)[name].notna().any()


# Costs ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_document_holds_the_table_of_costs_with_what_each_rests_on(tmp_path: Path) -> None:
    text = (REPOSITORY / "docs" / "gpu-and-cluster.md").read_text()
    command = re.search(r"^python -m evaluator (scorers cost .*--markdown.*)$", text, re.MULTILINE)
    assert command is not None
    table = said(*command[1].split(), "--rates", tmp_path / "none.json").strip()
    shown = re.search(r"<!-- costs -->\n(.*?)\n<!-- end of costs -->", text, re.DOTALL)
    assert shown is not None and shown[1].strip() == table, f"write what `{command[1]}` prints"
    lines = [line.split("|") for line in table.splitlines()[2:]]
    assert sorted(n.strip() for line in lines for n in line[1].split(",")) == sorted(load_rows())
    cells = [cell.strip() for line in lines for cell in line[2:-1]]
    assert all(re.fullmatch(r"–|(<0\.01|[\d.]+)–(<0\.01|[\d.]+) [mep]", cell) for cell in cells)


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_no_name_and_no_figure_is_cut(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = ("scorers", "cost", "--metric", "pickscore", "--gpu", "l4")
    names = {one["benchmark"] for one in record(*words)["costs"]}
    shown = said(*words)
    assert "…" not in shown and all(name in shown for name in names)


@pytest.mark.slow
def test_programs_get_hours_prices_and_reasons(tmp_path: Path) -> None:
    words = ("scorers", "cost", "--metric", "pickscore", "--benchmark", "ts2", "--gpu-rate", "2")
    (one,) = record(*words, "--rates", tmp_path / "none.json")["costs"]
    assert (one["metric"], one["benchmark"]) == ("pickscore", "ts2")
    assert [each["basis"] for each in one["estimates"]] == ["estimated", "published"]
    for each in one["estimates"]:
        assert each["price"] == [2 * hours for hours in each["hours"]]
        assert each["why"]


@pytest.mark.slow
def test_a_metric_is_measured_and_kept(clip: Path, tmp_path: Path) -> None:
    kept = ("scorers", "cost", "--rates", tmp_path / "rates.json", "--benchmark", "ts2")
    words = ("--measure", NAME, "--device", "cpu", "--offline", "--images", 2)
    assert "measured on cpu" in said(*kept, *words, "--checkpoint", f"model={clip}")
    assert " m " in said(*kept, "--metric", NAME)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--gpu", "abacus"), "unknown_gpu"),
        (("--metric", "nothing"), "unknown_scorer"),
        (("--benchmark", "croc_syn"), "size_unknown"),
    ],
)
def test_what_cannot_be_reckoned_is_refused(words: tuple[str, ...], code: str) -> None:
    refused(code, "scorers", "cost", *words)
