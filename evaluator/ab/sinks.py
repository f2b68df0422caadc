"""Sinks for the curves of a watch, besides its table: a webhook, TensorBoard, Weights & Biases.

What each sink was sent is kept beside the table, so that a restart goes on, and what a sink missed
while it failed is sent when it works again. A webhook may be sent a checkpoint twice if the watch is
killed between the two; the others know their points and are not.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.sources.output import finite, write_whole

RECORD = "sent.json"
_TIMEOUT_S = 10.0
_INIT_TIMEOUT_S = 30
_SCALARS = ("mean", "ci_low", "ci_high", "n_missing")


@dataclass(frozen=True)
class ScoredCheckpoint:
    """The rows of the table of one checkpoint."""

    name: str
    place: int  # in the order in which checkpoints were scored, from 0
    begun: datetime  # when the first checkpoint of the table was scored
    rows: tuple[Mapping[str, Any], ...]

    @property
    def at(self) -> datetime:
        """When it was scored."""
        at: datetime = self.rows[0]["at"]
        return at

    @property
    def step(self) -> int:
        """The number in its name, or else its place."""
        step = self.rows[0]["step"]
        return self.place if step is None else int(step)

    @property
    def scalars(self) -> dict[str, float]:
        """Mean, ends of its interval and missing scores by metric and skill; none that is no number."""
        return {
            f"{row['metric']}/{row['skill'] or 'all prompts'}/{name}": float(row[name])
            for row in self.rows
            for name in _SCALARS
            if math.isfinite(row[name])
        }


class SinkError(Exception):
    """A sink did not take a checkpoint; it may take it later."""


class Sink(Protocol):
    """Takes checkpoints, in the order of their places."""

    title: str  # for messages
    address: str  # what it was sent is known by

    def send(self, checkpoint: ScoredCheckpoint) -> None:
        """Send a checkpoint; `SinkError` if it was not taken."""

    def close(self) -> None:
        """End what is open."""


class Deliveries:
    """Record of the checkpoints that each sink was sent, kept beside the table."""

    def __init__(self, folder: Path) -> None:
        """Read the record of a folder, if there is one.

        Raises:
            SubmitterError: the file is no such record.
        """
        self._file = folder / RECORD
        self._sent: dict[str, dict[str, float]] = {}  # sink to checkpoint to when it was scored
        try:
            if self._file.exists():
                found = json.loads(self._file.read_text(encoding="utf-8"))
                self._sent = {
                    key: {name: float(at) for name, at in of.items()} for key, of in found.items()
                }
        except (OSError, ValueError, AttributeError, TypeError) as error:
            raise SubmitterError(
                "bad_curves",
                f"{self._file} is no record of what was sent.",
                "Remove it to send everything again, or name another --out.",
            ) from error

    def send(self, sink: Sink, checkpoints: Sequence[ScoredCheckpoint]) -> str:
        """Send a sink what it was not sent yet, up to where it fails.

        A checkpoint that was scored anew is sent anew.

        Returns: why it failed; empty where it has everything.
        """
        # Addresses may hold secrets: their hash stands in the file.
        address = sink.address.encode(errors="surrogatepass")  # Names of folders may be any bytes.
        sent = self._sent.setdefault(hashlib.sha256(address).hexdigest()[:16], {})
        for checkpoint in checkpoints:
            at = checkpoint.at.timestamp()
            if sent.get(checkpoint.name) == at:
                continue
            try:
                sink.send(checkpoint)
            except SinkError as error:
                return f"{checkpoint.name} was not sent to {sink.title}: {error}"
            sent[checkpoint.name] = at
            content = json.dumps(self._sent, indent=1, ensure_ascii=False)
            write_whole(self._file, lambda place: place.write_text(content, encoding="utf-8"))  # noqa: B023 (called at once)
        return ""


class Webhook:
    """An address that is sent the rows of each checkpoint as JSON."""

    title = "the webhook"

    def __init__(self, address: str) -> None:
        """Raise SubmitterError, `bad_webhook`, where nothing can be sent to the address."""
        from benchmarks.sources.client import httpx  # noqa: PLC0415 (the command line starts light)
        from evaluator.bounded_http import web_address  # noqa: PLC0415 (as above)

        try:
            self._url = web_address(address)
        except httpx.InvalidURL:
            # Its text may have the address, which is a secret.
            raise SubmitterError(
                "bad_webhook",
                "The address of the webhook is none that can be asked.",
                "Give it whole, as in https://HOST/PATH or http://HOST:PORT/PATH.",
            ) from None
        self.address = f"webhook {address}"

    def send(self, checkpoint: ScoredCheckpoint) -> None:
        """Post a checkpoint; anything but success is a failure."""
        from benchmarks.sources.client import httpx  # noqa: PLC0415 (the command line starts light)
        from evaluator.bounded_http import exchange  # noqa: PLC0415 (as above)

        told = finite({"checkpoint": checkpoint.name, "rows": checkpoint.rows})
        headers = {"Content-Type": "application/json"}
        try:
            response = exchange(
                "POST", self._url, seconds=_TIMEOUT_S, most=0,
                content=json.dumps(told, default=str), headers=headers,
            )  # fmt: skip
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            # Its text may have the address, which is a secret.
            raise SinkError(type(error).__name__) from error
        if not response.is_success:
            raise SinkError(f"it answered {response.status_code}")

    def close(self) -> None:
        """Nothing is open."""


class TensorBoard:
    """A folder of event files, one for each checkpoint.

    A point is known by its tag, step and time, which the table keeps: what the folder has is not
    written again.
    """

    title = "TensorBoard"

    def __init__(self, folder: Path) -> None:
        """Raise PlatformError where the library is not installed."""
        _check_installed("tensorboard", "--tensorboard")
        self.address = f"tensorboard {folder.resolve()}"
        self._folder = folder

    def send(self, checkpoint: ScoredCheckpoint) -> None:
        """Write the scalars of a checkpoint that the folder does not have."""
        from tensorboard.summary import Writer  # noqa: PLC0415 (an extra)

        at = checkpoint.at.timestamp()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            there = self._points()
            writer = Writer(str(self._folder))
            try:
                for tag, value in checkpoint.scalars.items():
                    if (tag, checkpoint.step, at) not in there:
                        writer.add_scalar(tag, value, checkpoint.step, wall_time=at)
            finally:
                writer.close()
        except OSError as error:
            raise SinkError(str(error)) from error

    def _points(self) -> set[tuple[str, int, float]]:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader  # noqa: PLC0415 (an extra)

        return {
            (value.tag, event.step, event.wall_time)
            for file in self._folder.glob("*tfevents*")
            for event in EventFileLoader(str(file)).Load()
            for value in event.summary.value
        }

    def close(self) -> None:
        """Nothing is open."""


class WeightsAndBiases:
    """A run of a project, which a restart goes on with.

    A checkpoint has its place as the step of the run: what the run has is not taken again. The step
    in its name is the axis of its scalars.
    """

    title = "Weights & Biases"

    def __init__(self, project: str, run: str, title: str, folder: Path) -> None:
        """Raise PlatformError where the library is not installed.

        `run`: its id, empty for one of the table's own, so that curves that were made anew have a new
        one; `title`: its name then; `folder`: of the table.
        """
        _check_installed("wandb", "--wandb")
        self._project, self._named, self._title = project, run, run or title
        self._folder = folder
        self._run: Any = None
        self.address = f"wandb {project}/{run or folder.resolve()}"

    def send(self, checkpoint: ScoredCheckpoint) -> None:
        """Log the scalars of a checkpoint."""
        import wandb  # noqa: PLC0415 (an extra)

        scalars = checkpoint.scalars | {"checkpoint": checkpoint.step}
        try:
            if self._run is None:
                self._run = self._opened(checkpoint)
            if checkpoint.place >= self._run.step:
                self._run.log(scalars, step=checkpoint.place, commit=True)
        except (wandb.errors.Error, OSError) as error:
            self.close()
            raise SinkError(" ".join(str(error).split())) from error

    def _opened(self, checkpoint: ScoredCheckpoint) -> Any:
        import wandb  # noqa: PLC0415 (an extra)

        place = checkpoint.place
        table = f"{self._folder.resolve()} {checkpoint.begun.timestamp()}"
        own = hashlib.sha256(table.encode()).hexdigest()[:12]
        run = wandb.init(
            project=self._project, id=self._named or own, name=self._title, dir=str(self._folder),
            resume="allow", settings=wandb.Settings(console="off", init_timeout=_INIT_TIMEOUT_S),
        )  # fmt: skip
        if self._named and run.step > place + 1:
            run.finish()
            raise SinkError(
                f"the run {self._named} has {run.step} points, of which {place} were sent from here; name "
                "another run"
            )
        run.define_metric("*", step_metric="checkpoint")
        return run

    def close(self) -> None:
        """Finish the run; what it was sent is uploaded, or kept where it is offline."""
        run, self._run = self._run, None
        if run is not None:
            run.finish()


def _check_installed(module: str, option: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise PlatformError(
            "libraries_missing",
            f"{option} needs {module}, which is not installed.",
            "Install the extra: pip install 'assay[watch]', or .[watch] in a clone.",
        ) from error
