"""What the accounts of a trial send: of every kind, of good will and of ill."""

from __future__ import annotations

import math
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmarks.registry import load_registry
from evaluator.bundled import FOLDER
from evaluator.demo.simulated_models import write_generations
from tests.end_to_end.trial.ground import Ground
from tests.hostile.attempts import ATTEMPTS, scorer_of
from tests.hostile.corpus.texts import behaving_after, scoring
from tests.hostile.decoys import Decoys

SECRET_NAME = "unheard-of-metric"
"""Of the private metric: nowhere in public before it is published."""
MODEL = "demo-beta"
OPEN_TO_CODE = ("demo_croc", "demo_evalmuse", "demo_gecko", "demo_ts2")
ON: Mapping[str, tuple[str, ...]] = {
    "ada": OPEN_TO_CODE,
    "bob": OPEN_TO_CODE,
    "fay": OPEN_TO_CODE,
    "dee": ("demo_gecko", "demo_ts2"),
    "mal": ("demo_ts2",),
    "cyd": ("demo_evalmuse",),
}
"""Account to the benchmarks on which its metric ends up."""
NAMES = {
    "ada": "careful-reader",
    "bob": "two-colours",
    "cyd": "wave",
    "dee": SECRET_NAME,
    "fay": "counting-house",
    "mal": "burglar",
}
"""Account to its metric's name."""

_TOO_LARGE = (1 << 30) + 1


def write_all(ground: Ground, decoys: Decoys) -> None:
    """Lay out what is sent, each in a folder or file of its account's name."""
    sent = ground.sent
    for account, kind in (("ada", "plain"), ("bob", "dual-encoder"), ("dee", "plain")):
        ground.evaluator("init", kind, sent / account, "--name", NAMES[account], user=account)
        limit_to(sent / account, ON[account])
    # Slow enough to be met in the middle, and of the same scores.
    _changed(
        sent / "ada" / "scorer.py",
        "found = [_colour",
        "time.sleep(0.006)\n        found = [_colour",
    )
    _changed(sent / "ada" / "scorer.py", "import numpy as np", "import time\n\nimport numpy as np")
    # An unchanged template would judge no models.
    with (sent / "bob" / "scorer.py").open("a") as source:
        source.write("\n# Bob's own.\n")
    # Nobody else's scores, or it would be flagged as a copy.
    _changed(sent / "dee" / "scorer.py", "NEAR = 60.0", "NEAR = 45.0")
    _counting_house(sent / "fay")
    wave().to_csv(sent / "cyd.csv", index=False)
    write_generations(MODEL, sent / "eve")
    _module(sent / "mal", NAMES["mal"], decoys.fill(scorer_of(ATTEMPTS)), ON["mal"])
    _module(sent / "kit", "stumbler", scoring(_STUMBLES), ("demo_ts2",))
    _module(sent / "hugo", "glutton", behaving_after("held = bytearray(9 << 30)"), ("demo_ts2",))
    _module(sent / "lea", "giant", scoring(), ("demo_ts2",))
    with (sent / "lea" / "weights.safetensors").open("wb") as file:
        file.truncate(_TOO_LARGE)  # a hole: no byte of it is on the disk
    _climbing(sent / "ned.zip")
    ground.own(sent)


def wave() -> pd.DataFrame:
    """The scores of cyd's file."""
    benchmark = load_registry()["demo_evalmuse"]
    pairs = benchmark.answers(None).pair_ids
    scores = [math.sin(3.7 * n) for n in range(len(pairs))]
    return pd.DataFrame({"pair_id": pairs, NAMES["cyd"]: scores})


_STUMBLES = """
if len(prompts) > 3:
    raise ValueError("no more than three at a time")
return [0.5 for _ in prompts]
"""


def limit_to(folder: Path, benchmarks: tuple[str, ...]) -> None:
    """Say in the manifest what it is to be run on."""
    wanted = ", ".join(f'"{name}"' for name in benchmarks)
    _changed(folder / "assay.toml", "benchmarks = []", f"benchmarks = [{wanted}]")


def _changed(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, f"{old} is {text.count(old)} times in {file}"
    file.write_text(text.replace(old, new))


def _module(folder: Path, name: str, source: str, benchmarks: tuple[str, ...]) -> None:
    folder.mkdir()
    wanted = ", ".join(f'"{one}"' for one in benchmarks)
    (folder / "assay.toml").write_text(f'name = "{name}"\nbenchmarks = [{wanted}]\n')
    (folder / "scorer.py").write_text(source)


def _counting_house(folder: Path) -> None:
    """One of the bundled scorers under a name of its own, with element scores; sent as a zip."""

    shutil.copytree(
        FOLDER / "colour_count_reader", folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    _changed(folder / "assay.toml", '"colour-count-reader"', f'"{NAMES["fay"]}"')
    _changed(folder / "scorer.py", "SMALLEST = 0.0007", "SMALLEST = 0.0009")
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)


def _climbing(path: Path) -> None:
    """An archive that would write beside the folder it is unpacked to."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("assay.toml", 'name = "climber"')
        archive.writestr("scorer.py", scoring())
        archive.writestr("../../climbed.py", "print('outside')")
