"""Headline results as the Hub reads them from `.eval_results/*.yaml` of a model's repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.schema import Card
from leaderboard.publication.entries import Entry
from leaderboard.publication.flags import origin
from leaderboard.publication.measure_names import info, token
from leaderboard.ranking.cells import Cell
from leaderboard.text import clean, interval

FILE = ".eval_results/assay.yaml"
NO_DATASET = "its data are not in a dataset of the Hub"
_DATASET = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)/?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PLAIN = re.compile(r"[\w.-]+/[\w.-]+")
_SOURCE = "Assay"


@dataclass(frozen=True)
class HubResults:
    """What is ready to be put into a repository."""

    content: str  # of the file; empty where no benchmark has a dataset
    left_out: Mapping[str, str]  # benchmark to the reason why it is not in it


def hub_results(entry: Entry, cells: Iterable[tuple[Card, Cell]], url: str = "") -> HubResults:
    """The metadata of a metric."""
    # Loaded here: the pages start without them.
    import yaml  # noqa: PLC0415
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml  # noqa: PLC0415

    found, left_out = [], {}
    for card, cell in cells:
        dataset = dataset_of(card)
        why = _why_not(card, cell)
        if why or dataset is None:
            left_out[card.title] = why or NO_DATASET
            continue
        found.append(
            EvalResultEntry(
                dataset_id=dataset[0],
                dataset_revision=dataset[1] or None,
                task_id=card.name,
                value=round(cell.value or 0.0, 6),
                date=f"{entry.published_at:%Y-%m-%dT%H:%M:%SZ}",
                source_url=url or None,
                source_name=_SOURCE if url else None,
                notes=_notes(entry, card, cell),
            )
        )
    if not found:
        return HubResults("", left_out)
    records = eval_result_entries_to_yaml(found)
    content = yaml.safe_dump(records, sort_keys=False, allow_unicode=True, width=100)
    return HubResults(content, left_out)


def _why_not(card: Card, cell: Cell) -> str:
    if card.simulated:
        return "its ratings are simulated"
    if cell.distrust:
        return cell.distrust
    return "its value is undefined" if cell.value is None else ""


def dataset_of(card: Card) -> tuple[str, str] | None:
    """The dataset a benchmark's answers come from and the full commit it is pinned to, if any."""
    for file in card.files:
        if file.role == "answers" and file.repo and _PLAIN.fullmatch(file.repo):
            return file.repo, file.revision if _COMMIT.fullmatch(file.revision) else ""
    for address in card.links.values():
        linked = _DATASET.fullmatch(address)
        if linked:
            return linked[1], ""
    return None


def _notes(entry: Entry, card: Card, cell: Cell) -> str:
    measure = info(card, cell.measure).title
    span = interval(cell.ci_low, cell.ci_high)
    parts = [
        f"meta-evaluation of a metric: {measure} with people ({token(cell.selector)})",
        f"95 % interval {span}" if span else "",
        f"{cell.n_items} items, {cell.n_clusters} {card.cluster}s",
        f"{cell.n_missing} scores missing" if cell.n_missing else "",
        f"Assay revision {card.revision}, protocol {card.protocol}",
        f"entry {entry.entry_id}",
        origin(entry),
    ]
    return "; ".join(clean(part) for part in parts if part).replace("−", "-")
