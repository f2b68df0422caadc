"""Prompt sets: prompts that models draw, their cards, seeds and image names."""

from __future__ import annotations

import hashlib
import importlib
import math
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import pandas as pd

from benchmarks import prompt_sets
from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.prompt_sets.means import add_means
from benchmarks.rows import Measured, MeasuredBuilder, Row
from benchmarks.schema import Answers, Benchmark, Card, Frozen, MeasureInfo, Questions, ScoreTable
from benchmarks.sources.folder import DataFolder
from benchmarks.statistics.resampling import ResamplingPlan

# Seeds.


MAX_SEED = 2**64 - 1
"""Largest seed of a `torch.Generator`."""


def parse_seeds(text: str) -> tuple[int, ...]:
    """Seeds as they are given on the command line: `42,3407,5096`.

    Raises:
        SubmitterError: `bad_seeds`: none, not whole numbers from 0 to 2^64 - 1, or one twice.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    good = all(part.isascii() and part.isdigit() and len(part) <= 20 for part in parts)
    seeds = tuple(int(part) for part in parts) if good else ()
    if not seeds or len(set(seeds)) < len(seeds) or max(seeds) > MAX_SEED:
        raise SubmitterError(
            "bad_seeds",
            f"{text[:80]!r} are no seeds: whole numbers from 0 to 2^64 - 1, each once.",
            "For example --seeds 42,3407,5096",
        )
    return seeds


# File names of images, which no prompt can influence.


IMAGES = "images"
_UNSAFE = re.compile(r"[^a-z0-9]+")
_SLUG = 40
_DIGEST = 10


def image_file(prompt_id: str, seed: int) -> str:
    """Path of an image inside its folder: `images/counting-7-1f0c9a3b2d_s42.png`.

    A readable part of the id, the beginning of the SHA-256 of the whole id (ids that differ only
    in letters that are left out, or in their case, keep apart on every file system), and the seed.
    """
    slug = _UNSAFE.sub("-", prompt_id.lower()).strip("-")[:_SLUG].strip("-") or "prompt"
    digest = hashlib.sha256(prompt_id.encode()).hexdigest()[:_DIGEST]
    return f"{IMAGES}/{slug}-{digest}_s{seed}.png"


# Cards.


FOLDER = Path(__file__).parent / "cards"


def set_card(name: str) -> Card:
    """The card of a prompt set.

    Raises:
        pydantic.ValidationError: a field is missing, misspelt or of the wrong type.
    """
    return Card.read(FOLDER / f"{name}.toml", MEASURES)


def card_beside(name: str, of: Card, paths: Sequence[str], *, skills: bool = True) -> Card:
    """The card of a prompt set that is read from files of a benchmark of metrics.

    Files and skills are declared once, by the benchmark: so both read the same release, and a
    skill goes by one key on the boards of metrics and of models.

    Args:
        name: of the set.
        of: the benchmark's card.
        paths: those of its files that hold the prompts.
        skills: whether the prompts have its skills.

    Raises:
        ValueError: the benchmark declares no such file.
    """
    declared = {file.path: file for file in of.files}
    missing = [path for path in paths if path not in declared]
    if missing:
        raise ValueError(f"{of.name} declares no {', '.join(missing)}")
    shared = {
        "licence": of.licence,
        "citation": of.citation,
        "links": of.links,
        "files": tuple(declared[path] for path in paths),
        "skills": of.skills if skills else {},
    }
    card = set_card(name)
    # What the set's own file says stands: it may narrow the licence or add a link.
    return card.model_copy(
        update={key: value for key, value in shared.items() if key not in card.model_fields_set}
    )


MEASURE = "model_score"
MEASURES: Mapping[str, MeasureInfo] = MappingProxyType(
    {
        MEASURE: MeasureInfo(
            title="mean score",
            meaning="Mean over the prompts of the score that one metric gives to a model's images; "
            "of several images of a prompt, their mean counts.",
            source="Re-Thinking, model score; EvalMuse-40K, Table 10",
        )
    }
)
SEEDS = (42, 3407, 5096)
"""Proposed for sets whose authors propose none: those of Re-Thinking."""


@dataclass(frozen=True, slots=True)
class SetElement:
    """A part of a prompt that a metric with element scores judges on its own.

    Attributes:
        element_id: unique within the prompt.
        text: as a scorer is given it, e.g. `two cups`.
        skill: what it tests; empty where that is not known.
    """

    element_id: str
    text: str
    skill: str = ""


@dataclass(frozen=True, slots=True)
class SetPrompt:
    """Prompt of a set.

    Attributes:
        prompt_id: stable and public.
        text: what is drawn.
        split: part of the set, e.g. `real`; may be empty.
        skills: keys of the card's skills and `skill:sub-skill`; may be none.
        elements: its parts, where the set has them.
    """

    prompt_id: str
    text: str
    split: str = ""
    skills: tuple[str, ...] = ()
    elements: tuple[SetElement, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """Requirements on the images of a set.

    Attributes:
        seeds: proposed; a model may have others, and any number of them.
        least_side: of an image, in pixels.
        most_side: likewise.
    """

    seeds: tuple[int, ...] = SEEDS
    least_side: int = 64
    most_side: int = 4096


class Judge(Frozen):
    """Judge that the authors of a prompt set bring: the scores they print are its."""

    title: str
    metrics: tuple[str, ...] = ()
    """Built-in metrics that are that judge, or stand in for it as `note` says; none where none does."""
    note: str = ""
    """How its scores are made, and what differs here, in sentences."""


@dataclass(frozen=True)
class PromptAnswers(Answers):
    """Prompts of a set; `pair_ids` is empty, since every model has its own seeds."""

    prompts: tuple[SetPrompt, ...] = field(default=(), kw_only=True)

    def counts(self) -> dict[str, int]:
        """Prompts and elements, in all, and the prompts of each split and skill."""
        splits = Counter(one.split for one in self.prompts if one.split)
        skills = Counter(skill for one in self.prompts for skill in one.skills)
        elements = sum(len(one.elements) for one in self.prompts)
        return {
            "prompts": len(self.prompts),
            **({"elements": elements} if elements else {}),
            **{f"{split}: prompts of the split": n for split, n in splits.items()},
            **{f"{skill}: prompts": n for skill, n in skills.items()},
        }


class PromptSet(Benchmark):
    """Prompt set: a benchmark of text-to-image models, without human answers.

    Args:
        card: what people are told about it; `track` is `models`.
        load: reads the prompts from the files of the card, in their order.
        drawing: how they are to be drawn.
        rated_by: the benchmark of metrics on which people rated models on these very prompts.
        judge: of its authors, where they brought one.
    """

    def __init__(
        self,
        card: Card,
        load: Callable[[DataFolder], Sequence[SetPrompt]],
        drawing: Drawing | None = None,
        rated_by: str = "",
        judge: Judge | None = None,
    ) -> None:
        self.card = card
        self.drawing = drawing or Drawing()
        self.rated_by = rated_by
        self.judge = judge
        self._load = load
        self._kept: tuple[object, PromptAnswers] | None = None

    @property
    def track(self) -> Literal["metrics", "models"]:
        """Models are ranked on it."""
        return "models"

    def set_prompts(self, data: Path | None) -> tuple[SetPrompt, ...]:
        """The prompts in their order; read again only when their files change.

        Raises:
            SubmitterError: `data_missing` or `data_malformed`.
        """
        return self.answers(data).prompts

    def answers(self, data: Path | None) -> PromptAnswers:
        """The prompts; each is a cluster.

        Raises:
            SubmitterError: `data_missing` or `data_malformed`.
        """
        folder = self.folder(data)
        state = (data, folder.signature())
        kept = self._kept
        if kept is None or kept[0] != state:
            self._kept = kept = state, self._read(folder)
        return kept[1]

    def _read(self, folder: DataFolder) -> PromptAnswers:
        prompts = tuple(self._load(folder))
        found = PromptAnswers(
            pair_ids=(),
            clusters=tuple(one.prompt_id for one in prompts),
            prompts=prompts,
        )
        for file in self.card.files[:1]:
            for what, count in found.counts().items():
                folder.check_count(file.path, what, count)
        return replace(found, sources=folder.verified())

    def questions(self, data: Path | None) -> Questions:
        """No questions: there are none before a model has drawn.

        Raises:
            SubmitterError: always.
        """
        del data
        raise SubmitterError(
            "images_missing",
            f"{self.name} is a set of prompts: its images are those that models draw.",
            f"`python -m benchmarks prompts {self.name}` gives the prompts.",
        )

    def prompts(self, data: Path | None) -> pd.DataFrame:
        """See `Benchmark.prompts`."""
        found = self.set_prompts(data)
        return pd.DataFrame(
            {
                "prompt_id": [one.prompt_id for one in found],
                "prompt": [one.text for one in found],
                "split": [one.split for one in found],
                "skills": [";".join(one.skills) for one in found],
            }
        )

    def measure(self, scores: ScoreTable, answers: PromptAnswers, plan: ResamplingPlan) -> Measured:
        """Mean scores of one model by each metric of the table, over all prompts and by skill.

        Rows name the metric, also as their facet: who publishes them puts the model in its place.
        """
        builder = MeasuredBuilder(plan.n_resamples)
        blank = Row(self.name, self.card.revision, "", MEASURE, math.nan)
        skills = {one.prompt_id: one.skills for one in answers.prompts}
        add_means(builder, blank, scores, skills, plan)
        return builder.build()


def pair_id(prompt_id: str, seed: int, *, perturbed: bool = False) -> str:
    """The id of the pair of a prompt and the image a model drew of it with a seed.

    Args:
        prompt_id: of the set.
        seed: the generator's.
        perturbed: whether it is the image after the one-pixel change of Re-Thinking.
    """
    return f"{prompt_id}/{seed}{'+' if perturbed else ''}"


def parsed_pair(pair: str) -> tuple[str, int, bool]:
    """Prompt id, seed and whether the image was perturbed; the inverse of `pair_id`."""
    prompt_id, _, seed = pair.rpartition("/")
    return prompt_id, int(seed.removesuffix("+")), seed.endswith("+")


def set_prompts_of(table: pd.DataFrame) -> Iterator[SetPrompt]:
    """Prompts of a set from a table, a row each.

    Args:
        table: columns `prompt_id`, `prompt`, `split`, `skills` (joined by `;`), as
            `Benchmark.prompts` gives them.
    """
    columns = (table[name].astype(str) for name in ("prompt_id", "prompt", "split", "skills"))
    for prompt_id, text, split, skills in zip(*columns, strict=True):
        yield SetPrompt(prompt_id, text, split, tuple(filter(None, skills.split(";"))))


def skills_of(prompts: Sequence[SetPrompt]) -> tuple[str, ...]:
    """Skills and sub-skills of the prompts, in order of first appearance."""
    return tuple(dict.fromkeys(skill for one in prompts for skill in one.skills))


def load_prompt_sets() -> Mapping[str, PromptSet]:
    """All prompt sets by name, in the order of their modules."""
    found: dict[str, PromptSet] = {}
    for module in pkgutil.iter_modules(prompt_sets.__path__, f"{prompt_sets.__name__}."):
        declared = getattr(importlib.import_module(module.name), "PROMPT_SETS", ())
        if not isinstance(declared, tuple) or not all(isinstance(s, PromptSet) for s in declared):
            raise PlatformError(
                "invalid_benchmark", f"{module.name}: PROMPT_SETS is no tuple of prompt sets."
            )
        for one in declared:
            if one.name in found:
                raise PlatformError(
                    "duplicate_benchmark", f"Two prompt sets are called {one.name!r}."
                )
            found[one.name] = one
    return MappingProxyType(found)


def with_prompt_sets(
    benchmarks: Mapping[str, Benchmark], sets: Mapping[str, PromptSet]
) -> Mapping[str, Benchmark]:
    """Benchmarks of metrics, then prompt sets, by name."""
    for name in sets:
        if name in benchmarks:
            raise PlatformError(
                "duplicate_benchmark", f"A benchmark and a prompt set are called {name!r}."
            )
    return MappingProxyType({**benchmarks, **sets})


def find_prompt_set(known: Mapping[str, PromptSet], name: str) -> PromptSet:
    """Look a prompt set up."""
    if name not in known:
        raise SubmitterError(
            "unknown_prompt_set",
            f"There is no prompt set {name[:80]!r}.",
            f"Prompt sets: {', '.join(known)}.",
        )
    return known[name]
