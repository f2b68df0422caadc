"""Figure of making CROC data: what became of the completions of each property and entity."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evaluator.croc.coverage import coverage_of
from evaluator.croc.folder import CrocFolder, WritingRun
from evaluator.croc.instructions import guide_to, wording
from evaluator.croc.requests import MODES, draw_requests
from evaluator.croc.taxonomy import EXAMPLE, read_taxonomy
from evaluator.croc.writing import write_pairs
from evaluator.drawing import Drawing, scale
from evaluator.scorers.models.sampling import Sampling
from tools.figures.croc_writer import SimulatedWriter

COMPLETIONS = 5
_NO_PAIR = ("refused", "cut", "no_object", "unreadable", "not_text")
"""Reasons of replies without a pair; the others are of pairs."""


def coverage() -> str:
    """Completions of a run on Assay's small taxonomy, with a simulated writer."""
    with TemporaryDirectory() as place:
        figures = coverage_of(list(_written(Path(place, "croc")).read()))
    rows = [*figures["properties"].items(), *figures["entities"].items()]
    figure = Drawing(
        "Simulated: share of the completions of each property and entity of a small taxonomy "
        f"of which a pair was kept, {figures['kept']} of {figures['asked']} in all.",
        85 + 28 * len(rows) + 20,
    )
    place_of = scale(0.0, 1.0, 165, 415)
    for x, kind, said in (
        (15, "one", "kept"),
        (85, "two", "reply without a pair"),
        (255, "grey", "pair dropped"),
    ):
        figure.rectangle(x, 20, 12, 12, kind)
        figure.text(x + 18, 31, said, "muted", size=13)
    for number, (name, tally) in enumerate(rows):
        # Properties stand apart from entities.
        y = 50 + 28 * number + (20 if number >= len(figures["properties"]) else 0)
        figure.text(155, y + 14, name, anchor="end")
        start = 0.0
        for kind, share in _shares(tally):
            figure.rectangle(
                place_of(start), y, place_of(start + share) - place_of(start), 18, kind
            )
            start += share
        figure.text(465, y + 14, f"{tally['kept']}/{tally['asked']}", "muted", "end", 12)
    figure.text(290, figure.height - 12, "completions", "muted", "middle", 13)
    return figure.svg()


def _shares(tally: dict[str, Any]) -> list[tuple[str, float]]:
    without = sum(tally["dropped"].get(reason, 0) for reason in _NO_PAIR)
    others = sum(tally["dropped"].values()) - without
    counts = (("one", tally["kept"]), ("two", without), ("grey", others))
    return [(kind, count / tally["asked"]) for kind, count in counts if count]


def _written(path: Path) -> CrocFolder:
    taxonomy, guide, folder = read_taxonomy(EXAMPLE), guide_to("flux"), CrocFolder(path)
    requests = draw_requests(taxonomy, MODES)
    run = WritingRun(
        order=0,
        image_model="flux",
        text_model="simulated",
        model="simulated",
        taxonomy=taxonomy.digest,
        draws="paper",
        seed=0,
        modes=MODES,
        completions=COMPLETIONS,
        most_words=30,
        max_tokens=4096,
        sampling=asdict(Sampling()),
        wording=wording(guide),
        requests=len(requests),
        skills={one.key: one.skill for one in taxonomy.properties},
    )
    with folder.opened():
        write_pairs(requests, folder.begin(run), SimulatedWriter(), folder, guide=guide)
    return folder
