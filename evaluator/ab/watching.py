"""Curves of a training run: each new folder of samples is scored once it is whole, and kept in a table."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.arrays import FloatArray
from benchmarks.errors import AssayError, SubmitterError
from benchmarks.sources.output import write_whole
from benchmarks.statistics.better_or_tied import t_interval
from evaluator.ab.images import (
    WITHHELD,
    DrawnImages,
    ModelImages,
    fingerprint,
    model_images,
    single_model,
)
from evaluator.ab.scoring import FolderScorer
from evaluator.ab.sinks import ScoredCheckpoint
from evaluator.generation.prompts import Prompt
from evaluator.standalone_page import render_page

TABLE = "curves.parquet"
PAGE = "curves.html"
SETTINGS = "curves.json"
"""What all points of a curve share: a hash of the prompts, and each metric with its fingerprint."""
COLUMNS = (
    "checkpoint", "step", "at", "images", "metric", "skill", "mean", "ci_low", "ci_high", "n",
    "n_missing",
)  # fmt: skip
_NUMBER = re.compile(r"\d+")
_STEPS = {"step": "Int64"}
"""Type of the column of steps, which has names without one: as floats, large ones lose digits."""
_NO_STEP = 1 << 63
State = tuple[tuple[str, int, int], ...]
"""Name, size and time of change of every file of a folder."""


@dataclass(frozen=True)
class Sample:
    """A folder of samples that is whole."""

    name: str
    step: int | None  # the last number in its name
    drawn: DrawnImages

    @property
    def images(self) -> str:
        """What changes where an image does."""
        return fingerprint(sorted(self.drawn.digests.items()))


class Watcher:
    """Looks at the folders below one, again and again."""

    def __init__(self, folder: Path, prompts: Sequence[Prompt]) -> None:
        self._folder = folder
        self._prompts = prompts
        self._seen: dict[str, State] = {}
        self.waiting: dict[str, str] = {}  # folders that are not whole, and why

    def whole(self, done: frozenset[str], *, settled: bool = False) -> Iterator[Sample]:
        """Folders that are not done, have an image for every prompt, and did not change since the last look.

        A prompt of which a folder's own table withholds an image counts as missing.

        `settled`: do not wait for a second look.

        Raises:
            SubmitterError: the folder cannot be read.
        """
        try:
            places = list(self._folder.iterdir())
        except OSError as error:
            raise SubmitterError(
                "no_folder", f"There is no folder {self._folder}.", "Name the one of samples."
            ) from error
        self.waiting = {}
        for place in sorted(places, key=_order):
            if not place.is_dir() or place.name.startswith(".") or place.name in done:
                continue
            state = _state(place)
            before, self._seen[place.name] = self._seen.get(place.name), state
            if not settled and state != before:
                self.waiting[place.name] = "it changes"
                continue
            try:
                found = model_images(place, self._prompts)
            except SubmitterError as error:  # it went, or its table is being written
                self.waiting[place.name] = str(error)
                continue
            drawn = self._drawn(found)
            lacking = [one for one in found.problems if one.code != WITHHELD or not drawn.places]
            if lacking:
                self.waiting[place.name] = lacking[0].sentence
                continue
            yield Sample(place.name, _step(place.name), drawn)

    def _drawn(self, found: ModelImages) -> DrawnImages:
        texts = {one.text for one in self._prompts if one.prompt_id in found.withheld}
        without = {one.prompt_id: () for one in self._prompts if one.text in texts}
        return single_model(replace(found, files={**found.files, **without}), self._prompts)

    def scored(self, sample: Sample, scorer: FolderScorer, at: datetime) -> list[dict[str, Any]]:
        """Rows of a checkpoint; none where its folder changed, or went, while it was scored."""
        rows: list[dict[str, Any]] = []
        try:
            rows = sample_rows(sample, scorer, at)
        except (AssayError, OSError):
            if self._unchanged(sample):
                raise
        if self._unchanged(sample):
            return rows
        self.waiting[sample.name] = "it changed while it was scored"
        return []

    def _unchanged(self, sample: Sample) -> bool:
        return _state(self._folder / sample.name) == self._seen[sample.name]


class Curves:
    """What is known of every checkpoint: one row for each metric and skill."""

    def __init__(self, folder: Path) -> None:
        """Read the table of a folder, which is made with its first row.

        Raises:
            SubmitterError: the file is no such table.
        """
        self._folder = folder
        self._file = folder / TABLE
        self.rows = pd.DataFrame(columns=list(COLUMNS))
        if self._file.exists():
            try:
                self.rows = pd.read_parquet(self._file)[list(COLUMNS)].astype(_STEPS)
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise SubmitterError(
                    "bad_curves", f"{self._file} is no table of curves.", "Name another --out."
                ) from error

    def go_on(self, prompts: Sequence[Prompt], metrics: Sequence[str]) -> None:
        """Go on with the curves of these prompts and metrics, or begin them; to be called once.

        A table without settings, as older versions left it, is gone on with.

        Args:
            prompts: which each checkpoint draws.
            metrics: name and fingerprint of each.

        Raises:
            SubmitterError: `other_settings`: the table is of others.
        """
        asked = [(one.prompt_id, one.text, one.skills) for one in prompts]
        now = {"prompts": fingerprint(asked), "metrics": sorted(metrics)}
        file = self._folder / SETTINGS
        try:
            before = now if self.rows.empty else json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            before = now
        except (OSError, ValueError) as error:
            raise SubmitterError(
                "bad_curves", f"{file} cannot be read.", "Name another --out."
            ) from error
        if before != now:
            raise SubmitterError(
                "other_settings",
                f"{self._file} is of other prompts or other metrics: points of both are no curve.",
                "Watch with the same, or name another --out.",
            )
        content = json.dumps(now, indent=1, ensure_ascii=False)
        write_whole(file, lambda place: place.write_text(content, encoding="utf-8"))

    @property
    def done(self) -> frozenset[str]:
        """Checkpoints that are in the table."""
        return frozenset(self.rows["checkpoint"])

    @property
    def checkpoints(self) -> list[ScoredCheckpoint]:
        """Checkpoints in the order in which they were scored."""
        found = self.rows.groupby("checkpoint", sort=False)
        return [
            ScoredCheckpoint(
                str(name), place, self.rows["at"].iloc[0], tuple(map(_row, of.to_dict("records")))
            )
            for place, (name, of) in enumerate(found)
        ]

    def add(self, rows: Sequence[dict[str, Any]], prompts: int) -> None:
        """Add the rows of a checkpoint, and draw the page anew."""
        new = pd.DataFrame(rows, columns=list(COLUMNS)).astype(_STEPS)
        self.rows = new if self.rows.empty else pd.concat([self.rows, new], ignore_index=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._file, lambda place: self.rows.to_parquet(place, index=False))
        page = self.html(prompts)
        write_whole(self._folder / PAGE, lambda place: place.write_text(page, encoding="utf-8"))

    def html(self, prompts: int) -> str:
        """The page: a small chart with a band for each metric and skill."""
        charts = [
            _chart(str(metric), str(skill), of.sort_values(["step", "at"], kind="stable"))
            for (metric, skill), of in self.rows.groupby(["metric", "skill"], sort=True)
        ]
        return render_page(
            "evaluator.ab",
            "curves.html",
            charts=charts,
            checkpoints=self.rows["checkpoint"].nunique(),
            prompts=prompts,
        )


def _row(of: dict[Hashable, Any]) -> dict[str, Any]:
    row = {str(name): value for name, value in of.items()}
    return row | {"step": None if pd.isna(of["step"]) else int(of["step"])}


def sample_rows(sample: Sample, scorer: FolderScorer, at: datetime) -> list[dict[str, Any]]:
    """Score a checkpoint: mean and interval over prompts for each metric and skill."""
    found = scorer.compared((sample.name, ""), sample.drawn)
    keys = {skill for one in sample.drawn.prompts for skill in one.skills if ":" not in skill}
    rows = []
    for metric in found.metrics:
        for skill in ("", *sorted(keys)):
            if not metric.judges(skill or None):
                continue
            values = metric.values[found.members(skill or None), 0]
            mean, low, high, n = mean_interval(values)
            rows.append(
                {
                    "checkpoint": sample.name, "step": sample.step, "at": at,
                    "images": sample.images, "metric": metric.name, "skill": skill, "mean": mean,
                    "ci_low": low, "ci_high": high, "n": n, "n_missing": int(values.size - n),
                }
            )  # fmt: skip
    return rows


def mean_interval(values: FloatArray) -> tuple[float, float, float, int]:
    """Mean, 95 % t interval and number of the values that are there; NaN where they are too few."""
    known = values[np.isfinite(values)]
    return (float(known.mean()) if known.size else math.nan), *t_interval(known), known.size


def _step(name: str) -> int | None:
    """The last number in a name; None where there is none, or one that no column holds."""
    found = _NUMBER.findall(name)
    step = int(found[-1]) if found else _NO_STEP
    return step if step < _NO_STEP else None


def _order(place: Path) -> tuple[bool, int, str]:
    """By steps; what has none comes last."""
    step = _step(place.name)
    return step is None, step or 0, place.name


def _state(folder: Path) -> State:
    found = []
    for below, _, names in os.walk(folder):
        for place in (Path(below) / name for name in names):
            with suppress(FileNotFoundError):  # it was moved meanwhile: the folder changes
                told = place.stat()
                found.append((place.relative_to(folder).as_posix(), told.st_size, told.st_mtime_ns))
    return tuple(sorted(found))


_WIDE, _HIGH = 300.0, 110.0


def _chart(metric: str, skill: str, of: pd.DataFrame) -> dict[str, Any]:
    """Places of a line and its band, from left to right in the order of the rows."""
    known = of[of["mean"].notna()]
    lows = known["ci_low"].fillna(known["mean"]).to_numpy(float)
    highs = known["ci_high"].fillna(known["mean"]).to_numpy(float)
    means = known["mean"].to_numpy(float)
    low, high = (float(lows.min()), float(highs.max())) if means.size else (0.0, 1.0)
    size = high - low or 1.0
    steps = known["step"].to_numpy(float, na_value=math.nan)
    if means.size and np.isfinite(steps).all() and np.ptp(steps) > 0:
        across = (steps - steps[0]) / np.ptp(steps) * _WIDE
    else:
        across = np.linspace(0.0, _WIDE, means.size) if means.size > 1 else np.array([_WIDE / 2])

    def up(values: FloatArray) -> FloatArray:
        placed: FloatArray = _HIGH - (values - low) / size * _HIGH
        return placed

    def way(x: FloatArray, y: FloatArray) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))

    band = f"{way(across, up(highs))} {way(across[::-1], up(lows)[::-1])}" if means.size else ""
    return {
        "metric": metric,
        "skill": skill,
        "low": low,
        "high": high,
        "band": band,
        "line": way(across, up(means)) if means.size else "",
        "dots": [
            {"x": x, "y": y, "said": f"{name}: {mean:.4g} [{a:.4g}, {b:.4g}]"}
            for x, y, name, mean, a, b in zip(
                across, up(means), known["checkpoint"], means, lows, highs, strict=False
            )
        ],
        "latest": known["mean"].iloc[-1] if means.size else None,
        "missing": int(of["n_missing"].sum()),
    }
