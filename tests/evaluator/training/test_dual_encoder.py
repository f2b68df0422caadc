"""The recipe of the small dual encoder: its loss, its examples, and the module that comes out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.croc.load import CrocAnswers
from evaluator.metric import load_metric
from evaluator.scoring.images import decode
from evaluator.training.checkpoints import TrainingFolder
from evaluator.training.data import TrainingData
from evaluator.training.loop import Prepared, RunOptions, train
from evaluator.training.recipes.dual_encoder import (
    Batch,
    ContrastSides,
    DualEncoder,
    DualEncoderSettings,
)
from tests.evaluator.training.demo_data import demo_croc, noise
from tests.kit.pictures import encoded


def test_an_example_for_each_image_of_a_pair_with_one_of_the_other_side() -> None:
    data = demo_croc(4)
    found = DualEncoder().examples(data)
    pairs = data.answers.prompt_pairs  # type: ignore[attr-defined]
    sizes = [max(len(p.original_images), len(p.contrast_images)) for p in pairs]
    assert len(found.examples) == sum(sizes) and not found.dropped
    for one in found.examples:
        pair = next(p for p in pairs if one.example_id.startswith(f"{p.id}#"))
        assert one.prompts == (pair.prompt, pair.contrast)
        assert [image in side for image, side in
                zip(one.images, (pair.original_images, pair.contrast_images), strict=True)
                ] == [True, True]  # fmt: skip


def test_pairs_that_cannot_be_learned_from_are_dropped_with_the_reason() -> None:
    data = demo_croc(3)
    first, second, third = data.answers.prompt_pairs  # type: ignore[attr-defined]
    odd = (
        replace(first, prompt="a zebra", contrast="a unicorn"),
        replace(second, contrast_images=()),
        third,
    )
    assert isinstance(data.answers, CrocAnswers)
    answers = replace(data.answers, prompt_pairs=odd)
    found = DualEncoder().examples(replace(data, answers=answers))
    assert sorted(found.dropped.values()) == [1, 1]
    assert {one.example_id.partition("#")[0] for one in found.examples} == {third.id}


def test_losses_are_those_of_an_independent_computation() -> None:
    import torch

    torch.manual_seed(0)
    recipe = DualEncoder()
    model = recipe.build("cpu")
    images = {f"i{n}": (lambda n=n: encoded(noise(n, 64))) for n in range(5)}
    sides = [
        ContrastSides((("two red stars",), ("two blue stars",)), ("i0", "i1")),
        ContrastSides(
            (("a ring", "one ring"), ("a ring and a heart",)), ("i2", "i3"), (False, True)
        ),
        ContrastSides(
            (("two red stars",), ("a heart",)), ("i4", "i1")
        ),  # the first's text and image
    ]
    examples = [one.example(str(n), images) for n, one in enumerate(sides)]
    batch = recipe.collate(examples, np.random.default_rng(1))
    found = {name: value.item() for name, value in recipe.losses(model, batch).items()}
    assert found == pytest.approx(_losses(model, batch), abs=1e-5)


def _losses(model: Any, batch: Batch) -> dict[str, float]:
    """The same, row by row in numpy."""
    import torch

    with torch.inference_mode():
        images = model.images(batch.pictures).double().numpy()
        texts = model.texts(batch.sentences).double().numpy()
    sharpness = min(model.log_sharpness.exp().item(), 60)
    scores = sharpness * images @ texts.T
    wrong = batch.wrong.tolist()
    cross: dict[str, list[float]] = {"text_of_image": [], "image_of_text": []}
    hard = []
    twin = {0: 4, 4: 0, 1: 5, 5: 1}
    for row in range(6):
        beside = row ^ 1
        # What is not wrong is no candidate beside the right one.
        others = [c for c in range(6) if c != twin.get(row)]
        texts_of = [c for c in others if c != beside or wrong[row]]
        images_of = [c for c in others if c != beside or wrong[c]]
        cross["text_of_image"].append(_log_sum(scores[row, texts_of]) - scores[row, row])
        cross["image_of_text"].append(_log_sum(scores[images_of, row]) - scores[row, row])
        across = scores[row, beside]
        margins = (across - scores[row, row], across - scores[beside, beside])
        hard.append(wrong[row] * sum(float(np.log1p(np.exp(m))) for m in margins))
    terms = {name: float(np.mean(values)) for name, values in cross.items()}
    terms["contrast"] = float(np.mean(hard))
    return terms | {"total": sum(terms.values())}


def _log_sum(values: Any) -> float:
    return float(np.log(np.exp(values).sum()))


@cache
def _data() -> TrainingData:
    return demo_croc(10)


@pytest.mark.slow
def test_it_learns_its_examples_and_the_exported_module_gives_the_same_scores(
    tmp_path: Path,
) -> None:
    recipe = DualEncoder(DualEncoderSettings(batch=8, steps=60, warmup_steps=5))
    examples = recipe.examples(_data()).examples
    prepared = Prepared(examples, _data(), "ten pairs")
    trained = train(recipe, prepared, TrainingFolder(tmp_path / "run"), RunOptions())
    assert _data().headline(trained.rows).value > 0.6  # on what it saw
    (tmp_path / "module").mkdir()
    exported = recipe.export(trained.model, tmp_path / "module")
    (tmp_path / "module" / "assay.toml").write_text(
        f'name = "small"\nweights = "{exported.weights}"\nrange = [-1.0, 1.0]\n'
    )
    pairs = _data().questions.pairs[:6]
    images = [decode(_data().questions.images[pair.image_id]()).image for pair in pairs]
    texts = [_data().questions.texts[pair.text_id] for pair in pairs]
    with load_metric(str(tmp_path / "module")) as metric:
        assert list(metric.score(images, texts)) == recipe.score(trained.model, images, texts)
