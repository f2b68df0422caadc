"""CROC_syn: prompt files, taxonomy, images, shards of the runner, and the protocol by slow rules."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks.croc.measures import DIRECTIONS, scale
from benchmarks.croc_syn.load import (
    MODES,
    NODES,
    NOT_IN_PAPER,
    CrocSynAnswers,
    app,
    node_of,
    read_shards,
)
from benchmarks.croc_syn.measures import MEASURES, Grouping, outcomes_of
from benchmarks.croc_syn.protocol import CARD, CrocSyn
from benchmarks.errors import SubmitterError
from benchmarks.rows import ONE_CLUSTER, Measured
from benchmarks.schema import ScoreTable
from benchmarks.scores import read_scores
from benchmarks.statistics.resampling import ResamplingPlan
from tests.benchmarks.croc_syn.syn_tree import (
    EP,
    EV,
    FILES,
    GOOD,
    ONE,
    PROMPTS,
    PV,
    benchmark,
    line,
    load,
    same_everywhere,
    table_of,
    write,
)
from tests.kit.checks import row_of
from tests.kit.refusals import refused


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


def test_pairs_with_an_empty_text_are_dropped_and_others_keep_their_number(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("skill", "says"),
    [('"Turquoise"', "'Turquoise'; expected one of Domain"), ("3", "'3'"), ('["Color"]', "Color")],
)
def test_a_line_may_say_its_skill_which_is_one_of_the_card(
    tmp_path: Path, skill: str, says: str
) -> None:
    own = line("subject_property|||Flora|||Turquoise", ["a"])
    known = own.replace("{", '{"skill": "Color", ', 1)
    answers = load(write(tmp_path, {("flux", "ds"): [known, ONE]}), n_images=1)
    assert answers.prompts["skill"].tolist() == ["Color", ""]
    write(tmp_path, {("flux", "ds"): [own.replace("{", f'{{"skill": {skill}, ', 1)]})
    with refused("data_malformed", "line 1", says):
        load(tmp_path)


@pytest.mark.parametrize("empty", [[], [line(PV, ["", "a fox"], ["an owl", " "])]])
@pytest.mark.parametrize("which", [[("sd", "ds")], [("flux", "qwen"), ("sd", "qwen")], FILES])
def test_each_prompt_file_must_hold_a_pair(
    tmp_path: Path, which: list[Any], empty: list[str]
) -> None:
    write(tmp_path, same_everywhere(GOOD) | dict.fromkeys(which, empty))
    with refused("data_malformed", PROMPTS.format(*which[0])):
        CrocSyn().answers(tmp_path)


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
    assert len(CARD.files) == 5
    assert all(file.supplied for file in CARD.files)
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


def shards(folder: Path) -> dict[str, float]:
    """Scores of two prompts with two images each in the runner's form; returns them by pair id."""
    expected: dict[str, float] = {}
    rng = np.random.default_rng(0)
    for models, (part, prompt_id) in product(FILES, enumerate((PV, EP))):
        name, base, rows = prompt_id.replace("|||", "_____"), "/".join(models), []
        for k in range(2):
            stems = {
                "orig": f"{base}/prompts/{name}_prompt_0_image_{k}",
                "contrast": f"{base}/contrast_prompts/{name}_contrast_0_image_{k}",
            }
            columns = {"orig": "img_paths_prompts", "contrast": "img_paths_contrast"}
            row: dict[str, Any] = {columns[side]: f"root/{stems[side]}.png" for side in stems}
            for text, side in product(stems, repeat=2):
                score = row[f"PickScore___{text}_text___{side}_img"] = float(rng.random())
                expected[f"{stems[side]}|{text}"] = score
            rows.append({"prompt_id": f"{prompt_id}_____{k + 1}", **row})
        place = folder / "_".join(models) / f"part{part}_scores.tsv"
        place.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(place, sep="\t", index=False)
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


NAN = float("nan")
Scores = tuple[list[float], ...]
SHAPE = "subject_property|||Flora|||Organic"
BRIEF = "subject_property|||Flora|||Brief"
TEXT_MODELS = ("ds", "qwen")
SCALED = {"measure": "scaled_accuracy"}
TOTAL = SCALED | {"variant": "assay", "facet": None, "split": None}
Key = tuple[str, str, str, str]
"""Image model, text model, prompt id, original text."""
Images = list[tuple[Any, ...]]
"""Side of each image of a group, and its scores for the original and the contrast."""


