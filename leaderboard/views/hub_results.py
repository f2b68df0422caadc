"""Results as the Hub keeps them: `.eval_results/*.yaml` of a model, `eval.yaml` of a benchmark.

Forms: https://huggingface.co/docs/hub/eval-results and `eval_results.yaml` of github.com/huggingface/hub-docs
(Apache-2.0) at 242f4a1, 22 August 2026, written by `huggingface_hub`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchmarks.schema import Card
from leaderboard.models.board_types import Judge, Mean, ModelBoard, SkillBoard
from leaderboard.publication.entries import Entry, origin
from leaderboard.publication.measure_names import info, token
from leaderboard.publication.model_entries import ModelEntry
from leaderboard.ranking.cells import Cell
from leaderboard.records import Status
from leaderboard.text import clean, count, interval, portable_name
from leaderboard.views.addresses import metric_address, model_address
from leaderboard.views.citation import CitedAt

FOLDER = ".eval_results"
BENCHMARK_FILE = "eval.yaml"
FRAMEWORK = "assay"
"""Of `eval.yaml`. The Hub takes names that its own list has, on which this one is not yet."""
NO_DATASET = "its data are not in a dataset of the Hub"
_DATASET = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)/?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_SOURCE = "Assay"


@dataclass(frozen=True)
class HubResults:
    """What is ready to be put into a repository."""

    file_name: str  # of these results alone, so that no others are replaced
    content: str  # of the file; empty where nothing can be in it
    # benchmark, or skill of a prompt set, to the reason why it is not in it
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Where the file is in the repository."""
        return f"{FOLDER}/{self.file_name}"


@dataclass(frozen=True)
class _Result:
    """One value, as it goes to the Hub."""

    dataset: str  # its id
    commit: str  # of the dataset; empty where it is not pinned
    task: str  # id of the task
    value: float  # as the board has it
    date: str
    notes: str


def metric_hub_results(
    entry: Entry, cells: Iterable[tuple[Card, Cell]], at: CitedAt, dataset: str = ""
) -> HubResults:
    """The headline results of a metric, for the repository of its model.

    `dataset` is named in place of the benchmarks' own.
    """
    found: list[_Result] = []
    left_out: dict[str, str] = {}
    for card, cell in cells:
        place = (dataset, "") if dataset else dataset_of(card)
        why = _why_not(card, cell)
        if why or place is None or cell.value is None:
            left_out[card.title] = why or NO_DATASET
            continue
        date = f"{entry.published_at:%Y-%m-%dT%H:%M:%SZ}"
        notes = _notes_of(*_about_cell(entry, card, cell), _commit_of(at))
        found.append(_Result(*place, card.name, cell.value, date, notes))
    url = at.revision.address or at.address(metric_address(entry.entry_id))
    return HubResults(_file_name(*entry.entry_id.split("/", 1)), _yaml_of(found, url), left_out)


def model_hub_results(
    entry: ModelEntry,
    card: Card,
    board: ModelBoard,
    at: CitedAt,
    dataset: str = "",
) -> HubResults:
    """The means of a model by the metric that leads each skill, for its repository.

    `dataset` is named in place of the prompt set's own.
    """
    place = (dataset, "") if dataset else dataset_of(card)
    found: list[_Result] = []
    left_out: dict[str, str] = {}
    for of in board.skills.values():
        judge = next((one for one in of.judges if one.entry_id == of.lead), None)
        standing = of.standings.get(entry.submission_id)
        mean = standing.means.get(judge.entry_id) if standing and judge else None
        why = _why_no_mean(card, place, judge, mean)
        if why or place is None or judge is None or mean is None or mean.value is None:
            left_out[of.title] = why
            continue
        date = f"{entry.published_at:%Y-%m-%dT%H:%M:%SZ}"
        judged = f"mean score by {judge.title} on {of.title} (qualified to judge it; its units)"
        notes = _notes_of(judged, *_about_mean(mean), *_about_model(entry), _commit_of(at))
        found.append(_Result(*place, task_of(card, of, judge), mean.value, date, notes))
    url = at.revision.address or at.address(model_address(entry.submission_id))
    named = _file_name(entry.prompt_set, entry.submission_id)
    return HubResults(named, _yaml_of(found, url), left_out)


def benchmark_file(card: Card, board: ModelBoard) -> str:
    """`eval.yaml` of the dataset that a board of models is of: one task for each that is led."""
    import yaml  # noqa: PLC0415 (the pages start without it)

    tasks = [
        {"id": task_of(card, of, judge), "config": "default", "split": "test"}
        for of in board.skills.values()
        for judge in of.judges
        if judge.entry_id == of.lead
    ]
    content = {
        "name": clean(card.title),
        "description": clean(card.summary),
        "evaluation_framework": FRAMEWORK,
        "tasks": tasks,
    }
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
    return text


