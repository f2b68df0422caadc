"""Comparisons: what is asked of a metric that compares, by every way, and the scores it gets."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errors import SubmitterError
from benchmarks.schema import Pair, Questions
from evaluator.isolation.inside.wire_protocol import Capability
from evaluator.scorers.in_process import ModelClient
from evaluator.scorers.registry import Loaded, Runtime
from evaluator.scoring import sandbox
from evaluator.scoring.asking import Item, PairRequest, ScorerClient, ScoringPlan
from evaluator.scoring.column import ScoreColumn, ShardFolder
from evaluator.scoring.comparing import (
    NEIGHBOURS,
    Comparisons,
    each_image,
    packed,
    scheduled,
    unpacked,
)
from evaluator.scoring.engine import run_plan
from evaluator.scoring.images import ImageError
from evaluator.scoring.sandbox import SandboxClient
from tests.evaluator.scoring.fakes import FakeSession, picture

Floats = Any
SEED = b"seed"


def questions(*sizes: int, lists: Sequence[Sequence[int]] = ()) -> Questions:
    """Texts with so many images each, numbered through; the larger the number, the better."""
    numbers = itertools.count()
    texts = [[next(numbers) for _ in range(size)] for size in sizes]

    def image(number: int) -> Callable[[], bytes]:
        return lambda: picture(number)

    return Questions(
        images={f"i{n}": image(n) for text in texts for n in text},
        texts={f"t{t}": f"prompt {t}" for t in range(len(sizes))},
        pairs=tuple(Pair(f"p{n}", f"i{n}", f"t{t}") for t, text in enumerate(texts) for n in text),
        lists=tuple(tuple(f"p{n}" for n in one) for one in lists),
    )


def place_of(image: Any) -> int:
    """Number of a picture."""
    red, green, _ = image.getpixel((0, 0))
    return int(red + 256 * green)


class Larger:
    """Prefers the image of the larger number."""

    def compare(
        self, prompts: Sequence[str], images_a: Sequence[Any], images_b: Sequence[Any]
    ) -> list[float]:
        return [place_of(a) - place_of(b) for a, b in zip(images_a, images_b, strict=True)]


class Silent(Larger):
    """Says nothing of image 1, and nothing of image 3 where it comes second."""

    def compare(self, prompts: Sequence[str], images_a: Any, images_b: Any) -> list[float]:
        margins = super().compare(prompts, images_a, images_b)
        places = [(place_of(a), place_of(b)) for a, b in zip(images_a, images_b, strict=True)]
        return [
            math.nan if 1 in both or both[1] == 3 else margin
            for both, margin in zip(places, margins, strict=True)
        ]


def model(scorer: object) -> ModelClient:
    return ModelClient(Loaded(scorer, {}), Runtime(device="cpu"))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Opened:
    """Opens a metric of this process."""

    scorer: object
    fingerprint: str = "f"

    def open(self) -> AbstractContextManager[ModelClient]:
        return nullcontext(model(self.scorer))


def column(scorer: object, asked: Comparisons, folder: Any) -> ScoreColumn:
    """The column of a run in this process."""
    found = run_plan(
        ScoringPlan.of(asked.questions, SEED),
        asked.questions,
        Opened(scorer),
        ShardFolder(folder, "run"),
        lambda _: None,
    )
    return asked.column(found)


# What is asked


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_two_images_come_back_from_one_file_and_are_changed_each(a: bytes, b: bytes) -> None:
    assert unpacked(packed(a, b)) == (a, b)
    assert unpacked(b"\x89PNG" + a) is None
    assert each_image(packed(a, b), lambda data: data + b"!") == packed(a + b"!", b + b"!")
    assert each_image(b"\x89PNG", lambda data: data + b"!") == b"\x89PNG!"


@given(st.integers(0, 40), st.binary(max_size=8))
def test_short_lists_are_compared_whole_and_long_ones_with_neighbours_in_a_ring(
    n: int, seed: bytes
) -> None:
    names = [f"p{i}" for i in range(n)]
    found = list(scheduled(names, seed))
    each = Counter(frozenset(both) for both in found)
    assert max(each.values(), default=1) == 1
    assert all(len(both) == 2 for both in each)
    met = Counter(name for both in each for name in both)
    expected = min(n - 1, 2 * NEIGHBOURS)
    assert [met[name] for name in names] == [max(expected, 0)] * n
    assert found == list(scheduled(names[::-1], seed))


def test_both_orders_are_asked_of_images_of_one_text_alone() -> None:
    asked = Comparisons.of(questions(2, 1, 3), SEED)
    texts = {pair.pair_id: pair.text_id for pair in questions(2, 1, 3).pairs}
    both = set(asked.pairs.values())
    assert both == {(b, a) for a, b in both}
    assert len(both) == 2 * (1 + 3)
    assert all(texts[a] == texts[b] for a, b in both)
    assert "p2" not in {name for one in both for name in one}
    for pair in asked.questions.pairs:
        first, second = asked.pairs[pair.pair_id]
        images = unpacked(asked.questions.images[pair.image_id]())
        assert images == (picture(int(first[1:])), picture(int(second[1:])))
        assert pair.text_id == texts[first]


def test_a_benchmark_that_names_its_lists_is_asked_those() -> None:
    asked = Comparisons.of(questions(6, lists=[[0, 1], [2, 3, 4]]), SEED)
    wanted = [(0, 1), (2, 3), (2, 4), (3, 4)]
    assert {frozenset(both) for both in asked.pairs.values()} == {
        frozenset({f"p{a}", f"p{b}"}) for a, b in wanted
    }


def test_where_no_text_has_two_images_there_is_nothing_to_compare() -> None:
    with pytest.raises(SubmitterError) as caught:
        Comparisons.of(questions(1, 1), SEED)
    assert caught.value.code == "nothing_to_compare"


# What follows from it


def test_images_of_a_text_are_ordered_as_the_metric_prefers_them(tmp_path: Any) -> None:
    found = column(Larger(), Comparisons.of(questions(2, 1, 12), SEED), tmp_path)
    assert list(found.overall.index) == [f"p{n}" for n in range(15)]
    assert found.overall["p0"] == -found.overall["p1"] < 0
    assert math.isnan(found.overall["p2"])
    of_list = found.overall.iloc[3:]
    assert of_list.idxmax() == "p14" and of_list.idxmin() == "p3"
    assert of_list.rank().corr(pd.Series(range(12), of_list.index, float)) > 0.95
    assert (found.verdict.pairs, found.verdict.scored) == (14, 14)
    assert found.cost.pairs == 2 * (1 + 12 * NEIGHBOURS)
    assert found.margins is not None
    numbers = found.margins[["pair_id", "other_id"]].map(lambda name: int(name[1:]))
    assert (found.margins["margin"] == numbers["pair_id"] - numbers["other_id"]).all()


def test_what_one_order_alone_says_is_missing_as_what_none_says(tmp_path: Any) -> None:
    found = column(Silent(), Comparisons.of(questions(4, 2), SEED), tmp_path)
    assert [pair for pair in found.overall.index if math.isnan(found.overall[pair])] == ["p1", "p3"]
    assert found.overall["p2"] > found.overall["p0"]
    assert (found.verdict.pairs, found.verdict.scored) == (6, 4)
    assert found.verdict.unscored == {"no_score": 2}
    assert found.margins is not None
    assert int(found.margins["margin"].isna().sum()) == 6 + 2


# By every way


class ComparingSession(FakeSession):
    """A box whose scorer compares, and does not score."""

    def __init__(self, can: Capability = Capability.COMPARE) -> None:
        super().__init__()
        self._capabilities = can
        self.asked: list[tuple[bytes, bytes, str]] = []

    def compare(
        self, images: Sequence[bytes], comparisons: Sequence[tuple[int, int, str]]
    ) -> Floats:
        self.asked += [(images[a], images[b], prompt) for a, b, prompt in comparisons]
        return np.arange(len(comparisons), dtype=np.float64)


def items(client: ScorerClient, *files: bytes) -> list[Item]:
    return [
        Item(str(n), client.ready(data), (PairRequest(str(n), "t", f"prompt {n}"),))
        for n, data in enumerate(files)
    ]


def test_a_box_is_sent_both_images_with_their_prompt() -> None:
    session = ComparingSession()
    client = SandboxClient(session)
    files = [packed(picture(n), picture(n + 1)) for n in range(3)]
    reply = client.ask(items(client, *files))
    assert [one.score for (one,) in reply.verdicts] == [0.0, 1.0, 2.0]
    assert [prompt for _, _, prompt in session.asked] == [f"prompt {n}" for n in range(3)]
    assert len({image for a, b, _ in session.asked for image in (a, b)}) == 4
    assert (reply.work.images_decoded, reply.work.calls) == (6, 1)
    assert client.environment["asked"] == "compare"


@pytest.mark.parametrize(
    ("can", "file"),
    [
        (Capability.COMPARE, picture(1)),
        (Capability.SCORE, packed(picture(1), picture(2))),
    ],
)
def test_a_method_that_is_not_there_is_named(can: Capability, file: bytes) -> None:
    client = SandboxClient(ComparingSession(can))
    with pytest.raises(SubmitterError) as caught:
        client.ask(items(client, file))
    assert caught.value.code == "method_missing"


def test_two_images_too_large_for_one_request_cannot_be_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandbox, "_MOST_BYTES", 2 * len(picture(1)) - 20)
    with pytest.raises(ImageError):
        SandboxClient(ComparingSession()).ready(packed(picture(1), picture(2)))


class Prepares(Larger):
    """Takes numbers in place of images."""

    def prepare(self, image: Any) -> int:
        return place_of(image)

    def compare(self, prompts: Sequence[str], images_a: Any, images_b: Any) -> list[float]:
        return [a - b for a, b in zip(images_a, images_b, strict=True)]


@pytest.mark.parametrize(
    ("scorer", "file"),
    [
        (Larger(), picture(1)),
        (type("Scores", (), {"score": print})(), packed(picture(1), picture(2))),
    ],
)
def test_a_built_in_metric_asked_by_the_other_method_says_so(scorer: object, file: bytes) -> None:
    with pytest.raises(SubmitterError) as caught:
        model(scorer).ready(file)
    assert caught.value.code == "method_missing"


@pytest.mark.parametrize("scorer", [Larger(), Prepares()])
def test_a_built_in_metric_is_given_both_images_prepared(scorer: Larger) -> None:
    client = model(scorer)
    reply = client.ask(
        items(client, packed(picture(7), picture(4)), packed(picture(2), picture(4)))
    )
    assert [one.score for (one,) in reply.verdicts] == [3.0, -2.0]
    assert (reply.work.images_decoded, reply.work.images_encoded) == (4, 4)
