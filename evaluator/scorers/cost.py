"""Cost of a built-in metric on a benchmark: hours, and what they are based on.

The plan says how often everything is done: each distinct image and each distinct text is encoded
once, a joint model goes once over each pair and may keep what it made of the image. A row says what
one pair costs (`flops_per_pair`, counted on models without weights). Where it is not counted how
that divides into image and text, the work has two ends.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, Field, ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.sources.output import write_whole
from evaluator.scorers.registry import Frozen, ScorerRow
from evaluator.scoring.asking import Size

FOLDER = Path(__file__).parent
PEAK_SHARE = (0.2, 0.6)
"""Of its peak that a GPU reaches, as assumed: no row has been run on a GPU by us. On a CPU the
engine reaches 0.75 of a matrix product's speed."""
MEMORY_SHARE = (0.3, 0.8)
"""Of its memory's speed that writing tokens one after the other reaches, as assumed."""
TOGETHER = 8  # Answers that are written at once where all goes well; one where it does not
DECODE_S = (0.0026, 0.048)
"""Seconds of one core to read an image: a JPEG of 512 px, and a PNG of 1,024 px with its resize;
measured on one core of an AMD EPYC (Zen 3), `python -m benchmarks_perf preprocessing`."""


class Gpu(Frozen):
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


class Published(Frozen):
    """What a paper prints for its own program."""

    row: str
    seconds: float  # For 1,000 pairs
    source: str


class MeasuredRate(Frozen):
    """What a row took on a machine, asked with pictures of two sizes."""

    row: str
    device: str  # As the driver names the GPU; the processor otherwise
    dtype: str
    image_s: tuple[float, float]
    """Seconds for one more image with its first text: the least and the most."""
    text_s: tuple[float, float]  # Seconds for one more text of an image that is known
    images: int  # Asked about, each time
    sides: tuple[int, ...]  # Of the pictures, in pixels
    measured_at: AwareDatetime
    versions: dict[str, str] = Field(default_factory=dict)


class MeasuredRates(Frozen):
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
    """What was measured; nothing where there is no file."""
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
    write_whole(path, lambda place: place.write_text(rates.model_dump_json(indent=1) + "\n"))


def find_gpu(name: str) -> Gpu:
    """A GPU by its name."""
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


Span = tuple[float, float]  # The least and the most
_TOWERS = Path(__file__).with_name("cost_towers.toml")

DUAL = frozenset({"dual_encoder", "blip2_itc"})  # Families that encode images and texts apart
JOINT = frozenset({"cross_encoder", "fga_blip2", "hpsv3", "image_reward", "mps", "vlm_likelihood"})
"""Families with one pass for each pair, which may keep what was made of the image."""
ASKING = {"tifa": 7.6, "dsg": 6.0}
"""Questions for an image, by who writes them: the means over TS2's released questions."""
JUDGES = {"text_judge": 256, "caption_judge": 384}
"""Families whose model writes, with the most tokens it may write for one answer."""
_QUESTIONS = "question_answering"
_IMAGE_SHARE = 0.5
"""At least this share of a dual encoder's work is its image tower's: 0.59 in CLIP B/32, 0.9 in
CLIP L/14, more in larger ones."""
COUNTED = {"Salesforce/blip-vqa-capfilt-large": 2.12e11}
"""Floating-point operations of one short question by checkpoint, where no row asks only one: at
480 px, counted on a model without weights."""
_ANSWER_TOKENS = 16  # Most tokens of a short answer, as the family's options have it
_LEAST_JUDGED = 50  # Tokens that TS2 charges a judge for one pair


@dataclass(frozen=True, slots=True)
class Work:
    """What a metric has to do on a benchmark."""

    flops: Span  # of forward passes
    tokens: Span  # that a model writes, one after the other
    images: Span  # that are read and decoded
    how: str  # what the ends of the range mean, in a sentence


