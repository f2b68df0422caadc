"""Each demo benchmark has the structure of the benchmark it stands for."""

from __future__ import annotations

import io
import re
import time
from collections import Counter
from typing import Any

import pytest
from PIL import Image

from benchmarks.demo import croc_split, evalmuse_split, gecko_split, ts2_split
from benchmarks.demo.language import prompt
from benchmarks.demo.mistakes import contradictions_of
from benchmarks.demo.models import MODELS
from benchmarks.demo.scenes import aspects
from benchmarks.gecko.answers import TEMPLATES

SPLITS = {
    "croc": croc_split,
    "ts2": ts2_split,
    "evalmuse": evalmuse_split,
    "gecko": gecko_split,
}


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_the_questions_are_the_pairs_of_the_answers(split: Any) -> None:
    answers, questions = split.answers(), split.questions()
    assert tuple(pair.pair_id for pair in questions.pairs) == answers.pair_ids
    assert len(set(answers.pair_ids)) == len(answers.pair_ids)
    assert len(set(answers.clusters)) == len(answers.clusters)
    assert {pair.image_id for pair in questions.pairs} == set(questions.images)
    assert {pair.text_id for pair in questions.pairs} == set(questions.texts)


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_answers_are_the_same_each_time_and_quick(split: Any) -> None:
    started = time.perf_counter()
    first = split.answers()
    assert time.perf_counter() - started < 3  # 0.1 s here; slow machines are allowed for
    assert repr(first) == repr(split.answers())


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_pictures_are_rendered_when_asked_for(split: Any) -> None:
    images = split.questions().images
    for image_id in list(images)[:3]:
        picture = Image.open(io.BytesIO(images[image_id]()))
        assert picture.format == "PNG"
        assert picture.size == (128, 128)
        assert not picture.info


def test_there_are_about_a_thousand_pictures_in_all() -> None:
    assert 900 <= sum(len(split.questions().images) for split in SPLITS.values()) <= 1200


def test_croc_has_ten_prompt_pairs_in_each_of_seven_categories() -> None:
    pairs = croc_split.answers().prompt_pairs
    assert Counter(pair.category for pair in pairs) == dict.fromkeys(
        ("counting", "shapes", "spacial_relation", "size_relation", "things_parts", "negation",
         "body_parts"), 10,
    )  # fmt: skip
    for pair in pairs:
        assert re.fullmatch(rf"{pair.category}_\d+", pair.id)
        assert pair.prompt != pair.contrast
        assert 2 <= len(pair.original_images) <= 3
        assert 2 <= len(pair.contrast_images) <= 3


def test_croc_file_names_have_the_form_of_the_original() -> None:
    for pair in croc_split.answers().prompt_pairs:
        for side, stems in (("prompt", pair.original_images), ("contrast", pair.contrast_images)):
            for k, stem in enumerate(stems, start=1):
                assert re.fullmatch(rf"{pair.id}___{side}___({'|'.join(MODELS)})___image{k}", stem)


def test_croc_scores_every_picture_with_both_prompts() -> None:
    texts = Counter(pair.rsplit("|", 1)[1] for pair in croc_split.answers().pair_ids)
    assert set(texts) == {"orig", "contrast"}
    assert texts["orig"] == texts["contrast"] == len(croc_split.questions().images)


def test_croc_negation_shows_the_first_thing_alone_as_contrast() -> None:
    for contrast in croc_split.contrasts():
        if contrast.category == "negation":
            first, second = contrast.original.groups
            assert contrast.contrast.groups == (first,)
            assert contrast.contrast.absent == (second.kind,)
            assert prompt(contrast.contrast).endswith(f"and no {second.kind}")


def test_croc_sides_contradict_each_other() -> None:
    for contrast in croc_split.contrasts():
        assert contradictions_of(contrast.original)
        assert contrast.original != contrast.contrast


def test_ts2_graphs_have_levels_and_branches() -> None:
    nodes = ts2_split.answers().nodes
    assert nodes["graph"].nunique() == 30
    assert set(nodes["skill"]) == {"color", "shape", "counting", "spatial", "parts", "mixed"}
    for _, graph in nodes.groupby("graph"):
        deepest = 3 if set(graph["split"]) == {"complex"} else 2
        assert set(graph["level"]) == set(range(deepest + 1))
        assert {"1a", "1b", "2a", "2b"} <= set(graph["label"])
        assert graph["split"].nunique() == graph["skill"].nunique() == 1


