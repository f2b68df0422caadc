"""Each demo benchmark has the structure of the benchmark it stands for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.demo.load import (
    croc_answers,
    evalmuse_answers,
    gecko_answers,
    questions,
    ts2_answers,
)
from benchmarks.gecko.load import TEMPLATES
from tools.demo_split import croc, gecko, ts2
from tools.demo_split.language import prompt
from tools.demo_split.models import MODELS, contradictions_of
from tools.demo_split.scenes import aspects

ANSWERS: dict[str, Callable[[], Any]] = {
    "croc": croc_answers,
    "ts2": ts2_answers,
    "evalmuse": evalmuse_answers,
    "gecko": gecko_answers,
}


@pytest.mark.parametrize("family", ANSWERS)
def test_the_questions_are_the_pairs_of_the_answers(family: str) -> None:
    answers, asked = ANSWERS[family](), questions(family)
    assert tuple(pair.pair_id for pair in asked.pairs) == answers.pair_ids
    assert len(set(answers.pair_ids)) == len(answers.pair_ids)
    assert len(set(answers.clusters)) == len(answers.clusters)
    assert {pair.image_id for pair in asked.pairs} == set(asked.images)
    assert {pair.text_id for pair in asked.pairs} == set(asked.texts)


def test_there_are_about_a_thousand_pictures_in_all() -> None:
    assert 900 <= sum(len(questions(family).images) for family in ANSWERS) <= 1200


def test_croc_has_ten_prompt_pairs_in_each_of_seven_categories() -> None:
    pairs = croc_answers().prompt_pairs
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
    for pair in croc_answers().prompt_pairs:
        for side, stems in (("prompt", pair.original_images), ("contrast", pair.contrast_images)):
            for k, stem in enumerate(stems, start=1):
                assert re.fullmatch(rf"{pair.id}___{side}___({'|'.join(MODELS)})___image{k}", stem)


def test_croc_scores_every_picture_with_both_prompts() -> None:
    texts = Counter(pair.rsplit("|", 1)[1] for pair in croc_answers().pair_ids)
    assert set(texts) == {"orig", "contrast"}
    assert texts["orig"] == texts["contrast"] == len(questions("croc").images)


def test_croc_negation_shows_the_first_thing_alone_as_contrast() -> None:
    for contrast in croc.contrasts():
        if contrast.category == "negation":
            first, second = contrast.original.groups
            assert contrast.contrast.groups == (first,)
            assert contrast.contrast.absent == (second.kind,)
            assert prompt(contrast.contrast).endswith(f"and no {second.kind}")


def test_croc_sides_contradict_each_other() -> None:
    for contrast in croc.contrasts():
        assert contradictions_of(contrast.original)
        assert contrast.original != contrast.contrast


def test_ts2_graphs_have_levels_and_branches() -> None:
    nodes = ts2_answers().nodes
    assert nodes["graph"].nunique() == 30
    assert set(nodes["skill"]) == {"color", "shape", "counting", "spatial", "parts", "mixed"}
    for _, graph in nodes.groupby("graph"):
        deepest = 3 if set(graph["split"]) == {"complex"} else 2
        assert set(graph["level"]) == set(range(deepest + 1))
        assert {"1a", "1b", "2a", "2b"} <= set(graph["label"])
        assert graph["split"].nunique() == graph["skill"].nunique() == 1


def test_ts2_labels_begin_with_the_number_of_errors() -> None:
    nodes = ts2_answers().nodes
    assert (nodes["label"].str[0].astype(int) == nodes["level"]).all()


def test_ts2_has_graphs_with_two_roots_and_nodes_with_several_pictures() -> None:
    nodes = ts2_answers().nodes
    assert nodes[nodes["label"] == "0b"]["graph"].nunique() >= 5
    assert (nodes.groupby(["graph", "label"]).size() > 1).sum() > 60


def test_ts2_roots_are_faultless_and_other_nodes_are_not() -> None:
    for graph in ts2.graphs():
        for shot in graph.shots:
            assert (shot.drawn == graph.asked) == (shot.level == 0)


def test_ts2_picture_names_have_the_form_of_the_original() -> None:
    for graph in ts2.graphs():
        for k, shot in enumerate(graph.shots):
            assert shot.stem == f"{int(graph.id):03d}-{k:02d}"


def test_evalmuse_has_forty_prompts_by_four_models_in_two_splits() -> None:
    answers = evalmuse_answers()
    assert len(answers.clusters) == 40
    assert len(answers.pair_ids) == 160
    assert dict(answers.images["split"].value_counts()) == {"real": 80, "synth": 80}
    assert answers.images["label"].between(1, 5).all()


def test_evalmuse_paths_name_the_model_and_the_prompt() -> None:
    for pair in evalmuse_answers().pair_ids:
        assert re.fullmatch(rf"({'|'.join(MODELS)})/\d{{5}}\.png", pair)


def test_evalmuse_elements_are_typed_and_labelled_by_three() -> None:
    elements = evalmuse_answers().elements
    assert set(elements["skill"]) == {
        "object", "shape", "color", "counting", "attribute", "spatial", "location",
    }  # fmt: skip
    typed = elements["element_id"].str.extract(r"\((.*)\)$")[0]
    assert (typed == elements["skill"]).all()
    assert set(elements["label"]) == {0.0, 0.333333, 0.666667, 1.0}
    assert not elements.duplicated(["pair_id", "element_id"]).any()


def test_evalmuse_questions_carry_the_elements_of_the_answers() -> None:
    asked, elements = questions("evalmuse"), evalmuse_answers().elements
    for pair in asked.pairs:
        named = {e.element_id for e in asked.elements[pair.text_id]}
        assert named == set(elements[elements["pair_id"] == pair.pair_id]["element_id"])


def test_gecko_has_four_prompts_for_each_sub_skill() -> None:
    answers = gecko_answers()
    assert set(answers.prompts.groupby(["skill", "sub_skill"]).size()) == {4}
    assert answers.prompts["prompt"].is_unique
    assert answers.pair_ids == tuple(
        f"{p}/{model}" for p in answers.prompts["prompt_id"] for model in MODELS
    )


def test_gecko_is_rated_in_four_templates_by_three_raters() -> None:
    ratings = gecko_answers().ratings
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
    ratings = gecko_answers().ratings
    first = ratings[(ratings["model"] == MODELS[0]) & (ratings["rater_id"] == "simulated-1")]
    for p in gecko.prompts():
        mine = first[first["prompt_id"] == p.id]
        said = mine[mine["template"] == "WL"]["unit_text"]
        assert " ".join(said) == p.text.replace(",", "")
        assert (mine["template"] == "DSGH").sum() == len(aspects(p.scene))


def test_gecko_compares_every_pair_of_models() -> None:
    ratings = gecko_answers().ratings
    votes = ratings[ratings["template"] == "SxS"]
    assert set(votes.groupby("prompt_id").size()) == {6 * 3}
    assert (votes["model"] != votes["model_b"]).all()
