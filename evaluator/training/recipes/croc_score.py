"""CROCScore: a chat VLM learns to say Yes to an image of its caption, and No to one of the contrast."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import model_validator

from evaluator.scorers.answering import Candidate, Reading
from evaluator.scorers.registry import Runtime, find_row, load_rows
from evaluator.scoring.images import decode
from evaluator.training.base import base_row, benchmarks_of, content_of
from evaluator.training.croc.rows import RowChoice, captions_of
from evaluator.training.data import TrainingData
from evaluator.training.recipe import (
    Beta,
    Count,
    CountOrNone,
    Example,
    Examples,
    ExportedModule,
    Positive,
    Recipe,
    Share,
    TrainingSettings,
)

if TYPE_CHECKING:
    from PIL import Image
    from torch import Tensor, nn

    from evaluator.scorers.checkpoints import Source
    from evaluator.scorers.models.vlm_inputs import ChatText, Setting

_YES, _NO = "Yes", "No"
_PHI4 = ("phi4mm", "phi4_multimodal")
_SCORER = Path(__file__).parents[1] / "croc" / "scorer.py"
_WHOLE = "1000GB"


class CrocSettings(TrainingSettings):
    """Of CROCScore; one epoch of at most 16,000 captions, learning rate from 5e-6 to 0 in a line."""

    variant: Literal["paper", "released"] = "paper"
    """`released`: the end token is a target as well, and captions that vary an entity take the place of
    those that place one, as in the authors' code."""
    batch: Count = 1
    accumulate: Count = 16
    rate: Positive = 5e-6
    betas: tuple[Beta, Beta] = (0.9, 0.95)
    eps: Positive = 1e-7
    warmup_steps: CountOrNone = 100
    held_out: Share = 0.2
    """Share of the prompt pairs that is held out: the paper's parts for development and test."""
    base: str = "microsoft/Phi-4-multimodal-instruct"
    """A chat VLM: a repository of the Hub, or a folder (a path that begins with / or .)."""
    revision: str = ""
    """Commit of the repository; empty: the newest, which later runs keep to."""
    question: str = "Does this image show the following content:'{}'? Answer with Yes or No."
    """Of training and scoring alike, with {} where the caption goes."""
    text_format: str = ""
    """The whole input with {image} and {prompt} in it; empty: the chat template of the model, and
    for Phi-4 what the built-in CROCScore has."""
    answer_space: bool = False
    """Whether the answer is read with a space before it."""
    square: Literal["none", "pad", "squash"] = "none"
    """How images are made square ahead of the model's own processing; `squash` resizes to `side`."""
    side: CountOrNone = 0
    pixels: CountOrNone = 0
    """Pixels in all that images are resized to ahead of that, in their shape; 0: none."""
    reduce: Literal["p_diff", "p_yes_norm"] = "p_diff"
    """The score: p(Yes) - p(No) over the whole vocabulary, -1..1; or p(Yes) of the two, 0..1."""
    head: bool = False
    """Whether the output head is trained as well, as in the authors' code."""
    entities: CountOrNone = 3000
    """Captions of pairs that place an entity; all that vary a property are taken."""
    captions: Count = 16_000
    """Captions in all."""
    images: Count = 1
    """Images of a caption, all made of it or all of its contrast."""
    draw: CountOrNone = 42
    """Seed of the captions and of the side of their images."""

    @model_validator(mode="after")
    def _can_be_asked(self) -> Self:
        if self.question.count("{}") != 1:
            raise ValueError("a question has one {} where the caption goes")
        if self.square == "squash" and not self.side:
            raise ValueError("`squash` needs `side`, in pixels")
        if (self.side and self.square != "squash") or (self.pixels and self.square != "none"):
            raise ValueError("`side` goes with `square=squash`, `pixels` with `square=none`")
        return self


