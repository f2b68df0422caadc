"""A small copy of Gecko2K in the real layout, with made-up ratings."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.gecko.load import COLUMNS, MODELS
from benchmarks.gecko.protocol import CARD, Gecko
from tests.kit.checks import trial_card

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
