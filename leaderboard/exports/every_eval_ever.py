"""Records of Every Eval Ever, one for each model or metric on each board, with their samples.

Schema: `eval.schema.json` and `instance_level_eval.schema.json`, version 0.3.0, of
github.com/evaleval/every_eval_ever at 9bce413 (MIT), 13 August 2026; rules on folders, companions and
bounds: `validator/validation_core.py` of the same commit.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from benchmarks.prompt_sets.prompt_set import pair_id
from benchmarks.schema import Card
from benchmarks.statistics.intervals import LEVEL
from leaderboard.exports.model_results import DrawnImage, JudgedMean, ModelResults, Origin
from leaderboard.publication.entries import Entry
from leaderboard.publication.item_scores import CaseSet, CaseSummary
from leaderboard.publication.measure_names import info, skill_title, title, token
from leaderboard.ranking.cells import Cell
from leaderboard.records import Kind
from leaderboard.text import clean, portable_name
from leaderboard.views.addresses import metric_address, model_address
from leaderboard.views.hub_results import dataset_of, hub_model_of
from leaderboard.views.metric import OnBoard

SCHEMA_VERSION = "0.3.0"
NO_ANSWERS = "withheld: the answers of this benchmark are not public"
NO_CASES = "none: no cases of this benchmark are published"
_UNBOUNDED = {"min_score": "-Infinity", "max_score": "Infinity"}
_NOT_BINARY = {"is_correct_applicable": "false"}
"""The schema wants `is_correct` of every sample; that of a score without right and wrong is false."""


@dataclass(frozen=True)
class EvalRecord:
    """One aggregate record, and the file of its samples where there is one."""

    path: PurePosixPath  # `data/{collection}/{developer}/{model}/{uuid}.json`
    content: dict[str, Any]
    samples: tuple[dict[str, Any], ...] = ()  # of its companion, one a line; none where withheld

    @property
    def samples_path(self) -> PurePosixPath:
        """Where the samples are, beside the record."""
        return _companion(self.path)

    def files(self) -> dict[str, bytes]:
        """Path to content of each file."""
        files = {str(self.path): (json.dumps(self.content, indent=1) + "\n").encode()}
        if self.samples:
            files[str(self.samples_path)] = samples_bytes(self.samples)
        return files


def model_record(results: ModelResults, origin: Origin) -> EvalRecord:
    """A model on its board: every skill by every metric, and a sample for each image and metric."""
    entry, card = results.entry, results.card
    repository = hub_model_of(entry)
    model_id = repository or f"{portable_name(entry.submitter)}/{portable_name(entry.title)}"
    newest = max([entry.published_at, *(run.scored_at for run in entry.judges.values())])
    identity = _Identity(card, model_id, entry.submission_id, origin, newest)
    there = [one for one in results.means if not one.why_missing]
    samples = tuple(_image_samples(results, identity, origin))
    missing = [f"{one.skill} by {one.judge.entry_id}: {one.why_missing}" for one in results.means
               if one.why_missing]  # fmt: skip
    missing += [f"{judge}: {why}" for judge, why in results.failed.items()]
    link = model_address(entry.submission_id)
    content = {
        **identity.head(entry.published_at.isoformat()),
        "source_metadata": _source(origin, link, "third_party", {
            **_missing(missing), "instance_level": results.withheld or "published",
        }),
        "eval_library": _library(origin),
        "model_info": {
            "name": clean(entry.title), "id": model_id,
            "developer": repository.partition("/")[0] or clean(entry.submitter),
            "additional_details": _model_details({
                "submission_id": entry.submission_id, "submitter": entry.submitter,
                "version": entry.version, "hub_model": entry.card.model,
                "hub_revision": entry.card.revision, "parameters": entry.card.parameters,
                "licence": entry.licence, "description": entry.description,
            }),
        },
        "evaluation_results": [_of_mean(one, results) for one in there],
    }  # fmt: skip
    if samples:
        # Only of images, whose scores make the means over all prompts: those of a skill are some of them.
        n_missing = sum(
            not math.isfinite(score)
            for image in results.images()
            for score in image.scores.values()
        )
        content["detailed_evaluation_results"] = _detailed(
            identity.path, samples, {"of": "the results over all prompts", "n_missing": n_missing}
        )
    return EvalRecord(identity.path, content, samples)


def metric_record(
    entry: Entry,
    on: OnBoard,
    origin: Origin,
    repository: str = "",
    cases: tuple[CaseSet, CaseSummary] | None = None,
    *,
    answers_public: bool = True,
    turned: bool = False,
) -> EvalRecord:
    """A metric on one benchmark: every measure on every skill, and a sample for each case.

    `repository` is that of the Hub which the metric was taken from, empty where it was not; `cases`
    is None where none are published. Without public answers no samples are made of them. `turned`:
    smaller scores of the metric are better, so that those of `cases` are negated.
    """
    card = on.card
    title_ = f"{entry.metric} {entry.version}".strip()
    model_id = repository or f"{portable_name(entry.submitter)}/{portable_name(title_)}"
    identity = _Identity(card, model_id, entry.entry_id, origin, entry.published_at)
    there = [cell for cell in on.cells if cell.value is not None]
    missing = [f"{_cell_id(cell)}: {clean(cell.note) or cell.why_unranked}" for cell in on.cells
               if cell.value is None]  # fmt: skip
    shown = cases if answers_public else None
    headline = on.headline if on.headline is not None and on.headline.value is not None else None
    samples = tuple(_case_samples(*shown, identity, headline, turned)) if shown and headline else ()
    no_samples = NO_CASES if answers_public else NO_ANSWERS
    relationship = "third_party" if entry.kind is Kind.METRIC else "collaborative"
    content = {
        **identity.head(entry.published_at.isoformat()),
        "source_metadata": _source(origin, metric_address(entry.entry_id), relationship, {
            **_missing(missing), "instance_level": "published" if samples else no_samples,
            "released_with": entry.released_with,
        }),
        "eval_library": _library(origin),
        "model_info": {
            "name": clean(title_), "id": model_id,
            "developer": repository.partition("/")[0] or clean(entry.submitter),
            "additional_details": _model_details({
                "what": "a metric of text-to-image generation under test",
                "entry_id": entry.entry_id, "submitter": entry.submitter, "kind": entry.kind.value,
                "trained_on": ", ".join(entry.trained_on), "description": entry.description,
            }),
        },
        "evaluation_results": [_of_cell(cell, on, entry) for cell in there],
    }  # fmt: skip
    if samples and shown:
        known, compared = np.isfinite(shown[1].share), shown[0].compared > 0
        about = {"of": "the headline", "statistic": "share of comparisons ordered as people do",
                 "n_missing": int((compared & ~known).sum()),
                 "n_nothing_to_compare": int((~compared).sum())}  # fmt: skip
        content["detailed_evaluation_results"] = _detailed(identity.path, samples, about)
    return EvalRecord(identity.path, content, samples)


@dataclass(frozen=True)
class _Identity:
    """What names a record: the same revision of the store gives the same file."""

    card: Card
    model_id: str  # `developer/model`
    ident: str  # submission or entry, which tells variants of one model apart
    origin: Origin
    newest: datetime  # when the newest of what the record is made of was made, besides the boards

    @property
    def collection(self) -> str:
        """The folder of a benchmark."""
        return f"assay-{self.card.name}"

    @property
    def evaluation_id(self) -> str:
        """Of the record."""
        return f"{self.collection}/{self.model_id}/{self.ident}/{self.retrieved}"

    @property
    def retrieved(self) -> str:
        """Unix time of the revision: every export of it is the same, its samples apart or not."""
        boards = self.origin.at.revision.made_at
        return f"{max(self.newest, boards or self.newest).timestamp():.0f}"

    @property
    def path(self) -> PurePosixPath:
        """Of the record."""
        named = (self.collection, self.model_id, self.ident, self.origin.at.revision.commit)
        digest = hashlib.sha256(json.dumps(named).encode()).digest()
        ident = uuid.UUID(bytes=digest[:16], version=4)
        developer, _, model = self.model_id.partition("/")
        return PurePosixPath(
            "data", self.collection, portable_name(developer), portable_name(model), f"{ident}.json"
        )

    def head(self, evaluated_at: str) -> dict[str, Any]:
        """What every record begins with."""
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self.evaluation_id,
            "evaluation_timestamp": evaluated_at,
            "retrieved_timestamp": self.retrieved,
        }

    def sample(self, name: str, result_id: str) -> dict[str, Any]:
        """What every sample begins with."""
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self.evaluation_id,
            "model_id": self.model_id,
            "evaluation_name": name,
            "evaluation_result_id": result_id,
        }


def _companion(path: PurePosixPath) -> PurePosixPath:
    return path.with_name(f"{path.stem}_samples.jsonl")


def samples_bytes(samples: Iterable[dict[str, Any]]) -> bytes:
    """The file of samples, one a line."""
    return "".join(f"{json.dumps(one, allow_nan=False)}\n" for one in samples).encode()


def _detailed(
    path: PurePosixPath, samples: tuple[dict[str, Any], ...], about: dict[str, object]
) -> dict[str, Any]:
    """The reference from a record to its samples."""
    return {
        "format": "jsonl",
        "file_path": str(_companion(path)),
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(samples_bytes(samples)).hexdigest(),
        "total_rows": len(samples),
        "additional_details": _texts(about),
    }


def _texts(given: dict[str, object]) -> dict[str, str]:
    """Details as the schema takes them; what says nothing is left out."""
    return {name: clean(value) for name, value in given.items() if value not in ("", None)}


def _missing(missing: list[str]) -> dict[str, object]:
    """Results without a value, which the schema has no place for among the others."""
    named = {"missing_results": json.dumps(missing)} if missing else {}
    return {"n_missing_results": len(missing), **named}


def _source(
    origin: Origin, link: str, relationship: str, more: dict[str, object]
) -> dict[str, Any]:
    at = origin.at
    revision = at.revision
    site = {"source_organization_url": at.site} if at.site else {}
    return {
        "source_name": "Assay",
        "source_type": "evaluation_run",
        "source_organization_name": "Assay",
        **site,
        "evaluator_relationship": relationship,
        "additional_details": _texts({
            "page": at.address(link), "store_commit": revision.commit,
            "boards_sha256": revision.snapshot,
            "boards_made_at": revision.made_at.isoformat() if revision.made_at else "",
            "exactly_these_figures": revision.address, **more,
        }),
    }  # fmt: skip


def _library(origin: Origin) -> dict[str, Any]:
    return {"name": "assay", "version": origin.version}


def _model_details(more: dict[str, object]) -> dict[str, str]:
    known = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {**known, **_texts(more)}


def _dataset(card: Card, n_samples: int | None = None) -> dict[str, Any]:
    """Where the data of a board are."""
    place = dataset_of(card)
    details = _texts({
        "name": card.name, "revision": card.revision, "protocol": card.protocol,
        "licence": card.licence, "citation": card.citation,
        "commit": place[1] if place else "", "simulated": "true" if card.simulated else "",
    })  # fmt: skip
    named = {"dataset_name": clean(card.title), "additional_details": details}
    if place:
        sized = {} if n_samples is None else {"samples_number": n_samples}
        return {**named, "source_type": "hf_dataset", "hf_repo": place[0], **sized}
    urls = [url for url in card.links.values() if url.startswith(("https://", "http://"))]
    if urls:
        return {**named, "source_type": "url", "url": urls}
    return {**named, "source_type": "other"}


def _uncertainty(
    low: float | None, high: float | None, method: str, n: int, more: dict[str, Any]
) -> dict[str, Any]:
    """Fields of the schema for an interval of 95 % and what it was made of."""
    found: dict[str, Any] = {"num_samples": n, **more}
    if low is not None and high is not None:
        found["confidence_interval"] = {
            "lower": low, "upper": high, "confidence_level": LEVEL, "method": method,
        }  # fmt: skip
    return found


# Models.


def _result_id(one: JudgedMean) -> str:
    return f"{one.skill}/{one.judge.entry_id}"


def _evaluation(card: Card, skill: str | None) -> str:
    return f"assay.{card.name}.{skill}" if skill else f"assay.{card.name}"


def _of_mean(one: JudgedMean, results: ModelResults) -> dict[str, Any]:
    mean, of, judge = one.mean, one.of, one.judge
    standing = of.standings[results.entry.submission_id]
    run = results.entry.judges[judge.entry_id]
    error = {}
    if math.isfinite(one.standard_error):
        error["standard_error"] = {"value": one.standard_error, "method": "analytic, over prompts"}
    return {
        "evaluation_result_id": _result_id(one),
        "evaluation_name": _evaluation(results.card, of.skill),
        "source_data": _dataset(results.card, of.n_prompts),
        "evaluation_timestamp": run.scored_at.isoformat(),
        "metric_config": {
            "evaluation_description": f"Mean score by {clean(judge.title)} on {clean(of.title)}.",
            "metric_id": f"assay.mean_score.{portable_name(judge.entry_id.rpartition('/')[2])}",
            "metric_name": f"Mean score by {clean(judge.title)}",
            "metric_kind": "mean_score",
            "metric_unit": "units of the metric",
            "metric_parameters": {
                "judge": judge.entry_id, "qualified": judge.trusted, "pinned": judge.pinned,
                "leads": judge.entry_id == of.lead, "negated": run.lower_is_better,
            },
            "lower_is_better": False,
            "score_type": "continuous",
            **_UNBOUNDED,
            "additional_details": _texts({"why_qualified": judge.why}),
        },
        "score_details": {
            "score": mean.value,
            "details": _texts({
                "n_prompts": mean.n_prompts, "n_missing_prompts": mean.n_missing,
                "rank_by_this_metric": mean.rank, "rank_low": standing.rank_low,
                "rank_high": standing.rank_high, "tier": standing.tier,
                "unranked": standing.unranked,
            }),
            "uncertainty": _uncertainty(
                mean.ci_low, mean.ci_high, "BCa bootstrap, prompts resampled", mean.n_prompts, error
            ),
        },
        "generation_config": {"additional_details": _generation(results)},
    }  # fmt: skip


def _generation(results: ModelResults) -> dict[str, str]:
    """How the images were made, as their developer declares it, and what was found in them."""
    card, seen = results.entry.card, results.entry.images
    return _texts({
        "steps": card.steps, "guidance": card.guidance, "generated_on": card.drawn_on,
        "image_taken": card.selection, "best_of": card.best_of, "selected_by": card.selected_by,
        "seeds": ",".join(map(str, seen.seeds)), "n_images": seen.present,
        "n_images_wanted": seen.wanted, "n_images_withheld": sum(seen.withheld.values()),
        "prompt_set_revision": seen.revision,
    })  # fmt: skip


def _image_samples(
    results: ModelResults, identity: _Identity, origin: Origin
) -> Iterator[dict[str, Any]]:
    """A sample for each score of an image; those that are missing are counted in the record."""
    whole = {one.judge.entry_id: one for one in results.means
             if one.of.skill is None and not one.why_missing}  # fmt: skip
    for image in results.images():
        shown = results.picture(image, origin.at) or f"image {image.place} of the prompt"
        for judge, score in image.scores.items():
            if judge in whole and math.isfinite(score):
                yield _image_sample(whole[judge], image, score, identity, shown)


def _image_sample(
    one: JudgedMean, image: DrawnImage, score: float, identity: _Identity, shown: str
) -> dict[str, Any]:
    prompt = image.prompt
    given = {"raw": clean(prompt.text, lines=True), "reference": list[str]()}
    return {
        **identity.sample(_evaluation(identity.card, None), _result_id(one)),
        "sample_id": pair_id(prompt.prompt_id, image.seed),
        "sample_hash": _hash_of(given),
        "interaction_type": "single_turn",
        "input": given,
        "output": {"raw": [shown]},
        "answer_attribution": [_attribution(shown, clean(one.judge.title))],
        "evaluation": {"score": score, "is_correct": False},
        "metadata": _texts({
            **_NOT_BINARY, "prompt_id": prompt.prompt_id, "seed": image.seed,
            "skills": ",".join(prompt.skills), "split": prompt.split,
            "judge": one.judge.entry_id,
        }),
    }  # fmt: skip


def _attribution(value: str, method: str) -> dict[str, Any]:
    return {"turn_idx": 0, "source": "output.raw", "extracted_value": value,
            "extraction_method": method, "is_terminal": True}  # fmt: skip


def _hash_of(given: dict[str, Any]) -> str:
    """Hash of a sample's input by the recipe of Every Eval Ever, the same for every model."""
    known = {"raw": given["raw"], "reference": given["reference"]}
    text = json.dumps(known, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# Metrics.


def _cell_id(cell: Cell) -> str:
    return f"{cell.skill or 'all'}/{token(cell.selector)}"


def _of_cell(cell: Cell, on: OnBoard, entry: Entry) -> dict[str, Any]:
    card = on.card
    measure = info(card, cell.measure)
    made = entry.provenance.get(card.name)
    more = {"num_bootstrap_samples": made.n_resamples} if made and cell.ci_method else {}
    return {
        "evaluation_result_id": _cell_id(cell),
        "evaluation_name": _evaluation(card, cell.skill),
        "source_data": _dataset(card),
        "evaluation_timestamp": entry.published_at.isoformat(),
        "metric_config": {
            "evaluation_description": f"{clean(measure.meaning)} On {skill_title(card, cell.skill)}.",
            "metric_id": f"assay.{token(cell.selector)}",
            "metric_name": title(card, cell.selector, on.board.every_selector()),
            "metric_kind": cell.measure,
            "lower_is_better": not card.higher_is_better(cell.measure),
            "score_type": "continuous",
            "min_score": "-Infinity" if measure.low is None else measure.low,
            "max_score": "Infinity" if measure.high is None else measure.high,
            "additional_details": _texts({
                "variant": cell.variant, "split": cell.split, "facet": cell.facet,
                "seed": made.seed if made else "", "plan": made.plan if made else "",
                "versions": made.versions if made else "",
            }),
        },
        "score_details": {
            "score": cell.value,
            "details": _texts({
                "n_items": cell.n_items, "n_clusters": cell.n_clusters, "n_missing": cell.n_missing,
                "rank_low": cell.rank_low, "rank": cell.rank, "rank_high": cell.rank_high,
                "tier": cell.tier, "why_unranked": cell.why_unranked, "note": cell.note,
            }),
            "uncertainty": _uncertainty(
                cell.ci_low, cell.ci_high, f"{cell.ci_method or ''} bootstrap of {card.cluster}s".strip(),
                cell.n_clusters, more,
            ),
        },
    }  # fmt: skip


def _case_samples(
    cases: CaseSet, standing: CaseSummary, identity: _Identity, headline: Cell, turned: bool
) -> Iterator[dict[str, Any]]:
    """A sample for each case of which a comparison was scored."""
    name, result_id = _evaluation(identity.card, None), _cell_id(headline)
    own = -standing.score if turned else standing.score  # as the metric gave them
    for case, case_id in enumerate(cases.comparisons.case_ids):
        share = float(standing.share[case])
        if not math.isfinite(share):
            continue
        rows = cases.frame.iloc[cases.rows_of(case)]
        scores = own[cases.rows_of(case)]
        pairs = rows["pair_id"].astype(str)
        said = [f"{pair}: {clean(text)}" for pair, text in zip(pairs, rows["said"], strict=True)]
        answers = [f"{pair}: {_number(score)}" for pair, score in zip(pairs, scores, strict=True)]
        prompts = dict.fromkeys(clean(one, lines=True) for one in rows["prompt"].astype(str))
        given = {"raw": "\n".join(prompts), "reference": said}
        yield {
            **identity.sample(name, result_id),
            "sample_id": case_id,
            "sample_hash": _hash_of(given),
            "interaction_type": "single_turn",
            "input": given,
            "output": {"raw": answers},
            "answer_attribution": [_attribution("; ".join(answers), "scores of the metric")],
            "evaluation": {"score": share, "is_correct": share == 1.0},
            "metadata": _texts({
                "cluster": cases.clusters[cases.cluster_of[case]],
                "split": ",".join(cases.splits[case]), "skills": ",".join(cases.skills[case]),
                "n_compared": int(standing.n_compared[case]),
                "n_missing": int(standing.n_missing[case]),
                "lower_is_better": "true" if turned else "",
            }),
        }  # fmt: skip


def _number(score: float) -> str:
    return repr(float(score)) if math.isfinite(score) else "no score"
