"""What is exported of the made-up boards, and the published schemas of Every Eval Ever."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema

from benchmarks.prompt_sets.prompt_set import PromptSet
from leaderboard.api.source import Source
from leaderboard.exports.exporter import Exporter
from leaderboard.exports.model_results import ModelResults
from leaderboard.models.reading import ModelReader
from leaderboard.store.interface import Store
from tests.kit.boards import cards, source_over
from tests.leaderboard.views import example_fixture
from tests.leaderboard.views.model_track import filled, prompt_sets, prompts, source_of

SITE = "https://assay.example/"
KEPT_AT = "https://huggingface.co/datasets/lab/assay-results/tree/" + "c" * 40
SCHEMAS = Path(__file__).with_name("schemas")


def exporter_of(source: Source, **more: Any) -> Exporter:
    """Of a source, with a fixed version."""
    given: dict[str, Any] = {
        "reader": source.reader, "models": source.model_reader, "items": source.items,
        "cards": source.cards, "version": "1.2.3", "site": SITE,
    }  # fmt: skip
    return Exporter(**{**given, **more})


def of_models(store: Store | None = None, **more: Any) -> Exporter:
    """Of the made-up boards of metrics and models."""
    return exporter_of(source_of(store or filled()), **more)


def of_withheld_prompts() -> Exporter:
    """The same with a prompt set whose answers are not public."""
    store = filled(2)
    closed = {
        name: PromptSet(one.card.model_copy(update={"answers_public": False}), lambda _: prompts())
        for name, one in prompt_sets().items()
    }
    return of_models(store, models=ModelReader(store, closed, None))


def of_metrics(*, withheld: bool = False) -> Exporter:
    """Of the made-up boards of metrics with cases and scores."""
    known = cards()
    if withheld:
        known["ratings"] = known["ratings"].model_copy(update={"answers_public": False})
    return exporter_of(source_over(example_fixture.filled(), known))


def with_lower_scores(results: ModelResults, judge: str) -> ModelResults:
    """The same where smaller scores of a metric are better."""
    run = results.entry.judges[judge].model_copy(update={"lower_is_better": True})
    judges = {**results.entry.judges, judge: run}
    return replace(results, entry=results.entry.model_copy(update={"judges": judges}))


def schema(name: str) -> Any:
    """A published schema: `eval` or `instance_level_eval`."""
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))


def faults(name: str, documents: Iterable[Any]) -> list[str]:
    """What a schema finds wrong."""
    validator = jsonschema.Draft7Validator(schema(name))
    return [error.message for one in documents for error in validator.iter_errors(one)]
