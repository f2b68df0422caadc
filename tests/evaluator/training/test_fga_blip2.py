"""FGA-BLIP2's recipe: losses, gradients, what is trained, and scores that are those of the built-in metric."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.evalmuse.load import EvalMuseAnswers
from benchmarks.evalmuse.protocol import EvalMuse
from benchmarks.schema import Pair, Questions
from evaluator.training.checkpoints import TrainingFolder
from evaluator.training.data import TrainingData
from evaluator.training.loop import Prepared, RunOptions, train
from evaluator.training.recipe import Schedule, find_recipe
from evaluator.training.recipes.fga_blip2 import UNFOUND, FgaRecipe, FgaSettings
from tests.evaluator.scorers import tiny_models
from tests.evaluator.scorers.common import later, refusal, torch
from tests.evaluator.training.test_croc_rows import syn_data
from tests.evaluator.training.toy_recipe import Killed, killed_at, same_weights
from tests.kit.pictures import encoded

network = later("evaluator.training.fga.network")
losses = later("evaluator.training.fga.network")

PROMPTS = ("a red cat on the mat", "two dogs and a big, small house.", "a man in a blue hat")
PICTURES = [tiny_models.picture(1), tiny_models.picture(2, 90, 60), tiny_models.picture(3, 40, 70)]
RNG = np.random.default_rng(0)
OPTIONS = RunOptions(seed=5, checkpoint_every=3)


def calm(tokenizer: Any, **more: Any) -> Any:
    """BLIP-2 without dropout; its query tokens, which the library creates as zeros, drawn."""
    model = tiny_models.blip2_matching(tokenizer, **more)
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    torch.nn.init.normal_(model.query_tokens, std=0.02, generator=torch.Generator().manual_seed(1))
    return model


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = tiny_models.word_tokenizer()
    return tiny_models.saved(
        tmp_path_factory.mktemp("base"), calm(tokenizer), tokenizer, tiny_models.square()
    )


def data_of(
    ratings: list[float], labels: list[dict[str, float]], prompts: tuple[str, ...] = PROMPTS
) -> TrainingData:
    """An image of each prompt."""
    ids = [f"i{at}" for at in range(len(prompts))]
    images = pd.DataFrame(
        {
            "pair_id": ids,
            "prompt_id": [f"p {prompt}" for prompt in prompts],
            "prompt": prompts,
            "split": "real",
            "label": ratings,
        }
    )
    elements = pd.DataFrame(
        [(ids[at], key, "object", v) for at, its in enumerate(labels) for key, v in its.items()],
        columns=["pair_id", "element_id", "skill", "label"],
    )
    questions = Questions(
        {ids[at]: partial(encoded, tiny_models.picture(at, 50, 40)) for at in range(len(ids))},
        {f"p {prompt}": prompt for prompt in prompts},
        tuple(Pair(one, one, f"p {prompt}") for one, prompt in zip(ids, prompts, strict=True)),
    )
    answers = EvalMuseAnswers(tuple(ids), tuple(sorted({*images["prompt_id"]})), images, elements)
    return TrainingData(EvalMuse.__new__(EvalMuse), questions, answers)


LABELS: list[dict[str, float]] = [
    {"red (color)": 1.0, "cat (animal)": 0.5},
    {"two dogs (counting)": 0.0, "house (object)": 1.0},
    {"man (human)": 1.0, "blue hat (object)": 0.25},
]
DATA = data_of([4.0, 1.5, 3.0], LABELS)


# Losses


@pytest.mark.parametrize("by_elements", [False, True])
def test_losses_are_those_of_the_paper(by_elements: bool) -> None:
    n, places = 4, 6
    rng = np.random.default_rng(1)
    overall, rating = rng.uniform(1, 5, (2, n))
    tokens, mask, scores = rng.uniform(0, 1, (3, n, places))
    wanted = (rng.uniform(0, 1, (n, places)) < 0.5).astype(float)
    wanted[:, 0] = 1
    scores *= wanted
    weight = np.exp(rng.uniform(0, 1, n))
    weight[0] = 1.0  # of variance 0
    terms = []
    for i in range(n):
        l_os = abs(overall[i] - rating[i])
        off = [abs(tokens[i, t] * wanted[i, t] - scores[i, t]) for t in range(places)]
        l_es = sum(off) / (wanted[i].sum() if by_elements else places)
        l_mask = sum(abs(mask[i, t] - wanted[i, t]) for t in range(places)) / places
        terms.append((weight[i] * (l_os + 0.1 * l_es + 0.1 * l_mask), l_os, l_es, l_mask))
    as_tensors = [torch.tensor(each) for each in (overall, tokens, mask)]
    found = losses.fga_losses(
        losses.Outputs(*as_tensors),
        losses.Targets(*(torch.tensor(each) for each in (rating, scores, wanted, weight))),
        by_elements=by_elements,
    )
    names = ("total", "overall", "elements", "mask")
    assert [found[name].item() for name in names] == pytest.approx(np.mean(terms, axis=0))


def test_what_the_network_says_is_what_the_library_computes(base: Path) -> None:
    recipe = FgaRecipe(FgaSettings(base=str(base)))
    model: Any = recipe.build("cpu")
    batch = recipe.collate(recipe.examples(DATA).examples, RNG)
    with torch.no_grad():
        said = model(batch["pixels"], batch["ids"], batch["attention"])
        library = model.blip2(
            pixel_values=batch["pixels"],
            input_ids=batch["ids"],
            attention_mask=batch["attention"],
            use_image_text_matching_head=True,
        ).text_model_output.last_hidden_state
        match = model.blip2.itm_head(library).softmax(dim=2)[..., 1]
        features = model.blip2.qformer(
            query_embeds=model.blip2.embeddings(input_ids=batch["ids"]),
            query_length=0,
            attention_mask=batch["attention"],
        ).last_hidden_state
    queries = match[:, :4].numpy()
    np.testing.assert_allclose(said.overall, 1 + 4 * queries.mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(said.tokens, match[:, 4:], atol=1e-6)
    hidden = features.double().numpy()
    layers = [one for one in model.mask_head.layers if isinstance(one, torch.nn.Linear)]
    for depth, layer in enumerate(layers):
        hidden = hidden @ layer.weight.detach().double().numpy().T + layer.bias.detach().numpy()
        hidden = np.maximum(hidden, 0) if depth < 4 else 1 / (1 + np.exp(-hidden[..., 0]))
    assert [len(layer.bias) for layer in layers] == [256, 128, 64, 16, 1]
    np.testing.assert_allclose(said.mask, hidden, atol=1e-6)
    np.testing.assert_allclose(
        recipe.score(model, [tiny_models.picture(at, 50, 40) for at in range(3)], PROMPTS),
        said.overall,
        atol=1e-5,
    )


# Gradients


def test_gradients_are_finite_differences_and_the_vision_tower_has_none(base: Path) -> None:
    recipe = FgaRecipe(FgaSettings(base=str(base), places=16))
    model: Any = recipe.build("cpu").double()
    batch = recipe.collate(recipe.examples(DATA).examples, RNG)
    batch = {k: v.double() if v.is_floating_point() else v for k, v in batch.items()}

    def total() -> Any:
        return recipe.losses(model, batch)["total"]

    total().backward()
    vision = dict(model.blip2.vision_model.named_parameters())
    assert vision and all(one.grad is None for one in vision.values())
    watched = {
        "query tokens": model.blip2.query_tokens,
        "matching head": model.blip2.itm_head.weight,
        "mask head": model.mask_head.layers[0].weight,
        "words": model.blip2.embeddings.word_embeddings.weight,
    }
    step = 1e-6
    for name, weight in watched.items():
        at = np.unravel_index(int(weight.grad.abs().argmax()), weight.shape)
        with torch.no_grad():
            kept = weight[at].item()
            weight[at] = kept + step
            above = total().item()
            weight[at] = kept - step
            below = total().item()
            weight[at] = kept
        slope = (above - below) / (2 * step)
        assert weight.grad[at].item() == pytest.approx(slope, rel=1e-5), name
        assert abs(slope) > 1e-6, name


def test_the_mask_loss_reaches_neither_the_matching_head_nor_the_queries(base: Path) -> None:
    recipe = FgaRecipe(FgaSettings(base=str(base)))
    model: Any = recipe.build("cpu")
    recipe.losses(model, recipe.collate(recipe.examples(DATA).examples, RNG))["mask"].backward()
    assert model.blip2.itm_head.weight.grad is None
    assert model.blip2.query_tokens.grad is None
    assert model.mask_head.layers[0].weight.grad.any()


@pytest.mark.parametrize(("variant", "norm"), [("paper", False), ("released", True)])
def test_the_norm_behind_the_vision_tower_is_trained_as_released(
    base: Path, variant: Any, norm: bool
) -> None:
    model: Any = FgaRecipe(FgaSettings(base=str(base), variant=variant)).build("cpu")
    trained = {name for name, one in model.named_parameters() if one.requires_grad}
    vision = {name for name in trained if ".vision_model." in name}
    names = {f"blip2.vision_model.post_layernorm.{each}" for each in ("weight", "bias")}
    assert vision == (names if norm else set())
    assert not {name for name in trained if "_projection." in name}
    assert {"blip2.query_tokens", "blip2.itm_head.weight", "mask_head.layers.8.bias"} <= trained


@pytest.mark.slow
def test_the_mask_head_learns_from_the_default_start_and_stays_at_chance_from_the_released() -> (
    None
):
    """Tokens are drawn anew in every step, as many as a batch of 14 prompts has.

    The rate is three times that of the paper, so that 500 steps are enough.
    """
    found = {}
    for start in ("default", "released"):
        rng = torch.Generator().manual_seed(0)
        direction = torch.randn(768, generator=rng)
        torch.manual_seed(0)
        head = network.MaskHead(768, start)
        optimiser = torch.optim.AdamW(head.parameters(), lr=3e-5, weight_decay=0.05)
        for _ in range(500):
            features = torch.randn(14 * 32, 768, generator=rng)
            wanted = (features @ direction > 0).float()
            said = head(features)
            optimiser.zero_grad()
            (said - wanted).abs().mean().backward()
            optimiser.step()
        right = ((said > 0.5) == (wanted > 0.5)).float().mean().item()
        found[start] = right, (said.max() - said.min()).item()
    assert found["default"][0] > 0.85
    assert abs(found["released"][0] - 0.5) < 0.1
    assert found["released"][1] < 1e-4  # the same for all tokens


# As a recipe


def test_images_with_an_element_that_is_not_found_are_left_out_and_counted(base: Path) -> None:
    assert find_recipe("fga-blip2") is FgaRecipe
    labels = [*LABELS[:2], {"man (human)": 1.0, "woman (human)": 0.0}]
    found = FgaRecipe(FgaSettings(base=str(base))).examples(data_of([4.0, 1.5, 3.0], labels))
    assert [one.example_id for one in found.examples] == ["i0", "i1"]
    assert found.dropped == {UNFOUND: 1}


def test_a_batch_holds_resized_images_cleaned_prompts_and_the_targets(base: Path) -> None:
    recipe = FgaRecipe(FgaSettings(base=str(base), places=12))
    batch = recipe.collate(recipe.examples(DATA).examples, RNG)
    words = tiny_models.word_tokenizer().convert_ids_to_tokens(batch["ids"][1])
    assert words[:11] == [
        "[CLS]", "two", "dog", "##s", "and", "a", "big", ",", "small", "house", "[SEP]",
    ]  # fmt: skip
    assert batch["mask"][1].tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0]
    assert batch["scores"][0, :4].tolist() == [0.75, 0, 1, 0.5]
    assert batch["weight"].tolist() == [1, 1, 1]  # each prompt has one image
    own = tiny_models.square()(images=tiny_models.picture(0, 50, 40), return_tensors="pt")[
        "pixel_values"
    ][0]
    assert torch.equal(batch["pixels"][0], own)


def test_weights_come_from_the_training_part_and_are_left_out_as_released(base: Path) -> None:
    data = data_of([1.0, 5.0, 3.0], LABELS[:1] * 3, (PROMPTS[0],) * 3)
    weights = {
        variant: {one.content[1] for one in recipe.examples(data).examples}
        for variant in ("paper", "released")
        for recipe in [FgaRecipe(FgaSettings(base=str(base), variant=variant))]
    }
    assert weights == {"paper": {np.exp(4.0)}, "released": {1.0}}
    assert FgaSettings(variant="released").weighting == "none"
    assert FgaSettings(variant="released", weighting="clipped").weighting == "clipped"


@pytest.mark.parametrize(
    ("variant", "rates"),
    [
        ("paper", {0: 1.0, 250: 0.5, 500: 0.0}),
        (
            "released",
            {0: 1e-3, 50: 0.5005, 100: 0.9045, 199: 0.9045, 200: 0.6545, 300: 0.3455, 499: 0.0955},
        ),
    ],
)
def test_the_rate_falls_to_zero_by_step_or_as_released_by_epoch(
    variant: Any, rates: dict[int, float]
) -> None:
    recipe = FgaRecipe(FgaSettings(variant=variant))
    found = {step: recipe.rate(Schedule(step, 500, 100)) for step in rates}
    assert found == pytest.approx(rates, abs=1e-4)


def test_only_weights_of_two_dimensions_decay(base: Path) -> None:
    recipe = FgaRecipe(FgaSettings(base=str(base)))
    model: Any = recipe.build("cpu")
    decays, stays = recipe.parameter_groups(model)
    assert all(one.ndim > 1 for one in decays["params"]) and "weight_decay" not in decays
    assert all(one.ndim <= 1 for one in stays["params"]) and stays["weight_decay"] == 0
    trained = [one for one in model.parameters() if one.requires_grad]
    assert len(decays["params"]) + len(stays["params"]) == len(trained)


def test_data_without_ratings_is_refused(base: Path, tmp_path: Path) -> None:
    with refusal("unfit_data"):
        FgaRecipe(FgaSettings(base=str(base))).examples(syn_data(tmp_path))


def test_a_base_of_a_folder_is_told_by_its_files(base: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(base, tmp_path / "copy")
    one, other = (FgaRecipe(FgaSettings(base=str(each))) for each in (base, copy))
    assert one.base() == other.base()
    (copy / "model.safetensors").write_bytes(b"other")
    assert one.base() != FgaRecipe(FgaSettings(base=str(copy))).base()


@pytest.mark.parametrize(("from_hub", "max_words"), [(False, 50), (True, 3)])
def test_the_exported_module_gives_the_recipes_scores(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_hub: bool, max_words: int
) -> None:
    recipe = FgaRecipe(FgaSettings(base=str(base), max_words=max_words))
    model: Any = recipe.build("cpu")
    with torch.no_grad():
        model.blip2.itm_head.bias += torch.tensor([0.3, -0.2])
    if from_hub:
        object.__setattr__(recipe._source, "revision", "0" * 40)
    said = recipe.export(model, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "element_spans", raising=False)
    spec = importlib.util.spec_from_file_location("exported_fga", tmp_path / "scorer.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    models = {"nobody/base": str(base)} if from_hub else None
    assert [one.partition("@")[2] for one in said.models] == ["0" * 40] * from_hub
    scorer = module.Scorer(weights=str(tmp_path / said.weights), models=models)
    images = [scorer.prepare(image) for image in PICTURES]
    wanted = recipe.score(model, PICTURES, PROMPTS)
    assert scorer.score(images, list(PROMPTS)) == pytest.approx(wanted, abs=1e-5)
    assert scorer.score_texts(images[:1], [list(PROMPTS)])[0][0] == pytest.approx(
        wanted[0], abs=1e-5
    )
    elements = [["red (color)", "unicorn (animal)"], ["house"], ["blue hat (object)"]]
    built_in = recipe._scorer(model)
    pixels = [built_in.prepare(image) for image in PICTURES]
    for found, own in zip(
        scorer.score_elements(images, list(PROMPTS), elements),
        built_in.score_elements(pixels, list(PROMPTS), elements),
        strict=True,
    ):
        assert found == pytest.approx(own, abs=1e-5, nan_ok=True)
    long = " ".join(["cat"] * 51)
    assert scorer.truncated([PROMPTS[0], long]) == built_in.truncated([PROMPTS[0], long])


@pytest.mark.slow
def test_a_run_learns_and_gives_the_same_weights_when_it_is_interrupted(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = FgaSettings(base=str(base), batch=2, steps=12, rate=1e-3)

    def run(folder: str) -> Any:
        recipe = FgaRecipe(settings)
        prepared = Prepared(recipe.examples(DATA).examples, None, "toy")
        return train(recipe, prepared, TrainingFolder(tmp_path / folder), OPTIONS)

    whole = run("whole")
    assert whole.log[-1]["losses"]["total"] < whole.log[0]["losses"]["total"]
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(FgaRecipe, "losses", killed_at(8, FgaRecipe.losses))
        run("again")
    assert same_weights(run("again").model.state_dict(), whole.model.state_dict())
