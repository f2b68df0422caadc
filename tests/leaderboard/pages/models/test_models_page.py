"""The board of models: who stands where, by whom, where metrics disagree, and what is known."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from leaderboard.models.board_types import (
    BoardQuery,
    Disagreement,
    Evidence,
    Judge,
    Mean,
    ModelBoard,
    SkillBoard,
    Standing,
)
from leaderboard.models.entries import PATH, ModelTrack, track_bytes
from leaderboard.models.model_card import ModelCard
from leaderboard.pages.models.disagreements import MOST_OF_A_SKILL, disagreements_section
from leaderboard.pages.models.facts import parameters, selection
from leaderboard.pages.models.judges_view import judges_section
from leaderboard.pages.models.models_page import answer
from leaderboard.pages.models.names import badges
from leaderboard.pages.models.query import Choice, ModelsQuery, resolve
from leaderboard.pages.models.table import MOST_MODELS, models_table
from leaderboard.pages.page import Context
from leaderboard.store.memory import memory_store
from tests.leaderboard.pages.models.made_up import (
    EMPTY,
    IDS,
    JUDGES,
    SET,
    context_of,
    entry,
    fill_models,
    filled,
)
from tests.leaderboard.pages.skills.skills_fixture import NASTY, cards, fill

UNESCAPED = ("<img src=x", "${alert", "{{7*7}}", "\u202e", "javascript:alert")


@pytest.fixture(scope="module")
def context() -> Context:
    return context_of(filled())


def shown(context: Context, **params: str) -> str:
    return answer(context, ModelsQuery.from_params(params))


def choice_of(context: Context, **params: str) -> Choice:
    assert context.models is not None
    found = resolve(ModelsQuery.from_params(params), context.models, context.reader.view())
    assert found is not None
    return found


# Values that are made up ------------------------------------------------------------------------

JUDGE = Judge("m/One", "One 1.0", trusted=True, why="It leads.", seconds_per_image=0.25)
OTHER = Judge(f"m/{NASTY}", NASTY, trusted=False, why=NASTY, pinned=True)


def standing(place: int, *, unranked: str = "") -> Standing:
    mean = Mean(0.8 - 0.1 * place, 0.7, 0.9, n_prompts=40, n_missing=place)
    ranks = {} if unranked else {"rank_low": place + 1, "rank_high": place + 2, "tier": place + 1}
    return Standing(f"drawn-{place:05d}", {JUDGE.entry_id: mean}, unranked=unranked, **ranks)  # type: ignore[arg-type]


def board(*skills: SkillBoard, n_models: int = 3) -> ModelBoard:
    entries = {f"drawn-{k:05d}": entry(k, f"Model {k}") for k in range(n_models)}
    return ModelBoard(BoardQuery(SET), entries, {one.skill: one for one in skills}, "The rule.")


def skill_board(skill: str | None, title: str, n: int = 3, **more: object) -> SkillBoard:
    standings = {f"drawn-{k:05d}": standing(k) for k in range(n)}
    made = SkillBoard(skill, title, 40, (JUDGE, OTHER), JUDGE.entry_id, standings)
    return replace(made, **more)  # type: ignore[arg-type]


def test_a_cell_has_the_mean_of_the_lead_metric_and_the_rank_range(context: Context) -> None:
    shown_ = models_table(board(skill_board(None, "All prompts")), choice_of(context))
    cells = re.findall(r'--t:(\d+)%".*?<b>([0-9.]+)</b>.*?as-range">([^<]+)<', shown_)
    assert cells == [("100", "0.800", "1–2"), ("50", "0.700", "2–3"), ("0", "0.600", "3–4")]
    assert [int(tier) for tier in re.findall(r"Tier (\d+)<", shown_)] == [1, 2, 3]
    assert "1 without a score" in shown_


def test_colour_is_of_the_column_and_equal_means_have_one(context: Context) -> None:
    flat = {
        f"drawn-{k:05d}": replace(standing(0), submission_id=f"drawn-{k:05d}") for k in range(3)
    }
    made = board(skill_board(None, "All"), skill_board("count", "Counting", standings=flat))
    shades = re.findall(r"--t:(\d+)%", models_table(made, choice_of(context)))
    assert shades[1::2] == ["50", "50", "50"]


def test_a_model_without_a_rank_comes_last_and_says_why(context: Context) -> None:
    none = {"drawn-00000": standing(0), "drawn-00001": standing(1, unranked=f"60 lack {NASTY}")}
    made = board(skill_board(None, "All prompts", standings=none))
    table = models_table(made, choice_of(context))
    assert table.index("Tier 1") < table.index("No rank") < table.index("Model 1")
    assert "no rank: 60 lack" in table and not any(one in table for one in UNESCAPED)


def test_a_skill_that_nobody_judges_has_no_figures(context: Context) -> None:
    made = board(skill_board("lang", "Language", lead=None, judges=(OTHER,), note="Nobody."))
    table = models_table(made, choice_of(context))
    assert "nobody trusted" in table and table.count("as-blank") == 3
    assert "<b>0." not in table


def test_a_long_board_is_cut_and_says_so(context: Context) -> None:
    many = board(skill_board(None, "All prompts", MOST_MODELS + 7), n_models=MOST_MODELS + 7)
    table = models_table(many, choice_of(context))
    assert table.count('class="as-c-metric"') == MOST_MODELS + 1
    assert "7 more are in the download" in table


def test_disagreements_are_named_with_both_sides_and_never_more_than_can_be_read(
    context: Context,
) -> None:
    first = Disagreement(IDS[0], IDS[1], (JUDGE.entry_id,), (OTHER.entry_id, "gone/metric"))
    both = (JUDGE, replace(OTHER, trusted=True))
    made = board(skill_board("count", "Counting", judges=both, disagreements=(first,) * 15))
    said = disagreements_section(made, choice_of(context))
    assert said.count("Compare the two") == MOST_OF_A_SKILL and "3 more pairs" in said
    assert "By <bdi>One 1.0</bdi>" in said and "gone/metric" in said
    assert f"a={IDS[0]}&amp;b={IDS[1]}" in said and "15 pairs" in said
    filtered = disagreements_section(made, choice_of(context, words="box", seed="1"))
    assert f"skill=count&amp;words=box&amp;seed=1&amp;a={IDS[0]}" in filtered
    assert not any(one in said for one in UNESCAPED)


def test_without_disagreements_it_is_said_whether_there_could_be_any(context: Context) -> None:
    alone = board(skill_board(None, "All prompts"))
    assert "No skill has two trusted metrics" in disagreements_section(alone, choice_of(context))
    both = board(skill_board(None, "All", judges=(JUDGE, replace(JUDGE, entry_id="m/Two"))))
    assert "No two trusted metrics" in disagreements_section(both, choice_of(context))


def test_judges_come_with_their_evidence_and_links_to_the_boards_it_is_from(
    context: Context,
) -> None:
    known = Evidence("gecko", "count", "srcc", 0.61, 0.5, 0.7, 1, 0.0, "for")
    gone = Evidence("gone", "x", "rho", 0.1, None, None, None, None, "against")
    made = board(skill_board("count", "Counting", judges=(replace(JUDGE, evidence=(known, gone)),
                                                          OTHER)))  # fmt: skip
    said = judges_section(made, choice_of(context), cards())
    assert "The rule." in said and "benchmark=gecko&amp;skill=count" in said
    assert "Gecko, Count</a>: Spearman ρ 0.610 [0.500, 0.700], tier 1, chance 0.000" in said
    assert "gone, x</a>: rho 0.100" in said and "speaks against it" in said
    assert "by an operator" in said and "0.250 s" in said and "Judge by it alone" in said
    assert not any(one in said for one in UNESCAPED)


def test_what_a_reader_must_know_of_the_images_is_a_flag() -> None:
    assert badges(entry(0, "Plain")) == ""
    assert "best of 4" in badges(entry(1, "Best"))
    assert "2 withheld" in badges(entry(2, "Withheld"))
    lacking = badges(entry(3, "Lacking"))
    assert "shared images" in lacking and "60 missing" in lacking
    copied = entry(0, "Copy").model_copy(update={"same_content_as": ("drawn-00007",)})
    assert "same content" in badges(copied)


@pytest.mark.parametrize(
    ("value", "said"), [(None, "—"), (7, "7"), (860_000_000, "860\u00a0M"), (2_600_000_000, "2.6\u00a0B"),
                        (12 * 10**12, "12\u00a0T")]
)  # fmt: skip
def test_numbers_of_weights_are_short(value: int | None, said: str) -> None:
    assert parameters(value) == said


def test_how_an_image_was_taken_is_told_in_words() -> None:
    assert selection(ModelCard()) == "first image"
    best = ModelCard(selection="best_of", best_of=4, selected_by=NASTY)
    assert selection(best).startswith("best of 4 by <bdi>&lt;img")


# The page ---------------------------------------------------------------------------------------


def test_the_page_has_every_part_and_nothing_of_a_stranger_unescaped(context: Context) -> None:
    page = shown(context)
    for part in ("board", "disagreements", "judges", "facts", "one-pixel", "orderings",
                 "as-published"):  # fmt: skip
        assert f'id="{part}"' in page, part
    assert not any(one in page for one in UNESCAPED)
    assert page.count("<h1") == 1 and "gnp.exe" in page


def test_models_are_in_the_order_of_the_board_and_lead_to_their_images(context: Context) -> None:
    page = shown(context)
    rows = re.findall(r'class="as-c-metric"><a class="as-name"[^>]*id=(drawn-\d+)"', page)
    assert rows[:5] == list(IDS)
    assert f"id={IDS[0]}&amp;skill=count&amp;judge={JUDGES[0]}" in page


def test_a_skill_opens_to_its_sub_skills_and_back(context: Context) -> None:
    assert 'href="./models?set=made_up_prompts&amp;skill=count"' in shown(context)
    inside = shown(context, skill="count")
    heads = re.findall(r'<th scope="col">(?:<a[^>]*>)?([^<]+)', inside)
    assert heads[:3] == ["Counting", "Counting: few", "Counting: many"]
    assert "Remove skill: Counting" in inside


def test_filters_are_told_and_each_can_be_taken_back(context: Context) -> None:
    models = f"{IDS[0]},{IDS[1]},{IDS[2]}"
    page = shown(context, words="box", split="real", seed="2", judge=JUDGES[2], models=models)
    for said in ("split: Real", "words: box", "only CLIPScore 1.4", "seed no. 2", "3 of 5 models"):
        assert f"Remove {said}" in page
    assert "Judged by one metric alone" in page and "Easel Turbo" not in page.split("as-m-facts")[0].split("as-models")[1]  # fmt: skip
    assert f"v1/models/{SET}?split=real&amp;words=box&amp;judge=" in page


def test_a_metric_on_its_own_is_not_said_to_have_others_beside_it(context: Context) -> None:
    assert "BLIP2-ITM 1.1</bdi> +1" in shown(context, skill="count")
    assert " +1<" not in shown(context, skill="count", judge=JUDGES[2])


def test_what_a_filter_empties_says_so(context: Context) -> None:
    page = shown(context, words="nothing like it")
    assert "Nothing left to compare" in page and 'href="./models?set=made_up_prompts"' in page


def test_what_was_asked_for_and_is_not_there_is_said(context: Context) -> None:
    page = shown(context, skill=NASTY)
    assert "There is no skill “&lt;img" in page and "as-models" in page


def test_a_set_without_models_says_how_to_be_the_first(context: Context) -> None:
    page = shown(context, set=EMPTY)
    assert (
        "No submitted models yet" in page and f"--benchmark {EMPTY}" in page and "./submit" in page
    )


def test_models_that_nobody_scored_and_an_installation_without_sets_say_so() -> None:
    store = fill(memory_store())
    unscored = entry(0, "New").model_copy(update={"judges": {}})
    content = track_bytes(ModelTrack({IDS[0]: unscored}))
    store.public.commit({PATH: content}, parent=store.public.head(), message="publish")
    assert "Not scored yet" in shown(context_of(store))
    assert "no prompt sets" in shown(replace(context_of(store), models=None))


@pytest.mark.slow
def test_models_of_an_earlier_revision_are_left_out_by_name() -> None:
    store = filled(2)
    old = entry(3, "Old one")
    old = old.model_copy(update={"images": old.images.model_copy(update={"revision": "2023"})})
    track = ModelTrack({one.submission_id: one for one in (entry(0, "Aurora"), entry(1, "B"), old)})
    store.public.commit({PATH: track_bytes(track)}, parent=store.public.head(), message="publish")
    page = shown(context_of(store))
    assert "Left out" in page and "Old one" in page


@pytest.mark.slow
def test_fifty_models_are_shown() -> None:
    page = shown(context_of(fill_models(fill(memory_store()), 50)), words="box")
    assert page.count('class="as-c-metric"><a') >= 50
