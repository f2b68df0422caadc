"""What a person sees while files come."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from benchmarks.sources.fetch import fetch
from benchmarks.sources.progress import Bar, Lines, meter_for
from benchmarks.sources.remote import Hub
from tests.benchmarks.sources.fetching import REPO, Remote, on_hub
from tests.hub.server import HubServer


def test_a_terminal_gets_a_bar_that_the_download_moves(hub: HubServer, tmp_path: Path) -> None:
    hub.add(REPO, {"a.bin": b"a" * 3_000_000, "b.bin": b"b" * 1_000_000})
    screen = io.StringIO()
    bar = Bar(Console(file=screen, force_terminal=True, width=160))
    with bar:
        fetch(
            Remote([on_hub("remote/a.bin"), on_hub("remote/b.bin")]),
            tmp_path,
            Hub(hub.endpoint),
            meter=bar,
        )
    shown = screen.getvalue()
    assert "file 2 of 2" in shown
    assert "4.0/4.0 MB" in shown
    assert "remote/a.bin: fetched, 3.0 MB" in shown


def test_a_log_gets_lines_only() -> None:
    assert type(meter_for(Console(file=io.StringIO()))) is Lines
