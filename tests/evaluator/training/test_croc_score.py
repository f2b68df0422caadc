"""CROCScore's recipe: targets and loss, what is trained, and scores that are those of the built-in metric."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from evaluator.scorers.answering import Reading
from evaluator.scorers.registry import Runtime, find_row, load_rows, load_scorer
from evaluator.training.checkpoints import TrainingFolder
from evaluator.training.loop import Prepared, RunOptions, train
from evaluator.training.recipe import Example, Recipe, find_recipe
from evaluator.training.recipes.croc_score import CrocRecipe, CrocSettings, usual_reading
from tests.evaluator.scorers import tiny_models
from tests.evaluator.scorers.common import later, refusal, torch
from tests.evaluator.scorers.test_vlms import native_state, save_phi4
from tests.evaluator.training import toy_recipe
from tests.evaluator.training.test_croc_rows import syn_data
from tests.kit.pictures import encoded

batches = later("evaluator.training.croc.batches")
vlm_inputs = later("evaluator.scorers.models.vlm_inputs")

CAPTIONS = ("two dogs", "a very long caption of a small green house", "a red <|im_end|> cube")
PICTURES = [tiny_models.picture(1), tiny_models.picture(2, 90, 60), tiny_models.picture(3, 40, 70)]
OPTIONS = RunOptions(seed=3, checkpoint_every=4)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chat VLM with three layers, of which two are the last."""
    return tiny_models.saved(
        tmp_path_factory.mktemp("base"), *tiny_models.qwen2_vl(num_hidden_layers=3)
    )


def built(base: Path, **settings: Any) -> tuple[CrocRecipe, Any]:
    recipe = CrocRecipe(CrocSettings(base=str(base), **settings))
    return recipe, recipe.build("cpu")


@pytest.fixture(scope="module")
def tiny(base: Path) -> tuple[CrocRecipe, Any]:
    return built(base)


def examples_of(captions: Sequence[str], pictures: Sequence[Image.Image]) -> list[Example]:
    """Every second one shows its caption, the first among them."""
    return [
        Example(f"{at}", (text,), {f"{at}": partial(encoded, image)}, at % 2 == 0)
        for at, (text, image) in enumerate(zip(captions, pictures, strict=True))
    ]


EXAMPLES = examples_of(CAPTIONS, PICTURES)
RNG = np.random.default_rng(0)


def asked(recipe: CrocRecipe, caption: str) -> str:
    return str(recipe.settings.question.replace("{}", caption))


# Targets and loss


def test_only_the_answer_is_a_target_and_of_it_the_first_token_a_label(tiny: Any) -> None:
    recipe, _ = tiny
    (batch,) = recipe.collate(EXAMPLES, RNG)
    tokenizer = recipe._text.tokenizer
    for targets, mask, answer in zip(
        batch["targets"], batch["attention_mask"], ("Yes", "No", "Yes"), strict=True
    ):
        wanted = [*tokenizer.encode(answer), tokenizer.eos_token_id]
        assert targets[targets != batches.IGNORED].tolist() == wanted
        assert targets[: int(mask.sum())][-2:].tolist() == wanted  # the last that is read
    first = batches.labels_of(batch["targets"], first_only=True)
    assert (first != batches.IGNORED).sum(dim=1).tolist() == [1, 1, 1]
    assert torch.equal(batches.labels_of(batch["targets"], first_only=False), batch["targets"])


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_the_loss_is_that_of_the_answers_log_probabilities(base: Path, variant: str) -> None:
    recipe, model = built(base, variant=variant)
    found = recipe.losses(model, recipe.collate(EXAMPLES[:2], RNG))
    its = (model, recipe._processor)
    tokenizer = recipe._text.tokenizer
    logprobs = torch.stack(
        [
            tiny_models.independent_logprobs(
                its, image, asked(recipe, text), [*tokenizer.encode(answer), tokenizer.eos_token_id]
            )
            for image, text, answer in zip(PICTURES, CAPTIONS, ("Yes", "No"), strict=False)
        ]
    )
    answer, end = (-logprobs.mean(dim=0)).tolist()
    assert found["answer"].item() == pytest.approx(answer, abs=1e-5)
    assert found["end"].item() == pytest.approx(end, abs=1e-5)
    total = answer if variant == "paper" else (answer + end) / 2
    assert found["total"].item() == pytest.approx(total, abs=1e-5)


