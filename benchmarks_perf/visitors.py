"""A hundred visitors for a minute: errors, how long they wait, and the memory of the site.

    python -m benchmarks_perf.visitors [--visitors 100] [--seconds 60] [--submissions 800]

A made-up store (`made_up_store`; 800 submissions leave 480 metrics, each on two of two boards with
60 slices) is served in a process of its own. Visitors open pages, wait for what a page asks for
when it is opened, change the order, the filter or the skill, and look at what comes for a second.
All come over HTTP as browsers do, and nobody shares another's answers.

The gates: no error, and less than 600 MB of memory at any time. Waiting is printed as the median
and the 95th percentile; it depends on the machine, on which the visitors run as well.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks_perf.made_up_site import served

MEMORY_MB = 600
PAUSE_S = (0.5, 1.5)
"""A visitor looks at what came for so long."""
PAGES = ("", "boards", "compare", "index", "skills", "queue", "ledger", "status", "trust", "about")
QUERIES: dict[str, tuple[str, ...]] = {
    "boards": (
        "",
        "?benchmark=made_up_1",
        "?benchmark=made_up_0&skill=counting",
        "?benchmark=made_up_1&measure=plcc~paper~real",
        "?benchmark=made_up_0&search=metric-1",
    ),
    "compare": ("", "?benchmark=made_up_1"),
    "skills": ("", "?skill=counting"),
}
_CONFIG = re.compile(r"window\.gradio_config\s*=\s*(\{.*?\});\s*</script>", re.DOTALL)


@dataclass
class Seen:
    """What visitors met.

    Attributes:
        waits: kind of request to the seconds each took.
        errors: what went wrong, counted.
    """

    waits: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Visitor:
    """One visitor.

    Attributes:
        client: of this visitor alone.
        seen: shared by all visitors.
        dice: chooses what is looked at.
        session: as a tab of a browser has one.
    """

    client: httpx.AsyncClient
    seen: Seen
    dice: random.Random
    session: str

    async def visit(self, until: float) -> None:
        """Look at pages until then."""
        await asyncio.sleep(self.dice.uniform(0, PAUSE_S[1]))
        while time.monotonic() < until:
            page = self.dice.choice(PAGES)
            query = self.dice.choice(QUERIES.get(page, ("",)))
            try:
                await self._open(page, query)
            except (httpx.HTTPError, json.JSONDecodeError, KeyError) as error:
                self.seen.errors[f"{page}: {type(error).__name__}"] += 1
            await asyncio.sleep(self.dice.uniform(*PAUSE_S))

    async def _open(self, page: str, query: str) -> None:
        answer = await self._timed("page", self.client.get(f"/{page}{query}"))
        found = _CONFIG.search(answer.text)
        if found is None:
            self.seen.errors[f"{page}: no page"] += 1
            return
        config = json.loads(found[1])
        on_load = [
            one
            for one in config["dependencies"]
            if any(trigger == "load" for _, trigger in one["targets"]) and one["backend_fn"]
        ]
        for event in on_load:
            body = {
                "data": [None] * len(event["inputs"]),
                "fn_index": event["id"],
                "session_hash": self.session,
            }
            call = self.client.post(f"/gradio_api/run/predict{query}", json=body)
            told = await self._timed(f"{page or 'overview'}: opened", call)
            if told.status_code != 200 or "error" in told.json():
                self.seen.errors[f"{page}: {told.status_code} {told.text[:80]}"] += 1

    async def _timed(self, what: str, call: Any) -> httpx.Response:
        begun = time.perf_counter()
        answer: httpx.Response = await call
        self.seen.waits[what].append(time.perf_counter() - begun)
        if answer.status_code >= 400:
            self.seen.errors[f"{what}: {answer.status_code}"] += 1
        return answer


async def visited(address: str, visitors: int, seconds: float, pid: int) -> tuple[Seen, float]:
    """Send visitors for a while; what they met, and the most memory of the site in MB."""
    seen, most = Seen(), 0.0
    until = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=4)
    clients = [
        httpx.AsyncClient(base_url=address, timeout=60, verify=False, limits=limits)
        for _ in range(visitors)
    ]
    people = [
        Visitor(client, seen, random.Random(place), f"visitor{place}")
        for place, client in enumerate(clients)
    ]
    tasks = [asyncio.create_task(one.visit(until)) for one in people]
    while not all(task.done() for task in tasks):
        most = max(most, memory_mb(pid))
        await asyncio.sleep(0.5)
    await asyncio.gather(*tasks)
    for client in clients:
        await client.aclose()
    return seen, most


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    told = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", told)[1]) / 1024  # type: ignore[index]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a store, serve it, send the visitors, print what they met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--visitors", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--submissions", type=int, default=800)
    parser.add_argument("--store", type=Path, default=None)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.store or Path(scratch) / "store"
        with served(folder, given.submissions) as (address, pid):
            before = memory_mb(pid)
            seen, most = asyncio.run(visited(address, given.visitors, given.seconds, pid))
    for what, waits in sorted(seen.waits.items()):
        middle, late = np.percentile(waits, [50, 95])
        print(f"{what:28} {len(waits):6d} times  median {middle:6.2f} s  95 % {late:6.2f} s")
    print(f"memory: {before:.0f} MB before, at most {most:.0f} MB (gate: {MEMORY_MB})")
    print(f"errors: {sum(seen.errors.values())} {dict(seen.errors.most_common(5)) or ''}")
    return 0 if most < MEMORY_MB and not seen.errors else 1


if __name__ == "__main__":
    sys.exit(main())
