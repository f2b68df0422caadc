"""A small copy of Gecko2K in the real layout, with made-up ratings."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.gecko.load import COLUMNS, MODELS
from benchmarks.gecko.protocol import CARD, Gecko
from tests.benchmarks.contract import Case, Damage
from tests.kit.checks import trial_card

Change = Callable[[pd.DataFrame], pd.DataFrame]
OTHER_FLAG = "v1_max_disagreement_less_0.45"
FLAG = "max_disagreement_less_0.5"
S_IDS = ("att/color:stroop", "rel/action:action_rev/2", "ne/landmarks:landmarks")
R_IDS = ("tifa_12", "localized_narratives_3")
N_PROMPTS = 20
VALUES = {
    "WL": ["aligned", "not_aligned", "unsure"],
    "DSGH": ["yes", "no", "invalid", "unsure"],
    "Likert": ["1", "2", "3", "4", "5", "unsure"],
    "SxS": ["a", "b", "unsure"],
}
UNITS = {"WL": ("two", "cups"), "DSGH": ("Are there cups?",), "Likert": ("",)}


def gecko(n_prompts: int = N_PROMPTS) -> Gecko:
    """The benchmark with nothing pinned."""
    return Gecko(trial_card(CARD, **{"released prompts": n_prompts}))


def prompts_table(n_prompts: int = N_PROMPTS) -> pd.DataFrame:
    """Every third prompt is of Gecko(R); every fourth is not reliable."""
    kinds = [("Gecko(R)" if i % 3 == 2 else "Gecko(S)", i) for i in range(n_prompts)]
    return pd.DataFrame(
        {
            "": range(n_prompts),
            "dataset_id": [
                R_IDS[i % 2] if kind == "Gecko(R)" else S_IDS[i % 3 + i // 3 % 2]
                for kind, i in kinds
            ],
            "prompt": [f"two cups, {i}" for i in range(n_prompts)],
            "prompt_type": [kind for kind, _ in kinds],
            "prompt_id": range(n_prompts),
            FLAG: [i % 4 != 3 for i in range(n_prompts)],
            "v1_max_disagreement_less_0.45": False,
        }
    )


def ratings_table(n_prompts: int = N_PROMPTS, seed: int = 0) -> pd.DataFrame:
    """Three raters, all models, all templates."""
    rng = np.random.default_rng(seed)
    rows = []
    for prompt in range(n_prompts):
        for rater in ("r1", "r2", "r3"):
            for model in MODELS:
                for template, units in UNITS.items():
                    for i, text in enumerate(units):
                        value = str(rng.choice(VALUES[template]))
                        rows.append((template, prompt, model, "", rater, i, text, value))
            for a, b in combinations(MODELS, 2):
                rows.append(("SxS", prompt, a, b, rater, 0, "", str(rng.choice(VALUES["SxS"]))))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(str)


def write_tree(
    root: Path, prompts: pd.DataFrame | None = None, ratings: pd.DataFrame | None = None
) -> Path:
    """`gecko/prompts.csv` and `gecko/ratings.csv` below `root`."""
    folder = root / "gecko"
    folder.mkdir(exist_ok=True)
    (prompts_table() if prompts is None else prompts).to_csv(folder / "prompts.csv", index=False)
    (ratings_table() if ratings is None else ratings).to_csv(folder / "ratings.csv", index=False)
    return root


def draw(root: Path, without: str = "") -> None:
    """An image of each prompt by each model, PNG and JPEG in turn, that holds its pair id."""
    pairs = [f"{prompt}/{model}" for prompt in range(N_PROMPTS) for model in MODELS]
    for number, pair in enumerate(pairs):
        place = root / "gecko" / "images" / f"{pair}{('.png', '.jpg')[number % 2]}"
        place.parent.mkdir(parents=True, exist_ok=True)
        if pair != without:
            place.write_bytes(pair.encode())


def prompts(change: Change, *says: str) -> Damage:
    """A release with another table of prompts."""
    return Damage(lambda root: write_tree(root, change(prompts_table())), ("prompts.csv", *says))


def ratings(change: Change, *says: str) -> Damage:
    """A release with another table of ratings."""
    return Damage(lambda root: write_tree(root, ratings=change(ratings_table())), says)


def cell(column: str, value: str, template: str = "WL") -> Change:
    """Another value in one cell of the first row of a template."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        changed = table.copy()
        changed.loc[changed.index[changed["template"] == template][0], column] = value
        return changed

    return change


