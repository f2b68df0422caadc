"""Time to rank a board of models anew after a filter, against the same done pair by pair.

    python -m benchmarks_perf.model_rerank

Fifty models with the scores of three trusted metrics on twelve skills: 200 prompts with four seeds,
and 1,600 prompts with one. The scores are at hand, the filter is new. The plain way makes the means
with pandas, the intervals with `scipy.stats.bootstrap`'s percentile method done by hand on the same
resamples, and one `scipy.stats.ttest_rel` for each pair, metric and skill.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.prompt_sets.prompt_set import MEASURE, MEASURES, PromptSet, SetPrompt, pair_id
from benchmarks.schema import Card, MeasureInfo, ScoreTable, Selector
from benchmarks.statistics.multiplicity import holm
from benchmarks.stored_scores import write_stored
from leaderboard.models.board import model_board
from leaderboard.models.board_types import BoardQuery
from leaderboard.models.entries import PATH, ModelEntry, ModelTrack, track_bytes
from leaderboard.models.model_card import ImagesSeen
from leaderboard.models.reading import ModelReader
from leaderboard.models.scores import scores_path
from leaderboard.pages.reading import View, view_of
from leaderboard.publication.boards import Board, Snapshot
from leaderboard.publication.entries import Entry
from leaderboard.ranking.cells import Cell
from leaderboard.ranking.orders import Orders
from leaderboard.records import JudgeRun, Kind
from leaderboard.store.interface import transact
from leaderboard.store.memory import memory_store

NOW = datetime(2026, 1, 1, tzinfo=UTC)
N_MODELS, N_SKILLS = 50, 12
METRICS = ("vqa/vqa", "clip/clip", "dsg/dsg")
SKILLS = {f"s{i}": f"Skill {i}" for i in range(N_SKILLS)}
FILTERS = ("red", "cat", "red cat", "dog", "blue dog")
SIZES = ((200, 4), (1600, 1))
GOAL_S = 0.5
_WORDS = ("red", "blue", "cat", "dog", "two", "three")


@dataclass(frozen=True)
class MadeUp:
    """A store of models.

    Attributes:
        reader: of its models.
        view: of its boards of metrics.
        prompts: of the set.
        scores: metric to shape (M, S, P).
    """

    reader: ModelReader
    view: View
    prompts: tuple[SetPrompt, ...]
    scores: dict[str, np.ndarray]


def made_up(n_prompts: int, n_seeds: int) -> MadeUp:
    """Fifty models, each a little better than the one before, with the noise of their prompts."""
    rng = np.random.default_rng(5)
    prompts = tuple(
        SetPrompt(
            f"p{i}",
            " ".join(rng.permutation(_WORDS)[:4]),
            skills=tuple(f"s{k}" for k in rng.permutation(N_SKILLS)[:3]),
        )
        for i in range(n_prompts)
    )
    known = _prompt_set(prompts)
    store = memory_store()
    quality = np.linspace(0.4, 0.6, N_MODELS)
    hard = 0.1 * rng.standard_normal(n_prompts)
    shape = (N_MODELS, n_seeds, n_prompts)
    scores = {
        metric: quality[:, None, None] + hard + 0.15 * rng.standard_normal(shape)
        for metric in METRICS
    }
    ids = [pair_id(p.prompt_id, seed) for seed in range(n_seeds) for p in prompts]
    files: dict[str, bytes] = {}
    entries: dict[str, ModelEntry] = {}
    for m in range(N_MODELS):
        submission_id = f"model-{m:02d}-0123456789"
        table = pd.DataFrame({k: of[m].ravel() for k, of in scores.items()}, index=ids)
        files[scores_path(submission_id, known.name)] = write_stored(
            ScoreTable(table.rename_axis("pair_id")),
            submission_id=submission_id,
            benchmark=known.name,
            revision="1",
        )
        entries[submission_id] = _entry(submission_id, known.name, n_seeds, len(ids))
    files[PATH] = track_bytes(ModelTrack(entries))
    transact(store.public, lambda: files, "made up")
    reader = ModelReader(store, {known.name: known}, None)
    return MadeUp(reader, _view(Orders(store)), prompts, scores)


def plain_way(made: MadeUp, words: str, counts: np.ndarray) -> int:
    """The same figures without vectorising over models; returns how many pairs differ.

    Args:
        made: the scores.
        words: of the filter.
        counts: shape (B, P), how often each prompt is drawn.
    """
    kept = [i for i, p in enumerate(made.prompts) if all(w in p.text for w in words.split())]
    differing = 0
    for skill in (None, *SKILLS):
        places = [i for i in kept if skill is None or skill in made.prompts[i].skills]
        p_values = []
        for metric in METRICS:
            frame = pd.DataFrame(made.scores[metric].mean(axis=1).T).iloc[places]
            for model in frame:
                values = frame[model].to_numpy()
                drawn = counts[:, places]
                means = (drawn @ values) / drawn.sum(axis=1)
                np.percentile(means, [2.5, 97.5])
            p_values += [
                stats.ttest_rel(frame[a], frame[b]).pvalue
                for a in range(N_MODELS)
                for b in range(a + 1, N_MODELS)
            ]
        differing += int((holm(p_values) < 0.05).sum())
    return differing


def seconds(work: Callable[[], object]) -> float:
    """What it takes once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Times:
    """Seconds of one size.

    Attributes:
        first: the first board, with reading all scores.
        new_filters: each with a filter that was not looked at before.
        whole: all prompts, with fewer models than before.
        again: what was looked at before.
        plain: the first filter the plain way.
    """

    first: float
    new_filters: tuple[float, ...]
    whole: float
    again: float
    plain: float


