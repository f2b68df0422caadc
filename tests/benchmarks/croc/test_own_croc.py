"""Somebody's own data in the layouts of CROC become boards by a card alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomlkit

from benchmarks.__main__ import main
from benchmarks.croc.measures import scale
from benchmarks.croc.protocol import CrocHum, card_text
from benchmarks.croc_syn import protocol as own_syn
from benchmarks.croc_syn.protocol import CARD as SYN
from benchmarks.registry import load_registry
from benchmarks.schema import ScoreTable
from tests.benchmarks.croc_syn.syn_tree import EV, PV, line
from tests.kit.checks import Command
from tests.kit.refusals import refused

TABLE = "croc_hum_metadata.tsv"
SKILLS = {"cup": "Cups", "cup_colour": "Colours of cups"}


def image(pair: str, side: str, k: int) -> str:
    category = pair.rpartition("_")[0]
    return f"images/{category}/{side}/{pair}___{side}___toy___image{k}.png"


def own(folder: Path, **keys: object) -> Path:
    """A benchmark of two categories, of which one name begins the other, with images."""
    told = {"summary": "Cups.", "description": "Cups.", "revision": "1"}
    card = tomlkit.parse(card_text("my_cups", "My cups", SKILLS, **told)).unwrap()
    folder.mkdir()
    (folder / "card.toml").write_text(tomlkit.dumps(card | keys))
    rows = []
    for pair in ("cup_1", "cup_colour_1"):
        sides = {side: [image(pair, side, k) for k in (1, 2)] for side in ("prompt", "contrast")}
        rows.append([pair, f"{pair}, a cup", f"{pair}, no cup", *sides.values(), None])
        for path in (path for paths in sides.values() for path in paths):
            place = folder / path.removeprefix("images/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.encode())
    names = ["id", "prompt", "contrast", "prompt_paths", "contrast_paths", "alt_contrast_paths"]
    pd.DataFrame(rows, columns=names).to_csv(folder / TABLE, sep="\t", index=False)
    return folder


@pytest.mark.parametrize("data", [False, True])
def test_a_card_beside_a_table_is_a_board_of_its_own_categories(tmp_path: Path, data: bool) -> None:
    place = own(tmp_path / "boards")
    found = load_registry(cards=[str(place)])["my_cups"]
    assert isinstance(found, CrocHum)
    at = tmp_path if data else None  # a folder with the data of other benchmarks
    answers = found.answers(at)
    assert [pair.category for pair in answers.prompt_pairs] == ["cup", "cup_colour"]
    assert found.has_questions(at)
    questions = found.questions(at)
    assert [pair.pair_id for pair in questions.pairs] == list(answers.pair_ids)
    first = questions.pairs[0]
    assert questions.images[first.image_id]() == image("cup_1", "prompt", 1).encode()
    scores = np.arange(len(answers.pair_ids), dtype=float)
    table = ScoreTable(pd.DataFrame({"m": scores}, index=list(answers.pair_ids)))
    rows = found.evaluate(table, answers, 10).rows
    assert {row.skill for row in rows} == {None, *SKILLS}
    assert {row.benchmark for row in rows} == {"my_cups"}
    assert list(found.prompts(at)["skills"]) == ["cup"] * 2 + ["cup_colour"] * 2


def test_an_own_set_in_the_layout_of_croc_syn_is_a_board_too(tmp_path: Path) -> None:
    files = [
        {"path": file.path, "role": file.role, "beside": True, "supplied": "Here."}
        | ({"folder": True} if file.folder else {})
        for file in SYN.files
    ]
    card = SYN.model_dump(exclude={"measures", "files", "counts"}, exclude_none=True)
    card |= {"name": "my_syn", "files": files, "counts": {"images per prompt": 2}}
    (tmp_path / "card.toml").write_text(tomlkit.dumps(card))
    for number, file in enumerate(file for file in SYN.files if not file.folder):
        text = line(PV, ["A red cat."]) if number == 0 else ""
        (tmp_path / Path(file.path).name).write_text(text)
    answers = load_registry(cards=[str(tmp_path)])["my_syn"].answers(None)
    assert len(answers.pair_ids) == 2 * 2 * 2


def syn_card(folder: Path, *names: str, images: int = 1) -> Path:
    """A card of prompt files of these names, with two skills."""
    here = {"beside": True, "supplied": "Here."}
    files = [{"path": f"my_syn/{name}", "role": "answers", **here} for name in names]
    files += [
        {"path": f"my_syn/images{k}", "role": "images", "folder": True, **here}
        for k in range(images)
    ]
    card = SYN.model_dump(exclude={"measures", "files", "counts", "skills"}, exclude_none=True)
    card |= {"name": "my_syn", "files": files, "counts": {"images per prompt": 3}}
    (folder / "card.toml").write_text(
        tomlkit.dumps(card | {"skills": {"Hue": "Hues", "Size": "Sizes"}})
    )
    return folder


def test_an_own_set_has_any_models_skills_and_number_of_images(tmp_path: Path) -> None:
    name = "3_extracted_prompts_toy-2_my-llm.jsonl"
    own = line("subject_property|||Cups|||Teal", ["A teal cup.", "A cup of teal."])
    (tmp_path / name).write_text(own.replace("{", '{"skill": "Hue", ', 1))
    found = load_registry(cards=[str(syn_card(tmp_path, name))])["my_syn"]
    answers = found.answers(None)
    right = np.array([[[2, 1], [1, 3], [1, 3]], [[1, 2], [3, 1], [3, 1]]], float)
    scores = np.stack([right[:, [0] * 3], np.zeros_like(right)])
    table = ScoreTable(pd.DataFrame({"m": scores.ravel()}, index=list(answers.pair_ids)))
    rows = {
        (row.measure, row.split, row.facet, row.skill, row.variant): row.value
        for row in found.evaluate(table, answers, 10).rows
    }
    key = ("subject_property", "forward_text", None, "paper")
    assert rows["accuracy", *key] == rows["accuracy", "subject_property:my-llm", *key[1:]] == 0.5
    assert rows["scaled_accuracy", *key] == pytest.approx(scale(0.5, 3 / 4))
    assert rows["scaled_accuracy", "subject_property", "image", "Hue", "paper"] == 0.0
    assert {skill for _, _, _, skill, _ in rows} == {None, "Hue"}


def test_the_card_of_an_own_set_names_models_splits_and_skills(tmp_path: Path) -> None:
    models = [("toy-2", "a"), ("toy-2", "b"), ("sd", "a")]
    told = {"summary": "Cups.", "description": "Cups.", "revision": "1"}
    text = own_syn.card_text("my_syn", "My set", models, ["Hue"], 3, **told)
    (tmp_path / "card.toml").write_text(text)
    for one in models:
        (tmp_path / own_syn.prompt_file(*one)).write_text(line(EV, [f"A cup of {one}."]))
    found = load_registry(cards=[str(tmp_path)])["my_syn"]
    answers = found.answers(None)
    assert len(answers.pair_ids) == len(models) * 3 * 2 * 2
    assert {"entity_variation:a", "entity_variation:b"} <= found.card.splits.keys()
    assert "entity_variation:ds" not in found.card.splits
    assert found.card.skills == {"Hue": "Hue"}
    (tmp_path / own_syn.prompt_file("sd", "a")).write_text("")
    with refused("data_malformed", "3 such prompt files"):
        found.answers(None)


@pytest.mark.parametrize(
    ("names", "images"),
    [
        ((), 1),
        (("prompts.jsonl",), 1),
        (("3_extracted_prompts_a_b.jsonl", "more.jsonl"), 1),
        (("3_extracted_prompts_a_b.jsonl", "x/3_extracted_prompts_a_b.jsonl"), 1),
        (("3_extracted_prompts_A_b.jsonl",), 1),
        (("3_extracted_prompts_a_b_c.jsonl",), 1),
        (("3_extracted_prompts_a_b.jsonl",), 0),
        (("3_extracted_prompts_a_b.jsonl",), 2),
    ],
)
def test_files_that_are_not_those_of_the_layout_are_refused(
    tmp_path: Path, names: tuple[str, ...], images: int
) -> None:
    with refused("invalid_benchmark", "my_syn declares"):
        load_registry(cards=[str(syn_card(tmp_path, *names, images=images))])


def test_what_lies_beside_the_card_is_not_read_through_a_link(tmp_path: Path) -> None:
    place = own(tmp_path / "boards")
    (place / TABLE).rename(tmp_path / TABLE)
    (place / TABLE).symlink_to(tmp_path / TABLE)
    with refused("data_malformed", f"{TABLE} is a link"):
        load_registry(cards=[str(place)])["my_cups"].answers(None)


FILE = {"path": f"my_cups/{TABLE}", "role": "answers", "beside": True, "supplied": "Here."}


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"files": [FILE | {"path": "../x.tsv"}]}, "files.0.path: '../x.tsv'"),
        ({"files": [{"path": "x", "role": "answers", "url": "http://x"}]}, "https"),
        ({"files": []}, "0 files of role answers"),
        ({"skills": {}}, "0 skills"),
        ({"headline": {"measure": "srcc"}}, "headline.measure: 'srcc'"),
        ({"title": "FILL IN"}, "title: is to be filled in"),
        ({"colour": "red", "revision": None}, "colour: Extra"),
    ],
)
def test_a_card_that_cannot_be_followed_is_refused(
    tmp_path: Path, keys: dict[str, object], says: str
) -> None:
    place = own(tmp_path / "boards", **{k: v for k, v in keys.items() if v is not None})
    with refused("invalid_benchmark", says):
        load_registry(cards=[str(place)])


def test_checking_a_card_whose_protocol_is_code_names_what_tells_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Command(main, monkeypatch, capsys)
    assert bench("check", own(tmp_path / "boards")) == 1
    assert "no_card" in bench.err and "describe my_cups" in bench.err