def work_of(row: ScorerRow, size: Size, rows: Mapping[str, ScorerRow]) -> Work | None:
    """The work; None where nobody counted what a pair costs."""
    if row.family == "dual_encoder" and row.checkpoints["model"].id in towers():
        return _counted(towers()[row.checkpoints["model"].id], size)
    if (flops := _for_one(row, rows)) is None:
        return None
    if row.family in DUAL:
        return _apart(flops, size)
    if row.family in JOINT:
        return _joint(flops, size)
    if row.family in JUDGES:
        return _judged(flops, size, JUDGES[row.family])
    return _answering_work(flops, size, ASKING[_writer(row)]) if row.family == _QUESTIONS else None


def _joint(flops: float, size: Size) -> Work:
    return Work(
        (size.images[0] * flops, size.pairs[1] * flops),
        (0.0, 0.0),
        _floats(size.images),
        "from one pass for each image, whose texts cost nothing, to one for each pair",
    )


def _judged(flops: float, size: Size, most: int) -> Work:
    return Work(
        (size.pairs[0] * flops, size.pairs[1] * flops),
        (size.pairs[0] * _LEAST_JUDGED, size.pairs[1] * most),
        _floats(size.images),
        f"from {_LEAST_JUDGED} written tokens for each pair, as TS2 counts, to {most}",
    )


@dataclass(frozen=True, slots=True)
class Towers:
    """Floating-point operations of a dual encoder, for one image and for one text."""

    image: float
    text: float


@cache
def towers() -> dict[str, Towers]:
    """By checkpoint, those that were counted."""
    found = tomllib.loads(_TOWERS.read_text())["towers"]
    return {name: Towers(one["image"], one["text"]) for one in found for name in one["checkpoints"]}


def _counted(known: Towers, size: Size) -> Work:
    low, high = (known.image * size.images[end] + known.text * size.texts[end] for end in (0, 1))
    how = "each image and each text once, both towers counted"
    return Work((low, high), (0.0, 0.0), _floats(size.images), how)


def _apart(flops: float, size: Size) -> Work:
    """Linear in the image tower's share, so that the ends are those of the share."""

    def total(share: float, end: int) -> float:
        return flops * (share * size.images[end] + (1.0 - share) * size.texts[end])

    ends = [total(share, end) for share in (_IMAGE_SHARE, 1.0) for end in (0, 1)]
    return Work(
        (min(ends), max(ends)),
        (0.0, 0.0),
        _floats(size.images),
        "from half of the work in the image tower to all of it",
    )


def _answering_work(flops: float, size: Size, questions: float) -> Work:
    return Work(
        (size.images[0] * flops, size.pairs[1] * questions * flops),
        (size.pairs[0] * questions, size.pairs[1] * questions * _ANSWER_TOKENS),
        _floats(size.images),
        f"{questions:g} questions for each pair; from one pass for each image, whose questions "
        f"cost nothing, to one for each question; from 1 to {_ANSWER_TOKENS} tokens an answer",
    )


def _for_one(row: ScorerRow, rows: Mapping[str, ScorerRow]) -> float | None:
    """Of one pass: the row's own, or that of a row that asks the same checkpoint once."""
    if row.flops_per_pair is not None:
        return row.flops_per_pair
    model = row.checkpoints.get("model")
    if model is None or row.family != _QUESTIONS or _writer(row) not in ASKING:
        return None
    same = (
        other.flops_per_pair
        for other in rows.values()
        if other.family in JOINT
        and other.flops_per_pair is not None
        and other.checkpoints["model"].id == model.id
    )
    return next(same, COUNTED.get(model.id))


def _writer(row: ScorerRow) -> str:
    return str(row.options.get("writer", "tifa"))


def _floats(span: tuple[int, int]) -> Span:
    return float(span[0]), float(span[1])


HOUR_S = 3600.0
LOOP = 7.4
"""CROC's own loop takes so many times what the engine here takes: CPU time of CLIP ViT-B/32 with
two texts an image, `python -m benchmarks_perf throughput`."""