def task_of(card: Card, of: SkillBoard, judge: Judge) -> str:
    """The id of a task: prompt set, skill and metric, whose units no other shares."""
    parts = (card.name, of.skill or "all", judge.entry_id.rpartition("/")[2])
    return "-".join(re.sub(r"[^a-z0-9_.]+", "_", part.lower()).strip("_") for part in parts)


def is_hub_id(name: str) -> bool:
    """Whether a text is `OWNER/NAME` of a repository."""
    return bool(_HUB_ID.fullmatch(name))


def hub_model_of(entry: ModelEntry) -> str:
    """The repository of the Hub that a model names as its own; empty where it names none."""
    return entry.card.model if is_hub_id(entry.card.model) else ""


def hub_metric_of(status: Status | None) -> str:
    """The model repository of the Hub that a metric was taken from; empty where there is none."""
    source = status.submission.source if status else ""
    repository = source.removeprefix("hub:").partition("@")[0] if source.startswith("hub:") else ""
    return repository if is_hub_id(repository) else ""


def dataset_of(card: Card) -> tuple[str, str] | None:
    """The dataset a benchmark's answers come from and the full commit it is pinned to, if any."""
    for file in card.files:
        if file.role == "answers" and file.repo and _REPOSITORY.fullmatch(file.repo):
            return file.repo, file.revision if _COMMIT.fullmatch(file.revision) else ""
    for address in card.links.values():
        linked = _DATASET.fullmatch(address)
        if linked:
            return linked[1], ""
    return None


def _file_name(*parts: str) -> str:
    return f"{'-'.join(('assay', *map(portable_name, parts)))}.yaml"


def _yaml_of(found: Iterable[_Result], url: str) -> str:
    # Loaded here: the pages start without them.
    import yaml  # noqa: PLC0415
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml  # noqa: PLC0415

    entries = [
        EvalResultEntry(
            dataset_id=one.dataset,
            dataset_revision=one.commit or None,
            task_id=one.task,
            value=one.value,
            date=one.date,
            source_url=url or None,
            source_name=_SOURCE if url else None,
            notes=one.notes,
        )
        for one in found
    ]
    if not entries:
        return ""
    records = eval_result_entries_to_yaml(entries)
    content: str = yaml.safe_dump(records, sort_keys=False, allow_unicode=True, width=100)
    return content


def _why_not(card: Card, cell: Cell) -> str:
    if card.simulated:
        return "its ratings are simulated"
    if cell.distrust:
        return cell.distrust
    return "its value is undefined" if cell.value is None else ""


def _why_no_mean(
    card: Card, place: tuple[str, str] | None, judge: Judge | None, mean: Mean | None
) -> str:
    if card.simulated:
        return "its models are simulated"
    if place is None:
        return NO_DATASET
    if judge is None:
        return "no qualified metric judges it"
    return "it has no score" if mean is None or mean.value is None else ""


def _about_cell(entry: Entry, card: Card, cell: Cell) -> tuple[str, ...]:
    measure = info(card, cell.measure).title
    span = interval(cell.ci_low, cell.ci_high)
    return (
        f"meta-evaluation of a metric: {measure} with people ({token(cell.selector)})",
        f"95 % interval {span}" if span else "",
        f"{cell.n_items} items, {cell.n_clusters} {card.cluster}s",
        f"{cell.n_missing} scores missing" if cell.n_missing else "",
        f"Assay revision {card.revision}, protocol {card.protocol}",
        f"entry {entry.entry_id}",
        origin(entry),
    )


def _about_mean(mean: Mean) -> tuple[str, ...]:
    span = interval(mean.ci_low, mean.ci_high)
    return (
        f"95 % interval {span}" if span else "",
        count(mean.n_prompts, "prompt"),
        f"{count(mean.n_missing, 'prompt')} without a score" if mean.n_missing else "",
    )


def _about_model(entry: ModelEntry) -> tuple[str, ...]:
    made = entry.card
    settings = {"steps": made.steps, "guidance": made.guidance, "seeds": len(entry.images.seeds)}
    return (
        ", ".join(f"{name} {value:g}" for name, value in settings.items() if value is not None),
        f"best of {made.best_of} images" if made.best_of else "",
        f"model commit {made.revision}" if made.revision else "",
        f"prompt set {entry.prompt_set} {entry.images.revision}",
        f"submission {entry.submission_id}",
    )


def _commit_of(at: CitedAt) -> str:
    return f"Assay commit {at.revision.commit}" if at.revision.commit else ""


def _notes_of(*parts: str) -> str:
    return "; ".join(clean(part) for part in parts if part).replace("−", "-")
