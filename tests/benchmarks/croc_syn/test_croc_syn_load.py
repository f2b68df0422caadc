"""Reader of CROC_syn: prompt files, taxonomy, images, and the shards of the authors' runner."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.croc_syn.load import NODES, NOT_IN_PAPER, app, node_of, read_shards
from benchmarks.croc_syn.protocol import CARD, CrocSyn
from benchmarks.errors import SubmitterError
from benchmarks.registry import load_registry
from benchmarks.scores import read_scores
from tests.benchmarks.checks import refused
from tests.benchmarks.croc_syn.syn_tree import (
    EP,
    EV,
    FILES,
    PROMPTS,
    PV,
    benchmark,
    line,
    load,
    same_everywhere,
    write,
)


def test_prompt_pairs_become_groups_of_both_image_models_in_one_cluster(tmp_path: Path) -> None:
    lines = same_everywhere(line(PV, ["a red fox", "a red owl"]), line(EV, ["Ada"]))
    lines["sd", "qwen"] = [line(EP, ["a choir above"])]
    answers = load(write(tmp_path, lines), n_images=2)
    assert len(answers.clusters) == len(set(answers.clusters)) == 4
    assert answers.clusters[0].startswith(f"{PV}|||")
    table = answers.prompts
    assert table["cluster"].tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 3]
    assert table["group"].tolist() == list(range(10))
    assert table["image_model"].tolist() == ["flux"] * 6 + ["sd"] * 4
    assert table["text_model"].tolist() == ["ds"] * 3 + ["qwen"] * 3 + ["ds"] * 3 + ["qwen"]
    assert table["mode"].tolist()[2] == "entity_variation"
    assert table["property"].tolist()[:3] == ["Red", "Red", ""]
    assert table["skill"].tolist()[:3] == ["Color", "Color", ""]
    assert set(answers.sources) == {PROMPTS.format(*models) for models in FILES}


def test_pair_ids_are_paths_of_images_and_whose_text(tmp_path: Path) -> None:
    answers = load(write(tmp_path, {("flux", "ds"): [line(PV, ["a red fox"])]}), n_images=2)
    stem = "flux/ds/{}/subject_property_____Wild_Animals_____Red_{}_0_image_{}|{}"
    assert answers.pair_ids == tuple(
        stem.format(side, word, k, text)
        for side, word in (("prompts", "prompt"), ("contrast_prompts", "contrast"))
        for k in range(2)
        for text in ("orig", "contrast")
    )


def test_pairs_with_an_empty_text_are_dropped_and_the_others_keep_their_number(
    tmp_path: Path,
) -> None:
    texts = line(PV, ["", "a red fox", "b", " "], ["x", "a blue fox", "", "y"])
    answers = load(write(tmp_path, {("flux", "ds"): [texts]}), n_images=1)
    assert answers.dropped == 3
    assert "Red_prompt_1_image_0" in answers.pair_ids[0]
    assert answers.counts() == {
        "images": 2,
        "images per prompt": 1,
        "prompt pairs": 1,
        "prompt pairs times image models": 1,
        "dropped for an empty text": 3,
        "entity_variation: prompt pairs": 0,
        "entity_placement: prompt pairs": 0,
        "subject_property: prompt pairs": 1,
    }


def test_the_same_text_twice_is_one_group_and_long_is_told_by_the_original(tmp_path: Path) -> None:
    texts = ["x" * 280, "x" * 281, "x" * 280]
    lines = {("sd", "ds"): [line(PV, texts, ["y" * 400, "y", "z"])]}
    answers = load(write(tmp_path, lines))
    assert answers.prompts["group"].tolist() == [0, 1, 0]
    assert answers.prompts["length"].tolist() == ["up_to_280", "over_280", "up_to_280"]
    assert len(answers.pair_ids) == len(set(answers.pair_ids)) == 3 * 20


GOOD, ONE = line(PV, ["a fox"]), line(EV, ["a"])


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "JSON"),
        ("[" * 100_000, "JSON"),
        ('{"mode": "a", "mode": "b"}', "'mode'"),
        (GOOD.replace("a fox", r"\ud800"), "half of"),
        ("[1]", "JSON object"),
        (GOOD, "prompt_id"),
        ('{"mode": "subject_property"}', "prompt_id"),
        (ONE.replace('["a"]', '"a"', 1), "a str as"),
        (ONE.replace('["a"]', "[1]", 1), "text in prompts"),
        (line(EV, ["a"], ["b", "c"]), "2 contrast_prompts"),
        (line("unheard_of|||x", ["a"]), "'unheard_of'"),
        (ONE.replace(EV, EP), "expected entity_variation"),
        (line(f"{EV}/..", ["a"]), "slash"),
        (line("subject_property|||Flora", ["a"]), "taxonomy"),
        (line("subject_property|||Flora|||Turquoise", ["a"]), "taxonomy"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: str, says: str) -> None:
    write(tmp_path, {("flux", "qwen"): [GOOD, "", bad]})
    with refused("data_malformed", "flux_qwen.jsonl line 3", says) as caught:
        load(tmp_path)
    assert "FORMAT.md" in caught.value.hint


@pytest.mark.parametrize("empty", [[], [line(PV, ["", "a fox"], ["an owl", " "])]])
@pytest.mark.parametrize("which", [[("sd", "ds")], [("flux", "qwen"), ("sd", "qwen")], FILES])
def test_every_one_of_the_four_prompt_files_must_hold_a_prompt_pair(
    tmp_path: Path, which: list[tuple[str, str]], empty: list[str]
) -> None:
    write(tmp_path, same_everywhere(GOOD) | dict.fromkeys(which, empty))
    with refused("data_malformed", PROMPTS.format(*which[0])):
        CrocSyn().answers(tmp_path)


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    write(tmp_path, {("flux", "ds"): [GOOD]})
    (tmp_path / PROMPTS.format("sd", "ds")).unlink()
    for data in (None, tmp_path):
        with refused("data_missing") as caught:
            CrocSyn().answers(data)
        assert "the authors" in str(caught.value)
        assert not CrocSyn().has_questions(data)


def test_every_image_is_asked_about_with_both_texts_and_opened_only_then(tmp_path: Path) -> None:
    write(tmp_path, same_everywhere(line(PV, ["a red fox"], ["a blue fox"])))
    answers = load(tmp_path, n_images=2)
    images = dict.fromkeys(pair.rpartition("|")[0] for pair in answers.pair_ids)
    assert not benchmark(2).has_questions(tmp_path)
    for image in images:
        place = tmp_path / "croc_syn" / "images" / f"{image}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(image.encode())
    assert benchmark(2).has_questions(tmp_path)
    questions = benchmark(2).questions(tmp_path)
    assert tuple(pair.pair_id for pair in questions.pairs) == answers.pair_ids
    assert list(questions.images) == list(images)
    assert len(questions.images) == 16
    for pair in questions.pairs:
        assert questions.images[pair.image_id]() == pair.image_id.encode()
        said = "a red fox" if pair.pair_id.endswith("orig") else "a blue fox"
        assert questions.texts[pair.text_id] == said
    with pytest.raises(KeyError):
        questions.images["../answers"]
    place.unlink()
    with refused("images_missing", "1 of the 16"):
        benchmark(2).questions(tmp_path)


def test_model_developers_get_each_text_once(tmp_path: Path) -> None:
    write(tmp_path, same_everywhere(line(PV, ["fox"], ["owl"]), line(EV, ["owl"], ["Ada"])))
    prompts = benchmark().prompts(tmp_path)
    assert prompts["prompt_id"].is_unique
    assert prompts[["prompt", "split", "skills"]].to_numpy().tolist() == [
        ["fox", "subject_property", "Color"],
        ["owl", "subject_property", "Color"],
        ["Ada", "entity_variation", ""],
    ]


def test_the_card_has_its_supplied_files_and_the_taxonomy_the_properties_of_the_paper() -> None:
    card = load_registry()["croc_syn"].card
    assert len(card.files) == 5
    assert all(file.supplied for file in card.files)
    assert tuple(card.skills) == tuple(NODES)
    assert CARD.counts == {"images per prompt": 5, "prompt files with prompt pairs": 4}
    leaves = [leaf for found in NODES.values() for leaf in found]
    assert (len(leaves), len(set(leaves))) == (64, 64)
    assert len(set(leaves) | set(NOT_IN_PAPER)) == 78  # those of the generator
    found = [node_of(name) for name in ("Rule_of_Thirds", "Brief", "Rule of Thirds")]
    assert found == ["Layout", "", None]


@pytest.mark.paper
def test_nodes_and_leaves_are_those_of_the_released_taxonomy(assay_data: Path) -> None:
    """taxonomy.json of the CROC repository at a44214c."""
    nodes: dict[str, set[str]] = {}

    def walk(node: dict[str, object], above: tuple[str, ...]) -> None:
        children = node.get("classes") or []
        assert isinstance(children, list)
        name = str(node["name"])
        if not children and "Subject Matter" not in above:
            for ancestor in above:
                nodes.setdefault(ancestor, set()).add(name)
        for child in children:
            walk(child, (*above, name))

    walk(json.loads((assay_data / "croc" / "taxonomy.json").read_text()), ())
    leaves = {leaf for found in NODES.values() for leaf in found}
    assert nodes["fine_grained_t2i_judgement"] == leaves | set(NOT_IN_PAPER)
    for node, found in NODES.items():
        extra = nodes[node] - set(found)
        assert nodes[node] >= set(found)
        assert node == "Error Types" or not extra


CELLS = [("orig", "orig"), ("contrast", "orig"), ("orig", "contrast"), ("contrast", "contrast")]


def shards(folder: Path) -> dict[str, float]:
    """Scores of two prompts with two images each in the runner's form; returns them by pair id."""
    expected: dict[str, float] = {}
    rng = np.random.default_rng(0)
    for image_model, text_model in FILES:
        place = folder / f"{image_model}_{text_model}"
        place.mkdir(parents=True)
        for part, prompt_id in enumerate((PV, EP)):
            rows = []
            for k in range(2):
                name, base = prompt_id.replace("|||", "_____"), f"{image_model}/{text_model}"
                stems = {
                    "orig": f"{base}/prompts/{name}_prompt_0_image_{k}",
                    "contrast": f"{base}/contrast_prompts/{name}_contrast_0_image_{k}",
                }
                row: dict[str, object] = {
                    "prompt_id": f"{prompt_id}_____{k + 1}",
                    "img_paths_prompts": f"root/{stems['orig']}.png",
                    "img_paths_contrast": f"root/{stems['contrast']}.png",
                }
                for text, side in CELLS:
                    score = float(rng.random())
                    row[f"PickScore___{text}_text___{side}_img"] = score
                    expected[f"{stems[side]}|{text}"] = score
                rows.append(row)
            pd.DataFrame(rows).to_csv(place / f"part{part}_scores.tsv", sep="\t", index=False)
    return expected


