"""Prompt sets: cards, registry, files, what is printed of models on them; means of a model's scores."""

from __future__ import annotations

import math
import random
import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.errata.entries import errata
from benchmarks.evalmuse.load import SKILLS
from benchmarks.evalmuse.protocol import CARD as EVALMUSE
from benchmarks.evalmuse.protocol import EvalMuse
from benchmarks.gecko.protocol import CARD as GECKO
from benchmarks.genai_bench.protocol import GENAI_1600, GenAiBench
from benchmarks.prompt_sets import reference, sets
from benchmarks.prompt_sets.declared import PROMPT_SETS as DECLARED
from benchmarks.prompt_sets.means import by_seed, over_seeds
from benchmarks.prompt_sets.prompt_set import (
    FOLDER,
    MEASURE,
    PromptAnswers,
    PromptSet,
    SetElement,
    SetPrompt,
    card_beside,
    find_prompt_set,
    load_prompt_sets,
    pair_id,
    parsed_pair,
    skills_of,
    with_prompt_sets,
)
from benchmarks.prompt_sets.reference import (
    ReferenceRow,
    other_references,
    ranked,
    reference_frames,
    references_of,
)
from benchmarks.published import published
from benchmarks.registry import load_registry
from benchmarks.rethinking.measures import MetricScores, model_scores
from benchmarks.rows import Measured
from benchmarks.schema import ScoreTable
from benchmarks.sources.folder import DataFile, DataFolder
from benchmarks.statistics.resampling import ResamplingPlan
from tests.conftest import data_folder
from tests.kit.checks import trial_card
from tests.kit.refusals import refused

SETS = load_prompt_sets()
BENCHMARKS = load_registry()
BESIDE = {
    "gecko_s": "gecko", "gecko_s_rel": "gecko", "gecko_r": "gecko", "gecko_r_rel": "gecko",
    "evalmuse_ranking": "evalmuse", "genai_prompts": "genai_1600", "croc_hum_prompts": "croc_hum",
    "tifa160_prompts": "tifa160",
}  # fmt: skip
EVERY = [pytest.param(one, id=name) for name, one in SETS.items()]


# Cards, and the registry that finds the sets in their modules.


def test_the_registry_finds_every_set_and_every_card_is_one() -> None:
    assert set(SETS) == {*BESIDE, "demo_prompts", *(one.name for one in DECLARED)}
    assert {path.stem for path in FOLDER.glob("*.toml")} == {*BESIDE, "demo_prompts"}


@pytest.mark.parametrize("prompt_set", EVERY)
def test_a_card_says_what_the_prompts_are_whose_and_how_they_are_drawn(
    prompt_set: PromptSet,
) -> None:
    card, drawing = prompt_set.card, prompt_set.drawing
    assert prompt_set.track == "models"
    assert prompt_set.rated_by in {"", *BENCHMARKS}
    assert card.headline.measure in card.measures
    assert card.cluster == "prompt"
    assert card.simulated is (prompt_set.name == "demo_prompts")
    for text in (card.licence, card.citation, card.summary, card.description):
        assert text.strip()
        assert "  " not in text
    assert 0 < drawing.least_side < drawing.most_side <= 4096
    # As in Table 10 of EvalMuse-40K, four images of each prompt.
    n_seeds = 4 if prompt_set.name == "evalmuse_ranking" else len(drawing.seeds)
    assert len(set(drawing.seeds)) == n_seeds > 1
    if card.files:  # those of the demo set are in code
        for figure in (*drawing.seeds, drawing.least_side, drawing.most_side):
            assert str(figure) in card.description, figure


@pytest.mark.parametrize(("name", "benchmark"), BESIDE.items())
def test_files_and_skills_are_those_of_the_benchmark_of_metrics(name: str, benchmark: str) -> None:
    card, theirs = SETS[name].card, BENCHMARKS[benchmark].card
    assert card.files
    assert set(card.files) <= set(theirs.files)
    assert (card.family, card.citation) == (theirs.family, theirs.citation)
    assert not card.skills or card.skills == theirs.skills
    assert all(file.role != "images" for file in card.files)


