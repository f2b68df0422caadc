"""Times in the report of `check`: those measured, and those projected for every benchmark."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evaluator.commands.shown import duration
from evaluator.isolation.inside.frames import Capability
from evaluator.isolation.limits import MIB, Limits
from evaluator.submission.checking.costs import LARGE_SIDE, MEDIUM_SIDE, Costs
from evaluator.submission.checking.dry_run import DryRun
from evaluator.submission.checking.expected import Expectation

_FITS = {"yes": "fits", "perhaps": "may be too slow", "no": "too slow", None: "not known"}


def resources(found: DryRun, limits: Limits) -> Iterator[Text]:
    """What it needs until it is ready, and of memory."""
    memory = f"{found.peak_memory_bytes / MIB:,.0f} MiB"
    yield Text(
        f"Ready after {found.start_s:.1f} s (a worker waits {limits.start_s:g} s); held "
        f"{memory} at most (a worker gives {limits.memory_bytes / MIB:,.0f} MiB)."
    )


def costs_table(costs: Costs, can: Capability) -> Table:
    """Milliseconds of each kind of work."""
    table = Table(
        "one more",
        *(f"{side} px" for side in (costs.small_side, MEDIUM_SIDE, LARGE_SIDE)),
        title=f"Time on this machine, asked by {way(can)}",
    )
    names = {"image": "image"}
    if Capability.ENCODE in can:
        names["text"] = "text"
    names["pair"] = "pair"
    if Capability.SCORE_ELEMENTS in can:
        names["elements"] = "elements of a pair"
    for field, name in names.items():
        rates = (costs.small[0], costs.medium, costs.large)
        table.add_row(name, *(_milliseconds(getattr(one, field)) for one in rates))
    return table


def way(can: Capability) -> str:
    """How a scorer is asked, by what it can do."""
    if Capability.ENCODE in can:
        return "encode_images, encode_texts and similarity"
    return "score_texts" if Capability.SCORE_TEXTS in can else "score"


def projection_blocks(expected: Expectation, limits: Limits) -> Iterator[RenderableType]:
    """The time that every benchmark would take on a machine like this."""
    table = Table(
        "benchmark", "images", "pairs", "time", "limit", "counts", title="Time on each benchmark"
    )
    for one in expected.later:
        name = f"{one.benchmark} *" if one.wanted else one.benchmark
        if one.size is None or one.low_s is None or one.high_s is None:
            table.add_row(
                name, "–", "–", "unknown", "–", "neither data here nor counts in its card"
            )
            continue
        source = "from the card" if one.size.from_card else "of the data"
        table.add_row(
            name,
            _span(one.size.images),
            _span(one.size.pairs),
            time_span(one.low_s, one.high_s),
            _FITS[one.fits],
            source,
        )
    yield table
    yield Text(
        "* it would be run on these as it stands. Times are for a machine like this one, as busy as "
        f"now, and pictures of {MEDIUM_SIDE} to {LARGE_SIDE} px, those of the demo for their own "
        "size: from the scorer alone to scorer, reading and measures one after the other."
    )
    here = [one for one in expected.later if one.wanted and one.low_s is not None]
    low = expected.once_s[0] + sum(one.low_s or 0.0 for one in here)
    high = expected.once_s[1] + sum(one.high_s or 0.0 for one in here)
    yield Text(
        f"All of these, with start and trust checks: {time_span(low, high)}; a worker gives a submission "
        f"{duration(limits.job_s)}."
    )


def time_span(low: float, high: float) -> str:
    """Two durations, or one where they read the same."""
    ends = duration(low), duration(high)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} – {ends[1]}"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f} ms" if seconds < 0.1 else f"{1000 * seconds:,.0f} ms"


def _span(ends: tuple[int, int]) -> str:
    return f"{ends[0]:,}" if ends[0] == ends[1] else f"{ends[0]:,} – {ends[1]:,}"
