"""Reader of the model track and of its scores: once per change of the store."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.arrays import FloatArray
from benchmarks.errors import SubmitterError, TransientError
from benchmarks.parquet import SCHEMA
from benchmarks.prompt_sets.means import by_seed
from benchmarks.prompt_sets.prompt_set import PromptSet, SetPrompt
from leaderboard.cache import MemoryCache
from leaderboard.ledger.judge_pins import PATH as PINS_PATH
from leaderboard.ledger.judge_pins import Pins
from leaderboard.models.board_types import Evidence, ModelBoard
from leaderboard.publication.model_entries import PATH, ModelEntry, ModelTrack, parse_track
from leaderboard.store.interface import NotFoundError, Repository, Store

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


class ScoresReader:
    """Reads the scores of models, and keeps the latest. Several threads may share one."""

    def __init__(self, public: Repository) -> None:
        self._public = public
        self._kept: MemoryCache[ImageScores] = MemoryCache(lambda one: one.nbytes, KEPT_BYTES)

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


_COLUMNS_BYTES = 128 << 20  # One metric's values of fifty models on 1,600 prompts take 1.5 MB
_KEPT = 512
_BOARDS = 64
_THINGS = 1024
_BOARD_BYTES = 64 << 20
_OF_MEAN = 400  # Bytes of one mean on a finished board, about


class OfView:
    """What depends on the boards of metrics at one version of the store."""

    def __init__(self) -> None:
        self.evidence: MemoryCache[Mapping[str, tuple[Evidence, str]]] = MemoryCache(
            lambda _: 1, most=4096
        )
        self.boards: MemoryCache[ModelBoard] = MemoryCache(_board_bytes, _BOARD_BYTES, _BOARDS)
        self.further: MemoryCache[Any] = MemoryCache(lambda _: 1, most=_BOARDS)


class BoardCache:
    """Columns of scores, and boards that were asked for."""

    def __init__(self) -> None:
        self.columns: MemoryCache[Any] = MemoryCache(  # of JudgeColumns
            lambda one: one.nbytes, _COLUMNS_BYTES, _KEPT
        )
        self._things: MemoryCache[Any] = MemoryCache(lambda _: 1, most=_THINGS)
        # A large board takes 100 MB while it is made, and numpy all processors: one at a time.
        self.turn = threading.Lock()
        self._lock = threading.Lock()
        self._views: weakref.WeakKeyDictionary[Any, OfView] = weakref.WeakKeyDictionary()

    def of_view(self, view: Any) -> OfView:
        """What is kept for a view; let go with it."""
        with self._lock:
            # A view compares its boards; what ranks them is its own.
            return self._views.setdefault(view.orders, OfView())

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A small thing that is made once, such as the slices of a prompt set."""
        return self._things.of(key, make)


def _board_bytes(board: ModelBoard) -> int:
    means = sum(len(s.means) for skill in board.skills.values() for s in skill.standings.values())
    pairs = sum(
        len(s.better_than) for skill in board.skills.values() for s in skill.standings.values()
    )
    return _OF_MEAN * means + 100 * pairs


Value = TypeVar("Value")


class KeptFile(Generic[Value]):
    """A file of the store, parsed again only when it has changed.

    While the store does not answer, what was read last stays.
    """

    def __init__(
        self, public: Repository, path: str, parse: Callable[[bytes], Value], absent: Value
    ) -> None:
        self._public, self._path, self._parse = public, path, parse
        self._absent = self._value = absent
        self._content: bytes | None = None
        self._lock = threading.Lock()

    def now(self) -> Value:
        """The value of the file as it is."""
        content = b""
        try:
            with contextlib.suppress(NotFoundError):
                content = self._public.read(self._path)
        except TransientError:
            if self._content is None:
                raise
            return self._value
        with self._lock:
            if content != self._content:
                self._value = self._parse(content) if content else self._absent
                self._content = content
            return self._value


class ModelReader:
    """The models on the boards, their prompts and their scores. Several threads may share one."""

    def __init__(
        self, store: Store, prompt_sets: Mapping[str, PromptSet], data: Path | None
    ) -> None:
        self.prompt_sets = prompt_sets
        self.scores = ScoresReader(store.public)
        self.public = store.public
        self.data = data
        self.memory = BoardCache()
        self._track = KeptFile(store.public, PATH, parse_track, ModelTrack())
        self._pins = KeptFile(store.public, PINS_PATH, Pins.model_validate_json, Pins())

    def track(self) -> ModelTrack:
        """The models on the boards now."""
        return self._track.now()

    def pins(self) -> Pins:
        """What operators decided of metrics as judges."""
        return self._pins.now()

    def prompts(self, prompt_set: str) -> tuple[SetPrompt, ...] | None:
        """The prompts of a set; None where it or its files are not here."""
        known = self.prompt_sets.get(prompt_set)
        if known is None:
            return None
        try:
            return known.set_prompts(self.data)
        except SubmitterError:
            return None