def test_padding_on_the_right_changes_no_loss(tiny: Any) -> None:
    recipe, model = tiny
    together = recipe.losses(model, recipe.collate(EXAMPLES, RNG))
    alone = [recipe.losses(model, recipe.collate([one], RNG)) for one in EXAMPLES]
    for name, value in together.items():
        mean = sum(one[name].item() for one in alone) / len(alone)
        assert value.item() == pytest.approx(mean, abs=1e-5)


def test_images_whose_inputs_cannot_be_joined_make_batches_of_their_own() -> None:
    def row(*shape: int) -> Any:
        ids = torch.arange(3)
        prompt = vlm_inputs.ImagePrompt(ids, {}, {"pixel_values": torch.zeros(1, *shape)})
        return batches.Answered(prompt, torch.tensor([4, 5]))

    found = batches.padded_batches([row(3, 4), row(2, 4), row(3, 4)], 0)
    assert [tuple(one["pixel_values"].shape) for one in found] == [(2, 3, 4), (1, 2, 4)]


# What is trained


def test_a_step_changes_vision_and_the_last_two_layers_and_nothing_else(base: Path) -> None:
    recipe, model = built(base)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    optimiser = torch.optim.AdamW(recipe.parameter_groups(model)[0]["params"], lr=1e-3)
    recipe.losses(model, recipe.collate(EXAMPLES, RNG))["total"].backward()
    optimiser.step()
    changed = {
        name for name, value in model.named_parameters() if not torch.equal(value, before[name])
    }
    parts = ("model.visual.", "model.language_model.layers.1.", "model.language_model.layers.2.")
    assert changed == {name for name in before if name.startswith(parts)}


def test_a_head_of_its_own_is_trained_where_that_is_asked_for(base: Path) -> None:
    _, model = built(base, head=True)
    assert model.lm_head.weight.requires_grad
    assert not model.get_input_embeddings().weight.requires_grad


def test_bases_that_cannot_be_trained_so_are_refused() -> None:
    with refusal("head_tied"):
        batches.freeze_but_vision_and_last_layers(tiny_models.gemma3()[0], head=True)
    model, processor = tiny_models.paligemma()
    with refusal("unfit_base", "both directions"):
        batches.refuse_looking_ahead(model, vlm_inputs.ChatText(processor, Reading()))


@pytest.mark.slow
def test_eight_captions_are_learnt_and_an_interrupted_run_gives_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processor = tiny_models.qwen2_vl(num_hidden_layers=3)
    # The frozen head of a random model is too flat for a probability of 0.9.
    model.lm_head.weight.data *= 4
    base = tiny_models.saved(tmp_path / "base", model, processor)
    words = ("red", "blue", "green", "black", "white", "brown", "pink", "grey")
    captions = [f"a {word} thing" for word in words]
    pictures = [tiny_models.picture(seed) for seed in range(8)]
    settings = CrocSettings(
        base=str(base), batch=8, accumulate=1, steps=30, rate=3e-3, warmup_steps=4
    )
    prepared = Prepared(tuple(examples_of(captions, pictures)), None, "8")

    def run(folder: str) -> tuple[CrocRecipe, Any]:
        recipe = CrocRecipe(settings)
        return recipe, train(recipe, prepared, TrainingFolder(tmp_path / folder), OPTIONS).model

    recipe, whole = run("whole")
    with torch.no_grad():
        scores = recipe.score(whole, pictures, captions)
    assert min(scores[::2]) > 0.9 and max(scores[1::2]) < -0.9
    with monkeypatch.context() as patch, pytest.raises(toy_recipe.Killed):
        patch.setattr(CrocRecipe, "losses", toy_recipe.killed_at(15, CrocRecipe.losses))
        run("again")
    assert toy_recipe.same_weights(run("again")[1].state_dict(), whole.state_dict())


# Scores


def test_scores_of_a_batch_are_those_of_each_pair_alone(tiny: Any) -> None:
    recipe, model = tiny
    together = recipe.score(model, PICTURES, CAPTIONS)
    alone = [
        recipe.score(model, [one], [text])[0] for one, text in zip(PICTURES, CAPTIONS, strict=True)
    ]
    assert together == pytest.approx(alone, abs=1e-7)
    assert len(set(together)) == 3


