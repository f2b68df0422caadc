"""A small table of questions about the structure of images, as an operator supplies it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from benchmarks.evalmuse_structure.load import LABELS
from benchmarks.evalmuse_structure.protocol import CARD, EvalMuseStructure
from tests.benchmarks.contract import Case, Damage

ROWS = [
    ("SDXL/00805.png", "human_body", "category", "yes", "00805"),
    ("SDXL/00805.png", "palm_deformed", "problem", "yes", "00805"),
    ("SDXL/00805.png", "limb_missing_extra", "problem", "yes", "00805"),
    ("SDXL/00805.png", "animal", "category", "no", "00805"),
    ("Kolors/02210.png", "animal", "category", "yes", "02210"),
    ("Kolors/02210.png", "animal", "problem", "yes", "02210"),
    ("Kolors/02210_1.png", "object", "category", "no", "02210"),
]
RELEASED = pd.DataFrame(ROWS, columns=["img_path", "label", "kind", "answer", "prompt_id"])
IMAGES = "evalmuse_structure/images"


def write(root: Path, table: pd.DataFrame = RELEASED, images: str = "") -> Path:
    (root / "evalmuse_structure").mkdir(exist_ok=True)
    table.to_csv(root / "evalmuse_structure" / "structure.csv", index=False)
    for name in table["img_path"].unique() if images else ():
        place = root / images / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(name.encode())
    return root


def cell(row: int, column: str, value: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """The table with one other cell."""
    return lambda t: t.assign(**{column: t[column].mask(t.index == row, value)})


def table(mistake: Callable[[pd.DataFrame], pd.DataFrame], *says: str) -> Damage:
    """A release with another table."""
    return Damage(lambda root: write(root, mistake(RELEASED)), ("structure.csv", *says))


def without_an_image(root: Path) -> None:
    (write(root, images=IMAGES) / IMAGES / "SDXL/00805.png").unlink()


ASKED = "Does this generated image have any structural problems? Specifically, {}? Please answer yes or no only."

CASES = (
    Case(
        board=EvalMuseStructure,
        card=CARD,
        held={"images": 3, "questions": 6},
        write=write,
        files=("evalmuse_structure/structure.csv",),
        pair_ids=(
            "SDXL/00805.png|human_body",
            "SDXL/00805.png|palm_deformed",
            "SDXL/00805.png|limb_missing_extra",
            "SDXL/00805.png|animal",
            "Kolors/02210.png|animal",
            "Kolors/02210_1.png|object",
        ),
        clusters=("00805", "02210"),
        counts={
            "images": 3,
            "clusters": 2,
            "category questions": 4,
            "annotated problems": 3,
            "animal: yes": 1,
            "animal: no": 1,
            "object: yes": 0,
            "object: no": 1,
            "human: yes": 1,
            "human: no": 0,
        },
        draw=lambda root: write(root, images=IMAGES),
        question=(
            "Kolors/02210_1.png|object",
            b"Kolors/02210_1.png",
            ASKED.format(LABELS["object"].cls_prompt),
        ),
        incomplete=Damage(without_an_image, ("1 of the 3", "SDXL/00805.png")),
        damages=(
            table(lambda t: t.drop(columns=["kind", "answer"]), "kind, answer"),
            table(lambda t: t.iloc[:0], "no rows"),
            table(cell(0, "kind", "catgory"), "'catgory'"),
            table(cell(1, "label", "palm"), "animal, object, face_missing"),
            table(cell(1, "kind", "category"), "animal, object, human_body"),
            table(cell(0, "label", "palm_deformed"), "'palm_deformed'"),
            table(
                cell(3, "answer", "maybe"), "'maybe' in column answer (data row 4; 1 such cells)"
            ),
            table(cell(3, "answer", "No"), "'No'"),
            table(cell(1, "answer", "no"), "if annotated"),
            table(cell(4, "answer", "no"), "problem annotated"),
            table(cell(2, "label", "palm_deformed"), "once per"),
            table(cell(0, "img_path", ""), "below images/"),
            table(cell(0, "img_path", "../x.png"), "below images/"),
            table(cell(0, "img_path", "/etc/x.png"), "below images/"),
            table(cell(0, "img_path", "a|b.png"), "the sign |"),
            table(cell(0, "prompt_id", ""), "every row"),
            table(cell(1, "prompt_id", "00806"), "one prompt"),
            table(lambda t: t.assign(cls_prompt=[str(n) for n in range(len(t))]), "per label"),
            table(lambda t: t.assign(cls_prompt="x" * 501), "500"),
        ),
    ),
)
