"""Records of metrics at ordering models, where people were asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import SubmitterError
from benchmarks.schema import ScoreTable
from benchmarks.stored_scores import write_stored
from benchmarks.tifa160.protocol import CARD, Tifa160
from leaderboard.models import orderings
from leaderboard.models.orderings import ON_BOARD, ModelOrderings, model_orderings
from leaderboard.models.reading import ModelReader
from leaderboard.ranking.cells import Cell
from leaderboard.store.interface import transact
from tests.leaderboard.models.made_up_models import (
    CLIP,
    QUERY,
    VQA,
    World,
    cell,
    metric_card,
    prompt_set,
    prompts_of,
)


def on_tifa(entry_id: str) -> Cell:
    one = CARD.headline
    place = {"measure": one.measure, "variant": one.variant, "split": one.split, "facet": one.facet}
    return cell(entry_id, None, 1, **place)


def made_of(**boards: object) -> World:
    made = World(prompt_set(prompts_of(20)), boards)  # type: ignore[arg-type]
    scores = np.random.default_rng(1).uniform(size=(1, 20))
    made.add("a", {VQA: scores, CLIP: scores}, runs={CLIP: {"lower_is_better": True}})
    return made


def found_in(made: World, data: Path | None = None, **asked: str) -> ModelOrderings:
    reader = ModelReader(made.store, made.reader.prompt_sets, data)
    return model_orderings(reader, made.view, replace(QUERY, **asked))  # type: ignore[arg-type]


def test_counts_of_a_board_that_counts_itself_are_taken_from_it() -> None:
    note = "of 6 pairs of models; no SxS; no paired test: in steps"
    counted = [
        cell(VQA, measure=ON_BOARD, variant=variant, split=split, value=value, n_items=6, note=note)
        for variant, split, value in (
            ("direction_only", "rel", 6.0), ("paper", "r_rel", 4.0), ("paper", "rel", 5.0),
        )
    ]  # fmt: skip
    (one,) = found_in(made_of(rated=(metric_card(), [cell(VQA, None, 1), *counted]))).found
    found = (one.entry_id, one.right, one.of, one.reversed, one.note)
    assert found == (VQA, 5, 6, None, "no SxS")


def test_what_is_not_here_the_page_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = found_in(made_of(tifa160=(CARD, [on_tifa(VQA)])))
    assert not found.found and "scores" in found.missing["tifa160"]

    def without(_: object) -> None:
        raise SubmitterError("data_missing", "No table.", "")

    monkeypatch.setattr(orderings, "readers", lambda: {"tifa160": without})
    found = found_in(made_of(tifa160=(CARD, [on_tifa(VQA)])))
    assert not found.found and "machine" in found.missing["tifa160"]


def test_published_scores_are_held_against_the_ratings(assay_data: Path) -> None:
    made = made_of(tifa160=(CARD, [on_tifa(VQA), on_tifa(CLIP)]))
    for judge in ("vqa", "clip"):  # scores that are not published are named
        unread = found_in(made, assay_data, judge=f"{judge}/{judge}")
        assert judge in unread.missing["tifa160"] and not unread.found
    images = Tifa160().answers(assay_data).images
    gold = images["human_avg"].to_numpy()
    files = {}
    for entry, scores in (("vqa", gold), ("clip", -gold)):
        table = ScoreTable(pd.DataFrame({entry: scores}, index=pd.Index(images["pair_id"])))
        content = write_stored(table, submission_id=entry, benchmark="tifa160", revision="1")
        files[f"results/{entry}/tifa160.scores.parquet"] = content
    transact(made.store.public, lambda: dict(files), "scores")
    by_metric = {one.entry_id: one for one in found_in(made, assay_data).found}
    assert {(one.right, one.of, one.reversed) for one in by_metric.values()} == {(10, 10, 0)}
    assert sum(pair.people != 0 for pair in by_metric[VQA].pairs) == 6
