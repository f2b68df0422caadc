"""The engine of one process: batches in their order, made ready ahead, and within bounds."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from evaluator.scoring.asking import Asked, Batch, RawItem, Ready
from evaluator.scoring.local import LocalEngine
from tests.evaluator.scoring.asking import picture
from tests.evaluator.scoring.fake_asker import FakeAsker, FakeSource


def batch(number: int, *, size: int = 0) -> Batch:
    data = picture(number) + b"\0" * size
    return Batch(number, (RawItem(f"i{number}", data, (Asked(f"p{number}", "t", "text"),)),))


def counted(n: int, drawn: list[int], *, size: int = 0) -> Iterator[Batch]:
    for number in range(n):
        drawn.append(number)
        yield batch(number, size=size)


def test_all_batches_are_answered_in_their_order() -> None:
    source = FakeSource()
    answers = list(LocalEngine().run(counted(9, []), source))
    assert [answer.batch for answer in answers] == list(range(9))
    assert (source.opened, source.closed) == (1, 1)


def test_nothing_is_opened_where_nothing_is_asked() -> None:
    source = FakeSource()
    assert list(LocalEngine().run(iter(()), source)) == []
    assert source.opened == 0


def test_the_next_batch_is_made_ready_while_this_one_is_asked() -> None:
    second = threading.Event()

    class Waiting(FakeAsker):
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
    source = FakeSource(FakeAsker(fails_after=2))
    answers = LocalEngine().run(counted(9, []), source)
    assert [next(answers).batch, next(answers).batch] == [0, 1]
    with pytest.raises(RuntimeError, match="the scorer is gone"):
        next(answers)
    assert source.closed == 1
