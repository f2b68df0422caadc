"""Exports of models and metrics by their ids, for commands and the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.errors import SubmitterError
from benchmarks.schema import Card
from leaderboard.exports.every_eval_ever import EvalRecord, metric_record, model_record
from leaderboard.exports.inspect_log import inspect_log, log_bytes, log_name
from leaderboard.exports.model_results import ModelResults, Origin, model_results
from leaderboard.models.reading import ModelReader
from leaderboard.publication.entries import Entry
from leaderboard.publication.item_scores import CaseSet, CaseSummary, ItemReader
from leaderboard.publication.reader import Reader
from leaderboard.views.citation import Citation, CitedAt, metric_citation, model_citation
from leaderboard.views.examples import answers_are_public, lower_is_better
from leaderboard.views.hub_results import (
    HubResults,
    benchmark_file,
    hub_metric_of,
    hub_model_of,
    metric_hub_results,
    model_hub_results,
)
from leaderboard.views.metric import MetricOnBoards, MetricQuery, OnBoard, on_boards, resolve


@dataclass(frozen=True)
class Exporter:
    """Reads what is published and writes it in the forms of others."""

    reader: Reader  # of boards and submissions
    models: ModelReader  # of models and their scores
    items: ItemReader  # of cases and the scores of metrics
    cards: Mapping[str, Card]  # the benchmarks of this installation
    version: str  # of Assay
    site: str = ""  # address of the site with its last slash; empty where it is not known

    @property
    def cited_at(self) -> CitedAt:
        """The state of the store, and the site."""
        return CitedAt(self.reader.revision(), self.site)

    @property
    def origin(self) -> Origin:
        """What every export says of itself."""
        return Origin(self.cited_at, self.version)

    def model_ids(self) -> tuple[str, ...]:
        """The models on the boards, oldest first."""
        return tuple(self.models.track().entries)

    def metric_ids(self) -> tuple[str, ...]:
        """The metrics on the boards."""
        return tuple(self.reader.view().entries)

    def is_model(self, ident: str) -> bool:
        """Whether an id is that of a model."""
        return ident in self.models.track().entries

    def model(self, ident: str) -> ModelResults:
        """The results of a model.

        Raises:
            SubmitterError: see `model_results`.
        """
        return model_results(ident, self.models, self.reader.view())

    def metric(self, ident: str) -> MetricOnBoards:
        """A metric, by its entry or by a submission with one metric.

        Raises:
            SubmitterError: `unknown_entry` where no board has it.
        """
        found = resolve(MetricQuery(ident), self.reader.view(), self.reader.statuses())
        if not isinstance(found, MetricOnBoards):
            raise SubmitterError(
                "unknown_entry",
                f"{ident[:120]!r} is no model and no metric on the boards.",
                "Give a model as its submission and a metric as SUBMISSION/METRIC: /v1/models and "
                "/v1/entries list them.",
            )
        return found

    def records(self, ident: str, benchmark: str = "") -> Iterator[EvalRecord]:
        """Records of Every Eval Ever of a model or metric, of one benchmark or of all."""
        origin = self.origin
        if self.is_model(ident):
            results = self.model(ident)
            if benchmark in ("", results.card.name):
                yield model_record(results, origin)
            return
        found = self.metric(ident)
        repository, turned = hub_metric_of(found.status), self._is_turned(found.entry)
        for on in self._boards_of(found):
            if benchmark in ("", on.card.name):
                public = answers_are_public(on.card, self.cards)
                cases = self._cases(found, on, turned) if public else None
                yield metric_record(
                    found.entry, on, origin, repository, cases, answers_public=public, turned=turned
                )

    def log(self, ident: str) -> tuple[str, bytes]:
        """The log of Inspect of a model: its file's name and content."""
        results = self.model(ident)
        return log_name(results), log_bytes(inspect_log(results, self.origin))

    def hub_results(self, ident: str, dataset: str = "") -> tuple[str, HubResults]:
        """The repository of the Hub that a model or metric names, and what is to be put there.

        The repository is empty where it names none.
        """
        if self.is_model(ident):
            results = self.model(ident)
            made = model_hub_results(
                results.entry, results.card, results.board, self.cited_at, dataset
            )
            return hub_model_of(results.entry), made
        found = self.metric(ident)
        headlines = [(one.card, one.headline) for one in self._boards_of(found)
                     if one.headline is not None]  # fmt: skip
        made = metric_hub_results(found.entry, headlines, self.cited_at, dataset)
        return hub_metric_of(found.status), made

    def benchmark_file(self, ident: str) -> str:
        """`eval.yaml` of the dataset that the board of a model is of."""
        results = self.model(ident)
        return benchmark_file(results.card, results.board)

    def citation(self, ident: str) -> Citation:
        """How a model or metric is cited."""
        if self.is_model(ident):
            results = self.model(ident)
            return model_citation(results.entry, results.card, self.cited_at)
        found = self.metric(ident)
        authors = found.status.submission.authors if found.status else ()
        cards = [one.card for one in on_boards(found, self.reader.view())]
        return metric_citation(found.entry, cards, authors, self.cited_at)

    def _boards_of(self, found: MetricOnBoards) -> tuple[OnBoard, ...]:
        """Its own boards: those of another submission of the same metric are that one's."""
        alone = MetricOnBoards(found.entry, found.status)
        return on_boards(alone, self.reader.view())

    def _is_turned(self, entry: Entry) -> bool:
        """Whether smaller scores of the metric are better, so that boards have them negated."""
        lower = lower_is_better(self.reader.statuses())
        return entry.metric in lower.get(entry.submission_id, ())

    def _cases(
        self, found: MetricOnBoards, on: OnBoard, turned: bool
    ) -> tuple[CaseSet, CaseSummary] | None:
        cases = self.items.cases(on.card)
        return None if cases is None else (cases, self.items.standing(found.entry, cases, turned))