@pytest.mark.parametrize("prompt_set", EVERY)
def test_without_data_the_missing_file_is_named_and_how_to_get_it(
    prompt_set: PromptSet, tmp_path: Path
) -> None:
    with refused("images_missing") as none:  # its images are those that models draw
        prompt_set.questions(None)
    assert f"prompts {prompt_set.name}" in none.value.hint
    if not prompt_set.card.files:
        assert prompt_set.has_answers(None)
        return
    assert not prompt_set.has_answers(tmp_path)
    assert not prompt_set.has_questions(tmp_path)
    for data in (None, tmp_path):
        with refused("data_missing") as error:
            prompt_set.set_prompts(data)
        assert prompt_set.card.files[0].path in str(error.value)
        assert f" fetch {prompt_set.name}" in error.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_card_keeps_what_it_says_itself_and_takes_the_rest_from_beside() -> None:
    card = card_beside("gecko_s", GECKO, ("gecko/prompts.csv",))
    assert card.citation == GECKO.citation
    assert card.licence != GECKO.licence
    assert not card_beside("gecko_r", GECKO, ("gecko/prompts.csv",), skills=False).skills
    with pytest.raises(ValueError, match=r"evalmuse .*gecko/prompts\.csv"):
        card_beside("gecko_s", EVALMUSE, ("gecko/prompts.csv",))


def test_sets_that_are_none_or_share_a_name_are_errors_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = SETS["demo_prompts"]
    for wrong, code in (
        ([one], "invalid_benchmark"),
        (("demo",), "invalid_benchmark"),
        ((one, one), "duplicate_benchmark"),
    ):
        monkeypatch.setattr(sets, "PROMPT_SETS", wrong)
        with refused(code):
            load_prompt_sets()
    name = one.name
    assert with_prompt_sets({"other": one}, SETS) == {"other": one, **SETS}
    with refused("duplicate_benchmark", match=name):
        with_prompt_sets({name: one}, SETS)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    assert all(find_prompt_set(SETS, name) is one for name, one in SETS.items())
    with refused("unknown_prompt_set", match="'no such'") as found:
        find_prompt_set(SETS, "no such")
    assert all(name in found.value.hint for name in SETS)


# Reading small files in the released layouts.

TSV = """id\tprompt\tcontrast\tprompt_paths\tcontrast_paths\talt_contrast_paths
counting_1\tTwo cats\tThree cats\t['images/counting/prompt/a.jpg']\t[]\t
negation_1\tTwo cats\tNo cat\t[]\t[]\t['images/negation/x/b.jpg']
"""
GECKO_S = "dataset_id,prompt,prompt_type,prompt_id\natt/color:stroop,a blue lemon,Gecko(S),0\n"


def trial(name: str, content: str, data: Path, **counts: int) -> tuple[SetPrompt, ...]:
    """What the set reads of such a file, with a card that pins nothing."""
    whole = SETS[name]
    place = data / whole.card.files[0].path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content, encoding="utf-8")
    found = PromptSet(trial_card(whole.card, **counts), whole._load, whole.drawing)
    return found.set_prompts(data)


def test_both_texts_of_croc_are_prompts_and_each_once(tmp_path: Path) -> None:
    assert trial("croc_hum_prompts", TSV, tmp_path) == (
        SetPrompt("counting_1|orig", "Two cats", skills=("counting", "negation")),
        SetPrompt("counting_1|contrast", "Three cats", skills=("counting",)),
        SetPrompt("negation_1|contrast", "No cat", skills=("negation",)),
    )
    with refused("data_malformed", match="2 prompt pairs; expected 280"):
        SETS["croc_hum_prompts"].set_prompts(tmp_path)


