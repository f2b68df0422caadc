"""The site seen from outside: a browser that opens a board, and a hundred visitors for a minute."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import numpy as np
import pandas as pd

from benchmarks_perf.made_up_store import NOW, Size, cards_of_size, fill
from benchmarks_perf.measuring import MIB, Figure, interleaved, memory_bytes
from evaluator.submission.service import SubmissionService
from leaderboard.publication.publisher import Publisher
from leaderboard.publication.reader import Reader
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.service.memory import keep_small
from leaderboard.store.folder import folder_store
from leaderboard.submission_service import SandboxAvailability
from leaderboard.web.page import Context
from leaderboard.web.site import create_app, launch_options

BOARDS, SLICES = 2, 60
WAIT_MS = 60_000
PAUSE_S = (0.5, 1.5)
"""A visitor looks at what came for so long."""
PAGES = ("", "compare", "submit", "docs", "ledger", "status", "about")
QUERIES: dict[str, tuple[str, ...]] = {
    "": (
        "",
        "?tab=skill:counting",
        "?q=metric-1",
        "?sort=-made_up_1",
        "?tab=benchmark:made_up_1",
        "?tab=benchmark:made_up_0&skill=counting",
        "?tab=benchmark:made_up_1&measure=plcc~paper~real",
        "?tab=benchmark:made_up_0&search=metric-1",
    ),
    "compare": ("", "?benchmark=made_up_1"),
}
_CONFIG = re.compile(r"window\.gradio_config\s*=\s*(\{.*?\});\s*</script>", re.DOTALL)


def first_board(
    rounds: int = 5, submissions: int = 800, browser: str = "/usr/bin/chromium"
) -> Iterator[Figure]:
    """Seconds that pass in a browser without a cache, from the request to the first figure.

    The yardstick is a Gradio page with a `gr.Dataframe` of the figures that the board shows.
    """
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - no part of the served site

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        site, _ = stack.enter_context(_served(scratch / "store", submissions))
        table = _headline(scratch / "store")
        pages = {
            "board": (f"{site}/?tab=benchmark:made_up_0", ".as-board tbody td"),
            "Gradio": (stack.enter_context(_bare_page(table)), "[role='gridcell']"),
        }
        playwright = stack.enter_context(sync_playwright())
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])

        def opened(address: str, figure: str) -> None:
            page = chromium.new_context().new_page()
            page.goto(address, wait_until="commit")
            page.wait_for_selector(figure, timeout=WAIT_MS)
            page.context.close()

        sides = {name: partial(opened, *page) for name, page in pages.items()}
        interleaved(sides, 1)
        times = interleaved(sides, rounds, time.perf_counter)
        chromium.close()
    yield times.compared("first figure, of a bare Gradio page", "board", "Gradio", at_most=1.5)


def visitors(
    visitors: int = 100, seconds: float = 60.0, submissions: int = 800
) -> Iterator[Figure]:
    """Visitors open pages and look at what comes for a second; nobody shares another's answers."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        _served(Path(scratch) / "store", submissions) as (address, process),
    ):
        before = memory_bytes("VmRSS", process)
        seen, most = asyncio.run(_visited(address, visitors, seconds, process))
    details = str(dict(seen.errors.most_common(5)) or "")
    yield Figure("errors", sum(seen.errors.values()), at_most=0, details=details)
    details = f"before {before / MIB:.0f}"
    yield Figure("memory of the site", most / MIB, "MiB", at_most=600, details=details)
    for what, waits in sorted(seen.waits.items()):
        middle, late = np.percentile(waits, [50, 95])
        details = f"{len(waits)} times, 95 % within {late:.2f} s"
        yield Figure(f"{what}, median", float(middle), "s", details=details)


@contextmanager
def _served(folder: Path, submissions: int) -> Iterator[tuple[str, int]]:
    """A made-up store, served by a process that did not make it: its address and process id."""
    spawned, size = get_context("spawn"), Size(submissions, BOARDS, SLICES)
    maker = spawned.Process(target=_make, args=(folder, size))
    maker.start()
    maker.join()
    if maker.exitcode:
        raise RuntimeError("the made-up store could not be made")
    port, (here, there) = _free_port(), spawned.Pipe()
    process = spawned.Process(target=_serve, args=(folder, port, size, there))
    process.start()
    there.close()
    try:
        here.recv()  # EOFError: the site did not start.
        assert process.pid is not None
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.join()


