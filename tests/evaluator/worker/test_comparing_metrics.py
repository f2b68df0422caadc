"""A metric that compares two images, from its submission to the boards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.errors import PlatformError
from benchmarks.parquet import read_margins
from benchmarks.rows import Row
from benchmarks.schema import BETWEEN_TEXTS
from evaluator.commands.report import recomputed
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.scoring.comparing import Comparisons
from evaluator.trust import order_figures
from evaluator.worker.handoff import cached_scores
from leaderboard.records import OrderFigures
from tests.kit.refusals import refused
from tests.kit.toy import Toy
from tests.kit.worker import MODULE, FakeBackend, Margin, Rig

COMPARING = {**MODULE, "assay.toml": b'name = "grey"\nmethod = "compare"'}


class Compared(Toy):
    """The toy, of which all images have one prompt and its measure is of that prompt."""

    @property
    def compares_images(self) -> bool:
        return True

    def within_text(self, row: Row) -> bool:
        return True


class Pooled(Compared):
    """The same, with a measure between prompts."""

    def within_text(self, row: Row) -> bool:
        return False


def rig_of(folder: Path, margin: Margin = FakeBackend.margin, benchmark: Toy | None = None) -> Rig:
    """One whose scorers compare, and do not score."""
    boxes = FakeBackend(margin=margin, capabilities=Capability.COMPARE)
    return Rig(folder, toy=benchmark or Compared(), backend=boxes)


def figures(rig: Rig, name: str) -> Any:
    found = rig.result(name).findings
    assert found is not None
    return found.orders


@pytest.mark.usefixtures("many")
def test_it_ranks_by_strengths_and_what_it_said_of_each_comparison_is_published(
    tmp_path: Path,
) -> None:
    rig = rig_of(tmp_path)
    name = rig.ran(COMPARING)
    (cell,) = rig.cells()
    assert not cell.distrust
    assert cell.value == pytest.approx(0.0, abs=1e-9)
    margins = read_margins(rig.store.public.read(f"results/{name}/toy.margins.parquet"))["grey"]
    assert len(margins) == 2 * 12 * 4
    own = margins[["pair_id", "other_id"]].map(lambda pair: int(pair.split()[1]))
    assert (margins["margin"] == own["pair_id"] - own["other_id"]).all()
    orders = figures(rig, name)
    assert (orders.comparisons, orders.alike, orders.first, orders.one_order) == (48, 1.0, 0.5, 0)
    found = rig.result(name)
    assert found.trust is not None
    assert {check.name: check.passed for check in found.trust.checks}["places"] is True


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("margin", "alike", "first"),
    [
        (lambda _a, _b: 1.0, 0.0, 1.0),
        (lambda a, b: np.sign(np.random.default_rng([a, b]).normal()), None, None),
    ],
    ids=["the first one always", "at random"],
)
def test_one_that_is_decided_by_the_order_gets_no_rank(
    tmp_path: Path, margin: Margin, alike: float | None, first: float | None
) -> None:
    rig = rig_of(tmp_path, margin)
    name = rig.ran(COMPARING)
    (cell,) = rig.cells()
    assert "which image comes first" in cell.distrust
    orders = figures(rig, name)
    assert orders.alike_low is not None and orders.alike_low <= 0.5
    if alike is not None:
        assert (orders.alike, orders.first) == (alike, first)


def test_a_value_that_compares_prompts_is_withheld_with_the_reason(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, benchmark=Pooled())
    name = rig.ran(COMPARING)
    (row,) = rig.result(name).as_rows()
    assert np.isnan(row.value) and np.isnan(row.ci_low)
    assert row.note == BETWEEN_TEXTS


def test_a_benchmark_that_compares_no_images_takes_none(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, benchmark=Toy())
    files = {**COMPARING, "assay.toml": COMPARING["assay.toml"] + b'\nbenchmarks = ["toy"]'}
    with refused("nothing_to_compare"):
        rig.sent(files)


def test_a_module_asked_by_the_other_method_is_told_which_it_has(tmp_path: Path) -> None:
    rig = Rig(tmp_path, toy=Compared())
    assert rig.ended(rig.ran(COMPARING))[1:] == ("method_missing", "submitter")


@pytest.mark.parametrize("key", ['direction = "lower_is_better"', "range = [0, 1]"])
def test_a_margin_has_neither_direction_nor_range(tmp_path: Path, key: str) -> None:
    files = {**COMPARING, "assay.toml": COMPARING["assay.toml"] + f"\n{key}".encode()}
    with refused("bad_manifest"):
        rig_of(tmp_path).sent(files)


def test_opaque_ids_and_two_machines_change_nothing(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    alone, rig = rig_of(tmp_path / "one"), rig_of(tmp_path / "two")
    expected = alone.results(alone.ran(COMPARING))
    name = rig.ran_apart(COMPARING)
    assert {key: one for key, one in rig.results(name).items() if "margins" not in key} == {
        key: one for key, one in expected.items() if "margins" not in key
    }
    found = read_margins(rig.store.public.read(f"results/{name}/toy.margins.parquet"))["grey"]
    assert set(found["pair_id"]) == {"a", "b", "c"}


def test_a_new_protocol_is_measured_from_the_margins_that_are_kept(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    submission = rig.status(rig.ran(COMPARING)).submission
    assert submission.method == "compare"
    kept = cached_scores(rig.store, submission, rig.toy, None).table
    assert list(kept.margins["grey"].columns) == ["pair_id", "other_id", "margin"]
    assert len(kept.margins["grey"]) == 6


@pytest.mark.usefixtures("many")
def test_where_answers_are_withheld_no_margin_and_no_exact_count_is_published(
    tmp_path: Path,
) -> None:
    class Withheld(Compared):
        card = Toy.card.model_copy(update={"answers_public": False})

    rig = rig_of(tmp_path, lambda a, b: 0.0 if (a, b) in ((0, 1), (1, 0)) else float(a - b),
                 benchmark=Withheld())  # fmt: skip
    name = rig.ran(COMPARING)
    assert not [path for path in rig.store.public.list("results/") if "margins" in path]
    assert rig.store.private.has(f"results/{name}/toy.margins.parquet")
    orders = figures(rig, name)
    assert (orders.alike, orders.alike_low, orders.first, orders.one_order) == (1.0, None, None, 0)
    assert orders.comparisons in (47, 48)
    trust = rig.result(name).trust
    assert trust is not None
    (check,) = (one for one in trust.checks if one.name == "places")
    assert (check.passed, check.n_pairs) == (True, 0)


@pytest.mark.parametrize("benchmark", [Compared(), Pooled()], ids=["within", "between prompts"])
def test_a_published_result_comes_out_again(tmp_path: Path, benchmark: Toy) -> None:
    rig = rig_of(tmp_path, benchmark=benchmark)
    name = rig.ran(COMPARING)
    found = recomputed(rig.store, rig.status(name), rig.result(name), {"toy": benchmark}, None)
    assert (found.different, found.why_not) == ((), "")


def test_damaged_margins_are_the_stores_fault(tmp_path: Path) -> None:
    rig = rig_of(tmp_path)
    name = rig.ran(COMPARING)
    changes = {f"results/{name}/toy.margins.parquet": b"PAR1"}
    rig.store.public.commit(changes, parent=rig.store.public.head(), message="meddle")
    with refused("scores_damaged", kind=PlatformError):
        cached_scores(rig.store, rig.status(name).submission, rig.toy, None)


def test_questions_exported_before_they_had_lists_are_not_guessed_at(tmp_path: Path) -> None:
    with refused("questions_outdated", kind=PlatformError):
        Comparisons.of(replace(Toy().questions(None), lists=None), b"seed")


def test_ties_and_single_answers_are_no_agreement() -> None:
    def figures(*margins: tuple[float, float]) -> OrderFigures:
        lines = [
            one
            for n, (there, back) in enumerate(margins)
            for one in ((f"a{n}", f"b{n}", there), (f"b{n}", f"a{n}", back))
        ]
        return order_figures(pd.DataFrame(lines, columns=["pair_id", "other_id", "margin"]))

    by_position = figures(*[(0.0, 0.0)] * 80, *[(1.0, 1.0)] * 20)
    assert (by_position.comparisons, by_position.alike) == (20, 0.0)
    one_order = figures(*[(1.0, -1.0)] * 10, *[(1.0, np.nan)] * 30)
    assert (one_order.comparisons, one_order.alike, one_order.one_order) == (40, 0.25, 30)
    ties = figures((0.0, 0.0), (np.nan, np.nan))
    assert (ties.comparisons, ties.alike, ties.first) == (0, None, 0.5)


def test_figures_of_the_order_count_both_answers_and_one() -> None:
    lines = [("a", "b", 1.0), ("b", "a", -2.0), ("a", "c", 1.0), ("c", "a", 3.0),
             ("b", "c", np.nan), ("c", "b", 1.0), ("a", "d", 0.0), ("d", "a", 0.0)]  # fmt: skip
    found = order_figures(pd.DataFrame(lines, columns=["pair_id", "other_id", "margin"]))
    assert (found.comparisons, found.one_order) == (3, 1)
    assert found.alike == pytest.approx(1 / 3)
    assert found.first == pytest.approx((1 + 0 + 1 + 1 + 1 + 0.5 + 0.5) / 7)
    assert found.alike is not None and found.alike_low is not None
    low = found.alike_low
    assert (found.alike - low) / np.sqrt(low * (1 - low) / 3) == pytest.approx(
        NormalDist().inv_cdf(0.95)
    )
