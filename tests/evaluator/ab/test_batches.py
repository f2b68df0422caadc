"""Confirmation batch by batch: it stops where it is decided, goes on where images come, and is honest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.statistics.better_or_tied import Outcome
from benchmarks.statistics.confidence_sequence import MIN_VALUES, confidence_sequence
from evaluator.ab.batches import BATCH, look_by_batches, prompts_to_draw, random_order
from evaluator.ab.comparison import Comparison, MetricScores
from evaluator.ab.images import DrawnImages
from evaluator.ab.journal import Hit, Inspection, halves, spent
from evaluator.ab.report import AbReport
from tests.evaluator.ab.simulated import SKILLS, candidate, comparing, drawn, scores
from tests.kit.refusals import refused

AT = datetime(2026, 1, 1, tzinfo=UTC)
WHOLE = candidate(drawn(200), 1)
SCREENING, HELD_OUT = halves(WHOLE.prompts)
ORDER = random_order(HELD_OUT)
Look = Callable[..., tuple[Comparison, Inspection]]


def so_far(n: int) -> DrawnImages:
    """The images where the candidate has drawn the first n of the held-out prompts."""
    later = {one.prompt_id for one in ORDER[n:]}
    digests = {name: (a, () if name in later else b) for name, (a, b) in WHOLE.digests.items()}
    return replace(WHOLE, digests=digests)


@pytest.fixture
def looked(tmp_path: Path) -> Look:
    def one(
        metric: MetricScores, of: DrawnImages = WHOLE, **how: Any
    ) -> tuple[Comparison, Inspection]:
        compare = comparing(metric, of, **how)
        return look_by_batches(tmp_path / "j", compare, of, metrics=("m",), name="c", at=AT)

    return one


def hit_of(made: Inspection, skill: str | None) -> Hit:
    (found,) = (one for one in made.hits if one.skill == skill)
    return found


def test_the_order_is_random_and_the_same_for_the_same_texts() -> None:
    assert random_order(tuple(reversed(HELD_OUT))) == ORDER
    first = [one.skills[0] for one in ORDER[:90]]
    assert all(15 <= first.count(skill) <= 45 for skill in SKILLS)


def test_a_large_difference_is_confirmed_by_the_first_batches(looked: Look) -> None:
    metric = scores(WHOLE, dict.fromkeys(SKILLS, 0.4), 1)
    found, made = looked(metric)
    hit = hit_of(made, None)
    assert (hit.outcome, hit.confirmed, made.open) == (Outcome.BETTER, True, False)
    assert hit.n is not None and MIN_VALUES <= hit.n < 100
    assert made.asked is not None and made.asked % BATCH == 0 and made.asked < len(ORDER)
    places = [WHOLE.prompts.index(one) for one in ORDER[: hit.n]]
    d = np.diff(metric.values[places], axis=1)[:, 0]
    low, high = confidence_sequence(d, spent(1) / len(made.hits), len(ORDER) / 2)
    assert (hit.ci_low, hit.ci_high) == pytest.approx((low[-1], high[-1]))
    assert hit.difference == pytest.approx(d.mean())
    assert AbReport(found, made).outcomes[None] is Outcome.BETTER


def test_an_open_look_goes_on_at_its_level_as_images_come(looked: Look) -> None:
    metric = scores(WHOLE, {"color": 0.13}, 8)
    asked = []
    for n in (0, 50, 50, 110, 300):
        found, made = looked(metric, so_far(n))
        asked.append(made.asked)
        report = AbReport(found, made, prompts_to_draw(so_far(n), made))
        assert (made.confirmation, made.level) == (1, spent(1))
        if n == 50:
            assert made.open and report.outcomes["color"] is Outcome.UNDECIDED
            assert report.to_draw == ORDER[50:60]
            assert "50 held-out prompts" in report.sentence(found.skills[1])
    assert asked[:4] == [0, 50, 50, 110]
    assert not made.open and not report.to_draw
    assert looked(scores(candidate(WHOLE, 2), {"color": 0.4}, 2), candidate(WHOLE, 2))[
        1
    ].level == spent(2)
    assert looked(metric)[1] == made


def test_only_the_order_counts_whatever_was_drawn_first(looked: Look) -> None:
    of = so_far(300)
    digests = {
        name: (a, () if name == ORDER[30].prompt_id else b) for name, (a, b) in of.digests.items()
    }
    _, made = looked(scores(WHOLE, {"color": 0.13}, 8), replace(of, digests=digests))
    assert made.asked == 30


def test_images_that_were_asked_may_not_change(looked: Look) -> None:
    metric = scores(WHOLE, {"color": 0.13}, 8)
    looked(metric, so_far(50))
    name = ORDER[10].prompt_id
    for of in (
        so_far(5),
        replace(so_far(50), digests={**so_far(50).digests, name: (("a",), ("again",))}),
    ):
        with refused("other_images"):
            looked(metric, of)


def test_images_of_a_closed_look_may_not_change_either(looked: Look) -> None:
    metric = scores(WHOLE, dict.fromkeys(SKILLS, 0.4), 1)
    _, made = looked(metric)
    assert not made.open and made.asked is not None and made.asked < len(ORDER)
    assert looked(metric, so_far(made.asked))[1] == made
    name = ORDER[made.asked - 1].prompt_id
    for b in ((), ("again",)):
        with refused("other_images"):
            looked(metric, replace(WHOLE, digests={**WHOLE.digests, name: (("a",), b)}))


def test_a_look_goes_on_with_its_margin_alone_and_whatever_else_is_compared(looked: Look) -> None:
    metric = planted(0.05, 0.0)
    found, made = looked(metric, so_far(0), sub_skills=True)
    assert {"color:a", "color"} < {hit.skill for hit in made.hits}
    margins = {one.skill: one.by_metric["m"].margin for one in found.skills}
    assert {hit.skill: hit.margin for hit in made.hits} == margins
    with refused("other_margin"):
        looked(metric, margin=10.0)
    _, made = looked(metric)
    assert {hit.outcome for hit in made.hits} == {Outcome.TIED}
    with refused("other_margin"):
        looked(metric, margin=10.0)


@pytest.mark.parametrize(
    ("differing", "n", "outcome"),
    [
        (range(0), 300, Outcome.UNDECIDED),
        (range(19), 300, Outcome.UNDECIDED),
        (range(100, 119), 300, Outcome.UNDECIDED),
        (range(0, 300, 2), 40, Outcome.BETTER),
    ],
)
def test_nothing_is_decided_where_fewer_than_twenty_prompts_differ(
    looked: Look, differing: range, n: int, outcome: Outcome
) -> None:
    rng = np.random.default_rng(27)
    shifted = {one.prompt_id for one in SCREENING} | {ORDER[place].prompt_id for place in differing}
    first = rng.normal(size=600)
    shift = [one.prompt_id in shifted for one in WHOLE.prompts] * rng.uniform(0.3, 0.5, 600)
    values = np.stack([first, first + 0.1 + shift - 0.1], axis=1)  # others differ by rounding
    hit = hit_of(looked(MetricScores("m", "m", True, values))[1], None)
    assert (hit.n, hit.outcome) == (n, outcome)


def test_prompts_declared_missing_are_asked_and_counted(looked: Look) -> None:
    gone = {ORDER[3].prompt_id, ORDER[45].prompt_id}
    digests = {name: (a, () if name in gone else b) for name, (a, b) in so_far(70).digests.items()}
    of = replace(WHOLE, digests=digests, missing=frozenset(gone))
    metric = scores(WHOLE, {"color": 0.13}, 8)
    metric.values[[one.prompt_id in gone for one in WHOLE.prompts], 1] = np.nan
    _, made = looked(metric, of)
    assert (made.asked, made.open) == (70, True)
    assert max(hit.n_missing for hit in made.hits) == 2
    assert prompts_to_draw(of, made) == ORDER[70:80]


def test_scores_that_lack_are_counted_and_skills_with_few_held_out_prompts_are_no_hit(
    tmp_path: Path,
) -> None:
    of = candidate(drawn(60), 1)  # of each skill 30 are held out
    metric = scores(of, dict.fromkeys(SKILLS, 1.0), 1)
    order = random_order(halves(of.prompts)[1])
    metric.values[of.prompts.index(order[3]), 1] = np.nan
    _, made = look_by_batches(
        tmp_path / "j", comparing(metric, of), of, metrics=("m",), name="c", at=AT
    )
    (hit,) = made.hits
    assert (hit.skill, hit.outcome, hit.n_missing) == (None, Outcome.BETTER, 1)
    assert hit.n == (made.asked or 0) - 1


def planted(screening: float, held_out: float) -> MetricScores:
    """A candidate that differs by other amounts on the two halves; differences have spread .05."""
    rng = np.random.default_rng(27)
    kept = {one.prompt_id for one in SCREENING}
    shift = [screening if one.prompt_id in kept else held_out for one in WHOLE.prompts]
    first = rng.normal(size=len(shift))
    values = np.stack([first, first + shift + rng.normal(0, 0.05, len(shift))], axis=1)
    return MetricScores("m", "m", True, values)


@pytest.mark.parametrize(
    ("screening", "held_out", "hit", "outcome"),
    [
        (0.05, 0.05, Outcome.BETTER, Outcome.BETTER),
        (-0.05, -0.05, Outcome.WORSE, Outcome.WORSE),
        (0.05, 0.0, Outcome.TIED, Outcome.TIED),
        (0.05, -0.05, Outcome.WORSE, Outcome.UNDECIDED),
    ],
)
def test_the_sequence_says_better_worse_or_tied_and_a_refuted_hit_decides_nothing(
    looked: Look, screening: float, held_out: float, hit: Outcome, outcome: Outcome
) -> None:
    found, made = looked(planted(screening, held_out))
    assert {one.outcome for one in made.hits} == {hit}
    assert set(AbReport(found, made).outcomes.values()) == {outcome}
    assert (made.asked or 0) < len(ORDER)


@pytest.mark.nightly
def test_fifty_null_looks_confirm_anything_in_five_percent_at_most(tmp_path: Path) -> None:
    whole, confirmed, runs = drawn(80), 0, 15
    for run in range(runs):
        for number in range(50):
            of = candidate(whole, number)
            compare = comparing(scores(of, {}, 1000 * run + number), of)
            _, made = look_by_batches(
                tmp_path / f"{run}", compare, of, metrics=("m",), name="c", at=AT
            )
            confirmed += any(hit.confirmed for hit in made.hits)
    assert confirmed <= 2  # .75 are expected at most
