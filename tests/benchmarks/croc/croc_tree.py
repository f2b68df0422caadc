"""A small table of CROC_hum with its images, in the released layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.croc.protocol import CARD, CrocHum
from tests.benchmarks.contract import Case, Damage
from tests.kit.checks import trial_card

Table = pd.DataFrame
Change = Callable[[Table], Table]
TABLE = "croc_hum/croc_hum_metadata.tsv"
SD = "stable_diffusion_3_5_large_turbo"


def image(pair: str, side: str, k: int, model: str = "FLUX_1_schnell", end: str = "jpg") -> str:
    category = pair.rpartition("_")[0]
    return f"images/{category}/{side}/{pair}___{side}___{model}___image{k}.{end}"


ALONE = image("negation_1", "alt_contrast", 1)


def metadata() -> Table:
    """Three prompt pairs as the authors' table has them."""
    hands = ['A "hand" with only its index finger red.', "A hand with only its ring finger red."]
    pets = ["A dog and a cat.", "A dog and no cat."]
    of_hands = (
        image("body_parts_1", "prompt", 4, SD),
        image("body_parts_1", "prompt", 1, "gpt4", "png"),
    )
    of_pets = [[image("negation_1", side, 1)] for side in ("prompt", "contrast")]
    alone = [ALONE, image("negation_1", "alt_contrast", 2)]
    left = [image("spacial_relation_7", "prompt", 1)]
    names = ("id", "prompt", "contrast", "prompt_paths", "contrast_paths", "alt_contrast_paths")
    rows: list[list[Any]] = [
        ["body_parts_1", *hands, list(of_hands), [image("body_parts_1", "contrast", 1)], None],
        ["negation_1", *pets, *of_pets, alone],
        ["spacial_relation_7", pets[0], "A cat left of a dog.", left, [], None],
    ]
    return pd.DataFrame(rows, columns=names).assign(category_name="tolerated", num=1)


def write(folder: Path, table: Table) -> Path:
    (folder / TABLE).parent.mkdir()
    table.to_csv(folder / TABLE, sep="\t", index=False)
    return folder


def unpack(folder: Path, below: str, table: Table) -> None:
    """Every listed image, as after unpacking an archive whose root is `below`."""
    for column in ("prompt_paths", "contrast_paths", "alt_contrast_paths"):
        for path in (path for paths in table[column] for path in paths or []):
            place = folder / "croc_hum" / below / path.replace("images/", "")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.encode())


def benchmark(**counts: int) -> CrocHum:
    return CrocHum(trial_card(CARD, **counts))


def cell(column: str, value: object) -> Change:
    """Put a value into the second row (data row 2, negation_1)."""

    def change(table: Table) -> Table:
        values = table[column].astype(object).tolist()
        return table.assign(**{column: [values[0], value, values[2]]})

    return change


def with_two_of_negation(shared: list[str]) -> Table:
    """The table with a second prompt pair of negation that lists the same images of "A"."""
    records = metadata().to_dict("records")
    again = {
        "id": "negation_2",
        "contrast": "A dog without a cat.",
        "prompt_paths": [image("negation_2", "prompt", 1)],
        "alt_contrast_paths": shared,
    }
    return pd.DataFrame([*records, records[1] | again])


STEM = f"body_parts_1___prompt___{SD}___image4"


def table(change: Change, *says: str) -> Damage:
    """A release with another table."""
    return Damage(lambda data: write(data, change(metadata())), ("croc_hum_metadata.tsv", *says))


def listed(cells: str, says: str) -> Damage:
    """A list of images that cannot be read, in the second row."""

    def write_it(data: Path) -> None:
        place = write(data, cell("prompt_paths", cells)(metadata())) / TABLE
        # Rows are counted, not lines.
        place.write_text(place.read_text().replace("\n", "\n\n\n", 1))

    return Damage(write_it, (f"data row 2: 'negation_1' {says}",))


