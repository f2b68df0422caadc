"""Links to the data behind what is on screen, in every format of the API."""

from __future__ import annotations

from urllib.parse import quote

from leaderboard.pages.shown.markup import text

FORMATS = {"csv": "CSV", "parquet": "Parquet", "json": "JSON"}
"""Format of the API to its name, the most asked for first."""


def data_address(address: str, format_: str) -> str:
    """The address of a table in a format.

    Args:
        address: as `./v1/boards/demo?measure=srcc`: the query is the one of what is on screen.
        format_: a key of `FORMATS`.
    """
    return f"{address}{'&' if '?' in address else '?'}format={format_}"


def download_links(address: str, what: str = "") -> str:
    """Links that download what is on screen.

    Args:
        address: of its table in the API, relative to the page; not escaped yet.
        what: names the table where a page has several, e.g. `pairs`.
    """
    of = f" of {text(what)}" if what else ""
    links = "".join(
        f'<a class="as-button" download href="{text(data_address(address, key))}" '
        f'aria-label="Download {name}{of}">{name}</a>'
        for key, name in FORMATS.items()
    )
    return (
        f'<span class="as-downloads" role="group" aria-label="Download{of}">'
        f'<span class="as-muted" aria-hidden="true">Download{of}</span>{links}</span>'
    )


def skills_data(query: str) -> str:
    """The address of the data of a list of metrics for skills.

    Args:
        query: of the page, as `SkillsQuery.to_query` gives it.
    """
    return f"./v1/skills{query}"


def metric_data(entry_id: str) -> str:
    """The address of the data of a metric's page.

    Args:
        entry_id: whose page.
    """
    return f"./v1/entries/{quote(entry_id)}?elsewhere=1"


def board_data(benchmark: str, query: str, part: str = "") -> str:
    """The address of a ranking's data.

    Args:
        benchmark: whose board.
        query: of the page, as `BoardQuery.to_query` gives it.
        part: `pairs`, `skills`, or the ranking itself.
    """
    return f"./v1/boards/{benchmark}{f'/{part}' if part else ''}{query}"