def test_a_prompt_of_gecko_s_has_the_skill_and_sub_skill_of_its_id(tmp_path: Path) -> None:
    found = trial("gecko_s", GECKO_S, tmp_path)
    assert found == (SetPrompt("0", "a blue lemon", skills=("color", "color:stroop")),)


def listed(elements: str) -> str:
    return f'{{"a": {{"prompt": "a", "element_score": {elements}}}}}'


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gecko_s_rel", GECKO_S, r"max_disagreement_less_0\.5"),
        *(("evalmuse_ranking", listed(elements), "element_score")
          for elements in ('{"cup": null}', "3", '"cup"', "[1]", "null")),
    ],
)  # fmt: skip
def test_files_that_are_not_as_released_are_refused(
    name: str, content: str, said: str, tmp_path: Path
) -> None:
    with refused("data_malformed", match=said):
        trial(name, content, tmp_path)


def test_elements_keep_their_key_and_lose_the_brackets_and_sub_types(tmp_path: Path) -> None:
    keys = ["two (Counting)", "violet (Color) ", "train (object-vehicle)", "noon (Other-time)"]
    content = listed("{" + ", ".join(f'"{key}": null' for key in keys) + "}")
    [prompt] = trial("evalmuse_ranking", content, tmp_path)
    assert (prompt.prompt_id, prompt.split) == ("000", "real")
    assert prompt.skills == ("color", "object", "counting")
    assert prompt.elements == (
        SetElement(keys[0], "two", "counting"),
        SetElement(keys[1], "violet", "color"),
        SetElement(keys[2], "train", "object"),
        SetElement(keys[3], "noon", ""),
    )


def test_files_are_read_again_only_when_they_change(tmp_path: Path) -> None:
    calls: list[int] = []

    def load(folder: DataFolder) -> list[SetPrompt]:
        calls.append(1)
        return [SetPrompt("a", folder.path("a.txt").read_text())]

    files = (DataFile(path="a.txt", role="prompts", supplied="Ask."),)
    card = SETS["dsg_1k"].card.model_copy(update={"files": files, "counts": {}})
    prompt_set = PromptSet(card, load)
    for n, text in enumerate(("one", "three"), 1):
        (tmp_path / "a.txt").write_text(text)
        assert [prompt_set.set_prompts(tmp_path)[0].text for _ in range(3)] == [text] * 3
        assert len(calls) == n


# The released files: as many prompts, skills and elements as were counted.

COUNTED = {
    "gecko_s": 930, "gecko_s_rel": 648, "gecko_r": 616, "gecko_r_rel": 389,
    "evalmuse_ranking": 199, "genai_prompts": 1600, "tifa160_prompts": 160, "dsg_1k": 1060,
    "geneval": 553, "geneval2": 800, "t2i_compbench": 2400, "oneig_bench": 1120,
    "wise_verified": 1000, "unigenbench": 600, "partiprompts": 1632,
}  # fmt: skip
SKILLS_COUNTED = {
    "gecko_s": {"count": 128},
    "gecko_s_rel": {"count": 78, "count:simple_numeric": 56},
    "genai_prompts": {"negation": 347},
    "tifa160_prompts": {"coco": 84, "partiprompt": 51, "paintskill": 15, "drawbench": 10},
}
SPLITS_COUNTED = {
    "gecko_r": {"tifa": 192, "diffusiondb": 30},
    "gecko_r_rel": {"tifa": 163, "diffusiondb": 9},
    "evalmuse_ranking": {"real": 100, "synth": 99},
    "dsg_1k": {"tifa": 160, "paragraph": 200, "relation": 100, "count": 100, "real_user": 200,
               "pose": 100, "defying": 100, "text": 100},
}  # fmt: skip


def at_hand(name: str) -> bool:
    """Whether the files of a set are there; where no data are, the test itself says so."""
    of = SETS[name]
    return not data_folder().is_dir() or of.folder(data_folder()).has(of.card.files[0].path)


