"""Rates of work: measured here, published, or estimated from a GPU's data sheet."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from benchmarks.errors import SubmitterError
from evaluator.scorers.row import ScorerRow

FOLDER = Path(__file__).parent
PEAK_SHARE = (0.2, 0.6)
"""Of its peak that a GPU reaches, as assumed: no row has been run on a GPU by us. On a CPU the
engine reaches 0.75 of a matrix product's speed."""
MEMORY_SHARE = (0.3, 0.8)
"""Of its memory's speed that writing tokens one after the other reaches, as assumed."""
TOGETHER = 8
"""Answers that are written at once where all goes well; one where it does not."""
DECODE_S = (0.0026, 0.048)
"""Seconds of one core to read an image: a JPEG of 512 px, and a PNG of 1,024 px with its resize;
measured on one core of an AMD EPYC (Zen 3), `python -m benchmarks_perf preprocessing`."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Gpu(_Frozen):
    """A GPU by its data sheet."""

    name: str
    title: str
    float32_tflops: float
    half_tflops: float
    memory_gb_s: float
    memory_gb: float

    def flops_per_s(self, row: ScorerRow) -> float:
        """At its peak, in the precision of a row."""
        return 1e12 * (self.float32_tflops if row.dtype == "float32" else self.half_tflops)

    def holds(self, row: ScorerRow) -> bool | None:
        """Whether the weights alone fit; None where nobody counted them."""
        if row.parameters is None:
            return None
        return row.parameters * bytes_of(row) < 1e9 * self.memory_gb


class Published(_Frozen):
    """What a paper prints for its own program."""

    row: str
    seconds: float
    """For 1,000 pairs."""
    source: str


class MeasuredRate(_Frozen):
    """What a row took on a machine, asked with pictures of two sizes."""

    row: str
    device: str
    """As the driver names the GPU; the processor otherwise."""
    dtype: str
    image_s: tuple[float, float]
    """Seconds for one more image with its first text: the least and the most."""
    text_s: tuple[float, float]
    """Seconds for one more text of an image that is known."""
    images: int
    """Asked about, each time."""
    sides: tuple[int, ...]
    """Of the pictures, in pixels."""
    measured_at: AwareDatetime
    versions: dict[str, str] = Field(default_factory=dict)


class MeasuredRates(_Frozen):
    """The file of them."""

    schema_version: int = 1
    rates: tuple[MeasuredRate, ...] = ()

    def of(self, row: str) -> MeasuredRate | None:
        """The latest of a row; None: it was not measured."""
        found = [rate for rate in self.rates if rate.row == row]
        return max(found, key=lambda rate: rate.measured_at, default=None)

    def with_(self, rate: MeasuredRate) -> MeasuredRates:
        """One more; what was measured of the same row on the same device before is dropped."""
        kept = [r for r in self.rates if (r.row, r.device) != (rate.row, rate.device)]
        return MeasuredRates(rates=(*kept, rate))


def read_rates(path: Path) -> MeasuredRates:
    """What was measured; nothing where there is no file.

    Raises:
        SubmitterError: `bad_rates`.
    """
    if not path.exists():
        return MeasuredRates()
    try:
        return MeasuredRates.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise SubmitterError(
            "bad_rates",
            f"{path} is no file of measured rates.",
            "Name another with --rates, or remove it and measure again.",
        ) from error


def write_rates(path: Path, rates: MeasuredRates) -> None:
    """Keep what was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.write_text(rates.model_dump_json(indent=1) + "\n")
    draft.replace(path)


def find_gpu(name: str) -> Gpu:
    """A GPU by its name.

    Raises:
        SubmitterError: `unknown_gpu`.
    """
    known = gpus()
    if name not in known:
        raise SubmitterError(
            "unknown_gpu", f"There is no GPU {name!r} here.", f"Known: {', '.join(known)}."
        )
    return known[name]


@cache
def gpus() -> dict[str, Gpu]:
    """All of them by name."""
    return {gpu.name: gpu for gpu in map(Gpu.model_validate, _tables("cost_gpus.toml", "gpu"))}


@cache
def published() -> dict[str, Published]:
    """By row."""
    tables = _tables("cost_published.toml", "figure")
    return {one.row: one for one in map(Published.model_validate, tables)}


def bytes_of(row: ScorerRow) -> float:
    """Of one weight."""
    return 4.0 if row.dtype == "float32" else 2.0


def _tables(file: str, key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((FOLDER / file).read_text())[key]
    return found
