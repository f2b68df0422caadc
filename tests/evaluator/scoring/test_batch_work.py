"""Batches in one process: whatever an item does, the others are scored; made ready ahead, within bounds."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schema import Element
from evaluator.scoring.asking import Answered, Batch, Item, PairRequest, RawItem, Ready, Reply
from evaluator.scoring.contract import Verdict
from evaluator.scoring.engine import LocalEngine, Room, answered
from tests.evaluator.scoring.fakes import FakeClient, FakeSource, content_score, picture


def batch_of(*sizes: int, bad: Sequence[int] = (), prompt: str = "") -> Batch:
    """Numbered images with so many prompts each."""
    return Batch(
        7,
        tuple(
            RawItem(
                f"image-{i}",
                b"no image" if i in bad else picture(i),
                tuple(
                    PairRequest(
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


def test_an_image_that_cannot_be_read_is_a_finding_and_the_rest_is_scored() -> None:
    batch = batch_of(2, 2, 1, bad=[1])
    answer = answered(FakeClient(elements=True), batch)
    scores = scores_of(batch, answer)
    assert [pair for pair, score in scores.items() if math.isnan(score)] == ["pair-1-0", "pair-1-1"]
    (finding,) = answer.reply.findings
    assert (finding.code, finding.item, finding.item_id) == ("image_unreadable", "image", "image-1")
    assert not finding.scored
    assert "not an image of a known format" in finding.message
    assert all("cannot be read" in verdict.problem for verdict in answer.reply.verdicts[1])
    assert answer.reply.elements is not None
    assert np.isnan(answer.reply.elements[1][0]).tolist() == [True]
    assert not np.isnan(answer.reply.elements[0][0]).any()


def test_a_batch_without_one_readable_image_is_not_asked() -> None:
    client = FakeClient()
    answer = answered(client, batch_of(2, 1, bad=[0, 1]))
    assert client.requests == []
    assert [finding.item_id for finding in answer.reply.findings] == ["image-0", "image-1"]
    assert answer.reply.work.calls == 0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (Verdict(math.inf), "the scorer gave inf"),
        (Verdict(-math.inf), "the scorer gave -inf"),
        (Verdict(math.nan), "the scorer gave no number"),
        (Verdict(math.nan, "it has no words."), "it has no words."),
    ],
)
def test_a_score_that_is_no_number_ranks_nothing_and_has_a_reason(
    given: Verdict, problem: str
) -> None:
    class Unbounded(FakeClient):
        def ask(self, items: Sequence[Item]) -> Reply:
            return Reply(((given,),))

    reply = answered(Unbounded(), batch_of(1)).reply
    assert repr(reply.verdicts[0][0]) == repr(Verdict(math.nan, problem))
    (finding,) = reply.findings
    assert (finding.code, finding.item, finding.item_id) == ("no_score", "pair", "pair-0-0")
    assert finding.message == f"No score: {problem.rstrip('.')}."


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 12))
def test_out_of_memory_loses_no_pair_and_asks_none_twice(sizes: list[int], fits: int) -> None:
    batch, client = batch_of(*sizes), FakeClient(fits_pairs=fits)
    answer = answered(client, batch)
    assert scores_of(batch, answer) == expected(batch)
    asked = [pair for request in client.requests for _, pairs in request for pair in pairs]
    assert sorted(asked) == sorted(expected(batch))
    assert answer.reply.findings == ()
    work = answer.reply.work
    assert (work.calls, work.seconds) == (len(client.requests), 0.25 * len(client.requests))
    assert work.images_encoded == sum(map(len, client.requests))


def test_images_are_taken_apart_first_and_the_size_that_worked_is_remembered_for_a_while() -> None:
    client, room = FakeClient(fits_pairs=4), Room()
    answered(client, batch_of(4, 4, 4))
    assert [len(request) for request in client.requests] == [1, 1, 1]
    client = FakeClient(fits_pairs=2)
    for _ in range(2):
        answered(client, batch_of(*[1] * 8), room=room)
        assert client.refused == 2
    assert [len(request) for request in client.requests] == [2] * 8
    client.fits_pairs = math.inf
    for _ in range(20):
        answered(client, batch_of(*[1] * 8), room=room)
    assert len(client.requests[-1]) == 8


def test_a_single_pair_that_does_not_fit_is_a_finding_and_the_others_are_scored() -> None:
    batch, client = batch_of(3, 3), FakeClient(never_fits="prompt 1")
    answer = answered(client, batch)
    scores = scores_of(batch, answer)
    lost = {pair for pair, score in scores.items() if math.isnan(score)}
    assert lost == {"pair-0-1", "pair-1-1"}
    assert {(f.code, f.item, f.item_id) for f in answer.reply.findings} == {
        ("out_of_memory", "pair", pair) for pair in lost
    }
    assert all(v.problem for row in answer.reply.verdicts for v in row if math.isnan(v.score))


def batch(number: int, *, size: int = 0) -> Batch:
    data = picture(number) + b"\0" * size
    return Batch(number, (RawItem(f"i{number}", data, (PairRequest(f"p{number}", "t", "text"),)),))


def counted(n: int, drawn: list[int], *, size: int = 0) -> Iterator[Batch]:
    for number in range(n):
        drawn.append(number)
        yield batch(number, size=size)


def test_all_batches_are_answered_in_their_order() -> None:
    source = FakeSource()
    answers = list(LocalEngine().run(counted(9, []), source))
    assert [answer.batch for answer in answers] == list(range(9))
    assert (source.opened, source.closed) == (1, 1)


def test_the_next_batch_is_made_ready_while_this_one_is_asked() -> None:
    second = threading.Event()

    class Waiting(FakeClient):
        def ready(self, data: bytes) -> Ready:
            if data == picture(1):
                second.set()
            return super().ready(data)

        def ask(self, items):  # type: ignore[no-untyped-def]
            assert second.wait(60), "nobody made the next batch ready"
            return super().ask(items)

    assert len(list(LocalEngine().run(counted(3, []), FakeSource(Waiting())))) == 3


@pytest.mark.parametrize(("size", "most"), [(0, 4), (10_000, 1)])
def test_batches_are_drawn_a_bounded_way_ahead(size: int, most: int) -> None:
    drawn: list[int] = []
    engine = LocalEngine(ahead_batches=4, ahead_bytes=9_000)
    for n, _ in enumerate(engine.run(counted(20, drawn, size=size), FakeSource()), start=1):
        assert len(drawn) <= n + most
    assert len(drawn) == 20


def test_whoever_stops_listening_ends_everything() -> None:
    source = FakeSource()
    drawn: list[int] = []
    answers = LocalEngine().run(counted(50, drawn), source)
    next(iter(answers))
    answers.close()  # type: ignore[attr-defined]
    assert source.closed == 1
    assert len(drawn) < 10


def test_a_failure_goes_through_and_the_asker_is_closed() -> None:
    source = FakeSource(FakeClient(fails_after=2))
    answers = LocalEngine().run(counted(9, []), source)
    assert [next(answers).batch, next(answers).batch] == [0, 1]
    with pytest.raises(RuntimeError, match="the scorer is gone"):
        next(answers)
    assert source.closed == 1