def twice(template: str, **cells: str) -> Change:
    """The first row of a template once more at the end, with some cells changed."""
    return lambda t: pd.concat([t, t[t["template"] == template].iloc[:1].assign(**cells)])


CASES = (
    Case(
        board=Gecko,
        card=CARD,
        held={"released prompts": N_PROMPTS},
        write=write_tree,
        files=("gecko/prompts.csv", "gecko/ratings.csv"),
        pair_ids=("0/Imagen", "0/Muse", "0/SDXL", "0/SD1.5", "1/Imagen"),
        clusters=tuple(map(str, range(N_PROMPTS))),
        counts={
            "images": 80,
            "s: prompts": 14,
            "r: prompts": 6,
            "tifa: prompts of this source": 3,
            "SxS: ratings": N_PROMPTS * 6 * 3,
            "reliable prompts (from the released flag)": 15,
        },
        draw=draw,
        question=("3/SD1.5", b"3/SD1.5", "two cups, 3"),
        incomplete=Damage(
            lambda root: draw(write_tree(root), "0/Imagen"), ("1 of the 80", "'0/Imagen.png'")
        ),
        prompts=(
            ("0", "two cups, 0", "s", "color;color:stroop"),
            ("1", "two cups, 1", "s", "action;action:action_rev/2"),
            ("2", "two cups, 2", "r", ""),
        ),
        damages=(
            prompts(lambda t: t.drop(columns=["prompt", "prompt_id"]), "prompt, prompt_id"),
            prompts(lambda t: t.iloc[:-1], "19", "20"),
            prompts(lambda t: t.assign(prompt_type="Gecko"), "'Gecko'", "prompt_type", "row 1"),
            prompts(
                lambda t: t.replace("att/color:stroop", "att/color"), "'att/color'", "dataset_id"
            ),
            prompts(lambda t: t.replace("tifa_12", "tifa"), "'tifa'", "dataset_id", "row 3"),
            prompts(lambda t: t.assign(prompt_id=7), "'7'", "row 2"),
            prompts(lambda t: t.assign(prompt_id="x"), "'x'", "prompt_id"),
            prompts(lambda t: t.assign(**{FLAG: 1}), "'1'", FLAG, "row 1"),
            prompts(lambda t: t.assign(**{OTHER_FLAG: "no"}), "'no'", OTHER_FLAG),
            ratings(lambda t: t.drop(columns="rater_id"), "rater_id"),
            ratings(lambda t: t.iloc[:0], "no rating"),
            ratings(cell("template", "wl"), "'wl'", "template", "row 1;", "1 such"),
            ratings(cell("prompt_id", "99"), "'99'", "prompt_id", "row 1;"),
            ratings(cell("model", "DALL-E"), "'DALL-E'", "column model ", "row 1;"),
            ratings(cell("model_b", "Muse"), "'Muse'", "model_b", "row 1;"),
            ratings(cell("model_b", "", "SxS"), "''", "model_b", "row 17;"),
            ratings(cell("model_b", "Imagen", "SxS"), "'Imagen'", "model_b", "row 17;"),
            ratings(cell("rater_id", " "), "' '", "rater_id"),
            ratings(cell("unit_index", "-1"), "'-1'", "unit_index"),
            ratings(cell("unit_index", "1.0"), "'1.0'", "unit_index"),
            ratings(cell("unit_index", "1", "Likert"), "'1'", "unit_index", "row 4;"),
            ratings(cell("value", "yes"), "'yes'", "column value", "row 1;", "expected aligned"),
            ratings(cell("value", "6", "Likert"), "'6'", "column value", "row 4;"),
            ratings(cell("value", "Unsure", "SxS"), "a | b | unsure"),
            ratings(cell("unit_text", "three"), "another text"),
            ratings(twice("Likert"), "'r1'", "Likert", "prompt 0", "Imagen"),
            ratings(twice("Likert", value="unsure"), "row 4"),
            ratings(twice("SxS", model="Muse", model_b="Imagen"), "way round"),
        ),
    ),
)
