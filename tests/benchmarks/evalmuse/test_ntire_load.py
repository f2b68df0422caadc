"""The label file of NTIRE 2025 track 1, which an operator supplies."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

import benchmarks.evalmuse
from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.evalmuse.protocol import EvalMuseNtire
from benchmarks.schema import BY_GENERATOR, ScoreTable
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


def scores_of(answers: EvalMuseAnswers) -> ScoreTable:
    lines = ["pair_id,score,element_id,element_score"]
    lines += [f"{p},{n % 5 + n % 3 / 10},," for n, p in enumerate(answers.pair_ids)]
    lines += [f"{e.pair_id},,{e.element_id},0.9" for e in answers.elements.itertuples()]
    content = "\n".join(lines).encode()
    return parse_scores(content, "s.csv", EvalMuseNtire(), answers, metric="m")


def test_a_scores_file_gets_the_final_score_as_the_headline(tmp_path: Path) -> None:
    ntire = EvalMuseNtire()
    answers = ntire.answers(labelled(tmp_path))
    measured = ntire.evaluate(scores_of(answers), answers, 50)
    row = row_of(measured, measure="ntire_track1", variant="code")
    assert ntire.card.headline.matches(row)
    assert row.value == pytest.approx(0.25 * 2 + 0.5, abs=0.1)
    assert (row.benchmark, row.n_items, row.n_clusters) == ("evalmuse_ntire", 20, 10)
    assert row.ci_low <= row.value


def test_the_final_score_of_a_model_is_that_of_its_images_alone(tmp_path: Path) -> None:
    ntire = EvalMuseNtire()
    both = ntire.answers(labelled(tmp_path))
    measured = ntire.evaluate(scores_of(both), both, 50)
    for model in ("Kolors", "SDXL-Turbo"):
        records = [one for one in json.loads((tmp_path / f"evalmuse/{NTIRE_LIST}").read_text())
                   if one["img_path"].startswith(model)]  # fmt: skip
        alone = ntire.answers(write_json(tmp_path / model, NTIRE_LIST, records))
        given = scores_of(both)
        of_model = replace(given, overall=given.overall.loc[list(alone.pair_ids)])
        expected = row_of(
            ntire.evaluate(of_model, alone, 50), measure="ntire_track1", variant="code"
        )
        row = row_of(measured, measure=BY_GENERATOR, variant="assay", facet=model)
        assert (row.value, row.n_items) == (expected.value, 10)
        assert row.ci_low <= row.value <= row.ci_high


@pytest.mark.parametrize("elements", [(), ("cup (object)",)], ids=["none", "without scores"])
def test_without_elements_there_is_no_final_score_and_the_row_says_so(
    elements: tuple[str, ...], tmp_path: Path
) -> None:
    ntire = EvalMuseNtire()
    items = [item(name, *elements, total_score=1 + n % 5) for n, name in enumerate(NAMES)]
    answers = ntire.answers(write_json(tmp_path, NTIRE_LIST, items))
    scores = replace(scores_of(answers), elements={})
    measured = ntire.evaluate(scores, answers, 50)
    for row in measured.rows:
        if row.measure in ("ntire_track1", BY_GENERATOR):
            assert math.isnan(row.value) and "element_accuracy" in row.note


def test_code_cannot_be_run_where_no_prompt_is_given(tmp_path: Path) -> None:
    write_images(labelled(tmp_path), "ntire_images", NAMES)
    assert not EvalMuseNtire().has_questions(tmp_path)
    with refused("data_malformed", "20 of 20 images"):
        EvalMuseNtire().questions(tmp_path)
