"""How soon a visitor sees a board, against a bare Gradio page and a static page of the same table.

    python -m benchmarks_perf.first_board [--rounds 5] [--submissions 800] [--browser PATH]

A made-up board of 480 metrics is served (`made_up_site`), and beside it two yardsticks made in the
same run: a Gradio page that holds nothing but a `gr.Dataframe` of the figures that the board shows,
and a static HTML page with them in a `<table>`. A browser without a cache opens each in turns; the
clock runs from the request to the first figure that is drawn, and for the board also to when it
can be used: a filter is typed and the answer is there.

The gate: the board is there within one and a half times the bare Gradio page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

import gradio as gr
import pandas as pd
from playwright.sync_api import Browser, sync_playwright

from benchmarks_perf.made_up_site import free_port, served
from leaderboard.publication.snapshot import read_snapshot
from leaderboard.store.folder import folder_store

GATE = 1.5
_WAIT_MS = 60_000
_ONLY = """name => {
    const rows = [...document.querySelectorAll('.as-board tbody th')].map(each => each.textContent);
    const metrics = rows.filter(each => each.includes('metric-'));
    return metrics.length > 0 && metrics.every(each => each.includes(name));
}"""
"""Whether the metrics on screen are those whose names hold a text."""


def table_of(folder: Path) -> pd.DataFrame:
    """The figures of the headline of the first board, in its order."""
    snapshot = read_snapshot(folder_store(folder).public)
    if snapshot is None:
        raise ValueError("the store has no boards")
    board = snapshot.boards["made_up_0"]
    cells = board.slice(board.card.headline, None)
    return pd.DataFrame(
        {
            "rank": [cell.rank for cell in cells],
            "metric": [snapshot.entries[cell.entry_id].metric for cell in cells],
            "value": [cell.value for cell in cells],
            "low": [cell.ci_low for cell in cells],
            "high": [cell.ci_high for cell in cells],
            "n": [cell.n_items for cell in cells],
        }
    )


@contextmanager
def bare_page(table: pd.DataFrame) -> Iterator[str]:
    """A Gradio page with the table and nothing else."""
    with gr.Blocks(analytics_enabled=False) as app:
        gr.Dataframe(table)
    _, address, _ = app.launch(prevent_thread_lock=True, quiet=True, server_port=free_port())
    try:
        yield address
    finally:
        app.close()


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing between the figures."""


@contextmanager
def static_page(table: pd.DataFrame, folder: Path) -> Iterator[str]:
    """The table as a file, served as it is."""
    (folder / "index.html").write_text(f"<!doctype html><title>t</title>{table.to_html()}")
    handler = partial(_Silent, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/index.html"
        finally:
            server.shutdown()


def seen_after(browser: Browser, address: str, figure: str) -> float:
    """Seconds from the request to the first figure."""
    page = browser.new_context().new_page()
    begun = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(figure, timeout=_WAIT_MS)
    took = time.perf_counter() - begun
    page.context.close()
    return took


def filtered_after(browser: Browser, address: str, metric: str) -> float:
    """Seconds from the last letter of a metric's name to the board of what was searched for."""
    page = browser.new_context().new_page()
    page.goto(address)
    page.wait_for_selector(".as-board tbody tr", timeout=_WAIT_MS)
    page.wait_for_timeout(1500)
    search = page.get_by_label("Metrics or submitters", exact=False).first
    begun = time.perf_counter()
    search.fill(metric)
    page.wait_for_function(_ONLY, arg=metric, timeout=_WAIT_MS)
    took = time.perf_counter() - begun
    page.context.close()
    return took


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the three in turns and print what each took; 0 where the gate is met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--submissions", type=int, default=800)
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    given = parser.parse_args(arguments)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = given.store or scratch / "store"
        site, _ = stack.enter_context(served(folder, given.submissions))
        ours = f"{site}/boards"
        table = table_of(folder)
        pages = {
            "our board": (ours, ".as-board tbody td"),
            "bare Gradio page": (stack.enter_context(bare_page(table)), "[role='gridcell']"),
            "static page": (stack.enter_context(static_page(table, scratch)), "td"),
        }
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=given.browser, args=["--no-sandbox"])
        found: dict[str, list[float]] = {name: [] for name in pages}
        for _ in range(given.rounds + 1):
            for name, (address, figure) in pages.items():
                found[name].append(seen_after(browser, address, figure))
        used = [
            filtered_after(browser, ours, table["metric"].iloc[-1]) for _ in range(given.rounds)
        ]
        browser.close()
    took = {name: median(times[1:]) for name, times in found.items()}
    for name, seconds in took.items():
        print(f"{name:18} {seconds:6.2f} s to the first figure")
    print(f"{'our board':18} {median(used):6.2f} s from a search to its ranks")
    ratio = took["our board"] / took["bare Gradio page"]
    print(f"our board / bare Gradio page: {ratio:.2f} (gate: {GATE})")
    return 0 if ratio <= GATE else 1


if __name__ == "__main__":
    sys.exit(main())