def test_ts2_labels_begin_with_the_number_of_errors() -> None:
    nodes = ts2_split.answers().nodes
    assert (nodes["label"].str[0].astype(int) == nodes["level"]).all()


def test_ts2_has_graphs_with_two_roots_and_nodes_with_several_pictures() -> None:
    nodes = ts2_split.answers().nodes
    assert nodes[nodes["label"] == "0b"]["graph"].nunique() >= 5
    assert (nodes.groupby(["graph", "label"]).size() > 1).sum() > 60


def test_ts2_roots_are_faultless_and_other_nodes_are_not() -> None:
    for graph in ts2_split.graphs():
        for shot in graph.shots:
            assert (shot.drawn == graph.asked) == (shot.level == 0)


def test_ts2_picture_names_have_the_form_of_the_original() -> None:
    for graph in ts2_split.graphs():
        for k, shot in enumerate(graph.shots):
            assert shot.stem == f"{int(graph.id):03d}-{k:02d}"


def test_evalmuse_has_forty_prompts_by_four_models_in_two_splits() -> None:
    answers = evalmuse_split.answers()
    assert len(answers.clusters) == 40
    assert len(answers.pair_ids) == 160
    assert dict(answers.images["split"].value_counts()) == {"real": 80, "synth": 80}
    assert answers.images["label"].between(1, 5).all()


def test_evalmuse_paths_name_the_model_and_the_prompt() -> None:
    for pair in evalmuse_split.answers().pair_ids:
        assert re.fullmatch(rf"({'|'.join(MODELS)})/\d{{5}}\.png", pair)


def test_evalmuse_elements_are_typed_and_labelled_by_three() -> None:
    elements = evalmuse_split.answers().elements
    assert set(elements["skill"]) == {
        "object", "shape", "color", "counting", "attribute", "spatial", "location",
    }  # fmt: skip
    typed = elements["element_id"].str.extract(r"\((.*)\)$")[0]
    assert (typed == elements["skill"]).all()
    assert set(elements["label"]) == {0.0, 0.333333, 0.666667, 1.0}
    assert not elements.duplicated(["pair_id", "element_id"]).any()


def test_evalmuse_questions_carry_the_elements_of_the_answers() -> None:
    questions, elements = evalmuse_split.questions(), evalmuse_split.answers().elements
    for pair in questions.pairs:
        asked = {e.element_id for e in questions.elements[pair.text_id]}
        assert asked == set(elements[elements["pair_id"] == pair.pair_id]["element_id"])


def test_gecko_has_four_prompts_for_each_sub_skill() -> None:
    answers = gecko_split.answers()
    assert set(answers.prompts.groupby(["skill", "sub_skill"]).size()) == {4}
    assert answers.prompts["prompt"].is_unique
    assert answers.pair_ids == tuple(
        f"{p}/{model}" for p in answers.prompts["prompt_id"] for model in MODELS
    )


def test_gecko_is_rated_in_four_templates_by_three_raters() -> None:
    ratings = gecko_split.answers().ratings
    assert set(ratings["template"]) == set(TEMPLATES)
    units = ["template", "prompt_id", "model", "model_b", "unit_index"]
    assert set(ratings.groupby(units)["rater_id"].nunique()) == {3}
    assert not ratings.duplicated([*units, "rater_id"]).any()
    values = ratings.groupby("template")["value"].agg(set).to_dict()
    assert values == {
        "WL": {"aligned", "not_aligned", "unsure"},
        "Likert": {"1", "2", "3", "4", "5", "unsure"},
        "DSGH": {"yes", "no", "invalid", "unsure"},
        "SxS": {"a", "b", "unsure"},
    }


def test_gecko_words_spell_the_prompt_and_questions_cover_its_claims() -> None:
    ratings = gecko_split.answers().ratings
    first = ratings[(ratings["model"] == MODELS[0]) & (ratings["rater_id"] == "simulated-1")]
    for p in gecko_split.prompts():
        mine = first[first["prompt_id"] == p.id]
        said = mine[mine["template"] == "WL"]["unit_text"]
        assert " ".join(said) == p.text.replace(",", "")
        assert (mine["template"] == "DSGH").sum() == len(aspects(p.scene))


def test_gecko_compares_every_pair_of_models() -> None:
    ratings = gecko_split.answers().ratings
    votes = ratings[ratings["template"] == "SxS"]
    assert set(votes.groupby("prompt_id").size()) == {6 * 3}
    assert (votes["model"] != votes["model_b"]).all()
