"""Rigs with a demo board in place of the toy, and with models whose images are scored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd
from PIL import Image

from benchmarks.parquet import read_stored
from benchmarks.prompt_sets.prompt_set import MEASURES, PromptSet, SetPrompt
from benchmarks.registry import load_registry
from benchmarks.schema import Benchmark, Card, Selector
from evaluator.generation.manifest import GenerationsManifest, ImageRow
from evaluator.scoring.asking import Engine
from evaluator.scoring.engine import LocalEngine
from evaluator.submission.dry_run import Drawn
from evaluator.submission.generations.archive import write
from evaluator.submission.service import SubmissionService
from evaluator.worker.worker import Worker
from leaderboard.accounts import Account
from leaderboard.models.reading import scores_path
from leaderboard.publication.model_entries import ModelEntry, read_track
from leaderboard.records import Event, ImagesSeen, Kind, ModelCard, RunResult
from leaderboard.states import State
from tests.kit.pictures import encoded
from tests.kit.worker import ADA, Rig, submission

DEMO = "demo_gecko"


class DemoRig(Rig):
    """A rig with one demo board instead of the toy."""

    engine: Engine = LocalEngine()
    pairs: int | None = None  # about how many of the board are asked; None: all

    @cached_property
    def registry(self) -> Mapping[str, Benchmark]:
        return {DEMO: Drawn(load_registry()[DEMO], None, self.pairs)}

    @property
    def desk(self) -> SubmissionService:
        return replace(super().desk, registry=self.registry)

    def worker(self, name: str = "w1", **more: Any) -> Worker:
        worker = super().worker(name, registry=self.registry, **more)
        object.__setattr__(worker.scorers, "engine", self.engine)
        return worker

    def result(self, name: str, below: str = "") -> RunResult:
        content = self.store.public.read(f"results/{name}/{below}{DEMO}.json")
        return RunResult.model_validate_json(content)

    def overall(self, name: str) -> pd.DataFrame:
        """Published scores by pair and metric."""
        return read_stored(self.store.public.read(f"results/{name}/{DEMO}.scores.parquet")).overall


TINY = "tiny"
PROMPTS = (
    SetPrompt("one", "one dark pixel", skills=("dark",)),
    SetPrompt("two", "two dark pixels", skills=("dark", "dark:two")),
    SetPrompt("x/three", "a bright pixel", split="odd", skills=("bright",)),
)
Images = Mapping[tuple[str, int], int]
"""Prompt id and seed to the grey that was drawn."""


def tiny_set(prompts: Sequence[SetPrompt] = PROMPTS, revision: str = "1") -> PromptSet:
    """A prompt set that needs no files."""
    card = Card(
        name=TINY,
        title="Tiny",
        family="toy",
        summary="Three prompts.",
        description="",
        revision=revision,
        cluster="prompt",
        headline=Selector(measure="model_score"),
        measures=dict(MEASURES),
        skills={"dark": "Dark", "bright": "Bright"},
    )
    return PromptSet(card, lambda _: list(prompts))


def drawn(first: int) -> Images:
    """Every prompt with two seeds, each of another grey."""
    keys = [(prompt.prompt_id, seed) for prompt in PROMPTS for seed in (1, 2)]
    return {key: first + place for place, key in enumerate(keys)}


def _rows(images: Images) -> Iterator[tuple[ImageRow, bytes]]:
    for n, ((prompt, seed), value) in enumerate(images.items()):
        content = encoded(Image.new("RGB", (2, 2), (value, value, value)))
        sha256 = hashlib.sha256(content).hexdigest()
        file = f"images/{n}.png"
        yield (
            ImageRow(prompt_id=prompt, seed=seed, file=file, sha256=sha256, width=2, height=2),
            content,
        )


@dataclass
class ModelRig(Rig):
    """A rig whose workers know the small prompt set, and to which models can be sent."""

    tiny: PromptSet = field(default_factory=tiny_set)

    def worker(self, name: str = "w1", **more: Any) -> Worker:
        return super().worker(name, registry={"toy": self.toy, TINY: self.tiny}, **more)

    def received(
        self,
        name: str,
        images: Images,
        *,
        account: Account = ADA,
        private: bool = False,
        version: str = "1",
    ) -> str:
        """Receive and queue the images of a model, without a desk; its id."""
        archive = self.folder / f"{name}-{version}.zip"
        manifest = GenerationsManifest(name=name, version=version, benchmark=TINY)
        write(archive, manifest, _rows(images))
        sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
        seeds = tuple(sorted({seed for _, seed in images}))
        sent = submission(
            name,
            submission_id=f"{'private' if private else 'gen'}-{sha256[:10]}",
            kind=Kind.GENERATIONS,
            version=version,
            benchmarks=(TINY,),
            submitter=account.name,
            account=account.key,
            private=private,
            model_card=ModelCard(model=f"ada/{name}"),
            images=ImagesSeen(
                prompt_set=TINY, revision="1", seeds=seeds, wanted=len(PROMPTS) * len(seeds),
                present=len(images),
            ),
            content_sha256=sha256,
            archive=f"uploads/{sha256}.zip",
            received_at=self.clock(),
        )  # fmt: skip
        states = (State.RECEIVED, State.QUEUED)
        events = [Event(at=self.clock(), state=state, by=account.key) for state in states]
        self.ledger.receive(sent, archive, events, check=lambda: None)
        return sent.submission_id

    def entries(self) -> Mapping[str, ModelEntry]:
        return read_track(self.store.public).entries

    def given(self, name: str) -> dict[str, dict[str, float]]:
        """Metric to pair to what it gave the images of a model."""
        table = read_stored(self.store.public.read(scores_path(name, TINY)))
        return {str(metric): dict(table.overall[metric]) for metric in table.metrics}
