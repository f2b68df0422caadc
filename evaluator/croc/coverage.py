"""Coverage: of how many completions a pair was kept, by property, entity and kind, and why not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.sources.output import write_whole
from evaluator.croc.folder import REPORT, CrocFolder, ReadRequest
from evaluator.croc.replies import REASONS, WrittenPair

_DRAWN = {"model", "revision", "steps", "guidance"}


@dataclass
class Tally:
    """What became of completions."""

    asked: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)  # by reason
    undefined: int = 0  # pairs of entity variation that came without the varied definition

    def add(self, request: ReadRequest) -> None:
        """Count the completions of a request."""
        for one in request.found:
            self.asked += 1
            if not isinstance(one, WrittenPair):
                self.dropped[one] += 1
                continue
            self.kept += 1
            lacks = request.about.mode == "entity_variation" and not one.varied_definition
            self.undefined += lacks

    def figures(self) -> dict[str, Any]:
        """For the report; reasons in the order in which they are looked for."""
        dropped = {reason: self.dropped[reason] for reason in REASONS if self.dropped[reason]}
        return {"asked": self.asked, "kept": self.kept, "dropped": dropped}


def write_report(folder: CrocFolder, requests: Sequence[ReadRequest]) -> dict[str, Any]:
    """Write the report beside the card; gives its figures."""
    figures = coverage_of(requests)
    for run in folder.runs():
        if told := figures["files"].get(run.key):
            drawn = folder.drawn_by(run)
            told["drawn_by"] = drawn and drawn.model_dump(include=_DRAWN)
    content = json.dumps(figures, indent=1, ensure_ascii=False)
    write_whole(
        folder.path / REPORT, lambda path: path.write_text(f"{content}\n", encoding="utf-8")
    )
    return figures


def coverage_of(requests: Sequence[ReadRequest]) -> dict[str, Any]:
    """Tallies of all completions: in all, by file, by kind, by skill, by property and by entity."""
    total = Tally()
    for one in requests:
        total.add(one)
    of_files = {
        run.key: {
            "image_model": run.image_model,
            "text_model": run.text_model,
            "model": run.model,
            "draws": run.draws,
            "seed": run.seed,
            "most_words": run.most_words,
            "taxonomy_sha256": run.taxonomy,
            "requests": run.requests,
            **_tally(one for one in requests if one.run == run).figures(),
        }
        for run in {one.run.key: one.run for one in requests}.values()
    }
    return {
        **total.figures(),
        "without_varied_definition": total.undefined,
        "files": of_files,
        "kinds": _by(requests, lambda one: one.about.mode),
        "skills": _by(requests, lambda one: one.skill),
        "properties": _by(requests, lambda one: one.about.property or ""),
        "entities": _by(requests, lambda one: one.about.entity or ""),
    }


def _tally(requests: Iterable[ReadRequest]) -> Tally:
    found = Tally()
    for one in requests:
        found.add(one)
    return found


def _by(requests: Sequence[ReadRequest], name_of: Callable[[ReadRequest], str]) -> dict[str, Any]:
    found: dict[str, Tally] = {}
    for one in requests:
        if name := name_of(one):
            found.setdefault(name, Tally()).add(one)
    return {name: tally.figures() for name, tally in found.items()}