def slow_groups(scores: pd.Series, folder: Path) -> dict[Key, Images]:
    """The images of each group, read from the files anew."""
    groups: dict[Key, Images] = {}
    for models in FILES:
        for record in map(json.loads, (folder / PROMPTS.format(*models)).read_text().splitlines()):
            texts = zip(record["prompts"], record["contrast_prompts"], strict=True)
            name = record["prompt_id"].replace("|||", "_____")
            for number, (prompt, contrast) in enumerate(texts):
                for word, side in (("prompt", "prompts"), ("contrast", "contrast_prompts")):
                    stem = f"{'/'.join(models)}/{side}/{name}_{word}_{number}_image_"
                    n_images = next(k for k in count() if f"{stem}{k}|orig" not in scores)
                    images = [
                        (word, scores[f"{stem}{k}|orig"], scores[f"{stem}{k}|contrast"])
                        for k in range(n_images if prompt and contrast else 0)
                    ]
                    if images:
                        groups.setdefault((*models, record["prompt_id"], prompt), []).extend(images)
    return groups


def slow_outcome(images: Images, direction: str) -> float | None:
    """1 or 0 by the rules of the paper; None where the group is left out."""
    own, text = ("prompt", 1) if "forward" in direction else ("contrast", 2)
    mine = [image for image in images if image[0] == own and not math.isnan(image[text])]
    if not mine:
        return None
    best = max(mine, key=lambda image: image[text])  # the first of equally good ones
    if direction.endswith("text"):
        return float(best[text] > best[3 - text])
    theirs = [i[text] for i in images if i[0] != own and not math.isnan(i[text])]
    return float(bool(theirs) and best[text] > max(theirs))


def slow_accuracy(groups: dict[Key, Images], direction: str) -> float:
    """The mean over text models."""
    means = []
    for model in TEXT_MODELS:
        outcomes = [slow_outcome(i, direction) for key, i in groups.items() if key[1] == model]
        means.append(np.mean([o for o in outcomes if o is not None]))
    return float(np.mean(means))


def chance_of(direction: str) -> float:
    return 5 / 6 if "text" in direction else 0.5


@dataclass
class Case:
    """All modes, properties, lengths and files, with ties and (m1) gaps; a prompt stands twice."""

    folder: Path
    answers: CrocSynAnswers
    scores: ScoreTable
    measured: Measured

    def groups(self, metric: str) -> dict[Key, Images]:
        return slow_groups(self.scores.overall[metric], self.folder)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    rng = np.random.default_rng(1)
    lines = {
        models: [
            line(PV, ["a", "b" * 300, "c", "a"]),
            line(SHAPE, ["a", "b"]),
            line(BRIEF, ["a"]),
            line(EV, [f"{k}" for k in range(rng.integers(1, 5))]),
            line(EP, ["x", "", "z"]),
        ]
        for models in FILES
    }
    folder = write(tmp_path_factory.mktemp("syn"), lines)
    answers = load(folder, n_images=3)
    n = len(answers.pair_ids)
    whole, holed = (rng.integers(0, 5, n).astype(float) for _ in range(2))
    holed[rng.random(n) < 0.4] = NAN
    scores = table_of(answers, m0=whole, m1=holed)
    return Case(folder, answers, scores, benchmark(3).evaluate(scores, answers, 50))


def one_group(
    o_orig: list[float], o_contrast: list[float], c_orig: list[float], c_contrast: list[float]
) -> dict[str, float]:
    """Outcome of each direction for a single group: images O and C, each with both texts."""
    sides = [np.array([o_orig, o_contrast]).T, np.array([c_orig, c_contrast]).T]
    grouping = Grouping.of(np.array([0]))
    return {d: outcomes_of(np.stack(sides)[None], d, grouping).right.item() for d in DIRECTIONS}


ZERO = [0.0, 0.0]
FIGURE_6 = (  # AlignScore: 14.4 < 14.7; 13.9 < 15.7; 14.4 < 15.7; 13.9 < 14.7
    [13.9, 14.4, 14.1, 13.7, 12.8],
    [14.3, 14.7, 14.6, 14.6, 13.7],
    [14.9, 15.2, 15.7, 13.9, 14.6],
    [12.7, 13.0, 13.9, 11.7, 12.5],
)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (FIGURE_6, dict.fromkeys(DIRECTIONS, 0.0)),
        # By text the best image counts, and of equally good ones the first.
        (([2, 3], [9, 1], ZERO, ZERO), {"forward_text": 1.0}),
        (([3, 3], [9, 1], ZERO, ZERO), {"forward_text": 0.0}),
        (([3, 3], [1, 9], ZERO, ZERO), {"forward_text": 1.0}),
        ((ZERO, ZERO, [1, 9], [3, 3]), {"inverse_text": 1.0}),
        # By image the best of either side meet.
        (([1, 5], ZERO, [4, 4], ZERO), {"forward_image": 1.0}),
        (([1, 5], ZERO, [5, 4], ZERO), {"forward_image": 0.0}),
        ((ZERO, [6, 2], ZERO, [1, 7]), {"inverse_image": 1.0}),
        # Missing scores of the matching side are passed over; without any the group is left out.
        (([NAN, 3], [9, 1], [2, 2], [5, 5]), {"forward_text": 1.0, "forward_image": 1.0}),
        (([NAN, NAN], [1, 1], ZERO, [2, 2]), {"forward_text": NAN, "inverse_text": 1.0,
                                              "forward_image": NAN, "inverse_image": 1.0}),
        # A missing score on the other side is a failure.
        (([3, 2], [NAN, 1], [NAN, NAN], ZERO), {"forward_text": 0.0, "forward_image": 0.0}),
        (([3, 2], ZERO, [NAN, 1], ZERO), {"forward_image": 1.0}),
    ],
)  # fmt: skip
def test_directions_of_one_group(scores: Scores, expected: dict[str, float]) -> None:
    found = one_group(*scores)
    assert {d: found[d] for d in expected} == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("metric", ["m0", "m1"])
