"""Trust checks: what a metric that is no function of one image and one prompt is caught by."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.schema import Pair, Questions
from evaluator.scoring.asking import Item, Reply
from evaluator.scoring.contract import Verdict
from evaluator.trust import band, compared, reencoded, sampled, trials, tried
from leaderboard.trust import LOOKUP_IMAGES, LOOKUP_SHARE, TrustReport
from tests.evaluator.judged import Batch, FakeClient, Judge, picture
from tests.kit.pictures import opened


def questions(n_images: int = 8, n_texts: int = 2) -> Questions:
    images, texts = [f"i{i}" for i in range(n_images)], [f"t{t}" for t in range(n_texts)]
    return Questions(
        images={name: partial(picture, i) for i, name in enumerate(images)},
        texts={name: f"prompt {t}" * (t + 1) for t, name in enumerate(texts)},
        pairs=tuple(Pair(f"{image}/{text}", image, text) for image in images for text in texts),
    )


def by_content(image: Image.Image, prompt: str) -> float:
    return float(np.asarray(image, float).mean()) + len(prompt)


def sound(batch: Batch) -> list[float]:
    return [by_content(*pair) for pair in batch]


def report(judge: Judge, precision: str = "float32") -> TrustReport:
    return tried(FakeClient(judge, precision), questions(), "made_up").report


def check(found: TrustReport, name: str) -> Any:
    return next(check for check in found.checks if check.name == name)


def failed(found: TrustReport) -> list[str]:
    return [check.name for check in found.failed]


def counting(score: Callable[[int], float]) -> Judge:
    """Scores by how many were scored before."""
    counter = itertools.count()
    return lambda batch: [score(next(counter)) for _ in batch]


def test_a_function_of_image_and_prompt_passes_every_check() -> None:
    found = report(sound)
    assert (failed(found), found.why_not, found.band) == ([], "", 0.0)
    assert (found.n_pairs, found.n_images) == (16, 8)


def test_each_of_several_outputs_has_checks_of_its_own_and_is_asked_once() -> None:
    count, asked = itertools.count(), list[int]()

    class Rows(FakeClient):
        def ask(self, items: Sequence[Item]) -> Reply:
            asked.append(sum(len(one.asked) for one in items))
            return Reply(
                tuple(
                    tuple(
                        Verdict.of_outputs(
                            [by_content(opened(one.image.content), asked.prompt), next(count)]
                        )
                        for asked in one.asked
                    )
                    for one in items
                )
            )

    first, second = trials(Rows(sound), questions(), "made_up", 2)
    assert first == tried(FakeClient(sound), questions(), "made_up")
    assert (failed(first.report), sum(asked)) == ([], 7 * 16)
    assert "repeat" in failed(second.report)


def test_a_score_relative_to_its_batch_is_caught_with_the_pair_that_shows_it() -> None:
    def relative(batch: Batch) -> list[float]:
        raw = np.array(sound(batch))
        return [float(value) for value in raw - raw.mean()]

    found = report(relative)
    assert failed(found) == ["batch", "alone"]
    assert found.why_not.count("depends on") == 2
    alone = check(found, "alone")
    assert alone.example.after == 0.0
    assert alone.largest == pytest.approx(abs(alone.example.before))


def test_a_missing_score_that_comes_or_goes_fails_whatever_the_others_do() -> None:
    found = report(lambda batch: [math.nan] if len(batch) == 1 else sound(batch))
    alone = check(found, "alone")
    assert (alone.passed, alone.n_lost, alone.example.after) == (False, 16, None)


@pytest.mark.parametrize(
    ("judge", "fails"),
    [
        (lambda batch: [float(i) for i in range(len(batch))], "order"), (counting(float), "repeat"),
        (lambda batch: [0.5] * len(batch), ""),
    ],
    ids=["by place", "with a memory", "constant"],
)  # fmt: skip
def test_order_and_memory_are_caught_and_nothing_to_see_is_no_failure(
    judge: Judge, fails: str
) -> None:
    found = report(judge)
    assert bool(found.why_not) == bool(fails)
    assert (failed(found) == []) if not fails else (fails in failed(found))
    assert ("repeat" in failed(found)) == (fails == "repeat")


@pytest.mark.parametrize(("n_scored", "untested"), [(0, True), (3, True), (4, False), (16, False)])
def test_what_has_few_scores_when_it_is_tested_passes_nothing(
    n_scored: int, untested: bool
) -> None:
    scores = [
        by_content(opened(picture(i)), p) for i in range(8) for p in questions().texts.values()
    ]
    known = sorted(scores)[:n_scored]
    client = FakeClient(lambda batch: [s if s in known else math.nan for s in sound(batch)])
    trial = tried(client, questions(), "made_up")
    found = trial.after(trial.scores)
    assert (found.n_scored, found.untested) == (n_scored, untested)
    assert found.why_not or not untested
    if not n_scored:
        assert {one.verdict for one in found.checks} == {"measured"}


@pytest.mark.parametrize(("precision", "fails"), [("float32", ["alone"]), ("bfloat16", [])])
def test_what_counts_as_rounding_follows_the_precision(precision: str, fails: list[str]) -> None:
    texts = questions().texts.values()
    off = 0.03 * float(np.std([by_content(opened(picture(i)), p) for i in range(8) for p in texts]))
    noisy = report(lambda batch: [s + off * (len(batch) == 1) for s in sound(batch)], precision)
    assert [name for name in failed(noisy) if name == "alone"] == fails
    assert noisy.band == pytest.approx(off)


# One grey level


def digest(image: Image.Image) -> float:
    return zlib.crc32(image.tobytes()) / 2**32


def table(names: Sequence[int], otherwise: float) -> Judge:
    """Looks pictures up by their exact pixels."""
    known = {opened(picture(n)).tobytes(): float(n % 5) for n in names}
    return lambda batch: [known.get(image.tobytes(), otherwise) for image, _ in batch]


def likes_light(batch: Batch) -> list[float]:
    return [float(np.asarray(image, float)[..., 1].mean()) for image, _ in batch]


def rates_one_to_five(batch: Batch) -> list[float]:
    """Rounds, so that one grey level turns some of its ratings by a whole one."""
    return [float(round(light / 8)) for light in likes_light(batch)]


@pytest.mark.parametrize(
    ("judge", "suspected"),
    [
        (lambda batch: [digest(image) for image, _ in batch], True), (table(range(8), 2.0), True),
        (table(range(8), math.nan), True), (table(range(0, 8, 2), -9.0), True),
        (lambda batch: [float(np.asarray(image)[0, 0, 0] % 2) for image, _ in batch], True),
        (sound, False), (likes_light, False), (rates_one_to_five, False),
        (lambda batch: [float(len(prompt)) for _, prompt in batch], False),
        (lambda batch: [0.5] * len(batch), False),
    ],
    ids=["hash", "table", "table without scores for others", "table of half of the images",
         "lowest bit", "honest", "brightness", "rounded", "length", "constant"],
)  # fmt: skip
def test_a_lookup_is_suspected_where_one_grey_level_turns_the_scores(
    judge: Judge, suspected: bool
) -> None:
    found = report(judge)
    assert (found.suspected, "one_pixel" in failed(found)) == (suspected, suspected)
    assert bool(found.why_not) is suspected
    cleared = found.model_copy(update={"cleared": "It is a floor."})
    assert (cleared.suspected, cleared.why_not, cleared.checks) == (False, "", found.checks)
    assert found.band == 0.0


def test_of_few_images_one_grey_level_is_measured_and_fails_nobody() -> None:
    few = questions(LOOKUP_IMAGES - 1)
    hashed = FakeClient(lambda batch: [digest(image) for image, _ in batch])
    found = tried(hashed, few, "made_up").report
    assert (check(found, "one_pixel").passed, found.why_not, found.suspected) == (None, "", False)
    assert check(found, "one_pixel").mean > 0.0


def test_one_grey_level_in_reports_that_only_measured_it_fails_nobody() -> None:
    found = report(lambda batch: [digest(image) for image, _ in batch])
    old = [one.model_copy(update={"passed": None}) for one in found.checks]
    assert not found.model_copy(update={"checks": tuple(old)}).failed


def test_a_lookup_cannot_hide_behind_a_few_far_scores_nor_fails_one_that_turns_a_few() -> None:
    names = [str(n) for n in range(36)]
    rng = np.random.default_rng(1)
    before = dict(zip(names, rng.standard_normal(36), strict=True))
    far = {**before, "0": 1e6, "1": -1e6}
    turned = {name: -score for name, score in far.items()}
    few = {**before, "2": before["2"] + 9.0, "3": math.nan, "4": -9.0}
    half = LOOKUP_SHARE * float(np.std(list(before.values())))
    assert compared("one_pixel", far, turned, half).passed is False
    assert compared("one_pixel", before, few, half).passed is True


def test_of_200_simulated_honest_metrics_none_is_suspected_and_of_200_lookups_all_are() -> None:
    """Honest: one grey level moves a third of the spread, with heavy tails, and loses a score."""
    rng = np.random.default_rng(2)
    suspected = {"honest": 0, "lookup": 0}
    for _ in range(200):
        scores = rng.standard_normal(36)
        before = {str(n): float(score) for n, score in enumerate(scores)}
        spread = float(np.std(np.clip(scores, *np.quantile(scores, [0.1, 0.9]))))
        after = {
            "honest": scores + spread / 3 * rng.standard_t(3, 36) / math.sqrt(3),
            "lookup": rng.standard_normal(36),
        }
        after["honest"][0] = math.nan
        for kind, moved in after.items():
            found = {str(n): float(score) for n, score in enumerate(moved)}
            check_of = compared("one_pixel", before, found, LOOKUP_SHARE * spread)
            suspected[kind] += check_of.passed is False
    assert suspected == {"honest": 0, "lookup": 200}


def test_an_image_in_another_lossless_file_has_the_same_pixels() -> None:
    image = opened(picture(3))
    pixels = np.asarray(image)
    assert (np.asarray(opened(reencoded(image))) == pixels).all()


def test_an_image_that_cannot_be_read_is_left_to_the_run() -> None:
    some = questions()
    images = {**some.images, "i0": lambda: b"no image"}
    broken = Questions(images=images, texts=some.texts, pairs=some.pairs)
    assert tried(FakeClient(sound), broken, "made_up").report.n_images == 7


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 1e307])
def test_scores_of_any_size_are_checked_alike_and_can_be_read_back(scale: float) -> None:
    steady = report(lambda batch: [len(prompt) / 32 * scale for _, prompt in batch])
    moving = report(counting(lambda n: (n % 7) * scale))
    ends = report(counting(lambda n: (-1) ** (n // 3) * 1.7e308))  # of the range of doubles
    assert steady.why_not == ""
    assert "repeat" in failed(moving) and failed(ends)
    for found in (steady, moving, ends):
        assert math.isfinite(found.spread)
        assert TrustReport.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize("constant", [1e6, 1e9, 1e12, -1e12])
def test_a_large_constant_hides_no_dependence_on_the_batch(constant: float) -> None:
    found = report(lambda batch: [constant + s + 9.0 * len(batch) for s in sound(batch)])
    assert "alone" in failed(found)


def test_rounding_of_an_almost_constant_metric_in_single_precision_is_no_dependence() -> None:
    almost, step = np.float32(0.7), np.float32(6e-8)
    found = report(lambda batch: [float(almost + step * (len(batch) == 1))] * len(batch))
    assert found.band > 0.0
    assert found.why_not == ""


def test_one_score_far_from_the_others_makes_no_room_for_them() -> None:
    counter = itertools.count()
    outlier = by_content(opened(picture(0)), questions().texts["t0"])
    found = report(
        lambda batch: [1e9 if s == outlier else float(next(counter) % 7) for s in sound(batch)]
    )
    assert "repeat" in failed(found)


def test_a_scorer_that_behaves_only_while_it_is_tested_is_caught_by_its_run() -> None:
    trial = tried(FakeClient(sound), questions(), "made_up")
    assert trial.after({**trial.scores, "not tried": 5.0}).why_not == ""
    moved = {pair: score + 40.0 * (pair == "i2/t1") for pair, score in trial.scores.items()}
    found = trial.after(moved)
    assert "tested" in found.why_not
    assert found.checks[-1].example is not None
    assert found.checks[-1].example.pair_id == "i2/t1"
    assert trial.after(dict.fromkeys(trial.scores, math.nan)).checks[-1].n_lost == 16


def test_samples_are_bounded_depend_on_the_secret_and_keep_pairs_of_one_image() -> None:
    many = questions(50, 5)
    one, other = sampled(many, b"one"), sampled(many, b"other")
    assert (len(one.images), len(one.pairs)) == (12, 36)
    assert {pair.image_id for pair in one.pairs} == set(one.images) != set(other.images)
    assert sampled(many, b"one").pairs == one.pairs


def test_a_comparison_is_over_the_pairs_with_both_scores() -> None:
    assert compared("repeat", {}, {}, 0.0).passed is None
    before = {"a": 1.0, "b": math.nan, "c": math.nan, "d": math.nan}
    assert compared("one_pixel", before, {**before, "a": 2.0}, 0.0).mean == 1.0


# The band of a faster precision, against float32 on the CPU


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [
        ({"a": 0.5, "b": 0.25}, {"b": 0.25, "a": 0.375}, (0.0625, 0.125, 0)),
        ({"a": math.nan, "b": 2.0}, {"a": 1.0, "b": 2.0}, (0.0, 0.0, 1)),
        ({"a": 1.0, "b": 2.0}, {"a": math.nan, "b": 2.0}, (0.0, 0.0, 1)),
        ({"a": math.nan, "b": 2.0}, {"a": math.nan, "b": 2.0}, (0.0, 0.0, 0)),
        ({"a": math.nan}, {"a": math.nan}, (None, None, 0)),
        ({}, {}, (None, None, 0)),
    ],
)
def test_the_band_is_the_mean_and_the_largest_difference_beside_what_only_one_has(
    ours: dict[str, float], theirs: dict[str, float], wanted: tuple[float | None, float | None, int]
) -> None:
    found = band(ours, theirs, {"dtype": "float32"})
    assert (found.mean, found.largest, found.n_lost) == wanted
    assert found.reference == {"dtype": "float32"}
