"""What is asked together: cut at images, within limits, and neighbours alike."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.schema import Element, Pair
from evaluator.scoring.batches import Fetched, batches, in_windows
from evaluator.scoring.plan import ScoringPlan, Unit
from tests.evaluator.scoring.asking import PAIRS, questions_of

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
