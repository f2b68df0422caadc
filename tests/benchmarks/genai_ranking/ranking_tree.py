"""A small copy of the ranking set of GenAI-Bench, in the released layout."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.families.card import FamilyCard
from benchmarks.genai_ranking.protocol import GENAI_RANKING, GenAiRanking
from tests.benchmarks.contract import Case, Damage
from tests.kit.checks import trial_card

Json = Any
Change = Callable[[Json, Json], object]
PROMPTS = ("7", "12", "305")
MODELS = ("DALLE_3", "SDXL_Base")
SKILLS = tuple(GENAI_RANKING.card.skills)


COUNTS = {"prompts": 3, "images": 54}


def board(card: FamilyCard) -> GenAiRanking:
    return GenAiRanking(card, GENAI_RANKING.home)


def small() -> GenAiRanking:
    return board(trial_card(GENAI_RANKING.card, **COUNTS))


def write(root: Path, change: Change = lambda prompts, tags: None) -> Path:
    prompts = {
        key: {
            "id": key,
            "prompt": f"prompt {key}",
            "models": {
                model: {str(k): [1 + (k * (p + 2) + m) % 5, 3, 4] for k in range(1, 10)}
                for m, model in enumerate(MODELS)
            },
        }
        for p, key in enumerate(PROMPTS)
    }
    tags: Json = {skill: [12] for skill in SKILLS} | {"basic": [7, 305, 1500], "more": []}
    change(prompts, tags)
    folder = root / "genai_ranking"
    folder.mkdir()
    (folder / "human_rating.json").write_text(json.dumps(prompts), encoding="utf-8")
    (folder / "genai_skills.json").write_text(json.dumps(tags), encoding="utf-8")
    return root


def ninth(ratings: Json, image: str = "9") -> Change:
    return lambda prompts, tags: prompts["12"]["models"]["DALLE_3"].update({image: ratings})


def pack(root: Path, without: str = "") -> None:
    """The archives of both models; an image holds its own name."""
    for model in MODELS:
        with zipfile.ZipFile(root / "genai_ranking" / f"{model}.zip", "w") as archive:
            for key, k in product(PROMPTS, range(1, 10)):
                name = f"{model}/{int(key):05d}_{k:02d}.jpeg"
                if name != without:
                    archive.writestr(name, name)


def changed(change: Change, *says: str) -> Damage:
    """A release with other ratings."""
    return Damage(lambda root: write(root, change), says)


LOST = "SDXL_Base/00012_03.jpeg"
CASES = (
    Case(
        board=board,
        card=GENAI_RANKING.card,
        held=COUNTS,
        write=write,
        files=("genai_ranking/human_rating.json", "genai_ranking/genai_skills.json"),
        pair_ids=("7/DALLE_3/1", "7/DALLE_3/2"),
        clusters=PROMPTS,
        counts=COUNTS,
        draw=pack,
        question=("12/SDXL_Base/3", LOST.encode(), "prompt 12"),
        incomplete=Damage(lambda root: pack(write(root), LOST), ("1 of the 27", LOST)),
        prompts=(("7", "prompt 7", "", "basic"),),
        damages=(
            changed(lambda p, t: p.pop("7"), "expected 3"),
            changed(
                lambda p, t: p["12"]["models"].update(SD3=p["12"]["models"].pop("SDXL_Base")),
                "'SD3'",
            ),
            changed(lambda p, t: p["12"]["models"]["DALLE_3"].pop("9"), "images 1 to 9"),
            changed(lambda p, t: p["12"]["models"]["DALLE_3"].update({"1": 0, "x": [1]}), "'x'"),
            changed(lambda p, t: p["12"]["models"].update(DALLE_3=[1]), "no object"),
            changed(ninth(["five"]), "'five'", "whole number"),
            changed(ninth([10**400]), "'12' 'models' 'DALLE_3' '9' [0]", "finite"),
            changed(lambda p, t: p.update(x=p.pop("12")), "'x'"),
        ),
    ),
)
