"""Maker of the labels of GenEval: from the answers of raters to `benchmarks/geneval/`.

    python -m tools.make_geneval --data ../shared/data           # write both tables
    python -m tools.make_geneval --data ../shared/data --check   # compare, write nothing

The authors released what raters answered (how many, which colours, where), not whether an element
of the prompt is there; `benchmarks/geneval/FORMAT.md` says how one follows from the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from benchmarks.registry import BUILT_IN

MODELS = ("clip", "if-xl", "sdv2")
RATERS = 5
_NUMBERS = {"two": 2, "three": 3, "four": 4}
_SIDES = {"left of": "x", "right of": "x", "above": "y", "below": "y"}
_COLOURS = "red|orange|yellow|green|blue|purple|pink|brown|black|white"
_POSITION = re.compile(rf" ({'|'.join(_SIDES)}) ")


@dataclass(frozen=True)
class Element:
    """Part of a prompt, and whether each rater found it."""

    element: str
    question: str
    skill: str
    labels: list[bool]


def tables(data: Path) -> dict[str, str]:
    """Name of a file to its content, from the folder of the authors' files."""
    elements, fits = [], []
    for model in MODELS:
        path = data / "geneval" / f"annotations_{model}.csv"
        answers = pd.read_csv(path, dtype=str, keep_default_na=False)
        for index, rows in answers.groupby("Input.index", sort=False):
            if len(rows) != RATERS:
                continue
            first = rows.iloc[0]
            named = {
                "image": f"{model}/{index}",
                "model": model,
                "prompt_id": first["Input.prompt_id"],
                "prompt": first["Input.caption"],
            }
            for one in _elements(rows):
                labels = json.dumps([int(label) for label in one.labels])
                cells = {"element": one.element, "question": one.question, "skill": one.skill}
                elements.append(named | cells | {"labels": labels})
            given = [int(cell) for cell in rows["Answer.task-quality"] if cell]
            fits.append(named | {"fits": json.dumps(given)})
    return {
        "elements.csv": pd.DataFrame(elements).to_csv(index=False, lineterminator="\n"),
        "fits.csv": pd.DataFrame(fits).to_csv(index=False, lineterminator="\n"),
    }


def _elements(rows: pd.DataFrame) -> Iterator[Element]:
    """Objects, then what the prompt says of them; raters who did not count give no label."""
    first = rows.iloc[0]
    caption = str(first["Input.caption"])
    rest = caption.removeprefix("a photo of ")
    objects = [k for k in (0, 1) if first[f"Input.object_{k}_name"]]
    counted = rows[(rows[[f"Answer.task-count-{k}" for k in objects]] != "").all(axis=1)]
    counts = {k: counted[f"Answer.task-count-{k}"].astype(float) for k in objects}
    for k in objects:
        name = str(first[f"Input.object_{k}_name"])
        yield Element(f"object-{k}", f"Is there {_a(name)}?", "object", (counts[k] >= 1).tolist())
        colour = re.search(rf"\b({_COLOURS}) {re.escape(name)}\b", rest)
        if colour:
            cells = counted[f"Answer.task-color-{k}"].str.split("|")
            named = [colour[1] in cell for cell in cells]
            yield Element(f"color-{k}", f"Is the {name} {colour[1]}?", "color", named)
    number = _NUMBERS.get(rest.split(" ")[0])
    if number:
        plural, word = first["Input.object_0_name_plural"], rest.split(" ")[0]
        yield Element(
            "count-0", f"Are there exactly {word} {plural}?", "counting",
            (counts[0] == number).tolist(),
        )  # fmt: skip
    position = _POSITION.search(rest)
    if position:
        subject, other = first["Input.object_1_name"], first["Input.object_0_name"]
        side = position[1].removesuffix(" of")
        given = counted[f"Answer.task-position-{_SIDES[position[1]]}"]
        yield Element(
            "position-0", f"Is the {subject} {position[1]} the {other}?", "position",
            (given == side).tolist(),
        )  # fmt: skip


def _a(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def make_geneval(
    data: Annotated[Path, typer.Option(help="Folder with the authors' files in geneval/.")],
    check: Annotated[bool, typer.Option("--check", help="Compare only.")] = False,
) -> None:
    """Write the labels of GenEval, or compare them with what stands."""
    for name, content in tables(data).items():
        place = BUILT_IN / "geneval" / name
        if not check:
            place.write_text(content, "utf-8")
        elif place.read_text("utf-8") != content:
            raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(make_geneval)