def test_each_score_finds_its_pair_and_the_benchmark_reads_what_is_written(tmp_path: Path) -> None:
    given = tmp_path / "shards"
    expected = shards(given)
    assert len(expected) == 4 * 2 * 2 * 4
    table = read_shards(given).set_index("pair_id")
    assert table["PickScore"].to_dict() == pytest.approx(expected)
    out = tmp_path / "scores.parquet"
    assert CliRunner().invoke(app, [str(given), "--out", str(out)]).exit_code == 0
    answers = load(write(tmp_path, same_everywhere(line(PV, ["a"]), line(EP, ["a"]))), n_images=2)
    scores = read_scores(out, benchmark(2), answers)
    assert scores.overall["PickScore"].to_dict() == pytest.approx(expected)
    shard = given / "sd_ds" / "part0_scores.tsv"
    before = out.read_bytes(), shard.read_bytes()
    for words, code in (([out], "file_exists"), ([shard, "--force"], "output_is_input")):
        end = CliRunner().invoke(app, [str(given), "--out", *map(str, words)])
        assert isinstance(end.exception, SubmitterError)
        assert end.exception.code == code
    assert (out.read_bytes(), shard.read_bytes()) == before


def test_a_shard_that_is_there_twice_and_an_absent_set_are_refused(tmp_path: Path) -> None:
    shards(tmp_path)
    place = tmp_path / "sd_ds"
    (place / "part7_scores.tsv").write_bytes((place / "part0_scores.tsv").read_bytes())
    with refused("duplicate_pairs"):
        read_shards(tmp_path)
    for path in place.iterdir():
        path.unlink()
    with refused("file_missing", "sd_ds"):
        read_shards(tmp_path)