def exported(recipe: Recipe, model: Any, folder: Path) -> Any:
    """What the exported module's scorer is, as a sandbox loads it."""
    said = recipe.export(model, folder)
    assert (folder / said.weights).is_file()
    spec = importlib.util.spec_from_file_location("exported", folder / "scorer.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    scorer = module.Scorer(weights=str(folder / said.weights))
    own = module.Scorer(models={"nobody/trained": str(folder / "checkpoint")})
    pairs = [scorer.prepare(image) for image in PICTURES], list(CAPTIONS)
    assert own.score(*pairs) == scorer.score(*pairs)
    return scorer.score(*pairs)


def by_row(recipe: CrocRecipe, folder: Path, **options: Any) -> Any:
    """The same by the built-in metric, whose checkpoint the exported one is."""
    row = find_row("crocscore", load_rows())
    row = row.model_copy(update={"options": {**row.options, "reading": {}, **options}})
    runtime = Runtime(folders={"model": folder / "checkpoint"}, dtype="float32")
    scorer: Any = load_scorer(row, runtime).scorer
    return scorer.score([scorer.prepare(image) for image in PICTURES], list(CAPTIONS))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("qwen2_vl", {}),
        pytest.param("qwen2_vl", {"reduce": "p_yes_norm"}, marks=pytest.mark.slow),
        pytest.param(
            "qwen2_vl",
            {"text_format": "Look: {image} {prompt} Answer:", "square": "pad"},
            marks=pytest.mark.slow,
        ),
        pytest.param("qwen2_5_vl", {"pixels": 2000}, marks=pytest.mark.slow),
        pytest.param(
            "qwen3_vl",
            {"square": "squash", "side": 48},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_exported_module_and_the_built_in_metric_give_the_recipes_scores(
    kind: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    recipe, model = built(
        tiny_models.saved(tmp_path / "base", *tiny_models.MAKERS[kind]()), **settings
    )
    (tmp_path / "out").mkdir()
    wanted = recipe.score(model, PICTURES, CAPTIONS)
    assert exported(recipe, model, tmp_path / "out") == pytest.approx(wanted, abs=1e-5)
    options = {"reading": recipe._reading.model_dump(), "reduce": recipe.settings.reduce}
    assert by_row(recipe, tmp_path / "out", **options) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.slow
def test_phi_4_is_trained_by_its_native_class_with_the_vision_lora_merged(
    tmp_path: Path,
) -> None:
    (tmp_path / "phi4").mkdir()
    phi4 = save_phi4(tmp_path / "phi4", native_state())
    text_format = "<|user|>{image}{prompt}<|end|><|assistant|>"
    recipe, model = built(phi4, text_format=text_format, square="squash", side=448)
    trained = {name for name, one in model.named_parameters() if one.requires_grad}
    parts = ("model.embed_tokens_extend.image_embed.", "model.layers.")
    assert trained and all(name.startswith(parts) for name in trained)
    batch = recipe.collate(EXAMPLES[:2], RNG)
    assert {"image_pixel_values", "image_sizes", "image_attention_mask"} <= set(batch[0])
    recipe.losses(model, batch)["total"].backward()
    (tmp_path / "out").mkdir()
    with torch.no_grad():
        wanted = recipe.score(model.eval(), PICTURES, CAPTIONS)
    assert exported(recipe, model, tmp_path / "out") == pytest.approx(wanted, abs=1e-5)
    reading = recipe._reading.model_dump()
    assert by_row(recipe, tmp_path / "out", reading=reading) == pytest.approx(wanted, abs=1e-5)


# As a recipe


@pytest.mark.parametrize(
    "settings", [{"question": "Is it?"}, {"question": "{} {}"}, {"square": "squash"}]
)
def test_settings_that_cannot_ask_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CrocSettings(**settings)


def test_it_makes_an_example_of_every_row_of_croc(tmp_path: Path) -> None:
    assert find_recipe("crocscore") is CrocRecipe
    data = syn_data(tmp_path)
    found = CrocRecipe().examples(data)
    assert len(found.examples) == 6  # a caption and its contrast of two properties and a placement
    assert found.dropped == {"caption that came before": 16, "caption not drawn": 2}
    for one in found.examples:
        (image,) = one.images
        side = "contrast_prompts" if ("not" in one.prompts[0]) == one.content else "prompts"
        assert f"/{side}/" in image


def test_phi_4_is_asked_as_the_built_in_metric_asks_it() -> None:
    options = find_row("crocscore", load_rows()).options
    assert CrocSettings().question == options["question"]
    assert usual_reading("phi4mm") == Reading.model_validate(options["reading"])
    assert usual_reading("qwen2_vl") == Reading()
