"""Programs that read exactly what a page shows, to be copied. They run as they stand."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.views.addresses import with_state
from leaderboard.views.boards import Choice

_HUB_COLUMNS = ("measure", "variant", "split", "facet")


@dataclass(frozen=True)
class Snippet:
    """A few lines of Python."""

    title: str  # with what it reads
    code: str  # the lines; the table is `board` in the end


def snippets(choice: Choice, data: str, site: str, hub: str = "") -> tuple[Snippet, ...]:
    """The programs that read a ranking."""
    whole = f"{site}{data.removeprefix('./')}"
    parquet = with_state(whole, format="parquet")
    frame = f"import pandas as pd\n\nboard = pd.read_parquet({_string(parquet)})"
    return (
        Snippet("pandas", frame),
        Snippet("gradio_client", _client(choice, site)),
        Snippet("datasets", _dataset(choice, parquet, hub)),
    )


def _client(choice: Choice, site: str) -> str:
    query, filters = choice.query, choice.query.filters
    laid_out = choice.arranged.to_params()
    given: dict[str, str] = {
        "skill": query.skill, "measure": query.measure, "kind": filters.kind,
        "search": filters.search, "columns": laid_out.get("columns", ""),
        "sort": laid_out.get("sort", ""),
    }  # fmt: skip
    arguments = [f"    {_string(query.benchmark)},"]
    arguments += [f"    {name}={_string(value)}," for name, value in given.items() if value]
    arguments += ["    untrained=True,"] if filters.untrained else []
    arguments += ["    within=True,"] if filters.within else []
    lines = "\n".join([*arguments, '    api_name="/board",'])
    return (
        "import pandas as pd\nfrom gradio_client import Client\n\n"
        f"found = Client({_string(site)}).predict(\n{lines}\n)\n"
        'board = pd.DataFrame(found["rows"])'
    )


def _dataset(choice: Choice, parquet: str, hub: str) -> str:
    """From the dataset of the Hub, where that has the ranking.

    The mean of several skills, ranks among some entries only and other columns are not in it.
    """
    arranged = choice.arranged.columns or choice.arranged.sort
    several = len(choice.skills) > 1
    if not hub or several or choice.filters.active or arranged or choice.selector is None:
        # Not `load_dataset`: for an address it needs packages that may not be there.
        return (
            "import pandas as pd\nfrom datasets import Dataset\n\n"
            f"found = Dataset.from_pandas(pd.read_parquet({_string(parquet)}))\n"
            "board = found.to_pandas()"
        )
    wanted = {
        "benchmark": choice.query.benchmark,
        **{name: getattr(choice.selector, name) for name in _HUB_COLUMNS},
        "skill": choice.skill,
    }
    lines = "\n".join(
        f"    {_string(name)}: {_string(value) if value is not None else None},"
        for name, value in wanted.items()
    )
    return (
        "from datasets import load_dataset\n\n"
        f'found = load_dataset({_string(f"{hub}-results")}, "boards", split="train")\n'
        f"wanted = {{\n{lines}\n}}\n"
        "found = found.filter(lambda row: all(row[name] == wanted[name] for name in wanted))\n"
        "board = found.to_pandas()"
    )


def _string(value: str) -> str:
    """A string of Python that means exactly this, in characters of ASCII."""
    return ascii(value)
