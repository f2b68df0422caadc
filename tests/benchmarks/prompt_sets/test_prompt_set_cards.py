"""Cards of prompt sets, and the registry that finds the sets in their modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import PlatformError, SubmitterError
from benchmarks.evalmuse.protocol import CARD as EVALMUSE
from benchmarks.gecko.protocol import CARD as GECKO
from benchmarks.prompt_sets import demo, reference, tifa160
from benchmarks.prompt_sets.prompt_set import FOLDER, PromptSet, card_beside
from benchmarks.prompt_sets.registry import find_prompt_set, load_prompt_sets, with_prompt_sets
from benchmarks.published import published
from benchmarks.registry import load_registry

SETS = load_prompt_sets()
BENCHMARKS = load_registry()
BESIDE = {
    "gecko_s": "gecko",
    "gecko_s_rel": "gecko",
    "gecko_r": "gecko",
    "gecko_r_rel": "gecko",
    "evalmuse_ranking": "evalmuse",
    "genai_prompts": "genai_1600",
    "croc_hum_prompts": "croc_hum",
    "tifa160_prompts": "tifa160",
}
EVERY = [pytest.param(one, id=name) for name, one in SETS.items()]


def test_the_registry_finds_every_set_and_every_card_is_one() -> None:
    assert set(SETS) == {*BESIDE, "dsg_1k", "demo_prompts"}
    assert {path.stem for path in FOLDER.glob("*.toml")} == set(SETS)


@pytest.mark.parametrize("prompt_set", EVERY)
def test_a_card_says_what_the_prompts_are_and_whose(prompt_set: PromptSet) -> None:
    card = prompt_set.card
    assert prompt_set.track == "models"
    assert prompt_set.rated_by in {"", *BENCHMARKS}
    assert card.headline.measure in card.measures
    assert card.cluster == "prompt"
    assert card.licence
    assert card.citation
    assert card.simulated is (prompt_set.name == "demo_prompts")
    for text in (card.summary, card.description):
        assert text.strip()
        assert "  " not in text


@pytest.mark.parametrize("prompt_set", EVERY)
def test_a_set_says_which_sizes_and_seeds_are_asked_for(prompt_set: PromptSet) -> None:
    drawing = prompt_set.drawing
    assert 0 < drawing.least_side < drawing.most_side <= 4096
    assert len(set(drawing.seeds)) == len(drawing.seeds) > 1
    if prompt_set.card.files:  # those of the demo set are in code
        for figure in (*drawing.seeds, drawing.least_side, drawing.most_side):
            assert str(figure) in prompt_set.card.description, figure


def test_four_images_of_each_ranking_prompt_are_asked_for_as_in_table_10() -> None:
    assert len(SETS["evalmuse_ranking"].drawing.seeds) == 4


@pytest.mark.parametrize(("name", "benchmark"), BESIDE.items())
def test_files_and_skills_are_those_of_the_benchmark_of_metrics(name: str, benchmark: str) -> None:
    card, theirs = SETS[name].card, BENCHMARKS[benchmark].card
    assert card.files
    assert set(card.files) <= set(theirs.files)
    assert card.family == theirs.family
    assert card.citation == theirs.citation
    if card.skills:
        assert card.skills == theirs.skills
    assert all(file.role != "images" for file in card.files)


@pytest.mark.parametrize("prompt_set", EVERY)
def test_without_data_the_missing_file_is_named_and_how_to_get_it(
    prompt_set: PromptSet, tmp_path: Path
) -> None:
    if not prompt_set.card.files:
        assert prompt_set.has_answers(None)
        return
    assert not prompt_set.has_answers(tmp_path)
    assert not prompt_set.has_questions(tmp_path)
    for data in (None, tmp_path):
        with pytest.raises(SubmitterError) as error:
            prompt_set.set_prompts(data)
        assert error.value.code == "data_missing"
        assert prompt_set.card.files[0].path in str(error.value)
        assert f"python -m benchmarks fetch {prompt_set.name}" in error.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("prompt_set", EVERY)
def test_its_images_are_those_that_models_draw(prompt_set: PromptSet) -> None:
    with pytest.raises(SubmitterError, match="those that models draw") as error:
        prompt_set.questions(None)
    assert f"prompts {prompt_set.name}" in error.value.hint


def test_a_card_keeps_what_it_says_itself_and_takes_the_rest_from_beside() -> None:
    card = card_beside("gecko_s", GECKO, ("gecko/prompts.csv",))
    assert card.citation == GECKO.citation
    assert card.licence != GECKO.licence
    assert not card_beside("gecko_r", GECKO, ("gecko/prompts.csv",), skills=False).skills
    with pytest.raises(ValueError, match=r"evalmuse declares no gecko/prompts\.csv"):
        card_beside("gecko_s", EVALMUSE, ("gecko/prompts.csv",))


def test_a_declaration_that_is_no_tuple_of_sets_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wrong in ([*demo.PROMPT_SETS], ("demo",)):
        monkeypatch.setattr(demo, "PROMPT_SETS", wrong)
        with pytest.raises(PlatformError, match="no tuple of prompt sets") as found:
            load_prompt_sets()
        assert found.value.code == "invalid_benchmark"


def test_two_sets_of_one_name_are_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tifa160, "PROMPT_SETS", demo.PROMPT_SETS)
    with pytest.raises(PlatformError, match=demo.PROMPT_SETS[0].name) as found:
        load_prompt_sets()
    assert found.value.code == "duplicate_benchmark"


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    known = load_prompt_sets()
    for name, one in known.items():
        assert find_prompt_set(known, name) is one
    with pytest.raises(SubmitterError, match="no prompt set 'no such'") as found:
        find_prompt_set(known, "no such")
    assert found.value.code == "unknown_prompt_set"
    assert all(name in found.value.hint for name in known)


def test_a_printed_figure_of_no_model_is_no_row_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    [table] = reference.references_of("evalmuse_ranking")
    cells = [c for c in published() if (c.paper, c.table) == (table.paper, table.table)]
    broken = (cells[0].model_copy(update={"model": None}), *cells[1:])
    monkeypatch.setattr(reference, "published", lambda: broken)
    reference._table.cache_clear()
    try:
        with pytest.raises(ValueError, match="is of no model"):
            reference.references_of("evalmuse_ranking")
    finally:
        reference._table.cache_clear()


def test_a_set_that_is_called_as_a_benchmark_is_an_error_of_ours() -> None:
    sets = load_prompt_sets()
    name, one = next(iter(sets.items()))
    assert with_prompt_sets({"other": one}, sets) == {"other": one, **sets}
    with pytest.raises(PlatformError, match=f"are called {name!r}") as found:
        with_prompt_sets({name: one}, sets)
    assert found.value.code == "duplicate_benchmark"
