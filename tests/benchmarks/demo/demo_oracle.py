"""A metric that knows the truth, for tests only: its score is minus the number of known errors."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd

from benchmarks.schema import Answers, ScoreTable
from tools.demo_split import croc as croc_split
from tools.demo_split import evalmuse as evalmuse_split
from tools.demo_split import gecko as gecko_split
from tools.demo_split import ts2 as ts2_split
from tools.demo_split.scenes import aspects


def known_errors(benchmark: str) -> dict[str, int]:
    """Every pair_id of a demo benchmark with the number of errors in it."""
    return {
        "demo_croc": _croc,
        "demo_ts2": _ts2,
        "demo_evalmuse": _evalmuse,
        "demo_gecko": _gecko,
    }[benchmark]()


def scores_of(benchmark: str, answers: Answers) -> ScoreTable:
    """The oracle, a constant and a metric that guesses, on one demo benchmark."""
    errors = known_errors(benchmark)
    guess = random.Random("a metric that guesses")
    overall = pd.DataFrame(
        {
            "oracle": [-float(errors[pair]) for pair in answers.pair_ids],
            "constant": 0.5,
            "guess": [guess.random() for _ in answers.pair_ids],
        },
        index=pd.Index(answers.pair_ids, name="pair_id"),
        dtype=np.float64,
    )
    if benchmark != "demo_evalmuse":
        return ScoreTable(overall)
    return ScoreTable(overall, elements={"oracle": _element_scores()})


def _croc() -> dict[str, int]:
    found = {}
    for contrast in croc_split.contrasts():
        for stem, side in contrast.images:
            found[f"{stem}|orig"] = int(side == "contrast")
            found[f"{stem}|contrast"] = int(side == "prompt")
    return found


def _ts2() -> dict[str, int]:
    return {shot.stem: shot.level for graph in ts2_split.graphs() for shot in graph.shots}


def _evalmuse() -> dict[str, int]:
    return {shot.path: shot.depiction.errors for shot in evalmuse_split.shots()}


def _gecko() -> dict[str, int]:
    return {
        f"{p.id}/{model}": depiction.errors
        for p in gecko_split.prompts()
        for model, depiction in gecko_split.depictions(p.id).items()
    }


def _element_scores() -> pd.DataFrame:
    rows = [
        (shot.path, shot.prompt.element_id(a), float(a.id not in shot.depiction.wrong))
        for shot in evalmuse_split.shots()
        for a in aspects(shot.prompt.scene)
    ]
    return pd.DataFrame(rows, columns=["pair_id", "element_id", "score"])
