"""Made-up models, their scores and the boards of metrics that judge them, in a memory store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.parquet import write_stored
from benchmarks.prompt_sets.prompt_set import (
    MEASURE,
    MEASURES,
    Drawing,
    PromptSet,
    SetPrompt,
    pair_id,
)
from benchmarks.schema import Card, MeasureInfo, ScoreTable, Selector
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery, ModelBoard, SkillBoard
from leaderboard.models.reading import ModelReader, scores_path
from leaderboard.publication.entries import Entry
from leaderboard.publication.model_entries import PATH, ModelEntry, ModelTrack, track_bytes
from leaderboard.publication.reader import View, view_of
from leaderboard.publication.snapshot import Board, Snapshot
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.orders import Orders
from leaderboard.records import ImagesSeen, JudgeRun, Kind
from leaderboard.store.interface import Store, transact
from leaderboard.trust import PromptControl, TrustReport
from tests.kit.store import memory_store

VQA, CLIP, DSG = "vqa/vqa", "clip/clip", "dsg/dsg"
QUERY = BoardQuery("drawn")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
SKILLS = {"count": "Count", "color": "Colour"}
SEEDS = (1, 2)


def prompts_of(n: int, skills: Sequence[str] = tuple(SKILLS)) -> tuple[SetPrompt, ...]:
    """Prompts that test the skills in turn; every third is of the split `real`."""
    return tuple(
        SetPrompt(
            f"p{i}",
            f"a picture of {i} cats in {skills[i % len(skills)]}",
            split="real" if i % 3 == 0 else "synth",
            skills=(skills[i % len(skills)],),
        )
        for i in range(n)
    )


def prompt_set(
    prompts: Sequence[SetPrompt], name: str = "drawn", family: str = "gecko", **more: object
) -> PromptSet:
    """A prompt set with these prompts."""
    card = Card.model_validate(
        {
            "name": name, "title": "Drawn", "family": family, "summary": "s", "description": "d",
            "revision": "r1", "cluster": "prompt", "headline": {"measure": MEASURE},
            "skills": SKILLS, "measures": MEASURES, **more,
        }
    )  # fmt: skip
    return PromptSet(card, lambda _: prompts, Drawing(seeds=SEEDS))


def metric_card(name: str = "rated", family: str = "gecko", **more: object) -> Card:
    """A board of metrics; its measure is 0 for a guess."""
    return Card.model_validate(
        {
            "name": name, "title": name.title(), "family": family, "summary": "s",
            "description": "d", "revision": "1", "cluster": "prompt",
            "headline": Selector(measure="srcc"), "skills": SKILLS,
            "measures": {"srcc": MeasureInfo(title="Spearman", meaning="m", low=-1, high=1, chance=0.0)},
            **more,
        }
    )  # fmt: skip


def cell(
    entry_id: str = "x/m",
    skill: str | None = None,
    tier: int | None = None,
    low: float = 0.4,
    **more: object,
) -> Cell:
    """A metric on a board of `metric_card`, with an interval from `low` to `low` + 0.2."""
    return Cell.model_validate(
        {
            "entry_id": entry_id, "measure": "srcc", "variant": None, "split": None, "facet": None,
            "skill": skill, "value": low + 0.1, "ci_low": low, "ci_high": low + 0.2,
            "n_items": 100, "n_clusters": 50, "n_missing": 0, "note": "", "rank": tier,
            "rank_low": tier, "rank_high": tier, "tier": tier, **more,
        }
    )  # fmt: skip


def metric_entry(entry_id: str, template: str = "", *, blind: bool = False) -> Entry:
    """A metric on the boards."""
    submission_id, _, metric = entry_id.rpartition("/")
    control = PromptControl(verdict="blind" if blind else "uses_the_prompt")
    report = TrustReport(
        benchmark="rated", n_pairs=0, n_images=0, spread=0.0, limit=0.01, checks=(), prompt=control
    )
    return Entry(
        entry_id=entry_id, submission_id=submission_id, metric=metric, kind=Kind.METRIC,
        submitter="ada", template=template, received_at=NOW, published_at=NOW,
        trust={"rated": report},
    )  # fmt: skip


@dataclass
class World:
    """A store to which models and boards are added.

    Attributes:
        known: the prompt set.
        boards: metric boards: card to cells.
        metrics: entry ids of the metrics that are on them.
        templates: entry id to the kind of template, of those that are one.
        blind: entry ids of the metrics that are blind to the prompt.
    """

    known: PromptSet
    boards: Mapping[str, tuple[Card, Sequence[Cell]]] = field(default_factory=dict)
    metrics: Sequence[str] = (VQA, CLIP)
    store: Store = field(default_factory=memory_store)
    templates: Mapping[str, str] = field(default_factory=dict)
    blind: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.entries: dict[str, ModelEntry] = {}
        self.rng = np.random.default_rng(1)
        self.reader = ModelReader(self.store, {self.known.name: self.known}, None)

    @property
    def prompts(self) -> tuple[SetPrompt, ...]:
        """Of the set."""
        return self.known.set_prompts(None)

    @property
    def view(self) -> View:
        """The boards of metrics."""
        cards = {name: card for name, (card, _) in self.boards.items()}
        snapshot = Snapshot(
            NOW,
            {
                one: metric_entry(one, self.templates.get(one, ""), blind=one in self.blind)
                for one in self.metrics
            },
            {name: Board(card, cells) for name, (card, cells) in self.boards.items()},
        )
        return view_of(snapshot, cards, Orders(self.store), "1")

    def board(self, **asked: object) -> ModelBoard:
        """The board of models, as one asks for it."""
        return model_board(self.reader, self.view, replace(QUERY, **asked))  # type: ignore[arg-type]

    def overall(self, **asked: object) -> SkillBoard:
        """Its part over all prompts."""
        return self.board(**asked).skills[None]

    def drawn(self, mean: float, seeds: int = 2) -> FloatArray:
        """Scores of all prompts around a mean."""
        return mean + 0.2 * self.rng.standard_normal((seeds, len(self.prompts)))

    def add(
        self,
        model: str,
        scores: Mapping[str, np.ndarray],
        elements: Mapping[str, pd.DataFrame] | None = None,
        runs: Mapping[str, Mapping[str, object]] | None = None,
        **more: object,
    ) -> str:
        """A model with the scores of metrics, shape (seeds, prompts); returns its id."""
        submission_id = f"{model}-0123456789"
        seeds = tuple(range(1, len(next(iter(scores.values()))) + 1))
        ids = [pair_id(p.prompt_id, seed) for seed in seeds for p in self.prompts]
        frame = pd.DataFrame(
            {judge: of.ravel() for judge, of in scores.items()}, index=pd.Index(ids, name="pair_id")
        )
        content = write_stored(
            ScoreTable(frame, elements=elements or {}),
            submission_id=submission_id,
            benchmark=self.known.name,
            revision=self.known.card.revision,
        )
        images = ImagesSeen.model_validate(
            {"prompt_set": self.known.name, "revision": "r1", "seeds": seeds,
             "wanted": len(ids), "present": len(ids), **more}
        )  # fmt: skip
        entry = ModelEntry(
            submission_id=submission_id, model=model, submitter="bob", images=images,
            judges={judge: judge_run(judge, **(runs or {}).get(judge, {})) for judge in scores},
            received_at=NOW, published_at=NOW, since=NOW,
        )  # fmt: skip
        self.entries[submission_id] = entry
        path = scores_path(submission_id, self.known.name)
        track = track_bytes(ModelTrack(self.entries))
        transact(self.store.public, lambda: {path: content, PATH: track}, "models")
        return submission_id


def judge_run(judge: str, **more: object) -> JudgeRun:
    """A metric's run on the images of a model."""
    submission_id, _, metric = judge.rpartition("/")
    return JudgeRun.model_validate(
        {"submission_id": submission_id, "metric": metric, "scored_at": NOW, **more}
    )


def trusting(*metrics: str, card: Card | None = None) -> dict[str, tuple[Card, Sequence[Cell]]]:
    """A board on which these metrics stand in the first tier, overall and on every skill."""
    own = card or metric_card()
    return {own.name: (own, [cell(m, skill, 1) for m in metrics for skill in (None, *SKILLS)])}


def world(n: int = 200, *trusted: str, **more: object) -> World:
    """Prompts, and a board that trusts these metrics (without any named: two)."""
    boards = trusting(*(trusted or (VQA, CLIP)))
    return World(prompt_set(prompts_of(n)), boards, **more)  # type: ignore[arg-type]
