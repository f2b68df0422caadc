"""Prompt sets that a card says whole: small files in the released layouts, what is refused, judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.prompt_sets.declared import FOLDER, PROMPT_SETS, SetCard, declared_set
from benchmarks.prompt_sets.prompt_set import MEASURES, SetPrompt
from benchmarks.schema import Card
from evaluator.scorers.registry import load_rows
from tests.kit.checks import trial_card
from tests.kit.refusals import refused

SETS = {one.name: one for one in PROMPT_SETS}


def lines(*records: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def wise(number: int, category: str, below: str) -> dict[str, Any]:
    return {"prompt_id": number, "Prompt": f"What {number} means", "Explanation": "It means this.",
            "Category": category, "Subcategory": below}  # fmt: skip


def points(theme: str, *kinds: str) -> str:
    """A cell of UniGenBench: JSON with its quotes doubled."""
    told = {"Primary Categories": theme, "Secondary Categories": "Other", "Testpoints": kinds,
            "Testpoint Description": ["two cups"] * len(kinds)}  # fmt: skip
    return '"' + json.dumps(told).replace('"', '""') + '"'


DSG = "item_id,text,proposition_id,category_broad,category_detailed\n"
DPG = (
    "item_id,text,keywords,proposition_id,dependency,category_broad,category_detailed,tuple,"
    "question_natural_language\n"
)
COMPOSED = ("color", "shape", "texture", "spatial", "3d_spatial", "numeracy", "non_spatial")
FILES: dict[str, dict[str, str]] = {
    "dsg_1k": {"dsg_tifa160/dsg-1k-anns.csv": f"{DSG}whoops_1,A red cup,1,entity,whole\n"
               "vrd_2,A view,1,global,-\nwhoops_1,A red cup,2,attribute,color\n"},
    "dpg_bench": {"dpg_bench/dpg_bench.csv": f"{DPG}"
                  'COCOval2014_1,"A cup, red",cup,1,0,entity,whole,entity - whole (cup),A cup?\n'
                  'COCOval2014_1,"A cup, red",red,2,1,attribute,color,attribute - color (red),Red?\n'
                  "7,A view,,1,0,global,,global (view),A view?\n"},
    "geneval": {"geneval/evaluation_metadata.jsonl": lines(
        {"tag": "single_object", "include": [{"class": "cup", "count": 1}], "prompt": "a cup"},
        {"tag": "color_attr", "include": [], "exclude": [], "prompt": "a red cup and a blue fork"})},
    "geneval2": {"geneval2/geneval2_data.jsonl": lines(
        {"prompt": "two cups", "atom_count": 3, "vqa_list": [["How many cups?", "two"]],
         "skills": ["count", "object", "count"]})},
    "t2i_compbench": {
        **{f"t2i_compbench/{name}_val.txt": "" for name in COMPOSED},
        "t2i_compbench/color_val.txt": "a red cup\r\n\r\n a blue fork\r\n",
        "t2i_compbench/complex_val.txt": "The red cup stood on the blue fork.",
    },
    "oneig_bench": {"oneig_bench/OneIG-Bench.csv":
        "category,id,prompt_en,type,prompt_length,class\n"
        'Anime_Stylization,000,"cups, forks","T, P",long,\n'
        "Knowledge_Reasoning,000,How a cup falls,NP,short,physics\n"},
    "wise_verified": {
        "wise/cultural_common_sense_verified.json": json.dumps([wise(1, "Cultural knowledge", "Art")]),
        "wise/spatio-temporal_reasoning_verified.json": json.dumps([wise(401, "time", "Longitudinal time")]),
        "wise/natural_science_verified.json": json.dumps([wise(641, "Biology", "State")]),
    },
    "unigenbench": {"unigenbench/test_prompts_en.csv": "index,prompt_en,sub_dims_en\n"
        f"0,Two cups,{points('Design', 'Style', 'Attribute - Quantity')}\n"
        f"1,A cup,{points('Film & Story', 'Action - Full-body (Character/Anthropomorphic)')}\n"},
    "partiprompts": {"partiprompts/PartiPrompts.tsv": "Prompt\tCategory\tChallenge\tNote\n"
        '"A CUP" painted on a wall\tIllustrations\tWriting & Symbols\t\n'
        "a cup \tFood & Beverage\tBasic\tOne thing\n"},
    "drawbench": {"drawbench/drawbench.csv": "Prompts,Category\n"
        '"A cup, red.",Colors\nA cup in a cup.,Gary Marcus et al. \n'},
}  # fmt: skip
READ: dict[str, tuple[SetPrompt, ...]] = {
    "dsg_1k": (
        SetPrompt("whoops_1", "A red cup", "defying",
                  ("entity", "entity:whole", "attribute", "attribute:color")),
        SetPrompt("vrd_2", "A view", "relation", ("global",)),
    ),
    "dpg_bench": (
        SetPrompt("COCOval2014_1", "A cup, red", "", ("entity", "attribute")),
        SetPrompt("7", "A view", "", ("global",)),
    ),
    "geneval": (
        SetPrompt("00000", "a cup", "", ("single_object",)),
        SetPrompt("00001", "a red cup and a blue fork", "", ("color_attr",)),
    ),
    "geneval2": (SetPrompt("000", "two cups", "3", ("object", "count")),),
    "t2i_compbench": (
        SetPrompt("color_val_000", "a red cup", "", ("color",)),
        SetPrompt("color_val_001", "a blue fork", "", ("color",)),
        SetPrompt("complex_val_000", "The red cup stood on the blue fork.", "", ("complex",)),
    ),
    "oneig_bench": (
        SetPrompt("Anime_Stylization_000", "cups, forks", "long", ("anime",)),
        SetPrompt("Knowledge_Reasoning_000", "How a cup falls", "short",
                  ("reasoning", "reasoning:physics")),
    ),
    "wise_verified": (
        SetPrompt("1", "What 1 means", "", ("culture", "culture:Art")),
        SetPrompt("401", "What 401 means", "", ("time", "time:Longitudinal time")),
        SetPrompt("641", "What 641 means", "", ("biology", "biology:State")),
    ),
    "unigenbench": (
        SetPrompt("0", "Two cups", "design", ("style", "attribute", "attribute:quantity")),
        SetPrompt("1", "A cup", "film", ("action", "action:full_body")),
    ),
    "partiprompts": (
        SetPrompt("0000", '"A CUP" painted on a wall', "illustrations", ("writing_symbols",)),
        SetPrompt("0001", "a cup ", "food_beverage", ("basic",)),
    ),
    "drawbench": (
        SetPrompt("000", "A cup, red.", "", ("colors",)),
        SetPrompt("001", "A cup in a cup.", "", ("marcus",)),
    ),
}  # fmt: skip


def trial(name: str, files: dict[str, str], data: Path, **counts: int) -> tuple[SetPrompt, ...]:
    """What a set reads of these files, with a card that pins nothing."""
    for path, content in files.items():
        (data / path).parent.mkdir(parents=True, exist_ok=True)
        (data / path).write_bytes(content.encode())
    card = SETS[name].card
    assert isinstance(card, SetCard)
    return declared_set(trial_card(card, **counts)).set_prompts(data)


def test_every_card_of_the_folder_is_a_set_with_files_of_its_own_layout_here() -> None:
    assert set(SETS) == {path.stem for path in FOLDER.glob("*.toml")} == FILES.keys() == READ.keys()


@pytest.mark.parametrize("name", FILES)
def test_prompts_are_read_from_the_released_layout(name: str, tmp_path: Path) -> None:
    assert trial(name, FILES[name], tmp_path) == READ[name]


@pytest.mark.parametrize("name", FILES)
def test_counts_of_prompts_splits_and_skills_are_held_to_the_card(
    name: str, tmp_path: Path
) -> None:
    card = SETS[name].card
    n_prompts = card.counts["prompts"]
    splits = {key: n for key, n in card.counts.items() if key.endswith(": prompts of the split")}
    assert not splits or sum(splits.values()) == n_prompts
    known = {f"{key}: prompts" for key in card.skills}
    assert card.counts.keys() - splits.keys() - {"prompts"} <= known
    with refused("data_malformed", f"prompts; expected {n_prompts}"):
        trial(name, FILES[name], tmp_path, prompts=n_prompts)


GENEVAL = "geneval/evaluation_metadata.jsonl"
UNIGENBENCH = "unigenbench/test_prompts_en.csv"
WISE = "wise/natural_science_verified.json"
DSG_FILE = "dsg_tifa160/dsg-1k-anns.csv"


@pytest.mark.parametrize(
    ("name", "path", "content", "says"),
    [
        ("dsg_1k", DSG_FILE, f"{DSG}new_1,A cup,1,entity,whole\n", ("split", "'new_1'", "data row 1")),
        ("dsg_1k", DSG_FILE, f"{DSG}vrd_1,A cup,1,entity,whole\nvrd_1,Two cups,2,entity,whole\n",
         ("'vrd_1'", "another text", "data row 2")),
        ("dsg_1k", DSG_FILE, f"{DSG}vrd_1,A cup,1,thing,whole\n", ("skill 'thing'", "data row 1")),
        ("dsg_1k", DSG_FILE, f"{DSG}vrd_1,A cup,1,entity,half\n", ("skill 'entity:half'",)),
        ("dsg_1k", DSG_FILE, f"{DSG}vrd_1,A cup,1,entity,whole\nvrd_2,,1,entity,whole\n",
         ("text", "empty", "data row 2")),
        ("dsg_1k", DSG_FILE, "item_id,text\nvrd_1,A cup\n", ("category_broad",)),
        ("geneval", GENEVAL, lines({"tag": "new", "prompt": "a cup"}), ("skill 'new'",)),
        ("geneval", GENEVAL, lines({"prompt": "a cup"}), ("no column tag",)),
        ("geneval", GENEVAL, '{"tag": ', ("JSON lines",)),
        ("geneval2", "geneval2/geneval2_data.jsonl",
         lines({"prompt": "a", "atom_count": 11, "skills": []}), ("split '11'", "data row 1")),
        ("geneval2", "geneval2/geneval2_data.jsonl",
         lines({"prompt": "a", "atom_count": 3, "skills": "count"}), ("expected a list",)),
        ("wise_verified", WISE, json.dumps([wise(641, "Biology", "Art")]),
         ("natural_science", "skill 'biology:Art'")),
        ("wise_verified", WISE, json.dumps([{**wise(1, "Biology", "State"), "Prompt": "Other"}]),
         ("natural_science", "'1'", "another text")),
        ("unigenbench", UNIGENBENCH, f"index,prompt_en,sub_dims_en\n0,A cup,{points('Design', 'X')}\n",
         ("column skill", "'X'", "data row 1")),
        ("unigenbench", UNIGENBENCH, "index,prompt_en,sub_dims_en\n0,A cup,{\n",
         ("column split", "column skill", "data row 1")),
        ("partiprompts", "partiprompts/PartiPrompts.tsv", "Prompt\tCategory\tChallenge\na\tb\tBasic\n",
         ("column split", "'b'")),
        ("t2i_compbench", "t2i_compbench/color_val.txt", "\udcff", ("color_val", "UTF-8")),
    ],
)  # fmt: skip
def test_files_that_are_not_as_released_are_refused(
    name: str, path: str, content: str, says: tuple[str, ...], tmp_path: Path
) -> None:
    trial(name, FILES[name], tmp_path)
    (tmp_path / path).write_bytes(content.encode(errors="surrogateescape"))
    with refused("data_malformed", *says):
        trial(name, {}, tmp_path)


def card(tmp_path: Path, **changes: str) -> Card:
    """The card of DrawBench with another table."""
    path = tmp_path / "card.toml"
    given = (FOLDER / "drawbench.toml").read_text("utf-8")
    for old, new in changes.items():
        assert old in given
        given = given.replace(old, new)
    path.write_text(given, encoding="utf-8")
    return SetCard.read(path, MEASURES)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('text = "Prompts"', 'words = "Prompts"', "words"),
        ('text = "Prompts"', 'text = "Prompts"\nwords = "Prompts"', "words"),
        ('[table]\nname = "prompts"\npath = "drawbench/drawbench.csv"',
         '[table]\nname = "prompts"\npath = "other.csv"', "other.csv"),
        ("[drawing]", "[judge]\nmetric = []\n\n[drawing]", "judge"),
    ],
)  # fmt: skip
def test_a_card_whose_table_makes_no_prompts_is_an_error_of_ours(
    old: str, new: str, says: str, tmp_path: Path
) -> None:
    assert card(tmp_path).name == "drawbench"
    with refused("invalid_benchmark", says):
        card(tmp_path, **{old: new})


@pytest.mark.parametrize("name", SETS)
def test_a_judge_names_built_in_metrics_or_says_that_none_is(name: str) -> None:
    judge = SETS[name].judge
    if judge is None:
        assert name in {"partiprompts", "drawbench"}
        return
    assert judge.title
    assert judge.note
    assert set(judge.metrics) <= load_rows().keys()
