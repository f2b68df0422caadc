"""The plan asks every pair once in an order that tells nothing; images are read ahead within bounds and cut."""

from __future__ import annotations

import io
import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.schema import Pair
from evaluator.scoring.asking import ScoringPlan, Unit
from evaluator.scoring.engine import Fetched, Reader, batches, header_size, in_windows
from tests.evaluator.scorers.common import refusal
from tests.evaluator.scoring.fakes import PAIRS, picture, questions_of

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


def test_the_order_depends_on_the_secret_of_the_run_and_not_on_the_benchmarks() -> None:
    questions = questions_of([(i, t) for i in range(40) for t in range(3)])
    turned = replace(questions, pairs=questions.pairs[::-1])
    seeds = (b"one", b"two", b"three")
    plans = [ScoringPlan.of(questions, seed) for seed in seeds]
    assert plans == [ScoringPlan.of(turned, seed) for seed in seeds]
    orders = {tuple(unit.image_id for unit in plan.units) for plan in plans}
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


HALF = "a\ud800"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"pairs": (Pair("p", "image-0", "text-0"),) * 2}, ""),
        ({"pairs": (Pair("p", "image-9", "text-0"),)}, ""),
        ({"pairs": (Pair("p", "image-0", "text-9"),)}, ""),
        ({"texts": {"text-0": HALF}}, "text '"),
        ({"pairs": (Pair(HALF, "image-0", "text-0"),)}, "pair id '"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused_before_anything_is(
    changes: dict[str, Any], named: str
) -> None:
    with refusal("questions_inconsistent", named, kind=PlatformError):
        ScoringPlan.of(replace(questions_of([(0, 0)]), **changes), SEED)


UNITS = [Unit(f"i{n}", (Pair(f"p{n}", f"i{n}", "t"),)) for n in range(40)]


class Disk:
    """Counts what is read."""

    def __init__(self, size: int = 10) -> None:
        self.read: list[str] = []
        self.size = size

    def __call__(self, image_id: str) -> bytes:
        if image_id == "i5":
            raise SubmitterError("data_malformed", "The archive holds no readable five.")
        if image_id == "i3":
            raise FileNotFoundError(2, "No such file or directory", "three.png")
        self.read.append(image_id)
        return image_id.encode().ljust(self.size)


def reader(disk: Disk, *, ahead: int = 5, ahead_bytes: int = 10_000) -> Reader:
    return Reader(disk, threads=2, ahead=ahead, ahead_bytes=ahead_bytes, measure=False)


def test_images_come_in_order_and_a_missing_one_with_the_reason() -> None:
    found = list(reader(Disk()).all(UNITS))
    assert [one.unit for one in found] == UNITS
    assert [one.unit.image_id for one in found if one.problem] == ["i3", "i5"]
    assert "no readable five" in found[5].problem
    assert "No such file" in found[3].problem
    assert found[0].data == b"i0".ljust(10)


@pytest.mark.parametrize(("ahead", "ahead_bytes", "most"), [(5, 10**9, 6), (40, 3_000, 6)])
def test_images_wait_in_bounds_of_number_and_bytes(ahead: int, ahead_bytes: int, most: int) -> None:
    disk = Disk(size=1_000)
    fetched = reader(disk, ahead=ahead, ahead_bytes=ahead_bytes).all(UNITS)
    for n, _ in enumerate(fetched, start=1):
        assert len(disk.read) <= n + most
    assert len(disk.read) == 38


def test_whoever_stops_reading_leaves_no_thread_behind() -> None:
    fetched = reader(Disk()).all(UNITS)
    next(fetched)
    fetched.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("images")]


def test_sizes_are_told_from_the_header_and_what_is_no_image_has_none() -> None:
    wide = io.BytesIO()
    Image.new("1", (20_000, 3)).save(wide, format="PNG")
    assert header_size(picture(3)) == (2, 2)
    assert header_size(wide.getvalue()) == (20_000, 3)
    assert {header_size(data) for data in (b"", b"no image", picture(1)[:20])} == {(0, 0)}


SIZES = st.lists(
    st.tuples(st.sampled_from([(8, 8), (8, 16), (64, 64)]), st.integers(1, 40), st.integers(0, 30)),
    max_size=60,
)


def fetched_of(sizes: list[tuple[tuple[int, int], int, int]]) -> list[Fetched]:
    """Images of a size, with a longest text and some bytes; the text is named in the pair."""
    return [
        Fetched(Unit(f"i{n}", (Pair(f"p{n}", f"i{n}", "x" * length),)), b"x" * n_bytes, size)
        for n, (size, length, n_bytes) in enumerate(sizes)
    ]


def longest(unit: Unit) -> int:
    return max(len(pair.text_id) for pair in unit.pairs)


@given(PAIRS, st.integers(1, 20), st.integers(1, 500))
def test_batches_are_cut_at_images_and_within_their_limits(
    pairs: list[tuple[int, int]], max_pairs: int, max_bytes: int
) -> None:
    questions = questions_of(pairs)
    plan = ScoringPlan.of(questions, b"secret")
    fetched = [Fetched(unit, b"x" * (len(unit.image_id) * 9)) for unit in plan.units]
    cut = list(batches(fetched, questions, max_pairs=max_pairs, max_bytes=max_bytes))
    assert [batch.number for batch in cut] == list(range(len(cut)))
    items = [item for batch in cut for item in batch.items]
    assert [(item.image_id, item.data) for item in items] == [
        (one.unit.image_id, one.data) for one in fetched
    ]
    for batch in cut:
        if len(batch.items) > 1:
            assert sum(len(item.asked) for item in batch.items) <= max_pairs
            assert sum(len(item.data) for item in batch.items) <= max_bytes


@given(SIZES, st.integers(1, 20), st.integers(1, 200))
def test_a_window_loses_nothing_and_never_looks_beyond_itself(
    sizes: list[tuple[tuple[int, int], int, int]], images: int, max_bytes: int
) -> None:
    fetched = fetched_of(sizes)
    ordered = list(in_windows(fetched, longest, images=images, max_bytes=max_bytes))
    assert Counter(one.unit.image_id for one in ordered) == Counter(
        one.unit.image_id for one in fetched
    )
    moved = [abs(fetched.index(one) - n) for n, one in enumerate(ordered)]
    assert max(moved, default=0) < images
    assert ordered == list(in_windows(fetched, longest, images=images, max_bytes=max_bytes))


def test_within_a_window_like_sizes_and_like_lengths_are_neighbours() -> None:
    fetched = fetched_of([((64, 64), 5, 0), ((8, 8), 9, 0), ((64, 64), 2, 0), ((8, 8), 1, 0)])
    ordered = in_windows(fetched, longest, images=10, max_bytes=100)
    assert [one.unit.image_id for one in ordered] == ["i3", "i1", "i2", "i0"]