def _make(folder: Path, size: Size) -> None:
    store = folder_store(folder)
    fill(store, size)
    Publisher(store, cards_of_size(size)).publish_cards(NOW)


def _serve(folder: Path, port: int, size: Size, ready: Connection) -> None:
    keep_small()
    cards, store = cards_of_size(size), folder_store(folder)
    desk = SubmissionService(store, {}, None, lambda: SandboxAvailability(ok=True), store.clock)
    reader = Reader(store, cards, clock=store.clock)
    context = Context(reader, store, cards, store.clock, desk=desk)
    app = create_app(context)
    app.launch(
        server_name="127.0.0.1",
        server_port=port,
        prevent_thread_lock=True,
        quiet=True,
        **launch_options(context),
    )
    ready.send("serving")
    app.block_thread()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _headline(folder: Path) -> pd.DataFrame:
    """The figures of the headline of the first board, in its order."""
    snapshot = read_snapshot(folder_store(folder).public)
    assert snapshot is not None
    board = snapshot.boards["made_up_0"]
    return pd.DataFrame(
        {
            "rank": cell.rank,
            "metric": snapshot.entries[cell.entry_id].metric,
            "value": cell.value,
            "low": cell.ci_low,
            "high": cell.ci_high,
            "n": cell.n_items,
        }
        for cell in board.slice(board.card.headline, None)
    )


@contextmanager
def _bare_page(table: pd.DataFrame) -> Iterator[str]:
    with gr.Blocks(analytics_enabled=False) as app:
        gr.Dataframe(table)
    _, address, _ = app.launch(prevent_thread_lock=True, quiet=True, server_port=_free_port())
    try:
        yield address
    finally:
        app.close(verbose=False)


@dataclass
class _Seen:
    """What visitors met: the waits of each kind of request, and errors, counted."""

    waits: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Visitor:
    client: httpx.AsyncClient
    seen: _Seen
    dice: random.Random
    session: str

    async def visit(self, until: float) -> None:
        """Look at pages until then."""
        await asyncio.sleep(self.dice.uniform(0, PAUSE_S[1]))
        while time.monotonic() < until:
            page = self.dice.choice(PAGES)
            try:
                await self._open(page, self.dice.choice(QUERIES.get(page, ("",))))
            except (httpx.HTTPError, json.JSONDecodeError, KeyError) as error:
                self.seen.errors[f"{page}: {type(error).__name__}"] += 1
            await asyncio.sleep(self.dice.uniform(*PAUSE_S))

    async def _open(self, page: str, query: str) -> None:
        """A page, and what it asks for when it is opened."""
        answer = await self._timed("page", self.client.get(f"/{page}{query}"))
        found = _CONFIG.search(answer.text)
        if found is None:
            self.seen.errors[f"{page}: no page"] += 1
            return
        for event in json.loads(found[1])["dependencies"]:
            if not event["backend_fn"] or all(kind != "load" for _, kind in event["targets"]):
                continue
            body = {
                "data": [None] * len(event["inputs"]),
                "fn_index": event["id"],
                "session_hash": self.session,
            }
            call = self.client.post(f"/gradio_api/run/predict{query}", json=body)
            told = await self._timed(f"{page or 'metrics'}: opened", call)
            if told.status_code != 200 or "error" in told.json():
                self.seen.errors[f"{page}: {told.status_code} {told.text[:80]}"] += 1

    async def _timed(self, what: str, call: Any) -> httpx.Response:
        begun = time.perf_counter()
        answer: httpx.Response = await call
        self.seen.waits[what].append(time.perf_counter() - begun)
        if answer.status_code >= 400:
            self.seen.errors[f"{what}: {answer.status_code}"] += 1
        return answer


async def _visited(address: str, count: int, seconds: float, process: int) -> tuple[_Seen, int]:
    """Send visitors for a while; what they met, and the most memory of the site in bytes."""
    seen, most, until = _Seen(), 0, time.monotonic() + seconds
    client: Callable[[], httpx.AsyncClient] = partial(
        httpx.AsyncClient,
        base_url=address,
        timeout=60,
        verify=False,
        limits=httpx.Limits(max_connections=4),
    )
    people = [_Visitor(client(), seen, random.Random(n), f"visitor{n}") for n in range(count)]
    tasks = [asyncio.create_task(one.visit(until)) for one in people]
    while not all(task.done() for task in tasks):
        most = max(most, memory_bytes("VmRSS", process))
        await asyncio.sleep(0.5)
    await asyncio.gather(*tasks)
    for one in people:
        await one.client.aclose()
    return seen, most
