"""The plan asks every pair once in an order that tells nothing; images are read ahead within bounds and cut."""

from __future__ import annotations

import io
import threading
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.schema import Element, Pair
from evaluator.scoring.asking import ScoringPlan, Unit
from evaluator.scoring.engine import Fetched, Reader, batches, header_size, in_windows
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


def test_sizes_are_told_from_the_header() -> None:
    wide = io.BytesIO()
    Image.new("1", (20_000, 3)).save(wide, format="PNG")
    assert header_size(picture(3)) == (2, 2)
    assert header_size(wide.getvalue()) == (20_000, 3)


@pytest.mark.parametrize("data", [b"", b"no image", picture(1)[:20]])
def test_what_is_no_image_has_no_size(data: bytes) -> None:
    assert header_size(data) == (0, 0)


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


def test_an_image_with_more_texts_than_a_batch_holds_is_still_sent_once() -> None:
    questions = questions_of([(0, t) for t in range(9)])
    (unit,) = ScoringPlan.of(questions, b"secret").units
    cut = batches([Fetched(unit, b"x")], questions, max_pairs=4, max_bytes=10)
    assert len(list(cut)) == 1


def test_prompts_and_elements_are_spelled_out() -> None:
    questions = questions_of([(0, 0), (0, 1)], elements=True)
    (unit,) = ScoringPlan.of(questions, b"secret").units
    ((batch),) = batches([Fetched(unit, b"x")], questions, max_pairs=4, max_bytes=10)
    asked = {
        pair.pair_id: (pair.text_id, pair.prompt, pair.elements) for pair in batch.items[0].asked
    }
    assert asked == {
        "pair-0": ("text-0", "prompt number 0", (Element("a", "part 0"),)),
        "pair-1": ("text-1", "prompt number 1", ()),
    }


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


@given(SIZES)
def test_a_window_of_one_keeps_the_order_of_the_plan(
    sizes: list[tuple[tuple[int, int], int, int]],
) -> None:
    fetched = fetched_of(sizes)
    assert list(in_windows(fetched, longest, images=1, max_bytes=1 << 30)) == fetched


def test_within_a_window_like_sizes_and_like_lengths_are_neighbours() -> None:
    fetched = fetched_of([((64, 64), 5, 0), ((8, 8), 9, 0), ((64, 64), 2, 0), ((8, 8), 1, 0)])
    ordered = in_windows(fetched, longest, images=10, max_bytes=100)
    assert [one.unit.image_id for one in ordered] == ["i3", "i1", "i2", "i0"]
