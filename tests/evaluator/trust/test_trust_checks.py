"""Trust checks: what a metric that is no function of one image and one prompt is caught by."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from PIL import Image

from benchmarks.schema import Pair, Questions
from evaluator.scoring.asking import Item, Ready, Reply
from evaluator.scoring.contract import Verdict
from evaluator.trust.changes import one_step_brighter, reencoded
from evaluator.trust.checks import compared, tried
from evaluator.trust.sampling import sampled
from leaderboard.trust import TrustReport

Judge = Callable[[Sequence[tuple[Image.Image, str]]], Sequence[float]]


class FakeAsker:
    """Scores a batch of (image, prompt) with a function of the whole batch."""

    asks_elements = False
    peak_memory_bytes = 0

    def __init__(self, judge: Judge, precision: str = "float32") -> None:
        self._judge = judge
        self.environment = {"dtype": precision}
        self.batches: list[int] = []

    def ready(self, data: bytes) -> Ready:
        return Ready(data, len(data))

    def ask(self, items: Sequence[Item]) -> Reply:
        images = [Image.open(io.BytesIO(one.image.content)).convert("RGB") for one in items]
        flat = [
            (image, asked.prompt)
            for image, one in zip(images, items, strict=True)
            for asked in one.asked
        ]
        self.batches.append(len(flat))
        scores = iter(self._judge(flat))
        return Reply(tuple(tuple(Verdict.of(next(scores)) for _ in one.asked) for one in items))


def picture(number: int) -> bytes:
    rng = np.random.default_rng(number)
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()


def questions(n_images: int = 8, n_texts: int = 2) -> Questions:
    return Questions(
        images={f"i{i}": partial(picture, i) for i in range(n_images)},
        texts={f"t{t}": f"prompt {t}" * (t + 1) for t in range(n_texts)},
        pairs=tuple(
            Pair(f"i{i}/t{t}", f"i{i}", f"t{t}") for i in range(n_images) for t in range(n_texts)
        ),
    )


def by_content(image: Image.Image, prompt: str) -> float:
    return float(np.asarray(image, float).mean()) + len(prompt)


def report(judge: Judge, precision: str = "float32") -> TrustReport:
    return tried(FakeAsker(judge, precision), questions(), "made_up").report


def passed(found: TrustReport) -> dict[str, bool | None]:
    return {check.name: check.passed for check in found.checks}


def test_a_function_of_image_and_prompt_passes_every_check() -> None:
    found = report(lambda batch: [by_content(*pair) for pair in batch])
    assert set(passed(found).values()) == {True, None}
    assert found.why_not == ""
    assert found.band == 0.0
    assert (found.n_pairs, found.n_images) == (16, 8)


def test_a_score_relative_to_its_batch_is_caught_with_the_pair_that_shows_it() -> None:
    def relative(batch: Sequence[tuple[Image.Image, str]]) -> list[float]:
        raw = np.array([by_content(*pair) for pair in batch])
        return [float(value) for value in raw - raw.mean()]

    found = report(relative)
    assert passed(found) | {"one_pixel": None} == {
        "repeat": True,
        "order": True,
        "batch": False,
        "alone": False,
        "reencoded": True,
        "one_pixel": None,
    }
    assert found.why_not == (
        "score depends on the batch and depends on the other pairs of its batch"
    )
    alone = next(check for check in found.checks if check.name == "alone")
    assert alone.example is not None
    assert alone.example.after == 0.0
    assert alone.largest == pytest.approx(abs(alone.example.before or 0.0))


def test_a_score_by_place_in_the_batch_depends_on_the_order() -> None:
    found = report(lambda batch: [float(i) for i in range(len(batch))])
    assert passed(found)["order"] is False
    assert passed(found)["repeat"] is True


def test_a_scorer_with_a_memory_changes_when_repeated() -> None:
    counter = itertools.count()
    found = report(lambda batch: [float(next(counter)) for _ in batch])
    assert passed(found)["repeat"] is False
    assert "changes when repeated" in found.why_not


def test_a_missing_score_that_comes_or_goes_fails_whatever_the_others_do() -> None:
    found = report(
        lambda batch: [math.nan if len(batch) == 1 else by_content(*pair) for pair in batch]
    )
    alone = next(check for check in found.checks if check.name == "alone")
    assert (alone.passed, alone.n_lost) == (False, 16)
    assert alone.example is not None
    assert alone.example.after is None


def test_a_score_that_is_missing_every_time_is_no_failure() -> None:
    found = report(lambda batch: [math.nan for _ in batch])
    assert set(passed(found).values()) == {True, None}


@pytest.mark.parametrize(("precision", "ok"), [("float32", False), ("bfloat16", True)])
def test_what_counts_as_rounding_follows_the_precision(precision: str, ok: bool) -> None:
    spread = float(np.std([by_content(_open(f"i{i}"), p) for i in range(8) for p in _texts()]))

    def noisy(batch: Sequence[tuple[Image.Image, str]]) -> list[float]:
        off = 0.03 * spread if len(batch) == 1 else 0.0
        return [by_content(*pair) + off for pair in batch]

    found = report(noisy, precision)
    assert passed(found)["alone"] is ok
    assert found.band == pytest.approx(0.03 * spread)


def _open(image_id: str) -> Image.Image:
    return Image.open(io.BytesIO(picture(int(image_id[1:]))))


def _texts() -> list[str]:
    return list(questions().texts.values())


def test_the_one_pixel_change_is_measured_and_fails_nobody() -> None:
    found = report(lambda batch: [float(np.asarray(image)[0, 0, 0] % 2) for image, _ in batch])
    change = next(check for check in found.checks if check.name == "one_pixel")
    assert change.passed is None
    assert change.largest == 1.0
    assert 0.8 < change.mean <= 1.0  # a channel that is full already stays
    assert found.why_not == ""


def test_changed_images_hold_what_they_should() -> None:
    image = _open("i3")
    pixels = np.asarray(image)
    again = np.asarray(Image.open(io.BytesIO(reencoded(image))))
    brighter = np.asarray(Image.open(io.BytesIO(one_step_brighter(image))))
    assert (again == pixels).all()
    assert (brighter == np.minimum(pixels.astype(int) + 1, 255)).all()


def test_an_image_that_cannot_be_read_is_left_to_the_run() -> None:
    some = questions()
    images = {**some.images, "i0": lambda: b"no image"}
    broken = Questions(images=images, texts=some.texts, pairs=some.pairs)
    asker = FakeAsker(lambda batch: [by_content(*pair) for pair in batch])
    assert tried(asker, broken, "made_up").report.n_images == 7


def test_a_constant_metric_passes() -> None:
    found = report(lambda batch: [0.5] * len(batch))
    assert found.spread == 0.0
    assert found.why_not == ""


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e307])
def test_scores_of_any_size_are_checked_alike_and_can_be_read_back(scale: float) -> None:
    counter = itertools.count()
    steady = report(lambda batch: [len(prompt) / 32 * scale for _, prompt in batch])
    moving = report(lambda batch: [(next(counter) % 7) * scale for _ in batch])
    assert steady.why_not == ""
    assert passed(moving)["repeat"] is False
    for found in (steady, moving):
        assert math.isfinite(found.spread)
        assert TrustReport.model_validate_json(found.model_dump_json()) == found


def test_changes_between_the_ends_of_the_range_of_doubles_stay_finite() -> None:
    counter = itertools.count()
    found = report(lambda batch: [(-1) ** (next(counter) // 3) * 1.7e308 for _ in batch])
    assert found.failed
    assert TrustReport.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("constant", [1e6, 1e9, 1e12, -1e12])
def test_a_large_constant_hides_no_dependence_on_the_batch(constant: float) -> None:
    def shifted(batch: Sequence[tuple[Image.Image, str]]) -> list[float]:
        return [constant + by_content(*pair) + 9.0 * len(batch) for pair in batch]

    assert passed(report(shifted))["alone"] is False


def test_rounding_of_an_almost_constant_metric_in_single_precision_is_no_dependence() -> None:
    def almost(batch: Sequence[tuple[Image.Image, str]]) -> list[float]:
        return [float(np.float32(0.7) + np.float32(6e-8) * (len(batch) == 1)) for _ in batch]

    found = report(almost)
    assert found.band > 0.0
    assert found.why_not == ""


def test_one_score_far_from_the_others_makes_no_room_for_them() -> None:
    counter = itertools.count()

    def masked(batch: Sequence[tuple[Image.Image, str]]) -> list[float]:
        outlier = by_content(_open("i0"), _texts()[0])
        scores = [by_content(*pair) for pair in batch]
        return [1e9 if score == outlier else float(next(counter) % 7) for score in scores]

    assert passed(report(masked))["repeat"] is False


def test_a_scorer_that_behaves_only_while_it_is_tested_is_caught_by_its_run() -> None:
    asker = FakeAsker(lambda batch: [by_content(*pair) for pair in batch])
    trial = tried(asker, questions(), "made_up")
    assert trial.after({**trial.scores, "not tried": 5.0}).why_not == ""
    moved = {pair: score + 40.0 * (pair == "i2/t1") for pair, score in trial.scores.items()}
    found = trial.after(moved)
    assert found.why_not == "score was another when it was tested"
    assert found.checks[-1].example is not None
    assert found.checks[-1].example.pair_id == "i2/t1"
    silent = dict.fromkeys(trial.scores, math.nan)
    assert trial.after(silent).checks[-1].n_lost == 16


def test_samples_are_bounded_depend_on_the_secret_and_keep_pairs_of_one_image() -> None:
    many = questions(50, 5)
    one, other = sampled(many, b"one"), sampled(many, b"other")
    assert len(one.images) == 12
    assert len(one.pairs) == 36
    assert {pair.image_id for pair in one.pairs} == set(one.images)
    assert set(one.images) != set(other.images)
    assert sampled(many, b"one").pairs == one.pairs


def test_comparing_nothing_passes() -> None:
    assert compared("repeat", {}, {}, 0.0).passed is True


def test_the_mean_change_is_over_the_pairs_with_both_scores() -> None:
    before = {"a": 1.0, "b": math.nan, "c": math.nan, "d": math.nan}
    after = {**before, "a": 2.0}
    assert compared("one_pixel", before, after, 0.0).mean == 1.0