@pytest.mark.paper
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COUNTED if at_hand(name)])
def test_a_released_set_is_as_it_was_counted(name: str, assay_data: Path, tmp_path: Path) -> None:
    prompt_set = SETS[name]
    card, found = prompt_set.card, prompt_set.set_prompts(assay_data)
    assert len({one.prompt_id for one in found}) == len(found) == COUNTED[name]
    assert card.counts["prompts"] == len(found)
    assert all(one.text.strip() for one in found)
    skills = Counter(skill for one in found for skill in one.skills)
    splits = Counter(one.split for one in found)
    assert (set(skills), set(splits) - {""}) == (set(card.skills), set(card.splits))
    assert skills.items() >= SKILLS_COUNTED.get(name, {}).items()
    assert splits.items() >= SPLITS_COUNTED.get(name, {}).items()
    # Every result names the hash of the file it was read from, and a changed one is refused.
    pinned = {file.path: file.sha256 for file in card.files}
    assert all(pinned.values())
    assert prompt_set.answers(assay_data).sources == pinned
    for file in card.files:
        source = next(p for p in (file.path, *file.also) if (assay_data / p).is_file())
        (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(assay_data / source, tmp_path / file.path)
    assert prompt_set.has_answers(tmp_path)
    path = tmp_path / card.files[0].path
    path.write_bytes(path.read_bytes().replace(b"a", b"o", 1))
    fresh = PromptSet(card, prompt_set._load, prompt_set.drawing)
    assert not fresh.has_answers(tmp_path)


@pytest.mark.paper
@pytest.mark.slow
def test_prompts_of_gecko_have_a_skill_with_a_sub_skill_and_the_reliable_are_among_them(
    assay_data: Path,
) -> None:
    for name in ("gecko_s", "gecko_r"):
        reliable = set(SETS[f"{name}_rel"].set_prompts(assay_data))
        assert reliable < set(SETS[name].set_prompts(assay_data))
    for one in SETS["gecko_s"].set_prompts(assay_data):
        skill, sub_skill = one.skills
        assert sub_skill.startswith(f"{skill}:")
    assert Counter(":" in skill for skill in SETS["gecko_s"].card.skills) == {True: 44, False: 12}


@pytest.mark.paper
@pytest.mark.slow
def test_the_ranking_prompts_of_evalmuse_come_with_their_970_elements(assay_data: Path) -> None:
    """Skills by element are counted where the keys are read; ids are whole keys, as released."""
    found = SETS["evalmuse_ranking"].set_prompts(assay_data)
    elements = [element for one in found for element in one.elements]
    assert len(elements) == 970
    for one in found:
        assert set(one.skills) == {element.skill for element in one.elements} - {""}
        assert len({element.element_id for element in one.elements}) == len(one.elements)
    spaced = [element for element in elements if element.element_id.endswith(" ")]
    assert {element.skill for element in spaced} == {"color", "material"}
    assert not any(element.text.endswith(" ") for element in spaced)


@pytest.mark.paper
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "benchmark"),
    [("evalmuse_ranking", EvalMuse()), ("genai_prompts", GENAI_1600)],
)
def test_prompts_and_skills_are_those_that_the_benchmark_of_metrics_exports(
    name: str, benchmark: EvalMuse | GenAiBench, assay_data: Path
) -> None:
    theirs, ours = benchmark.prompts(assay_data), SETS[name].set_prompts(assay_data)
    assert [one.prompt_id for one in ours] == list(theirs["prompt_id"])
    assert [one.text for one in ours] == list(theirs["prompt"])
    skills = [set(filter(None, cell.split(";"))) for cell in theirs["skills"]]
    assert [set(one.skills) for one in ours] == skills


