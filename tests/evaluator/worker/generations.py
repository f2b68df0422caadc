"""Generations of a small prompt set, received without a desk, for tests of what scores them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.prompt_sets.prompt_set import MEASURES, PromptSet, SetElement, SetPrompt
from benchmarks.schema import Card, Selector
from evaluator.generation.manifest import GenerationsManifest
from evaluator.generation.rows import ImageRow
from evaluator.submission.generations_archive import write
from evaluator.worker.worker import Worker
from leaderboard.governance.accounts import Account
from leaderboard.ledger.ledger import Ledger
from leaderboard.models.model_card import ImagesSeen, ModelCard
from leaderboard.records import Event, Kind, Status, Submission
from leaderboard.states import State
from tests.evaluator.rig import ADA, Rig

PROMPTS = (
    SetPrompt("one", "one dark pixel", skills=("dark",)),
    SetPrompt("two", "two dark pixels", skills=("dark", "dark:two")),
    SetPrompt("x/three", "a bright pixel", split="odd", skills=("bright",)),
)
TINY = "tiny"


def tiny_set(
    prompts: Sequence[SetPrompt] = PROMPTS, revision: str = "1", *, elements: bool = False
) -> PromptSet:
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
    if elements:
        part = (SetElement("pixel", "a pixel", "dark"),)
        prompts = [SetPrompt(p.prompt_id, p.text, p.split, p.skills, part) for p in prompts]
    return PromptSet(card, lambda _: list(prompts))


def grey(value: int, size: int = 2, form: str = "PNG") -> bytes:
    """An image of one grey."""
    made = io.BytesIO()
    Image.new("RGB", (size, size), (value, value, value)).save(made, form)
    return made.getvalue()


Images = Mapping[tuple[str, int], int]
"""Prompt id and seed to the grey that was drawn."""


def drawn(first: int, seeds: Sequence[int] = (1, 2)) -> Images:
    """Every prompt with every seed, each of another grey."""
    keys = [(prompt.prompt_id, seed) for prompt in PROMPTS for seed in seeds]
    return {key: first + place for place, key in enumerate(keys)}


def archived(target: Path, name: str, images: Images, version: str = "1") -> Path:
    """An archive of generations as it is stored."""

    def rows() -> Any:
        for n, ((prompt, seed), value) in enumerate(images.items()):
            content = grey(value)
            sha256 = hashlib.sha256(content).hexdigest()
            row = ImageRow(
                prompt_id=prompt,
                seed=seed,
                file=f"images/{n}.png",
                sha256=sha256,
                width=2,
                height=2,
            )
            yield row, content

    write(target, GenerationsManifest(name=name, version=version, benchmark=TINY), rows())
    return target


def received(
    rig: Rig,
    name: str,
    images: Images,
    *,
    account: Account = ADA,
    private: bool = False,
    version: str = "1",
) -> Status:
    """Receive and queue the images of a model."""
    place = rig.folder / f"{name}-{version}.zip"
    archive = archived(place, name, images, version)
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    seeds = tuple(sorted({seed for _, seed in images}))
    wanted = len(PROMPTS) * len(seeds)
    submission = Submission(
        submission_id=f"{'private' if private else 'gen'}-{sha256[:10]}",
        kind=Kind.GENERATIONS,
        name=name,
        version=version,
        metrics=(name,),
        benchmarks=(TINY,),
        submitter=account.name,
        account=account.key,
        private=private,
        model_card=ModelCard(model=f"ada/{name}"),
        images=ImagesSeen(
            prompt_set=TINY, revision="1", seeds=seeds, wanted=wanted, present=len(images)
        ),
        content_sha256=sha256,
        archive=f"uploads/{sha256}.zip",
        received_at=rig.clock(),
    )
    events = [
        Event(at=rig.clock(), state=State.RECEIVED, by=account.key),
        Event(at=rig.clock(), state=State.QUEUED, by=account.key),
    ]
    Ledger(rig.store).receive(submission, archive, events, check=lambda: None)
    return Ledger(rig.store).whole_status(submission.submission_id)


@dataclass
class ModelRig(Rig):
    """A rig whose workers know the small prompt set as well."""

    tiny: PromptSet = field(default_factory=tiny_set)

    def worker(self, name: str = "w1", **more: Any) -> Worker:
        more.setdefault("registry", {"toy": self.toy, TINY: self.tiny})
        return super().worker(name, **more)
