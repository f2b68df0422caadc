"""The label file of NTIRE 2025 track 1, which an operator supplies."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import benchmarks.evalmuse
from benchmarks.evalmuse.protocol import EvalMuseNtire
from benchmarks.scores import parse_scores
from tests.benchmarks.evalmuse.evalmuse_tree import (
    NAMES,
    NTIRE_LIST,
    item,
    labelled,
    write_images,
    write_json,
)
from tests.kit.checks import row_of
from tests.kit.refusals import refused


def test_the_example_of_the_format_page_is_accepted(tmp_path: Path) -> None:
    page = Path(benchmarks.evalmuse.__file__).with_name("FORMAT.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    answers = EvalMuseNtire().answers(write_json(tmp_path, NTIRE_LIST, json.loads(example)))
    assert answers.pair_ids == ("Kolors/02011.png", "SDXL-Turbo/00805.png")
    assert answers.images["label"].tolist() == [4.0, 3.333333]
    assert answers.elements["label"].tolist() == [0.666667, 0.666667, 1.0]
    assert answers.elements["skill"].tolist() == ["color", "counting", "object"]
    assert set(answers.sources) == {"evalmuse/eval.json"}


def test_images_of_one_prompt_or_with_the_same_elements_are_clustered(tmp_path: Path) -> None:
    items = [
        item("a.png", "b (food)", "a (color)"), item("b.png", "a (color)"),
        item("c.png", "a (color)", "b (food)"), item("d.png"), item("e.png"),
        item("f.png", prompt="a cup"), item("g.png", "a (color)", prompt="A cup "),
        item("h.png", "a (color)", prompt="x"),
    ]  # fmt: skip
    answers = EvalMuseNtire().answers(write_json(tmp_path, NTIRE_LIST, items))
    same = answers.images.groupby("prompt_id")["pair_id"].agg(lambda of: "".join(n[0] for n in of))
    assert sorted(same) == ["ac", "b", "d", "e", "fg", "h"]
    assert len(answers.clusters) == 6


def test_a_scores_file_gets_the_final_score_as_the_headline(tmp_path: Path) -> None:
    ntire = EvalMuseNtire()
    answers = ntire.answers(labelled(tmp_path))
    lines = ["pair_id,score,element_id,element_score"]
    lines += [f"{p},{n % 5 + n % 3 / 10},," for n, p in enumerate(answers.pair_ids)]
    lines += [f"{e.pair_id},,{e.element_id},0.9" for e in answers.elements.itertuples()]
    scores = parse_scores("\n".join(lines).encode(), "s.csv", ntire, answers, metric="m")
    row = row_of(ntire.evaluate(scores, answers, 50), measure="ntire_track1", variant="code")
    assert ntire.card.headline.matches(row)
    assert row.value == pytest.approx(0.25 * 2 + 0.5, abs=0.1)
    assert (row.benchmark, row.n_items, row.n_clusters) == ("evalmuse_ntire", 20, 10)
    assert row.ci_low <= row.value


def test_code_cannot_be_run_where_no_prompt_is_given(tmp_path: Path) -> None:
    write_images(labelled(tmp_path), "ntire_images", NAMES)
    assert not EvalMuseNtire().has_questions(tmp_path)
    with refused("data_malformed", "20 of 20 images"):
        EvalMuseNtire().questions(tmp_path)
