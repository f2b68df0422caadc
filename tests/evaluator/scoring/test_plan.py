"""The plan: every pair once, every image once, and an order that tells nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import PlatformError
from benchmarks.schema import Pair
from evaluator.scoring.plan import ScoringPlan
from tests.evaluator.scoring.asking import PAIRS, questions_of

SEED = b"secret"


@given(PAIRS)
def test_every_pair_is_asked_exactly_once_and_every_image_sent_exactly_once(
    pairs: list[tuple[int, int]],
) -> None:
    questions = questions_of(pairs)
    plan = ScoringPlan.of(questions, SEED)
    asked = [pair for unit in plan.units for pair in unit.pairs]
    assert Counter(asked) == Counter(questions.pairs)
    assert len({unit.image_id for unit in plan.units}) == len(plan.units) == plan.n_images
    assert all(pair.image_id == unit.image_id for unit in plan.units for pair in unit.pairs)
    assert plan.n_pairs == len(pairs)
    assert plan.n_texts == len(questions.texts)


@given(PAIRS, st.randoms())
def test_the_order_of_the_benchmark_does_not_survive(pairs: list[tuple[int, int]], random) -> None:  # type: ignore[no-untyped-def]
    questions = questions_of(pairs)
    shuffled = list(questions.pairs)
    random.shuffle(shuffled)
    other = replace(questions, pairs=tuple(shuffled))
    assert ScoringPlan.of(questions, SEED) == ScoringPlan.of(other, SEED)


def test_the_order_depends_on_the_secret_of_the_run() -> None:
    questions = questions_of([(i, i % 3) for i in range(40)])
    orders = {
        tuple(unit.image_id for unit in ScoringPlan.of(questions, seed).units)
        for seed in (b"one", b"two", b"three")
    }
    assert len(orders) == 3
    assert tuple(questions.images) not in orders


@given(PAIRS, st.sets(st.integers(0, 59)))
def test_what_is_done_is_left_out_and_the_rest_keeps_its_order(
    pairs: list[tuple[int, int]], done: set[int]
) -> None:
    plan = ScoringPlan.of(questions_of(pairs), SEED)
    done_ids = {f"pair-{n}" for n in done}
    left = plan.without(done_ids)
    wanted = [p for unit in plan.units for p in unit.pairs if p.pair_id not in done_ids]
    assert [p for unit in left.units for p in unit.pairs] == wanted
    assert all(unit.pairs for unit in left.units)


@pytest.mark.parametrize(
    "pairs",
    [
        (Pair("p", "image-0", "text-0"), Pair("p", "image-0", "text-0")),
        (Pair("p", "image-9", "text-0"),),
        (Pair("p", "image-0", "text-9"),),
    ],
)
def test_questions_that_do_not_fit_together_are_refused(pairs: tuple[Pair, ...]) -> None:
    questions = replace(questions_of([(0, 0)]), pairs=pairs)
    with pytest.raises(PlatformError) as caught:
        ScoringPlan.of(questions, SEED)
    assert caught.value.code == "questions_inconsistent"


@pytest.mark.parametrize("where", ["text", "pair id"])
def test_half_a_character_is_named_before_anything_is_asked(where: str) -> None:
    questions = questions_of([(0, 0)])
    half = "a\ud800"
    if where == "text":
        questions = replace(questions, texts=dict.fromkeys(questions.texts, half))
    else:
        questions = replace(questions, pairs=(Pair(half, "image-0", "text-0"),))
    with pytest.raises(PlatformError, match=f"{where} '.*' holds half a character") as caught:
        ScoringPlan.of(questions, SEED)
    assert caught.value.code == "questions_inconsistent"
