"""A small copy of GenAI-Bench with 1600 prompts, in the released layout."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.families.card import FamilyCard
from benchmarks.genai_bench.protocol import GENAI_1600, GenAiBench
from tests.benchmarks.contract import Case, Damage
from tests.kit.checks import trial_card

N_PROMPTS = 4
SKILLS = tuple(GENAI_1600.card.skills)
MODELS = tuple(Path(file.path).stem for file in GENAI_1600.card.files if file.role == "images")
Json = Any
Change = Callable[[Json, Json], object]


def write(root: Path, first: int = 0, change: Change = lambda prompts, tags: None) -> Path:
    """Made-up content in the released layout; ids start at `first`."""
    prompts = {
        f"{first + k:05d}": {
            "id": str(first + k),
            "prompt": f"prompt {k}",
            "prompt in Chinese": "提示",
            "models": {model: [1 + k, 5, (k + n) % 5 + 1] for n, model in enumerate(MODELS)},
        }
        for k in range(N_PROMPTS)
    }
    tags = {skill: [first, first + 1] if skill == "basic" else [first + 1] for skill in SKILLS}
    change(prompts, tags)
    folder = root / "genai_1600"
    folder.mkdir()
    (folder / "genai_image.json").write_text(json.dumps(prompts), encoding="utf-8")
    (folder / "genai_skills.json").write_text(json.dumps(tags), encoding="utf-8")
    return root


COUNTS = {"prompts": N_PROMPTS, "images": 6 * N_PROMPTS}


def board(card: FamilyCard) -> GenAiBench:
    return GenAiBench(card, GENAI_1600.home)


def small() -> GenAiBench:
    return board(trial_card(GENAI_1600.card, **COUNTS))


def pack(folder: Path, without: str = "") -> None:
    for model in MODELS:
        with zipfile.ZipFile(folder / f"{model}.zip", "w") as archive:
            for k in range(N_PROMPTS):
                name = f"{model}/{k:05d}.jpeg"
                if name != without:
                    archive.writestr(name, name)


def record(value: Json) -> Change:
    return lambda prompts, tags: prompts.update({"00002": value})


def ratings(value: Json) -> Change:
    return lambda prompts, tags: prompts["00002"]["models"].update(SDXL_Base=value)


def tag(numbers: Json) -> Change:
    return lambda prompts, tags: tags.update(negation=numbers)


def changed(change: Change, *says: str) -> Damage:
    """A release with other prompts or tags."""
    return Damage(lambda root: write(root, change=change), says)


def no_json(root: Path) -> None:
    (write(root) / "genai_1600" / "genai_image.json").write_text("{", encoding="utf-8")


LOST = "SDXL_Base/00002.jpeg"
CASES = (
    Case(
        board=board,
        card=GENAI_1600.card,
        held=COUNTS,
        write=write,
        files=("genai_1600/genai_image.json", "genai_1600/genai_skills.json"),
        pair_ids=(f"00000/{MODELS[0]}", f"00000/{MODELS[1]}"),
        clusters=tuple(f"{k:05d}" for k in range(N_PROMPTS)),
        counts={"images": 24, "prompts": 4, "alignment: ratings": 72, "basic": 12, "counting": 6},
        draw=lambda root: pack(root / "genai_1600"),
        question=("00001/SDXL_Turbo", b"SDXL_Turbo/00001.jpeg", "prompt 1"),
        incomplete=Damage(
            lambda root: pack(write(root) / "genai_1600", LOST), ("1 of the 4", "SDXL_Base/00002")
        ),
        prompts=(
            ("00000", "prompt 0", "", "basic"),
            ("00001", "prompt 1", "", ";".join(SKILLS)),
            ("00002", "prompt 2", "", ""),
            ("00003", "prompt 3", "", ""),
        ),
        damages=(
            changed(lambda p, t: p.pop("00003"), "expected 4"),
            changed(lambda p, t: p.update(x=p.pop("00003")), "'x'"),
            changed(record([]), "'models'"),
            changed(record({"models": {"DALLE_3": [1, 2, 3]}}), "column text"),
            changed(ratings([1, 2, 3.5]), "'3.5'"),
            changed(ratings("one"), "'one'"),
            changed(tag(["one"]), "'one'"),
            changed(tag(1), "no list"),
            changed(tag([4]), "fit no row of prompts"),
            Damage(no_json, ("JSON",)),
        ),
    ),
)
