"""FGA-BLIP2: BLIP-2's matching head tuned on ratings of whole prompts and of their elements."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from benchmarks.errors import SubmitterError
from benchmarks.evalmuse.load import EvalMuseAnswers
from evaluator.scorers.models import element_spans
from evaluator.scorers.models.element_spans import ElementFinder
from evaluator.scorers.registry import Runtime
from evaluator.scoring.images import decode
from evaluator.training.base import base_row, benchmarks_of, content_of
from evaluator.training.data import TrainingData
from evaluator.training.fga.targets import Weighting, prompt_weights, token_targets
from evaluator.training.recipe import (
    Count,
    Example,
    Examples,
    ExportedModule,
    NotNegative,
    Positive,
    Recipe,
    Schedule,
    TrainingSettings,
    cosine,
)

if TYPE_CHECKING:
    from PIL import Image
    from torch import Tensor, nn

    from evaluator.scorers.checkpoints import Source

UNFOUND = "an element is not in the prompt as the model reads it"
_WARM_UP_FROM = 1e-3
_LONGEST = 512
_TEXTS_TOGETHER = 64
_SCORER = Path(__file__).parents[1] / "fga" / "scorer.py"


class FgaSettings(TrainingSettings):
    """Of FGA-BLIP2; 5 epochs, learning rate from 1e-5 to 0."""

    variant: Literal["paper", "released"] = "paper"
    """`released`: the rate rises from a thousandth and then falls from epoch to epoch, and the norm
    behind the vision tower is trained, as in the authors' code; if they are not named, `weighting` is
    `none` and `warmup_steps` 100."""
    batch: Count = 14
    epochs: Count = 5
    rate: Positive = 1e-5
    weight_decay: NotNegative = 0.05
    clip: Positive | None = None
    base: str = "Salesforce/blip2-itm-vit-g-coco"
    """BLIP-2 for retrieval: a repository of the Hub, or a folder (a path that begins with / or .)."""
    revision: str = ""
    """Commit of the repository; empty: the newest, which later runs keep to."""
    places: int = Field(default=32, ge=3, le=_LONGEST)
    """Tokens of a prompt that are read in training, [CLS] and [SEP] included."""
    max_words: Count = 50
    """Words of a prompt that are read."""
    weighting: Weighting = "variance"
    """Weights of prompts: `variance` (exp of it), `clipped` (over its mean, at most 5), `none`."""
    mask_start: Literal["default", "released"] = "default"
    """How weights of the mask head are drawn; from `released` it does not learn."""
    by_elements: bool = False
    """Whether the term of elements is a mean over their tokens, not over all places."""

    @model_validator(mode="before")
    @classmethod
    def _as_released(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("variant") == "released":
            return {"weighting": "none", "warmup_steps": 100} | values
        return values


class FgaRecipe(Recipe):
    """Trains Q-Former, matching head and mask head; the vision tower is frozen."""

    name = "fga-blip2"
    summary = "BLIP-2's matching head on ratings of whole prompts and labels of elements (Han et al. 2024)."
    settings_class = FgaSettings

    def __init__(self, settings: TrainingSettings | None = None) -> None:
        super().__init__(settings)
        chosen: FgaSettings = self.settings
        self._row = base_row("fga_blip2", chosen.base, chosen.revision)
        self._notes: tuple[str, ...] = ()

    def examples(self, data: TrainingData) -> Examples:
        """One for each image; images with an element that is not found are left out."""
        answers = data.answers
        if not isinstance(answers, EvalMuseAnswers):
            raise SubmitterError(
                "unfit_data",
                f"{data.name} has no ratings of images and labels of elements.",
                "Train on a benchmark in the layout of EvalMuse-40K.",
            )
        weights = prompt_weights(
            list(answers.images["prompt_id"]),
            list(answers.images["label"]),
            self.settings.weighting,
        )
        labels: dict[str, dict[str, float]] = {}
        for one in answers.elements.to_dict("records"):
            labels.setdefault(one["pair_id"], {})[one["element_id"]] = one["label"]
        image_of = {pair.pair_id: pair.image_id for pair in data.questions.pairs}
        made, beyond = [], 0
        for one in answers.images.to_dict("records"):
            pair_id, prompt = one["pair_id"], one["prompt"]
            targets = token_targets(
                self._finder, prompt, one["label"], labels.get(pair_id, {}), self.settings.places
            )
            if targets.unfound:
                continue
            beyond += len(targets.beyond)
            image = image_of[pair_id]
            content = (one["label"], weights.weights[one["prompt_id"]], targets)
            images = {image: data.questions.images[image]}
            made.append(Example(pair_id, (prompt,), images, content))
        alone = f"{weights.alone} prompts have one image: no variance, so the weight of variance 0."
        self._notes = (
            *((alone,) if self.settings.weighting != "none" else ()),
            f"{beyond} elements begin past token {self.settings.places} or word "
            f"{self.settings.max_words} and have no target.",
        )
        unfound = len(answers.images) - len(made)
        return Examples(tuple(made), {UNFOUND: unfound} if unfound else {})

    def base(self) -> str:
        """Of BLIP-2."""
        return content_of(self._source)

    def base_trained_on(self) -> tuple[str, ...]:
        """As its submission, or the built-in metrics that read it, say."""
        return benchmarks_of(self._source)

    def build(self, device: str) -> nn.Module:
        """BLIP-2 as it was saved, with a new mask head."""
        from transformers import Blip2ForImageTextRetrieval  # noqa: PLC0415 (torch)

        from evaluator.scorers.loading import load_transformers  # noqa: PLC0415 (torch)
        from evaluator.training.fga.network import FgaNetwork  # noqa: PLC0415 (torch)

        blip2 = load_transformers(
            Blip2ForImageTextRetrieval,
            self._source,
            self._row,
            Runtime(device=device),
            accepted=("blip-2",),
        )
        network = FgaNetwork(
            blip2, self.settings.mask_start, vision_norm=self.settings.variant == "released"
        ).to(device)
        self._scorer(network)  # from here on attention is computed in one way
        return network

    def collate(self, examples: Sequence[Example], rng: np.random.Generator) -> dict[str, Tensor]:
        """Images resized to a square, neither cropped nor mirrored; prompts cut and padded."""
        import torch  # noqa: PLC0415 (takes seconds)

        del rng
        pictures = [decode(read()).image for one in examples for read in one.images.values()]
        text = self._tokenizer(
            [self._finder.read(one.prompts[0]) for one in examples],
            padding="max_length",
            truncation=True,
            max_length=self.settings.places,
            return_tensors="pt",
        )
        ratings, weights, targets = zip(*(one.content for one in examples), strict=True)
        numbers = {
            "rating": ratings,
            "weight": weights,
            "mask": np.stack([one.mask for one in targets]),
            "scores": np.stack([one.scores for one in targets]),
        }
        return {
            "pixels": self._image_processor(images=pictures, return_tensors="pt")["pixel_values"],
            "ids": text["input_ids"],
            "attention": text["attention_mask"],
            **{name: torch.as_tensor(values).float() for name, values in numbers.items()},
        }

    def losses(self, model: nn.Module, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """exp(variance) x (overall + 0.1 elements + 0.1 mask), and the terms."""
        from evaluator.training.fga.network import Targets, fga_losses  # noqa: PLC0415 (torch)

        said = model(batch["pixels"], batch["ids"], batch["attention"])
        wanted = Targets(batch["rating"], batch["scores"], batch["mask"], batch["weight"])
        return fga_losses(said, wanted, by_elements=self.settings.by_elements)

    def score(
        self, model: nn.Module, images: Sequence[Image.Image], prompts: Sequence[str]
    ) -> Sequence[float]:
        """By the code of the built-in FGA-BLIP2."""
        scorer = self._scorer(model)
        found: list[float] = scorer.score([scorer.prepare(image) for image in images], prompts)
        return found

    def export(self, model: nn.Module, folder: Path) -> ExportedModule:
        """The scorer, configuration and tokenizer, and weights: of a base on the Hub the trained ones."""
        from safetensors.torch import save_file  # noqa: PLC0415 (torch)

        blip2: Any = model.blip2
        blip2.config.save_pretrained(folder / "checkpoint")
        self._tokenizer.save_pretrained(folder / "checkpoint")
        here = f"from {Path(element_spans.__file__).stem} import"
        code = _SCORER.read_text(encoding="utf-8").replace(
            f"from {element_spans.__name__} import", here
        )
        (folder / _SCORER.name).write_text(code, encoding="utf-8")
        shutil.copy(element_spans.__file__, folder)
        asked = json.dumps({"max_words": self.settings.max_words})
        (folder / "asked.json").write_text(asked, encoding="utf-8")
        trained = {name for name, one in blip2.named_parameters() if one.requires_grad}
        base = self._source
        kept = {
            name: one.detach().cpu().contiguous()
            for name, one in blip2.state_dict().items()
            if name in trained or not base.revision
        }
        save_file(kept, folder / ExportedModule.weights)
        return ExportedModule(
            range=(1.0, 5.0),
            description="BLIP-2's matching head, tuned on ratings of whole prompts and labels of their "
            "elements: a score of the prompt, 1 to 5, and of each element, 0 to 1.",
            models=(str(base),) if base.revision else (),
            card=" ".join(self._notes),
        )

    def parameter_groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """Biases and norms do not decay."""
        trained = [one for one in model.parameters() if one.requires_grad]
        return [
            {"params": [one for one in trained if one.ndim > 1]},
            {"params": [one for one in trained if one.ndim <= 1], "weight_decay": 0.0},
        ]

    def rate(self, at: Schedule) -> float:
        """Half a cosine to 0, step by step; `released`: a rise, then epoch by epoch."""
        warmup: int = self.settings.warmup_steps
        if self.settings.variant == "paper":
            return cosine(at, warmup)
        if at.step < warmup:
            return _WARM_UP_FROM + (1 - _WARM_UP_FROM) * at.step / warmup
        epochs = -(-at.steps // at.steps_per_epoch)
        return cosine(Schedule(at.step // at.steps_per_epoch, epochs, 1))

    @cached_property
    def _source(self) -> Source:
        from evaluator.scorers.checkpoints import resolve  # noqa: PLC0415 (reads the Hub)

        return resolve(self._row, Runtime())

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer  # noqa: PLC0415 (takes seconds)

        from evaluator.scorers.loading import load_processor  # noqa: PLC0415 (torch)

        found = load_processor(AutoTokenizer, self._source, Runtime(), pil=False)
        found.padding_side = found.truncation_side = "right"
        return found

    @cached_property
    def _image_processor(self) -> Any:
        from transformers import AutoConfig, BlipImageProcessorPil  # noqa: PLC0415 (takes seconds)

        from evaluator.scorers.loading import load_processor  # noqa: PLC0415 (torch)

        config = load_processor(AutoConfig, self._source, Runtime(), pil=False)
        side = config.vision_config.image_size
        return BlipImageProcessorPil(size={"height": side, "width": side})

    @cached_property
    def _finder(self) -> ElementFinder:
        @lru_cache(maxsize=1 << 14)  # the images of one prompt repeat it
        def tokenize(text: str) -> list[int]:
            return list(self._tokenizer(text, verbose=False)["input_ids"][1:-1])

        return ElementFinder(tokenize, self.settings.max_words)

    def _scorer(self, model: Any) -> Any:
        from evaluator.scorers.families.fga_blip2 import FgaScorer  # noqa: PLC0415 (torch)
        from evaluator.scorers.models.blip import Blip2Matcher  # noqa: PLC0415 (torch)

        matcher = Blip2Matcher(
            model.blip2, self._tokenizer, self._image_processor, _LONGEST, _TEXTS_TOGETHER
        )
        return FgaScorer(matcher, self._finder)


RECIPE = FgaRecipe
