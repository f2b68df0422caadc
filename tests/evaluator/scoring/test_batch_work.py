"""One batch: whatever an item does, the others are scored, and no pair is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schema import Element
from evaluator.scoring.asking import Answered, Asked, Batch, Item, RawItem, Reply
from evaluator.scoring.batch_work import Room, answered
from evaluator.scoring.contract import Verdict
from tests.evaluator.scoring.asking import content_score, picture
from tests.evaluator.scoring.fake_asker import UNSCORED, FakeAsker


def batch_of(*sizes: int, bad: Sequence[int] = (), prompt: str = "") -> Batch:
    """Numbered images with so many prompts each."""
    return Batch(
        7,
        tuple(
            RawItem(
                f"image-{i}",
                b"no image" if i in bad else picture(i),
                tuple(
                    Asked(
                        f"pair-{i}-{k}", f"text-{k}", prompt or f"prompt {k}", (Element("a", "x"),)
                    )
                    for k in range(n)
                ),
            )
            for i, n in enumerate(sizes)
        ),
    )


def scores_of(batch: Batch, answer: Answered) -> dict[str, float]:
    return {
        pair.pair_id: verdict.score
        for item, verdicts in zip(batch.items, answer.reply.verdicts, strict=True)
        for pair, verdict in zip(item.asked, verdicts, strict=True)
    }


def expected(batch: Batch) -> dict[str, float]:
    return {
        pair.pair_id: content_score(item.data, pair.prompt)
        for item in batch.items
        for pair in item.asked
    }


def test_a_batch_is_answered_item_by_item() -> None:
    batch, asker = batch_of(2, 1, 3), FakeAsker()
    answer = answered(asker, batch)
    assert scores_of(batch, answer) == expected(batch)
    assert (answer.batch, answer.peak_memory_bytes) == (7, 1000)
    assert answer.environment == {"device": "cpu"}
    assert answer.reply.elements is None
    assert len(asker.requests) == answer.reply.work.calls == 1


def test_in_threads_as_without() -> None:
    batch = batch_of(2, 1, 3, bad=[1])
    with ThreadPoolExecutor(2) as pool:
        there = answered(FakeAsker(), batch, pool)
    here = answered(FakeAsker(), batch)
    assert repr(there) == repr(here)


def test_an_image_that_cannot_be_read_is_a_finding_and_the_rest_is_scored() -> None:
    batch = batch_of(2, 2, 1, bad=[1])
    answer = answered(FakeAsker(elements=True), batch)
    scores = scores_of(batch, answer)
    assert [pair for pair, score in scores.items() if math.isnan(score)] == ["pair-1-0", "pair-1-1"]
    (finding,) = answer.reply.findings
    assert (finding.code, finding.item, finding.item_id) == ("image_unreadable", "image", "image-1")
    assert not finding.scored
    assert "not an image of a known format" in finding.message
    assert all("'image-1'" in verdict.problem for verdict in answer.reply.verdicts[1])
    assert answer.reply.elements is not None
    assert np.isnan(answer.reply.elements[1][0]).tolist() == [True]
    assert not np.isnan(answer.reply.elements[0][0]).any()


def test_a_batch_without_one_readable_image_is_not_asked() -> None:
    asker = FakeAsker()
    answer = answered(asker, batch_of(2, 1, bad=[0, 1]))
    assert asker.requests == []
    assert [finding.item_id for finding in answer.reply.findings] == ["image-0", "image-1"]
    assert answer.reply.work.calls == 0


def test_a_pair_without_a_number_is_a_finding_with_the_reason() -> None:
    answer = answered(FakeAsker(), batch_of(1, prompt=UNSCORED))
    (finding,) = answer.reply.findings
    assert (finding.code, finding.item, finding.item_id) == ("no_score", "pair", "pair-0-0")
    assert finding.message == "No score: it has no words."


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_score_that_is_no_number_ranks_nothing(value: float) -> None:
    class Unbounded(FakeAsker):
        def ask(self, items: Sequence[Item]) -> Reply:
            return Reply(((Verdict(value),),))

    answer = answered(Unbounded(), batch_of(1))
    verdict = answer.reply.verdicts[0][0]
    assert math.isnan(verdict.score)
    assert verdict.problem
    assert [finding.code for finding in answer.reply.findings] == ["no_score"]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 12))
def test_out_of_memory_loses_no_pair_and_asks_none_twice(sizes: list[int], fits: int) -> None:
    batch, asker = batch_of(*sizes), FakeAsker(fits_pairs=fits)
    answer = answered(asker, batch)
    assert scores_of(batch, answer) == expected(batch)
    asked = [pair for request in asker.requests for _, pairs in request for pair in pairs]
    assert sorted(asked) == sorted(expected(batch))
    assert answer.reply.findings == ()


def test_images_are_taken_apart_before_the_prompts_of_one_image_are() -> None:
    asker = FakeAsker(fits_pairs=4)
    answered(asker, batch_of(4, 4, 4))
    assert [len(request) for request in asker.requests] == [1, 1, 1]


def test_the_size_that_worked_is_remembered() -> None:
    asker, room = FakeAsker(fits_pairs=2), Room()
    answered(asker, batch_of(*[1] * 8), room=room)
    refused = asker.refused
    assert refused == 2
    answered(asker, batch_of(*[1] * 8), room=room)
    assert asker.refused == refused
    assert [len(request) for request in asker.requests] == [2] * 8


def test_after_a_while_more_is_tried_again() -> None:
    asker, room = FakeAsker(fits_pairs=1), Room()
    answered(asker, batch_of(*[1] * 4), room=room)
    asker.fits_pairs = math.inf
    for _ in range(20):
        answered(asker, batch_of(*[1] * 4), room=room)
    assert len(asker.requests[-1]) == 4


def test_a_single_pair_that_does_not_fit_is_a_finding_and_the_others_are_scored() -> None:
    batch, asker = batch_of(3, 3), FakeAsker(never_fits="prompt 1")
    answer = answered(asker, batch)
    scores = scores_of(batch, answer)
    lost = {pair for pair, score in scores.items() if math.isnan(score)}
    assert lost == {"pair-0-1", "pair-1-1"}
    assert {(f.code, f.item, f.item_id) for f in answer.reply.findings} == {
        ("out_of_memory", "pair", pair) for pair in lost
    }
    assert all(v.problem for row in answer.reply.verdicts for v in row if math.isnan(v.score))


def test_what_several_requests_cost_is_added_up() -> None:
    answer = answered(FakeAsker(fits_pairs=1), batch_of(2, 1))
    work = answer.reply.work
    assert (work.calls, work.images_encoded, work.texts_encoded) == (3, 3, 2)
    assert work.seconds == 0.75


def test_a_failure_for_good_goes_through() -> None:
    with pytest.raises(RuntimeError, match="the scorer is gone"):
        answered(FakeAsker(fails_after=0), batch_of(1))