class Basis(StrEnum):
    """What a figure rests on, the best first."""

    MEASURED = "measured"
    ESTIMATED = "estimated"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time of one metric on one benchmark."""

    basis: Basis  # what it rests on
    hours: Span  # the least and the most
    why: str  # where the figures come from and what the ends mean, in a sentence or two

    def price(self, per_hour: float) -> Span:
        """In the money of the rate."""
        return self.hours[0] * per_hour, self.hours[1] * per_hour


@dataclass(frozen=True, slots=True)
class Machine:
    """What is to be reckoned with."""

    gpu: Gpu  # by its data sheet
    cores: int = 8  # that read images
    # on a machine here; it goes before an estimate
    measured: MeasuredRates = field(default_factory=MeasuredRates)


def estimates(
    row: ScorerRow, size: Size, machine: Machine, rows: Mapping[str, ScorerRow]
) -> tuple[Estimate, ...]:
    """All that can be said, the best basis first; nothing where nothing is known."""
    found = []
    if (rate := machine.measured.of(row.name)) is not None:
        found.append(_measured(row, rate, size))
    if (work := work_of(row, size, rows)) is not None and machine.gpu.holds(row) is not False:
        found.append(_estimated(row, work, machine))
    if (figure := published().get(row.name)) is not None:
        ends = size.images[0] * figure.seconds / LOOP, size.pairs[1] * figure.seconds
        found.append(
            Estimate(
                Basis.PUBLISHED,
                (ends[0] / 1000 / HOUR_S, ends[1] / 1000 / HOUR_S),
                f"{figure.seconds:g} s for 1,000 pairs with the authors' program on their machine "
                f"({figure.source}); from 1/{LOOP:g} of it for one pair an image, as measured of "
                "another loop of CROC's against the engine here, to all of it for all pairs",
            )
        )
    return tuple(found)


def _measured(row: ScorerRow, rate: MeasuredRate, size: Size) -> Estimate:
    """Each image with its first text, and each further text."""
    further = (
        size.texts
        if row.family in DUAL
        else (max(0, size.pairs[0] - size.images[1]), size.pairs[1] - size.images[0])
    )
    ends = [
        rate.image_s[end] * size.images[end] + rate.text_s[end] * further[end] for end in (0, 1)
    ]
    return Estimate(
        Basis.MEASURED,
        (ends[0] / HOUR_S, ends[1] / HOUR_S),
        f"measured on {rate.device} in {rate.dtype} on {rate.measured_at:%Y-%m-%d}, with pictures "
        f"of {' and '.join(map(str, rate.sides))} px: the least and the most of all tries",
    )


def _estimated(row: ScorerRow, work: Work, machine: Machine) -> Estimate:
    """Computing, writing and reading beside each other at best, one after the other at worst."""
    peak = machine.gpu.flops_per_s(row)
    computing = work.flops[0] / (peak * PEAK_SHARE[1]), work.flops[1] / (peak * PEAK_SHARE[0])
    writing = (0.0, 0.0)
    if work.tokens[1] and row.parameters is not None:
        token_s = row.parameters * bytes_of(row) / (1e9 * machine.gpu.memory_gb_s)
        writing = (
            work.tokens[0] * token_s / (MEMORY_SHARE[1] * TOGETHER),
            work.tokens[1] * token_s / MEMORY_SHARE[0],
        )
    reading = [work.images[end] * DECODE_S[end] / machine.cores for end in (0, 1)]
    low = max(computing[0] + writing[0], reading[0])
    high = computing[1] + writing[1] + reading[1]
    return Estimate(
        Basis.ESTIMATED,
        (low / HOUR_S, high / HOUR_S),
        f"{work.how}; {100 * PEAK_SHARE[0]:.0f} to {100 * PEAK_SHARE[1]:.0f} % of the peak of "
        f"{machine.gpu.title}, as assumed; images read by {machine.cores} cores",
    )


def to_json(
    row: ScorerRow, benchmark: str, found: tuple[Estimate, ...], per_hour: float | None
) -> dict[str, Any]:
    """For programs."""
    told = [
        {
            "basis": one.basis.value,
            "hours": list(one.hours),
            "price": None if per_hour is None else list(one.price(per_hour)),
            "why": one.why,
        }
        for one in found
    ]
    return {"metric": row.name, "benchmark": benchmark, "estimates": told}
