"""Published scores of models as arrays: what boards, comparisons and pages compute from."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.arrays import FloatArray
from benchmarks.prompt_sets.means import by_seed
from benchmarks.stored_scores import SCHEMA
from leaderboard.cache import MemoryCache
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.store.interface import NotFoundError, Repository

KEPT_BYTES = 48 << 20  # In memory; one metric's scores of 1,600 prompts with four seeds take 50 kB


@dataclass(frozen=True)
class ImageScores:
    """One metric's scores of one model's images of a prompt set of P prompts."""

    seeds: tuple[int, ...]  # ascending, length S
    scores: FloatArray  # shape (S, P), higher is better, NaN where there is no score
    # columns `prompt_id`, `element_id`, `score`: the mean over the seeds of each element's
    # scores; empty where the metric gives none
    elements: pd.DataFrame

    @property
    def nbytes(self) -> int:
        """About what it takes in memory."""
        return int(self.scores.nbytes + 200 * len(self.elements))


def _bytes(scores: ImageScores) -> int:
    return scores.nbytes


class ScoresReader:
    """Reads the scores of models, and keeps the latest. Several threads may share one."""

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._kept: MemoryCache[ImageScores] = MemoryCache(_bytes, KEPT_BYTES)

    def of(self, entry: ModelEntry, judge: str, prompts: Sequence[str]) -> ImageScores | None:
        """What a metric says of a model's images; None where it has not scored them."""
        run = entry.judges.get(judge)
        if run is None or run.failed:
            return None
        key = self._key(entry, judge, prompts)
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        # Whoever asks for one metric of a model asks for the others next: the file is read once.
        found = self._read(entry, prompts)
        for name, scores in found.items():
            self._kept.put(self._key(entry, name, prompts), scores)
        return found.get(judge)

    def _key(self, entry: ModelEntry, judge: str, prompts: Sequence[str]) -> Hashable:
        return entry.submission_id, entry.since, judge, entry.judges[judge].scored_at, len(prompts)

    def _read(self, entry: ModelEntry, prompts: Sequence[str]) -> dict[str, ImageScores]:
        """The scores of every metric."""
        try:
            content = self._public.read(scores_path(entry.submission_id, entry.prompt_set))
        except NotFoundError:
            return {}
        table = pq.read_table(BytesIO(content), schema=SCHEMA)
        found: dict[str, ImageScores] = {}
        for judge, run in entry.judges.items():
            rows = table.filter(pc.equal(table["metric"], judge)).to_pandas()
            whole = rows[rows["element_id"].isna()]
            if run.failed or whole.empty:
                continue
            sign = -1.0 if run.lower_is_better else 1.0
            seeds, scores = by_seed(whole.set_index("pair_id")["score"], prompts)
            found[judge] = ImageScores(seeds, np.asarray(sign * scores), _elements(rows, sign))
        return found


def scores_path(submission_id: str, prompt_set: str) -> str:
    """Where the scores of a model are."""
    return f"results/{submission_id}/{prompt_set}.scores.parquet"


def _elements(rows: pd.DataFrame, sign: float) -> pd.DataFrame:
    """Mean over the seeds of each element's scores; one without a score with a seed has none."""
    of_elements = rows[rows["element_id"].notna()]
    if of_elements.empty:  # Most metrics have none, and text takes time to look through.
        return pd.DataFrame({"prompt_id": [], "element_id": [], "score": []})
    found = of_elements[~of_elements["pair_id"].str.endswith("+")]
    prompts = found["pair_id"].str.rsplit("/", n=1).str[0]
    named = pd.DataFrame(
        {
            "prompt_id": prompts,
            "element_id": found["element_id"],
            "score": sign * found["element_score"],
        }
    )
    of = named.groupby(["prompt_id", "element_id"], sort=False)["score"]
    mean, lowest = of.mean(), of.min()
    # As over whole images: where all scores are one number, their mean is that number.
    return mean.where(lowest != of.max(), lowest).reset_index()
