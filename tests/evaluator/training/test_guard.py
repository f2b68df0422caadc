"""The contamination guard: planted leaks are found, and what only looks alike is not taken for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from benchmarks.registry import load_registry
from evaluator.training.guard import GuardedExamples, HeldOut, guard, held_out_of
from evaluator.training.preparing import prepare
from evaluator.training.recipe import Example
from evaluator.training.recipes.dual_encoder import ContrastSides, DualEncoder
from tests.evaluator.training.demo_data import demo_croc, noise
from tests.kit.pictures import encoded
from tests.kit.refusals import refused


def example(
    name: str, prompt: str, image: Image.Image, form: str = "PNG", **how: object
) -> Example:
    data = encoded(image, form, **how)
    return Example(name, (prompt,), {f"{name}.image": partial(bytes, data)})


def held(
    prompt: str = "a red cup", image: Image.Image | None = None, name: str = "board"
) -> HeldOut:
    images = {"held": partial(bytes, encoded(image or noise(1)))}
    return HeldOut(name, "r1", (prompt,), images)


CLEAN = example("clean", "two dogs", noise(99))


def guarded(*examples: Example) -> GuardedExamples:
    return guard([CLEAN, *examples], [held()])


def almost(seed: int) -> Image.Image:
    """The image with one channel of one pixel changed by one."""
    pixels = np.array(noise(seed))
    pixels[0, 0, 0] ^= 1
    return Image.fromarray(pixels)


@pytest.mark.parametrize(
    ("leak", "reason"),
    [
        (example("x", "A Red  CUP ", noise(2)), "a prompt of board"),
        (example("x", "ａ red cup", noise(2)), "a prompt of board"),
        (example("x", '"A red cup".', noise(2)), "a prompt of board"),
        (example("x", "“a red cup”", noise(2)), "a prompt of board"),
        (example("x", "a\u200b red cup", noise(2)), "a prompt of board"),
        (replace(example("x", "no cup", noise(2)), made_of=("a red cup",)), "a prompt of board"),
        (example("x", "a blue cup", noise(1)), "an image of board"),
        (example("x", "a blue cup", noise(1), "WEBP", lossless=True), "an image of board"),
        (example("x", "a blue cup", noise(1), "BMP"), "an image of board"),
        (example("x", "a blue cup", noise(1), "PNG", compress_level=0), "an image of board"),
    ],
    ids=[
        "case and spacing",
        "Unicode form",
        "marks",
        "curly quotes",
        "an invisible space",
        "an image made of it",
        "the same file",
        "as WebP",
        "as BMP",
        "level",
    ],
)
def test_a_leak_is_dropped_and_counted_and_its_reason_told(leak: Example, reason: str) -> None:
    found = guarded(leak)
    assert found.examples == (CLEAN,)
    assert found.dropped == {reason: 1}
    (only,) = found.comparisons
    assert (only.name, only.revision, only.prompts, only.images, only.dropped) == (
        "board", "r1", 1, 1, 1,
    )  # fmt: skip


@pytest.mark.parametrize(
    "near",
    [
        example("x", "!!!", noise(2)),
        example("x", "a red cup on a table", noise(2)),
        example("x", "a blue cup", almost(1)),
        example("x", "a blue cup", noise(1).resize((16, 16), Image.Resampling.NEAREST)),
    ],
    ids=["marks alone", "a longer prompt", "one pixel", "scaled"],
)
def test_what_only_looks_alike_is_kept(near: Example) -> None:
    found = guarded(near)
    assert found.examples == (CLEAN, near) and not found.dropped


def test_an_example_that_leaks_twice_counts_once_and_in_each_comparison() -> None:
    leak = example("x", "a red cup", noise(1))
    found = guard([CLEAN, leak], [held(), held(name="other")])
    assert found.dropped == {"a prompt of board": 1}
    assert [one.dropped for one in found.comparisons] == [1, 1]


def test_the_digest_changes_with_pixels_and_prompts_and_not_with_the_encoding() -> None:
    same = [guarded(example("x", "p", noise(5), form)).digest for form in ("PNG", "BMP")]
    other = [
        guarded(example("x", "p", noise(6))).digest,
        guarded(example("x", "q", noise(5))).digest,
    ]
    assert same[0] == same[1] and len({same[0], *other}) == 3


def test_nothing_left_and_an_unreadable_image_are_told() -> None:
    with refused("nothing_left", "board (1)"):
        guard([example("x", "a red cup", noise(1))], [held()])
    broken = Example("x", ("p",), {"torn.png": partial(bytes, b"no image")})
    with refused("image_unreadable", "torn.png"):
        guarded(broken)


def gone() -> bytes:
    raise FileNotFoundError("gone.png")


@pytest.mark.parametrize("read", [gone, partial(bytes, b"no image")], ids=["gone", "damaged"])
def test_an_image_must_be_read_where_a_model_is_measured_on_it(read: Callable[[], bytes]) -> None:
    elsewhere = HeldOut("board", "r1", (), {"held.png": read})
    assert guard([CLEAN], [elsewhere]).comparisons[0].images == 0
    with refused("image_unreadable", "held.png"):
        guard([CLEAN], [replace(elsewhere, must_be_read=True)])


def test_the_digest_changes_with_labels_and_with_the_order_of_images() -> None:
    images = {name: partial(bytes, encoded(noise(seed))) for name, seed in (("a", 1), ("b", 2))}
    swapped = {name: images[other] for name, other in (("a", "b"), ("b", "a"))}
    contents = [
        np.array([1.0, 0.5]),
        np.array([1.0, 0.25]),
        ContrastSides((("x",), ("y",)), ("a", "b")),
    ]
    found = {
        guard([Example("x", ("p",), its, content)], []).digest
        for its in (images, swapped)
        for content in contents
    }
    assert len(found) == 6


def test_prompts_are_compared_where_nothing_else_is_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = dict(load_registry())
    here = registry["demo_gecko"]
    for name in ("has_questions", "has_answers"):
        monkeypatch.setattr(here, name, lambda _: False)
    table = pd.DataFrame({"prompt": ["a red cup", "a blue cup"]})
    monkeypatch.setattr(here, "prompts", lambda _: table)
    (only,) = held_out_of({"demo_gecko": here}, None, ())
    assert (only.images, only.texts) == (None, ("a red cup", "a blue cup"))
    monkeypatch.undo()
    for name in ("demo_evalmuse", "demo_gecko", "demo_ts2"):
        del registry[name]  # Their images are at hand, and take long to compare.
    found = prepare(DualEncoder(), demo_croc(), registry, None, seed=0)
    told = {one.name for one in found.comparisons}
    assert set(found.not_at_hand) == set(registry) - told - {"demo_croc"}


@pytest.mark.slow
def test_every_benchmark_at_hand_is_held_out_but_those_that_are_named() -> None:
    registry = load_registry()
    found = {one.name: one for one in held_out_of(registry, None, ["demo_ts2"])}
    assert {"demo_croc", "demo_gecko", "demo_evalmuse"} <= set(found)
    assert "demo_ts2" not in found
    croc = found["demo_croc"].images
    assert croc is not None and len(croc) == 384
    assert any(one.images is None and one.texts for one in found.values())
