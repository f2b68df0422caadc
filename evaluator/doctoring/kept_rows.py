"""Diagnostics of a machine's caches: how much there is, and where it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.errors import SubmitterError
from benchmarks.settings.sources import value_of
from evaluator.doctoring.rows import Row
from evaluator.hub.shelf_room import bytes_below
from evaluator.worker.upkeep.evictable import OUTBOX, SHARDS, UNPACKED
from evaluator.worker.upkeep.log_files import LOGS, limits_of
from leaderboard.store.hub.layout import CONTENTS

_GIVEN_UP = "given up where the disk is short"
_SCRATCH = {
    UNPACKED: f"unpacked modules; {_GIVEN_UP}",
    SHARDS: f"finished shards; {_GIVEN_UP} and their submission is over",
    OUTBOX: "finished and not published yet; never given up",
}


def kept_rows(
    folder: Path, scratch: Path, environment: Mapping[str, str], *, on_hub: bool
) -> Iterator[Row]:
    """Sizes and limits.

    Args:
        folder: of the store on this machine.
        scratch: of its workers.
        environment: with files adopted.
        on_hub: whether the store is on the Hub.
    """
    try:
        limits = limits_of(environment)
        cache = round(value_of("hub_cache_gib", environment) * 2**30)
    except SubmitterError as error:
        yield Row("kept here", error.message, error.hint, broken=True)
        return
    yield Row("kept here", f"scratch in {scratch}")
    days = f"{limits.seconds / 86400:g} days"
    most = mib(2 * limits.n_bytes * limits.most)
    yield Row(
        "  logs",
        f"{mib(bytes_below(scratch / LOGS))}; at most {most}, of {limits.most} submissions "
        f"and {days}",
    )
    for name, what in _SCRATCH.items():
        yield Row(f"  {name}", f"{mib(bytes_below(scratch / name))} of {what}")
    if on_hub:
        size = mib(bytes_below(folder / CONTENTS))
        yield Row("  cache of the Hub", f"{size}; at most {mib(cache)}, {folder / CONTENTS}")


def mib(n_bytes: int) -> str:
    """A size as people read it."""
    return f"{n_bytes / 2**20:.1f} MiB" if n_bytes < 2**30 else f"{n_bytes / 2**30:.1f} GiB"
