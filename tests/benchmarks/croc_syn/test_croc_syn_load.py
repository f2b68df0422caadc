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
    prompts = answers.prompts
    assert prompts["cluster"].tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2, 3]
    assert prompts["group"].tolist() == list(range(10))
    assert prompts["image_model"].tolist() == ["flux"] * 6 + ["sd"] * 4
    assert prompts["text_model"].tolist() == ["ds"] * 3 + ["qwen"] * 3 + ["ds"] * 3 + ["qwen"]
    assert prompts["mode"].tolist()[2] == "entity_variation"
    assert prompts["property"].tolist()[:3] == ["Red", "Red", ""]
    assert prompts["skill"].tolist()[:3] == ["Color", "Color", ""]
    assert set(answers.sources) == {f"croc_syn/3_extracted_prompts_{i}_{t}.jsonl" for i, t in FILES}


def test_pair_ids_are_paths_of_images_and_whose_text(tmp_path: Path) -> None:
    answers = load(write(tmp_path, {("flux", "ds"): [line(PV, ["a red fox"])]}), n_images=2)
    stem = "flux/ds/{}/subject_property_____Wild_Animals_____Red_{}_0_image_{}|{}"
    assert answers.pair_ids == tuple(
        stem.format(side, word, k, text)
        for side, word in (("prompts", "prompt"), ("contrast_prompts", "contrast"))
        for k in range(2)
        for text in ("orig", "contrast")
    )


def test_pairs_with_an_empty_text_are_dropped_and_counted_and_the_others_keep_their_number(
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


def test_the_same_text_twice_under_one_id_is_one_group(tmp_path: Path) -> None:
    answers = load(write(tmp_path, {("sd", "ds"): [line(PV, ["fox", "owl", "fox"])]}))
    assert answers.prompts["group"].tolist() == [0, 1, 0]
    assert len(answers.pair_ids) == len(set(answers.pair_ids)) == 3 * 20


def test_long_prompts_are_told_by_the_original(tmp_path: Path) -> None:
    texts = line(PV, ["x" * 280, "x" * 281], ["y" * 400, "y"])
    answers = load(write(tmp_path, {("flux", "ds"): [texts]}))
    assert answers.prompts["length"].tolist() == ["up_to_280", "over_280"]


GOOD = line(PV, ["a fox"])


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"mode": "a", "mode": "b"}', "key 'mode' stands twice"),
        (GOOD.replace("a fox", r"\ud800"), "holds half of a character"),
        ("[1]", "is no JSON object"),
        (GOOD, "repeats prompt_id"),
        ('{"mode": "subject_property"}', "has no prompt_id"),
        (line(EV, ["a"]).replace('["a"]', '"a"', 1), "has a str as prompts; expected a list"),
        (line(EV, ["a"]).replace('["a"]', "[1]", 1), "something else than text in prompts"),
        (line(EV, ["a"], ["b", "c"]), "has 1 prompts and 2 contrast_prompts"),
        (line("unheard_of|||x", ["a"]), "has mode 'unheard_of'"),
        (line(EV, ["a"]).replace(EV, EP), "expected entity_variation and further parts"),
        (line(f"{EV}/..", ["a"]), "without a slash"),
        (line("subject_property|||Flora", ["a"]), "a property of the taxonomy"),
        (line("subject_property|||Flora|||Turquoise", ["a"]), "a property of the taxonomy"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, bad: str, says: str) -> None:
    write(tmp_path, {("flux", "qwen"): [GOOD, "", bad]})
    place = "3_extracted_prompts_flux_qwen.jsonl line 3"
    with refused("data_malformed", place, says) as caught:
        load(tmp_path)
    assert "FORMAT.md" in caught.value.hint


