"""Addresses of pages and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar
from urllib.parse import parse_qsl, quote, urlencode

_Item = TypeVar("_Item")
_PLAIN = "~:,/"  # Characters that may stand in a query as they are
ROWS_PAGE = "rows_page"
"""Parameter of the page of a ranking's rows, since Gradio takes `page` of the first page for itself."""


def address(place: str, /, **state: str | int) -> str:
    """A link to a page in a state, as `query_of` writes it. It is not escaped for HTML yet."""
    return f"./{place}{query_of(state)}"


def query_of(state: Mapping[str, str | int], safe: str = _PLAIN) -> str:
    """The query string of a state with its question mark; what is empty, and a first page, is left out."""
    given = {name: value for name, value in state.items() if value and value != 1}
    return f"?{urlencode(given, safe=safe)}" if given else ""


def params_of(link: str) -> dict[str, str]:
    """The parameters of a link; of those that come several times the last."""
    return dict(parse_qsl(link.rpartition("?")[2]))


def texts_of(params: Mapping[str, str], *names: str, most: int = 300) -> dict[str, str]:
    """Some parameters of an address, each no longer than that; empty where it has none."""
    return {name: str(params.get(name, "")).strip()[:most] for name in names}


def page_number(params: Mapping[str, str], name: str = "page") -> int:
    """The page that an address asks for, from 1; 1 where it says nothing that makes sense."""
    page = str(params.get(name, ""))
    return max(1, int(page)) if page.isascii() and page.isdecimal() and len(page) < 10 else 1


def with_state(link: str, **state: str | int) -> str:
    """A link that says more; what is empty is left out."""
    query = query_of(state)
    return f"{link}&{query[1:]}" if query and "?" in link else f"{link}{query}"


def query_string(link: str) -> str:
    """The query of a link with its question mark; empty where it has none."""
    return link[link.index("?") :] if "?" in link else ""


def paged(found: Sequence[_Item], asked: int, size: int) -> tuple[Sequence[_Item], int, int]:
    """What stands on a page, or on the last where it lies beyond; its number, and how many are."""
    pages = max(1, -(-len(found) // size))
    page = min(asked, pages)
    return found[(page - 1) * size : page * size], page, pages


def metric_address(entry_id: str) -> str:
    """The card of one metric of one submission."""
    return address("metric", id=entry_id)


def record_address(benchmark: str, entry_id: str) -> str:
    """The record of Every Eval Ever of a metric on a benchmark."""
    named = f"{quote(benchmark, safe='')}/{quote(entry_id)}"
    return f"./v1/exports/metrics/{named}/every-eval-ever.json"


def submission_address(submission_id: str) -> str:
    """One submission beside the forms."""
    return address("submit", id=submission_id)


def board_address(benchmark: str, *, skill: str = "", measure: str = "") -> str:
    """One ranking of a benchmark: its tab."""
    return address("", tab=f"benchmark:{benchmark}", skill=skill, measure=measure)


def items_address(
    benchmark: str,
    *,
    skill: str = "",
    split: str = "",
    a: str = "",
    b: str = "",
    show: str = "",
    case: str = "",
) -> str:
    """The examples behind a result; `a` and `b` are entry ids, `show` is what to begin with.

    A link to failures leads on to the first benchmark on which the metric fails.
    """
    return address(
        "compare", benchmark=benchmark, a=a, b=b, skill=skill, split=split, show=show, case=case,
        view="examples", seek="1" if show == "failures" else "",
    )  # fmt: skip


def skills_address(skill: str = "", *, ratings: str = "") -> str:
    """The tab of a skill, or of all skills."""
    return address("", tab=f"skill:{skill}", ratings=ratings)


def compare_address(benchmark: str, *entries: str, skill: str = "", measure: str = "") -> str:
    """Two to four entries side by side."""
    named = dict(zip("abcd", entries, strict=False))
    return address("compare", benchmark=benchmark, skill=skill, measure=measure, **named)


def models_address(prompt_set: str = "", **state: str) -> str:
    """The models of a prompt set; `state` as `views.models.PlaceQuery` reads it."""
    return address("models", set=prompt_set, **state)


def model_address(submission_id: str, *, skill: str = "", judge: str = "") -> str:
    """The page of one model's images of a prompt set."""
    return address("model", id=submission_id, skill=skill, judge=judge)


def model_pair_address(prompt_set: str, a: str = "", b: str = "", *, skill: str = "") -> str:
    """Two models compared; `a` and `b` are submission ids."""
    return models_address(prompt_set, view="two", skill=skill, a=a, b=b)


def prompt_address(prompt_set: str, prompt_id: str, *, judge: str = "", skill: str = "") -> str:
    """One prompt, and every model's images of it."""
    return models_address(prompt_set, view="prompt", skill=skill, judge=judge, prompt=prompt_id)


def picture_address(submission_id: str, prompt_id: str, seed: int, width: int = 320) -> str:
    """Where the thumbnail of a generation is; not escaped for HTML yet."""
    named = (quote(part, safe="") for part in (submission_id, prompt_id, str(seed)))
    return f"./v1/generations/{'/'.join(named)}?w={width}"
