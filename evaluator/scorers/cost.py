"""Cost of a built-in metric on a benchmark: hours, and what they are based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from evaluator.scorers.cost_rates import (
    DECODE_S,
    MEMORY_SHARE,
    PEAK_SHARE,
    TOGETHER,
    Gpu,
    MeasuredRate,
    MeasuredRates,
    bytes_of,
    published,
)
from evaluator.scorers.cost_work import DUAL, Span, Work, work_of
from evaluator.scorers.row import ScorerRow

if TYPE_CHECKING:
    from evaluator.submission.checking.projection import Size

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
    """Time of one metric on one benchmark.

    Attributes:
        basis: what it rests on.
        hours: the least and the most.
        why: where the figures come from and what the ends mean, in a sentence or two.
    """

    basis: Basis
    hours: Span
    why: str

    def price(self, per_hour: float) -> Span:
        """In the money of the rate."""
        return self.hours[0] * per_hour, self.hours[1] * per_hour


@dataclass(frozen=True, slots=True)
class Machine:
    """What is to be reckoned with.

    Attributes:
        gpu: by its data sheet.
        cores: that read images.
        measured: on a machine here; it goes before an estimate.
    """

    gpu: Gpu
    cores: int = 8
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
        else (
            max(0, size.pairs[0] - size.images[1]),
            size.pairs[1] - size.images[0],
        )
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