def test_cells_equal_the_slow_rules_and_summaries_are_their_means(case: Case, metric: str) -> None:
    groups, one = case.groups(metric), {"metric": metric}

    def value(**wanted: object) -> float:
        return row_of(case.measured, **one, **wanted).value

    cells = {}
    for direction, mode in product(DIRECTIONS, MODES):
        where = {"facet": direction, "measure": "accuracy"}
        by_model = [value(**where, split=f"{mode}:{model}") for model in TEXT_MODELS]
        of_mode = {key: images for key, images in groups.items() if key[2].startswith(mode)}
        slow = slow_accuracy(of_mode, direction)
        accuracy = value(**where, split=mode)
        assert accuracy == pytest.approx(np.mean(by_model)) == pytest.approx(slow)
        cells[direction, mode] = scale(accuracy, chance_of(direction))
        found = value(**SCALED, facet=direction, split=mode)
        assert found == pytest.approx(cells[direction, mode])
    assert value(**TOTAL) == pytest.approx(np.mean(list(cells.values())))
    for d in DIRECTIONS:
        expected = np.mean([cells[d, mode] for mode in MODES])
        assert value(**TOTAL | {"facet": d}) == pytest.approx(expected)
    for mode in MODES:
        expected = np.mean([cells[d, mode] for d in DIRECTIONS])
        assert value(**TOTAL | {"split": mode}) == pytest.approx(expected)


def test_resamples_equal_the_cell_on_the_drawn_clusters(case: Case) -> None:
    plan = ResamplingPlan(case.answers.clusters, 5, 12)
    measured = CrocSyn().measure(case.scores, case.answers, plan)
    slow = case.groups("m1")
    first = case.answers.prompts.drop_duplicates("group")
    clusters = dict(zip(slow, first["cluster"], strict=True))
    outcomes = [
        (slow_outcome(images, "inverse_text"), clusters[key])
        for key, images in slow.items()
        if key[1] == "ds" and key[2].startswith("subject_property")
    ]
    right, cluster = np.array([(o, c) for o, c in outcomes if o is not None]).T
    where = {"metric": "m1", "measure": "accuracy", "facet": "inverse_text"}
    row = row_of(measured, split="subject_property:ds", **where)
    for b, found in enumerate(measured.resamples[measured.rows.index(row)]):
        times = plan.counts[b, cluster.astype(int)]
        expected = right @ times / times.sum() if times.sum() else NAN
        assert found == pytest.approx(expected, abs=1e-6, nan_ok=True)
    behind = measured.clusters[measured.clusters["row"] == measured.rows.index(row)]
    assert len(behind) == row.n_clusters


def test_properties_and_lengths_are_means_of_forward_and_inverse(case: Case) -> None:
    groups = case.groups("m0")
    lengths = {"": (0, 1000), ":over_280": (281, 1000), ":up_to_280": (0, 280)}
    one = SCALED | {"metric": "m0"}
    for skill, name, length, facet, variant in (
        *(
            (skill, name, "", facet, variant)
            for skill, name in (("Color", "Red"), ("Shape", "Organic"), (None, ""))
            for facet, variant in (("image", "paper"), ("text", "assay"))
        ),
        ("Color", "Red", ":over_280", "image", "paper"),
        ("Color", "Red", ":up_to_280", "image", "paper"),
    ):
        low, high = lengths[length]
        chosen = {
            key: images
            for key, images in groups.items()
            if key[2].startswith("subject_property") and name in key[2]
            if low <= len(key[3]) <= high
        }
        slow = [slow_accuracy(chosen, f"{way}_{facet}") for way in ("forward", "inverse")]
        split = f"subject_property{length}"
        found = row_of(case.measured, skill=skill, facet=facet, variant=variant, split=split, **one)
        assert found.value == pytest.approx(np.mean([scale(a, chance_of(facet)) for a in slow]))
    assert {row.skill for row in case.measured.rows} == {None, "Color", "Shape"}


