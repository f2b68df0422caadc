"""Documents of models and metrics in the forms of others: Every Eval Ever, Inspect, the Hub."""

from __future__ import annotations

import json
from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from leaderboard.api.replies import Body, not_found
from leaderboard.api.serving import server_of
from leaderboard.api.source import Source
from leaderboard.exports.every_eval_ever import EvalRecord, samples_bytes
from leaderboard.exports.exporter import Exporter
from leaderboard.service.address import root_of

JSONL = "application/jsonl"
YAML = "application/yaml"
router = APIRouter(include_in_schema=False)


@router.get(
    "/exports/models/{submission_id}/every-eval-ever.json",
    summary="A model on its board as a record of Every Eval Ever.",
)
async def model_record(request: Request, submission_id: str) -> Response:
    """Answer the record."""
    return await _answered(request, lambda made: _record(_model_record(made, submission_id)))


@router.get(
    "/exports/models/{submission_id}/every-eval-ever-samples.jsonl",
    summary="The samples of that record: every image by every metric.",
)
async def model_samples(request: Request, submission_id: str) -> Response:
    """Answer the samples."""
    return await _answered(request, lambda made: _samples(_model_record(made, submission_id)))


@router.get(
    "/exports/models/{submission_id}/inspect.json",
    summary="A model on its board as a log of Inspect; a missing score is NaN, as it has them.",
)
async def model_log(request: Request, submission_id: str) -> Response:
    """Answer the log."""

    def log(made: Exporter) -> Body:
        name, content = made.log(_known_model(made, submission_id))
        return Body(content, file_name=name, to_keep=True)

    return await _answered(request, log)


@router.get(
    "/exports/models/{submission_id}/eval-results.yaml",
    summary="What goes to .eval_results of the model's repository of the Hub.",
)
async def model_hub_results(request: Request, submission_id: str) -> Response:
    """Answer the file; it is empty where the Hub takes none of the results."""

    def results(made: Exporter) -> Body:
        _, found = made.hub_results(_known_model(made, submission_id))
        left_out = "".join(f"# {name}: left out, {why}\n" for name, why in found.left_out.items())
        return Body((left_out + found.content).encode(), YAML, found.file_name, to_keep=True)

    return await _answered(request, results)


@router.get(
    "/exports/metrics/{benchmark}/{entry_id:path}/every-eval-ever.json",
    summary="A metric on a benchmark as a record of Every Eval Ever.",
)
async def metric_record(request: Request, benchmark: str, entry_id: str) -> Response:
    """Answer the record."""
    return await _answered(request, lambda made: _record(_metric(made, benchmark, entry_id)))


@router.get(
    "/exports/metrics/{benchmark}/{entry_id:path}/every-eval-ever-samples.jsonl",
    summary="The samples of that record, where the answers are public.",
)
async def metric_samples(request: Request, benchmark: str, entry_id: str) -> Response:
    """Answer the samples."""
    return await _answered(request, lambda made: _samples(_metric(made, benchmark, entry_id)))


async def _answered(request: Request, make: Callable[[Exporter], Body]) -> Response:
    source = server_of(request).source

    def answer() -> Body:
        with source.turn():
            return make(_exporter(source, root_of(request.headers)))

    return await server_of(request).reply(request, answer)


def _exporter(source: Source, site: str) -> Exporter:
    return Exporter(
        source.reader, source.model_reader, source.items, source.cards, source.assay_version,
        site,
    )  # fmt: skip


def _known_model(made: Exporter, submission_id: str) -> str:
    if not made.is_model(submission_id):
        raise not_found("unknown_model", "There is no such model on the boards.", "See /v1/models.")
    return submission_id


def _model_record(made: Exporter, submission_id: str) -> EvalRecord:
    return next(made.records(_known_model(made, submission_id)))


def _metric(made: Exporter, benchmark: str, entry_id: str) -> EvalRecord:
    known = entry_id in made.metric_ids()
    found = next(made.records(entry_id, benchmark), None) if known else None
    if found is None:
        raise not_found(
            "unknown_entry", "There is no such entry on that benchmark.", "See /v1/entries."
        )
    return found


def _record(found: EvalRecord) -> Body:
    return Body((json.dumps(found.content, indent=1) + "\n").encode(), file_name=found.path.name,
                to_keep=True)  # fmt: skip


def _samples(found: EvalRecord) -> Body:
    if not found.samples:
        why = found.content["source_metadata"]["additional_details"]["instance_level"]
        raise not_found("no_samples", f"There are no samples: {why}.", "See the record itself.")
    return Body(samples_bytes(found.samples), JSONL, found.samples_path.name, to_keep=True)
