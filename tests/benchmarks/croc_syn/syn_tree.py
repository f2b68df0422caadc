"""Small sets in the layout of CROC_syn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.croc_syn.load import CrocSynAnswers
from benchmarks.croc_syn.protocol import CARD, CrocSyn
from benchmarks.schema import ScoreTable
from tests.benchmarks.contract import Case, Damage
from tests.kit.checks import trial_card

FILES = [(image, text) for image in ("flux", "sd") for text in ("ds", "qwen")]
PV = "subject_property|||Wild_Animals|||Red"
EV = "entity_variation|||Portraits|||Ada|||Grace"
EP = "entity_placement|||Groups|||Choir"
PROMPTS = "croc_syn/3_extracted_prompts_{}_{}.jsonl"
"""Prompt file of an image model and a text model."""


def line(prompt_id: str, prompts: list[str], contrasts: list[str] | None = None) -> str:
    """One line of a prompt file, with the fields the authors write."""
    mode, subject, *rest = prompt_id.split("|||")
    record = {
        "mode": mode,
        "subject": subject.replace("_", " "),
        "property": rest[0].replace("_", " ") if mode == "subject_property" and rest else None,
        "alt_subject": None,
        "entity": None,
        "prompts": prompts,
        "contrast_prompts": contrasts or [f"not {p}" if p else "" for p in prompts],
        "model_name": "any",
        "prompt_id": prompt_id,
    }
    return json.dumps(record)


def write(folder: Path, lines: Mapping[tuple[str, str], Iterable[str]]) -> Path:
    """The four prompt files; those that are not named are empty."""
    (folder / "croc_syn").mkdir(exist_ok=True)
    for image, text in FILES:
        path = folder / PROMPTS.format(image, text)
        path.write_text("".join(f"{entry}\n" for entry in lines.get((image, text), ())))
    return folder


def same_everywhere(*lines: str) -> dict[tuple[str, str], list[str]]:
    return {models: list(lines) for models in FILES}


def benchmark(n_images: int = 5) -> CrocSyn:
    return CrocSyn(trial_card(CARD, **{"images per prompt": n_images}))


def load(folder: Path, n_images: int = 5) -> CrocSynAnswers:
    return benchmark(n_images).answers(folder)


def table_of(answers: CrocSynAnswers, **metrics: np.ndarray) -> ScoreTable:
    """Scores of shape (prompts, 2 sides, K images, 2 texts), one per metric."""
    columns = {name: values.reshape(-1) for name, values in metrics.items()}
    return ScoreTable(pd.DataFrame(columns, index=list(answers.pair_ids), dtype=np.float64))


def images(folder: Path, without: str = "") -> None:
    """Two images of each side of the one prompt pair of every file, that hold their own names."""
    for image, text in FILES:
        for side, word in (("prompts", "prompt"), ("contrast_prompts", "contrast")):
            for k in range(2):
                name = f"{image}/{text}/{side}/{PV.replace('|||', '_____')}_{word}_0_image_{k}"
                place = folder / "croc_syn" / "images" / f"{name}.png"
                place.parent.mkdir(parents=True, exist_ok=True)
                if name != without:
                    place.write_bytes(name.encode())


FIRST = f"flux/ds/prompts/{PV.replace('|||', '_____')}_prompt_0_image_0"
WHOLE = same_everywhere(line(PV, ["a red fox"], ["a blue fox"]))
GOOD, ONE = line(PV, ["a fox"]), line(EV, ["a"])


def third_line(bad: str, *says: str) -> Damage:
    """A prompt file whose third line is bad; its second is blank."""
    lines = {("flux", "qwen"): [GOOD, "", bad]}
    return Damage(lambda folder: write(folder, lines), ("flux_qwen.jsonl line 3", *says))


CASES = (
    Case(
        board=CrocSyn,
        card=CARD,
        held={},
        settings={"images per prompt": 2},
        write=lambda folder: write(folder, WHOLE),
        files=tuple(PROMPTS.format(*models) for models in FILES),
        pair_ids=(f"{FIRST}|orig", f"{FIRST}|contrast"),
        clusters=(),
        counts={"images": 16, "prompt pairs times image models": 4},
        draw=images,
        question=(f"{FIRST}|contrast", FIRST.encode(), "a blue fox"),
        incomplete=Damage(
            lambda folder: images(write(folder, WHOLE), FIRST), ("1 of the 16", FIRST)
        ),
        prompts=((f"flux/ds/{PV}/0|orig", "a red fox", "subject_property", "Color"),),
        damages=(
            third_line("{", "JSON"),
            third_line("[" * 100_000, "JSON"),
            third_line('{"mode": "a", "mode": "b"}', "'mode'"),
            third_line(GOOD.replace("a fox", r"\ud800"), "half of"),
            third_line("[1]", "JSON object"),
            third_line(GOOD, "prompt_id"),
            third_line('{"mode": "subject_property"}', "prompt_id"),
            third_line(ONE.replace('["a"]', '"a"', 1), "a str as"),
            third_line(ONE.replace('["a"]', "[1]", 1), "in prompts"),
            third_line(line(EV, ["a"], ["b", "c"]), "2 contrast_prompts"),
            third_line(line("unheard_of|||x", ["a"]), "'unheard_of'"),
            third_line(ONE.replace(EV, EP), "expected entity_variation"),
            third_line(line(f"{EV}/..", ["a"]), "slash"),
            third_line(line("subject_property|||Flora", ["a"]), "taxonomy"),
            third_line(line("subject_property|||Flora|||Turquoise", ["a"]), "taxonomy"),
        ),
    ),
)