def test_exact_chance_depends_on_the_number_of_images(tmp_path: Path) -> None:
    write(tmp_path, same_everywhere(line(PV, ["a", "b", "c", "d"])))
    for k in (1, 5):
        answers = load(tmp_path, n_images=k)
        values = np.random.default_rng(7).random(len(answers.pair_ids))
        measured = benchmark(k).evaluate(table_of(answers, m0=values), answers, 5)
        one = {"facet": "forward_text", "split": "subject_property"}
        accuracy = row_of(measured, measure="accuracy", **one).value
        exact = row_of(measured, **SCALED, variant="exact_chance", **one).value
        paper = row_of(measured, **SCALED, **one).value
        assert exact == pytest.approx(scale(accuracy, k / (k + 1)))
        assert (exact == pytest.approx(paper)) == (k == 5)


@pytest.mark.parametrize("score", [1.0, NAN])
def test_a_metric_that_says_the_same_or_nothing(case: Case, score: float) -> None:
    scores = table_of(case.answers, m0=np.full(len(case.answers.pair_ids), score))
    for row in benchmark(3).evaluate(scores, case.answers, 5).rows:
        if math.isnan(score):  # nothing is left to compare
            assert math.isnan(row.value)
            assert (row.n_items, row.n_clusters) == (0, 0)
            assert row.n_missing > 0
            assert "undefined" in row.note
            assert "left out" in row.note
        else:
            assert row.value == (0.0 if row.measure == "accuracy" else -1.0)
            assert row.note == (ONE_CLUSTER if row.n_clusters == 1 else "")


def test_half_the_scores_missing_still_makes_rows_that_say_so(case: Case) -> None:
    values = case.scores.overall["m0"].to_numpy().copy()
    values[::2] = NAN  # every score with the original text
    measured = benchmark(3).evaluate(table_of(case.answers, m0=values), case.answers, 5)
    one = {"measure": "accuracy", "split": "entity_placement"}
    assert math.isnan(row_of(measured, facet="forward_text", **one).value)
    inverse = row_of(measured, facet="inverse_text", **one)
    assert (inverse.value, inverse.n_missing, inverse.n_items) == (0.0, 24, 8)
    total = row_of(measured, **TOTAL)
    assert math.isnan(total.value)
    assert total.n_missing == len(case.answers.pair_ids) / 2


def test_one_prompt_by_one_text_model_is_a_result_with_a_note(tmp_path: Path) -> None:
    answers = load(write(tmp_path, {("flux", "ds"): [line(PV, ["a"])]}), n_images=1)
    scores = table_of(answers, m0=np.array([2.0, 1.0, 1.0, 2.0]))
    measured = benchmark(1).evaluate(scores, answers, 5)
    row = row_of(measured, **SCALED, facet="forward_text", split="subject_property")
    assert (row.value, row.n_items, row.n_clusters) == (1.0, 1, 1)
    assert "by qwen" in row.note
    absent = row_of(measured, measure="accuracy", facet="forward_text", split="entity_variation")
    assert math.isnan(absent.value)
    assert absent.note.startswith("no such")
    assert row_of(measured, **TOTAL).value == 1.0


def test_a_falling_metric_is_turned_round_and_rows_stand_in_any_order(case: Case) -> None:
    scores, plan = case.scores, benchmark(3).plan(case.answers, 5)
    turned = ScoreTable(-scores.overall.iloc[::-1], directions={"m0": -1, "m1": -1})
    found, expected = (CrocSyn().measure(s, case.answers, plan).rows for s in (turned, scores))
    assert repr(found) == repr(expected)
    with pytest.raises(KeyError):
        benchmark(3).evaluate(ScoreTable(scores.overall.iloc[1:]), case.answers, 5)


def test_every_row_is_explained_and_those_with_values_carry_an_interval(case: Case) -> None:
    rows = case.measured.rows
    keys = {(r.metric, r.measure, r.split, r.skill, r.variant, r.facet) for r in rows}
    assert len(keys) == len(rows)
    assert sum(map(benchmark().card.headline.matches, rows)) == len(case.scores.metrics)
    for row in rows:
        assert (row.benchmark, row.revision) == ("croc_syn", "supplied")
        assert row.measure in MEASURES
        assert row.facet is None or row.facet in CARD.facets
        assert math.isnan(row.value) or row.n_clusters == 1 or row.ci_low <= row.ci_high
