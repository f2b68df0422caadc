"""Checkpoints of a training run: written whole, and refused where they belong to another run."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from benchmarks.errors import SubmitterError
from benchmarks.rows import Row
from benchmarks.sources.output import DRAFT, LOCK, alone_in, replace_durably

if TYPE_CHECKING:
    from torch import Tensor

RUN = "run.json"
LOG = "log.jsonl"
_CHECKPOINT = "checkpoint.pt"
_BEST = "best.pt"
_ROWS = "held-out.json"


@dataclass(frozen=True)
class Checkpoint:
    """The state after a step. Everything random is drawn from seed and step, so no generator is kept."""

    step: int
    weights: Mapping[str, Tensor]  # what is trained, and buffers
    optimiser: Mapping[str, Any]
    scaler: Mapping[str, Any]  # of gradients in float16; empty in other precisions


@dataclass(frozen=True)
class TrainingFolder:
    """Folder of a run: settings, the log, the last checkpoint, the best weights, and what was measured."""

    path: Path

    @contextmanager
    def opened(self, run: Mapping[str, Any]) -> Iterator[None]:
        """Make the folder, or go on in it; keeps other runs out.

        Raises:
            SubmitterError: `other_run`: it is of a run with other settings or data, which are told;
                `folder_busy`, `folder_not_empty`, `cannot_write`, `checkpoint_damaged`.
        """
        with writing(self.path):
            self._check_ours()
        with alone_in(self.path):
            self._take_over(run)
            yield

    def _check_ours(self) -> None:
        there = {one.name for one in self.path.iterdir()} if self.path.is_dir() else set()
        of_others = [name for name in there if name != LOCK and not name.endswith(DRAFT)]
        if of_others and RUN not in there:
            raise SubmitterError(
                "folder_not_empty",
                f"{self.path} holds other files, and no {RUN} of an earlier run.",
                "Name a new folder.",
            )

    def _take_over(self, run: Mapping[str, Any]) -> None:
        file = self.path / RUN
        if not file.exists():
            self._put(RUN, f"{json.dumps(run, indent=1)}\n".encode())
            return
        with _reading(file):
            before = dict(json.loads(file.read_text("utf-8")))
        now = json.loads(json.dumps(run))
        other = [
            f"{key} was {_short(before.get(key))} and is {_short(now.get(key))}"
            for key in dict.fromkeys([*before, *now])
            if before.get(key) != now.get(key)
        ]
        if other:
            raise SubmitterError(
                "other_run",
                f"{self.path} is of another run: {'; '.join(other)}.",
                "Name a new folder, or go on with what it began with.",
            )

    def write(self, checkpoint: Checkpoint) -> None:
        """Replace the last checkpoint."""
        self._write(_CHECKPOINT, vars(checkpoint))

    def read(self) -> Checkpoint | None:
        """The last checkpoint, on the CPU."""
        found = self._read(_CHECKPOINT)
        with _reading(self.path / _CHECKPOINT):
            return None if found is None else Checkpoint(**found)

    def write_best(self, weights: Mapping[str, Tensor]) -> None:
        """Keep the weights of the best evaluation."""
        self._write(_BEST, dict(weights))

    def read_best(self) -> Mapping[str, Tensor]:
        """The weights of the best evaluation.

        Raises:
            SubmitterError: `no_evaluation`: there was none.
        """
        found: Mapping[str, Tensor] | None = self._read(_BEST)
        if found is None:
            raise SubmitterError(
                "no_evaluation",
                f"{self.path} has no best weights: nothing was evaluated.",
                "Evaluate more often, or keep the last weights.",
            )
        return found

    def write_rows(self, rows: Mapping[int, Sequence[Row]]) -> None:
        """Keep what was measured on the held-out part, by the step of the weights."""
        told = {step: [one.to_json() for one in its] for step, its in rows.items()}
        self._put(_ROWS, json.dumps(told).encode())

    def read_rows(self) -> dict[int, tuple[Row, ...]]:
        """What was measured on the held-out part, by the step of the weights."""
        file = self.path / _ROWS
        if not file.exists():
            return {}
        with _reading(file):
            told = dict(json.loads(file.read_bytes()))
            return {int(step): tuple(map(Row.from_json, its)) for step, its in told.items()}

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        import torch  # noqa: PLC0415 (takes seconds)

        buffer = io.BytesIO()
        torch.save(dict(content), buffer)
        self._put(name, buffer.getvalue())

    def _put(self, name: str, content: bytes) -> None:
        with writing(self.path):
            replace_durably(self.path / name, content)

    def _read(self, name: str) -> Any:
        import torch  # noqa: PLC0415 (takes seconds)

        file = self.path / name
        with _reading(file):
            return torch.load(file, "cpu", weights_only=True) if file.exists() else None

    def log(self) -> list[dict[str, Any]]:
        """The lines of the log, but for one that was cut off."""
        file = self.path / LOG
        if not file.exists():
            return []
        with _reading(file):
            whole, _, _ = file.read_bytes().rpartition(b"\n")
            return [dict(json.loads(line)) for line in whole.splitlines()]

    def cut_log(self, step: int) -> None:
        """Leave out the lines after a step, which is taken again.

        Raises:
            SubmitterError: `checkpoint_damaged`: a step up to that one is not in the log.
        """
        with _reading(self.path / LOG):
            kept = [line for line in self.log() if line["step"] <= step]
            there = {line["step"] for line in kept if "held_out" not in line}
            if lacking := [one for one in range(1, step + 1) if one not in there]:
                raise ValueError(f"it lacks {len(lacking)} of {step} steps, first {lacking[0]}")
        self._put(LOG, "".join(map(_line, kept)).encode())

    @contextmanager
    def log_writer(self) -> Iterator[LogWriter]:
        """Append to the log."""
        with writing(self.path):
            descriptor = os.open(self.path / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            yield LogWriter(self.path, descriptor)
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class LogWriter:
    """Writes lines of the log."""

    path: Path  # of the run
    descriptor: int

    def add(self, **line: Any) -> None:
        """Write a line; visible at once, and on disk after `sync`."""
        content = _line(line).encode()
        with writing(self.path):
            while content:
                content = content[os.write(self.descriptor, content) :]

    def sync(self) -> None:
        """Have all lines on disk."""
        with writing(self.path):
            os.fsync(self.descriptor)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say in words that a folder cannot be written.

    Raises:
        SubmitterError: `cannot_write`.
    """
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise SubmitterError(
            "cannot_write",
            f"{folder} cannot be written: {error}.",
            "Make room, or choose another folder.",
        ) from error


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Say in words that a file of the run is damaged."""
    try:
        yield
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        EOFError,
        RuntimeError,
        UnpicklingError,
    ) as error:
        raise SubmitterError(
            "checkpoint_damaged",
            f"{file} cannot be read: {(str(error) or repr(error)).splitlines()[0]}",
            "Restore the folder, or begin anew in another.",
        ) from error


def _line(line: Mapping[str, Any]) -> str:
    return f"{json.dumps(line)}\n"


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
