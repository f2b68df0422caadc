"""Packing of a trained metric as a submission: module, weights, manifest, card and provenance."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import tomlkit
from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import ValidationError

from benchmarks.errors import SubmitterError
from benchmarks.rows import Row
from evaluator.drawing import Drawing, scale
from evaluator.manifest import FILE
from evaluator.submission.manifest import Manifest
from evaluator.submission.receipts import assay_version
from evaluator.training.checkpoints import writing
from evaluator.training.data import TrainingData
from evaluator.training.loop import RunOptions, Trained, run_record
from evaluator.training.preparing import Preparation
from evaluator.training.recipe import ExportedModule, Recipe

_POINTS = 240
"""Most points of the curve; beyond, neighbouring steps are averaged."""


def pack(
    recipe: Recipe,
    preparation: Preparation,
    options: RunOptions,
    trained: Trained,
    *,
    folder: Path,
    name: str,
) -> Manifest:
    """Write a folder that can be submitted, in place of an earlier one.

    The same run gives the same bytes. Its version is drawn from them, since a version of a metric has
    one content.
    """
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            module = recipe.export(trained.model, part)
            told = provenance(recipe, preparation, options, trained)
            (part / "training.json").write_text(f"{json.dumps(told, indent=1)}\n", "utf-8")
            (part / "curve.svg").write_text(curve(trained.log, preparation), "utf-8")
            (part / "README.md").write_text(_card(name, module, told, preparation), "utf-8")
            trained_on = (*recipe.base_trained_on(), *preparation.trained_on)
            manifest = _manifest(name, _version(part), module, preparation.data, trained_on)
            values = manifest.model_dump(mode="json", exclude_defaults=True)
            (part / FILE).write_text(tomlkit.dumps(values), "utf-8")
            part.chmod(0o755)
            shutil.rmtree(folder, ignore_errors=True)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return manifest


def provenance(
    recipe: Recipe, preparation: Preparation, options: RunOptions, trained: Trained
) -> dict[str, Any]:
    """All that decided the weights, and what was measured, as JSON values."""
    # Torch is imported by now.
    from evaluator.scorers.device import device_description, versions  # noqa: PLC0415

    held_out, data = preparation.prepared.held_out, preparation.data
    return {
        "run": run_record(recipe, preparation.prepared, options),
        "steps": trained.steps,
        "data": {
            "name": data.name,
            "revision": data.revision,
            "digest": data.digest,
            "files": dict(data.answers.sources),
            "clusters": len(data.answers.clusters),
            "held_out": [] if held_out is None else list(held_out.answers.clusters),
        },
        "dropped": dict(preparation.dropped),
        "comparisons": [asdict(one) for one in preparation.comparisons],
        "overlap": list(preparation.overlap),
        "not_at_hand": list(preparation.not_at_hand),
        "held_out": [row.to_json() for row in trained.rows],
        "versions": {"assay": assay_version(), **versions()},
        "device": device_description(options.device),
        # Without the speed, which differs each time.
        "log": [
            {key: value for key, value in line.items() if key != "examples_per_s"}
            for line in trained.log
        ],
    }


def curve(log: Sequence[Mapping[str, Any]], preparation: Preparation) -> str:
    """The total loss by step, and the headline on the held-out part below it, as SVG."""
    losses = [(line["step"], line["losses"]["total"]) for line in log if "losses" in line]
    measured = [(line["step"], line["held_out"]) for line in log if "held_out" in line]
    last = max(2, losses[-1][0])
    drawing = Drawing("Loss by step of training, and the headline on the held-out part", 330)
    across = scale(0, last, 56, 464)
    points = _averaged(losses)
    highest = max(value for _, value in points)
    up = scale(0, highest or 1.0, 150, 30)
    drawing.text(14, 20, "loss (total)", "muted", size=13)
    for tick in (0.0, highest):
        drawing.line(56, up(tick), 464, up(tick), "faint")
        drawing.text(50, up(tick) + 4, f"{tick:.3g}", "muted", "end", 12)
    drawing.path(((across(step), up(value)) for step, value in points), "one")
    if measured:
        _draw_held_out(drawing, measured, across, preparation)
    drawing.axis(across, 290, (0, last // 2, last), "step")
    return drawing.svg()


def _draw_held_out(
    drawing: Drawing, measured: Sequence[tuple[int, Any]], across: Any, preparation: Preparation
) -> None:
    card = preparation.data.benchmark.card
    info = card.measures[card.headline.measure]
    found = [
        value
        for _, row in measured
        for value in (row["value"], row["ci_low"], row["ci_high"], info.chance)
        if value is not None
    ]
    if not found:
        return
    low, high = min(found), max(found)
    up = scale(low, high if high > low else low + 1, 275, 195)
    drawing.text(14, 180, f"{info.title}, held out, with 95 % interval", "muted", size=13)
    for value, said in ((low, f"{low:.2f}"), (high, f"{high:.2f}")):
        drawing.text(50, up(value) + 4, said, "muted", "end", 12)
    if info.chance is not None:
        drawing.line(56, up(info.chance), 464, up(info.chance), "faint")
        drawing.text(60, up(info.chance) - 4, "chance", "muted", size=12)
    for step, row in measured:
        if row["value"] is None:
            continue
        if row["ci_low"] is not None and row["ci_high"] is not None:
            drawing.line(
                across(step), up(row["ci_low"]), across(step), up(row["ci_high"]), "two", 2
            )
        drawing.dot(across(step), up(row["value"]), "two")


def _averaged(points: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
    size = -(-len(points) // _POINTS)
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    return [(sum(p[0] for p in q) / len(q), sum(p[1] for p in q) / len(q)) for q in parts]


def _manifest(
    name: str,
    version: str,
    module: ExportedModule,
    data: TrainingData,
    trained_on: Sequence[str],
) -> Manifest:
    try:
        return Manifest(
            name=name,
            version=version,
            licence=module.licence,
            description=f"{module.description} Trained on {data.name}, revision {data.revision}; the "
            "card in its folder says how.",
            entry_point=module.entry_point,
            weights=module.weights,
            range=module.range,
            models=module.models,
            trained_on=tuple(dict.fromkeys(trained_on)),
        )
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SubmitterError(
            "bad_manifest",
            f"{FILE} of the trained metric: {wrong}.",
            "Mend the recipe or its base.",
        ) from error


def _version(folder: Path) -> str:
    """The first digits of a hash of all files."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            digest.update(file.relative_to(folder).as_posix().encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


def _card(
    name: str, module: ExportedModule, told: Mapping[str, Any], preparation: Preparation
) -> str:
    held_out = preparation.prepared.held_out
    shown = [Row.from_json(row) for row in told["held_out"] if row["skill"] is None]
    environment = Environment(
        loader=PackageLoader("evaluator.training", "templates"),
        autoescape=False,  # noqa: S701 (it is Markdown)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["figure"] = _figure
    return environment.get_template("card.md.jinja").render(
        name=name,
        module=module,
        run=told["run"],
        steps=told["steps"],
        data=told["data"],
        dropped=told["dropped"],
        comparisons=told["comparisons"],
        overlap=told["overlap"],
        not_at_hand=told["not_at_hand"],
        versions=told["versions"],
        device=", ".join(f"{key} {value}" for key, value in told["device"].items()),
        rows=shown,
        resamples=shown[0].n_resamples if shown else 0,
        clusters=0 if held_out is None else len(held_out.answers.clusters),
        cluster=preparation.data.benchmark.card.cluster,
        evaluations=sum("held_out" in line for line in told["log"]),
    )


def _figure(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.3f}"