@pytest.mark.paper
@pytest.mark.slow
def test_single_released_prompts(assay_data: Path) -> None:
    genai = SETS["genai_prompts"].set_prompts(assay_data)
    bare = ["00719", "00721", "00730", "00733", "00739", "00743", "00951"]
    assert [one.prompt_id for one in genai if not one.skills] == bare
    dsg = {one.prompt_id: one for one in SETS["dsg_1k"].set_prompts(assay_data)}
    rubix = dsg["whoops_5"]
    assert rubix.text == "A rubix cube with ten squares of purple"
    assert rubix.skills == (
        "entity", "entity:whole", "attribute", "attribute:color", "attribute:shape",
    )  # fmt: skip
    assert not any(one.elements for one in dsg.values())


# What is printed of models elsewhere, with the ranks that follow from it.

[TABLE_10] = references_of("evalmuse_ranking")
[RETHINKING] = other_references()


def test_ranks_of_table_10_are_competition_ranks_of_the_printed_figures() -> None:
    """22 models by an overall score and eleven skills; decimals are compared as they print."""
    rows = TABLE_10.rows
    assert (len(TABLE_10.models), len(rows), TABLE_10.source) == (22, 264, "EvalMuse-40K, Table 10")
    assert {row.skill for row in rows} == {None, *SKILLS}
    assert {row.metric for row in rows} == {"fga-blip2"}
    shown = {(row.model, row.place): Decimal(row.printed) for row in rows}
    for row in rows:
        column = [value for (_, place), value in shown.items() if place == row.place]
        assert row.rank == 1 + sum(value > shown[row.model, row.place] for value in column)
    overall = {row.model: row for row in rows if row.skill is None}
    assert all(row.printed_rank == row.rank for row in overall.values())
    assert [overall[m].rank for m in ("HunyuanDiT", "Kandinsky3", "SD v1.5", "SD v1.2")] == [
        8, 8, 21, 21,
    ]  # fmt: skip
    # What prints alike shares a rank in the skills too.
    food = {row.model: row.rank for row in rows if row.skill == "food"}
    assert food["Dreamina v2.0Pro"] == food["DALLE 3"] == 4
    assert 5 not in food.values()


def test_the_two_cells_of_the_readme_that_differ_are_pointed_at() -> None:
    [entry] = [one for one in errata() if one.id in TABLE_10.errata]
    readme = {cell.label: cell.printed for cell in entry.cells}
    of_object = {f"{r.model}, object": r for r in TABLE_10.rows if r.skill == "object"}
    assert {label: of_object[label].printed for label in readme} == {
        "DALLE 3, object": ".732",
        "FLUX 1.1, object": ".694",
    }
    others = ranked(
        ReferenceRow(r.model, r.metric, r.value, readme.get(label, r.printed))
        for label, r in of_object.items()
    )
    # So the README's ranks of these two cannot be the paper's.
    found = {r.model: r.rank for r in others}
    assert (found["DALLE 3"], found["FLUX 1.1"]) == (9, 8)
    ours = [of_object[f"{model}, object"].rank for model in ("DALLE 3", "FLUX 1.1")]
    assert ours != [9, 8]


@pytest.mark.parametrize(
    ("metric", "stable", "swapped"),
    [("vqascore", True, 0), ("clipscore", False, 1), ("dsgscore", False, 1)],
)
def test_ranks_and_stability_of_re_thinking_follow_from_its_means(
    metric: str, stable: bool, swapped: int
) -> None:
    rows = [row for row in RETHINKING.rows if row.metric == metric]
    assert len(rows) == 4 * 3
    assert [row.rank for row in rows] == [row.printed_rank for row in rows]
    assert {(row.seed, row.facet) for row in rows} == {(42, None), (3407, None), (5096, None)}
    found = RETHINKING.stability(metric)
    assert (found.stable, found.swapped) == (stable, swapped)
    # Through `benchmarks.rethinking` too, with one prompt whose score is the mean.
    value = {(row.seed, row.model): row for row in rows}
    seeds, models = (42, 3407, 5096), RETHINKING.models
    means = np.array([[[value[seed, model].value] for model in models] for seed in seeds])
    named = tuple(map(str, seeds))
    scores = MetricScores(metric, models, named, ("all",), means, np.full_like(means, np.nan))
    plan = ResamplingPlan.for_revision("rethinking", "1", ("all",), 2)
    ranks = {(int(one.seed), one.model): one.rank for one in model_scores(scores, plan)}
    assert ranks == {key: row.printed_rank for key, row in value.items()}


