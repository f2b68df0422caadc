"""Logs of Inspect: one for each model on its board, as `inspect view` opens them.

Form: `EvalLog`, version 2, of inspect_ai 0.3.285 (MIT), github.com/UKGovernmentBEIS/inspect_ai, `log/_log.py`;
a missing score is NaN, its sign for a sample that was not scored.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from typing import Any

from leaderboard.exports.model_results import DrawnImage, JudgedMean, ModelResults, Origin
from leaderboard.text import clean
from leaderboard.views.addresses import model_address
from leaderboard.views.hub_results import dataset_of, hub_model_of

LOG_VERSION = 2
_UNSCORED = "scoring_failed"
"""Inspect's reason where the metric, and not the model, gave nothing."""


def inspect_log(results: ModelResults, origin: Origin) -> dict[str, Any]:
    """The log of a model: what was asked for, results by metric and skill, and every image."""
    entry = results.entry
    images = list(results.images())
    samples = [_sample(image, results, origin) for image in images]
    wanted, present = entry.images.wanted, entry.images.present
    finished = max((run.scored_at for run in entry.judges.values()), default=entry.published_at)
    return {
        "version": LOG_VERSION,
        "status": "success",
        "eval": _spec(results, origin),
        "plan": {"name": "assay", "steps": [{"solver": "generate", "params": _settings(results)}]},
        "results": {
            "total_samples": wanted,
            "completed_samples": present,
            "scores": [_result(one, _counts(one, images, results)) for one in results.means],
            "metadata": {"failed_metrics": results.failed, "samples": results.withheld or "all"},
        },
        "stats": {
            "started_at": entry.received_at.isoformat(),
            "completed_at": finished.isoformat(),
        },
        "samples": samples or None,
    }


def log_bytes(log: dict[str, Any]) -> bytes:
    """The file of a log."""
    return (json.dumps(log) + "\n").encode()


def log_name(results: ModelResults) -> str:
    """The name of the file, as Inspect sorts logs: by time, task and id."""
    entry = results.entry
    ident = _ident("log", entry.submission_id)
    return f"{entry.published_at:%Y-%m-%dT%H-%M-%S+00-00}_{_task(results)}_{ident}.json"


def _spec(results: ModelResults, origin: Origin) -> dict[str, Any]:
    entry, card, revision = results.entry, results.card, origin.at.revision
    place = dataset_of(card)
    withheld = bool(results.withheld)
    negated = {judge for judge, run in entry.judges.items() if run.lower_is_better}
    ids = None if withheld else [one.prompt_id for one in results.choice.prompts]
    return {
        "eval_id": _ident("eval", entry.submission_id, revision.commit),
        "run_id": _ident("run", entry.submission_id),
        "task_id": _ident("task", card.name, card.revision),
        "created": entry.published_at.isoformat(),
        "task": _task(results),
        "task_version": card.revision,
        "task_display_name": clean(card.title),
        "task_attribs": {},
        "task_args": {},
        "dataset": {
            "name": card.name,
            "location": place[0] if place else None,
            "samples": len(results.choice.prompts),
            "sample_ids": ids,
            "shuffled": False,
        },
        "model": hub_model_of(entry) or clean(entry.title),
        "model_args": _settings(results),
        "config": {"epochs": len(entry.images.seeds), "log_samples": not withheld},
        "packages": {"assay": origin.version},
        "metadata": {
            "page": origin.at.address(model_address(entry.submission_id)),
            "submission_id": entry.submission_id,
            "submitter": clean(entry.submitter),
            "prompt_set_revision": entry.images.revision,
            "simulated": card.simulated,
            "store_commit": revision.commit,
            "boards_sha256": revision.snapshot,
            "exactly_these_figures": revision.address,
            "boards_made_at": revision.made_at.isoformat() if revision.made_at else None,
        },
        "scorers": [
            {"name": judge.entry_id, "metrics": [{"name": "mean"}, {"name": "stderr"}],
             "metadata": {"title": clean(judge.title), "negated": judge.entry_id in negated}}
            for judge in results.judges
        ],
    }  # fmt: skip