def timed(made: MadeUp) -> Times:
    """Take the times of one made-up store."""
    plain_query = BoardQuery("drawn")

    def board(**changes: Any) -> float:
        query = replace(plain_query, **changes)
        return seconds(lambda: model_board(made.reader, made.view, query))

    n_prompts = len(made.prompts)
    even = np.full(n_prompts, 1 / n_prompts)
    counts = np.random.default_rng(1).multinomial(n_prompts, even, 1000)
    return Times(
        first=board(),
        new_filters=tuple(board(words=words) for words in FILTERS),
        whole=board(skills=(None, *reversed(SKILLS))),
        again=board(words=FILTERS[0]),
        plain=seconds(lambda: plain_way(made, FILTERS[0], counts)),
    )


def main() -> int:
    """Measure and print; 1 where the goal is missed."""
    missed = False
    for n_prompts, n_seeds in SIZES:
        took = timed(made_up(n_prompts, n_seeds))
        median = float(np.median(took.new_filters))
        missed |= median > GOAL_S
        print(
            f"{n_prompts:,} prompts x {n_seeds}: first board, with reading {took.first:.2f} s; new "
            f"filter {median:.3f} s (worst {max(took.new_filters):.3f}, goal {GOAL_S}); all prompts "
            f"{took.whole:.3f} s; the same again {took.again * 1000:.1f} ms; plain way "
            f"{took.plain:.1f} s, {took.plain / took.new_filters[0]:.0f} times as long"
        )
    return int(missed)


def _prompt_set(prompts: tuple[SetPrompt, ...]) -> PromptSet:
    card = Card.model_validate(
        {
            "name": "drawn", "title": "Drawn", "family": "made_up", "summary": "s",
            "description": "d", "revision": "1", "cluster": "prompt",
            "headline": {"measure": MEASURE}, "skills": SKILLS, "measures": MEASURES,
        }
    )  # fmt: skip
    return PromptSet(card, lambda _: prompts)


def _entry(submission_id: str, prompt_set: str, n_seeds: int, n_images: int) -> ModelEntry:
    images = ImagesSeen(
        prompt_set=prompt_set,
        revision="1",
        seeds=tuple(range(n_seeds)),
        wanted=n_images,
        present=n_images,
    )
    runs = {
        judge: JudgeRun(submission_id=judge.partition("/")[0], metric=judge, scored_at=NOW)
        for judge in METRICS
    }
    return ModelEntry(
        submission_id=submission_id, model=submission_id, submitter="ada", images=images,
        judges=runs, received_at=NOW, published_at=NOW, since=NOW,
    )  # fmt: skip


def _view(orders: Orders) -> View:
    card = Card.model_validate(
        {
            "name": "rated", "title": "Rated", "family": "made_up", "summary": "s",
            "description": "d", "revision": "1", "cluster": "prompt",
            "headline": Selector(measure="srcc"), "skills": SKILLS,
            "measures": {"srcc": MeasureInfo(title="Spearman", meaning="m", chance=0.0)},
        }
    )  # fmt: skip
    cells = [
        Cell(
            entry_id=metric, measure="srcc", variant=None, split=None, facet=None, skill=skill,
            value=0.5, ci_low=0.4, ci_high=0.6, n_items=100, n_clusters=50, n_missing=0, note="",
            rank=1, rank_low=1, rank_high=3, tier=1,
        )
        for metric in METRICS
        for skill in (None, *SKILLS)
    ]  # fmt: skip
    entries = {
        metric: Entry(
            entry_id=metric, submission_id=metric.partition("/")[0], metric=metric,
            kind=Kind.METRIC, submitter="ada", received_at=NOW, published_at=NOW,
        )
        for metric in METRICS
    }  # fmt: skip
    snapshot = Snapshot(NOW, entries, {card.name: Board(card, cells)})
    return view_of(snapshot, {card.name: card}, orders, "1")


if __name__ == "__main__":
    raise SystemExit(main())