def test_stability_needs_every_model_with_every_seed() -> None:
    with pytest.raises(ValueError, match="'fga-blip2'"):
        TABLE_10.stability("fga-blip2")


@pytest.mark.parametrize("name", SETS)
def test_rows_speak_of_skills_and_parts_of_their_set(name: str) -> None:
    card = SETS[name].card
    for table in references_of(name):
        assert table.rows
        assert {row.skill for row in table.rows} <= {None, *card.skills}
        assert {row.split for row in table.rows} <= {None, *card.splits}
        assert all(row.rank >= 1 for row in table.rows)
        assert len({(row.model, row.place) for row in table.rows}) == len(table.rows)


def test_a_table_is_shown_with_a_line_for_each_model() -> None:
    [(title, frame)] = reference_frames("evalmuse_ranking").items()
    assert title.startswith(f"{TABLE_10.source}: ")
    assert frame.shape == (22, 13)
    assert frame.iloc[0]["fga-blip2 all"] == "3.74 (1)"
    assert frame.iloc[1]["fga-blip2 object"] == ".732 (2)"
    assert references_of("genai_prompts") == references_of("nothing") == ()
    assert reference_frames("genai_prompts") == {}


def test_a_printed_figure_of_no_model_is_no_row_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [c for c in published() if (c.paper, c.table) == (TABLE_10.paper, TABLE_10.table)]
    broken = (cells[0].model_copy(update={"model": None}), *cells[1:])
    monkeypatch.setattr(reference, "published", lambda: broken)
    reference._table.cache_clear()
    try:
        with pytest.raises(ValueError, match="no model"):
            references_of("evalmuse_ranking")
    finally:
        reference._table.cache_clear()


# Scores of one model by prompt and seed, and their means with intervals, overall and by skill.


NAN = math.nan
PROMPTS = (
    SetPrompt("a/1", "two cups", skills=("count", "count:two")),
    SetPrompt("b", "a red cup", skills=("colour",)),
    SetPrompt("c", "three red cups", skills=("colour", "count")),
    SetPrompt("d", "a cup"),
)
IDS = tuple(one.prompt_id for one in PROMPTS)
PLAN = ResamplingPlan(IDS, 3, 50)
NOTHING = pd.Series(dtype=float, index=pd.Index([], dtype=str))


def scores_of(values: dict[tuple[str, int], float]) -> pd.Series:
    return pd.Series({pair_id(prompt, seed): value for (prompt, seed), value in values.items()})


def measured(scores: dict[str, pd.Series], **directions: int) -> Measured:
    found = load_prompt_sets()["demo_prompts"].measure(
        ScoreTable(pd.DataFrame(scores), directions=directions),  # type: ignore[arg-type]
        PromptAnswers((), IDS, prompts=PROMPTS),
        PLAN,
    )
    assert {(row.measure, row.facet == row.metric) for row in found.rows} == {(MEASURE, True)}
    return found


def test_scores_are_laid_out_by_seed_and_prompt() -> None:
    """Perturbed images and prompts of no set are passed over."""
    scores = scores_of({("b", 42): 0.2, ("a/1", 7): 0.1, ("a/1", 42): 0.4, ("d", 2**63): 0.3})
    scores[pair_id("a/1", 7, perturbed=True)] = scores[pair_id("b", 9, perturbed=True)] = 0.8
    scores[pair_id("z", 7)] = 0.9
    seeds, found = by_seed(scores, IDS)
    assert seeds == (7, 42, 2**63)
    expected = [[0.1, NAN, NAN, NAN], [0.4, 0.2, NAN, NAN], [NAN, NAN, NAN, 0.3]]
    np.testing.assert_array_equal(found, expected)
    seeds, found = by_seed(NOTHING, IDS)
    assert (seeds, found.shape) == ((), (0, 4))