@pytest.mark.parametrize("empty", [[], [line(PV, ["", "a fox"], ["an owl", " "])]])
@pytest.mark.parametrize("which", [[("sd", "ds")], [("flux", "qwen"), ("sd", "qwen")], FILES])
def test_every_one_of_the_four_prompt_files_must_hold_a_prompt_pair(
    tmp_path: Path, which: list[tuple[str, str]], empty: list[str]
) -> None:
    write(tmp_path, same_everywhere(GOOD) | dict.fromkeys(which, empty))
    name = "3_extracted_prompts_{}_{}.jsonl".format(*which[0])
    with refused("data_malformed", "each of the four prompt files", name):
        CrocSyn().answers(tmp_path)


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    write(tmp_path, {("flux", "ds"): [GOOD]})
    (tmp_path / "croc_syn" / "3_extracted_prompts_sd_ds.jsonl").unlink()
    for data in (None, tmp_path):
        with refused("data_missing") as caught:
            CrocSyn().answers(data)
        assert "Ask the authors" in str(caught.value)
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
    with refused("images_missing", "lacks 1 of the 16 images"):
        benchmark(2).questions(tmp_path)


def test_model_developers_get_each_text_once(tmp_path: Path) -> None:
    write(tmp_path, same_everywhere(line(PV, ["fox"], ["owl"]), line(EV, ["owl"], ["Ada"])))
    prompts = benchmark().prompts(tmp_path)
    assert prompts["prompt"].tolist() == ["fox", "owl", "Ada"]
    assert prompts["prompt_id"].is_unique
    assert prompts["split"].tolist() == ["subject_property"] * 2 + ["entity_variation"]
    assert prompts["skills"].tolist() == ["Color", "Color", ""]


def test_the_taxonomy_has_the_64_properties_of_the_paper_and_the_78_of_the_generator() -> None:
    leaves = [leaf for found in NODES.values() for leaf in found]
    assert (len(leaves), len(set(leaves))) == (64, 64)
    assert len(set(leaves) | set(NOT_IN_PAPER)) == 78
    assert node_of("Rule_of_Thirds") == "Layout"
    assert node_of("Brief") == ""
    assert node_of("Rule of Thirds") is None


@pytest.mark.paper
def test_nodes_and_leaves_are_those_of_the_released_taxonomy(assay_data: Path) -> None:
    """taxonomy.json of the CROC repository at a44214c."""
    tree = json.loads((assay_data / "croc" / "taxonomy.json").read_text())
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

    walk(tree, ())
    assert nodes["fine_grained_t2i_judgement"] == {
        leaf for found in NODES.values() for leaf in found
    } | set(NOT_IN_PAPER)
    for node, leaves in NODES.items():
        assert nodes[node] >= set(leaves)
        if node != "Error Types":
            assert nodes[node] == set(leaves)


def test_the_registry_finds_it_with_its_supplied_files() -> None:
    card = load_registry()["croc_syn"].card
    assert all(file.supplied for file in card.files)
    assert len(card.files) == 5
    assert tuple(card.skills) == tuple(NODES)
    assert CARD.counts == {"images per prompt": 5, "prompt files with prompt pairs": 4}


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
    expected = shards(tmp_path / "shards")
    assert len(expected) == 4 * 2 * 2 * 4
    table = read_shards(tmp_path / "shards").set_index("pair_id")
    assert table["PickScore"].to_dict() == pytest.approx(expected)
    out = tmp_path / "scores.parquet"
    result = CliRunner().invoke(app, [str(tmp_path / "shards"), "--out", str(out)])
    assert result.exit_code == 0
    answers = load(write(tmp_path, same_everywhere(line(PV, ["a"]), line(EP, ["a"]))), n_images=2)
    scores = read_scores(out, benchmark(2), answers)
    assert scores.overall["PickScore"].to_dict() == pytest.approx(expected)


def test_what_is_there_is_replaced_only_when_told_and_a_shard_never(tmp_path: Path) -> None:
    shards(tmp_path)
    shard, out = tmp_path / "sd_ds" / "part0_scores.tsv", tmp_path / "out.csv"
    out.write_text("mine")
    before = shard.read_bytes()
    for words, code in (([out], "file_exists"), ([shard, "--force"], "output_is_input")):
        end = CliRunner().invoke(app, [str(tmp_path), "--out", *map(str, words)])
        assert isinstance(end.exception, SubmitterError)
        assert end.exception.code == code
    assert (out.read_text(), shard.read_bytes()) == ("mine", before)


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