def shared(*images: str) -> Damage:
    """Images of a prompt pair that stand elsewhere already; three prompt pairs again."""
    return Damage(
        lambda data: write(data, with_two_of_negation(list(images)).drop(index=2)),
        ("'negation_2' lists", "before"),
    )


def incomplete(data: Path) -> None:
    unpack(write(data, metadata()), "", metadata())
    next((data / "croc_hum" / "negation" / "alt_contrast").iterdir()).unlink()


CASES = (
    Case(
        board=CrocHum,
        card=CARD,
        held={"prompt pairs": 3, "images": 7},
        write=lambda data: write(data, metadata()),
        files=(TABLE,),
        pair_ids=(f"{STEM}|orig", f"{STEM}|contrast"),
        clusters=("body_parts_1", "negation_1", "spacial_relation_7"),
        counts={
            "images": 7,
            "prompt pairs": 3,
            "unique prompts": 5,
            "body_parts: prompt pairs": 1,
            "negation: prompt pairs": 1,
            "spacial_relation: prompt pairs": 1,
            "flux: images": 5,
            "gpt: images": 1,
            "sd: images": 1,
        },
        draw=lambda data: unpack(data, "", metadata()),
        question=(
            f"{STEM}|contrast",
            image("body_parts_1", "prompt", 4, SD).encode(),
            metadata()["contrast"][0],
        ),
        incomplete=Damage(incomplete, ("1 of the 7",)),
        prompts=(
            ("body_parts_1|orig", metadata()["prompt"][0], "", "body_parts"),
            ("body_parts_1|contrast", metadata()["contrast"][0], "", "body_parts"),
            # Each text once.
            ("negation_1|orig", "A dog and a cat.", "", "negation;spacial_relation"),
            ("negation_1|contrast", "A dog and no cat.", "", "negation"),
            ("spacial_relation_7|contrast", "A cat left of a dog.", "", "spacial_relation"),
        ),
        damages=(
            table(
                lambda t: t.drop(columns=["contrast", "alt_contrast_paths"]),
                "contrast, alt_contrast",
            ),
            table(lambda t: t.iloc[:2], "expected 3"),
            table(cell("alt_contrast_paths", ["images/negation/alt/y.png"]), "expected 7"),
            table(cell("id", "numbers_1"), "row 2: 'numbers_1'"),
            table(cell("id", "body_parts_1"), "row 2: 'body_parts_1'"),
            table(cell("prompt", " "), "row 2: 'negation_1'"),
            listed("images/x.jpg", "has 'images/x.jpg'"),
            listed("[1, 2]", "has '[1, 2]'"),
            listed("('a.jpg',)", "has \"('a.jpg',)\""),
            listed("__import__('os').getcwd()", 'has "__import__'),
            listed("[" * 5000, "has '[[["),
            listed("['" + "x" * (1 << 20) + "']", "has \"['xxx"),
            listed("{[]: 1}", "has '{[]: 1}'"),
            listed("1if 2", "has '1if 2'"),
            listed(r"['x\\d.jpg']", "has a backslash"),
            listed(r"['x\0.jpg']", "has a backslash"),
            listed("['x\x01y.jpg']", "lists 'x\\x01y.jpg'"),
            listed("['C:/x/a.jpg']", "lists 'C:/x/a.jpg'"),
            listed("['a', 'images/../../b.jpg']", "lists '../../b.jpg'"),
            listed("['/a/b.jpg']", "lists '/a/b.jpg'"),
            listed("['a.jpg', 'a.jpg']", "lists 'a.jpg'"),
            listed("['x/a.jpg', 'y/a.png']", "lists 'y/a.png'"),
            shared(ALONE, ALONE),
            shared(ALONE.replace("negation/", "elsewhere/")),
            shared(image("negation_1", "prompt", 1)),
            shared(image("body_parts_1", "contrast", 1)),
        ),
    ),
)
