"""Drift: slopes over the dates of generators, over benchmarks, corrected, and what is left out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.schema import BY_GENERATOR, Kind, MeasureInfo, Selector
from benchmarks.statistics.meta_regression import Slope
from benchmarks.statistics.multiplicity import holm
from leaderboard.publication.reader import View, headline_cells
from leaderboard.views.drift import (
    NO_GENERATORS,
    NO_SCALE,
    MetricDrift,
    all_drifts,
    drift_of,
    drift_sentence,
    drift_table,
)
from leaderboard.views.metric import MetricOnBoards, on_boards
from leaderboard.web.drift import drift_html
from tests.kit.boards import (
    card_of,
    measured,
    publish,
    run_of,
    source_over,
    submission,
    view_over,
)
from tests.kit.html import harmless
from tests.kit.store import memory_store
from tests.leaderboard.api.asking import asking_of
from tests.leaderboard.views.drift_fixture import IDS, MANY, SLOPES, cards, filled, view
from tests.leaderboard.web.skills_fixture import skills_view_of

WHOLE = view()


def drift(name: str, on: View = WHOLE) -> MetricDrift:
    return drift_of(on, on.entries[IDS[name]])


def slope_of(found: MetricDrift, board: str = "") -> Slope:
    """The slope on a board, or the combined one."""
    of_boards = {one.card.name: one.slope for one in found.boards} | {"": found.combined}
    slope = of_boards[board]
    assert slope is not None
    return slope


@pytest.mark.parametrize(
    ("name", "verdict"), [("Falls", "decays"), ("Level", "undecided"), ("Rises", "improves")]
)
def test_planted_slopes_are_found(name: str, verdict: str) -> None:
    found = drift(name)
    assert found.verdict == verdict
    assert slope_of(found).low <= SLOPES[name] / 0.8 <= slope_of(found).high
    assert slope_of(found, "many").low <= SLOPES[name] <= slope_of(found, "many").high


def test_p_values_are_corrected_over_the_metrics_that_have_a_slope() -> None:
    every = {who.metric: one for who, one in all_drifts(WHOLE).items()}
    plain = [slope_of(every[name]).p for name in SLOPES]
    assert [every[name].p_corrected for name in SLOPES] == pytest.approx(holm(plain).tolist())
    assert {one.n_metrics for one in every.values()} == {3}


def test_a_generator_on_whose_images_a_metric_is_always_right_counts() -> None:
    info = MeasureInfo(title="Accuracy", meaning="Share right.", low=0.0, high=1.0, chance=0.5)
    whole = Selector(measure="accuracy", variant="assay")
    card = card_of("shares", "Shares", {"accuracy": info}, whole)
    own, rng = submission(0, "Right", ("shares",)), np.random.default_rng(1)
    values = [measured(own, "shares", whole, 0.9, rng)]
    for name, value in zip(MANY[:4], (0.8, 0.9, 1.0, 1.0), strict=True):
        of_one = Selector(measure=BY_GENERATOR, variant="assay", facet=name)
        values.append(measured(own, "shares", of_one, value, rng, spread=0.05 * (value < 1.0)))
    kept = [run_of(own, "shares", values)]
    on = view_over(publish(memory_store(), kept, {"shares": card}), {"shares": card}, kept)
    (board,) = drift_of(on, next(iter(on.entries.values()))).boards
    assert (len(board.dated), board.n_undefined, board.why) == (4, 0, "")
    assert min(one.error for one in board.points) > 0.02
    assert slope_of(drift_of(on, next(iter(on.entries.values())))).value > 0


def test_no_p_value_reads_as_0() -> None:
    certain = replace(slope_of(drift("Falls")), p=1e-9)
    found = replace(drift("Falls"), combined=certain, p_corrected=1e-9)
    assert "p < 0.00001" in drift_sentence(found, "Falls")


def test_a_generator_counts_once_in_the_combined_slope() -> None:
    found = drift("Falls")
    many = next(one for one in found.boards if one.card.name == "many")
    # DALL-E 3 is on both, and nothing is new on the third benchmark.
    assert found.of == ("many", "others")
    combined = slope_of(found)
    assert (combined.n, combined.df) == (len(many.dated) + 4, len(many.dated) + 1)


def test_what_has_no_date_or_no_value_is_counted_and_left_out() -> None:
    many = next(one for one in drift("Level").boards if one.card.name == "many")
    assert (many.n_undated, many.n_undefined) == (2, 1)
    assert len(many.dated) == len(MANY) - 1
    assert [one.generator is None for one in many.points[-2:]] == [True, True]


@pytest.mark.parametrize(
    ("boards", "scale", "why"),
    [
        pytest.param(("few",), True, "a slope needs", id="too few generators"),
        pytest.param(("many",), False, NO_SCALE, id="no ceiling"),
    ],
)
def test_without_a_slope_there_is_a_reason(boards: tuple[str, ...], scale: bool, why: str) -> None:
    found = drift("Falls", view(boards, scale=scale))
    assert found.combined is None
    assert why in found.why
    assert found.verdict == "undecided"
    assert math.isnan(found.p_corrected)
    assert why in drift_sentence(found, "Falls")


def test_results_without_values_by_generator_say_so() -> None:
    old = skills_view_of()
    found = drift_of(old, next(iter(old.entries.values())))
    assert (found.boards, found.why) == ((), NO_GENERATORS)
    assert drift_table(found, {}).rows == []
    assert "as-muted" in drift_html(old, next(iter(old.entries.values())))


def test_simulated_boards_are_combined_only_where_there_are_no_real_ones() -> None:
    assert drift("Falls", view(("demo", "many"))).of == ("many",)
    assert drift("Falls", view(("demo",))).of == ("demo",)


def newest(of: MetricDrift, *kinds: Kind, simulated: bool = False) -> str | None:
    found = of.newest(kinds, simulated=simulated)
    return found.name if found else None


def test_the_newest_generator_is_of_real_or_of_simulated_benchmarks() -> None:
    found = drift("Level")
    assert newest(found, "alignment") == "NOVA"
    assert newest(found, "alignment", simulated=True) == "demo-delta"
    assert newest(drift("Level", view(("demo",))), "alignment") is None


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        pytest.param({}, "NOVA", id="as they are"),
        pytest.param({"value": None}, "OmniGen", id="no value"),
        pytest.param({"n_clusters": 1}, "OmniGen", id="one prompt"),
    ],
)
def test_a_metric_is_tested_on_a_generator_by_a_value_with_enough_behind_it(
    changed: dict[str, Any], found: str
) -> None:
    of = drift("Level")
    boards = tuple(
        replace(
            board,
            points=tuple(
                replace(
                    one, cell=one.cell.model_copy(update=changed if one.title == "NOVA" else {})
                )
                for one in board.points
            ),
        )
        for board in of.boards
    )
    assert newest(replace(of, boards=boards), "alignment") == found


def test_benchmarks_of_another_kind_do_not_test_it() -> None:
    assert newest(drift("Level"), "preference", "quality") is None


def test_a_board_offers_no_generator_as_a_measure() -> None:
    board = WHOLE.boards["many"]
    assert all(one.measure != BY_GENERATOR for one in board.selectors(None))
    assert headline_cells(board)[0].measure == "srcc"
    shown = MetricOnBoards(WHOLE.entries[IDS["Level"]], None)
    cells = [cell for one in on_boards(shown, WHOLE) for cell in one.cells]
    assert {cell.measure for cell in cells} == {"srcc"}


def test_the_page_draws_every_benchmark_and_escapes_what_they_call_models() -> None:
    html = drift_html(WHOLE, WHOLE.entries[IDS["Falls"]])
    assert html.count("<svg") == 4
    assert html.count("as-around-a") == 3  # a band where there is a slope
    harmless(html)


def test_the_api_has_every_generator_and_slope() -> None:
    api = asking_of(source_over(filled(), cards()))
    found = api.table(f"/v1/drift/{IDS['Falls']}")
    kinds = [row["row"] for row in found["rows"]]
    assert (kinds.count("combined"), kinds.count("slope"), kinds.count("generator")) == (1, 4, 20)
    assert found["rows"][0]["verdict"] == "decays"
    nova = next(row for row in found["rows"] if row["generator"] == "NOVA")
    assert (nova["released"], nova["verified"]) == ("2024-12-01", True)
    assert "Falls" in found["about"]["sentence"]
    assert api.client.get("/v1/drift/none").status_code == 404
