"""Records of metrics at ordering models, where people were asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.schema import ScoreTable, Selector
from benchmarks.stored_scores import write_stored
from benchmarks.tifa160.protocol import CARD, Tifa160
from leaderboard.models import orderings
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.orderings import ON_BOARD, model_orderings
from leaderboard.models.reading import ModelReader
from leaderboard.store.interface import transact
from tests.leaderboard.models.made_up_models import World, cell, metric_card, prompt_set, prompts_of

VQA, CLIP = "vqa/vqa", "clip/clip"
QUERY = BoardQuery("drawn")


def on_tifa(entry_id: str) -> object:
    one = CARD.headline
    return cell(entry_id, None, 1).model_copy(
        update={
            "measure": one.measure, "variant": one.variant, "split": one.split, "facet": one.facet,
        }
    )  # fmt: skip


def world(**boards: object) -> World:
    made = World(prompt_set(prompts_of(20)), boards)  # type: ignore[arg-type]
    scores = np.random.default_rng(1).uniform(size=(1, 20))
    made.add("a", {VQA: scores, CLIP: scores}, runs={CLIP: {"lower_is_better": True}})
    return made


def test_counts_of_a_board_that_counts_itself_are_taken_from_it() -> None:
    cells = [cell(VQA, None, 1)] + [
        cell(
            VQA,
            None,
            None,
            measure=ON_BOARD,
            variant=variant,
            split=split,
            value=value,
            n_items=6,
            note="of 6 pairs of models; no ratings for SxS; no paired test: in steps",
        )
        for variant, split, value in (
            ("direction_only", "rel", 6.0),
            ("paper", "r_rel", 4.0),
            ("paper", "rel", 5.0),
        )
    ]
    card = metric_card(headline=Selector(measure="srcc"))
    made = world(rated=(card, cells))
    (one,) = model_orderings(made.reader, made.view, QUERY).found
    assert (one.entry_id, one.right, one.of, one.reversed) == (VQA, 5, 6, None)
    assert one.note == "no ratings for SxS"


def test_what_is_not_here_the_page_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(tifa160=(CARD, [on_tifa(VQA)]))
    found = model_orderings(made.reader, made.view, QUERY)
    assert not found.found and "No published scores" in found.missing["tifa160"]

    def without(_: object) -> None:
        raise SubmitterError("data_missing", "The released table cannot be read.", "")

    monkeypatch.setattr(orderings, "readers", lambda: {"tifa160": without})
    made = world(tifa160=(CARD, [on_tifa(VQA)]))
    found = model_orderings(made.reader, made.view, QUERY)
    assert not found.found and "not on this machine" in found.missing["tifa160"]


def test_published_scores_are_held_against_the_ratings(assay_data: Path) -> None:
    made = world(tifa160=(CARD, [on_tifa(VQA), on_tifa(CLIP)]))
    reader = ModelReader(made.store, made.reader.prompt_sets, assay_data)
    images = Tifa160().answers(assay_data).images
    gold = images["human_avg"].to_numpy()
    for entry, scores in (("vqa", gold), ("clip", -gold)):
        table = pd.DataFrame({entry: scores}, index=pd.Index(images["pair_id"]))
        content = write_stored(
            ScoreTable(table), submission_id=entry, benchmark="tifa160", revision="1"
        )
        path = f"results/{entry}/tifa160.scores.parquet"
        transact(made.store.public, lambda p=path, c=content: {p: c}, "scores")  # type: ignore[misc]
    by_metric = {one.entry_id: one for one in model_orderings(reader, made.view, QUERY).found}
    assert {(one.right, one.of, one.reversed) for one in by_metric.values()} == {(10, 10, 0)}
    assert sum(pair.people != 0 for pair in by_metric[VQA].pairs) == 6


@pytest.mark.parametrize("judge", [VQA, CLIP])
def test_scores_that_are_not_published_are_named(assay_data: Path, judge: str) -> None:
    made = world(tifa160=(CARD, [on_tifa(VQA), on_tifa(CLIP)]))
    reader = ModelReader(made.store, made.reader.prompt_sets, assay_data)
    found = model_orderings(reader, made.view, BoardQuery("drawn", judge=judge))
    assert judge.partition("/")[0] in found.missing["tifa160"] and not found.found
