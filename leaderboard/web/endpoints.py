"""The only public endpoints of the site's own client API: three questions, answered as `/v1` does.

All events of pages are private; what a program may call is named here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import gradio as gr

from benchmarks.errors import AssayError
from leaderboard.api.source import Source
from leaderboard.api.tables import boards, catalogue
from leaderboard.tables import Table, to_json
from leaderboard.views.boards import YES

_AT_ONCE = 4
_LONGEST = 2000
"""Characters of any argument; no name or search is as long."""


def add_endpoints(source: Source) -> None:
    """Add them to the Blocks that are being made."""

    def benchmarks() -> dict[str, Any]:
        return _answer(lambda: catalogue.benchmarks(source))

    def board(  # noqa: PLR0917 (clients name them as they like)
        benchmark: str,
        skill: str = "",
        measure: str = "",
        kind: str = "",
        untrained: bool = False,
        search: str = "",
        columns: str = "",
        sort: str = "",
        within: bool = False,
    ) -> dict[str, Any]:
        _check(benchmark, skill, measure, kind, search, columns, sort)
        query = boards.BoardParameters(
            skill=(skill,), measure=measure, kind=kind, untrained=YES if untrained else "",
            within=YES if within else "",
            search=search, columns=columns, sort=sort,
        )  # fmt: skip
        return _answer(lambda: boards.board(source, benchmark, query))

    def entry(entry_id: str) -> dict[str, Any]:
        _check(entry_id)
        return _answer(lambda: catalogue.entry(source, entry_id, catalogue.EntryParameters()))

    documented: tuple[tuple[Callable[..., Any], str], ...] = (
        (benchmarks, "All benchmarks on which metrics are tested, as /v1/benchmarks has them."),
        (board, "A ranking, best first: skills by key joined by commas, a measure by name or "
         "token, which entries, further columns and what to sort by; as /v1/boards/{benchmark} "
         "has it."),
        (entry, "Every value of one metric by its entry id, as /v1/entries/{entry_id} has it."),
    )  # fmt: skip
    for question, said in documented:
        gr.api(
            question, api_name=question.__name__, api_description=said, concurrency_limit=_AT_ONCE
        )


def _check(*arguments: object) -> None:
    for value in arguments:
        # Gradio passes on whatever came; types are only told to those who ask for them.
        if not isinstance(value, str) or len(value) > _LONGEST:
            raise gr.Error("[bad_query] An argument is no text, or too long.")


def _answer(question: Callable[[], Table]) -> dict[str, Any]:
    """A table as `/v1` answers it; an error as clients of Gradio are told one."""
    try:
        found: dict[str, Any] = json.loads(to_json(question()))
    except AssayError as error:
        raise gr.Error(f"[{error.code}] {error}") from error
    return found
