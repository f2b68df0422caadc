"""Facts that papers state of metrics: method, backbone, parameters, access, year and cost.

They are known of the metrics whose scores their authors released. Nobody gets them by choosing a
name: an entry that somebody submitted has only what its author declares.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.released import bundle
from benchmarks.released.verification import VerificationStatus, verification_status
from leaderboard.publication.entries import Entry

FACTS = Path(bundle.FOLDER) / "metric_facts.toml"
_CHECKPOINT = "checkpoint_"


class MetricFacts(BaseModel):
    """What is stated of a metric; empty or None where nothing is.

    Attributes:
        title: its name in the paper.
        variant: what tells it from others of that name, as its backbone.
        method: how it works, in a word or two.
        backbone: the model it rests on.
        parameters: of the backbone.
        access: `open` where the weights can be downloaded, `API` where they cannot.
        year: of the paper's first version.
        paper: authors, venue and year.
        link: to the paper.
        flops_per_pair: floating-point operations of one pair, by the accounting of TS2.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = ""
    variant: str = ""
    method: str = ""
    backbone: str = ""
    parameters: float | None = None
    access: str = ""
    year: int | None = None
    paper: str = ""
    link: str = ""
    flops_per_pair: float | None = None


NO_FACTS = MetricFacts()


def facts_of(entry: Entry) -> MetricFacts:
    """What is stated of the metric of an entry."""
    return _facts().get((entry.released_with, entry.metric), NO_FACTS)


def metric_title(entry: Entry) -> tuple[str, str]:
    """Name and variant of a metric as a table shows them: `TIFA` and `GPT-4V`."""
    facts = facts_of(entry)
    return (facts.title, facts.variant) if facts.title else (entry.metric, entry.version)


def metric_name(entry: Entry) -> str:
    """Name and variant of a metric in one line, as `TIFA · GPT-4V`; else as submitted."""
    facts = facts_of(entry)
    return " · ".join(filter(None, (facts.title, facts.variant))) or entry.metric


def metric_label(entry: Entry) -> str:
    """The name of a metric where versions must be told apart: with the version it came with."""
    return (
        metric_name(entry) if facts_of(entry).title else f"{entry.metric} {entry.version}".strip()
    )


def metric_in_words(entry: Entry) -> str:
    """Name and variant of a metric as a sentence has them: `TIFA with GPT-4V`."""
    facts = facts_of(entry)
    if not facts.title:
        return entry.metric
    if not facts.variant:
        return facts.title
    joined = f"{facts.title} with {facts.variant}"
    return (
        joined
        if facts.backbone and facts.method == "Questions"
        else f"{facts.title} ({facts.variant})"
    )


def verification_of(entry: Entry) -> VerificationStatus | None:
    """Whether a built-in metric agreed with its authors' scores; None for any other metric."""
    for found in entry.findings.values():
        row, _, digest = found.environment.get("row", "").partition("@")
        if row:
            commits = {
                role.removeprefix(_CHECKPOINT): named.rpartition("@")[2]
                for role, named in found.environment.items()
                if role.startswith(_CHECKPOINT)
            }
            return verification_status(row, digest, found.environment.get("code", ""), commits)
    return None


@cache
def _facts() -> Mapping[tuple[str, str], MetricFacts]:
    """Citation of a release and name of a metric in it to its facts."""
    given = tomllib.loads(FACTS.read_text(encoding="utf-8"))
    return {
        (scores.printed_in.citation, metric): MetricFacts.model_validate(facts)
        for scores in bundle.read_manifest().scores
        for metric, facts in given.get(scores.name, {}).items()
    }