class CrocRecipe(Recipe):
    """Trains all but the language model, and its last two layers."""

    name = "crocscore"
    summary = (
        "A chat VLM on contrast pairs: Yes or No to a caption with an image (Leiter et al. 2025)."
    )
    settings_class = CrocSettings

    def examples(self, data: TrainingData) -> Examples:
        """A caption with an image each."""
        chosen: CrocSettings = self.settings
        choice = RowChoice(
            chosen.entities,
            chosen.captions,
            chosen.images,
            chosen.draw,
            released=chosen.variant == "released",
        )
        rows, dropped = choice.rows(captions_of(data.answers, data.questions))
        made = (
            Example(
                f"{number}",
                (row.caption,),
                {row.image: data.questions.images[row.image]},
                row.shows,
                (row.made_of,),
            )
            for number, row in enumerate(rows)
        )
        return Examples(tuple(made), dropped)

    def base(self) -> str:
        """Of the chat VLM."""
        return content_of(self._source)

    def base_trained_on(self) -> tuple[str, ...]:
        """As its submission, or the built-in metrics that read it, say."""
        return benchmarks_of(self._source)

    def build(self, device: str) -> nn.Module:
        """The base, of which vision, projector and the last two layers are trained."""
        from evaluator.scorers.models.chat import load_parts  # noqa: PLC0415 (torch)
        from evaluator.training.croc.batches import (  # noqa: PLC0415 (torch)
            freeze_but_vision_and_last_layers,
            refuse_looking_ahead,
        )

        setting = self._setting(device)
        model: nn.Module
        model, self._processor = load_parts(setting)
        refuse_looking_ahead(model, self._text)
        candidates = [Candidate(one, with_end=True, first_only=True) for one in (_NO, _YES)]
        self._answers = self._text.answers(candidates)
        freeze_but_vision_and_last_layers(model, head=self.settings.head)
        return model

    def collate(
        self, examples: Sequence[Example], rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        """Inputs with targets, in as many batches as the shapes of images ask for."""
        import torch  # noqa: PLC0415 (takes seconds)

        from evaluator.training.croc.batches import Answered, padded_batches  # noqa: PLC0415 (torch)

        del rng
        rows = []
        for one in examples:
            (read,) = one.images.values()
            seen = self._text.prepare(decode(read()).image)
            asked = self._text.inputs_of(seen, self._options.question_about(one.prompts[0]))
            rows.append(Answered(asked, torch.tensor(self._answers[bool(one.content)])))
        return padded_batches(rows, self._text.tokenizer.pad_token_id or 0)

    def losses(self, model: nn.Module, batch: list[dict[str, Any]]) -> dict[str, Tensor]:
        """Cross-entropy of the answer: in all, of its first token, and of what ends it."""
        from evaluator.training.croc.batches import answer_losses  # noqa: PLC0415 (torch)

        vlm: Any = model
        first_only = self.settings.variant == "paper"
        n_rows = sum(len(part["targets"]) for part in batch)
        found: dict[str, Tensor] = {}
        for part in batch:
            share = len(part["targets"]) / n_rows
            for name, value in answer_losses(vlm, part, first_only=first_only).items():
                found[name] = found[name] + share * value if name in found else share * value
        return found

    def score(
        self, model: nn.Module, images: Sequence[Image.Image], prompts: Sequence[str]
    ) -> Sequence[float]:
        """By the code of the built-in CROCScore."""
        from evaluator.scorers.families.vlm_likelihood import VLMLikelihood  # noqa: PLC0415 (torch)
        from evaluator.scorers.models.chat import ChatVLM  # noqa: PLC0415 (torch)

        trained: Any = model
        scorer = VLMLikelihood(ChatVLM(trained, self._text, {}, "nothing"), self._options)
        return scorer.score([scorer.prepare(image) for image in images], prompts)

    def export(self, model: nn.Module, folder: Path) -> ExportedModule:
        """The scorer, the question, and the whole checkpoint in the layout of `transformers`."""
        vlm: Any = model
        checkpoint = folder / "checkpoint"
        vlm.save_pretrained(checkpoint, max_shard_size=_WHOLE)
        self._processor.save_pretrained(checkpoint)
        shutil.copy(_SCORER, folder)
        asked = json.dumps(self._options.model_dump(mode="json"), indent=1, sort_keys=True)
        (folder / "asked.json").write_text(asked, encoding="utf-8")
        low = 0.0 if self.settings.reduce == "p_yes_norm" else -1.0
        return ExportedModule(
            weights="checkpoint/model.safetensors",
            range=(low, 1.0),
            description=f"Asks {self._title} whether an image shows its prompt, having learnt it "
            "from contrast pairs: the probability of Yes less that of No.",
            card=f"The folder `checkpoint` is a checkpoint of transformers. Question: "
            f"`{self._options.question}`",
        )

    def _setting(self, device: str) -> Setting:
        from evaluator.scorers.models.vlm_inputs import Setting  # noqa: PLC0415 (torch)
        from evaluator.scorers.models.vlm_loading import model_type  # noqa: PLC0415 (torch)

        source = self._source
        kind = model_type(source)
        self._title = str(source) if source.revision else f"a model of type {kind}"
        names = ("text_format", "answer_space", "square", "side", "pixels")
        own = Reading(**{name: getattr(self.settings, name) for name in names})
        self._reading = usual_reading(kind) if own == Reading() else own
        return Setting(source, kind, Runtime(device=device), "float32", self._reading)

    @cached_property
    def _source(self) -> Source:
        from evaluator.scorers.checkpoints import resolve  # noqa: PLC0415 (reads the Hub)

        row = base_row("vlm_likelihood", self.settings.base, self.settings.revision)
        return resolve(row, Runtime())

    @cached_property
    def _text(self) -> ChatText:
        from evaluator.scorers.models.vlm_inputs import ChatText  # noqa: PLC0415 (torch)

        return ChatText(self._processor, self._reading)

    @cached_property
    def _options(self) -> Any:
        from evaluator.scorers.families.vlm_likelihood import Options  # noqa: PLC0415 (torch)

        return Options(
            question=self.settings.question,
            answer=_YES,
            against=_NO,
            reduce=self.settings.reduce,
            reading=self._reading,
        )


def usual_reading(kind: str) -> Reading:
    """That of the built-in CROCScore for its own base; of others the chat template."""
    if kind not in _PHI4:
        return Reading()
    return Reading.model_validate(find_row("crocscore-p", load_rows()).options["reading"])


RECIPE = CrocRecipe