def _task(results: ModelResults) -> str:
    return f"assay-{results.card.name}".replace("_", "-")


def _settings(results: ModelResults) -> dict[str, Any]:
    """How the images were made, as their developer declares it."""
    card, seen = results.entry.card, results.entry.images
    declared = {"revision": card.revision, "parameters": card.parameters, "steps": card.steps,
                "guidance": card.guidance, "generated_on": card.drawn_on,
                "image_taken": card.selection, "best_of": card.best_of,
                "selected_by": clean(card.selected_by), "seeds": list(seen.seeds),
                "n_images_withheld": sum(seen.withheld.values())}  # fmt: skip
    return {name: value for name, value in declared.items() if value not in ("", None)}


def _result(one: JudgedMean, counts: tuple[int | None, int | None]) -> dict[str, Any]:
    """The mean of a metric on a skill; without a value it has no metrics and says why."""
    mean, judge = one.mean, one.judge
    values = {"mean": mean.value, "stderr": one.standard_error, "ci_low": mean.ci_low,
              "ci_high": mean.ci_high}  # fmt: skip
    known = {name: value for name, value in values.items() if value is not None}
    scored, unscored = counts
    return {
        "name": judge.entry_id if one.of.skill is None else f"{judge.entry_id}:{one.of.skill}",
        "scorer": judge.entry_id,
        "scored_samples": scored,
        "unscored_samples": unscored,
        "params": {"skill": one.skill},
        "metrics": {
            name: {"name": name, "value": value}
            for name, value in known.items()
            if math.isfinite(value)
        },
        "metadata": {
            "skill": clean(one.of.title), "judge": clean(judge.title), "qualified": judge.trusted,
            "leads": judge.entry_id == one.of.lead, "interval": "95 %, BCa, prompts resampled",
            "n_prompts": mean.n_prompts, "n_missing_prompts": mean.n_missing, "rank": mean.rank,
            "rank_low": mean.rank_low, "rank_high": mean.rank_high, "tier": mean.tier,
            "why_missing": clean(one.why_missing),
        },
    }  # fmt: skip


def _counts(
    one: JudgedMean, images: list[DrawnImage], results: ModelResults
) -> tuple[int | None, int | None]:
    """Images of a skill with a score of a metric and without; None where images are withheld."""
    if results.withheld:
        return None, None
    skill = one.of.skill
    found = Counter(
        math.isfinite(image.scores.get(one.judge.entry_id, math.nan))
        for image in images
        if skill is None or skill in image.prompt.skills
    )
    return found[True], found[False]


def _sample(image: DrawnImage, results: ModelResults, origin: Origin) -> dict[str, Any]:
    prompt, entry = image.prompt, results.entry
    text, picture = clean(prompt.text, lines=True), results.picture(image, origin.at)
    shown: str | list[dict[str, str]] = f"seed {image.seed}; the picture is not published here"
    if picture:
        shown = [{"type": "image", "image": picture}]
    answer = {"role": "assistant", "content": shown, "source": "generate"}
    return {
        "id": prompt.prompt_id,
        "epoch": image.place,
        "uuid": _ident("sample", entry.submission_id, prompt.prompt_id, str(image.seed)),
        "input": text,
        "target": "",
        "messages": [{"role": "user", "content": text, "source": "input"}, answer],
        "output": {
            "model": hub_model_of(entry) or clean(entry.title),
            "choices": [{"message": answer, "stop_reason": "stop"}],
        },
        "scores": {judge: _score(value, picture) for judge, value in image.scores.items()},
        "metadata": {"seed": image.seed, "split": prompt.split, "skills": list(prompt.skills)},
    }


def _score(value: float, picture: str) -> dict[str, Any]:
    known = {"value": value, "answer": picture or None}
    return known if math.isfinite(value) else {**known, "reason": _UNSCORED}


def _ident(*parts: str) -> str:
    """22 characters, as Inspect's ids have; the same for the same parts."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    kept = base64.b32encode(digest).decode().lower()
    return kept[:22]
