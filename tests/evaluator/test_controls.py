"""Controls: what planted metrics are said to be about, on the bundled benchmarks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark, Card, Pair, Questions
from evaluator.controls import (
    ENDED,
    ENDED_BY_CHANGES,
    MORE_WORDS,
    SIZE,
    Controls,
    Crossing,
    Skills,
    changed_image,
    controls,
    crossed,
    longer,
    skills_of,
)
from evaluator.scoring.asking import Item, Ready, Reply
from evaluator.scoring.comparing import unpacked
from evaluator.scoring.contract import Verdict
from evaluator.trust import tried
from leaderboard.trust import CHANGES, ChangeName, PromptControl, TrustReport
from leaderboard.views.controls import prompt_figures
from tests.evaluator.judged import Batch, FakeClient, Judge, picture
from tests.kit.pictures import encoded, opened
from tests.kit.toy import Toy

N_PAIRS = SIZE * SIZE


def questions(n: int = 30, unreadable: int = 0, **texts: str) -> Questions:
    """Images with a prompt each, which names their mean brightness."""
    images = {f"i{i}": (lambda i=i: b"none" if i < unreadable else picture(i)) for i in range(n)}
    levels = {f"t{i}": f"{float(np.asarray(opened(picture(i))).mean()):.3f}" for i in range(n)}
    pairs = tuple(Pair(f"p{i}", f"i{i}", f"t{i}") for i in range(n))
    return Questions(images, {**levels, **texts}, pairs)


def brightness(batch: Batch) -> list[float]:
    return [float(np.asarray(image).mean()) for image, _ in batch]


def honest(batch: Batch) -> list[float]:
    """The closer the brightness to what the prompt says, the better; none without a prompt."""
    own = brightness(batch)
    return [
        -abs(b - float(p.split()[0])) if p else math.nan
        for b, (_, p) in zip(own, batch, strict=True)
    ]


def reads_length(batch: Batch) -> list[float]:
    return [1.0 / (1 + len(prompt)) for _, prompt in batch]


def both(
    judge: Judge, of: Questions | None = None, skills: Skills | None = None, direction: int = 1
) -> Controls:
    crossing = crossed(questions() if of is None else of, b"key", skills)
    return controls(FakeClient(judge), crossing, direction=direction)


def control(
    judge: Judge, of: Questions | None = None, skills: Skills | None = None, direction: int = 1
) -> PromptControl:
    return both(judge, of, skills, direction).prompt


# Planted metrics


def test_an_honest_metric_uses_the_prompt_and_what_it_leaves_out_is_counted() -> None:
    found = control(honest)
    assert (found.verdict, found.why_not) == ("uses_the_prompt", "")
    assert (found.n_prompts, found.n_images, found.n_cells) == (SIZE, SIZE, N_PAIRS)
    assert (found.n_missing, found.n_empty, found.n_empty_missing) == (0, SIZE, SIZE)
    assert found.empty_change is None
    assert found.raw is not None and found.raw.value == 1.0
    assert found.centred is not None and found.centred.low > 0.9
    assert found.within is None
    assert found.match is not None and found.match_se is not None
    assert found.match > 3 * found.match_se


def test_a_metric_that_reads_the_image_alone_is_blind_by_ties_and_images_explain_it() -> None:
    found = control(brightness)
    assert found.verdict == "blind"
    assert (found.prompt_share, found.image_share) == pytest.approx((0.0, 1.0), abs=1e-9)
    assert found.raw is not None and found.raw.value == found.raw.high == 0.5
    assert (found.empty_change, found.n_empty_missing) == (0.0, 0)


def test_a_metric_that_reads_the_length_of_the_prompt_alone_is_blind_and_prompts_explain_it() -> (
    None
):
    """It reads the prompt, so an empty one moves it, but no match: the area knows the match alone."""
    found = control(reads_length, long_prompts())
    assert found.verdict == "blind"
    assert (found.prompt_share, found.image_share) == pytest.approx((1.0, 0.0), abs=1e-9)
    assert found.raw is not None and found.raw.value == 0.5
    assert found.centred is not None and found.centred.high == 0.5
    assert found.empty_change is not None and found.empty_change > 0.5


def long_prompts() -> Questions:
    some = questions()
    texts = {name: text + " very" * n for n, (name, text) in enumerate(some.texts.items())}
    return replace(some, texts=texts)


def test_a_metric_for_which_lower_is_better_is_turned() -> None:
    def distance(batch: Batch) -> list[float]:
        return [1e3 if math.isnan(score) else -score for score in honest(batch)]

    found = control(distance, direction=-1)
    assert found.verdict == "uses_the_prompt"
    assert found.match is not None and found.match > 0.0
    assert found.empty_change is not None and found.empty_change < 0.0
    assert control(distance).verdict == "blind"


# The sample


def test_a_sample_depends_on_the_key_and_no_image_is_asked_with_the_prompt_of_another() -> None:
    croc = load_registry()["demo_croc"].questions(None)
    one, other = crossed(croc, b"one"), crossed(croc, b"other")
    assert crossed(croc, b"one").questions.pairs == one.questions.pairs
    assert set(one.questions.images) != set(other.questions.images)
    assert len(one.texts) == len(set(one.texts)) == len(one.questions.images) == SIZE
    asked: dict[str, set[str]] = {}
    for pair in croc.pairs:
        asked.setdefault(pair.image_id, set()).add(croc.texts[pair.text_id])
    for pair, text in zip(one.questions.pairs, one.texts, strict=True):
        assert asked[pair.image_id] & set(one.texts) == {text}


def test_empty_prompts_are_no_right_ones_and_too_few_of_them_ask_nothing() -> None:
    some = questions(22, t0=" ", t1="", t2="")

    def never(batch: Batch) -> list[float]:
        raise AssertionError(batch)

    found = control(never, some)
    assert (found.verdict, found.n_cells, found.centred) == ("undecided", 0, None)
    assert "19 images" in found.why_not and "20" in found.why_not


def test_every_pair_is_asked_once_an_image_at_a_time_then_each_change_and_the_empty_prompt() -> (
    None
):
    sizes: list[tuple[int, int]] = []

    class Counting(FakeClient):
        def ask(self, items: Sequence[Item]) -> Reply:
            sizes.append((len(items), sum(len(one.asked) for one in items)))
            return super().ask(items)

    controls(Counting(brightness), crossed(questions(), b"key"))
    assert sizes == [(1, SIZE)] * SIZE + [(SIZE, SIZE)] * (len(CHANGES) + 1)


# What cannot be scored


def test_unreadable_images_and_missing_scores_are_counted_and_leave_too_little_to_tell() -> None:
    found = control(honest, questions(24, unreadable=5))
    assert (found.n_missing, found.n_cells, found.n_images) == (5 * 24, 24 * 24, 19)
    assert (found.verdict, found.centred, bool(found.why_not)) == ("undecided", None, True)
    nothing = control(lambda batch: [math.nan] * len(batch))
    assert (nothing.n_missing, nothing.n_empty_missing) == (N_PAIRS, SIZE)
    enough = control(honest, questions(24, unreadable=1))
    assert (enough.n_missing, enough.verdict) == (24, "uses_the_prompt")


def ending(when: Callable[[str], bool]) -> Judge:
    def judge(batch: Batch) -> list[float]:
        if any(when(prompt) for _, prompt in batch):
            raise SubmitterError("scorer_failed", "It raised an error.", "")
        return honest(batch)

    return judge


def test_a_scorer_that_ends_at_an_empty_prompt_has_its_verdict_and_one_that_ends_before_has_none() -> (
    None
):
    empty = control(ending(lambda prompt: not prompt))
    assert (empty.verdict, empty.n_empty_missing) == ("uses_the_prompt", SIZE)
    ended = control(ending(bool))
    assert (ended.verdict, ended.why_not, ended.n_cells) == ("undecided", ENDED, N_PAIRS)


# Changes that leave the content


def saturation(image: Image.Image) -> float:
    return float(np.asarray(image.convert("HSV"), float)[..., 1].mean())


def detail(image: Image.Image) -> float:
    return float(np.abs(np.diff(np.asarray(image.convert("L"), float), axis=0)).mean())


def middle(image: Image.Image) -> tuple[int, ...]:
    """Hue, saturation and value of the middle."""
    hsv = np.asarray(image.convert("HSV"))
    return tuple(int(v) for v in hsv[image.height // 2 + 2, image.width // 2])


def told(batch: Batch) -> list[float]:
    """How close the hue in the middle is to the one that the prompt names; 0 without a prompt."""
    found = []
    for image, prompt in batch:
        hue = middle(image)[0]
        named = int(prompt.split()[1]) if prompt else hue + 128
        found.append(float(np.cos(2 * np.pi * (hue - named) / 256)))
    return found


PLANTED: dict[str, tuple[Judge, set[ChangeName]]] = {
    "honest": (told, set()),
    "reads the image alone": (lambda batch: [float(middle(i)[0]) for i, _ in batch], set()),
    "loves brightness": (brightness, {"brightness"}),
    "loves saturation": (lambda batch: [saturation(i) for i, _ in batch], {"saturation", "border"}),
    "loves saturation beside the match": (
        lambda batch: [t + saturation(i) / 20 for t, (i, _) in zip(told(batch), batch, strict=True)],
        {"saturation", "border"},
    ),
    "loves detail": (lambda batch: [detail(i) for i, _ in batch], {"resize"}),
    "knows the size": (lambda batch: [float(i.width) for i, _ in batch], {"resize", "border"}),
    "reads the length": (reads_length, {"length"}),
}  # fmt: skip


def painted(n: int = 30) -> Questions:
    """A colour whose hue the prompt names, with some stripes above its middle."""
    rng = np.random.default_rng(3)
    images: dict[str, Callable[[], bytes]] = {}
    texts: dict[str, str] = {}
    for i in range(n):
        hue, side = 8 * i % 256, 64 + 2 * (i % 7)
        pixels = np.empty((side, side, 3), np.uint8)
        pixels[..., 0] = hue
        pixels[..., 1], pixels[..., 2] = rng.integers(60, 150), rng.integers(130, 170)
        pixels[: 2 * int(rng.integers(2, 14)) : 2, :, 2] -= 40
        file = encoded(Image.fromarray(pixels, "HSV").convert("RGB"))
        images[f"i{i}"] = partial(bytes, file)
        texts[f"t{i}"] = f"hue {hue}" + " very" * int(rng.integers(12))
    return Questions(images, texts, tuple(Pair(f"p{i}", f"i{i}", f"t{i}") for i in range(n)))


@pytest.mark.first_quick
@pytest.mark.parametrize(("judge", "expected"), PLANTED.values(), ids=list(PLANTED))
def test_what_moves_a_planted_metric_is_found_and_nothing_else(
    judge: Judge, expected: set[ChangeName]
) -> None:
    found = both(judge, painted()).content
    assert set(found.moved_by) == expected
    assert (found.verdict == "moved") is bool(expected)
    assert {one.name for one in found.changes} == set(CHANGES)
    assert {(one.n_images, one.n_missing) for one in found.changes} == {(SIZE, 0)}


def test_a_metric_for_which_lower_is_better_is_moved_the_other_way() -> None:
    more, less = both(brightness).content, both(brightness, direction=-1).content
    assert more.moved_by == less.moved_by == ("brightness",)
    assert [one.value for one in less.changes] == [
        pytest.approx(-(one.value or 0.0)) for one in more.changes
    ]


def test_missing_scores_of_changes_are_counted_and_what_ends_a_scorer_is_said() -> None:
    def small_ones_only(batch: Batch) -> list[float]:
        return [
            s if i.width <= 8 else math.nan
            for s, (i, _) in zip(brightness(batch), batch, strict=True)
        ]

    found = both(small_ones_only).content
    border = next(one for one in found.changes if one.name == "border")
    assert (border.n_images, border.n_missing, border.value) == (0, SIZE, None)
    assert (border.verdict, found.verdict, found.why_not) == ("undecided", "moved", "")
    nothing = both(lambda batch: [math.nan] * len(batch)).content
    assert (nothing.verdict, nothing.spread, bool(nothing.why_not)) == ("undecided", None, True)
    alike = both(lambda batch: [0.1] * len(batch)).content
    assert (alike.verdict, alike.spread, bool(alike.why_not)) == ("undecided", 0.0, True)
    asked = [0]

    def at_first(batch: Batch) -> list[float]:
        asked[0] += 1
        if asked[0] > SIZE:
            raise SubmitterError("scorer_failed", "It raised an error.", "")
        return brightness(batch)

    ended = both(at_first)
    assert ended.content.why_not == ENDED_BY_CHANGES
    assert (ended.prompt.verdict, ended.prompt.n_empty_missing) == ("blind", SIZE)


def test_changed_images_show_the_same_as_they_are_said_to() -> None:
    image = Image.new("RGB", (64, 48), (120, 100, 80))
    rng = np.random.default_rng(1)

    def changed(name: ChangeName, sign: int = 1) -> Image.Image:
        return changed_image(image, name, sign, rng)

    assert changed("brightness").getpixel((0, 0)) == (150, 125, 100)
    assert changed("brightness", -1).getpixel((0, 0)) == (96, 80, 64)
    # ITU-R 601 grey of the colour is 103.
    assert changed("saturation").getpixel((0, 0)) == (128, 98, 68)
    assert changed("saturation", -1).getpixel((0, 0)) == (114, 101, 88)
    assert changed("resize").size == (32, 24)
    framed = changed("border")
    assert framed.size == (70, 54) and len(np.unique(np.asarray(framed)[2, 2])) == 1
    assert framed.crop((3, 3, 67, 51)).tobytes() == image.tobytes()
    share = (np.asarray(changed("watermark")) != np.asarray(image)).any(axis=2).mean()
    assert 0.01 < share < 1 / 12
    assert changed("jpeg").size == image.size


@pytest.mark.parametrize("prompt", ["a dog", "a red circle left of two blue squares " * 9])
def test_a_longer_prompt_says_the_same_and_is_half_as_long_again(prompt: str) -> None:
    more = longer(prompt).removeprefix(prompt)
    assert more and not more.replace(MORE_WORDS, "")
    assert len(prompt) / 2 <= len(more) < len(prompt) / 2 + len(MORE_WORDS) + 1


def test_the_changes_depend_on_the_key_alone_and_half_go_in_each_direction() -> None:
    seen: list[list[float]] = []

    def watching(batch: Batch) -> list[float]:
        seen[-1] += brightness(batch)
        return brightness(batch)

    for key in (b"one", b"one", b"other"):
        seen.append([])
        controls(FakeClient(watching), crossed(questions(24), key))
    assert seen[0] == seen[1] != seen[2]
    first = np.array(seen[0])
    own, brighter = first[: SIZE * SIZE].reshape(SIZE, SIZE)[:, 0], first[SIZE * SIZE :][:SIZE]
    assert (brighter > own).sum() == (brighter < own).sum() == SIZE // 2


# Skills, and the report


class Skilled(Toy):
    """A toy whose answers are withheld, or name skills."""

    def __init__(self, skills: str, *, public: bool = True) -> None:
        super().__init__()
        self.skills = skills
        self.card: Card = Toy.card.model_copy(update={"answers_public": public})

    def cases(self, answers: object, data: Path | None) -> object:  # type: ignore[override]
        import pandas as pd

        return pd.DataFrame({"pair_id": ["a", "b"], "skills": [self.skills, ""]})


@pytest.mark.parametrize(
    ("benchmark", "expected"),
    [
        (Skilled("x;y"), {"a": {"x", "y"}, "b": set()}), (Skilled("x", public=False), {}),
        (Toy(), {}),
    ],
)  # fmt: skip
def test_skills_are_those_of_the_cases_where_answers_are_public(
    benchmark: Benchmark, expected: dict[str, set[str]]
) -> None:
    assert skills_of(benchmark, None) == expected


def test_prompts_of_a_common_skill_are_compared_within_it() -> None:
    some = questions(24)
    skills = {f"p{i}": frozenset({"even"} if i % 2 == 0 else {"odd"}) for i in range(24)}
    crossing = crossed(some, b"key", skills)
    assert crossing.alike is not None and crossing.alike.sum() == 2 * 12 * 12
    found = control(honest, some, skills)
    assert found.within is not None and found.within.low > 0.9


@cache
def demo(name: str) -> Crossing:
    benchmark = load_registry()[name]
    return crossed(benchmark.questions(None), b"key", skills_of(benchmark, None))


@pytest.mark.first_quick
@pytest.mark.parametrize("name", ["demo_croc", "demo_ts2", "demo_evalmuse", "demo_gecko"])
def test_the_bundled_benchmarks_have_prompts_and_skills_enough(name: str) -> None:
    assert len(demo(name).texts) == SIZE
    found = controls(FakeClient(lambda batch: [-float(len(p)) for _, p in batch]), demo(name))
    assert (found.prompt.verdict, found.prompt.within is None) == ("blind", False)
    assert found.content.moved_by == ("length",)


def test_the_control_stands_in_the_report_and_keeps_nobody_from_ranking() -> None:
    some = questions()
    trial = tried(FakeClient(brightness), some, "made_up")
    found = both(brightness)
    report = trial.with_controls(found.prompt, found.content).after(trial.scores)
    assert (report.blind, report.moved_by_changes, report.why_not) == (True, True, "")
    assert not (trial.report.blind or trial.report.moved_by_changes)
    assert TrustReport.model_validate_json(report.model_dump_json()) == report


# Controls of one that compares


class Comparer:
    """Compares two images of a prompt with a function of their brightness and what it asks for."""

    asks_elements = False
    peak_memory_bytes = 0
    environment: ClassVar[dict[str, str]] = {"dtype": "float32"}

    def __init__(self, margin: Callable[[float, float, float], float]) -> None:
        self._margin = margin
        self.asked = 0

    def ready(self, data: bytes) -> Ready:
        return Ready(data, len(data))

    def ask(self, items: Sequence[Item]) -> Reply:
        assert len({one.asked[0].pair_id for one in items}) == len(items)
        return Reply(tuple((self._verdict(one),) for one in items))

    def _verdict(self, item: Item) -> Verdict:
        self.asked += 1
        both = unpacked(item.image.content)
        assert both is not None
        a, b = (float(np.asarray(opened(one)).mean()) for one in both)
        return Verdict.of(self._margin(float(item.asked[0].prompt), a, b))


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("margin", "verdict"),
    [
        (lambda wanted, a, b: abs(b - wanted) - abs(a - wanted), "uses_the_prompt"),
        (lambda _, a, b: a - b, "blind"),
        (lambda _wanted, _a, _b: 1.0, "blind"),
    ],
    ids=["honest", "prefers the brighter one", "prefers the first one"],
)
def test_a_metric_that_compares_is_asked_about_each_image_against_the_prompts_own(
    margin: Callable[[float, float, float], float], verdict: str
) -> None:
    client = Comparer(margin)
    found = controls(client, crossed(questions(), b"key"), compares=True)
    assert found.prompt.verdict == verdict
    assert (found.prompt.n_missing, found.prompt.n_empty, found.prompt.empty_change) == (0, 0, None)
    assert "empty" not in "".join(map("".join, prompt_figures(found.prompt)))
    assert found.prompt.raw is not None
    assert found.prompt.raw.value == (1.0 if verdict == "uses_the_prompt" else 0.5)
    assert client.asked == 2 * (SIZE * (SIZE - 1) + 6 * SIZE)
    assert [one.name for one in found.content.changes] == [n for n in CHANGES if n != "length"]
    assert all(not one.n_missing for one in found.content.changes)


class Preferring(Comparer):
    """Compares by the scores of a judge: their difference, or which one is larger."""

    def __init__(self, judge: Judge, *, choose: bool) -> None:
        super().__init__(lambda _wanted, a, b: float(np.sign(a - b)) if choose else a - b)
        self._judge = judge

    def _verdict(self, item: Item) -> Verdict:
        both = unpacked(item.image.content)
        assert both is not None
        a, b = self._judge([(opened(one), item.asked[0].prompt) for one in both])
        return Verdict.of(self._margin(0.0, a, b))


def slightly(batch: Batch) -> list[float]:
    """The match, and between equal matches the brighter image."""
    return [t + b / 1e6 for t, b in zip(told(batch), brightness(batch), strict=True)]


@pytest.mark.first_quick
@pytest.mark.parametrize("choose", [False, True], ids=["margins", "choices"])
@pytest.mark.parametrize(
    ("judge", "moved"),
    [(slightly, set()), PLANTED["loves detail"]],
    ids=["match", "detail"],
)
def test_a_preference_that_the_match_outweighs_moves_no_comparison(
    judge: Judge, moved: set[ChangeName], *, choose: bool
) -> None:
    """Beside itself the least preference would decide: an image is changed beside another one."""
    crossing = crossed(painted(), b"key")
    found = controls(Preferring(judge, choose=choose), crossing, compares=True).content
    assert {one.name for one in found.changes if one.verdict == "moved"} == moved
    assert found.verdict == ("moved" if moved else "steady")
