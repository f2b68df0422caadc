"""The dataset cards of a store on the Hub: what its files are, for people and for `datasets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from huggingface_hub import DatasetCardData

from benchmarks.schema import Card
from leaderboard.store.hub.card_texts import (
    OF_CASES,
    OF_CELLS,
    OF_PAIRS,
    OF_SCORES,
    OF_SUBMISSIONS,
    REQUESTS,
    RESULTS,
    SCORES,
    SUBMISSIONS,
)
from leaderboard.store.hub.layout import HubName, Part

TAGS = ("text-to-image", "evaluation", "leaderboard", "image-text-alignment")
_TITLES = {
    Part.REQUESTS: "submissions and their events",
    Part.SCORES: "scores of image-text pairs",
    Part.RESULTS: "boards and results",
    Part.SUBMISSIONS: "uploads",
}
_TEXTS = {
    Part.REQUESTS: REQUESTS,
    Part.SCORES: SCORES,
    Part.RESULTS: RESULTS,
    Part.SUBMISSIONS: SUBMISSIONS,
}
_TABLES: dict[Part, tuple[tuple[str, Mapping[str, str]], ...]] = {
    Part.REQUESTS: (("submissions", OF_SUBMISSIONS),),
    Part.SCORES: (("each benchmark", OF_SCORES),),
    Part.RESULTS: (("boards", OF_CELLS), ("pairs", OF_PAIRS), ("cases", OF_CASES)),
    Part.SUBMISSIONS: (),
}

EVERY = "all"
"""Configuration of the scores of all benchmarks."""


def card_files(name: str, cards: Mapping[str, Card]) -> dict[str, bytes]:
    """The README.md of each repository of a store: the same for the same benchmarks.

    Args:
        name: of the store, `OWNER/NAME`.
        cards: the benchmarks that have boards, by name.

    Returns:
        Part (`requests`, `scores`, `results`, `submissions`) to the file.
    """
    return {part.value: _readme(part, HubName(name), cards).encode() for part in Part}


def configs_of(part: Part, cards: Mapping[str, Card]) -> list[dict[str, Any]]:
    """What `datasets.load_dataset` finds in a repository: names, and the files behind them.

    Args:
        part: which repository.
        cards: the benchmarks that have boards. Scores and cases of one whose answers are not
            public are in no public file.
    """
    if part is Part.REQUESTS:
        return [_config("submissions", "queue.parquet", default=True)]
    if part is Part.RESULTS:
        return [
            _config("boards", "snapshot.parquet", default=True),
            _config("pairs", "boards/*.pairs.parquet"),
            *(
                _config(f"cases_{benchmark}", f"cases/{benchmark}/*.parquet")
                for benchmark, card in sorted(cards.items())
                if card.answers_public
            ),
        ]
    if part is Part.SCORES:
        return [
            # `datasets` tells the format of all by the files of the first, so that has to have some
            # as soon as anything is published: no single benchmark need ever be.
            _config(EVERY, "results/*/*.scores.parquet", default=True),
            *(
                _config(benchmark, f"results/*/{benchmark}.scores.parquet")
                for benchmark, card in sorted(cards.items())
                if card.answers_public
            ),
        ]
    return []


def _config(name: str, files: str, *, default: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {
        "config_name": name,
        "data_files": [{"split": "train", "path": files}],
    }
    return {**found, "default": True} if default else found


def _readme(part: Part, name: HubName, cards: Mapping[str, Card]) -> str:
    configs: Any = {"configs": found} if (found := configs_of(part, cards)) else {}
    front = DatasetCardData(
        license="other",
        license_name="of-each-benchmark",
        pretty_name=f"Assay {name.text}: {_TITLES[part]}",
        tags=list(TAGS),
        **configs,
    )
    text = _TEXTS[part].format(
        name=name.text, **{f"{one.value}_name": name.of(one) for one in Part}
    )
    sections = [
        f"---\n{front.to_yaml().strip()}\n---",
        f"# {name.of(part)}",
        text.strip(),
        *(_columns(title, columns) for title, columns in _TABLES[part]),
        *([] if part is Part.SUBMISSIONS else [_benchmarks(list(cards.values()))]),
    ]
    return "\n\n".join(sections) + "\n"


def _columns(title: str, columns: Mapping[str, str]) -> str:
    rows = "\n".join(f"| `{column}` | {_cell(what)} |" for column, what in columns.items())
    return f"## Columns of {title}\n\n| column | what it is |\n| --- | --- |\n{rows}"


def _benchmarks(cards: Sequence[Card]) -> str:
    """Which benchmarks there are, at which revision, and under which licence their data are."""
    rows = "\n".join(
        f"| `{card.name}` | {_cell(card.title)} | `{_cell(card.revision)}` "
        f"| {_cell(card.licence) or 'not stated'} | {_about_scores(card)} |"
        for card in sorted(cards, key=lambda card: card.name)
    )
    head = "| benchmark | title | revision | licence of its data | scores of pairs |"
    return f"## Benchmarks\n\n{head}\n| --- | --- | --- | --- | --- |\n{rows}"


def _about_scores(card: Card) -> str:
    told = "published" if card.answers_public else "private, as its answers are"
    return f"{told}; ratings are simulated" if card.simulated else told


def _cell(words: str) -> str:
    """Words as a cell of a table of Markdown."""
    return " ".join(words.split()).replace("|", "\\|")