@given(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1), st.integers(0, 2**64 - 1))
def test_a_pair_is_named_so_that_its_prompt_and_seed_can_be_read(prompt: str, seed: int) -> None:
    for perturbed in (False, True):
        name = pair_id(prompt, seed, perturbed=perturbed)
        assert parsed_pair(name) == (prompt, seed, perturbed)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.integers())
def test_a_mean_depends_on_the_scores_and_not_on_which_seed_gave_which(
    values: list[float], seed: int
) -> None:
    shuffled = random.Random(seed).sample(values, len(values))
    first, again = (over_seeds(np.array(one)[:, None])[0] for one in (values, shuffled))
    assert first == again == pytest.approx(math.fsum(values) / len(values), abs=1e-6)
    assert over_seeds(np.full((len(values), 1), values[0]))[0] == values[0]


def test_a_prompts_value_is_the_mean_over_its_images() -> None:
    images = np.array([[0.1, NAN, NAN], [0.4, 0.2, NAN]])
    np.testing.assert_allclose(over_seeds(images), [0.25, 0.2, NAN])
    np.testing.assert_array_equal(over_seeds(np.empty((0, 3))), [NAN] * 3)


def test_a_models_score_is_the_mean_over_prompts_of_the_mean_over_images() -> None:
    values = scores_of({("a/1", 1): 0.0, ("a/1", 2): 1.0, ("b", 1): 0.2, ("c", 1): 0.6})
    found = {(r.metric, r.skill): r for r in measured({"up": values, "down": values}, down=-1).rows}
    for metric, sign in (("up", 1), ("down", -1)):
        whole = found[metric, None]
        assert whole.value == pytest.approx(sign * (0.5 + 0.2 + 0.6) / 3)
        assert (whole.n_items, whole.n_clusters, whole.n_missing, whole.note) == (4, 3, 4, "")
        assert whole.ci_low <= whole.value <= whole.ci_high
        of_skill = {"count": (0.5 + 0.6) / 2, "colour": (0.2 + 0.6) / 2, "count:two": 0.5}
        for skill, value in of_skill.items():
            assert found[metric, skill].value == pytest.approx(sign * value)
        assert "one cluster" in found[metric, "count:two"].note


def test_resamples_draw_prompts_and_are_joint_over_skills() -> None:
    by_prompt = np.array([0.1, 0.2, 0.7, 0.4])
    values = scores_of({(one, 1): value for one, value in zip(IDS, by_prompt, strict=True)})
    found = measured({"m": values})
    colour = [row.skill for row in found.rows].index("colour")
    np.testing.assert_allclose(found.resamples[0], PLAN.counts @ by_prompt / 4)
    drawn = PLAN.counts[:, 1:3]
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(
            found.resamples[colour], drawn @ by_prompt[1:3] / drawn.sum(axis=1)
        )
    members = found.members[colour]
    assert members is not None
    assert members.tolist() == [1, 2]


def test_a_skill_without_scores_says_so() -> None:
    rows = {row.skill: row for row in measured({"m": scores_of({("d", 1): 0.4})}).rows}
    assert math.isnan(rows["colour"].value)
    assert "no image" in rows["colour"].note
    assert math.isnan(measured({"m": NOTHING}).rows[0].value)


def test_what_a_set_holds_is_counted_and_skills_stand_in_the_order_of_their_first_prompt() -> None:
    prompts = (*PROMPTS, SetPrompt("e", "x", split="real", elements=(SetElement("1", "x"),)))
    assert PromptAnswers((), (), prompts=prompts).counts() == {
        "prompts": 5, "elements": 1, "real: prompts of the split": 1, "count: prompts": 2,
        "count:two: prompts": 1, "colour: prompts": 2,
    }  # fmt: skip
    assert skills_of(PROMPTS) == ("count", "count:two", "colour")
    assert skills_of(()) == ()
